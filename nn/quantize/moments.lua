-- SPDX-License-Identifier: MIT
-- Second moments of the inputs of weights: H = X'X over all rows of the columns X that a layer multiplies its weight with. Products are
-- ordered float32 sums of a batch, batches are added in float64, so that the bits do not depend on the machine.
local moments = {}

-- Rows of a product: longer sums lose bits in float32.
local MOST = 4096

local function product(x)
	local t = x:dim() == 3 and x:permute(1, 3, 2) or x:t()
	return t:matmul(x):to 'float64'
end

-- Adds X'X of (rows, n), or (groups, rows, n), to h (nil: none yet).
function moments.add(h, x)
	local axis = x:dim() - 1
	local rows = x:size(axis)
	for i = 1, rows, MOST do
		local p = product(x:narrow(axis, i, math.min(MOST, rows - i + 1)):contiguous())
		h = h and h:add_(p) or p
	end
	return h
end

-- The sum of squares of the outputs' errors: tr(E H E') for the error E of a weight (outputs, inputs); groups share the outputs evenly.
function moments.error(h, e)
	e = e:to 'float64'
	if h:dim() == 3 then e = e:view(h:size(1), e:size(1) // h:size(1), e:size(2)) end
	return e:matmul(h):mul(e):sum():item()
end

return moments
