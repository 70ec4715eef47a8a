-- SPDX-License-Identifier: MIT
-- labels: quick host
-- x:fake(spec): bit for bit quantize and dequantize, for every dtype and granularity; the straight-through gradient.
local function same(a, b) -- NaN only equals NaN; +0 and -0 differ
	a, b = a:to('float64'):view(a:nelem()):totable(), b:to('float64'):view(b:nelem()):totable()
	for i = 1, #a do
		if not (a[i] == b[i] and 1 / a[i] == 1 / b[i] or a[i] ~= a[i] and b[i] ~= b[i]) then return false end
	end
	return true
end

tensor.seed(21)
local x = tensor.randn(13, 70) * 3
x[1][1], x[2][3], x[3][3], x[4][1] = 0 / 0, 1 / 0, -1 / 0, -0.0
local specs = {}
for _, dtype in ipairs {'int8', 'uint8', 'int4', 'uint4', 'int16', 'uint16'} do
	for _, grain in ipairs {'', '/1', '/2', ':32', ':7', '/1:4', '@mse', '/1@percentile'} do specs[#specs + 1] = dtype .. grain end
end
for _, s in ipairs {'binary', 'binary/1', 'float16', 'bfloat16', {bits = 2}, {bits = 3, axis = 1}, {dtype = 'int8', scheme = 'log'},
	{dtype = 'int8', scheme = 'asymmetric'}, {dtype = 'uint8', scheme = 'symmetric'}, {dtype = 'int8', scale = 0.01},
	{dtype = 'uint8', scale = 0.03, zero_point = 7}, {dtype = 'int8', axis = 1, scale = tensor.rand(13) + 0.01}} do
	specs[#specs + 1] = s
end

it('is quantize and dequantize, bit for bit', function()
	for _, s in ipairs(specs) do
		local q = x:quantize(s)
		assert(same(x:fake(s), q:quantized() and q:dequantize() or q), tostring(quant.spec(s)))
		if type(s) == 'string' then assert(same(x:t():fake(s), x:t():contiguous():fake(s)), s) end
	end
end)
it('gives the same when a gradient is wanted', function()
	local leaf = x:clone():requires_grad_()
	for _, s in ipairs(specs) do assert(same(leaf:fake(s):detach(), x:fake(s)), tostring(quant.spec(s))) end
end)
it('keeps the dtype', function()
	for _, dtype in ipairs {'float16', 'bfloat16', 'float64', 'float32'} do
		assert(tensor{1, 2}:to(dtype):fake('int8'):dtype() == dtype)
	end
	assert(tensor{1, 2, dtype = 'int32'}:fake('int8'):dtype() == 'float32')
	assert(tensor.zeros(0, 3):fake('int8/2'):size(2) == 3)
	assert(tensor{1, 2}:quantize('int8'):fake('int4'):dtype() == 'float32')
end)
it('passes the gradient where the unclamped integer is a code, ends included', function()
	-- expected: torch.fake_quantize_per_tensor_affine(x, 0.25, 0, -8, 7)
	local leaf = tensor{{-3.0, 0.3, 1.0, 9.0, -0.26}, {0.11, -0.75, 2.4, 0.05, -5.0}}:requires_grad_()
	local g = tensor{{1, -2, 3, 0.5, 2}, {0.25, 1, -1, 4, 2}}
	local y = leaf:fake{dtype = 'int4', scale = 0.25}
	y:backward(g)
	assert(same(y:detach(), tensor{{-2, 0.25, 1, 1.75, -0.25}, {0, -0.75, 1.75, 0, -2}}))
	assert(same(leaf:grad(), tensor{{0, -2, 3, 0, 2}, {0.25, 1, 0, 4, 0}}))
	local ends = tensor{1.75, 1.87, 1.88, -2, -2.1249, -2.126}:requires_grad_()
	ends:fake{dtype = 'int4', scale = 0.25}:sum():backward()
	print(ends:grad())  --> float32(6) 1 1 0 1 1 0
end)
it('has a gradient of the operand\'s dtype and shape for each granularity', function()
	for _, dtype in ipairs {'float32', 'float64', 'float16'} do
		for _, s in ipairs {'int8/1', 'uint4:3', 'binary', 'float16', 'int4@mse'} do
			local leaf = tensor.randn(4, 6):to(dtype):requires_grad_()
			leaf:fake(s):sum():backward()
			assert(leaf:grad():dtype() == dtype and leaf:grad():size(2) == 6)
			assert(s ~= 'int8/1' or leaf:grad():sum():item() == 24)
		end
	end
end)
it('keeps a byte per element for the gradient', function()
	local leaf = tensor.zeros(1 << 20):requires_grad_()
	local before = tensor.memory().now
	local y = leaf:fake{dtype = 'int8', scale = 1}
	assert(y:requires_grad() and tensor.memory().now - before < 5.1 * (1 << 20))
	y = nil -- luacheck: ignore 311
	collectgarbage()
	assert(tensor.memory().now <= before + 4096)
end)
print(pcall(x.fake, x))  --> false ...fake: spec: wanted...
print(pcall(x.fake, x, false))  --> false ...fake: spec: wanted a spec...got nothing
print(pcall(x.fake, x, 'int8/5'))  --> false ...wanted an axis from 1 to 2...
print(pcall(x.fake, x, {dtype = 'int8', scal = 1}))  --> false ...did you mean 'scale'?...
