-- SPDX-License-Identifier: MIT
-- labels: quick
-- Ops of TFLite of one operand: floats by formulas, codes of LiteRT 2.3's reference kernels.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)

local x = tensor.randn(2, 3, 5) * 3
local function each(f)
	local list = x:view(-1):totable()
	for i, v in ipairs(list) do list[i] = f(v) end
	return tensor(list):view(2, 3, 5)
end

it('applies functions', function()
	for op, f in pairs {RELU = function(v) return math.max(v, 0) end, RELU6 = function(v) return math.min(math.max(v, 0), 6) end,
		RELU_N1_TO_1 = function(v) return math.min(math.max(v, -1), 1) end, LOGISTIC = function(v) return 1 / (1 + math.exp(-v)) end,
		EXP = math.exp, NEG = function(v) return -v end, ABS = math.abs, SQUARE = function(v) return v * v end, FLOOR = math.floor, CEIL = math.ceil,
		SIN = math.sin, COS = math.cos, ELU = function(v) return v > 0 and v or math.exp(v) - 1 end,
		HARD_SWISH = function(v) return v * math.min(math.max(v + 3, 0), 6) / 6 end} do
		assert(equal(run(op, {x}), each(f), 1e-4), op)
	end
	local positive = x:abs() + 0.1
	assert(equal(run('LOG', {positive}), positive:log()) and equal(run('SQRT', {positive}), positive:sqrt()) and equal(run('RSQRT', {positive}), positive:rsqrt()))
	assert(equal(run('TANH', {x}), x:tanh()) and equal(run('ROUND', {tensor {0.5, 1.5, -2.6}}), {0, 2, -3}) and equal(run('SIGN', {tensor {-3, 0, 2}}), {-1, 0, 1}))
	assert(equal(run('LEAKY_RELU', {x}, {alpha = 0.25}), each(function(v) return v > 0 and v or v / 4 end)))
	assert(equal(run('GELU', {x}), x:gelu()) and equal(run('GELU', {x}, {approximate = true}), x:gelu {approximate = 'tanh'}))
	assert(equal(run('PRELU', {x, tensor {0, 1, 2, 3, 4}}, nil, {fixed = {2}}), tensor.where(x:gt(0), x, x * tensor {0, 1, 2, 3, 4})))
	assert(equal(run('LOGICAL_NOT', {tensor {1, -1}:gt(0)}, nil, {out = {type = 'BOOL'}}):to 'float32', {0, 1}))
end)

it('works along the channels', function()
	assert(equal(run('SOFTMAX', {x}, {beta = 0.5}), (x * 0.5):softmax()) and equal(run('LOG_SOFTMAX', {x}), x:logsoftmax()))
	assert(equal(run('L2_NORMALIZATION', {x}, {}), x / x:square():sum {axis = 3, keep = true}:sqrt()))
	assert(equal(run('L2_NORMALIZATION', {x * 0}, {}), x * 0))
	local y = run('LOCAL_RESPONSE_NORMALIZATION', {tensor {1, 2, 3, 4}:view(1, 1, 1, 4)}, {radius = 1, bias = 1.0, alpha = 0.5, beta = 2.0})
	assert(equal(y:view(4), {1 / 3.5 ^ 2, 2 / 8 ^ 2, 3 / 15.5 ^ 2, 4 / 13.5 ^ 2}))
end)

it('has the codes of LiteRT', function()
	local function spec(scale, zero) return {dtype = 'int8', scheme = 'asymmetric', scale = scale, zero_point = zero} end
	local q = tensor {-128, -100, -3, 0, 5, 64, 90, 127}:sub(3):mul(0.05):quantize(spec(0.05, 3))
	assert(equal(run('LOGISTIC', {q}, nil, {out = {type = 'INT8', scale = 1 / 256, zero = -128}}), {-128, -127, -19, -10, 6, 116, 125, 127}, 0))
	assert(equal(run('TANH', {q}, nil, {out = {type = 'INT8', scale = 1 / 128, zero = 0}}), {-128, -128, -37, -19, 13, 127, 127, 127}, 0))
	assert(equal(run('RELU', {q}, nil, {out = {type = 'INT8', scale = 0.04, zero = -10}}), {-10, -10, -10, -10, -7, 66, 99, 127}, 0))
	assert(equal(run('RELU6', {q}, nil, {out = {type = 'INT8', scale = 0.06, zero = -10}}), {-10, -10, -10, -10, -8, 41, 63, 90}, 0))
	assert(equal(run('RELU', {q}, nil, {out = {type = 'INT8', scale = 0.05, zero = 0}}), {0, 0, 0, 0, 2, 61, 87, 124}, 0)) -- bounds at the zero point 0
	assert(run('LEAKY_RELU', {q}, {alpha = 0.25}, {out = {type = 'INT8', scale = 0.05, zero = 3}}):codes():totable()[2] == -23)
	assert(run('PRELU', {q, tensor {0.5}}, nil, {fixed = {2}, out = {type = 'INT8', scale = 0.05, zero = 3}}):quantized())
end)

it('has the fixed point of LiteRT for functions of 16 bits', function()
	local codes = {}
	for i = 1, 16 do codes[i] = (i - 9) * 4096 end
	local x = (tensor(codes):to 'float32' * tensor.full {1, value = 0.000311}):quantize {dtype = 'int16', scale = 0.000311}
	assert(equal(run('LOGISTIC', {x}, nil, {out = {type = 'INT16', scale = 1 / 32768, zero = 0}}),
		{1, 4, 16, 56, 200, 702, 2378, 7163, 16384, 25605, 30390, 32066, 32568, 32712, 32752, 32764}, 0))
	assert(equal(run('TANH', {x}, nil, {out = {type = 'INT16', scale = 1 / 32768, zero = 0}}),
		{-32767, -32767, -32767, -32767, -32766, -32736, -32369, -28011, 0, 28011, 32369, 32736, 32766, 32767, 32767, 32767}, 0))
	local other = run('LOGISTIC', {x}, nil, {out = {type = 'INT16', scale = 1 / 16384, zero = 0}}) -- LiteRT has only the scale above
	assert(equal(other:dequantize(), x:dequantize():sigmoid(), 1 / 32768))
end)

it('computes softmax of 16 bits and of other scales', function()
	local x = tensor {{-1, 0.5, 2, 0.25}}:quantize {dtype = 'int16', scale = 0.0003}
	local y = run('SOFTMAX', {x}, {beta = 1}, {out = {type = 'INT16', scale = 1 / 32768, zero = 0}})
	assert(y:dtype() == 'int16' and equal(y:dequantize(), x:dequantize():softmax(), 1 / 32768))
	local q = tensor {{-1, 0.5, 2, 0.25}}:quantize {dtype = 'int8', scale = 0.02}
	y = run('SOFTMAX', {q}, {beta = 1}, {out = {type = 'INT8', scale = 1 / 128, zero = 0}})
	assert(equal(y:dequantize(), q:dequantize():softmax(), 1 / 128))
end)
