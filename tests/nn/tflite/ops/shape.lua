-- SPDX-License-Identifier: MIT
-- labels: quick
-- Shapes of TFLite.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

local x = tensor.arange(1, 24):to 'float32':view(2, 3, 4)

it('views', function()
	assert(equal(run('RESHAPE', {x, ints(4, -1)}, nil, {fixed = {2}}), x:view(4, 6)) and equal(run('RESHAPE', {x}, {shape = {6, 4}}), x:view(6, 4)))
	assert(equal(run('SQUEEZE', {x:view(1, 6, 1, 4)}, {axes = {-2}}), x:view(1, 6, 4)) and equal(run('SQUEEZE', {x:view(1, 6, 1, 4)}, {}), x:view(6, 4)))
	assert(equal(run('EXPAND_DIMS', {x, ints(-1)}, nil, {fixed = {2}}), x:view(2, 3, 4, 1)) and equal(run('TRANSPOSE', {x, ints(2, 0, 1)}, nil, {fixed = {2}}), x:permute(3, 1, 2)))
	for _, case in ipairs {{{5, -1}, 'wanted sizes of 24 elements, got 5 %-1'}, {{-1, -1}, 'wanted at most one %-1'}, {{-3}, 'wanted sizes of 0 and up, or %-1, got %-3'}} do
		local ok, message = pcall(run, 'RESHAPE', {x, ints(table.unpack(case[1]))}, nil, {fixed = {2}})
		assert(not ok and message:find(case[2]), message)
	end
	local ok, message = pcall(run, 'TRANSPOSE', {x, ints(0, 0, 1)}, nil, {fixed = {2}})
	assert(not ok and message:find 'perm: wanted each axis once', message)
end)

it('knows sizes', function()
	local y = run('SHAPE', {x}, {type = 2}, {out = {type = 'INT32'}})
	assert(y:dtype() == 'int32' and equal(y, {2, 3, 4}))
	-- sizes that grow with the batch: SHAPE, then RESHAPE by them
	local m = tflite.single('SHAPE', {x}, {type = 2}, {out = {type = 'INT32'}})
	m.tensors[1].signature = {-1, 3, 4}
	m.tensors[3] = {name = 'other', shape = {2, 12}, type = 'FLOAT32', signature = {-1, 12}}
	m.tensors[4] = {name = 'z', shape = {2, 3, 4}, type = 'FLOAT32'}
	m.ops[2], m.inputs, m.outputs = {'RESHAPE', {3, 2}, {4}}, {1, 3}, {4}
	local five = tensor.randn(5, 12)
	assert(equal(tflite.load(m):run {tensor.ones(5, 3, 4), five}, five:view(5, 3, 4)))
end)

it('fills and broadcasts', function()
	assert(equal(run('BROADCAST_TO', {tensor {{1}, {2}}, ints(3, 2, 2)}, nil, {fixed = {2}}), tensor {{1}, {2}}:expand(3, 2, 2)))
	assert(equal(run('FILL', {ints(2, 2), x:narrow(1, 1, 1):max()}, nil, {fixed = {1}}), {{12, 12}, {12, 12}}) and equal(run('ZEROS_LIKE', {x}), x * 0))
end)

it('moves blocks', function()
	local a = tensor.randn(1, 2, 3, 8)
	local deep = run('DEPTH_TO_SPACE', {a}, {block = 2})
	for i = 0, 1 do
		for j = 0, 1 do assert(equal(deep[1][3 + i][5 + j], a[1][2][3]:narrow(1, (i * 2 + j) * 2 + 1, 2))) end
	end
	assert(equal(run('SPACE_TO_DEPTH', {deep}, {block = 2}), a))
	local pads = tensor {{1, 0}, {0, 3}, dtype = 'int32'}
	local image = tensor.randn(1, 5, 6, 2)
	local split = run('SPACE_TO_BATCH_ND', {image, ints(2, 3), pads}, nil, {fixed = {2, 3}})
	local padded = image:pad {sizes = {0, 0, 0, 3, 1, 0}}
	assert(equal(split[5][2][3], padded[1][4][8]) and split:size(1) == 6) -- block 1, 1: rows 2 i + 1, columns 3 j + 1
	assert(equal(run('BATCH_TO_SPACE_ND', {split, ints(2, 3), pads}, nil, {fixed = {2, 3}}), image))
	local ok, message = pcall(run, 'DEPTH_TO_SPACE', {a}, {block = 3})
	assert(not ok and message:find 'channels: wanted a multiple of 9, got 8', message)
end)
