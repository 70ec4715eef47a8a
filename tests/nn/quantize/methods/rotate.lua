-- SPDX-License-Identifier: MIT
-- method='rotate': models with outliers in their activations become as good as those without; it is left out where it does not help.
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
tensor.seed(22)
local function model(o)
	for name, value in pairs {vocab = 20, d = 64, heads = 2, layers = 2, ff = 48, context = 12, norm = 'rmsnorm', act = 'swiglu'} do o[name] = o[name] or value end
	local m = nn.Transformer(o)
	tensor.nograd(function()
		for _, p in ipairs(m:parameters()) do p:add_(tensor.randn {p:size()}:mul_(0.2)) end
	end)
	return m
end
local clean = model {}
local m = clean:clone()
tensor.nograd(function() -- outliers that leave the function as it is
	for i = 1, 2 do
		local b = m[i]
		for norm, layers in pairs {[b.norm1] = {b.attention.query, b.attention.key, b.attention.value}, [b.norm2] = {b.ff.gate, b.ff.up}} do
			norm.weight:narrow(1, 8, 1):mul_(64)
			for _, layer in ipairs(layers) do layer.weight:narrow(2, 8, 1):div_(64) end
		end
	end
end)
local ids = tensor.randint {10, 12, low = 1, high = 20}
local data = {{ids:narrow(1, 1, 4)}, {ids:narrow(1, 5, 6)}}
local function quantize(model, mode, method, o)
	o = o or {}
	if mode == 'static' then model:calibrate(data, {log = false}) end
	return model:quantize {mode = mode, weight = o.weight, input = o.input, method = method, data = o.data == nil and method and data or o.data or nil, shared = o.shared, log = false}
end
local function off(q) return m(ids):detach():error(q(ids)).sqnr end
local function why(r, name)
	for _, row in ipairs(r) do
		if row.name == name then return row.why end
	end
end

it('outliers no longer count', function()
	for _, mode in ipairs {'static', 'dynamic'} do
		local q, r = quantize(m, mode, 'rotate')
		local before, after, without = off(quantize(m, mode)), off(q), off(quantize(clean, mode))
		assert(after > before + 8 and after > without - 1.5, ('%s %g %g %g'):format(mode, before, after, without))
		assert(why(r, 'block1.ff.gate'):find('rotated by Hadamard matrices of size 64', 1, true))
	end
end)
it('has the codes of m:rotate', function()
	local q, wanted = quantize(m, 'dynamic', 'rotate'), m:rotate():quantize {mode = 'dynamic'}
	assert(q[1].ff.up.weight:codes():eq(wanted[1].ff.up.weight:codes()):all():item())
	local other = quantize(m, 'dynamic', {{'rotate', seed = 9}, 'gptq'})
	assert(not q[1].ff.up.weight:codes():eq(other[1].ff.up.weight:codes()):all():item())
end)
it('without data', function()
	local q, r = quantize(m, 'dynamic', 'rotate', {data = false})
	assert(off(q) > off(quantize(m, 'dynamic')) + 8)
	print(why(r, 'block2.ff.down'))  --> rotated by Hadamard matrices of size 64; not judged on data
	local _, r2 = quantize(model {d = 48}, 'dynamic', 'rotate', {data = false})
	print(why(r2, 'block2.ff.down'):match '[^;]*')  --> rotated by Hadamard matrices of size 16, 3 in the 48 numbers of a vector
	refused("wanted data= to observe the ranges of inputs again, which 'rotate' changes, got none", quantize, m, 'static', 'rotate', {data = false})
end)
it('is left out of a model that it makes worse', function()
	local t = model {norm = 'layernorm', act = 'gelu', layers = 1, bias = false}
	tensor.nograd(function() -- codes of int4 already
		for _, p in ipairs(t:parameters()) do p:copy_((p * 10):round():clamp {low = -7, high = 7}) end
		for _, layer in ipairs {t[1].attention.query, t[1].attention.key, t[1].attention.value, t[1].attention.out, t[1].ff[1], t[1].ff[3], t.embedding} do
			layer.weight:narrow(2, 1, 1):fill_(7)
		end
		t.norm.bias:fill_(0.5)
	end)
	local q, r = quantize(t, 'weight_only', 'rotate', {weight = 'int4/1'})
	assert(why(r, 'head'):find('methods of the whole model made it worse: left out', 1, true), why(r, 'head'))
	assert(q(ids):error(t(ids):detach()).max < 1e-3 and q.head.bias == false)
end)
it('is for language models with weights of their own', function()
	local asked = false
	local function batches()
		asked = true
		return nil
	end
	refused("quantize: method 'rotate': wanted a language model", function()
		nn.Sequential {nn.Linear(4, 4)}:quantize {mode = 'weight_only', method = 'rotate', data = batches, log = false}
	end)
	assert(not asked)
	refused("method 'rotate': embedding: wanted shared='apart'", quantize, m, 'dynamic', 'rotate', {shared = 'once'})
	refused("wanted 'rotate' before 'gptq'", quantize, m, 'dynamic', {'gptq', 'rotate'})
end)
