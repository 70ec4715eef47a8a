-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Quantized form of convtranspose2d in graphs: bits of m:quantize, the axis of scales, what has no integer version, multiplications.
tensor.seed(21)
local m = nn.Sequential {nn.ConvTranspose2d(4, 8, 3, {pad=1, stride=2, groups=2}), nn.ReLU(), nn.ConvTranspose2d(8, 6, {1, 3})}
local x = tensor.randn(3, 4, 5, 5)
m:calibrate({{x, x}}, {log=false})
local g = graph.trace(m, x)

it('8 and 16 bits run in integers with the bits of m:quantize', function()
	for _, o in ipairs {{'int8/1', 'uint8', 'int8'}, {'int8', 'int8', 'int8'}, {'int4/1', 'int8', 'int8'}, {'int16/1', 'int16', 'int16'}} do
		local q = g:quantize {mode='static', weight=o[1], input=o[2]}
		quant.log 'reset'
		local y = q:run(x, {check=true})
		assert(quant.log():where {op='convtranspose2d'}[1].path == o[3] and #quant.log():where {path='fallback'} == 0)
		assert(y:error(m:quantize {mode='static', weight=o[1], input=o[2]}(x)).max == 0)
		assert(q:node('conv1').dtype == o[2])
	end
end)

it('one scale for each output is along the second axis', function()
	local q = m:quantize {mode='dynamic', weight='int8/1'}
	assert(q.conv1.weight:qparams().axis == 2 and q.conv1.weight:qparams().scale:nelem() == 4)
	local back = m:quantize {mode='weight_only', weight='int4:8'}
	assert(back(x):error(m(x):detach()).sqnr > 15)
end)

it('blocks and binary weights are for weight_only', function()
	print(pcall(g.quantize, g, {mode='static', weight='int8:8', input='int8'}))  --> false ...convtranspose2d has integer versions for affine codes of up to 16 bits with one scale for each output (axis 2) only...
	local q = g:quantize {mode='weight_only', weight='binary'}
	assert(q:run(x):error(m:quantize {mode='weight_only', weight='binary'}(x)).max < 1e-5)
end)

it('multiplications: each number of x times its kernels', function()
	local row = g:match():where {op='convtranspose2d'}[1]
	assert(row and g:node('conv1').macs == 4 * 25 * 4 * 9, tostring(g:node('conv1').macs))
end)
