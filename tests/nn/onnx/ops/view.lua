-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor.arange(1, 6):to('float32'):view(2, 3)
local function ints(...) return tensor {dtype = 'int64', ...} end

it('gives other shapes', function()
	assert(equal(run('Reshape', {x, ints(3, -1)}, nil, {fixed = {2}}), {{1, 2}, {3, 4}, {5, 6}}) and equal(run('Reshape', {x, ints(0, 1, 3)}, nil, {fixed = {2}}), {{{1, 2, 3}}, {{4, 5, 6}}}))
	assert(equal(run('Flatten', {x:view(1, 2, 3)}, {axis = -1}), {{1, 2, 3}, {4, 5, 6}}) and equal(run('Flatten', {x}, {axis = 0}), {{1, 2, 3, 4, 5, 6}}))
	assert(equal(run('Transpose', {x}), {{1, 4}, {2, 5}, {3, 6}}) and equal(run('Transpose', {x:view(1, 2, 3)}, {perm = {2, 0, 1}}), {{{1, 4}}, {{2, 5}}, {{3, 6}}}))
	assert(equal(run('Squeeze', {x:view(1, 2, 1, 3)}), x) and equal(run('Squeeze', {x:view(1, 2, 1, 3), ints(0)}, nil, {fixed = {2}}), x:view(2, 1, 3)))
	assert(equal(run('Squeeze', {x:view(2, 1, 3)}, {axes = {1}}, {opset = 11}), x) and equal(run('Unsqueeze', {x, ints(0, -1)}, nil, {fixed = {2}}), x:view(1, 2, 3, 1)))
	assert(equal(run('Expand', {tensor {{1}, {2}}, ints(2, 1, 3)}, nil, {fixed = {2}}), {{{1, 1, 1}, {2, 2, 2}}, {{1, 1, 1}, {2, 2, 2}}}))
end)
