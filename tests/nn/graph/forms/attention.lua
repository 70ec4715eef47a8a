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

it('keeps integers beside masks and lengths', function()
	local v, mask, lengths = tensor.randn(6, 7, 16), tensor.randn(7, 7):gt(-0.7), tensor {dtype='int64', 7, 3, 5, 1, 6, 2}
	local a = nn.Attention(16, 4)
	local cases = {nn.module(function(self, t) return self.a(t, {mask=mask}) end, {a=a}), nn.module(function(self, t) return self.a(t, {mask=tensor.randn(7) * 0 + 0.5}) end, {a=a}),
		nn.Sequential {nn.Attention(16, 4, {causal=true, window=3})}}
	for _, own in ipairs(cases) do
		local h = graph.trace(own, v):calibrate({{v, v}}, {log=false})
		local q, r = h:quantize {mode='static'}
		assert(r:where {op='attention'}.mode == 'static')
		quant.log 'reset'
		local y = q:run(v, {check=true})
		assert(#quant.log():where {path='fallback'} == 0 and quant.log():where {op='attention'}.path == (v:device() == 'cpu' and 'integer' or 'host')) -- devices have no kernel for it
		assert(y:error(own(v)).sqnr > 25)
	end
	local both = nn.module(function(self, t, n) return self.a(t, {lengths=n}) end, {a=a})
	local h = graph.trace(both, {v, lengths}):calibrate({{{v, lengths}, v}}, {log=false})
	local q, r = h:quantize {mode='static'}
	assert(r:where {op='attention'}.mode == 'static' and q:run {v, lengths}:error(both(v, lengths)).sqnr > 25)
end)

it('counts both products', function()
	print(g:node('attention1').macs)  --> 400
end)
it('counts heads that lie side by side', function()
	local a = tensor.ones(1, 5, 8)
	local g = graph.trace(nn.module(function(_, x) return nn.attention(x, x, x, {heads=2}) end, {}), a)
	print(g:node('attention1').macs)  --> 400
end)
