-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal

local x = tensor.arange(1, 16):to('float32'):view(1, 1, 4, 4)
local w = tensor.ones(1, 1, 2, 2)

it('convolves with pads, strides, dilations, groups and a bias', function()
	assert(equal(run('Conv', {x, w, tensor {10}}, {strides = {2, 2}}, {fixed = {2, 3}}), {{{{24, 32}, {56, 64}}}}))
	assert(equal(run('Conv', {x, w}, {strides = {2, 2}, dilations = {2, 2}}, {fixed = {2}}), {{{{24}}}}))
	assert(equal(run('Conv', {x, w}, {strides = {4, 4}, pads = {1, 0, 0, 2}}, {fixed = {2}}), {{{{3, 0}}}}))
	local two = tensor.cat({x, x * 2}, {axis = 2})
	assert(equal(run('Conv', {two, tensor.ones(2, 1, 4, 4)}, {group = 2}, {fixed = {2}}), {{{{136}}, {{272}}}}))
end)

it('pads by auto_pad', function()
	local y = run('Conv', {x, w}, {auto_pad = 'SAME_UPPER', strides = {3, 3}}, {fixed = {2}})
	assert(equal(y, {{{{14, 12}, {27, 16}}}}), y)
	y = run('Conv', {x, w}, {auto_pad = 'SAME_LOWER', strides = {3, 3}}, {fixed = {2}})
	assert(equal(y, {{{{1, 7}, {22, 54}}}}), y)
	assert(equal(run('Conv', {x, w}, {auto_pad = 'VALID', strides = {2, 2}}, {fixed = {2}}), {{{{14, 22}, {46, 54}}}}))
end)

it('convolves along one axis', function()
	local line = tensor {{{1, 2, 3, 4, 5}}}
	assert(equal(run('Conv', {line, tensor {{{1, 0, -1}}}}, {pads = {1, 1}}, {fixed = {2}}), {{{-2, -2, -2, -2, 4}}}))
	local ok, message = pcall(run, 'Conv', {tensor.ones(1, 1, 2, 2, 2, 2), tensor.ones(1, 1, 1, 1, 1, 1)}, nil, {fixed = {2}})
	assert(not ok and message:find '%(Conv%): wanted 1', message)
end)
