-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local function ints(...) return tensor {dtype = 'int64', ...} end

it('gives sizes and constants', function()
	local x = tensor.ones(2, 3, 4)
	assert(equal(run('Shape', {x}), {2, 3, 4}) and equal(run('Shape', {x}, {start = -2, ['end'] = 2}), {3}) and run('Size', {x}):item() == 24)
	assert(equal(run('Constant', {}, {value = tensor {1, 2}}), {1, 2}) and run('Constant', {}, {value_int = 5}):item() == 5)
	assert(equal(run('Constant', {}, {value_floats = {0.5, 1.5}}), {0.5, 1.5}) and run('Constant', {}, {value_ints = {1, 2}}):dtype() == 'int64')
	assert(equal(run('ConstantOfShape', {ints(2, 2)}, {value = ints(7)}, {fixed = {1}}), {{7, 7}, {7, 7}}) and equal(run('ConstantOfShape', {ints(1)}, nil, {fixed = {1}}), {0}))
	local y = run('Range', {tensor(1.0):sum(), tensor(2.0):sum(), tensor(0.25):sum()}, nil, {fixed = {1, 2, 3}})
	assert(equal(y, {1, 1.25, 1.5, 1.75}))
	assert(equal(run('Range', {ints(10):sum(), ints(4):sum(), ints(-3):sum()}, nil, {fixed = {1, 2, 3}}), {10, 7}))
	assert(equal(run('EyeLike', {tensor.ones(2, 3)}, {k = 1}), {{0, 1, 0}, {0, 0, 1}}))
end)

it('casts towards 0', function()
	local y = run('Cast', {tensor {-1.7, 1.7, 300}}, {to = onnx.TYPES.int32})
	assert(y:dtype() == 'int32' and equal(y, {-1, 1, 300}))
	assert(run('Cast', {tensor {0.5, 0}}, {to = onnx.TYPES.bool}):totable()[1] == true)
	assert(run('CastLike', {tensor {1, 2}, tensor {1, dtype = 'float64'}}):dtype() == 'float64')
	local ok, message = pcall(run, 'Cast', {tensor {1}}, {to = 8})
	assert(not ok and message:find 'to: wanted a type of numbers, got number 8', message)
end)

it('keeps the low bits of integers beyond 8 and 16 bits', function()
	local x = tensor {-9, -8.7, 7, 8, 15, 300}
	assert(equal(run('Cast', {x}, {to = onnx.TYPES.int8}), {-9, -8, 7, 8, 15, 44}) and equal(run('Cast', {x}, {to = onnx.TYPES.uint8}), {247, 248, 7, 8, 15, 44}))
	local y = run('CastLike', {tensor {70000, -70000, 5, dtype = 'int32'}, tensor {0, dtype = 'int16'}})
	assert(y:dtype() == 'int16' and equal(y, {70000 - 65536, 65536 - 70000, 5}))
	assert(equal(run('Cast', {tensor {-3, 100, dtype = 'int8'}}, {to = onnx.TYPES.int16}), {-3, 100}) and run('Cast', {tensor {256}}, {to = onnx.TYPES.bool}):item() == true)
end)

it('clamps to the range of float8', function()
	local x = tensor {-1e6, 0.4375, 1 / 0, 0 / 0}
	for to, most in next, {[17] = 448, [19] = 57344} do
		local y = run('Cast', {x}, {to = to}):to 'float32':totable()
		assert(y[1] == -most and y[2] == 0.4375 and y[3] == most and y[4] ~= y[4])
		y = run('Cast', {x}, {to = to, saturate = 0}):to 'float32':totable()
		assert((y[3] ~= y[3] or y[3] == 1 / 0) and y[2] == 0.4375)
	end
	local z = tensor {0, 0.124, 0.25, 1.1, -1.5, 2}
	for mode, want in next, {up = {2.0 ^ -127, 0.125, 0.25, 2, 2, 2}, down = {2.0 ^ -127, 0.0625, 0.25, 1, 1, 2}, nearest = {2.0 ^ -127, 0.125, 0.25, 1, 2, 2}} do
		assert(equal(run('Cast', {z}, {to = 24, round_mode = mode}), want, 0), mode)
	end
	local ok, message = pcall(run, 'Cast', {z}, {to = 24, round_mode = 'odd'})
	assert(not ok and message:find "round_mode: wanted up, down or nearest, got 'odd'", message)
end)

-- Sizes of the input that make a tensor stay sizes of the batch.
it('follows the batch through sizes', function()
	local nodes = {onnx.node('Shape', {'x'}, {'s'}), onnx.node('Gather', {'s', 'zero'}, {'n'}), onnx.node('Unsqueeze', {'n', 'axes'}, {'u'}),
		onnx.node('Concat', {'u', 'two'}, {'sizes'}, {axis = 0}), onnx.node('ConstantOfShape', {'sizes'}, {'z'}, {value = tensor {1.5}}),
		onnx.node('Expand', {'one', 'sizes'}, {'e'}), onnx.node('Sum', {'x', 'z', 'e'}, {'y'})}
	local g = onnx.load {nodes = nodes, inputs = {{'x', 'float32', {'N', 2}}}, outputs = {'y'}, initializers = {zero = ints(0):sum(), axes = ints(0), two = ints(2), one = tensor {{1}}}}
	for _, n in ipairs {1, 2, 5} do assert(equal(g:run(tensor.ones(n, 2)), tensor.full {n, 2, value = 3.5})) end
end)
