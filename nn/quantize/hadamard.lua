-- SPDX-License-Identifier: MIT
-- Rotations of vectors by Hadamard matrices with random signs (QuaRot, arXiv 2404.00456): R = S H / sqrt(b), S = diag(±1), H of the size b,
-- the largest power of two that divides that of the vectors, along the diagonal. R = H S H / b with S[1] = 1 in each block keeps (1, 1, …), and so
-- the mean of a vector.
local hadamard = {}

-- The largest power of two that divides n.
function hadamard.block(n) return n & -n end

-- Each row of x (rows, n) times H in blocks of b, without 1 / sqrt(b).
local function transform(x, b)
	local rows, n = x:size()
	local h = 1
	while h < b do
		local pairs_of = x:reshape(rows * n // (2 * h), 2, h)
		local first, second = pairs_of:narrow(2, 1, 1), pairs_of:narrow(2, 2, 1)
		x, h = tensor.cat({first + second, first - second}, {axis = 2}), 2 * h
	end
	return x:reshape(rows, n)
end

-- The next number of splitmix64, for signs that do not depend on or change tensor.seed.
local function next_bits(state)
	state = state + 0x9E3779B97F4A7C15
	local z = (state ~ (state >> 30)) * 0xBF58476D1CE4E5B9
	z = (z ~ (z >> 27)) * 0x94D049BB133111EB
	return state, z ~ (z >> 31)
end

local function signs(n, seed)
	local list, state = {}, seed
	for i = 1, n do
		local bits
		state, bits = next_bits(state)
		list[i] = bits < 0 and -1 or 1
	end
	return list
end

-- The rotation of vectors of n numbers: {block=, turn(x) = x R}, the rows of x (…, n) in float64. mean: one that keeps the mean.
function hadamard.rotation(n, seed, mean)
	local b, s = hadamard.block(n), signs(n, seed)
	for i = 1, mean and n or 0, b do s[i] = 1 end
	local row = tensor {s, dtype = 'float64'}
	return {block = b, turn = function(x)
		local sizes = {x:size()}
		x = x:reshape(x:nelem() // n, n):to 'float64'
		local r = row:to(x:device())
		if mean then x = transform(x, b) end
		return (transform(x * r, b) / (mean and b or math.sqrt(b))):reshape(sizes)
	end}
end

return hadamard
