-- SPDX-License-Identifier: MIT
-- Products.
local internal = select(2, ...)
local product = internal.import 'nn/tflite/product'
local ops = {}

function ops.FULLY_CONNECTED(n)
	if n:option('format', 0) ~= 0 then n:fail 'weights_format: wanted the default one, got a shuffled one' end
	local x, w = product.operand(n, n:plain(1)), product.weight(n, 2, {1, 2})
	local k, keep = w:size(2), n:option('keep', false) and x:dim() > 0
	if not keep or x:size(x:dim()) ~= k then
		if k == 0 or x:nelem() % k ~= 0 then n:fail('input: wanted a multiple of %d elements, got %d', k, x:nelem()) end
		if x:dim() ~= 2 or x:size(2) ~= k then x = n.whole(x):view(x:nelem() // k, k) end
	end
	local o, act = product.result(n, x, {}, 'exact')
	local b = product.bias(n, 3, x, 2)
	local y = b and x:linear(w, b, o) or x:linear(w, o)
	return n:give(n.under(y, act))
end

local function adjoint(x, wanted)
	if not wanted then return x end
	return x:transpose(x:dim() - 1, x:dim())
end

function ops.BATCH_MATMUL(n)
	local a, b = n:plain(1), n:plain(2)
	local out = a:quantized() and b:quantized() and n:spec(nil, 'double')
	if not out then a, b = n:real_plain(1), n:real_plain(2) end
	a, b = adjoint(a, n:option('adjoint_x', false)), adjoint(b, n:option('adjoint_y', false))
	if out then return a:matmul(b, {out = out}) end
	return n:give(a:matmul(b))
end

return ops
