-- SPDX-License-Identifier: MIT
-- Pass raise_quantize: moves a quantize with known parameters up through ops that only move or compare elements; these then run on
-- codes, with bit-identical results. After an integer op without other users the quantize becomes its out=, so that the integer sum
-- is rounded once instead of twice.
local _, internal = ...
local codes = internal.import 'nn/graph/codes'
local ops = internal.import 'nn/graph/ops'

local function can_pass(e, node, spec)
	local form = ops.form(node.op, node)
	local whole = quant.dtype(spec.dtype).bits >= 8 and spec.affine -- not every view of packed codes is possible
	if not form or form.gives ~= 'same' or not whole or type(node.inputs[1]) ~= 'string' then return false end
	if codes.are_codes(e, node.inputs[1]) then return false end
	return not form.fits or (form.fits(node)) == true
end

-- Whether the activations among the operands are codes.
local function takes_codes(e, node, form)
	for at, ref in ipairs(node.inputs) do
		local wanted = form.all
		for _, other in ipairs(form.inputs) do wanted = wanted or other == at end
		if wanted and type(ref) ~= 'string' then
			if not form.numbers then return false end
		elseif wanted and not codes.are_codes(e, ref) then
			return false
		end
	end
	return true
end

-- A layer returns floats in mode dynamic, as in m:quantize, and with output=false in its rule.
local function can_give(e, node)
	local form = ops.form(node.op, node)
	if not form or form.gives ~= 'codes' or node.attrs.out or node.floats then return false end
	if node.mode ~= 'static' and not (node.mode and form.decodes) then return false end
	return not form.needs or takes_codes(e, node, form)
end

-- x -> node -> quantize becomes x -> quantize -> node.
local function swap(e, quantize, node)
	local x = node.inputs[1]
	local shape = e:result_of(x).shape
	e:redirect(quantize.name, node.name)
	e:set_input(e.nodes[node.name], 1, quantize.name)
	e:change(e.nodes[quantize.name], {inputs = {x}, results = {{shape = shape, dtype = quantize.results[1].dtype,
		spec = quantize.results[1].spec}}})
end

return {group = 'fuse', needs = {'quantize'}, text = 'quantize up through ops that keep codes, into the out= of integer ops', run = function(e, say)
	for i = #e.order, 1, -1 do
		local node = e.nodes[e.order[i]]
		local spec, ref = node.attrs.spec, node.inputs[1]
		local before = node.op == 'quantize' and codes.fixed(spec) and not ref:find(':', 1, true) and e:only_user(ref) and e.nodes[ref]
		if before and can_pass(e, before, spec) then
			swap(e, node, before)
			say(node.name, 'before ' .. before.name)
		elseif before and can_give(e, before) then
			before = e:set_attr(before, 'out', spec)
			e:redirect(node.name, before.name)
			local known = {}
			for key, value in next, before.spec do known[key] = value end
			known.output = spec
			e:change(e.nodes[before.name], {spec = known})
			say(node.name, 'into ' .. before.name)
		end
	end
end}
