-- SPDX-License-Identifier: MIT
-- Pictures of another size. Expected values are those of PyTorch 2.15: torch.nn.functional.interpolate(x, size, mode, align_corners=False,
-- antialias) and its gradient, of float64 pictures x[i] = i * 37 % 19 - 9 and gradients g[i] = i * 11 % 7 - 3.
local CASES = { -- height, width, new height, new width, mode, antialias, result, gradient
	{3, 4, 2, 6, 'bilinear', false,
		{-5.25, 1.375, 7.83333333, 7.16666667, 6.5, 6, 3, 2.5, 1.83333333, 1.16666667, 0.5, 0},
		{-1.875, -0.625, 0.625, 1.875, -1, -0.458333333, 0.0833333333, 0.625, -1.125, -0.75, -0.375, 0}},
	{3, 4, 5, 2, 'bilinear', false,
		{0, 7.5, 2.2, 5.9, 5.5, 3.5, 3.1, 1.1, 1.5, -0.5},
		{-2.1, -2.1, 1.1, 1.1, -0.9, -0.9, 1.3, 1.3, 0.5, 0.5, -1.9, -1.9}},
	{5, 7, 2, 3, 'bilinear', true,
		{0.847402597, 0.863636364, 0.262987013, 1.96103896, -0.181818182, -0.782467532},
		{-0.340909091, -0.390374332, -0.129679144, 0.131016043, -0.0614973262, -0.254010695, -0.227272727, -0.405844156, -0.465622613, -0.157944996, 0.14973262, -0.0605423988, -0.270817418, -0.243506494, -0.0811688312, -0.0974025974, -0.0487012987, -1.38777878e-17, 0.0487012987, 0.0974025974, 0.0811688312, 0.243506494, 0.270817418, 0.0605423988, -0.14973262, 0.157944996, 0.465622613, 0.405844156, 0.227272727, 0.254010695, 0.0614973262, -0.131016043, 0.129679144, 0.390374332, 0.340909091}},
	{7, 5, 3, 8, 'bilinear', true,
		{-1.07142857, 1.45982143, 4.65178571, 4.02678571, 3.40178571, 2.77678571, 2.15178571, 1.71428571, 0.588235294, 0.150735294, -0.474264706, -1.09926471, -1.72426471, -2.34926471, -2.97426471, -3.41176471, 3.28571429, 2.84821429, 2.22321429, 1.59821429, 0.973214286, 0.348214286, -0.276785714, -0.714285714},
		{-0.870535714, -0.290178571, 0.267857143, 0.892857143, -1.07142857, -1.0519958, -0.307773109, 0.409663866, 1.04936975, -1.32615546, -0.551733193, -0.012342437, 0.513655462, 0.447478992, -0.804621849, -0.0514705882, 0.283088235, 0.617647059, -0.154411765, -0.283088235, -0.216911765, 0.349264706, 0.741334034, -0.597163866, -0.46980042, -0.382352941, 0.415441176, 0.865021008, -1.03991597, -0.656512605, -0.3125, 0.3125, 0.647321429, -0.848214286, -0.513392857}},
	{2, 9, 4, 4, 'bilinear', true,
		{2.11428571, 7.14634146, 4.85365854, 2.82857143, 1.62857143, 4.89634146, 2.60365854, 0.578571429, 0.657142857, 0.396341463, -1.89634146, -3.92142857, 0.171428571, -1.85365854, -4.14634146, -6.17142857},
		{-1.3, -1.29878049, 0.037804878, 1.10365854, 0.274390244, -0.554878049, -0.502439024, -0.324041812, -0.185714286, 1.3, 1.44512195, 0.498780488, -0.347560976, -0.493902439, -0.640243902, -0.502439024, -0.324041812, -0.185714286}},
	{4, 5, 7, 3, 'nearest', false,
		{-9, 9, 7, -9, 9, 7, 5, 4, 2, 5, 4, 2, 0, -1, -3, 0, -1, -3, -5, -6, -8},
		{-1, 0, 0, 1, 0, -2, -1, 0, 0, 0, 4, -2, 0, -1, 0, -1, 3, 0, 0, 0}},
}
local BYTES = { -- of bytes i * 97 % 256 in two planes: height, width, new height, new width, antialias, result
	{4, 6, 2, 3, true, {98, 106, 131, 146, 138, 116, 107, 125, 155, 123, 107, 124}},
	{4, 6, 7, 5, false, {10, 126, 115, 103, 219, 35, 124, 94, 128, 162, 75, 119, 61, 168, 70, 115, 154, 92, 119, 81, 153, 181, 132, 69, 108, 178, 119, 172, 109, 148, 194, 80, 197, 134, 173, 34, 150, 139, 127, 243, 59, 148, 118, 152, 186, 99, 143, 85, 192, 94, 126, 89, 116, 143, 105, 153, 39, 147, 88, 132, 193, 79, 114, 83, 172, 218, 104, 93, 81, 197}},
	{6, 4, 4, 3, true, {79, 148, 104, 93, 153, 113, 113, 159, 124, 128, 165, 133, 103, 172, 128, 108, 163, 137, 94, 112, 148, 103, 109, 157}},
}

