-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor {-2, -0.5, 0, 1, 3}

it('applies functions of one operand', function()
	local cases = {Relu = {0, 0, 0, 1, 3}, Sigmoid = {0.1192029, 0.3775407, 0.5, 0.7310586, 0.9525741}, Tanh = {-0.9640276, -0.4621172, 0, 0.7615942, 0.9950548},
		Exp = {0.1353353, 0.6065307, 1, 2.7182818, 20.0855369}, Abs = {2, 0.5, 0, 1, 3}, Neg = {2, 0.5, 0, -1, -3}, Floor = {-2, -1, 0, 1, 3}, Ceil = {-2, 0, 0, 1, 3},
		Sign = {-1, -1, 0, 1, 1}, Erf = {-0.9953223, -0.5204999, 0, 0.8427008, 0.9999779}, Softplus = {0.1269280, 0.4740770, 0.6931472, 1.3132617, 3.0485874},
		HardSwish = {-1 / 3, -0.2083333, 0, 2 / 3, 3}, Identity = {-2, -0.5, 0, 1, 3}, Sin = {-0.9092974, -0.4794255, 0, 0.8414710, 0.1411200}}
	for op, want in next, cases do assert(equal(run(op, {x}), want)) end
	assert(equal(run('Round', {tensor {0.5, 1.5, -2.5}}), {0, 2, -2}))
	assert(equal(run('Reciprocal', {tensor {2, -4}}), {0.5, -0.25}) and equal(run('Sqrt', {tensor {4, 9}}), {2, 3}) and equal(run('Log', {tensor {1}}), {0}))
	assert(run('IsNaN', {tensor {1, 0 / 0}}):totable()[2] == true and run('Not', {tensor {true, false}}):totable()[1] == false)
end)

it('takes the parameters of activations', function()
	assert(equal(run('LeakyRelu', {x}), {-0.02, -0.005, 0, 1, 3}) and equal(run('LeakyRelu', {x}, {alpha = 0.5}), {-1, -0.25, 0, 1, 3}))
	assert(equal(run('HardSigmoid', {x}, {alpha = 0.5, beta = 0.25}), {0, 0, 0.25, 0.75, 1}) and equal(run('HardSigmoid', {x}), {0.1, 0.4, 0.5, 0.7, 1}))
	assert(equal(run('Gelu', {x}), {-0.0455003, -0.1542688, 0, 0.8413447, 2.9959503}))
	assert(equal(run('Gelu', {x}, {approximate = 'tanh'}), {-0.0454023, -0.1542860, 0, 0.8411920, 2.9963627}))
	assert(equal(run('Swish', {x}, nil, {opset = 24}), {-0.2384058, -0.1887703, 0, 0.7310586, 2.8577224}))
	assert(equal(run('Swish', {x}, {alpha = 2.0}, {opset = 24}), {-0.0359724, -0.1344707, 0, 0.8807971, 2.9925821}))
	assert(equal(run('Clip', {x}, {min = -1.0, max = 1.0}, {opset = 8}), {-1, -0.5, 0, 1, 1}))
	local low, high = tensor(-1.0):sum(), tensor(1.0):sum()
	assert(equal(run('Clip', {x, low, high}, nil, {fixed = {2, 3}}), {-1, -0.5, 0, 1, 1}) and equal(run('Clip', {x, false, high}, nil, {fixed = {3}}), {-2, -0.5, 0, 1, 1}))
	assert(equal(run('Clip', {x}), {-2, -0.5, 0, 1, 3}) and equal(run('Clip', {x, low, high}), {-1, -0.5, 0, 1, 1}))
end)

