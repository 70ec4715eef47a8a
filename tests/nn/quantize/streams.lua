-- SPDX-License-Identifier: MIT
-- m:rotate: the function stays, weights are those of the formula, and models without a stream are refused.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
local function model(o)
	tensor.seed(21)
	for name, value in pairs {vocab = 20, d = 32, heads = 2, layers = 2, ff = 40, context = 12} do o[name] = o[name] or value end
	local m = nn.Transformer(o)
	tensor.nograd(function() -- gains and biases that count
		for _, p in ipairs(m:parameters()) do p:add_(tensor.randn {p:size()}:mul_(0.2)) end
	end)
	return m
end
local ids = tensor.randint {6, 12, low = 1, high = 20}
local LLAMA = {norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false}
local function with(o)
	local all = {}
	for name, value in pairs(LLAMA) do all[name] = value end
	for name, value in pairs(o) do all[name] = value end
	return all
end

-- H of the size n by its recursion, in blocks of b, divided by sqrt(b).
local function blocks(n, b)
	local rows = {}
	for i = 1, n do
		rows[i] = {}
		for j = 1, n do
			local common, sign = (i - 1) & (j - 1) & (b - 1), 1
			while common > 0 do common, sign = common & (common - 1), -sign end
			rows[i][j] = (i - 1) // b == (j - 1) // b and sign / math.sqrt(b) or 0
		end
	end
	return tensor(rows)
end

it('keeps the function', function()
	for _, o in ipairs {LLAMA, with {tie = false, kvheads = 1}, with {d = 48, heads = 3}, with {d = 20}, {}, {d = 48}, {tie = false, act = 'relu'}, {bias = false}} do
		local m = model(o)
		local y = m(ids):detach()
		for seed = 1, 2 do
			local r = m:rotate {seed = seed}
			local off = r(ids):error(y).max
			assert(off < 1e-5 * math.max(1, y:abs():max():item()), off)
			assert(r.embedding.weight:error(m.embedding.weight).max > 0.1)
		end
	end
end)
it('multiplies by a Hadamard matrix with signs', function()
	for _, d in ipairs {32, 24} do
		local m = model(with {d = d, heads = 2, tie = false})
		local r = m:rotate()
		local b = d & -d
		local e = m.embedding.weight:detach()
		local turned = r.embedding.weight:detach():matmul(blocks(d, b)) -- H is its own inverse
		for j = 1, d do
			local ratio = turned:narrow(2, j, 1) / e:narrow(2, j, 1)
			assert((ratio:abs() - 1):abs():max():item() < 1e-3 and ratio:max():item() * ratio:min():item() > 0)
		end
	end
end)
it('gives norms no gains, and a shared head its own weight', function()
	local m = model(with {})
	assert(m.head.weight == m.embedding.weight)
	local r = m:rotate()
	assert(r.head.weight ~= r.embedding.weight and m.head.weight == m.embedding.weight)
	for _, norm in ipairs {r.norm, r[1].norm1, r[2].norm2} do assert((norm.weight - 1):abs():max():item() == 0) end
	local wanted = (m.embedding.weight * m.norm.weight):detach() -- the lengths of its rows stay
	print(r.head.weight:square():sum {axis = 2}:error(wanted:square():sum {axis = 2}).max < 1e-4)  --> true
end)
it('keeps the mean where norms subtract it', function()
	local m = model {d = 48}
	local r = m:rotate()
	assert(r.embedding.weight:mean {axis = 2}:error(m.embedding.weight:mean {axis = 2}).max < 1e-6)
	assert(r.norm.bias:abs():max():item() == 0 and r.head.bias ~= false)
end)
it('spreads outliers', function()
	local m = model(with {d = 64})
	tensor.nograd(function() m.embedding.weight:narrow(2, 8, 1):mul_(100) end)
	local function peak(w) return w:abs():max():item() / w:square():mean():sqrt():item() end
	local before, after = peak(m.embedding.weight:detach()), peak(m:rotate().embedding.weight:detach())
	assert(after < before / 2, ('%g %g'):format(before, after))
end)
it('refuses other models', function()
	refused('rotate: wanted a language model whose blocks add to one vector after a norm (nn.Transformer), got none', function() nn.Sequential {nn.Linear(4, 4)}:rotate() end)
	refused('rotate: wanted vectors of a size that 4 divides, got 6', function() model(with {d = 6, heads = 1}):rotate() end)
	refused("rotate: wanted float weights, got codes in 'embedding'", function() model(with {}):quantize {mode = 'weight_only'}:rotate() end)
	refused("rotate: seed: wanted integer, got", function() model(with {}):rotate {seed = 'x'} end)
end)
