-- SPDX-License-Identifier: MIT
-- cholesky, inversefactor and choleskyinverse: numbers from NumPy, bits of plain loops on every kernel level and number of threads,
-- identities, batches, views, errors.
local small = tensor{{4, 12, -16}, {12, 37, -43}, {-16, -43, 98}}
print(small:cholesky(), small:cholesky{upper=true}[1], small:to('float64'):cholesky():dtype())  --> float32(3, 3)
                                                                                                --> 2 0 0
                                                                                                --> 6 1 0
                                                                                                --> -8 5 3 float32(3) 2 6 -8 float64
print(small:cholesky():choleskyinverse() * 36)  --> float32(3, 3)
                                                --> 1777.0000 -488.0000 76.0000
                                                --> -488.0000 136.0000 -20.0000
                                                --> 76.0000 -20.0000 4.0000
-- numpy.linalg.cholesky(numpy.linalg.inv(small)).T
local by_numpy = tensor{{7.0257463, -1.92941148, 0.30048212}, {0, 0.23483851, 0.10304139}, {0, 0, 0.10101525}}
assert((small:inversefactor() - by_numpy):abs():max():item() < 1e-6, 'inversefactor by NumPy')

-- ---- the bits of plain loops ----

local sqrt = math.sqrt
local function matrix(n) local m = {} for i = 1, n do m[i] = {} for j = 1, n do m[i][j] = 0.0 end end return m end

local function lower(a)
	local n, l = #a, matrix(#a)
	for i = 1, n do
		for j = 1, i do
			local s = a[i][j]
			for k = 1, j - 1 do s = s - l[i][k] * l[j][k] end
			l[i][j] = i == j and sqrt(s) or s / l[j][j]
		end
	end
	return l
end

-- the inverse of an upper matrix, row by row from the last one
local function upper_inverse(t)
	local n, z = #t, matrix(#t)
	for i = n, 1, -1 do
		for j = i, n do
			local s = i == j and 1.0 or 0.0
			for k = j, i + 1, -1 do s = s - t[i][k] * z[k][j] end
			z[i][j] = s / t[i][i]
		end
	end
	return z
end

local function turned(a) local n, t = #a, matrix(#a) for i = 1, n do for j = 1, n do t[i][j] = a[j][i] end end return t end
local function reversed(a) local n, t = #a, matrix(#a) for i = 1, n do for j = 1, n do t[i][j] = a[n + 1 - i][n + 1 - j] end end return t end

local function inverse_factor(a) return reversed(turned(upper_inverse(turned(lower(reversed(a)))))) end

local function inverse(l)
	local n, z, y = #l, upper_inverse(turned(l)), matrix(#l)
	for i = 1, n do
		for j = i, n do
			local s = 0.0
			for k = j, n do s = s + z[i][k] * z[j][k] end
			y[i][j], y[j][i] = s, s
		end
	end
	return y
end

local function same(what, got, want)
	assert(got:eq(want):all():item(), what)
end

-- definite, with nan above the diagonal, which is not read
tensor.seed(11)
local function definite(n)
	local x = tensor.randn(n, n + 2):to 'float64'
	return x:matmul(x:t()) + tensor.eye(n):to 'float64' * 0.5
end
local function lower_only(h) return tensor.where(tensor.ones(h:size(1), h:size(1)):tril():gt(0), h, 0/0) end

