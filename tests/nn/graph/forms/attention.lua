-- SPDX-License-Identifier: MIT
-- Quantized form of attention: integer where the ranges are known, float elsewhere; its multiplications.
tensor.seed(25)
local m = nn.Attention(8, 2, {causal=true})
local x = tensor.randn(2, 5, 8)
local g = graph.trace(m, x)

it('stays float in mode dynamic, and is an integer op after m:calibrate, as in m:quantize', function()
	local q, r = g:quantize{mode='dynamic'}
	print(r:where{op='attention'}.mode, r:where{op='attention'}.why)  --> float it has an integer version in mode 'static' only
	print(q:run(x, {check=true}):error(m:quantize{mode='dynamic'}(x)).max)  --> 0.0
	m:calibrate({{x, x}}, {log=false})
	q, r = graph.trace(m, x):quantize{mode='static'}
	print(r:where{op='attention'}.mode, q:run(x):error(m:quantize{mode='static'}(x)).max)  --> static 0.0
end)

it('runs in integers between integer layers, with heads shared or not', function()
	for _, o in ipairs {{causal=true}, {kvheads=1}, {kvheads=2, causal=true}} do
		local a, v = nn.Attention(16, 4, o), tensor.randn(6, 7, 16)
		local h = graph.trace(a, v):calibrate({{v, v}}, {log=false})
		local q, r = h:quantize{mode='static'}
		assert(r:where{op='attention'}.mode == 'static' and q:node('attention1').attrs.out.dtype == 'uint8')
		quant.log 'reset'
		local y = q:run(v, {check=true})
		local kernel = v:device() == 'cpu' and '^attention_int$' or '^attention_' -- that of a device has a name of its own
		assert(#quant.log():where{path='fallback'} == 0 and quant.log():where{op='attention'}.kernel:find(kernel))
		assert(y:error(a(v)).sqnr > 25, y:error(a(v)).sqnr)
		assert(q:run(v, {arena=true}):error(y).max == 0)
	end
end)

it('counts both products', function()
	print(g:node('attention1').macs)  --> 400
end)
it('counts heads that lie side by side', function()
	local a = tensor.ones(1, 5, 8)
	local g = graph.trace(nn.module(function(_, x) return nn.attention(x, x, x, {heads=2}) end, {}), a)
	print(g:node('attention1').macs)  --> 400
end)
