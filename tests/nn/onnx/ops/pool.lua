-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor.arange(1, 16):to('float32'):view(1, 1, 4, 4)

it('pools windows and planes', function()
	assert(equal(run('MaxPool', {x}, {kernel_shape = {2, 2}, strides = {2, 2}}), {{{{6, 8}, {14, 16}}}}))
	assert(equal(run('AveragePool', {x}, {kernel_shape = {2, 2}, strides = {2, 2}}), {{{{3.5, 5.5}, {11.5, 13.5}}}}))
	assert(equal(run('MaxPool', {x}, {kernel_shape = {2, 2}, strides = {3, 3}, pads = {1, 0, 0, 0}}), {{{{2}, {14}}}}))
	assert(equal(run('GlobalAveragePool', {x}), {{{{8.5}}}}) and equal(run('GlobalMaxPool', {x}), {{{{16}}}}))
	assert(equal(run('MaxPool', {x:view(1, 1, 16)}, {kernel_shape = {4}, strides = {4}}), {{{4, 8, 12, 16}}}) and equal(run('GlobalAveragePool', {x:view(1, 2, 8)}), {{{4.5}, {12.5}}}))
	local ok, message = pcall(run, 'MaxPool', {x}, {kernel_shape = {2}})
	assert(not ok and message:find 'kernel_shape: wanted 2 sizes', message)
end)
