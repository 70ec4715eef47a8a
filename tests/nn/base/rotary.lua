-- SPDX-License-Identifier: MIT
-- Scaled rotary positions of nn.Attention: frequencies of transformers 5.24 (ROPE_INIT_FUNCTIONS, rope_theta=500, heads of 16 numbers).
local CASES = {
	{{type = 'linear', factor = 3}, {0.3333333, 0.1532878, 0.07049141, 0.03241641, 0.01490712, 0.006855238, 0.003152472, 0.001449706}, 1},
	{{type = 'llama3', factor = 8, lowfreqfactor = 1, highfreqfactor = 4, original = 64},
		{1, 0.4598633, 0.09761663, 0.01215616, 0.00559017, 0.002570714, 0.001182177, 0.0005436398}, 1},
	{{type = 'yarn', factor = 4, original = 32}, {1, 0.3448974, 0.1057371, 0.02431231, 0.01118034, 0.005141428, 0.002364354, 0.00108728}, 1.138629},
	{{type = 'yarn', factor = 4, original = 64, betafast = 8, betaslow = 0.5, truncate = false, attentionfactor = 0.9},
		{1, 0.3932792, 0.1364164, 0.04229737, 0.01118034, 0.005141428, 0.002364354, 0.00108728}, 0.9},
	{{type = 'factors', factors = {1, 2, 4, 8, 1, 1, 0.5, 1}}, {}, 1},
}
for i = 1, 8 do CASES[5][2][i] = 500 ^ (-(i - 1) / 8) / CASES[5][1].factors[i] end

