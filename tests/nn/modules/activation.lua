-- SPDX-License-Identifier: MIT
-- Activations as modules give what the methods give.
local x = tensor{{-2, -0.5, 0, 1, 7}}
for name, method in pairs {ReLU='relu', ReLU6='relu6', Tanh='tanh', Sigmoid='sigmoid', GELU='gelu', SiLU='silu',
	Hardswish='hardswish', LeakyReLU='leakyrelu', Softmax='softmax', LogSoftmax='logsoftmax', Hardsigmoid='hardsigmoid', Hardtanh='hardtanh', ELU='elu',
	SELU='selu', CELU='celu', Softplus='softplus', Mish='mish', Softsign='softsign', LogSigmoid='logsigmoid', Hardshrink='shrink', Threshold='threshold'} do
	it(name, function()
		assert(nn[name]()(x):error(x[method](x)).max == 0)
		assert(tostring(nn[name]()):find(name .. '()', 1, true))
	end)
end
print(nn.ReLU()(x:quantize 'int8'):dtype())  --> int8
print(nn.Softshrink()(x)[1])  --> float32(5) -1.5000 0.0000 0.0000 0.5000 6.5000
print(nn.Softshrink(1), nn.Hardtanh(-2, 3), nn.Threshold{threshold = 0.5, value = -1})  --> Softshrink(lambda=1)...Hardtanh(low=-2, high=3)...Threshold(threshold=0.5, value=-1)...
assert(nn.Softshrink{lambda = 0.25}(x):eq(x:shrink(0.25, 0.25)):all():item())
print(pcall(nn.Hardtanh, 2, 1))  --> false ...hardtanh: wanted low of at most high, got 2 and 1
print(pcall(nn.Softplus, 0))  --> false ...softplus: beta: wanted a finite number other than 0, got 0
print(pcall(nn.ELU, 'x'))  --> false ...ELU: alpha: wanted number, got 'x'
print(pcall(nn.LogSoftmax, 0))  --> false ...LogSoftmax: axis: wanted an integer other than 0, got 0

it('are quantized as the graph quantizes them: tables of codes', function()
	tensor.seed(5)
	local data = tensor.randn(64, 6)
	for _, act in ipairs {nn.ELU(0.5), nn.Mish(), nn.Hardsigmoid(), nn.Softshrink(0.25), nn.SiLU(1.702), nn.Softplus(2, 3), nn.Hardtanh(-0.5, 1)} do
		local m = nn.Sequential {nn.Linear(6, 8), act, nn.Linear(8, 4)}:eval()
		m:calibrate({{data, data}}, {log=false})
		local q = m:quantize {mode='static'}
		local g, report = graph.trace(m, data):quantize {mode='static'}
		assert(q(data):error(g:run(data)).max == 0 and q(data):error(m(data)).sqnr > 20, tostring(act))
		for i = 1, #report do assert(report[i].mode ~= 'float', tostring(act) .. ': ' .. report[i].node .. ' stays float') end
		local file = os.tmpname() .. '.safetensors'
		q:save(file)
		assert(m:quantize {mode='static'}:load(file)(data):error(q(data)).max == 0)
		os.remove(file)
	end
end)
