-- SPDX-License-Identifier: MIT
-- labels: quick host
-- m:generate: rows of a batch as alone, ways of drawing, ends, streams, texts, formats of the cache, long texts.
tensor.seed(4)
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true) and not message:find '\n', message)
end

local KINDS = {
	gpt = {vocab = 20, d = 16, heads = 4, layers = 2, ff = 32, context = 24},
	llama = {vocab = 20, d = 16, heads = 4, kvheads = 2, layers = 2, ff = 24, context = 24, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false},
	scaled = {vocab = 20, d = 16, heads = 2, layers = 2, ff = 24, context = 24, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false, window = {5, 0},
		softcap = 3, ropescaling = {type = 'llama3', factor = 4, lowfreqfactor = 1, highfreqfactor = 4, original = 12}},
}
local models = {}
for name, o in pairs(KINDS) do
	models[name] = nn.Transformer(o):eval()
	models[name].embedding.weight:detach():mul_(20) -- texts that vary
end
local llama = models.llama
local ROWS = {{1, 2, 3}, {7}, {4, 5, 6, 7, 8, 9, 10}, {3, 3}}

local function same(a, b) return a:nelem() == b:nelem() and a:eq(b):all():item() end

-- What the model says without a cache, the likeliest token first.
local function plain(m, ids, steps)
	ids = table.move(ids, 1, #ids, 1, {})
	for _ = 1, steps do
		local y = tensor.nograd(function() return m(tensor {ids, dtype = 'int64'}) end)
		ids[#ids + 1] = y:select(2, -1):argmax(-1):item()
	end
	return tensor(ids):to 'int64'
end

it('the likeliest tokens are those of the whole text', function()
	for _, m in pairs(models) do
		local all, why, n = m:generate(ROWS, {steps = 12, ends = true})
		for i, row in ipairs(ROWS) do assert(same(all[i], plain(m, row, 12)) and why[i] == 'length' and n[i] == 12) end
		assert(same(m:generate({4, 5, 6}, {steps = 5}), plain(m, {4, 5, 6}, 5)) and not m.training)
	end
end)

it('each row of a batch is what it is alone', function()
	local options = {{}, {temperature = 0.9, seed = 5}, {topk = 3, seed = 1}, {topp = 0.7, temperature = 1.5, seed = 9},
		{minp = 0.2, seed = 2, repetition = 1.3}, {kv = 'int8'}, {kv = 'float16'}, {kv = {k = 'int8:4', v = 'uint8'}}, {stop = {3, 4}}, {steps = 60, seed = 3}}
	for name, m in pairs(models) do
		for _, o in ipairs(options) do
			o.steps, o.ends = o.steps or 12, true
			local all, why, n = m:generate(ROWS, o)
			for i, row in ipairs(ROWS) do
				local alone = {}
				for key, value in pairs(o) do alone[key] = value end
				alone.seed = o.seed and o.seed + i - 1
				local ids, reason, count = m:generate(row, alone)
				assert(same(ids, all[i]) and reason == why[i] and count == n[i], name .. i)
			end
		end
	end
end)

it('drawing: seeds, threads, the random numbers of tensor.seed', function()
	local o, before = {steps = 20, temperature = 1.2, topp = 0.9, seed = 7}, tensor.threads()
	local a = llama:generate({1, 2}, o)
	tensor.threads(before == 1 and 2 or 1)
	assert(same(a, llama:generate({1, 2}, o)))
	tensor.threads(before)
	o.seed = 8
	assert(not same(a, llama:generate({1, 2}, o)))
	tensor.seed(3)
	local b = llama:generate({1, 2}, {steps = 20, temperature = 1})
	tensor.seed(3)
	local c = llama:generate({1, 2}, {steps = 20, temperature = 1})
	assert(same(b, c) and not same(c, llama:generate({1, 2}, {steps = 20, temperature = 1})))
	assert(same(llama:generate({1, 2}, {steps = 9, topk = 1}), llama:generate({1, 2}, {steps = 9})))
end)

it('repetition makes tokens of the text less likely', function()
	local seen = {}
	for _, id in ipairs(llama:generate({1}, {steps = 15, repetition = 1e9}):totable()) do
		assert(not seen[id])
		seen[id] = true
	end
end)

it('ends', function()
	local ids = llama:generate({1, 2}, {steps = 8}):totable()
	local got, why, n = llama:generate({1, 2}, {steps = 8, stop = ids[5], ends = true})
	local first = 3
	while ids[first] ~= ids[5] do first = first + 1 end
	assert(got:size(1) == first and why == 'stop' and n == first - 2)
	got, why = llama:generate({1, 2}, {steps = 8, eos = {ids[5], 19}, ends = true})
	assert(got:size(1) == first and why == 'eos')
	got, why, n = llama:generate({1, 2}, {steps = 0, ends = true})
	assert(got:size(1) == 2 and why == 'length' and n == 0)
	local all, reasons = llama:generate(tensor {{1, 2}, {5, 6}, dtype = 'int32'}, {steps = 8, stop = ids[5], pad = 20, ends = true})
	assert(all:dim() == 2 and reasons[1] == 'stop' and (reasons[2] == 'stop' or all:size(2) == 10))
	for k = first + 1, all:size(2) do assert(all[1][k]:item() == 20) end
end)

it('streams', function()
	local seen = {}
	local ids, why = llama:generate({1, 2}, {steps = 9, ends = true, stream = function(id, row)
		seen[#seen + 1] = id
		return row == 1 and #seen < 4
	end})
	assert(why == 'stream' and ids:size(1) == 6 and table.concat(seen, ' ') == table.concat(ids:narrow(1, 3, 4):totable(), ' '))
	local count = {0, 0}
	llama:generate({{1}, {2, 3}}, {steps = 5, stream = function(_, row) count[row] = count[row] + 1 end})
	assert(count[1] == 5 and count[2] == 5)
	refused('attempt to yield across a C-call boundary', coroutine.wrap(function() llama:generate({1}, {steps = 2, stream = coroutine.yield}) end))
end)

it('texts that become longer than the context', function()
	for _, m in pairs(models) do
		assert(m:generate({1}, {steps = 150}):size(1) == 151 and m:generate(tensor.ones {100, dtype = 'int64'}, {steps = 2}):size(1) == 102)
		local long = m:generate({1, 2, 3}, {steps = 40}):totable()
		local again = plain(m, table.move(long, 14, 25, 1, {}), 12):totable() -- the last 12 of 25 tokens
		for k = 13, 24 do assert(again[k] == long[k + 13]) end
	end
end)

it('other models', function()
	local rnn = nn.Sequential {nn.Embedding(20, 8), nn.LSTM(8, 8), nn.Linear(8, 20)}:eval()
	local all = rnn:generate(ROWS, {steps = 4})
	for i, row in ipairs(ROWS) do assert(same(all[i], plain(rnn, row, 4))) end
	assert(rnn:generate(tensor {{1, 2}, {3, 4}, dtype = 'int64'}, {steps = 3}):size(2) == 5)
	local bag = nn.Sequential {nn.Embedding(20, 8), nn.Linear(8, 20)}:eval()
	assert(same(bag:generate({3, 1}, {steps = 4}), plain(bag, {3, 1}, 4)))
	refused('generate: kv: wanted a model with a cache of keys and values', rnn.generate, rnn, {1}, {kv = 'int8'})
end)

---------------------------------------------------------------- text

-- A tokenizer of llama2.c with pieces of letters.
local file = os.tmpname() .. '.bin'
do
	local list = {'<unk>', '<s>', '</s>'}
	for i = 0, 255 do list[#list + 1] = ('<0x%02X>'):format(i) end
	list[#list + 1] = ' '
	for c in ('abcdefgh'):gmatch '.' do list[#list + 1] = c end
	local out <close> = assert(io.open(file, 'wb'))
	out:write(string.pack('<i4', 6))
	for i, piece in ipairs(list) do out:write(string.pack('<fi4', -i, #piece), piece) end
end
local t = data.tokenizer(file)
local talker = nn.Transformer {vocab = #t.vocab, d = 16, heads = 2, layers = 1, ff = 16, context = 32}:eval()
talker.norm.bias:detach():fill_(1) -- letters are likely, bytes and marks are not
talker.embedding.weight:detach():narrow(1, 1, 259):sub_(1)
talker.embedding.weight:detach():narrow(1, 260, 9):add_(tensor.randn(9, 16) * 0.2)

it('text in, text out', function()
	local text, why, n = talker:generate('abc', {steps = 12, ends = true, tokenizer = t, temperature = 2, seed = 4})
	local ids = talker:generate(t:encode 'abc', {steps = 12, temperature = 2, seed = 4})
	assert(text == t:decode(ids) and why == 'length' and n == 12 and text:find '^abc', text)
	local list = talker:generate({'abc', 'd'}, {steps = 12, tokenizer = file, temperature = 2, seed = 4})
	assert(list[1] == text and list[2]:find '^d')
	local got = {}
	assert(talker:generate('abc', {steps = 12, tokenizer = t, temperature = 2, seed = 4, stream = function(piece) got[#got + 1] = piece end}) == text)
	assert('abc' .. table.concat(got) == text)
	local stop = text:sub(7, 8)
	local short, reason = talker:generate('abc', {steps = 12, tokenizer = t, temperature = 2, seed = 4, ends = true, stop = {'zz', stop}})
	assert(reason == 'stop' and 'abc' .. text:sub(4, text:find(stop, 4, true) - 1) == short, short)
	local as_ids, other = talker:generate(t:encode 'abc', {steps = 12, tokenizer = t, temperature = 2, seed = 4, ends = true, stop = stop})
	assert(other == 'stop' and as_ids:nelem() < ids:nelem())
end)

it('bad input', function()
	refused('generate: ids: wanted at least one number of a token, got', llama.generate, llama, {})
	refused('generate: temperature: wanted 0 or more, got -1', llama.generate, llama, {1}, {temperature = -1})
	refused('generate: topp: wanted a number above 0, at most 1, got 1.5', llama.generate, llama, {1}, {topp = 1.5})
	refused('generate: minp: wanted a number from 0 to 1, got -1', llama.generate, llama, {1}, {minp = -1})
	refused('generate: topk: wanted 1 or more, got 0', llama.generate, llama, {1}, {topk = 0})
	refused('generate: repetition: wanted a number above 0, got 0', llama.generate, llama, {1}, {repetition = 0})
	refused('generate: steps: wanted 0 or more, got -1', llama.generate, llama, {1}, {steps = -1})
	refused('generate: stop: item 1: wanted a token or text, got 1.5', llama.generate, llama, {1}, {stop = 1.5})
	refused("generate: eos: item 1: wanted a token, got 'x'", llama.generate, llama, {1}, {eos = 'x'})
	refused('wanted numbers of tokens, or a tokenizer= for texts', llama.generate, llama, 'abc')
	refused('generate: stop: wanted tokens, or a tokenizer= for texts', llama.generate, llama, {1}, {stop = 'abc'})
	refused('generate: stream: wanted true, false or a function, got 3', llama.generate, llama, {1}, {stream = 3})
	refused('generate: stream: wanted a function of the tokens, or a tokenizer', llama.generate, llama, {1}, {stream = true})
	refused('generate: tokenizer: wanted a data.tokenizer', llama.generate, llama, 'abc', {tokenizer = {}})
	refused('generate: item 2: wanted numbers of one text, got', llama.generate, llama, {{1}, tensor.ones(2, 2)})
	refused('embedding: ids: wanted 1 to 20', llama.generate, llama, {21})
	refused('templates are not evaluated; write the text', llama.generate, llama, {{role = 'user', content = 'hi'}})
	refused('templates are not evaluated; write the text', llama.generate, llama, {1}, {chat = true})
end)
