-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local a, b = tensor {{1, -2, 3}}, tensor {{2}, {-4}}

it('broadcasts', function()
	assert(equal(run('Add', {a, b}), {{3, 0, 5}, {-3, -6, -1}}) and equal(run('Sub', {a, b}), {{-1, -4, 1}, {5, 2, 7}}))
	assert(equal(run('Mul', {a, b}), {{2, -4, 6}, {-4, 8, -12}}) and equal(run('Div', {a, b}), {{0.5, -1, 1.5}, {-0.25, 0.5, -0.75}}))
	assert(run('Less', {a, b}):totable()[1][2] == true and run('GreaterOrEqual', {a, b}):totable()[2][2] == true and run('Equal', {a, a}):all():item())
	assert(run('And', {tensor {true, true}, tensor {true, false}}):totable()[2] == false and run('Xor', {tensor {true}, tensor {true}}):totable()[1] == false)
end)

it('divides integers towards 0, with the remainders of both kinds', function()
	local x, y = tensor {-7, 7, -7, 7, dtype = 'int32'}, tensor {2, -2, -2, 2, dtype = 'int32'}
	local q = run('Div', {x, y})
	assert(q:dtype() == 'int32' and equal(q, {-3, -3, 3, 3}))
	assert(equal(run('Mod', {x, y}), {1, -1, -1, 1}) and equal(run('Mod', {x, y}, {fmod = 1}), {-1, 1, -1, 1}))
	assert(equal(run('Mod', {tensor {-4.3, 7.2}, tensor {2.1, -3.4}}, {fmod = 1}), {-0.1, 0.4}))
end)

it('raises to powers in the type of the base', function()
	assert(equal(run('Pow', {a, tensor(2.0):sum()}, nil, {fixed = {2}}), {{1, 4, 9}}) and equal(run('Pow', {tensor {4}, tensor(0.5):sum()}, nil, {fixed = {2}}), {2}))
	local y = run('Pow', {tensor {2, 3, dtype = 'int64'}, tensor {3, 2, dtype = 'int64'}})
	assert(y:dtype() == 'int64' and equal(y, {8, 9}))
	y = run('Pow', {tensor {4, 9, dtype = 'int32'}, tensor {0.5, 1.5}})
	assert(y:dtype() == 'int32' and equal(y, {2, 27}))
end)

it('joins any number of operands', function()
	assert(equal(run('Max', {a, b, tensor {0}}), {{2, 2, 3}, {1, 0, 3}}) and equal(run('Min', {a, b}), {{1, -2, 2}, {-4, -4, -4}}))
	assert(equal(run('Sum', {a, a, b}), {{4, -2, 8}, {-2, -8, 2}}) and equal(run('Mean', {a, a * 2}), {{1.5, -3, 4.5}}) and equal(run('Mean', {a}), a))
	assert(equal(run('BitShift', {tensor {16, 4, dtype = 'uint8'}, tensor {1, 2, dtype = 'uint8'}}, {direction = 'RIGHT'}), {8, 1}))
	local bits, by = tensor {-8, 4, 5, dtype = 'int8'}, tensor {-1, -8, 1, dtype = 'int8'}
	assert(equal(run('BitShift', {bits, by}, {direction = 'RIGHT'}), {-1, 0, 2}) and equal(run('BitShift', {bits, by}, {direction = 'LEFT'}), {0, 0, 10}))
end)
