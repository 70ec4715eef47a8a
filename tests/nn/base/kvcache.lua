-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Caches of keys and values: m:cache of attention in floats and codes, what it costs, what it refuses.
tensor.seed(5)
local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true) and not message:find '\n', message)
end

local m = nn.Attention(32, 4, {causal = true, kvheads = 2, rope = true, ropestyle = 'half'}):eval()
local x = tensor.randn(2, 10, 32)
local want = tensor.nograd(function() return m(x) end)

local function in_steps(kv, other)
	return tensor.nograd(function()
		local cache, parts = (other or m):cache(2, 12, kv), {}
		for _, part in ipairs {{1, 4}, {5, 1}, {6, 5}} do parts[#parts + 1] = (other or m)(x:narrow(2, part[1], part[2]), cache) end
		assert(cache.at.n == 10)
		return tensor.cat(parts, {axis = 2}), cache
	end)
end

it('every format', function()
	for kv, sqnr in pairs {float32 = 120, float16 = 55, bfloat16 = 38, int8 = 35, ['int8:4'] = 35, int4 = 12, ['int4:4+min'] = 15, ['nf4:8'] = 12, uint8 = 35} do
		local e = in_steps(kv):error(want)
		assert(e.sqnr > sqnr, kv .. ' ' .. e.sqnr)
	end
	assert(in_steps({k = 'int8', v = quant.spec 'int4:4'}):error(want).sqnr > 15)
	assert(in_steps({v = 'int8'}):error(want).sqnr > 35)
end)

it('codes take their bits', function()
	local function bytes(kv)
		local _, cache = in_steps(kv)
		return cache.k:nbytes()
	end
	assert(bytes() == 2 * 2 * 12 * 8 * 4 and bytes 'float16' == bytes() // 2)
	assert(bytes 'int8' == 2 * 2 * 12 * (8 + 2) and bytes 'int4' == 2 * 2 * 12 * (4 + 2)) -- scales are float16
end)

it('blocks along positions and channels, with recent floats', function()
	local late = {k = 'uint8/2:4+min', v = 'uint8/3:16+min', recent = 2}
	local y, cache = in_steps(late)
	assert(y:error(want).sqnr > 40 and in_steps {k = 'uint8/-2:4+min', v = 'float16'}:error(want).sqnr > 40)
	assert(in_steps({k = 'int4', v = 'int4', recent = 12}):metrics(want).max < 1e-5) -- all are floats
	assert(cache.k:size(3) == 16 and cache.kring:size(2) == 5 and cache.vring:size(2) == 2)
	assert(cache.k:nbytes() == 2 * (12 * 16 + 3 * 16 * 4) and cache.v:nbytes() == 2 * (12 * 16 + 12 * 4)) -- a scale and a minimum in float16
end)

local LM = {vocab = 20, d = 16, heads = 4, kvheads = 2, layers = 2, ff = 24, context = 40, norm = 'rmsnorm', act = 'swiglu', position = 'rope', bias = false}
local lm = nn.Transformer(LM):eval()
lm.embedding.weight:detach():mul_(20)

local function same(a, b) return a:nelem() == b:nelem() and a:eq(b):all():item() end

it('rows of any lengths generate what they generate alone, beyond the context, too', function()
	local rows = {{1, 5, 9, 3, 7, 2, 8, 8, 4, 6, 11, 13, 2}, {17}, {3, 3, 4, 9, 12}}
	for _, kv in ipairs {{k = 'uint4/2:4+min', v = 'uint4/3:8+min', recent = 3}, {k = 'uint3/2:8+min', v = 'uint3/3:8+min'}, {k = 'float16', v = 'int4/3:4', recent = 2}} do
		local both = lm:generate(rows, {steps = 45, kv = kv})
		for i, ids in ipairs(rows) do assert(same(lm:generate(ids, {steps = 45, kv = kv}), both[i])) end
		local p, want = lm:prompt(rows[1], {kv = kv}), nil
		for _, ids in ipairs {rows[1], {1, 5, 9, 3}, {1, 5, 9, 3, 7, 2, 8, 8, 4, 6, 11, 13, 2, 6}} do
			want = lm:generate(ids, {steps = 12, kv = kv})
			assert(same(lm:generate(ids, {steps = 12, prompt = p}), want))
		end
		local file = os.tmpname() .. '.safetensors'
		p:save(file)
		assert(same(lm:generate({1, 5, 9, 3, 7, 2, 8, 8, 4, 6, 11, 13, 2, 6}, {steps = 12, prompt = lm:loadprompt(file)}), want))
		os.remove(file)
	end
	local ids, why, n = lm:generate(rows, {steps = 12, kv = {k = 'uint4/2:4+min', v = 'uint4/3:8+min'}, eos = {3, 8, 12}, ends = true}) -- rows that end leave
	for i = 1, #rows do
		local alone, reason, count = lm:generate(rows[i], {steps = 12, kv = {k = 'uint4/2:4+min', v = 'uint4/3:8+min'}, eos = {3, 8, 12}, ends = true})
		assert(same(ids[i], alone) and why[i] == reason and n[i] == count)
	end
end)

it('m:evaluate is what generation sees', function()
	local ids = tensor {{1, 5, 9, 3, 7, 2, 8, 8, 4, 6, 11, 13, 2, 6, 3}, {3, 4, 4, 6, 11, 13, 2, 6, 3, 19, 20, 1, 5, 9, 3}, dtype = 'int64'}
	local x, y = ids:narrow(2, 1, 14), ids:narrow(2, 2, 14)
	for _, kv in ipairs {'float32', 'int4', {k = 'uint2/2:4+min', v = 'uint2/3:8+min', recent = 1}} do
		local loss = lm:evaluate({{x, y}}, {kv = kv, log = false}).value
		local logits = tensor.nograd(function()
			local caches, list = lm:cache(2, 14, kv), {}
			for i = 1, 14 do list[i] = lm(x:narrow(2, i, 1), caches) end
			return tensor.cat(list, {axis = 2})
		end)
		assert(math.abs(nn.crossentropy(logits, y):item() - loss) < 1e-5)
		assert(math.abs(lm:evaluate({{x, y}}, {log = false}).value - loss) > 1e-3 or kv == 'float32')
	end
	refused('evaluate: kv: wanted a model with a cache', nn.Linear(2, 2).evaluate, nn.Linear(2, 2), {{tensor.ones(2, 2), tensor.ones(2, 2)}}, {kv = 'int8'})
end)

it('refusals', function()
	refused("kv: wanted blocks along axis 2 (positions) or 3 (channels of all heads), as in 'int8/2:32', or along a head, as in 'int8:8', got 'int8/1'", m.cache, m, 1,
		4, 'int8/1')
	refused('kv: wanted blocks along axis 2', m.cache, m, 1, 4, 'int8/2')
	refused('kv: recent: wanted a number of positions, 0 or more, got -1', m.cache, m, 1, 4, {k = 'int8', recent = -1})
	refused('kv: recent: wanted codes in k= or v= with it, got floats', m.cache, m, 1, 4, {k = 'float16', recent = 4})
	refused('kv: wanted float32, float16, bfloat16 or a spec, got 3', m.cache, m, 1, 4, 3)
	refused("kv: wanted k=, v= and recent=, got 'late'", m.cache, m, 1, 4, {k = 'int8', late = 3})
	refused('kv: k: ', m.cache, m, 1, 4, {k = 'int88'})
	refused('kv: quantize: block: wanted', m.cache, m, 1, 4, 'q8_0')
	refused('Attention: cache: wanted at most 12 positions, got 13', function() m(tensor.randn(1, 13, 32), m:cache(1, 12, 'int8')) end)
	local both = nn.Attention(32, 4):eval()
	refused('Attention: cache: wanted causal=true without a mask for codes', function() both(x, both:cache(2, 12, 'int8')) end)
	assert(in_steps(nil, nn.Attention(32, 4, {causal = true, window = 3, softcap = 4}):eval()):dim() == 3)
end)
