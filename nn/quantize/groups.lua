-- SPDX-License-Identifier: MIT
-- The groups of a matrix's elements that share a scale under a spec, and scales of a method's own for them: in the shape in which specs
-- take them, in float16 where those that x:quantize finds are float16.
local _, internal = ...
local like = internal.import 'quant/like'

-- Smallest and largest normal numbers, by the bits of a dtype.
local LEAST = {[16] = 2 ^ -14, [32] = 1e-38}
local MOST = {[16] = 65504, [32] = 3e38}

local Groups = {}
Groups.__index = Groups

-- Whether the scales of a matrix belong to parts of its columns, not of its rows.
function Groups.across(spec)
	if spec.block then return spec.axis == 1 or spec.axis == -2 end
	return spec.axis == 2 or spec.axis == -1
end

-- rows, n: of the matrix in whose rows the groups follow each other; size, count: elements of a group and groups of a row.
function Groups.of(w, spec)
	local rows, n = w:size(1), w:size(2)
	local across = Groups.across(spec)
	if across then rows, n = n, rows end
	if not spec.block and not spec.axis then rows, n = 1, rows * n end
	local size = spec.block or n
	return setmetatable({spec = spec, across_rows = across, shape = {w:size()}, rows = rows, n = n, size = size, count = (n + size - 1) // size}, Groups)
end

-- Elements in the order of the groups: (rows, n).
function Groups:lines(x)
	if self.across_rows then x = x:t() end
	return x:reshape(self.rows, self.n)
end

-- (rows, count, size); a last group with fewer elements repeats its last one.
function Groups:split(x)
	x = self:lines(x)
	local more = self.count * self.size - self.n
	if more > 0 then x = tensor.cat({x, x:narrow(2, self.n, 1):repeatinterleave(more, {axis = 2})}, {axis = 2}) end
	return x:contiguous():view(self.rows, self.count, self.size)
end

-- 1 for each element of split that is one of the matrix, 0 for those that are repeated: (1, count, size).
function Groups:valid(device)
	local at = tensor.arange(1, self.count * self.size, {device = device})
	return at:le(self.n):to 'float32':view(1, self.count, self.size)
end

-- Sums over the elements of each group: (rows, count).
function Groups:sum(x)
	x = self:lines(x)
	local more = self.count * self.size - self.n
	if more > 0 then x = tensor.cat({x, tensor.zeros {self.rows, more, dtype = x:dtype(), device = x:device()}}, {axis = 2}) end
	return x:contiguous():view(self.rows, self.count, self.size):sum {axis = 3}
end

-- A number of each group, (rows, count), for each element: of the matrix's shape.
function Groups:spread(s)
	if self.size > 1 then s = s:repeatinterleave(self.size, {axis = 2}):narrow(2, 1, self.n) end
	if self.across_rows then s = s:t() end
	return s:reshape(self.shape[1], self.shape[2])
end

-- Numbers of q:qparams() as (rows, count), in float32.
function Groups:read(s)
	s = s:to 'float32'
	if self.across_rows and self.spec.block then s = s:t() end
	return s:reshape(self.rows, self.count)
end

-- The other way.
local function numbers(g, s, dtype)
	if g.spec.block then return (g.across_rows and s:t() or s):contiguous():to(dtype) end
	return s:reshape(s:nelem()):to(dtype)
end

-- The spec with these scales, zero points and minimums, (rows, count) each; dtype: in which scales and minimums are stored.
function Groups:with(scale, zero, minimum, dtype)
	local spec, bits = self.spec, quant.dtype(dtype).bits
	return like.spec(spec, {axis = spec.axis, block = spec.block,
		scale = numbers(self, scale:clamp {low = LEAST[bits], high = MOST[bits]}, dtype), zero_point = zero and numbers(self, zero, 'int32') or nil,
		minimum = minimum and numbers(self, minimum:clamp {low = -MOST[bits], high = MOST[bits]}, dtype) or nil})
end

return Groups
