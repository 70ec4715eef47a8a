-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Quantized form of conv2d in graphs: bits and groups, what has no integer version, multiplications.
tensor.seed(21)
local m = nn.Sequential{nn.Conv2d(4, 8, 3, {pad=1, stride=2, groups=2}), nn.ReLU(), nn.Conv2d(8, 8, {1, 3})}
local x = tensor.randn(3, 4, 9, 9)
m:calibrate({{x, x}}, {log=false})
local g = graph.trace(m, x)

it('8 and 16 bits run in integers with the bits of m:quantize', function()
	for _, o in ipairs {{'int8/1', 'uint8', 'int8'}, {'int4/1', 'int8', 'int8'}, {'int16/1', 'uint8', 'int16'}, {'int16/1', 'int16', 'int16'}} do
		local q = g:quantize{mode='static', weight=o[1], input=o[2]}
		quant.log 'reset'
		local y = q:run(x, {check=true})
		assert(quant.log():where{op='conv2d'}[1].path == o[3] and #quant.log():where{path='fallback'} == 0)
		assert(y:error(m:quantize{mode='static', weight=o[1], input=o[2]}(x)).max == 0)
		assert(q:node('conv1').dtype == o[2])
	end
end)

it('binary weights run in integers beside 8 bits', function()
	local q = g:quantize{mode='static', weight='binary/1', input='uint8'}
	quant.log 'reset'
	local y = q:run(x, {check=true})
	assert(quant.log():where{op='conv2d'}[1].path == 'int8' and #quant.log():where{path='fallback'} == 0)
	assert(y:error(m:quantize{mode='static', weight='binary/1', input='uint8'}(x)).max == 0)
	print(pcall(g.quantize, g, {mode='static', weight='binary/1', input='int16'}))  --> false ...conv1: conv2d has integer versions for affine codes of up to 16 bits (binary: 8) with one scale for each output only; weight_only decodes any
end)

it('blocks are for weight_only', function()
	print(pcall(g.quantize, g, {mode='static', weight='int4:18'}))  --> false ...conv1: conv2d has integer versions for affine codes of up to 16 bits (binary: 8) with one scale for each output only; weight_only decodes any
	local q = g:quantize{mode='weight_only', weight='int4:18'}
	print(q:node('conv1.weight').value:size())  --> 8 18
	print(q:node('conv1').inputs[2], q:run(x):error(m:quantize{mode='weight_only', weight='int4:18'}(x)).max)  --> conv1.weight.view 0.0
	print(#select(2, g:quantize{mode='static', weight='int4:18', rules={{'conv.*', optional=true}}}):where{mode='float'})  --> 2
end)

it('counts multiplications with groups and stride', function()
	print(g:node('conv1').macs, g:node('conv2').macs)  --> 3600 2880
end)

it('binary weights have the scales of m:quantize', function()
	for seed = 1, 6 do
		tensor.seed(seed)
		local m, x = nn.Sequential {nn.Conv2d(8, 6, 3)}:eval(), tensor.randn(3, 8, 6, 6)
		for _, mode in ipairs {'weight_only', 'dynamic'} do
			local o = {mode=mode, weight='binary/1'}
			assert(m:quantize(o)(x):error(graph.trace(m, x):quantize(o):run(x)).max == 0, seed .. mode)
		end
	end
end)
