-- SPDX-License-Identifier: MIT
-- labels: quick
-- Elementwise ops of TFLite of two operands.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

local a, b = tensor.randn(2, 3, 4), tensor.randn(3, 1)

it('broadcasts', function()
	for op, name in pairs {ADD = 'add', SUB = 'sub', MUL = 'mul', MAXIMUM = 'maximum', MINIMUM = 'minimum', FLOOR_DIV = 'idiv', FLOOR_MOD = 'mod'} do
		assert(equal(run(op, {a, b}), a[name](a, b)), op)
	end
	assert(equal(run('DIV', {a, b:abs() + 1}, {act = 1}), (a / (b:abs() + 1)):relu()) and equal(run('SQUARED_DIFFERENCE', {a, b}), (a - b):square()))
	assert(equal(run('POW', {a:abs(), b}), a:abs():pow(b)) and equal(run('ADD_N', {a, a, a}), a * 3))
	for op, name in pairs {LESS = 'lt', LESS_EQUAL = 'le', GREATER = 'gt', GREATER_EQUAL = 'ge', EQUAL = 'eq', NOT_EQUAL = 'ne'} do
		local y = run(op, {a:round(), b:round()}, nil, {out = {type = 'BOOL'}})
		assert(y:dtype() == 'bool' and equal(y:to 'float32', a:round()[name](a:round(), b:round()):to 'float32'), op)
	end
	local p, q = a:gt(0), b:gt(0)
	assert(equal(run('LOGICAL_AND', {p, q}, nil, {out = {type = 'BOOL'}}):to 'float32', (p & q):to 'float32'))
	assert(equal(run('LOGICAL_OR', {p, q}, nil, {out = {type = 'BOOL'}}):to 'float32', (p | q):to 'float32'))
end)

it('has the activations', function()
	for act, f in pairs {function(y) return y:relu() end, function(y) return y:clamp(-1, 1) end, function(y) return y:clamp(0, 6) end, function(y) return y:tanh() end} do
		assert(equal(run('ADD', {a * 4, b}, {act = act}), f(a * 4 + b)), act)
	end
	local ok, message = pcall(run, 'ADD', {a, b}, {act = 5})
	assert(not ok and message:find "node 'y1' %(ADD%): activation: wanted relu, relu6, relu_n1_to_1 or tanh, got number 5", message)
end)

it('divides integers towards 0', function()
	local out = {out = {type = 'INT32'}}
	assert(equal(run('DIV', {ints(7, -7, 7), ints(2, 2, -2)}, {}, out), {3, -3, -3}) and equal(run('FLOOR_DIV', {ints(7, -7), ints(2, 2)}, nil, out), {3, -4}))
end)

-- The left operand in units of 2^-20 of twice the larger scale, as TFLite does it.
it('adds and multiplies codes as TFLite', function()
	local oracle = dofile 'tests/tools/requantize.lua'
	local function spec(scale, zero) return {dtype = 'int8', scheme = 'asymmetric', scale = scale, zero_point = zero} end
	local x, y = tensor.randn(40):quantize(spec(0.02, -3)), tensor.randn(40):quantize(spec(0.035, 9))
	local p, q, sums, products, s = x:codes():totable(), y:codes():totable(), {}, {}, oracle.single
	for i = 1, 40 do
		local l, r = (p[i] + 3) << 20, (q[i] - 9) << 20
		local sum = oracle.times('double', false, l, s(0.02) / (2 * s(0.035))) + oracle.times('double', false, r, 0.5)
		sums[i] = (oracle.code('double', false, sum, 2 * s(0.035) / ((1 << 20) * s(0.04)), 'int8', 4))
		products[i] = (oracle.code('double', false, (p[i] + 3) * (q[i] - 9), s(0.02) * s(0.035) / s(0.01), 'int8', 4))
	end
	assert(equal(run('ADD', {x, y}, {}, {out = {type = 'INT8', scale = 0.04, zero = 4}}), sums, 0))
	assert(equal(run('MUL', {x, y}, {}, {out = {type = 'INT8', scale = 0.01, zero = 4}}), products, 0))
	local clipped = run('ADD', {x, y}, {act = 1}, {out = {type = 'INT8', scale = 0.04, zero = 4}})
	assert(equal(clipped, tensor(sums):maximum(4), 0))
end)