for number, case in ipairs(CASES) do
	it(case[1].type .. number, function()
		local scaling, frequencies, amplitude = table.unpack(case)
		local m = nn.Attention(16, 1, {rope = true, causal = true, base = 500, ropescaling = scaling}):eval()
		local x, angle = tensor.randn(2, 70, 16), tensor.zeros {70, 8, dtype = 'float64'}
		for i, f in ipairs(frequencies) do angle:select(2, i):copy_(tensor.arange(0, 69):to 'float64' * f) end
		local cos, sin = (angle:cos() * amplitude):to 'float32', (angle:sin() * amplitude):to 'float32'
		local function heads(y) return nn.rope(y:unsqueeze(2), cos, sin) end
		local y = nn.attention(heads(m.query(x)), heads(m.key(x)), m.value(x):unsqueeze(2), {causal = true})
		local want = m.out(y:squeeze(2))
		assert((m(x) - want):abs():max():item() < 2e-5)
		-- the same with a cache, and in a graph
		tensor.nograd(function()
			local cache, parts = m:cache(2, 70), {}
			for _, part in ipairs {{1, 3}, {4, 1}, {5, 66}} do parts[#parts + 1] = m(x:narrow(2, part[1], part[2]), cache) end
			assert((tensor.cat(parts, {axis = 2}) - want):abs():max():item() < 2e-5)
		end)
		local g = graph.trace(m, x)
		assert(g:run(x):eq(m(x)):all():item())
		assert(m:clone()(x):eq(m(x)):all():item())
	end)
end

-- Frequencies of transformers 5.24 again: seq_len 64 and 65.
local LONG = {type = 'longrope', original = 64, factor = 4, short = {1, 1, 1.5, 2, 2, 3, 4, 5}, long = {1, 2, 3, 4, 6, 8, 12, 20}}
local FREQUENCIES = {{1, 0.4598633, 0.1409828, 0.04862462, 0.02236068, 0.006855237, 0.002364354, 0.0008698237},
	{1, 0.2299316, 0.07049142, 0.02431231, 0.00745356, 0.002570714, 0.000788118, 0.0002174559}}
local AMPLITUDE = 1.154701

it('longrope: the long divisors for calls beyond the original context', function()
	local m = nn.Attention(16, 1, {rope = true, causal = true, base = 500, ropescaling = LONG}):eval()
	local x = tensor.randn(2, 70, 16)
	local function turned(y, from, t, which)
		local angle = tensor.zeros {t, 8, dtype = 'float64'}
		for i, f in ipairs(FREQUENCIES[which]) do angle:select(2, i):copy_(tensor.arange(from - 1, from + t - 2):to 'float64' * f) end
		return nn.rope(y:unsqueeze(2):narrow(3, from, t), (angle:cos() * AMPLITUDE):to 'float32', (angle:sin() * AMPLITUDE):to 'float32')
	end
	local function want(t, parts) -- {from, t, which} of keys; queries as the last
		local q, k, v, list = m.query(x), m.key(x), m.value(x):narrow(2, 1, t), {}
		for i, p in ipairs(parts) do list[i] = turned(k, p[1], p[2], p[3]) end
		local last = parts[#parts]
		local all = tensor.cat(list, {axis = 3})
		local mask = tensor.arange(last[1], last[1] + last[2] - 1):view(last[2], 1):ge(tensor.arange(1, t):view(1, t))
		return m.out(nn.attention(turned(q, last[1], last[2], last[3]), all, v:unsqueeze(2), {mask = mask}):squeeze(2))
	end
	local function near(a, b) assert((a - b):abs():max():item() < 2e-5) end
	near(m(x:narrow(2, 1, 64)), want(64, {{1, 64, 1}}))
	near(m(x), want(70, {{1, 70, 2}}))
	for _, spec in ipairs {false, 'float32'} do -- keys of a cache stay as they were
		tensor.nograd(function()
			local cache = spec and m:cache(2, 70, spec) or m:cache(2, 70)
			near(m(x:narrow(2, 1, 60), cache), want(60, {{1, 60, 1}}))
			near(m(x:narrow(2, 61, 4), cache), want(64, {{1, 60, 1}, {61, 4, 1}}))
			near(m(x:narrow(2, 65, 1), cache), want(65, {{1, 64, 1}, {65, 1, 2}}))
			near(m(x:narrow(2, 66, 5), cache), want(70, {{1, 64, 1}, {65, 1, 2}, {66, 5, 2}}))
		end)
	end
	for _, t in ipairs {64, 70} do
		local part = x:narrow(2, 1, t):contiguous()
		assert(graph.trace(m, part):run(part):eq(m(part)):all():item())
	end
end)

it('in a Transformer, with windows and softcap', function()
	tensor.seed(3)
	local o = {vocab = 7, d = 8, heads = 2, layers = 2, position = 'rope', ropescaling = {type = 'linear', factor = 2}, window = {0, 3}, softcap = 5}
	local m = nn.Transformer(o):eval()
	assert(m[1].attention.window == false and m[2].attention.window == 3 and m[2].attention.softcap == 5 and m[1].attention.ropescaling.factor == 2)
	print(tostring(m[2].attention):match '^[^)]*.')  --> Attention(8, 2, causal, rope=true, ropescaling=linear, window=3, softcap=5)
	local ids = tensor.randint {2, 9, low = 1, high = 7}
	tensor.nograd(function()
		local y, cache, parts = m(ids), m:cache(2, 9), {}
		for t = 1, 9 do parts[t] = m(ids:narrow(2, t, 1), cache) end
		assert((tensor.cat(parts, {axis = 2}) - y):abs():max():item() < 1e-6)
		-- by a mask
		local a, x = m[2].attention, tensor.randn(1, 9, 8)
		local near = (tensor.arange(1, 9):view(9, 1) - tensor.arange(1, 9):view(1, 9)):lt(3)
		local b = nn.Attention(8, 2, {causal = true, rope = true, ropescaling = {type = 'linear', factor = 2}, softcap = 5}):load(a:state())
		assert((a(x) - b(x, {mask = near})):abs():max():item() < 1e-6)
	end)
end)

local function refused(want, options)
	local ok, message = pcall(nn.Attention, 16, 1, options)
	assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
end

it('wrong options', function()
	local function with(s, want) refused(want, {rope = true, ropescaling = s}) end
	with({type = 'su'}, "ropescaling: type: wanted one of factors linear llama3 longrope yarn, got 'su'")
	with({}, 'ropescaling: type: wanted one of factors linear llama3 longrope yarn, got nil')
	with({type = 'longrope', original = 64}, 'ropescaling: short: wanted a list of 8 numbers, got nil')
	with({type = 'longrope', original = 64, short = LONG.short, long = {1}}, 'ropescaling: long: wanted a list of 8 numbers, got another number of them')
	with({type = 'longrope', original = 1, short = LONG.short, long = LONG.long}, 'ropescaling: original: wanted a number above 1, got 1')
	with(5, 'ropescaling: wanted a table {type=, …}, got')
	with({type = 'linear'}, 'ropescaling: factor: wanted a finite number of at least 0, got nil')
	with({type = 'linear', factor = 0}, 'ropescaling: factor: wanted a number above 0, got 0')
	with({type = 'linear', factor = 0 / 0}, 'ropescaling: factor: wanted a finite number')
	with({type = 'linear', factor = 2, original = 3}, "ropescaling: wanted options of 'linear', got 'original'")
	with({type = 'llama3', factor = 2, original = 3, lowfreqfactor = 2, highfreqfactor = 2}, 'highfreqfactor: wanted a number above lowfreqfactor')
	with({type = 'factors', factors = {1}}, 'factors: wanted a list of 8 numbers, got another number of them')
	with({type = 'factors', factors = {1, 1, 1, 0, 1, 1, 1, 1}}, 'factors[4]: wanted another number than 0')
	refused('ropescaling: wanted rope=true with it', {ropescaling = {type = 'linear', factor = 2}})
	for window, want in pairs {[{1}] = 'window: wanted a number or a list of 2, got a list of 1', [{0, -1}] = 'window: wanted an integer of at least 0, got -1'} do
		local ok, message = pcall(nn.Transformer, {vocab = 7, d = 8, heads = 2, layers = 2, window = window})
		assert(not ok and message:find(want, 1, true), message)
	end
end)
