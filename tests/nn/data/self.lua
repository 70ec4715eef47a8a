-- SPDX-License-Identifier: MIT
-- labels: quick host
-- data.self: texts that a model writes are those of m:generate, fixed by the seed, and data for calibration.
tensor.seed(4)
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true) and not message:find '\n', message)
end
local OPTIONS = {vocab = 20, d = 16, heads = 4, layers = 1, ff = 24, context = 40}
local m = nn.Transformer(OPTIONS):eval()
m.embedding.weight:detach():mul_(20)

local function same(a, b) return a:nelem() == b:nelem() and a:eq(b):all():item() end

it('texts of a seed', function()
	local a, b, c = data.self(m, {texts = 20, steps = 12, seed = 3}), data.self(m, {texts = 3, steps = 12, seed = 3}), data.self(m, {texts = 3, steps = 12, seed = 4})
	assert(#a == 20 and #b == 3 and a[1][1]:dtype() == 'int64')
	for i = 1, 3 do assert(same(a[i][1], b[i][1]) and same(a[i][2], b[i][2]) and not same(b[i][1], c[i][1])) end
	for i, batch in ipairs(a) do
		assert(batch[1]:size(1) == 1 and batch[1]:size(2) == 12 and same(batch[1]:narrow(2, 2, 11), batch[2]:narrow(2, 1, 11)))
		local first = batch[1][1]:narrow(1, 1, 1)
		local text = m:generate(first, {steps = 12, temperature = 1, seed = 3 + i - 1})
		assert(same(text:narrow(1, 1, 12), batch[1][1]) and text[13]:item() == batch[2][1][12]:item())
	end
	tensor.seed(9)
	local want = tensor.rand(3)
	tensor.seed(9)
	data.self(m, {texts = 2, steps = 3})
	assert(same(tensor.rand(3), want)) -- random numbers of others go on
end)

it('what a text begins with, where it ends, batches', function()
	local list = data.self(m, {texts = 5, steps = 6, begin = {7, 8, 9}, eos = false, batch = 2})
	assert(#list == 3 and list[1][1]:size(1) == 2 and list[3][1]:size(1) == 1 and list[1][1]:size(2) == 8)
	for _, batch in ipairs(list) do assert(same(batch[1][1]:narrow(1, 1, 3), tensor {7, 8, 9, dtype = 'int64'})) end
	local ended, short = data.self(m, {texts = 12, steps = 20, eos = {1, 2, 3, 4, 5}}), 0
	for _, batch in ipairs(ended) do
		local y = batch[2][1]:totable()
		for i = 1, #y - 1 do assert(y[i] > 5) end
		if #y < 20 then short = short + 1 end
		assert(#y == 20 or y[#y] <= 5)
	end
	assert(short > 6, short)
	assert(data.self(m, {texts = 1})[1][1]:size(2) == 40) -- as much as the context holds
	local state = nn.Sequential {nn.Embedding(9, 6), nn.LSTM(6, 6), nn.Linear(6, 9)}
	assert(#data.self(state, {texts = 2, steps = 5}) == 2)
end)

it('calibrates', function()
	local calib = data.self(m, {texts = 4, steps = 16})
	local q, r = m:quantize {mode = 'weight_only', weight = 'int3:8', method = 'gptq', data = calib, log = false}
	assert(#r > 0 and q:evaluate(calib, {log = false}).count == 64)
end)

it('refusals', function()
	refused('self: wanted a language model, got 3', data.self, 3)
	refused('self: wanted a model from tokens (B, T) to logits (B, T, V), got Linear', data.self, nn.Linear(2, 2))
	refused('self: temperature: wanted a finite number above 0, got 0', data.self, m, {temperature = 0})
	refused('self: steps: wanted at most 40, that a text fits in the context of 40 tokens, got 41', data.self, m, {steps = 41})
	refused('self: begin: wanted at most 40 tokens (context=), got 41', data.self, m, {begin = tensor.ones {41, dtype = 'int64'}})
	refused('self: begin: wanted one text, got 2', data.self, m, {begin = {{1}, {2}}})
	refused("self: begin: wanted numbers of tokens, or a tokenizer= for texts, got text without one", data.self, m, {begin = 'Once'})
end)
