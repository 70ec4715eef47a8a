-- SPDX-License-Identifier: MIT
-- Activations of straight lines. Expected values and slopes from torch.nn.functional 2 in float64 (softshrink, hardshrink for shrink).
local elementwise = dofile 'tests/tools/elementwise.lua'
local x = tensor{-20, -3, -1, -0.5, 0, 0.25, 1, 2.5, 10, dtype = 'float64'}
for op, values in pairs {
	hardsigmoid = {0, 0, 0.3333333333, 0.4166666667, 0.5, 0.5416666667, 0.6666666667, 0.9166666667, 1},
	['hardsigmoid 0.2 0.25'] = {0, 0, 0.05, 0.15, 0.25, 0.3, 0.45, 0.75, 1}, -- by hand
	hardtanh = {-1, -1, -1, -0.5, 0, 0.25, 1, 1, 1},
	['hardtanh -2 0.75'] = {-2, -2, -1, -0.5, 0, 0.25, 0.75, 0.75, 0.75},
	shrink = {-20, -3, -1, 0, 0, 0, 1, 2.5, 10},
	['shrink 0.75 0.75'] = {-19.25, -2.25, -0.25, 0, 0, 0, 0.25, 1.75, 9.25},
	threshold = {0, 0, 0, 0, 0, 0, 0, 2.5, 10},
	['threshold 0.5 -3'] = {-3, -3, -3, -3, -3, -3, 1, 2.5, 10},
} do elementwise(op, x, values, {float32 = 1e-6, float64 = 1e-9}) end

local function slope(f)
	local a = x:clone():requires_grad_()
	f(a):sum():backward()
	return a:grad()
end
print(slope(function(a) return a:hardsigmoid() * 6 end):round())  --> float64(9)  0  0  1  1  1  1  1  1  0
print(slope(function(a) return a:hardtanh() end))  --> float64(9)  0  0  0  1  1  1  0  0  0
print(slope(function(a) return a:hardtanh(-2, 0.75) end))  --> float64(9)  0  0  1  1  1  1  0  0  0
print(slope(function(a) return a:shrink() end))  --> float64(9)  1  1  1  0  0  0  1  1  1
print(slope(function(a) return a:shrink(0.75, 0.75) end))  --> float64(9)  1  1  1  0  0  0  1  1  1
print(slope(function(a) return a:threshold(0.5, -3) end))  --> float64(9)  0  0  0  0  0  0  1  1  1

local inf, nan = math.huge, 0 / 0
for _, dtype in ipairs {'float32', 'float64'} do
	local ends = tensor({-inf, inf, nan, dtype = dtype})
	for op, values in pairs {hardsigmoid = {0, 1}, hardtanh = {-1, 1}, shrink = {-inf, inf}, threshold = {0, inf}} do
		local got = ends[op](ends):totable()
		assert(got[1] == values[1] and got[2] == values[2] and got[3] ~= got[3], op)
	end
end
print(tensor({-7, 2, dtype = 'int8'}):hardtanh(-2, 3), tensor({-7, 2, dtype = 'int64'}):shrink(3, 1))  --> float32(2) -2 2 float32(2) -6 0
print(tensor.zeros(0):threshold(2, 1):size(), tensor.zeros(3, 0):shrink():size())  --> 0 3 0
print(tensor{{-1, 2}, {3, -4}}:t():threshold(0, 9):reshape(-1))  --> float32(4) 9 3 2 9
local y = tensor{-1, 0.25, 4}
print(y:hardtanh_(), y)  --> float32(3) -1.0000 0.2500 1.0000 float32(3) -1.0000 0.2500 1.0000
print(pcall(function() return y:hardtanh(2, 1) end))  --> false ...hardtanh: wanted low of at most high, got 2 and 1
print(pcall(function() return y:shrink(-1) end))  --> false ...shrink: lambda: wanted a number of at least 0, got -1
print(pcall(function() return y:threshold(nan) end))  --> false ...threshold: threshold: wanted a number, got nan
