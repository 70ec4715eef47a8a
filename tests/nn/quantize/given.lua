-- SPDX-License-Identifier: MIT
-- Codes of methods for quant.search and quant.sensitivity: all choices of all layers of one pass, each as m:quantize gives it.
local internal = debug.getregistry()['quoll.internal']
local given, layers = internal.import 'nn/quantize/given', internal.import 'nn/quantize/layers'
tensor.seed(9)
local m = nn.Sequential {nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 6, 3, {groups = 2}), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 16, 5)}
local x = tensor.randn(12, 3, 8, 8)
local names = layers.names('test', m)
local function codes(q, name) return q[name].weight:dequantize():view(-1) end

it('are those of m:quantize with float inputs', function()
	local passes = 0
	local data = function()
		passes = passes + 1
		local done = false
		return function()
			if done then return nil end
			done = true
			return x
		end
	end
	local choices = {false, 'int8/1', given.choice('test', {'int4/1', method = 'gptq'}), given.of('test', 'int3/1', {'mse', {'gptq', act = true}})}
	local found = given.learn(m, names, choices, {data = data})
	assert(passes == 1)
	for _, i in ipairs {3, 4} do
		local q = m:quantize {mode = 'weight_only', weight = choices[i].weight, method = choices[i].method, data = {{x}}, sequential = false, log = false}
		local picked = {}
		for _, name in ipairs(names) do picked[name] = given.pick(found, name, choices[i]) end
		local p = layers.quantized(m, names, picked, {mode = 'weight_only'})
		for _, name in ipairs(names) do assert(codes(q, name):eq(codes(p, name)):all():item() and p[name].weight:nbytes() == q[name].weight:nbytes(), name) end
	end
	print(choices[3].text, choices[4].text)  --> int4/1 gptq	int3/1 mse, gptq act
	print(given.pick(found, names[1], false), given.pick(found, names[1], 'int8/1'))  --> false	int8/1
end)
it('in mode static, too', function()
	m:calibrate({{x}}, {log = false})
	local choice = given.of('test', 'int4/1', 'gptq')
	local found = given.learn(layers.quantized(m, names, {}, {mode = 'static'}), names, {choice}, {data = {{x}}})
	local p = layers.quantized(m, names, {conv1 = given.pick(found, 'conv1', choice), conv2 = 'int8/1'}, {mode = 'static'})
	local q = m:quantize {mode = 'weight_only', weight = 'int4/1', method = 'gptq', data = {{x}}, sequential = false, log = false}
	assert(codes(q, 'conv1'):eq(codes(p, 'conv1')):all():item() and p(x):isfinite():all():item())
end)
