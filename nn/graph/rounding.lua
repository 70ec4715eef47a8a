-- SPDX-License-Identifier: MIT
-- The rounding rule of integer results for a whole graph: the field rounding of every out= and requantize.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local core = internal.import 'nn/graph/core'
local like = internal.import 'quant/like'
local rounding = {RULES = {'float', 'single', 'double', 'exact'}}

function rounding.check(what, rule)
	for _, known in ipairs(rounding.RULES) do
		if rule == known then return rule end
	end
	base.fail('%s: rounding: wanted float, single, double or exact, got %s%s', what, base.describe(rule), base.near(rule, rounding.RULES))
end

local function with(spec, rule)
	return like.spec(spec, {axis = spec.axis, block = spec.block, outer = spec.outer, observer = spec.observer, p = spec.p, momentum = spec.momentum, scale = spec.scale, zero_point = spec.zero_point, rounding = rule})
end

-- Ops whose results are sums of codes. Tables, norms, softmax and attention have their own rule. Results that are floats before they
-- become codes (also those of convolutions below 8 bits, and binary ones) are divided by the scale under every rule.
local SUMS = {linear = true, matmul = true, conv2d = true, add = true, sub = true, mul = true, cat = true, stack = true, avgpool2d = true, mean = true}

-- Whether a constant weight has scales in blocks or minimums: its sums are floats before they become codes.
local function in_blocks(e, node)
	local weight = node.op == 'linear' and e.nodes[node.inputs[2]]
	local p = weight and weight.value and weight.value:quantized() and weight.value:qparams()
	return p and (p.block or p.minimum)
end

local function is_integer(e, node)
	for _, ref in ipairs(node.inputs) do
		if type(ref) ~= 'string' then return false end -- with a number the op is a table
	end
	local d = quant.dtype(node.attrs.out.dtype)
	if d.kind == 'binary' or node.op == 'conv2d' and d.bits < 8 then return false end
	return SUMS[node.op] and (not node.attrs.act or node.attrs.act == 'relu') and not in_blocks(e, node)
end

-- The graph under the rule; g itself if nothing changes.
function rounding.apply(g, rule)
	local e, changed = core.edit(g), false
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do
		local node = e.nodes[name]
		local key = node.op == 'requantize' and 'spec' or node.attrs.out and is_integer(e, node) and 'out'
		local spec = key and node.attrs[key]
		if spec and spec.affine and (spec.rounding or 'float') ~= rule then
			local made = with(spec, rule)
			node = e:set_attr(node, key, made)
			if key == 'out' and node.spec and node.spec.output then
				local known = {}
				for field, value in next, node.spec do known[field] = value end
				known.output = made
				e:change(node, {spec = known})
			end
			changed = true
		end
	end
	return changed and e:finish() or g
end

return rounding
