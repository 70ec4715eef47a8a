-- SPDX-License-Identifier: MIT
-- Where values become codes on the way, products of floats are ordered: the same bits under every kernel and number of threads.
tensor.seed(71)
local x = tensor.randn(20, 3, 12, 12) * tensor.randn(3, 1, 1):exp()
local m = nn.Sequential {nn.Conv2d(3, 40, 3, {pad=1}), nn.ReLU(), nn.Conv2d(40, 8, 3), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(200, 30), nn.GELU(),
	nn.LayerNorm(30), nn.Linear(30, 10)}:eval()
local rules = {{'conv.*|linear1', false}, {'.*', 'int8/1'}}

-- Kernels of float products in the ledger of a run.
local function kernels(f, ...)
	quant.log 'reset'
	f(...)
	local found = {}
	for _, row in ipairs(quant.log()) do
		if row.kernel and row.kernel:find '^gemm_f32' then found[#found + 1] = row.kernel end
	end
	return table.concat(found, ' ')
end
local function all(text, pattern)
	local count = 0
	for name in text:gmatch '%S+' do
		assert(name:find(pattern), name)
		count = count + 1
	end
	return count
end
local ORDERED = hw.force() ~= 'ref' and hw.kernels():where{family='gemm_f32', kernel='ordered_avx2'}[1].here and 'ordered' or 'ref'
local FUSED = ORDERED == 'ref' and '_ref$' or '^gemm_f32_avx[25]'

it('in modules and graphs of the modes dynamic and static, not in others', function()
	m:calibrate({{x, x}}, {log=false})
	for mode, codes in pairs {dynamic=true, static=true, weight_only=false} do
		local q = m:quantize {mode=mode, rules=rules}
		local g = graph.trace(m, x[{{1, 1}}]):quantize {mode=mode, rules=rules}
		local pattern = codes and ORDERED or FUSED
		assert(all(kernels(q, x), pattern) > 0 and all(kernels(g.run, g, x), pattern) > 0, mode)
	end
	assert(all(kernels(m, x), FUSED) > 0)
	local g = graph.trace(m, x[{{1, 1}}])
	assert(all(kernels(g.run, g, x), FUSED) > 0 and all(kernels(g.run, g, x, {ordered=true}), ORDERED) > 0)
end)

it('in what is made of quantized modules, but not in what is decoded', function()
	local q = m:quantize {mode='dynamic', rules=rules}
	local larger = nn.Sequential {nn.Linear(12, 12), nn.Sequential {q}}
	assert(all(kernels(larger, x), ORDERED) > 0 and all(kernels(q:clone(), x), ORDERED) > 0 and all(kernels(q:dequantize(), x), FUSED) > 0)
end)

it('ends with the run, also where it fails', function()
	local q = m:quantize {mode='dynamic', rules=rules}
	assert(not pcall(q, x:view(-1, 12)))
	assert(all(kernels(m, x), FUSED) > 0)
	local co = coroutine.wrap(function() q(x) coroutine.yield() q(x) end)
	co()
	assert(all(kernels(m, x), FUSED) > 0)
end)

it('does not hang on other coroutines that run between', function()
	local rows = tensor.randn(64, 300)
	local function made()
		return nn.Sequential {nn.Linear(300, 33), nn.module(function(self, a) coroutine.yield() return a:linear(self.w) end, {w=tensor.randn(33, 33)}),
			nn.Linear(33, 4)}:quantize {mode='dynamic', rules={{'linear1', false}}}
	end
	local first, second = made(), made()
	local function start(q)
		local co = coroutine.wrap(function() return q(rows) end)
		co()
		return co
	end
	local wanted = start(second)()
	local a, b = start(first), start(second)
	a()
	assert(b():error(wanted).max == 0 and all(kernels(m, x), FUSED) > 0)
end)

it('traces run as their modules do', function()
	local rows, w = tensor.randn(64, 300), tensor.randn(33, 300)
	for _, f in ipairs {function(self, a) return a:linear(self.w):quantize {dtype='int16', scale=1e-4}:dequantize() end,
		function(self, a) return a:linear(self.w:quantize 'int8/1') end} do
		local own = nn.module(f, {w=w})
		assert(own(rows):error(graph.trace(own, rows):run(rows)).max == 0)
		local inside = nn.Sequential {own, nn.Linear(33, 5)}:quantize {mode='dynamic'}
		assert(inside(rows):error(graph.trace(inside, rows):run(rows)).max == 0)
	end
end)

it('gives the same bits under every kernel and number of threads', function()
	local ids = tensor.randint{6, 7, low=1, high=20, dtype='int32'}
	local transformer = nn.Transformer {vocab=20, d=16, heads=2, layers=2, context=8}
	local lstm, steps = nn.Sequential {nn.LSTM(6, 9), nn.Linear(9, 5)}, tensor.randn(4, 30, 6)
	local cases = {}
	for mode in pairs {dynamic=true, static=true} do
		for _, case in ipairs {{m, x, rules}, {transformer, ids}, {lstm, steps}} do
			case[1]:calibrate({{case[2], case[2]}}, {log=false})
			local q = case[1]:quantize {mode=mode, rules=case[3]}
			cases[#cases + 1] = {f=q, x=case[2]}
			local g = graph.trace(case[1], case[2][{{1, 1}}]):calibrate({{case[2], case[2]}}, {log=false}):quantize {mode=mode, rules=case[3]}
			cases[#cases + 1] = {f=function(a) return g:run(a) end, x=case[2]}
		end
	end
	local before, threads = hw.force(), tensor.threads()
	local _ <close> = setmetatable({}, {__close=function() hw.force(before) tensor.threads(threads) end})
	for _, case in ipairs(cases) do case.y = case.f(case.x) end
	for _, level in ipairs {'ref', 'avx2', 'avxvnni', 'avx512vnni', 'native'} do
		for n = 1, 2 do
			hw.force(level)
			tensor.threads(n)
			for i, case in ipairs(cases) do
				assert(case.f(case.x):error(case.y).max == 0, ('%s, %d threads, case %d'):format(level, n, i))
			end
		end
	end
end)
