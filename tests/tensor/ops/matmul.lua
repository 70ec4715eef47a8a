-- SPDX-License-Identifier: MIT
-- Products of plain tensors; batched values from NumPy's rules, integers exact.
local a, b = tensor{{1, 2}, {3, 4}, {5, 6}}, tensor{{7, 8, 9}, {10, 11, 12}}
print(a:matmul(b))  --> float32(3, 3)
                    -->  27  30  33
                    -->  61  68  75
                    -->  95 106 117
print(a:matmul(tensor{1, -1}), tensor{1, 0, -1}:matmul(a), tensor{1, 2}:matmul(tensor{3, 4}))  --> float32(3) -1 -1 -1 float32(2) -4 -4 11
print(a:t():matmul(b:t())[2])  --> float32(2) 100 136
print(pcall(a.matmul, a, a))  --> false ...matmul: wanted equal inner sizes (…, m, k) x (…, k, n), got (3, 2) x (3, 2)
print(pcall(a.matmul, a, tensor(3)))  --> false ...at least one axis, got (3, 2) x ()
local x = tensor{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}:view(2, 3, 2)
print(x:matmul(b):size())  --> 2 3 3
print(x:matmul(b)[2][3])  --> float32(3) 197 220 243
print(x:view(2, 1, 3, 2):matmul(x:transpose(2, 3)):size())  --> 2 2 3 3
print(pcall(x.matmul, x, tensor.zeros(3, 2, 4)))  --> false ...batch sizes that broadcast...
print(tensor.zeros(0, 2):matmul(b):size(1), tensor.zeros(2, 0):matmul(tensor.zeros(0, 3)))  --> 0 float32(2, 3)
                                                                                        -->  0 0 0
                                                                                        -->  0 0 0
print(a:to('float64'):matmul(b:to 'float64'):dtype(), a:to('float16'):matmul(b:to 'float16'):dtype())  --> float64 float16
print(a:to('float16'):matmul(b:to('bfloat16')):dtype())  --> float32

describe('plain integers', function()
	local i8, u8 = tensor{-128, 127}:to 'int8', tensor{255, 3}:to 'uint8'
	it('give exact wider integers', function()
		assert(i8:matmul(u8):dtype() == 'int32' and i8:matmul(u8):item() == -128 * 255 + 127 * 3)
		assert(i8:to('int16'):matmul(u8):dtype() == 'int64')
		local w = tensor({-32768, -32768, dtype = 'int16'})
		assert(w:matmul(w):item() == 2147483648)
		local l = tensor({3000000000, 5, dtype = 'int64'})
		assert(l:matmul(l):item() == 9000000000000000025)
		assert(tensor({true, false}):matmul(tensor({true, true})):item() == 1)
	end)
	it('say so when a sum does not fit', function()
		local l = tensor({3037000500, 3037000500, dtype = 'int64'})
		local ok, message = pcall(l.matmul, l, l)
		assert(not ok and message:find 'int64', message)
	end)
	it('take dtype=', function()
		assert(i8:matmul(i8, {dtype = 'int64'}):dtype() == 'int64')
		assert(not pcall(i8.matmul, i8, i8, {dtype = 'int8'}))
		assert(not pcall(a.matmul, a, b, {dtype = 'int32'}))
	end)
end)

-- float64: products added in order of k, in a plain loop or in tiles, on every level and number of threads
do
	local threads, level = tensor.threads(), hw.force()
	for _, s in ipairs {{2, 3, 5}, {19, 35, 70}, {70, 1, 300}, {1, 70, 300}} do
		local left, right, want = tensor.randn(s[1], s[3]):to 'float64', tensor.randn(s[2], s[3]):to('float64'):t(), {dtype='float64'}
		local rows, columns = left:totable(), right:t():totable()
		for i = 1, s[1] do
			want[i] = {}
			for j = 1, s[2] do
				local sum = 0.0
				for k = 1, s[3] do sum = sum + rows[i][k] * columns[j][k] end
				want[i][j] = sum
			end
		end
		for _, at in ipairs {'ref', 'avx2', 'native'} do
			for _, count in ipairs {1, 3} do
				hw.force(at)
				tensor.threads(count)
				assert(left:matmul(right):eq(tensor(want)):all():item(), at .. ': float64 in order of k')
				assert(left:t():contiguous():t():matmul(right:contiguous()):eq(tensor(want)):all():item(), at .. ': layouts')
			end
		end
	end
	tensor.threads(threads)
	hw.force(level)
end