local function numbers(n, by, over, less, ...)
	local list = {dtype = 'float64'}
	for i = 0, n - 1 do list[i + 1] = i * by % over - less end
	return tensor(list):view(...)
end

local function largest(a, b) return (a:to 'float64' - b):abs():max():item() end

it('is what PyTorch gives', function()
	for _, c in ipairs(CASES) do
		local h, w, new_h, new_w, mode, antialias, result, gradient = table.unpack(c)
		local o = {size = {new_h, new_w}, mode = mode, antialias = antialias}
		for dtype, most in pairs {float64 = 1e-8, float32 = 4e-6, float16 = 0.02} do
			local x = numbers(h * w, 37, 19, 9, 1, h, w):to(dtype):detach():requires_grad_()
			local y = x:resize(o)
			assert(y:dtype() == dtype and largest(y:detach(), tensor {result, dtype = 'float64'}:view(1, new_h, new_w)) < most, mode)
			y:backward(numbers(new_h * new_w, 11, 7, 3, 1, new_h, new_w):to(dtype))
			assert(largest(x:grad(), tensor {gradient, dtype = 'float64'}:view(1, h, w)) < most, mode .. ': gradient')
		end
	end
end)

it('rounds bytes', function()
	for _, c in ipairs(BYTES) do
		local h, w, new_h, new_w, antialias, result = table.unpack(c)
		local x = numbers(2 * h * w, 97, 256, 0, 1, 2, h, w):to 'uint8'
		local y = x:resize {size = {new_h, new_w}, antialias = antialias}
		assert(y:dtype() == 'uint8' and largest(y, tensor {result, dtype = 'float64'}:view(1, 2, new_h, new_w)) <= 1)
	end
	print(tensor({0, 1, 2, 5, dtype = 'uint8'}):view(1, 4):resize {size = {1, 2}, antialias = true}[1])  --> uint8(2) 1 3
end)

it('layouts, views, other dtypes', function()
	local x = tensor.randn(2, 3, 9, 7)
	local y = x:resize {size = {5, 11}, antialias = true}
	assert(x[2]:resize {size = {5, 11}, antialias = true}:eq(y[2]):all():item() and x[2][3]:resize {size = {5, 11}, antialias = true}:eq(y[2][3]):all():item())
	assert(x:transpose(3, 4):resize(4):eq(x:transpose(3, 4):contiguous():resize(4)):all():item())
	assert(x:resize {9, 7}:eq(x):all():item() and x:resize {size = {9, 7}, antialias = true}:eq(x):all():item())
	for _, dtype in ipairs {'int8', 'int64', 'bool', 'float16', 'uint16', 'float64'} do
		local a = tensor.arange(0, 19):view(4, 5):to(dtype)
		assert(a:resize {size = {7, 3}, mode = 'nearest'}:eq(tensor.arange(0, 19):view(4, 5):resize {size = {7, 3}, mode = 'nearest'}:to(dtype)):all():item(), dtype)
	end
	print(tensor.zeros(0, 3, 4, 4):resize(2):size())  --> 0	3	2	2
	local q = tensor.rand(1, 4, 4):quantize 'uint8'
	assert(q:resize(3):eq(q:dequantize():resize(3)):all():item())
end)

it('the same bits on any number of threads', function()
	local x = tensor.randn(5, 40, 301):requires_grad_()
	local function run(threads)
		local before = tensor.threads()
		tensor.threads(threads)
		x:zero_grad()
		local y = x:resize {size = {77, 123}, antialias = true}
		y:backward(tensor.ones(5, 77, 123))
		tensor.threads(before)
		return y:detach(), x:grad():clone()
	end
	local y1, g1 = run(1)
	local y4, g4 = run(4)
	assert(y1:eq(y4):all():item() and g1:eq(g4):all():item())
end)

local function refused(what, f)
	it('refuses: ' .. what, function()
		local ok, message = pcall(f)
		assert(not ok and message:find(what, 1, true), tostring(message))
	end)
end
local x = tensor.ones(1, 4, 4)
refused('resize: wanted x (n, c, h, w), (c, h, w) or (h, w) with at least one pixel, got (3)', function() tensor.ones(3):resize(2) end)
refused('resize: wanted x (n, c, h, w), (c, h, w) or (h, w) with at least one pixel, got (1, 0, 4)', function() tensor.ones(1, 0, 4):resize(2) end)
refused('resize: size: wanted 1 or more, got 0', function() x:resize {4, 0} end)
refused('resize: size: wanted a number or {h, w}, got 3 numbers', function() x:resize {1, 2, 3} end)
refused('resize: antialias: wanted mode bilinear, got nearest', function() x:resize {size = 2, mode = 'nearest', antialias = true} end)
refused("wanted one of nearest bilinear, got 'cubic'", function() x:resize {size = 2, mode = 'cubic'} end)
refused('resize: wanted floats or uint8 (others: mode nearest), got int32(1, 4, 4)', function() x:to 'int32':resize(2) end)
refused('memory', function() x:resize {1 << 30, 1 << 31} end)
refused('product is below 2^63', function() x:resize {1 << 40, 1 << 40} end)
