-- SPDX-License-Identifier: MIT
-- labels: quick host
-- nn.Transformer, nn.Attention and m:generate: no look into the future, the cache gives what the whole text gives, sharing
-- of weights, quantized layers.
tensor.seed(4)
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end
local ids = tensor.randint {2, 12, low=1, high=20}
local kinds = {
	gpt = {vocab=20, d=16, heads=4, layers=2, ff=32, context=64},
	llama = {vocab=20, d=16, heads=4, kvheads=2, layers=2, ff=24, context=64, norm='rmsnorm', act='swiglu', position='rope', bias=false},
}
for name, options in pairs(kinds) do
	describe(name, function()
		local m = nn.Transformer(options):eval()
		local y = m(ids):detach()

		it('no position sees what is behind it', function()
			local other = ids:clone()
			other[{{}, {9, 12}}] = 1
			local z = m(other):detach()
			assert(y:narrow(2, 1, 8):error(z:narrow(2, 1, 8)).max == 0 and y:error(z).max > 0)
		end)

		it('a cache gives what the whole text gives', function()
			tensor.nograd(function()
				local cache, parts = m:cache(2, 12), {}
				for _, part in ipairs {{1, 5}, {6, 1}, {7, 4}, {11, 2}} do
					parts[#parts + 1] = m(ids:narrow(2, part[1], part[2]), cache)
				end
				assert(tensor.cat(parts, {axis=2}):error(y).max < 1e-4)
				refused('Attention: cache: wanted at most 12 positions, got 13', m, ids:narrow(2, 1, 1), cache)
			end)
		end)

		it('the head shares the embedding, in copies and files', function()
			assert(m.head.weight == m.embedding.weight)
			local c = m:clone()
			assert(c.head.weight == c.embedding.weight and c.head.weight ~= m.head.weight)
			for key in pairs(m:state()) do assert(key ~= 'head.weight') end
			c:to 'float16'
			assert(c.head.weight == c.embedding.weight and c.head.weight:dtype() == 'float16')
			local own = nn.Transformer({vocab=20, d=16, heads=4, layers=1, tie=false})
			assert(own.head.weight ~= own.embedding.weight)
		end)

		it('learns a text by heart', function()
			local learner, text = nn.Transformer(options), tensor.randint {1, 33, low=1, high=20}
			local data = {{text:narrow(2, 1, 32), text:narrow(2, 2, 32)}}
			local r = learner:fit(data, {opt=optim.adamw(learner, {lr=1e-2}), epochs=100, log=false})
			assert(r[100].loss < 0.2 and r[1].loss > 2, r[100].loss)
			local written = learner:generate(text:narrow(2, 1, 4):view(4), {steps=20, temperature=0})
			assert(written:ne(text:narrow(2, 1, 24):view(24)):any():item() == false, tostring(written))
		end)

		it('every mode runs in integers where it says so', function()
			for _, mode in ipairs {'dynamic', 'weight_only'} do
				local q, coverage = m:quantize {mode=mode, rules={{'embedding', false}}}
				quant.log 'reset'
				local e = y:error(q(ids))
				assert(e.sqnr > 25, mode .. ' ' .. e.sqnr)
				assert(#quant.log():where {path='fallback'} == 0)
				local integer = 0
				for _, row in ipairs(quant.ledger()) do integer = integer + (row.op == 'linear' and row.path == 'int8' and row.count or 0) end
				assert(integer == (mode == 'dynamic' and #coverage - 1 - 5 - (name == 'gpt' and 1 or 0) or 0), integer)
			end
		end)
	end)
end

it('generate', function()
	local m = nn.Transformer(kinds.gpt)
	tensor.seed(1)
	local a = m:generate({1, 2, 3}, {steps=10, topk=3})
	tensor.seed(1)
	local b = m:generate(tensor {1, 2, 3, dtype='int64'}, {steps=10, topk=3})
	assert(a:size(1) == 13 and a:ne(b):any():item() == false and m.training)
	assert(m:generate(ids, {steps=2}):size(2) == 14)
	local first = m:generate({1, 2}, {steps=1, temperature=0}):totable()[3]
	assert(m:generate({1, 2}, {steps=5, temperature=0, stop=first}):size(1) == 3)
	refused('generate: ids: wanted at least one number of a token, got', m.generate, m, {})
	refused('generate: temperature: wanted 0 or more, got -1', m.generate, m, {1}, {temperature=-1})
	assert(m:generate({1}, {steps=150}):size(1) == 151, 'a text longer than the context')
	assert(m:generate(tensor.ones {100, dtype='int64'}, {steps=2}):size(1) == 102)
	local rnn = nn.Sequential {nn.Embedding(20, 8), nn.LSTM(8, 8), nn.Linear(8, 20)}
	local whole = rnn(tensor {{1, 2, 3}, dtype='int64'}):detach():argmax(-1):view(3):totable()[3]
	assert(rnn:generate({1, 2, 3}, {steps=1, temperature=0}):totable()[4] == whole)
end)

it('bad input', function()
	refused("Transformer: act: wanted", nn.Transformer, {vocab=10, d=8, heads=2, layers=1, act='geluu'})
	refused('Transformer: d: wanted an integer of at least 1, got nil', nn.Transformer, {vocab=10, heads=2, layers=1})
	refused('Attention: heads: wanted a divisor of 8', nn.Transformer, {vocab=10, d=8, heads=3, layers=1})
	local m = nn.Transformer {vocab=10, d=8, heads=2, layers=1, context=4}
	refused('Transformer: wanted numbers of tokens (B, T), got int64(3)', m, tensor {1, 2, 3, dtype='int64'})
	refused('Transformer: wanted at most 4 positions (context=), got 5', m, tensor.ones {1, 5, dtype='int64'})
	refused('embedding: ids: wanted 1 to 10', m, tensor {{1, 11}, dtype='int64'})
end)
