-- SPDX-License-Identifier: MIT
-- depthtospace and spacetodepth; literals from onnx.reference 1.17 (dcr) and PyTorch's pixel_shuffle and pixel_unshuffle (crd).
local a = tensor.arange(1, 48):view(1, 8, 2, 3):to 'float32'
local function same(got, ...) assert(got:reshape(-1):eq(tensor{...}):all():item(), tostring(got)) end
same(a:depthtospace(2, 'crd'), 1, 7, 2, 8, 3, 9, 13, 19, 14, 20, 15, 21, 4, 10, 5, 11, 6, 12, 16, 22, 17, 23, 18, 24, 25, 31, 26, 32, 27, 33, 37, 43, 38, 44,
	39, 45, 28, 34, 29, 35, 30, 36, 40, 46, 41, 47, 42, 48)
same(a:depthtospace(2), 1, 13, 2, 14, 3, 15, 25, 37, 26, 38, 27, 39, 4, 16, 5, 17, 6, 18, 28, 40, 29, 41, 30, 42, 7, 19, 8, 20, 9, 21, 31, 43, 32, 44, 33,
	45, 10, 22, 11, 23, 12, 24, 34, 46, 35, 47, 36, 48)
same(tensor.arange(1, 24):view(1, 4, 6):spacetodepth(2, 'crd'), 1, 3, 5, 13, 15, 17, 2, 4, 6, 14, 16, 18, 7, 9, 11, 19, 21, 23, 8, 10, 12, 20, 22, 24)
same(tensor.arange(1, 48):view(1, 2, 4, 6):spacetodepth(2)['1, 1:4'], 1, 3, 5, 13, 15, 17, 25, 27, 29, 37, 39, 41, 2, 4, 6, 14, 16, 18, 26, 28, 30, 38,
	40, 42)
for _, mode in ipairs{'dcr', 'crd'} do
	for _, y in ipairs{tensor.randn(2, 3, 18, 2, 4), tensor.randn(18, 5, 2), tensor.randn(3, 4, 18):permute(3, 1, 2), tensor.zeros(0, 9, 2, 2)} do
		local wide = y:depthtospace(3, mode)
		assert(wide:size(-1) == y:size(-1) * 3 and wide:size(-3) == y:size(-3) // 9)
		assert(wide:spacetodepth(3, {mode=mode}):eq(y):all():item())
		local q = y:quantize 'int8'
		assert(q:depthtospace(3, mode):codes():eq(q:codes():depthtospace(3, mode)):all():item())
	end
end
local four = a:quantize 'int4'
assert(four:depthtospace(2):dequantize():eq(four:dequantize():depthtospace(2)):all():item())
print(a:depthtospace(1):eq(a):all():item(), a:to 'int4':depthtospace(2):dtype())  --> true int4
print(pcall(a.depthtospace, a, 3))  --> false ...depthtospace: wanted (…, c, h, w) with c a multiple of block * block, got block 3 and (1, 8, 2, 3)
print(pcall(a.spacetodepth, a, 2))  --> false ...spacetodepth: wanted (…, c, h, w) with h and w multiples of block, got block 2 and (1, 8, 2, 3)
print(pcall(a.depthtospace, a, 0))  --> false ...got block 0...
print(pcall(a.depthtospace, a, 2, 'x'))  --> false ...mode: wanted one of dcr crd, got 'x'...
print(pcall(function() return a:quantize 'int8/2':depthtospace(2) end))  --> false ...use :dequantize() first
