-- SPDX-License-Identifier: MIT
-- The types of inputs and outputs: g:export{input=, output=} makes an export accept and return codes where the graph quantizes its
-- inputs and decodes its results. Values do not change: int8 codes and zero points are those of uint8 minus 128.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local codes = internal.import 'nn/graph/codes'
local core = internal.import 'nn/graph/core'
local decide = internal.import 'nn/graph/decide'
local ops = internal.import 'nn/graph/ops'
local rounding = internal.import 'nn/graph/rounding'
local fail = base.fail
local interface = {TYPES = {'float', 'int8', 'uint8'}}

function interface.check(what, word)
	if base.one_of(word, interface.TYPES) then return word end
	fail('export: %s: wanted %s, got %s%s', what, table.concat(interface.TYPES, ' '), base.describe(word), base.near(word, interface.TYPES))
end

-- The spec of the same values in 8-bit codes of the other signedness; nil if the codes are not affine ones of 8 bits.
local function as(spec, dtype)
	if spec.dtype == dtype then return spec end
	if spec.bits ~= 8 or not spec.offset or not codes.fixed(spec) then return nil end
	local scale, zero = codes.params(spec)
	return quant.spec {dtype = dtype, scheme = 'asymmetric', scale = scale, zero_point = zero + (dtype == 'int8' and -128 or 128), rounding = spec.rounding}
end

local function refused(what, name, dtype, spec)
	fail("export: %s: wanted asymmetric codes of 8 bits to become %s at '%s', got '%s'", what, dtype, name, tostring(spec))
end

---------------------------------------------------------------- inputs

-- The nodes that quantize this input, all with the same spec.
local function quantizers(e, name)
	local list, spec = {}, nil
	for _, user in ipairs(e:users_of(name)) do
		local node = user.name and e.nodes[user.name]
		local own = node and (node.op == 'quantize' or node.op == 'requantize') and node.attrs.spec
		if not own or not codes.fixed(own) or spec and codes.key(own) ~= codes.key(spec) then
			fail("export: input: wanted an input that is quantized once, with a scale that is known, got '%s', which '%s' takes %s", name,
				node and node.name or 'the output', own and 'with another scale, or one that is found at run time' or 'as floats')
		end
		list[#list + 1], spec = node.name, own
	end
	return list, spec
end

local function set_input(e, name, dtype)
	local node = e.nodes[name]
	local result = node.results[1]
	local spec, list = result.spec, {}
	if not spec and result.dtype ~= 'float32' then return end -- indices such as tokens
	if not spec then list, spec = quantizers(e, name) end
	if not spec then return end -- no node uses it
	local made = as(spec, dtype) or refused('input', name, dtype, spec)
	e:change(node, {results = {{shape = result.shape, dtype = made.dtype, spec = made}}})
	for _, user in ipairs(list) do e:redirect(user, name) end
end

---------------------------------------------------------------- results

-- Changes the signedness of a value's codes where they are computed.
local function set_codes(e, ref, dtype)
	local node = e.nodes[core.split(ref)]
	local form = ops.form(node.op, node)
	local key = node.attrs.out and 'out' or (node.op == 'quantize' or node.op == 'requantize') and 'spec'
	if key then
		return e:set_attr(node, key, as(node.attrs[key], dtype) or refused('output', node.name, dtype, node.attrs[key]))
	end
	if form and form.gives == 'same' and type(node.inputs[1]) == 'string' then return set_codes(e, node.inputs[1], dtype) end
	local result = e:result_of(ref)
	if not result.spec or result.spec.dtype ~= dtype then refused('output', node.name, dtype, result.spec or result.dtype) end
end

-- Results of these lie between 0 and 1.
local SHARES = {softmax = true, sigmoid = true}

local function range_of(g, node, ref, dtype)
	if SHARES[node.op] then return quant.spec {dtype = dtype, scheme = 'asymmetric', scale = 1 / 256, zero_point = dtype == 'int8' and -128 or 0} end
	local spec = decide.spec_for({g = g, layers = decide.layers_of(g), found = {}}, node, ref, dtype == 'int8' and quant.spec {dtype = 'int8',
		scheme = 'asymmetric'} or 'uint8')
	if spec then return spec end
	fail("export: output: wanted a result whose range is known, got '%s', which returns floats: call m:calibrate(data) or g:calibrate(data) before \z
		g:quantize, or give a rule with output={dtype=, scale=}", node.name)
end

-- Whether the node's operands are codes and it has a version that returns codes.
local function is_integer(e, node)
	local form = ops.form(node.op, node)
	local first = form and form.gives == 'codes' and type(node.inputs[1]) == 'string' and e:result_of(node.inputs[1]).spec
	return first and codes.fixed(first)
end

local function set_output(e, leaf, dtype)
	local name = core.split(leaf.ref)
	local node, result = e.nodes[name], e:result_of(leaf.ref)
	if result.spec then return set_codes(e, leaf.ref, dtype) end
	if result.dtype ~= 'float32' then return end
	if node.op == 'dequantize' then
		leaf.ref, e.users = node.inputs[1], nil
		return set_codes(e, leaf.ref, dtype)
	end
	local spec = range_of(e, node, leaf.ref, dtype)
	if is_integer(e, node) and #e:users_of(leaf.ref) == 1 then return e:set_attr(node, 'out', spec) end
	local made = e:add({name = e:fresh(name .. '.quantize'), op = 'quantize', inputs = {leaf.ref}, attrs = {spec = spec}, module = node.module,
		results = {{shape = result.shape, dtype = 'float32'}}})
	leaf.ref = made.name
end

---------------------------------------------------------------- both

-- The rounding rule of the graph's integer results, or nil.
local function rule_of(g)
	for _, name in ipairs(g.order) do
		local out = g.nodes[name].attrs.out
		if out and out.rounding then return out.rounding end
	end
end

-- The graph with other types of inputs and outputs ('float': unchanged).
function interface.apply(g, input, output)
	local rule = rule_of(g)
	local e = core.edit(g)
	if input ~= 'float' then
		for _, name in ipairs(g.inputs) do set_input(e, name, input) end
	end
	if output ~= 'float' then
		core.each_output(e, function(leaf) set_output(e, leaf, output) end)
	end
	local made = e:finish()
	return rule and rounding.apply(made, rule) or made
end

return interface
