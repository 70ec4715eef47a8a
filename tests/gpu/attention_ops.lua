-- SPDX-License-Identifier: MIT
-- Attention on a device: with ordered products the bits of the CPU, forward and backward; a Transformer runs, trains
-- and generates there, its cache of keys and values included.
local D = dofile 'tests/tools/gpu_tested.lua'

local function near(a, b, most)
	a, b = a:to 'cpu', b:to 'cpu'
	return a:dtype() == b:dtype() and (a - b):abs():max():item() <= (most or 0)
end

-- Kernels of the op in the ledger since the last reset; nothing of the listed ops may have run on the host.
local function kernels(op)
	local found = {}
	for _, row in ipairs(quant.log()) do
		if row.op == op then found[#found + 1] = row.path .. ' ' .. row.kernel end
	end
	return table.concat(found, ', ')
end

local function both(q, k, v, options)
	local leaves = {q:clone():requires_grad_(), k:clone():requires_grad_(), v:clone():requires_grad_()}
	local y = nn.attention(leaves[1], leaves[2], leaves[3], options)
	y:mul(y):sum():backward()
	return y, leaves[1]:grad(), leaves[2]:grad(), leaves[3]:grad()
end

local cases = {
	{{2, 4, 9, 16}, {2, 2, 20, 16}, {2, 2, 20, 8}, {causal = true}},
	{{2, 33, 48}, {2, 40, 16}, {2, 40, 24}, {heads = 3, scale = 0.2}},
	{{1, 2, 1, 64}, {1, 2, 70, 64}, {1, 2, 70, 64}, {causal = true}},
}

it('attention and its gradients', function()
	for i, case in ipairs(cases) do
		local q, k, v = tensor.randn(table.unpack(case[1])), tensor.randn(table.unpack(case[2])), tensor.randn(table.unpack(case[3]))
		local wanted = table.pack(both(q, k, v, case[4]))
		local got = table.pack(both(q:to(D), k:to(D), v:to(D), case[4]))
		for j = 1, 4 do assert(near(wanted[j], got[j], 2e-5), i .. ' ' .. j) end
	end
	print(kernels 'attention_back':match 'float32 attention_back', kernels 'attention':match 'float32 attention')  --> float32 attention_back	float32 attention
end)

it('with the level ref the bits of the CPU', function()
	local level = hw.force()
	hw.force 'ref'
	for i, case in ipairs(cases) do
		local q, k, v = tensor.randn(table.unpack(case[1])), tensor.randn(table.unpack(case[2])), tensor.randn(table.unpack(case[3]))
		local wanted = table.pack(both(q, k, v, case[4]))
		local got = table.pack(both(q:to(D), k:to(D), v:to(D), case[4]))
		for j = 1, 4 do assert(near(wanted[j], got[j]), i .. ' ' .. j) end
		local y = nn.attention(q:to 'float16', k:to 'float16', v:to 'float16', case[4])
		assert(near(y, nn.attention(q:to 'float16':to(D), k:to 'float16':to(D), v:to 'float16':to(D), case[4])))
	end
	hw.force(level)
end)

it('attention of floats of 16 bits', function()
	quant.log 'reset'
	for i, case in ipairs(cases) do
		for dtype, most in pairs {float16 = 4e-3, bfloat16 = 3e-2} do
			local x = {}
			for j = 1, 3 do x[j] = tensor.randn(table.unpack(case[j])):to(dtype) end
			local wanted = nn.attention(x[1], x[2], x[3], case[4])
			local got = nn.attention(x[1]:to(D), x[2]:to(D), x[3]:to(D), case[4])
			assert(near(wanted, got, most), i .. ' ' .. dtype)
		end
	end
	local found = kernels 'attention'
	print(found:match 'float16 attention_mma', found:match 'bfloat16 attention_mma', found:match 'float32 attention_few')  --> float16 attention_mma	bfloat16 attention_mma	float32 attention_few
end)

it('rope and its gradient', function()
	local x = tensor.randn(2, 5, 3, 8)
	for _, options in ipairs {{}, {axis = 2, start = 40}, {base = 100, axis = 1}} do
		local function turned(at)
			local leaf = at:clone():requires_grad_()
			local y = nn.rope(leaf:transpose(2, 3), options)
			y:mul(y:detach() + 1):sum():backward()
			return y, leaf:grad()
		end
		local y, g = turned(x)
		quant.log 'reset'
		local dy, dg = turned(x:to(D))
		assert(near(y, dy) and near(g, dg))
		assert(kernels 'rope' == 'float32 rope' and kernels 'rope_back' == 'float32 rope')
	end
end)

it('a Transformer generates there with its cache', function()
	tensor.seed(3)
	local m = nn.Transformer {vocab = 23, d = 32, heads = 4, kvheads = 2, layers = 2, ff = 48, context = 20, position = 'rope'}
	local wanted = m:generate({1, 5, 3}, {steps = 24, temperature = 0})
	m:to(D)
	quant.log 'reset'
	local got = m:generate({1, 5, 3}, {steps = 24, temperature = 0})
	print(got:device() == D, got:to 'cpu':eq(wanted):all():item(), kernels 'attention')  --> true	true	float32 attention, float32 attention_few
	print(kernels 'zeros':match 'float32 construct')  --> float32 construct
	local rows = {{1, 5, 3}, {7}, {2, 2, 4, 6, 8}}
	for _, o in ipairs {{steps = 24, ends = true}, {steps = 6, ends = true, kv = 'int8'}, {steps = 9, ends = true, kv = {k = 'uint4/2:4+min', v = 'uint4/3:16+min', recent = 2}},
		{steps = 6, ends = true, kv = 'float16', temperature = 0.8, topp = 0.9, repetition = 1.2, seed = 3}} do
		local there, why = m:generate(rows, o)
		local here, reasons = m:clone():to 'cpu':generate(rows, o)
		for i = 1, #rows do assert(there[i]:device() == D and there[i]:to 'cpu':eq(here[i]):all():item() and why[i] == reasons[i]) end
	end
	local p = m:prompt({1, 5, 3, 2}, {kv = 'int8'})
	local after, whole = m:generate({1, 5, 3, 2, 4}, {steps = 4, prompt = p}), m:generate({1, 5, 3, 2, 4}, {steps = 4, kv = 'int8'})
	assert(after:eq(whole):all():item())
end)

it('recentattention writes codes, scales and floats there', function()
	tensor.seed(5)
	local x, k, v, spec = tensor.randn(2, 9, 32), tensor.randn(2, 9, 16), tensor.randn(2, 9, 16), 'uint4/2:4+min'
	local here = {tensor.zeros {2, 9, 16}:quantize(spec), tensor.zeros {2, 9, 16}, tensor.zeros {2, 4, 16}, tensor.zeros {2, 1, 16}}
	local there, o = {}, {heads = 4, rope = 'half', kspec = spec, recent = 1}
	for i, t in ipairs(here) do there[i] = t:to(D) end
	for _, at in ipairs {0, 4} do
		local function part(t) return t:narrow(2, at + 1, 4) end
		local starts = tensor {at, at, dtype = 'int64'}
		local a = nn.recentattention(part(x), part(k), part(v), here[1], here[2], here[3], here[4], starts, o)
		local b = nn.recentattention(part(x):to(D), part(k):to(D), part(v):to(D), there[1], there[2], there[3], there[4], starts:to(D), o)
		assert(b:to 'cpu':eq(a):all():item() and there[1]:to 'cpu':dequantize():eq(here[1]:dequantize()):all():item())
		for i = 2, 4 do assert(there[i]:to 'cpu':eq(here[i]):all():item()) end
	end
end)

it('cachedattention writes codes and their scales there', function()
	tensor.seed(5)
	local x, k, v = tensor.randn(2, 3, 32), tensor.randn(2, 3, 16), tensor.randn(2, 3, 16)
	for _, spec in ipairs {'int8:8', 'uint8:8', 'int4:8+min'} do
		local here = {tensor.zeros {2, 2, 9, 8}:quantize(spec), tensor.zeros {2, 2, 9, 8}:quantize(spec)}
		local there, o = {here[1]:to(D), here[2]:to(D)}, {heads = 4, rope = 'half', kspec = spec, vspec = spec}
		for _, at in ipairs {0, 3} do
			local starts = tensor {at, at + 2, dtype = 'int64'}
			local a = nn.cachedattention(x, k, v, here[1], here[2], starts, o)
			local b = nn.cachedattention(x:to(D), k:to(D), v:to(D), there[1], there[2], starts:to(D), o)
			assert(b:to 'cpu':eq(a):all():item() and there[1]:to 'cpu':dequantize():eq(here[1]:dequantize()):all():item())
		end
	end
end)
