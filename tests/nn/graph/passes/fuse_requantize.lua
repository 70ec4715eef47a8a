-- SPDX-License-Identifier: MIT
-- Pass fuse_requantize: dequantize followed by quantize, bit for bit.
tensor.seed(8)
local x = tensor.randn(30, 50) * 3

local function chain(a, b)
	a, b = quant.spec(a), quant.spec(b)
	return nn.module(function(_, v) return v:quantize(a):dequantize():quantize(b) end)
end

local function ops(g)
	local list = {}
	for _, name in ipairs(g.order) do list[#list + 1] = g.nodes[name].op end
	return table.concat(list, ' ')
end

it('equal parameters: both go, and codes stay what they were, for all dtypes', function()
	for _, spec in ipairs {{dtype='int8', scale=0.1}, {dtype='uint8', scale=0.07, zero_point=100}, {dtype='int16', scale=1e-4},
		{dtype='uint16', scale=3e-4, zero_point=32000}, {bits=5, scale=0.3}} do
		local m = chain(spec, spec)
		local g = graph.trace(m, x)
		local h, r = g:pass 'fuse_requantize'
		assert(ops(h) == 'input quantize' and #r == 1, ops(h))
		assert(h:run(x):codes():eq(m(x):codes()):all():item())
	end
end)

it('other parameters: one requantize, int8 to int16 and back', function()
	for _, pair in ipairs {{{dtype='int8', scale=0.1}, {dtype='int16', scale=1e-4}}, {{dtype='int16', scale=1e-4}, {dtype='int8', scale=0.05}},
		{{dtype='int8', scale=0.1}, {dtype='int8', scale=0.2}}} do
		local m = chain(pair[1], pair[2])
		local h = graph.trace(m, x):pass 'fuse'
		assert(ops(h) == 'input quantize requantize', ops(h))
		assert(h:run(x, {check=true}):codes():eq(m(x):codes()):all():item())
		assert(#select(2, h:pass 'fuse') == 0)
	end
end)

it('a chain float to int8 to float to int16 with another reader of the floats keeps them', function()
	local a, b = quant.spec{dtype='int8', scale=0.1}, quant.spec{dtype='int16', scale=1e-4}
	local m = nn.module(function(_, v)
		local f = v:quantize(a):dequantize()
		return f:quantize(b):dequantize() + f
	end)
	local h = graph.trace(m, x):pass 'fuse_requantize'
	print(ops(h))  --> input quantize dequantize requantize dequantize add
	print(h:run(x):error(m(x)).max)  --> 0.0
end)
