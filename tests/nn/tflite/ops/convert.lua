-- SPDX-License-Identifier: MIT
-- labels: quick
-- Conversions of TFLite.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

local function spec(scale, zero) return {dtype = 'int8', scheme = 'asymmetric', scale = scale, zero_point = zero} end

it('casts towards 0', function()
	local y = run('CAST', {tensor {1.7, -1.7, 2.5}}, {from = 0, to = 2}, {out = {type = 'INT32'}})
	assert(y:dtype() == 'int32' and equal(y, {1, -1, 2}) and equal(run('CAST', {ints(1, 0)}, {from = 2, to = 0}), {1, 0}))
end)

it('quantizes, requantizes and decodes', function()
	local x = tensor {-1, 0.2, 3, 100}
	assert(equal(run('QUANTIZE', {x}, nil, {out = {type = 'INT8', scale = 0.1, zero = 4}}), {-6, 6, 34, 127}, 0))
	local q = x:quantize(spec(0.1, 4))
	assert(equal(run('QUANTIZE', {q}, nil, {out = {type = 'INT8', scale = 0.2, zero = -4}}), {-9, -3, 11, 58}, 0))
	assert(equal(run('DEQUANTIZE', {q}), {-1, 0.2, 3, 12.3}))
	local half = tflite.single('DEQUANTIZE', {tensor.ones(2)}, nil, {fixed = {1}})
	half.tensors[1].type, half.tensors[1].data, half.tensors[1].bytes = 'FLOAT16', nil, '\x00\x3c\x00\xc0'
	assert(equal(tflite.load(half):run {}, {1, -2}))
end)
