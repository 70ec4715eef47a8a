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

-- Of sin(0.37 i), 6 x 7: what PyTorch and ONNX (its reference, onnxruntime for align_corners with scales) give.
local OPTIONS = {
	{{size={9, 4}, mode='bicubic'}, {0.49347, 1.05292, 1.14479, 0.74534, 0.32614, 0.10989, -0.13269, -0.33899, -0.08253, -0.62544, -0.87336,
		-0.76231, -0.62332, -0.08645, 0.44114, 0.82325, 0.28578, 0.45213, 0.42374, 0.20793, 0.74441, 0.27803, -0.26159, -0.73515, -0.83482,
		-0.82591, -0.48684, 0.09485, -0.29121, -0.05462, 0.18449, 0.36441, 0.90728, 1.1632, 0.93217, 0.27384}},
	{{size={3, 11}, mode='bicubic', coords='align_corners'}, {0.36162, 0.52906, 0.74087, 0.85462, 0.96097, 0.99588, 0.9997, 0.9355, 0.85089,
		0.67304, 0.52404, 0.2458, 0.314, 0.39509, 0.43333, 0.46182, 0.45905, 0.44195, 0.39182, 0.33863, 0.24011, 0.16244, 0.68429, 0.80703,
		0.94028, 0.98926, 1.00414, 0.95743, 0.88084, 0.73174, 0.59002, 0.34865, 0.16717}},
	{{size={4, 10}, coords='align_corners'}, {0.36162, 0.57006, 0.74809, 0.8957, 0.96249, 0.98435, 0.96128, 0.85147, 0.70573, 0.52404,
		-0.38596, -0.32817, -0.25687, -0.17207, -0.07174, 0.02955, 0.13183, 0.2222, 0.30052, 0.36677, 0.31794, 0.23716, 0.1475, 0.04897,
		-0.05398, -0.15218, -0.24561, -0.31689, -0.37226, -0.41172, 0.68429, 0.82921, 0.93346, 0.99702, 0.97063, 0.90104, 0.78825, 0.60434,
		0.39732, 0.16717}},
	{{size={4, 10}, mode='area'}, {0.27111, 0.2573, 0.21321, 0.18293, 0.14027, 0.04834, -0.00093, -0.05013, -0.14182, -0.1843, -0.24432,
		-0.2578, -0.26639, -0.26151, -0.23893, -0.17913, -0.14191, -0.09509, 0.00182, 0.05191, -0.00278, -0.05192, -0.14336, -0.18566, -0.2154,
		-0.25828, -0.27143, -0.26621, -0.2381, -0.21522, -0.14033, -0.09338, 0.00365, 0.05373, 0.10018, 0.18316, 0.21969, 0.24135, 0.26687,
		0.27073}},
	{{size={4, 10}, mode='nearest', coords='half_pixel', rounding='round_prefer_ceil'}, {0.36162, 0.67429, 0.67429, 0.8957, 0.99588,
		0.99588, 0.96128, 0.79657, 0.79657, 0.52404, -0.66924, -0.35525, -0.35525, 0.00681, 0.36796, 0.36796, 0.6793, 0.89871, 0.89871,
		0.99648, 0.95937, 0.79243, 0.79243, 0.51823, 0.17389, 0.17389, -0.19398, -0.5356, -0.5356, -0.80473, 0.68429, 0.90168, 0.90168,
		0.99702, 0.95743, 0.95743, 0.78825, 0.51239, 0.51239, 0.16717}},
	{{scale=1.3}, {0.36162, 0.56606, 0.76796, 0.91496, 0.99203, 0.97059, 0.87892, 0.72319, 0.52404, 0.24326, 0.15675, 0.04861, -0.06377,
		-0.17331, -0.26517, -0.33599, -0.38234, -0.40225, -0.17895, -0.23087, -0.27715, -0.30346, -0.30611, -0.27848, -0.2311, -0.16688,
		-0.0934, -0.35604, -0.21122, -0.03313, 0.14852, 0.32197, 0.46271, 0.56712, 0.6302, 0.65009, 0.89674, 0.79967, 0.64263, 0.43756,
		0.19355, -0.06839, -0.32042, -0.5491, -0.73545, -0.44686, -0.49039, -0.51221, -0.49669, -0.4413, -0.34254, -0.22071, -0.08279, 0.05686,
		-0.14033, -0.07894, -0.00406, 0.0716, 0.14306, 0.20002, 0.24135, 0.26509, 0.27073}},
	{{scale=0.6, scalew=1.7, mode='cubic'}, {0.34595, 0.37383, 0.41091, 0.42534, 0.41242, 0.38893, 0.33612, 0.27871, 0.2007, 0.10868,
		0.01272, -0.69981, -0.57807, -0.3699, -0.162, 0.07668, 0.2612, 0.49113, 0.64684, 0.80903, 0.91779, 0.97838, -0.43954, -0.49541,
		-0.57502, -0.62057, -0.62855, -0.61443, -0.56147, -0.49306, -0.39444, -0.26864, -0.13141}},
	{{size={9, 4}, mode='nearest', coords='half_pixel'}, {0.36162, 0.8957, 0.96128, 0.52404, 0.36162, 0.8957, 0.96128, 0.52404, 0.1806,
		-0.52984, -0.96313, -0.89265, -0.66924, 0.00681, 0.6793, 0.99648, -0.66924, 0.00681, 0.6793, 0.99648, 0.95937, 0.51823, -0.19398,
		-0.80473, -0.96494, -0.88956, -0.34888, 0.37429, -0.96494, -0.88956, -0.34888, 0.37429, 0.68429, 0.99702, 0.78825, 0.16717}},
	{{size={9, 4}, mode='nearest', coords='align_corners', rounding='ceil'}, {0.36162, 0.8957, 0.96128, 0.52404, 0.1806, -0.52984, -0.96313,
		-0.89265, -0.66924, 0.00681, 0.6793, 0.99648, -0.66924, 0.00681, 0.6793, 0.99648, 0.95937, 0.51823, -0.19398, -0.80473, -0.96494,
		-0.88956, -0.34888, 0.37429, -0.96494, -0.88956, -0.34888, 0.37429, 0.68429, 0.99702, 0.78825, 0.16717, 0.68429, 0.99702, 0.78825,
		0.16717}},
	{{scale=0.5, scalew=1.5, mode='linear', coords='asymmetric'}, {0.36162, 0.57006, 0.74809, 0.8957, 0.96249, 0.98435, 0.96128, 0.85147,
		0.70573, 0.52404, -0.66924, -0.45992, -0.23456, 0.00681, 0.24758, 0.47174, 0.6793, 0.82557, 0.9313, 0.99648, -0.96494, -0.98468,
		-0.95955, -0.88956, -0.73929, -0.55907, -0.34888, -0.10721, 0.13385, 0.37429}},
	{{scale=0.5, scalew=1.5, coords='half_pixel_symmetric'}, {0.27111, 0.2527, 0.22331, 0.18293, 0.12605, 0.06476, -0.00093, -0.06653,
		-0.12766, -0.1843, 0.14507, 0.19408, 0.23323, 0.26252, 0.26812, 0.2615, 0.24266, 0.20192, 0.15299, 0.09587, -0.14033, -0.07773,
		-0.01305, 0.05373, 0.11567, 0.17099, 0.21969, 0.24857, 0.26558, 0.27073}},
	{{scale=0.5, scalew=1.5, mode='cubic', coords='align_corners'}, {0.36162, 0.55125, 0.77317, 0.8957, 0.98049, 1.00527, 0.96128, 0.87678,
		0.69247, 0.52404, 0.2458, 0.32288, 0.40686, 0.44481, 0.46403, 0.45131, 0.41116, 0.35368, 0.25041, 0.16244, 0.68429, 0.82265, 0.95805,
		0.99702, 0.99399, 0.9151, 0.78825, 0.62819, 0.37306, 0.16717}},
	{{size={9, 4}, mode='cubic', a=-0.5, excludeoutside=true}, {0.47808, 1.0125, 1.09923, 0.70588, 0.31455, 0.18067, -0.0258, -0.22772,
		-0.04239, -0.58395, -0.85989, -0.7671, -0.59475, -0.06415, 0.47685, 0.82614, 0.24423, 0.38844, 0.36283, 0.17697, 0.75543, 0.31969,
		-0.23816, -0.70972, -0.83331, -0.8088, -0.44104, 0.13258, -0.17483, 0.04154, 0.23336, 0.32896, 0.86417, 1.12226, 0.89477, 0.26669}},
}
local function sines() return (tensor.arange(1, 42):to 'float64' * 0.37):sin():view(1, 1, 6, 7):detach() end
it('other modes, places and scales are those of PyTorch and ONNX', function()
	for _, c in ipairs(OPTIONS) do
		local want = tensor {dtype = 'float64', table.unpack(c[2])}
		for dtype, most in pairs {float64 = 1e-5, float32 = 2e-5} do
			local y = sines():to(dtype):resize(c[1])
			assert(y:nelem() == want:nelem() and largest(y:reshape(-1), want) < most)
		end
		-- the gradient: that of a linear map, whose transpose the unit gradients give
		local x = sines():requires_grad_()
		local y = x:resize(c[1])
		local g = numbers(y:nelem(), 11, 7, 3, y:size())
		y:backward(g)
		assert(math.abs((x:grad() * x:detach()):sum():item() - (g * y:detach()):sum():item()) < 1e-9)
	end
	local one = sines():resize {size = 1, coords = 'pytorch_half_pixel'}
	assert(one:item() == sines()[1][1][1][1]:item())
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
refused("wanted one of nearest bilinear linear bicubic cubic area, got 'lanczos'", function() x:resize {size = 2, mode = 'lanczos'} end)
refused('resize: wanted floats or uint8 (others: mode nearest), got int32(1, 4, 4)', function() x:to 'int32':resize(2) end)
refused('memory', function() x:resize {1 << 30, 1 << 31} end)
refused('product is below 2^63', function() x:resize {1 << 40, 1 << 40} end)
refused('resize: wanted size or scale, got none of them', function() x:resize() end)
refused('resize: wanted size or scale, got both', function() x:resize {size = 2, scale = 2} end)
refused('resize: scale: wanted a number above 0 and sizes below 2^53, got -1', function() x:resize {scale = -1} end)
refused('resize: rounding: wanted mode nearest, got bilinear', function() x:resize {size = 2, rounding = 'ceil'} end)
refused('resize: a: wanted mode bicubic, got linear', function() x:resize {size = 2, mode = 'linear', a = -0.5} end)
refused('resize: coords: wanted another mode than area', function() x:resize {size = 2, mode = 'area', coords = 'asymmetric'} end)
refused('resize: antialias: wanted mode bilinear, got cubic', function() x:resize {size = 2, mode = 'cubic', antialias = true} end)
refused('resize: scalew: wanted it with scale=', function() x:resize {size = 2, scalew = 2} end)
