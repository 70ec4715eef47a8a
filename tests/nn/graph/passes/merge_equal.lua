-- SPDX-License-Identifier: MIT
-- Pass merge_equal: one quantize for equal ones of one value.
tensor.seed(7)
local x = tensor.randn(3, 5)
local s, t = quant.spec{dtype='int8', scale=0.1}, quant.spec{dtype='int8', scale=0.2}

it('merges equal conversions, also found ranges, and keeps those that differ', function()
	local m = nn.module(function(_, v)
		return v:quantize(s):dequantize() + v:quantize(s):dequantize() * v:quantize(t):dequantize() + v:quantize('int8'):dequantize() +
			v:quantize('int8'):dequantize() + v:quantize('int4'):dequantize()
	end)
	local g = graph.trace(m, x)
	local h, r = g:pass 'merge_equal'
	local count = 0
	for _, name in ipairs(h.order) do count = count + (h.nodes[name].op == 'quantize' and 1 or 0) end
	print(count, r[1].node, r[1].what)  --> 4 quantize2 equal to quantize1
	print(h:run(x):error(m(x)).max)  --> 0.0
	print(#select(2, h:pass 'merge_equal'))  --> 0
end)
