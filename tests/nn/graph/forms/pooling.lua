-- SPDX-License-Identifier: MIT
-- Quantized form of avgpool2d: integer between integer layers whose ranges g:calibrate has seen, float where none is known.
tensor.seed(27)
local m = nn.Sequential{nn.Conv2d(3, 8, 3, {pad=1}), nn.ReLU(), nn.Residual{nn.Conv2d(8, 8, 3, {pad=1})}, nn.ReLU(), nn.AvgPool2d(),
	nn.Flatten(), nn.Linear(8, 4)}
local x = tensor.randn(8, 3, 6, 6)

it('a network with g:calibrate has one quantize, at its input', function()
	local g = graph.trace(m, x):calibrate({{x, x}}, {log=false})
	local q, r = g:quantize{mode='static'}
	local n = {}
	for _, name in ipairs(q.order) do n[q.nodes[name].op] = (n[q.nodes[name].op] or 0) + 1 end
	print(n.quantize, n.dequantize, q:node('residual1.add1').attrs.out.name, q:node('avgpool1').attrs.out.name, r:where{op='avgpool2d'}.mode)  --> 1 nil uint8 uint8 static
	quant.log 'reset'
	local y = q:run(x, {check=true})
	print(#quant.log():where{path='fallback'}, #quant.log():where{op='avgpool2d', path='fallback'})  --> 0 0
	assert(y:error(m(x)).sqnr > 25)
	assert(q:run(x, {arena=true}):error(y).max == 0)
end)

it('with m:calibrate it is an integer op, as in m:quantize', function()
	m:calibrate({{x, x}}, {log=false})
	local q, r = graph.trace(m, x):quantize{mode='static'}
	print(r:where{op='avgpool2d'}.mode, q:run(x):error(m:quantize{mode='static'}(x)).max)  --> static 0.0
end)

it('mean over axes as well', function()
	local n = nn.module(function(self, v) return self.b(self.a(v):mean {axis={3, 4}}) end, {a=nn.Conv2d(3, 8, 3), b=nn.Linear(8, 4)})
	local g = graph.trace(n, x):calibrate({{x, x}}, {log=false})
	local q, r = g:quantize{mode='static'}
	quant.log 'reset'
	local y = q:run(x, {check=true})
	print(r:where{op='mean'}.mode, #quant.log():where{path='fallback'}, quant.log():where{op='mean'}.kernel)  --> static 0 mean_int
	assert(y:error(n(x)).sqnr > 25)
end)
