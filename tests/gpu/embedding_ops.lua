-- SPDX-License-Identifier: MIT
-- Rows of tables on a device: the bits of the CPU, forward and backward, and its errors.
local D = dofile 'tests/tools/gpu_tested.lua'

local same = dofile 'tests/tools/same.lua'
local kernels = dofile 'tests/tools/gpu_ledger.lua'

local ids = tensor.randint{7, 30, low = 1, high = 19, dtype = 'int32'}

it('embedding and its gradient', function()
	local w = tensor.randn(19, 48)
	local function both(at)
		local leaf = at:clone():requires_grad_()
		local y = leaf:embedding(ids:to(at:device()))
		y:mul(y):sum():backward()
		return y, leaf:grad()
	end
	local y, g = both(w)
	quant.log 'reset'
	local dy, dg = both(w:to(D))
	print(kernels 'embedding', kernels 'embedding_back')  --> float32 embedding	float32 embedding_back
	assert(same(y, dy) and same(g, dg))
end)

it('rows of codes', function()
	local w = tensor.randn(19, 48)
	for _, spec in ipairs {'int8', 'int8/1', 'int4/1', 'uint4:16', 'int8:8'} do
		local q = w:quantize(spec)
		local dq, there = q:to(D), ids:to(D)
		quant.log 'reset'
		local y = dq:embedding(there)
		assert(kernels 'embedding' == q:codes():dtype() .. ' embedding', kernels 'embedding')
		assert(same(q:embedding(ids), y), spec)
	end
end)

it('rows as codes of a given scale', function()
	local w = tensor.randn(19, 48)
	w[3][4], w[5][1] = 0 / 0, 1 / 0
	for _, given in ipairs {w, w:to 'float16', w:clamp(-9, 9):quantize 'int8/1', w:clamp(-9, 9):quantize 'uint4:16'} do
		for _, spec in ipairs {'uint8 scale=0.02 zero_point=128', 'int16 scale=0.0003'} do
			local y = given:embedding(ids, {out = spec})
			local there, at = given:to(D), ids:to(D)
			quant.log 'reset'
			local dy = there:embedding(at, {out = spec})
			assert(kernels 'embedding':find 'embedding$', kernels 'embedding')
			local p, dp = y:qparams(), dy:qparams()
			assert(same(y:codes(), dy:codes()) and p.nan == dp.nan and p.inf == dp.inf, spec)
		end
	end
end)

it('ids that are no rows are an error at the next wait', function()
	local w, bad = tensor.randn(19, 4), tensor{{1, 2}, {20, 3}, dtype = 'int64'}
	local _, wanted = pcall(w.embedding, w, bad)
	w, bad = w:to(D), bad:to(D)
	local y = w:embedding(bad)
	local ok, got = pcall(gpu.sync)
	print(ok, got == wanted, y:device() == D)  --> false	true	true
	gpu.sync()
	print(w:embedding(bad:clamp(1, 19)):sum():device() == D)  --> true
end)
