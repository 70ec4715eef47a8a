-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(7)
local x = (tensor.randn(3, 4, 6) * 2):round() -- with ties

it('finds places', function()
	for _, op in ipairs {'argmax', 'argmin'} do
		back(function(_, a) return a[op](a, 2) end, x)
		back(function(_, a) return a[op](a, {axis = {2, 3}}) end, x)
		back(function(_, a) return a[op](a, {axis = -1, keep = true}) end, x)
		back(function(_, a) return a:to 'int16'[op](a:to 'int16', 3) end, x)
	end
	back(function(_, a) return a:quantize {dtype = 'uint8', scale = 0.1, zero_point = 99}:argmax(2) end, x)
end)

it('sorts', function()
	back(function(_, a) return a:sort() end, x)
	back(function(_, a) return a:sort {axis = 2, descending = true} end, x)
	back(function(_, a) return a:topk(3, 2) end, x)
	back(function(_, a) return a:topk(2, {axis = -1, largest = false}) end, x)
	back(function(_, a) return (a:to 'int32':sort(2)) end, x)
end)

it('finds quantiles', function()
	back(function(_, a) return a:median {axis = 2} end, x)
	back(function(_, a) return a:to 'int32':median {axis = 3, keep = true} end, x)
	back(function(_, a) return a:quantile(0.3, {axis = {2, 3}}) end, x)
	back(function(self, a) return a:quantile(self.q, {axis = 3}) end, x, {parts = {q = tensor {0, 0.25, 1}}})
	out.refused('the batch among its axes', function(_, a) return a:median() end, x)
end)
