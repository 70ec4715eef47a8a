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

it('refusals', function()
	refused("kv: wanted blocks along a head, as in 'int8:8', got 'int8/1'", m.cache, m, 1, 4, 'int8/1')
	refused('kv: wanted float32, float16, bfloat16 or a spec, got 3', m.cache, m, 1, 4, 3)
	refused("kv: wanted k= and v=, got 'recent'", m.cache, m, 1, 4, {k = 'int8', recent = 3})
	refused('kv: k: ', m.cache, m, 1, 4, {k = 'int88'})
	refused('kv: quantize: block: wanted', m.cache, m, 1, 4, 'q8_0')
	refused('Attention: cache: wanted at most 12 positions, got 13', function() m(tensor.randn(1, 13, 32), m:cache(1, 12, 'int8')) end)
	local both = nn.Attention(32, 4):eval()
	refused('Attention: cache: wanted causal=true without a mask for codes', function() both(x, both:cache(2, 12, 'int8')) end)
	assert(in_steps(nil, nn.Attention(32, 4, {causal = true, window = 3, softcap = 4}):eval()):dim() == 3)
end)
