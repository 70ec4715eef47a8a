-- SPDX-License-Identifier: MIT
-- labels: quick
-- Attention and rotary positions of com.microsoft, against products and a softmax; onnxruntime 1.32 has the same results.
local onnx = dofile 'tests/tools/onnx.lua'
local equal = onnx.equal
tensor.seed(5)
local B, S, K, H, D, E = 2, 3, 5, 2, 4, 6
local function run(op, inputs, attrs, o)
	o = o or {}
	o.domain = 'com.microsoft'
	return onnx.run(op, inputs, attrs, o)
end

local function heads(x) return x:reshape(B, x:size(2), H, x:size(3) // H):transpose(2, 3) end
local function join(y) return y:transpose(2, 3):reshape(B, y:size(3), -1) end

-- o: scale, added, past
local function attend(q, k, v, o)
	local s = heads(q):matmul(k:transpose(3, 4)) * (o.scale or 1 / math.sqrt(D))
	return join((o.added and s + o.added or s):softmax(4):matmul(v))
end

local q, k, v = tensor.randn(B, S, H * D), tensor.randn(B, K, H * D), tensor.randn(B, K, H * E)
local low = -math.huge

it('attends', function()
	local attrs = {num_heads = H}
	assert(equal(run('MultiHeadAttention', {q, k, v}, attrs), attend(q, heads(k), heads(v), {})))
	assert(equal(run('MultiHeadAttention', {q, heads(k):contiguous(), heads(v):contiguous()}, attrs), attend(q, heads(k), heads(v), {})))
	local bias = tensor.randn(2 * H * D + H * E)
	local bq, bk, bv = bias:narrow(1, 1, H * D), bias:narrow(1, H * D + 1, H * D), bias:narrow(1, 2 * H * D + 1, H * E)
	assert(equal(run('MultiHeadAttention', {q, k, v, bias}, {num_heads = H, scale = 0.3}, {fixed = {4}}),
		attend(q + bq, heads(k + bk), heads(v + bv), {scale = 0.3})))
	local u = tensor.randn(B, K, H * D)
	local both = tensor.stack({k:view(B, K, H, D), u:view(B, K, H, D)}, {axis = 4})
	assert(equal(run('MultiHeadAttention', {q, both}, attrs), attend(q, heads(k), heads(u), {})))
	local all = tensor.stack({u:view(B, K, H, D), k:view(B, K, H, D), u:view(B, K, H, D)}, {axis = 4})
	assert(equal(run('MultiHeadAttention', {all}, attrs), attend(u, heads(k), heads(u), {})))
end)

it('masks', function()
	local attrs = {num_heads = H}
	local seen = tensor {{1, 1, 1, 0, 0}, {1, 1, 1, 1, 1}, dtype = 'int32'}
	local added = tensor.where(seen:ne(0), 0.0, -10000.0):view(B, 1, 1, K)
	assert(equal(run('MultiHeadAttention', {q, k, v, false, seen}, attrs), attend(q, heads(k), heads(v), {added = added})))
	assert(equal(run('MultiHeadAttention', {q, k, v, false, tensor {3, 5, dtype = 'int32'}}, attrs), attend(q, heads(k), heads(v), {added = added})))
	local rows = tensor.rand(B, S, K):gt(0.4):to 'int32'
	local bias = tensor.randn(1, H, S, K)
	assert(equal(run('MultiHeadAttention', {q, k, v, false, rows, bias}, {num_heads = H, mask_filter_value = -3.0}),
		attend(q, heads(k), heads(v), {added = tensor.where(rows:ne(0), 0.0, -3.0):unsqueeze(2) + bias})))
	assert(equal(run('MultiHeadAttention', {q, k, v, false, false, bias}, attrs), attend(q, heads(k), heads(v), {added = bias})))
end)

it('goes on from the keys before', function()
	local x, y, pk, pv = tensor.randn(B, S, H * D), tensor.randn(B, S, H * D), tensor.randn(B, H, 2, D), tensor.randn(B, H, 2, D)
	local z, keys, values = run('MultiHeadAttention', {q, x, y, false, false, false, pk, pv}, {num_heads = H, unidirectional = 1}, {outputs = 3})
	local want, other = tensor.cat({pk, heads(x)}, {axis = 3}), tensor.cat({pv, heads(y)}, {axis = 3})
	local ahead = tensor.arange(1, S + 2):view(1, S + 2) - tensor.arange(1, S):view(S, 1) - 2
	assert(equal(z, attend(q, want, other, {added = tensor.where(ahead:gt(0), low, 0.0)})) and equal(keys, want) and equal(values, other))
	local ok, message = pcall(run, 'MultiHeadAttention', {q, k}, {num_heads = H})
	assert(not ok and message:find 'key, value: wanted both, or packed ones, got fewer', message)
	ok, message = pcall(run, 'MultiHeadAttention', {q, k, v}, {num_heads = 3})
	assert(not ok and message:find 'query: wanted %(batch, rows, 3 heads %* d%)', message)
end)

it('turns', function()
	local cos, sin = tensor.randn(8, D // 2), tensor.randn(8, D // 2)
	local x = tensor.randn(B, H, S, D)
	local function turned(t, c, s, interleaved, n) -- c, s: broadcast to the pairs
		n = n or D
		local a, b
		if interleaved then
			local two = t:reshape(B, H, S, n // 2, 2)
			a, b = two:select(5, 1), two:select(5, 2)
			return tensor.stack({a * c - b * s, b * c + a * s}, {axis = 5}):reshape(B, H, S, n)
		end
		a, b = t:narrow(4, 1, n // 2), t:narrow(4, n // 2 + 1, n // 2)
		return tensor.cat({a * c - b * s, b * c + a * s}, {axis = 4})
	end
	local ids = tensor {{0, 1, 2}, {5, 3, 7}, dtype = 'int64'}
	for _, interleaved in ipairs {0, 1} do
		local attrs = {interleaved = interleaved}
		local c, s = cos:embedding(ids + 1):unsqueeze(2), sin:embedding(ids + 1):unsqueeze(2)
		assert(equal(run('RotaryEmbedding', {x, ids, cos, sin}, attrs), turned(x, c, s, interleaved == 1)))
		assert(equal(run('RotaryEmbedding', {x, ids, cos, sin}, attrs, {fixed = {2, 3, 4}}), turned(x, c, s, interleaved == 1)))
		c, s = cos:narrow(1, 3, S), sin:narrow(1, 3, S)
		local y = run('RotaryEmbedding', {join(x), tensor {2, dtype = 'int64'}, cos, sin}, attrs, {fixed = {3, 4}})
		assert(equal(y, join(turned(x, c, s, interleaved == 1))))
	end
	local wide = tensor.randn(B, H, S, 2 * D)
	local y = run('RotaryEmbedding', {wide, ids, cos, sin}, {rotary_embedding_dim = D, num_heads = H})
	local c, s = cos:embedding(ids + 1):unsqueeze(2), sin:embedding(ids + 1):unsqueeze(2)
	assert(equal(y, tensor.cat({turned(wide:narrow(4, 1, D), c, s), wide:narrow(4, D + 1, D)}, {axis = 4})))
	local ok, message = pcall(run, 'RotaryEmbedding', {x, tensor {1, 2, dtype = 'int64'}, cos, sin})
	assert(not ok and message:find 'position_ids: wanted one number, or one for each of 2 x 3, got 2', message)
end)
