-- SPDX-License-Identifier: MIT
-- labels: quick
local onnx = dofile 'tests/tools/onnx.lua'
local run, equal = onnx.run, onnx.equal
tensor.seed(7)

-- Attention by its formula: seen(b, h, i, j) or nil for all, added(b, h, i, j); also probabilities and scores before them.
local function formula(q, k, v, o)
	local Q, K, V = q:totable(), k:totable(), v:totable()
	local scale, y, p, s = o.scale or 1 / math.sqrt(q:size(4)), {}, {}, {}
	for b = 1, #Q do
		y[b], p[b], s[b] = {}, {}, {}
		for h = 1, #Q[b] do
			local from = (h - 1) // (#Q[b] // #K[b]) + 1
			y[b][h], p[b][h], s[b][h] = {}, {}, {}
			for i = 1, #Q[b][h] do
				local e, sum, row, out = {}, 0, {}, {}
				for j = 1, #K[b][from] do
					local dot = 0
					for d = 1, #Q[b][h][i] do dot = dot + Q[b][h][i][d] * K[b][from][j][d] end
					dot = dot * scale
					if o.softcap then dot = o.softcap * (1 - 2 / (math.exp(2 * dot / o.softcap) + 1)) end
					row[j] = dot + (o.added and o.added(b, h, i, j) or 0)
					e[j] = (not o.seen or o.seen(b, h, i, j)) and math.exp(row[j]) or 0
					sum = sum + e[j]
				end
				for j = 1, #e do
					e[j] = sum == 0 and 0 or e[j] / sum
					for d, x in ipairs(V[b][from][j]) do out[d] = (out[d] or 0) + e[j] * x end
				end
				y[b][h][i], p[b][h][i], s[b][h][i] = out, e, row
			end
		end
	end
	return y, p, s
end

local q, k, v = tensor.randn(2, 4, 3, 6), tensor.randn(2, 2, 5, 6), tensor.randn(2, 2, 5, 3)

it('attends with fewer heads of keys, in three and four axes', function()
	local want = formula(q, k, v, {})
	assert(equal(run('Attention', {q, k, v}, nil, {opset = 23}), want))
	local function joined(x) return x:transpose(2, 3):reshape(2, x:size(3), x:size(2) * x:size(4)) end
	local y = run('Attention', {joined(q), joined(k), joined(v)}, {q_num_heads = 4, kv_num_heads = 2, scale = 0.3}, {opset = 23})
	assert(equal(y, joined(tensor((formula(q, k, v, {scale = 0.3}))))))
end)

it('masks by position', function()
	local causal = run('Attention', {q, k, v}, {is_causal = 1}, {opset = 23}) -- from the first key
	assert(equal(causal, (formula(q, k, v, {seen = function(_, _, i, j) return j <= i end}))))
	local near = run('Attention', {q, k, v}, {left_window_size = 1, right_window_size = 2}, {opset = 25})
	assert(equal(near, (formula(q, k, v, {seen = function(_, _, i, j) return j >= i - 1 and j <= i + 2 end}))))
	local n = tensor {2, 5, dtype = 'int64'}
	local valid = run('Attention', {q, k, v, false, false, false, n}, nil, {opset = 24})
	assert(equal(valid, (formula(q, k, v, {seen = function(b, _, _, j) return j <= (b == 1 and 2 or 5) end}))))
	-- Of 2 keys the first of 3 queries sees none: 0.
	valid = run('Attention', {q, k, v, false, false, false, n}, {is_causal = 1}, {opset = 24})
	assert(equal(valid, (formula(q, k, v, {seen = function(b, _, i, j) return j <= i + (b == 1 and 2 or 5) - 3 end}))))
	assert(valid[1][1][1]:abs():max():item() == 0)
end)

it('takes masks of numbers and bools, also short ones', function()
	local numbers = tensor.randn(3, 4)
	local list = numbers:totable()
	local y, _, _, s = run('Attention', {q, k, v, numbers}, {qk_matmul_output_mode = 2}, {opset = 24, outputs = 4})
	local o = {added = function(_, _, i, j) return list[i][j] or -1 / 0 end}
	local want, _, scores = formula(q, k, v, o)
	assert(equal(y, want) and equal(s:narrow(4, 1, 4), tensor(scores):narrow(4, 1, 4)))
	local bools = tensor {{true, false, true, true}, {false, false, false, false}, {true, true, true, false}}
	local seen = bools:totable()
	for _, fixed in ipairs {{}, {4}} do
		local p
		y, _, _, p = run('Attention', {q, k, v, bools}, {qk_matmul_output_mode = 3, softcap = 2.0}, {opset = 24, outputs = 4, fixed = fixed})
		local wanted, all = formula(q, k, v, {softcap = 2, seen = function(_, _, i, j) return seen[i][j] end})
		assert(equal(y, wanted) and equal(p, all))
	end
end)

