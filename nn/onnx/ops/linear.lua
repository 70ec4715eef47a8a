-- SPDX-License-Identifier: MIT
-- Products.
local ops = {}

function ops.MatMul(_, a, b) return a:matmul(b) end

-- alpha * a * b + beta * c
function ops.Gemm(n, a, b, c)
	local alpha, beta = n:attr('alpha', 1.0), n:attr('beta', 1.0)
	if n:attr('transA', 0) ~= 0 then a = a:t() end
	if c and beta ~= 1 then c = c * beta end
	if alpha ~= 1 then a = a * alpha end
	local w = n:attr('transB', 0) ~= 0 and b or n:turned(b)
	if c and c:dim() == 1 and c:size(1) == w:size(1) then return a:linear(w, c) end
	local y = a:linear(w)
	return c and y + c or y
end

function ops.Einsum(n, ...) return tensor.einsum(n:required('equation', 'text'), ...) end

return ops
