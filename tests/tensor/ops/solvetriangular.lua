-- SPDX-License-Identifier: MIT
-- solvetriangular: numbers from PyTorch 2, bits of a plain substitution on every kernel level and number of threads, all options,
-- broadcasting, views, errors.
local x = tensor{{2, 5, -1}, {3, 4, 7}, {-1, 2, 8}}
local b = tensor{{4, -2}, {6, 1}, {8, 3}}
-- torch.linalg.solve_triangular
print(x:solvetriangular(b))  --> float32(3, 2)
                             --> 2.0000 -1.0000
                             --> 0.0000 1.0000
                             --> 1.2500 0.0000
print(x:solvetriangular(b, {upper=true}))  --> float32(3, 2)
                                           --> 3.1250 0.2031
                                           --> -0.2500 -0.4062
                                           --> 1.0000 0.3750
print(x:solvetriangular(b, {unit=true})[3], x:solvetriangular(b:t(), {left=false, upper=true})[1])  --> float32(2) 24.0000 -13.0000 float32(3) 2.0000 -1.0000 2.1250
print(tensor{{2, 0}, {1, 0}}:solvetriangular(tensor{{2}, {3}}):view(2), tensor{{2}}:to('float64'):solvetriangular(tensor{{1}}):dtype())  --> float32(2) 1 inf float64

-- ---- the bits of a plain substitution ----

-- t X = b for triangular t, b and X as lists of rows
local function substitute(t, b, upper, unit)
	local n, y = #t, {}
	for step = 1, n do
		local i = upper and n + 1 - step or step
		y[i] = {}
		for c = 1, #b[1] do
			local s = b[i][c]
			for before = 1, step - 1 do
				local k = upper and n + 1 - before or before
				s = s - t[i][k] * y[k][c]
			end
			y[i][c] = unit and s or s / t[i][i]
		end
	end
	return y
end

local function double(t) return tensor{dtype='float64', table.unpack(t)} end

-- X of the op, by lists; a transposed lower triangle is an upper one
local function by_hand(t, b, o)
	local left = o.left ~= false
	local op = o.transpose and t:t() or t
	op = left and op or op:t()
	local y = double(substitute(op:totable(), (left and b or b:t()):totable(), o.upper ~= (o.transpose == left), o.unit))
	return left and y or y:t()
end

local options = {}
for i = 0, 15 do options[#options + 1] = {upper=i % 2 == 1, transpose=i & 2 > 0, unit=i & 4 > 0, left=i & 8 > 0} end

tensor.seed(5)
local threads, level = tensor.threads(), hw.force()
for _, s in ipairs {{1, 1}, {3, 2}, {17, 70}, {64, 5}, {67, 9}, {131, 3}} do
	local n, m = s[1], s[2]
	local full = tensor.randn(n, n):to 'float64' * (1 / n) + tensor.eye(n):to 'float64'
	for i, o in ipairs(options) do
		-- what is not to be read is nan
		local keep = o.upper and tensor.ones(n, n):triu(o.unit and 1 or 0) or tensor.ones(n, n):tril(o.unit and -1 or 0)
		local t = tensor.where(keep:gt(0), full, 0/0)
		local side = tensor.randn(o.left and n or m, o.left and m or n):to 'float64'
		local want = by_hand(t, side, o)
		for _, at in ipairs(n > 64 and {'ref', 'avx2', 'native'} or {'ref', 'native'}) do
			for _, count in ipairs {1, 3} do
				hw.force(at)
				tensor.threads(count)
				assert(t:solvetriangular(side, o):eq(want):all():item(), ('%d, %d, option %d at %s on %d threads'):format(n, m, i, at, count))
			end
		end
		hw.force(level)
		tensor.threads(threads)
		-- strided operands; float32 is rounded once
		assert(t:t():contiguous():t():solvetriangular(side:t():contiguous():t(), o):eq(want):all():item(), 'views')
		local f, g = t:to 'float32', side:to 'float32'
		assert(f:solvetriangular(g, o):eq(f:to('float64'):solvetriangular(g:to 'float64', o):to 'float32'):all():item(), 'float32')
	end
end

-- ---- batches ----

for _, n in ipairs {4, 66} do
	for _, o in ipairs(options) do
		local t = tensor.randn(2, 1, n, n):to 'float64' * (1 / n) + tensor.eye(n):to 'float64'
		local side = (o.left and tensor.randn(3, n, 2) or tensor.randn(3, 2, n)):to 'float64'
		local y = t:solvetriangular(side, o)
		assert(y:dim() == 4 and y:size(1) == 2 and y:size(2) == 3, 'shape of a batch')
		for i = 1, 2 do
			for j = 1, 3 do assert(y[i][j]:eq(t[i][1]:solvetriangular(side[j], o)):all():item(), 'a batch') end
		end
	end
end
print(tensor.zeros(0, 0):solvetriangular(tensor.zeros(0, 3)):size(2), tensor.eye(2):solvetriangular(tensor.zeros(2, 0)):size(1))  --> 3 2
print(tensor.zeros(0, 2, 2):solvetriangular(tensor.ones(2, 3)):dim(), tensor.eye(2):to('int32'):solvetriangular(tensor{{1}, {2}}:to 'int8'):view(2))  --> 3 float32(2) 1 2
print(tensor.eye(2):to('float16'):solvetriangular(tensor{{1}, {2}}:to 'float16'):dtype())  --> float16

-- ---- errors ----

print(pcall(function() return tensor.ones(2, 3):solvetriangular(tensor.ones(2, 1)) end))  --> false ...solvetriangular: wanted square matrices (…, n, n) and b (…, n, m), got (2, 3) and (2, 1)
print(pcall(function() return tensor.ones(2, 2):solvetriangular(tensor.ones(2), {left=false}) end))  --> false ...solvetriangular: wanted square matrices (…, n, n) and b (…, m, n), got (2, 2) and (2)
print(pcall(function() return tensor.ones(2, 2):solvetriangular(tensor.ones(3, 1)) end))  --> false ...solvetriangular: wanted equal inner sizes (…, m, k) x (…, k, n), got (2, 2) x (3, 1)
print(pcall(function() return tensor.ones(2, 2, 2):solvetriangular(tensor.ones(3, 2, 1)) end))  --> false ...solvetriangular: wanted batch sizes that broadcast, got (2, 2, 2) x (3, 2, 1)
