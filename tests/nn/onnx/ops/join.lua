-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor {{1, 2, 3, 4}, {5, 6, 7, 8}}
local function ints(...) return tensor {dtype = 'int64', ...} end

it('concatenates and splits', function()
	assert(equal(run('Concat', {x, x * -1}, {axis = 0}), {{1, 2, 3, 4}, {5, 6, 7, 8}, {-1, -2, -3, -4}, {-5, -6, -7, -8}}) and equal(run('Concat', {x}, {axis = -1}), x))
	local a, b = run('Split', {x}, {axis = 1}, {outputs = 2})
	assert(equal(a, {{1, 2}, {5, 6}}) and equal(b, {{3, 4}, {7, 8}}))
	a, b = run('Split', {x, ints(1, 3)}, {axis = 1}, {outputs = 2, fixed = {2}})
	assert(equal(a, {{1}, {5}}) and equal(b, {{2, 3, 4}, {6, 7, 8}}))
	a, b = run('Split', {x}, {axis = 1, split = {3, 1}}, {outputs = 2, opset = 11})
	assert(equal(a, {{1, 2, 3}, {5, 6, 7}}) and equal(b, {{4}, {8}}))
	a, b = run('Split', {x:narrow(2, 1, 3)}, {axis = 1, num_outputs = 2}, {outputs = 2, opset = 18})
	assert(equal(a, {{1, 2}, {5, 6}}) and equal(b, {{3}, {7}}))
end)

it('cuts slices, from attributes and from inputs', function()
	assert(equal(run('Slice', {x, ints(1), ints(3), ints(1)}, nil, {fixed = {2, 3, 4}}), {{2, 3}, {6, 7}}))
	assert(equal(run('Slice', {x}, {starts = {0, -2}, ends = {1, 1000}}, {opset = 9}), {{3, 4}}))
	assert(equal(run('Slice', {x, ints(0), ints(4), ints(1), ints(2)}, nil, {fixed = {2, 3, 4, 5}}), {{1, 3}, {5, 7}}))
	assert(equal(run('Slice', {x, ints(-1), ints(-5), ints(1), ints(-2)}, nil, {fixed = {2, 3, 4, 5}}), {{4, 2}, {8, 6}}))
	assert(run('Slice', {x, ints(3), ints(1), ints(1), ints(2)}, nil, {fixed = {2, 3, 4, 5}}):size(2) == 0)
	assert(equal(run('Slice', {x, ints(-1), ints(math.mininteger), ints(1), ints(-1)}, nil, {fixed = {2, 3, 4, 5}}), {{4, 3, 2, 1}, {8, 7, 6, 5}}))
	assert(equal(run('Slice', {x, ints(3), ints(0), ints(1), ints(-2)}, nil, {fixed = {2, 3, 4, 5}}), {{4, 2}, {8, 6}}))
	assert(equal(run('Slice', {x, ints(0), ints(4), ints(-1), ints(3)}, nil, {fixed = {2, 3, 4, 5}}), {{1, 4}, {5, 8}}))
	assert(run('Slice', {x, ints(3), ints(2), ints(1)}, nil, {fixed = {2, 3, 4}}):nelem() == 0)
end)

it('repeats and pads', function()
	assert(equal(run('Tile', {x:narrow(2, 1, 2), ints(1, 2)}, nil, {fixed = {2}}), {{1, 2, 1, 2}, {5, 6, 5, 6}}))
	local y = tensor {{1, 2}}
	assert(equal(run('Pad', {y, ints(0, 1, 1, 2)}, nil, {fixed = {2}}), {{0, 1, 2, 0, 0}, {0, 0, 0, 0, 0}}))
	assert(equal(run('Pad', {y, ints(1, 0), tensor(9.0):sum(), ints(-1)}, nil, {fixed = {2, 3, 4}, opset = 18}), {{9, 1, 2}}))
	assert(equal(run('Pad', {y}, {pads = {0, 1, 0, 0}, value = 5.0}, {opset = 10}), {{5, 1, 2}}) and equal(run('Pad', {y, ints(0, 0, 0, 0)}, nil, {fixed = {2}}), y))
end)

it('continues rows by their own elements', function()
	local row = tensor {{1, 2, 3}}
	for mode, want in next, {edge = {{1, 1, 1, 2, 3, 3}}, reflect = {{3, 2, 1, 2, 3, 2}}, wrap = {{2, 3, 1, 2, 3, 1}}} do
		assert(equal(run('Pad', {row, ints(0, 2, 0, 1)}, {mode = mode}, {fixed = {2}, opset = 19}), want), mode)
	end
	local ok, message = pcall(run, 'Pad', {row, ints(0, 2, 0, 1)}, {mode = 'mirror'}, {fixed = {2}})
	assert(not ok and message:find "mode: wanted constant, edge, reflect or wrap, got 'mirror'", message)
end)
