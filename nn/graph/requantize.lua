-- SPDX-License-Identifier: MIT
-- g:requantize: the float graph of a quantized one, quantized by other rules. Weights are decoded, activations are floats again, and the
-- ranges that codes had are what calibration would have observed, so mode='static' needs no data.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local codes = internal.import 'nn/graph/codes'
local core = internal.import 'nn/graph/core'
local ops = internal.import 'nn/graph/ops'
local quantize = internal.import 'nn/graph/quantize'
local fail = base.fail

-- The ends of what codes of the spec decode to; nil: no scale for the whole tensor that is known.
local function range_of(spec)
	if not spec or not spec.affine or not codes.fixed(spec) then return nil end
	local scale, zero = codes.params(spec)
	return (spec.min - zero) * scale, (spec.max - zero) * scale, scale
end

local function observe(ranges, ref, spec)
	local low, high = range_of(spec)
	if low and not ranges[ref] then ranges[ref] = quant.observer 'uint8':label(ref):update(tensor {low, high}) end
end

local POSITIVE = {relu = true, relu6 = true, sigmoid = true, hardsigmoid = true, softmax = true, exp = true, abs = true, square = true, sqrt = true}
local KEEP = {add = true, mul = true, cat = true, stack = true, avgpool2d = true, mean = true} -- not negative if no operand is

-- Whether the results cannot be negative.
local function is_positive(node, ranges)
	local form = ops.form(node.op)
	if POSITIVE[node.op] or node.attrs.act == 'relu' or node.attrs.act == 'relu6' then return true end
	if not KEEP[node.op] and not (form and form.gives == 'same') then return false end
	for _, ref in ipairs(node.inputs) do
		local observer = type(ref) == 'string' and ranges[ref]
		if type(ref) == 'string' and not (observer and observer:range() >= 0) then return false end
	end
	return true
end

-- Codes that begin at 0 have cut what is negative off: where no relu is left, passes or another quantizer have removed it.
local function cut(e, node, spec, ranges)
	local low, high, scale = range_of(spec)
	if low ~= 0 or is_positive(node, ranges) then return end
	local op = math.abs(high - 6) < scale and 'relu6' or 'relu'
	local users = e:users_of(node.name)
	if #users == 1 and users[1].name and e.nodes[users[1].name].op == 'relu' then return end
	local name = e:fresh(node.name .. '.' .. op)
	e:add({name = name, op = op, module = node.module, inputs = {node.name}, attrs = {}, results = {node.results[1]}})
	e:redirect(node.name, name, name)
	observe(ranges, name, spec)
end

local function plain(e, node)
	local attrs = {}
	for key, value in next, node.attrs do attrs[key] = key ~= 'out' and value or nil end
	local made = e:change(node, {attrs = attrs, traced = false})
	made.mode, made.spec, made.floats, made.traced = nil, nil, nil, nil
	return made
end

local function convert(e, node, ranges)
	local spec = node.results[1].spec
	if node.op == 'codes' then fail("requantize: node '%s': wanted ops of values, got integers of codes", node.name) end
	if node.op == 'const' then
		if node.value:quantized() then
			local value = node.value:dequantize()
			e:change(node, {value = value, results = {{shape = node.results[1].shape, dtype = value:dtype()}}})
		end
	elseif node.op == 'input' then
		if not spec then return end
		observe(ranges, node.name, spec)
		e:change(node, {results = {{shape = node.results[1].shape, dtype = 'float32'}}})
	elseif codes.CONVERSIONS[node.op] then
		local source = node.inputs[1]
		local producer = e.nodes[core.split(source)]
		observe(ranges, source, node.attrs.spec)
		if node.op == 'quantize' and producer.op ~= 'input' and producer.op ~= 'const' then cut(e, producer, node.attrs.spec, ranges) end
		e:redirect(node.name, e.nodes[node.name].inputs[1])
	else
		observe(ranges, node.name, spec)
		local made = plain(e, node)
		if node.attrs.out then cut(e, made, node.attrs.out, ranges) end
	end
end

-- The graph with floats in place of codes, and the ranges of its values.
local function floats(g)
	local e, ranges = core.edit(g), {}
	for _, name in ipairs(table.move(e.order, 1, #e.order, 1, {})) do convert(e, e.nodes[name], ranges) end
	e.observers, e.ordered = ranges, false
	e:sweep()
	return e:finish()
end

local entry = core.method('requantize', "g:requantize{mode='static', weight='int4/1'}",
	[[Returns a graph that is quantized by other rules, and the report of g:quantize: a quantized graph, as files with codes give it, becomes
one of floats with its decoded weights, then g:quantize makes another. Options are those of g:quantize. mode='static' takes the ranges that
the codes had; g:calibrate of the result of mode='none' replaces them. mode='none' returns the floats. Inputs that were codes become floats.]],
	[[m = nn.Sequential{nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)}
x = tensor.randn(32, 8)
m:calibrate({{x, x}}, {log=false})
q = graph.trace(m, x):quantize{mode='static'}
print(q:requantize{mode='static', weight='int4/1'}:node('linear1').spec.weight)  --> int4/1]], quantize.options)

function core.methods.requantize(g, o)
	core.expect(g, 'requantize')
	base.options(entry, o)
	local _ <close> = internal.nograd()
	local made = floats(g)
	if o and o.mode == 'none' then return made end
	return made:quantize(o)
end

return true
