-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(9)
local x = tensor.randn(3, 2, 6, 7)
local byte, fine = {dtype = 'uint8', scale = 0.02, zero_point = 99}, {dtype = 'uint8', scale = 0.0123, zero_point = 99}

it('writes windows with steps and borders', function()
	for _, op in ipairs {'maxpool2d', 'avgpool2d'} do
		back(function(_, a) return a[op](a, 2) end, x)
		back(function(_, a) return a[op](a, {3, 2}, {stride = {1, 2}, pad = {1, 0}}) end, x)
		back(function(_, a) return a[op](a, 3, {stride = 2, pad = {0, 1, 1, 0}}) end, x)
	end
	back(function(_, a) return a:avgpool2d() end, x)
end)

it('pools codes', function()
	back(function(_, a) return a:quantize(byte):maxpool2d(2) end, x)
	print(back(function(_, a) return a:quantize(byte):maxpool2d(2) end, x, {export = {form = 'qoperator'}}))  --> QuantizeLinear MaxPool
	local function mean(_, a) return a:quantize(byte):avgpool2d(3, {out = fine}) end
	back(mean, x)
	print(back(mean, x, {export = {form = 'qoperator'}}))  --> QuantizeLinear com.microsoft.QLinearAveragePool
	print(out.ops(function(_, a) return a:quantize(byte):avgpool2d {out = fine} end, x, {export = {form = 'qoperator'}}))  --> QuantizeLinear com.microsoft.QLinearGlobalAveragePool
end)

it('writes ceilings, borders that do not count, whole planes, places, and automatic borders', function()
	for _, op in ipairs {'maxpool2d', 'avgpool2d'} do
		back(function(_, a) return a[op](a, 3, {stride = 2, pad = 1, ceilmode = true}) end, x)
		back(function(_, a) return a[op](a, 3, {stride = 2, autopad = 'same', countincludepad = op == 'avgpool2d' and false or nil}) end, x)
		back(function(_, a) return a[op](a, 2, {stride = 2, autopad = 'same_lower', countincludepad = op == 'avgpool2d' and false or nil}) end, x)
		back(function(_, a) return a[op](a, 'all') end, x)
	end
	back(function(_, a) return a:avgpool2d(3, {stride = 2, pad = 1, countincludepad = false}) end, x)
	back(function(_, a) return a:maxpool2d(2, {dilation = 2}) end, x)
	back(function(_, a) return a:maxpool2d(3, {stride = 2, pad = 1, indices = true}) end, x)
	back(function(self, a) return a:conv2d(self.w, {stride = 2, autopad = 'same'}) end, x, {parts = {w = tensor.randn(3, 2, 3, 3)}})
end)
