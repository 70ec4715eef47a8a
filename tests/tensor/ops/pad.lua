-- SPDX-License-Identifier: MIT
-- pad with elements of x and with negative sizes; literals from NumPy 2. A border of one value: arrange.lua.
local x = tensor.arange(1, 12):view(3, 4):to 'float32'
local function same(got, ...) assert(got:view(-1):eq(tensor{...}):all():item(), tostring(got)) end
same(x:pad{3, 1, 1, 2, mode='reflect'}, 8, 7, 6, 5, 6, 7, 8, 7, 4, 3, 2, 1, 2, 3, 4, 3, 8, 7, 6, 5, 6, 7, 8, 7, 12, 11, 10, 9, 10, 11, 12, 11, 8, 7, 6,
	5, 6, 7, 8, 7, 4, 3, 2, 1, 2, 3, 4, 3)
same(x:pad{3, 1, 1, 2, mode='edge'}, 1, 1, 1, 1, 2, 3, 4, 4, 1, 1, 1, 1, 2, 3, 4, 4, 5, 5, 5, 5, 6, 7, 8, 8, 9, 9, 9, 9, 10, 11, 12, 12, 9, 9, 9, 9, 10,
	11, 12, 12, 9, 9, 9, 9, 10, 11, 12, 12)
same(x:pad{3, 1, 1, 2, mode='wrap'}, 10, 11, 12, 9, 10, 11, 12, 9, 2, 3, 4, 1, 2, 3, 4, 1, 6, 7, 8, 5, 6, 7, 8, 5, 10, 11, 12, 9, 10, 11, 12, 9, 2, 3, 4,
	1, 2, 3, 4, 1, 6, 7, 8, 5, 6, 7, 8, 5)
print(tensor{1, 2, 3}:pad{7, 5, mode='reflect'})  --> float32(15) 2 3 2 1 2 3 2 1 2 3 2 1 2 3 2
print(tensor{1, 2, 3}:pad{7, 5, mode='wrap'})  --> float32(15) 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2
print(tensor{4}:pad{2, 1, mode='reflect'}, tensor{1, 2}:pad{0, 0, mode='edge'})  --> float32(4) 4 4 4 4 float32(2) 1 2
-- elements are removed first
print(tensor{1, 2, 3, 4}:pad(-1, 2), tensor{1, 2, 3, 4}:pad{-1, 2, mode='reflect'}, tensor{1, 2, 3, 4}:pad{2, -2, mode='wrap'})  --> float32(5) 2 3 4 0 0 float32(5) 2 3 4 3 2 float32(4) 1 2 1 2
print(tensor{1, 2}:pad(-1, -1):size(), tensor{1, 2}:pad(-2, 3), x:pad{-1, -1, 0, -2, value=3}:view(2))  --> 0 float32(3) 0 0 0 float32(2) 2 3
for _, dtype in ipairs{'float64', 'float16', 'int8', 'uint16', 'int64', 'bool', 'int4', 'uint4'} do
	local y = tensor{{1, 0, 1}, {0, 1, 1}}:to(dtype)
	for _, mode in ipairs{'reflect', 'edge', 'wrap'} do
		local o = {2, 1, -1, 2, mode=mode}
		local got = y:t():pad(o)
		assert(got:dtype() == dtype and got:to('int64'):eq(y:to('int64'):t():pad(o)):all():item(), dtype .. mode)
	end
end
local big = tensor.randn(3, 200, 90):permute(2, 3, 1)
it('wraps as indices do', function()
	local at = tensor.cat{tensor.arange(74, 90), tensor.arange(1, 90), tensor.arange(1, 30)}
	local along = tensor{3, 1, 2, 3, 1, 2, 3, 1, 2, 3, dtype='int64'}
	assert(big:pad{4, 3, 17, 30, mode='wrap'}:eq(big:indexselect(2, at):indexselect(3, along)):all():item())
end)
it('codes', function()
	local q = x:quantize 'uint8'
	for _, o in ipairs{{2, 1, mode='reflect'}, {1, 5, 2, 2, mode='edge'}, {-1, 2, 3, -1, mode='wrap'}, {-1, 2, 3, -1}, {-1, -1}} do
		local got = q:pad(o)
		assert(got:dtype() == 'uint8' and got:dequantize():eq(q:dequantize():pad(o)):all():item())
	end
	local four = x:quantize 'int4'
	print(four:pad{1, 1, mode='edge'}:dtype(), four:pad{1, 1}:dtype(), x:quantize('int8/1'):pad{1, 1, mode='edge'}:dtype())  --> int4 float32 float32
end)
print(pcall(x.pad, x, {1, 1, mode='edge', value=2}))  --> false ...pad: value: wanted none with mode='edge', got 2
print(pcall(x.pad, x, -3, -2))  --> false ...pad: sizes: wanted numbers that remove at most the 4 elements of axis 2, got -3 and -2
print(pcall(x.pad, x, {-4, 1, mode='wrap'}))  --> false ...pad: wanted elements along axis 2 for a border of mode='wrap', got none
print(pcall(x.pad, x, {1, 1, mode='replicate'}))  --> false ...pad: mode: wanted one of constant reflect edge wrap, got 'replicate'...