it('goes on from the keys before', function()
	local y, pk, pv = run('Attention', {q, k:narrow(3, 3, 3), v:narrow(3, 3, 3), false, k:narrow(3, 1, 2), v:narrow(3, 1, 2)}, {is_causal = 1}, {opset = 23, outputs = 3})
	assert(equal(y, (formula(q, k, v, {seen = function(_, _, i, j) return j <= i + 2 end}))) and equal(pk, k) and equal(pv, v))
	local ok, message = pcall(run, 'Attention', {q, k, v, false, k}, nil, {opset = 23})
	assert(not ok and message:find 'past_key, past_value: wanted both or none, got one', message)
	ok, message = pcall(run, 'Attention', {q, k, v}, {qk_matmul_output_mode = 5}, {opset = 23, outputs = 4})
	assert(not ok and message:find 'qk_matmul_output_mode: wanted 0 to 3, got 5', message)
end)

it('turns pairs of numbers', function()
	local x = tensor.randn(2, 1, 2, 6) -- (batch, heads, steps, width)
	local angle = tensor {{0.1, 0.2}, {0.5, -0.3}, {1, 2}}
	local ids = tensor {{2, 0}, {1, 1}, dtype = 'int64'}
	for _, near in ipairs {0, 1} do
		local y = run('RotaryEmbedding', {x, angle:cos(), angle:sin(), ids}, {interleaved = near, rotary_embedding_dim = 4}, {opset = 23})
		local Y, X, A, P = y:totable(), x:totable(), angle:totable(), ids:totable()
		for b = 1, 2 do
			for t = 1, 2 do
				for i = 1, 2 do
					local first, second = near == 1 and 2 * i - 1 or i, near == 1 and 2 * i or i + 2
					local from, turn = X[b][1][t], A[P[b][t] + 1][i]
					local real, imag = from[first] * math.cos(turn) - from[second] * math.sin(turn), from[first] * math.sin(turn) + from[second] * math.cos(turn)
					assert(math.abs(Y[b][1][t][first] - real) < 1e-5 and math.abs(Y[b][1][t][second] - imag) < 1e-5)
				end
				assert(Y[b][1][t][5] == X[b][1][t][5] and Y[b][1][t][6] == X[b][1][t][6])
			end
		end
	end
	local flat = run('RotaryEmbedding', {x:view(2, 2, 6), angle:cos():narrow(1, 1, 2):unsqueeze(1):expand(2, 2, 2), angle:sin():narrow(1, 1, 2):unsqueeze(1):expand(2, 2, 2)},
		{num_heads = 1, rotary_embedding_dim = 4}, {opset = 23})
	local want = run('RotaryEmbedding', {x, angle:cos(), angle:sin(), tensor {{0, 1}, {0, 1}, dtype = 'int64'}}, {rotary_embedding_dim = 4}, {opset = 23})
	assert(equal(flat, want:view(2, 2, 6)))
	local ok, message = pcall(run, 'RotaryEmbedding', {x, angle, angle, ids}, nil, {opset = 23})
	assert(not ok and message:find 'rotary_embedding_dim: wanted an even number up to 6', message)
end)

it('keeps the batch', function()
	local g = onnx.load {opset = 24, nodes = {onnx.node('Attention', {'q', 'k', 'k', '', '', '', 'l'}, {'y'}, {q_num_heads = 2, kv_num_heads = 1, is_causal = 1, softcap = 2.0})},
		inputs = {{'q', 'float32', {'n', 4, 6}}, {'k', 'float32', {'n', 4, 3}}, {'l', 'int64', {'n'}}}, outputs = {'y'}}
	local a, b, lens = tensor.randn(3, 4, 6), tensor.randn(3, 4, 3), tensor {4, 2, 3, dtype = 'int64'}
	local y = g:run {a, b, lens}
	for i = 1, 3 do assert(equal(g:run {a:narrow(1, i, 1), b:narrow(1, i, 1), lens:narrow(1, i, 1)}, y:narrow(1, i, 1))) end
end)

it('is one op of Quoll', function()
	local function ops_of(op, inputs, attrs, opset, outputs)
		local names, values = {}, {}
		for i, t in ipairs(inputs) do
			names[i] = t and 'x' .. i or ''
			if t then values[#values + 1] = {names[i], t:dtype(), {t:size()}} end
		end
		local g = onnx.load {nodes = {onnx.node(op, names, outputs or {'y'}, attrs)}, inputs = values, outputs = {'y'}, opset = opset}
		local list = {}
		for _, name in ipairs(g.order) do
			local node = g:node(name)
			if node.op ~= 'input' and node.op ~= 'const' then list[#list + 1] = node.op end
		end
		return table.concat(list, ' ')
	end
	local mask, n = tensor.randn(3, 5), tensor {2, 5, dtype = 'int64'}
	local all = tensor.randn(2, 2, 3, 6)
	assert(ops_of('Attention', {q, k, v, mask}, {softcap = 3.0}, 24) == 'attention')
	assert(ops_of('Attention', {q, k, v, mask:gt(0), false, false, n}, nil, 24) == 'attention')
	assert(ops_of('Attention', {q, all, all}, {is_causal = 1}, 24) == 'attention')
	assert(ops_of('Attention', {q, k, v}, {left_window_size = 1}, 25) == 'attention')
	assert(ops_of('Attention', {q, k, v}, {softmax_precision = 11}, 24):find 'softmax')
	local table_ = tensor.randn(2, 3, 3)
	assert(ops_of('RotaryEmbedding', {q, table_, table_}, nil, 23) == 'expand expand rope')
end)
