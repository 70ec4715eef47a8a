-- SPDX-License-Identifier: MIT
-- labels: quick
local out = dofile 'tests/tools/onnx_out.lua'
local back = out.back
tensor.seed(32)
local x, planes = tensor.randn(5, 6, 7), tensor.randn(3, 8, 4, 6)
local byte = {dtype = 'uint8', scale = 0.02, zero_point = 99}
local codes = {export = {form = 'integer'}}

it('writes slices with steps to both sides', function()
	for _, s in ipairs {{1, 6, 2}, {2, 5, 3}, {-5, -1, 2}, {6, 1, -1}, {6, 2, -2}, {-1, -6, -3}, {3, 6, 2}, {1, 1, -1}} do
		back(function(_, a) return a:slice(2, s[1], s[2], s[3]) end, x)
		back(function(_, a) return a:quantize(byte):slice(3, s[1], s[2], s[3]) end, x, codes)
	end
	back(function(_, a) return a:slice(2, 5, 2, 2) end, x)
end)

it('writes rolls and repeats', function()
	for _, shift in ipairs {0, 1, -2, 6, 13} do back(function(_, a) return a:roll(shift, 2) end, x) end
	back(function(_, a) return a:quantize(byte):roll(2, -1) end, x, codes)
	back(function(self, a) return a + self.w:roll(3):view(6, 7) end, x, {parts = {w = tensor.randn(42)}})
	back(function(_, a) return a:repeatinterleave(3, 2) end, x)
	back(function(self, a) return a:repeatinterleave(self.n, 3) end, x, {parts = {n = tensor {2, 0, 1, 3, 0, 1, 1, dtype = 'int64'}}})
	out.refused('an axis of the batch', function(_, a) return a:roll(1, 1) end, x)
end)

it('writes diagonals, and matrices that have them', function()
	for _, k in ipairs {0, 2, -3} do
		back(function(_, a) return a:diag {diagonal = k} end, x)
		back(function(self, a) return a:linear(self.w:diag {diagonal = k}) end, tensor.randn(4, 3 + math.abs(k)), {parts = {w = tensor.randn(3)}})
	end
end)

it('moves blocks between depth and space', function()
	for _, mode in ipairs {'dcr', 'crd'} do
		back(function(_, a) return a:depthtospace(2, {mode = mode}) end, planes)
		back(function(_, a) return a:spacetodepth(2, {mode = mode}) end, planes)
	end
	print(out.ops(function(_, a) return a:spacetodepth(2) end, planes))  --> SpaceToDepth
end)