local threads, level = tensor.threads(), hw.force()
for _, n in ipairs {1, 2, 7, 64, 65, 131} do
	local h = definite(n)
	local table_of = h:totable()
	local function double(t) return tensor{dtype='float64', table.unpack(t)} end
	local l, u = double(lower(table_of)), double(inverse_factor(table_of))
	local y = double(inverse(l:totable()))
	for _, at in ipairs {'ref', 'avx2', 'native'} do
		for _, count in ipairs {1, 3} do
			local what = ('n = %d at %s on %d threads'):format(n, at, count)
			hw.force(at)
			tensor.threads(count)
			same('cholesky: ' .. what, lower_only(h):cholesky(), l)
			same('cholesky, upper: ' .. what, lower_only(h):cholesky{upper=true}, l:t())
			same('inversefactor: ' .. what, lower_only(h):inversefactor(), u)
			same('choleskyinverse: ' .. what, lower_only(l):choleskyinverse(), y)
			same('choleskyinverse, upper: ' .. what, lower_only(l):t():choleskyinverse{upper=true}, y)
		end
	end
	hw.force(level)
	tensor.threads(threads)
	-- float32 is the float64 result of the same numbers, rounded once
	local f = h:to 'float32'
	same('float32', f:cholesky(), f:to('float64'):cholesky():to 'float32')
	same('float32', f:inversefactor(), f:to('float64'):inversefactor():to 'float32')
	local half = tensor.eye(n):to 'float16' * 4
	same('float16', half:cholesky(), tensor.eye(n):to 'float16' * 2)
	assert(half:inversefactor():dtype() == 'float16' and half:to('int32'):cholesky():dtype() == 'float32', 'dtypes')
	local error = (h:matmul(u:t():matmul(u)) - tensor.eye(n):to 'float64'):abs():max():item()
	assert(error < 1e-10, 'inversefactor is no factor of the inverse: ' .. error)
end

-- ---- batches and views ----

for _, n in ipairs {3, 66} do
	local all = tensor.stack{definite(n), definite(n), definite(n), definite(n), definite(n), definite(n)}:view(2, 3, n, n)
	local turned_batch = all:transpose(1, 2)   -- strided
	for _, op in ipairs {'cholesky', 'inversefactor', 'choleskyinverse'} do
		local given = op == 'choleskyinverse' and turned_batch:cholesky() or turned_batch
		local y = given[op](given)
		for i = 1, 3 do
			for j = 1, 2 do same(op .. ' of a batch', y[i][j], given[i][j][op](given[i][j]:contiguous())) end
		end
	end
	local part = tensor.full{n + 2, 2 * n + 3, value=7, dtype='float64'}
	local view = part:narrow(1, 2, n):slice(2, 2, 2 * n + 1, 2)
	view:copy_(all[1][1])
	same('cholesky of a view', view:cholesky(), all[1][1]:cholesky())
	same('inversefactor of a view', view:inversefactor(), all[1][1]:inversefactor())
end
print(tensor.zeros(0, 0):cholesky():nelem(), tensor.zeros(2, 0, 0):inversefactor():dim(), tensor.zeros(0, 3, 3):choleskyinverse():size(1))  --> 0 3 0

-- ---- errors ----

print(pcall(function() return tensor.ones(2, 3):cholesky() end))  --> false ...cholesky: wanted square matrices (…, n, n), got (2, 3)
print(pcall(function() return tensor.ones(3):inversefactor() end))  --> false ...inversefactor: wanted square matrices (…, n, n), got (3)
print(pcall(function() return tensor.ones(2, 2):cholesky() end))  --> false ...cholesky: wanted a symmetric positive definite matrix, got 0 as pivot 2; add a multiple of the identity
print(pcall(function() return tensor{{1, 2}, {2, 1}}:cholesky() end))  --> false ...cholesky: wanted a symmetric positive definite matrix, got -3 as pivot 2; add a multiple of the identity
print(pcall(function() return tensor{{1, 2}, {2, 1}}:inversefactor() end))  --> false ...inversefactor: wanted a symmetric positive definite matrix, got -3 as pivot 1; add a multiple of the identity
print(pcall(function() return tensor{{0/0}}:cholesky() end))  --> false ...cholesky: wanted a symmetric positive definite matrix, got nan as pivot 1; add a multiple of the identity
print(pcall(function() return tensor{{{1}}, {{-2}}}:cholesky() end))  --> false ...cholesky: wanted a symmetric positive definite matrix, got -2 as pivot 1 of matrix 2; add a multiple of the identity
print(pcall(function() return tensor{{1, 0}, {3, 0}}:choleskyinverse() end))  --> false ...choleskyinverse: wanted a factor without zeros on its diagonal, got 0 at place 2
local bad = definite(200)
bad[170][170] = -1
print(pcall(function() return bad:cholesky() end))  --> false ...cholesky: wanted a symmetric positive definite matrix, got ... as pivot 170; add a multiple of the identity
print(pcall(function() return bad:inversefactor() end))  --> false ...inversefactor: wanted a symmetric positive definite matrix, got ... as pivot 170; add a multiple of the identity
