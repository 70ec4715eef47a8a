-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Quantized form of prelu in graphs: integer between integer layers, with one slope or one for each channel; the bits of m:quantize.
tensor.seed(31)

it('runs in integers between integer layers', function()
	local images = tensor.randn(12, 3, 8, 8)
	for _, channels in ipairs {1, 6} do
		for _, input in ipairs {'uint8', 'int8', 'int16'} do
			local m = nn.Sequential {nn.Conv2d(3, 6, 3), nn.PReLU(channels), nn.Conv2d(6, 2, 3)}
			tensor.nograd(function() m[2].weight:copy_(tensor.rand(channels) - 0.3) end)
			local g = graph.trace(m, images):calibrate({{images, images}}, {input=input, log=false})
			local q, r = g:quantize {mode='static'}
			assert(r:where {op='prelu'}.mode == 'static')
			quant.log 'reset'
			local y = q:run(images, {check=true})
			assert(#quant.log():where {path='fallback'} == 0 and quant.log():where {op='prelu'}.path == 'integer')
			assert(y:error(m(images)).sqnr > 25, y:error(m(images)).sqnr)
			assert(q:run(images, {arena=true}):error(y).max == 0)
			if input == 'uint8' then
				m:calibrate({{images, images}}, {log=false})
				assert(m:quantize {mode='static'}(images):error(y).max == 0)
			end
		end
	end
end)

it('a number is a table, and floats stay floats', function()
	local x = tensor.randn(32, 8)
	local m = nn.module(function(self, a) return self.b(self.a(a):prelu(0.3)) end, {a=nn.Linear(8, 8), b=nn.Linear(8, 4)})
	local q, r = graph.trace(m, x):calibrate({{x, x}}, {log=false}):quantize {mode='static'}
	assert(r:where {op='prelu'}.mode == 'static')
	quant.log 'reset'
	local y = q:run(x)
	assert(quant.log():where {op='prelu'}.kernel == 'table' and y:error(m(x)).sqnr > 25)
	local last = nn.Sequential {nn.Linear(8, 8), nn.PReLU()}
	q, r = graph.trace(last, x):calibrate({{x, x}}, {log=false}):quantize {mode='static'}
	assert(r:where {op='prelu'}.why:find 'needed as floats' and not q:node 'prelu1'.attrs.out)
end)
