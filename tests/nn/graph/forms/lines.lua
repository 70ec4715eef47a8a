-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Quantized forms of softmax, layernorm and rmsnorm in graphs: integer between integer layers, float elsewhere.
tensor.seed(29)
local x = tensor.randn(32, 8)

it('runs in integers between integer layers', function()
	for op, make in pairs {softmax = function() return nn.Softmax() end, layernorm = function() return nn.LayerNorm(8) end,
		rmsnorm = function() return nn.RMSNorm(8) end} do
		for _, input in ipairs {'uint8', 'int8', 'int16'} do
			local m = nn.Sequential{nn.Linear(8, 8), make(), nn.Linear(8, 4)}
			local g = graph.trace(m, x):calibrate({{x, x}}, {input=input, log=false})
			local q, r = g:quantize{mode='static'}
			assert(r:where{op=op}.mode == 'static')
			quant.log 'reset'
			local y = q:run(x, {check=true})
			assert(#quant.log():where{path='fallback'} == 0 and quant.log():where{op=op}.path == 'integer', op)
			assert(y:error(m(x)).sqnr > 25, op .. input)
			assert(q:run(x, {arena=true}):error(y).max == 0)
		end
	end
end)

it('stays float at the end, or behind floats', function()
	local m = nn.Sequential{nn.LayerNorm(8), nn.Linear(8, 4), nn.Softmax()}
	local q, r = graph.trace(m, x):calibrate({{x, x}}, {log=false}):quantize{mode='static'}
	print(r:where{op='layernorm'}.why)  --> its operands are not codes, or their range was not observed
	print(r:where{op='softmax'}.why, q:node('linear1').attrs.out)  --> its result or an operand is needed as floats nil
	q = graph.trace(m, x):calibrate({{x, x}}, {log=false}):quantize{mode='static',
		rules={{'softmax1', output={dtype='int8', scale=1 / 256, zero_point=-128}}}}
	local y = q:run(x, {check=true})
	print(y:dtype(), y:origin().kernel, y:error(m(x)).max < 0.02)  --> int8 softmax_int true
end)