it('has the activations of other frameworks', function()
	local function formula(f)
		local list = {}
		for i, v in ipairs {-2, -0.5, 0, 1, 3} do list[i] = f(v) end
		return list
	end
	local function elu(a) return function(v) return v < 0 and a * (math.exp(v) - 1) or v end end
	local cases = {{'Elu', elu(1)}, {'Elu', elu(0.5), {alpha = 0.5}}, {'Celu', function(v) return math.max(0, v) + math.min(0, 2 * (math.exp(v / 2) - 1)) end, {alpha = 2.0}},
		{'Selu', function(v) return 1.0507009873 * elu(1.6732632423)(v) end}, {'Selu', function(v) return 3 * elu(2)(v) end, {alpha = 2.0, gamma = 3.0}},
		{'Softsign', function(v) return v / (1 + math.abs(v)) end}, {'Mish', function(v) return v * (1 - 2 / ((1 + math.exp(v)) ^ 2 + 1)) end},
		{'ThresholdedRelu', function(v) return v > 1 and v or 0 end}, {'ThresholdedRelu', function(v) return v > 0.5 and v or 0 end, {alpha = 0.5}},
		{'Shrink', function(v) return v < -0.7 and v + 0.1 or v > 0.7 and v - 0.1 or 0 end, {lambd = 0.7, bias = 0.1}},
		{'Sinh', function(v) return (math.exp(v) - math.exp(-v)) / 2 end}, {'Cosh', function(v) return (math.exp(v) + math.exp(-v)) / 2 end},
		{'Asinh', function(v) return math.log(v + math.sqrt(v * v + 1)) end}}
	for _, case in ipairs(cases) do assert(equal(run(case[1], {x}, case[3], {opset = 22}), formula(case[2])), case[1]) end
	assert(equal(run('Acosh', {tensor {1, 2}}), {0, math.log(2 + math.sqrt(3))}) and equal(run('Atanh', {tensor {0.5, -0.5}}), {0.5 * math.log(3), -0.5 * math.log(3)}))
	assert(equal(run('SwiGLU', {x, x * 2}, {alpha = 2.0}, {opset = 28}), formula(function(v) return 2 * v * v / (1 + math.exp(-2 * v)) end)))
end)

it('has slopes for channels, and for the last axes', function()
	local y = tensor {{{-1, 2}, {-3, -4}}}
	assert(equal(run('PRelu', {y, tensor {{0.5}, {0.25}}}, nil, {fixed = {2}}), {{{-0.5, 2}, {-0.75, -1}}}))
	assert(equal(run('PRelu', {y, tensor {0.5, 0.25}}, nil, {fixed = {2}}), {{{-0.5, 2}, {-1.5, -1}}}) and equal(run('PRelu', {y, tensor {0.1}}), {{{-0.1, 2}, {-0.3, -0.4}}}))
end)

it('finds infinities of both signs', function()
	local y = tensor {1, 1 / 0, -1 / 0, 0 / 0}
	for _, case in ipairs {{nil, {0, 1, 1, 0}}, {{detect_negative = 0}, {0, 1, 0, 0}}, {{detect_positive = 0}, {0, 0, 1, 0}}, {{detect_positive = 0, detect_negative = 0}, {0, 0, 0, 0}}} do
		assert(equal(run('IsInf', {y}, case[1], {opset = 20}), case[2]))
	end
end)

it('computes softmax along an axis, or along all from it on', function()
	local y = tensor {{{1, 2}, {3, 4}}}
	local function line(...)
		local list, sum, made = {...}, 0, {}
		for _, v in ipairs(list) do sum = sum + math.exp(v) end
		for i, v in ipairs(list) do made[i] = math.exp(v) / sum end
		return made
	end
	local a, b = line(1, 2), line(3, 4)
	assert(equal(run('Softmax', {y}), {{a, b}}))
	local all = line(1, 2, 3, 4)
	assert(equal(run('Softmax', {y}, nil, {opset = 11}), {{{all[1], all[2]}, {all[3], all[4]}}}))
	local c = line(1, 3)
	assert(equal(run('LogSoftmax', {y}, {axis = 1}), {{{math.log(c[1]), math.log(line(2, 4)[1])}, {math.log(c[2]), math.log(line(2, 4)[2])}}}))
end)

it('gives the mask of Dropout, and refuses training', function()
	local y, mask = run('Dropout', {x}, nil, {outputs = 2})
	assert(equal(y, x) and mask:all():item())
	local ok, message = pcall(run, 'Dropout', {x, tensor(0.5):sum(), tensor {true}:any()}, nil, {fixed = {2, 3}})
	assert(not ok and message:find "node 'node' %(Dropout%): training_mode: wanted false, got true", message)
end)
