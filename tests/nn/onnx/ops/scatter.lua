-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}
local function ints(list)
	list.dtype = 'int64'
	return tensor(list)
end

it('reads places', function()
	assert(equal(run('GatherND', {x, ints {{0, 1}, {-1, -1}}}), {2, 9}) and equal(run('GatherND', {x, ints {{1}}}, nil, {fixed = {2}}), {{4, 5, 6}}))
	assert(equal(run('GatherND', {x, ints {{1}, {0}, {-1}}}, {batch_dims = 1}, {opset = 13}), {2, 4, 9}))
	assert(equal(run('Gather', {x, ints {{0, 2}, {-1, 1}}}, {axis = 1}), {{{1, 3}, {3, 2}}, {{4, 6}, {6, 5}}, {{7, 9}, {9, 8}}}))
end)

it('writes places, also several times', function()
	local ids, new = ints {{0, -1, 0}}, tensor {{10, 20, 30}}
	assert(equal(run('ScatterElements', {x, ids, new}), {{10, 2, 30}, {4, 5, 6}, {7, 20, 9}}))
	assert(equal(run('Scatter', {x, ints {{2}}, tensor {{50}}}, {axis = 1}, {opset = 9}), {{1, 2, 50}, {4, 5, 6}, {7, 8, 9}}))
	local twice = ints {{1, 1}, {0, 2}, {2, 2}}
	local by = tensor {{2, 3}, {-4, 10}, {9, 1}}
	local cases = {add = {{1, 7, 3}, {0, 5, 16}, {7, 8, 19}}, mul = {{1, 12, 3}, {-16, 5, 60}, {7, 8, 81}}, max = {{1, 3, 3}, {4, 5, 10}, {7, 8, 9}},
		min = {{1, 2, 3}, {-4, 5, 6}, {7, 8, 1}}}
	for how, want in next, cases do assert(equal(run('ScatterElements', {x, twice, by}, {axis = 1, reduction = how}, {opset = 18}), want), how) end
	assert(equal(run('ScatterND', {x, ints {{1}}, tensor {{0, 0, 1}}}), {{1, 2, 3}, {0, 0, 1}, {7, 8, 9}}))
	assert(equal(run('ScatterND', {x, ints {{0, 0}, {0, 0}}, tensor {5, 6}}, {reduction = 'add'}, {opset = 18}), {{12, 2, 3}, {4, 5, 6}, {7, 8, 9}}))
	local ok, message = pcall(run, 'ScatterND', {x, ints {{1}}, tensor {{0, 0, 1}}}, {reduction = 'sub'}, {opset = 18})
	assert(not ok and message:find "reduction: wanted none, add, mul, max or min, got 'sub'", message)
end)

it('reverses sequences, and writes into caches', function()
	local y = run('ReverseSequence', {x, ints {1, 2, 3}})
	assert(equal(y, {{1, 5, 9}, {4, 2, 6}, {7, 8, 3}}))
	assert(equal(run('ReverseSequence', {x, ints {1, 2, 3}}, {batch_axis = 0, time_axis = 1}, {fixed = {2}}), {{1, 2, 3}, {5, 4, 6}, {9, 8, 7}}))
	local cache, new = tensor {{{1}, {2}, {3}}, {{4}, {5}, {6}}}, tensor {{{10}, {20}}, {{30}, {40}}}
	assert(equal(run('TensorScatter', {cache, new}, nil, {opset = 24}), {{{10}, {20}, {3}}, {{30}, {40}, {6}}}))
	assert(equal(run('TensorScatter', {cache, new, ints {1, 0}}, nil, {opset = 24}), {{{1}, {10}, {20}}, {{30}, {40}, {6}}}))
	assert(equal(run('TensorScatter', {cache, new, ints {2, 1}}, {mode = 'circular'}, {opset = 24}), {{{20}, {2}, {10}}, {{4}, {30}, {40}}}))
	local ok, message = pcall(run, 'ReverseSequence', {x, ints {1, 2, 3}}, {batch_axis = 1, time_axis = 1})
	assert(not ok and message:find 'wanted two axes, got one', message)
end)

it('moves depth to space, cuts and pads', function()
	local depth = tensor.arange(1, 8):to('float32'):view(1, 8, 1, 1)
	assert(equal(run('DepthToSpace', {depth}, {blocksize = 2}), {{{{1, 3}, {5, 7}}, {{2, 4}, {6, 8}}}}))
	local crd = run('DepthToSpace', {depth}, {blocksize = 2, mode = 'CRD'})
	assert(equal(crd, {{{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}}))
	assert(equal(run('SpaceToDepth', {crd}, {blocksize = 2}), {{{{1}}, {{5}}, {{2}}, {{6}}, {{3}}, {{7}}, {{4}}, {{8}}}}))
	assert(equal(run('SpaceToDepth', {crd}, {blocksize = 2, mode = 'CRD'}, {opset = 28}), depth))
	assert(equal(run('CenterCropPad', {x, ints {2, 6}}, nil, {fixed = {2}, opset = 18}), {{0, 1, 2, 3, 0, 0}, {0, 4, 5, 6, 0, 0}}))
	assert(equal(run('CenterCropPad', {x, ints {1}}, {axes = {-1}}, {fixed = {2}, opset = 18}), {{2}, {5}, {8}}))
end)
