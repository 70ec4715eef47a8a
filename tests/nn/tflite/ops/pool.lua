-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pooling of TFLite: means do not count the padding.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)

local function image(x) return x:permute(1, 4, 2, 3) end
local function plain(x) return x:permute(1, 3, 4, 2) end
local o = {padding = 0, stride_h = 2, stride_w = 1, filter_h = 3, filter_w = 2}

it('pools floats', function()
	local x = tensor.randn(2, 6, 5, 3)
	assert(equal(run('MAX_POOL_2D', {x}, o), plain(image(x):maxpool2d({3, 2}, {stride = {2, 1}, pad = {0, 1, 0, 1}}))))
	local sums = image(x):avgpool2d({3, 2}, {stride = {2, 1}, pad = {0, 1, 0, 1}})
	local counts = (x:mul(0) + 1):permute(1, 4, 2, 3):avgpool2d({3, 2}, {stride = {2, 1}, pad = {0, 1, 0, 1}})
	assert(equal(run('AVERAGE_POOL_2D', {x}, o), plain(sums / counts)))
	assert(equal(run('AVERAGE_POOL_2D', {x}, {padding = 1, stride_h = 3, stride_w = 3, filter_h = 3, filter_w = 3, act = 1}), plain(image(x):avgpool2d(3)):relu()))
	local ok, message = pcall(run, 'MAX_POOL_2D', {x}, {stride_h = 1, stride_w = 1})
	assert(not ok and message:find 'filter: wanted 1 and up, got 0', message)
end)

it('pools codes: the sum over the number, halves away from 0', function()
	local q = tensor {{1, 2}, {-4, -3}}:view(1, 2, 2, 1):mul(0.5):quantize {dtype = 'int8', scheme = 'asymmetric', scale = 0.5, zero_point = 1} -- codes 2 3 -3 -2
	local out, row = {out = {type = 'INT8', scale = 0.5, zero = 1}}, {padding = 1, stride_h = 1, stride_w = 1, filter_h = 1, filter_w = 2}
	assert(equal(run('AVERAGE_POOL_2D', {q}, row, out):codes():view(2), {3, -3}, 0))
	assert(equal(run('MAX_POOL_2D', {q}, row, out):codes():view(2), {3, -2}, 0))
	row.act = 1
	assert(equal(run('MAX_POOL_2D', {q}, row, out):codes():view(2), {3, 1}, 0) and equal(run('AVERAGE_POOL_2D', {q}, row, out):codes():view(2), {3, 1}, 0))
end)
