-- SPDX-License-Identifier: MIT
-- labels: quick
-- Products of TFLite.
local tflite = dofile 'tests/tools/tflite.lua'
local run, equal = tflite.run, tflite.equal
tensor.seed(3)
local function ints(...) return tensor {dtype = 'int32', ...} end

it('multiplies rows, and keeps axes if asked to', function()
	local x, w, b = tensor.randn(2, 3, 4), tensor.randn(5, 4), tensor.randn(5)
	assert(equal(run('FULLY_CONNECTED', {x, w, b}, {act = 1}, {fixed = {2, 3}}), x:view(6, 4):linear(w, b):relu()))
	assert(equal(run('FULLY_CONNECTED', {x, w}, {keep = true}, {fixed = {2}}), x:linear(w)))
	local ok, message = pcall(run, 'FULLY_CONNECTED', {x, w}, {format = 1}, {fixed = {2}})
	assert(not ok and message:find 'weights_format: wanted the default one', message)
	ok, message = pcall(run, 'FULLY_CONNECTED', {x, tensor.randn(5, 7)}, {}, {fixed = {2}})
	assert(not ok and message:find 'input: wanted a multiple of 7 elements, got 24', message)
end)

it('multiplies matrices', function()
	local a, b = tensor.randn(2, 3, 4), tensor.randn(2, 4, 5)
	assert(equal(run('BATCH_MATMUL', {a, b}, {}), a:matmul(b)))
	assert(equal(run('BATCH_MATMUL', {a:transpose(2, 3):contiguous(), b:transpose(2, 3):contiguous()}, {adjoint_x = true, adjoint_y = true}), a:matmul(b)))
end)

-- LiteRT 2.3 multiplies the sums of this op by a double.
it('rounds codes of 8 and 16 bits once', function()
	local oracle = dofile 'tests/tools/requantize.lua'
	local w, bias = tensor.randn(5, 30):quantize {dtype = 'int8', scale = 0.03}, ints(5, -700, 20, 1000, 3)
	for _, case in ipairs {{'int8', 0.02, 3, 0.06, -5}, {'int16', 0.0001, 0, 0.0003, 0}, {'int8', 2, 0, 0.12, 0}} do -- the last: ties
		local dtype, scale, zero, to, zero_out = table.unpack(case)
		local x = tensor.randn(4, 30):quantize {dtype = dtype, scheme = zero == 0 and 'symmetric' or 'asymmetric', scale = scale, zero_point = zero ~= 0 and zero or nil}
		local sums = ((x:codes():to 'float64' - zero):matmul(w:codes():to 'float64':t()) + bias:to 'float64'):view(-1):totable()
		for i, s in ipairs(sums) do
			sums[i] = (oracle.code('exact', false, oracle.rint(s), oracle.single(scale) * oracle.single(0.03) / oracle.single(to), dtype, zero_out))
		end
		assert(equal(run('FULLY_CONNECTED', {x, w, bias}, {}, {fixed = {2, 3}, out = {type = dtype:upper(), scale = to, zero = zero_out}}), tensor(sums):view(4, 5), 0))
	end
end)
