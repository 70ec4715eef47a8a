-- SPDX-License-Identifier: MIT
-- einsum, against products and sums written out.
local a = tensor{{1, 2, 3}, {4, 5, 6}}
local b = tensor{{1, -1}, {2, 0}, {3, 1}}
local v = tensor{1, 10, 100}
print(tensor.einsum('ij,jk->ik', a, b))  --> float32(2, 2)
                                         --> 14 2
                                         --> 32 2
print(tensor.einsum('ij,jk', a, b):metrics(a:matmul(b)).max)  --> 0.0
print(tensor.einsum('ij,j->i', a, v), tensor.einsum('ij, j', a, v))  --> float32(2) 321 654 float32(2) 321 654
print(tensor.einsum('i,i', v, v):item(), tensor.einsum('i,i->', v, v):dim())  --> 10101.0 0
print(tensor.einsum('i,j->ji', tensor{1, 2}, v)[2])  --> float32(2) 10 20
print(tensor.einsum('ij->ji', a)[3], tensor.einsum('ji', a)[3])  --> float32(2) 3 6 float32(2) 3 6
print(tensor.einsum('ij->', a):item(), tensor.einsum('ij->j', a))  --> 21.0 float32(3) 5 7 9
print(tensor.einsum('ij,ij->ij', a, a)[2], tensor.einsum('ij,ij->i', a, a))  --> float32(3) 16 25 36 float32(2) 14 77

-- diagonals, sums over letters of one operand
local s = tensor{{1, 2}, {3, 4}}
print(tensor.einsum('ii', s):item(), tensor.einsum('ii->i', s))  --> 5.0 float32(2) 1 4
print(tensor.einsum('ii,jk->jk', s, s)[1], tensor.einsum('ij,kl->', s, s):item())  --> float32(2) 5 10 100.0

-- batches and "..."
local x, y = tensor.zeros(2, 3, 4, 5), tensor.zeros(2, 3, 5, 2)
x:view(-1):copy_(tensor(1):expand(120):cumsum())
y:view(-1):copy_(tensor(0.5):expand(60):cumsum())
local want = x:matmul(y)
print(tensor.einsum('bhij,bhjk->bhik', x, y):metrics(want).max)  --> 0.0
print(tensor.einsum('...ij,...jk->...ik', x, y):metrics(want).max, tensor.einsum('...ij,...jk', x, y):metrics(want).max)  --> 0.0 0.0
print(tensor.einsum('bhij,bhjk->kihb', x, y):metrics(want:permute(4, 3, 2, 1)).max)  --> 0.0
print(tensor.einsum('...ij,jk->...ik', x, y[1][1]):metrics(x:matmul(y[1][1])).max)  --> 0.0
print(tensor.einsum('...->...', s)[2], tensor.einsum('i...->...', a))  --> float32(2) 3 4 float32(3) 5 7 9
print(tensor.einsum('bi,bj->bij', tensor{{1}, {2}}, tensor{{3, 4}}):view(-1))  --> float32(4) 3 4 6 8

-- dtypes are those of matmul
print(tensor.einsum('ij,jk->ik', a:to 'int8', b:to 'int8'):dtype(), tensor.einsum('ij->ji', a:to 'int8'):dtype())  --> int32 int8
print(tensor.einsum('ij->i', a:to 'int8'):dtype(), tensor.einsum('ij,jk->ik', a:to 'float64', b:to 'float64'):dtype())  --> int64 float64
local q = a:quantize 'int8'
print(tensor.einsum('ij,jk->ik', q, b):metrics(q:dequantize():matmul(b)).max)  --> 0.0
local same = tensor.einsum('ij->ij', a)
same[1][1] = 50
print(a[1][1])  --> 1

local function fails(...) return select(2, pcall(tensor.einsum, ...)) end
print(fails('ij,jk->ik', a, a))  --> ...einsum: operand 2, axis 1: wanted size 3, as where its letter stands before, got 2
print(fails('ijk->i', a))  --> ...einsum: operand 1: wanted 3 axes for 'ijk->i', got 2
print(fails('ij->ik', a))  --> ...every letter of the result in an operand, got 'ij->ik'
print(fails('ij->ii', a))  --> ...every letter of the result once, got...
print(fails('ij,jk->ik', a))  --> ...one term for each operand...
print(fails('ij->ji', a, b))  --> ...one term for each operand...
print(fails('i1->i', a))  --> ...
print(fails('ij>i', a))  --> ...wanted letters, ',', '...' and '->', got 'ij>i'
print(fails('ij->i->j', a))  --> ...one term after '->'...
print(fails(a, b))  --> ...einsum: equation: wanted...
-- three and more operands, from left to right; the first literal from PyTorch 2
do
	local steps, w = tensor.arange(0, 7):view(2, 2, 2):to 'float32', tensor.arange(0, 5):view(2, 3):to 'float32'
	print(tensor.einsum('bij,jk,bil->bkl', steps, w, steps):view(12))  --> float32(12) 18 30 28 46 38 62 186 222 300 358 414 494
	print(tensor.einsum('i,ij,j', tensor{1, 2}, tensor{{1, 2}, {3, 4}}, tensor{5, 6}):item())  --> 95.0
	print(tensor.einsum('...i,ij,...j->...', tensor.ones(3, 2), w, tensor.ones(1, 3)))  --> float32(3) 15 15 15
	local m = tensor.randn(4, 4):to 'float64'
	local eight = tensor.einsum('ab,bc,cd,de,ef,fg,gh,hi->ai', m, m, m, m, m, m, m, m)
	local four = m:matmul(m):matmul(m):matmul(m)
	assert((eight - four:matmul(four)):abs():max():item() < 1e-9 * four:matmul(four):abs():max():item())
	print(pcall(tensor.einsum, 'ij,jk', m, m, m))  --> false ...one term for each operand...
	print(pcall(tensor.einsum, 'ij,jk,kl->ij', m, m, tensor.zeros(3, 4)))  --> false ...operand 3, axis 1: wanted size 4...
end
