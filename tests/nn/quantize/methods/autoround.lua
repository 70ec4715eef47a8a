-- SPDX-License-Identifier: MIT
-- method='autoround': codes of one step by the formulas, never worse than rounding, the same twice, for all kinds of codes.
tensor.seed(4)
local m = nn.Sequential {nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 8, {bias = false})}
local x = tensor.randn(60, 6):matmul(tensor.randn(6, 24)) + tensor.randn(60, 24) * 0.1
local data = {{x:narrow(1, 1, 20)}, {x:narrow(1, 21, 40)}}
local function quantize(model, spec, method, given)
	tensor.seed(9)
	return model:quantize {mode = 'weight_only', weight = spec, method = method, data = given or data, log = false}
end
local function same(a, b) return a:codes():eq(b:codes()):all():item() and a:dequantize():eq(b:dequantize()):all():item() end
local function squares(y) return y:to 'float64':square():sum():item() end

it('is better than rounding in the result of the block, and the same twice', function()
	local one = nn.Sequential {m[1]}
	local y = one(x):detach()
	for _, spec in ipairs {'int4:8', 'int3/1', 'uint4:8', 'uint3:8+min', 'nf4:8', 'mxfp4'} do
		local q, r = quantize(one, spec, {'autoround', steps = 80, rows = 30})
		local noise, plain = squares(q(x) - y), squares(quantize(one, spec, 'rtn')(x) - y)
		assert(noise < 0.9 * plain, ('%s: %g'):format(spec, noise / plain))
		assert(math.abs(r[1].block - 10 * math.log(squares(y) / noise, 10)) < 0.01)
		assert(same(q.linear1.weight, quantize(one, spec, {'autoround', steps = 80, rows = 30}).linear1.weight))
		assert(tostring(q.linear1.weight:spec()) == tostring(quant.spec(spec)))
	end
	print(quantize(one, 'mxfp4', 'autoround').linear1.weight:qparams().scale:dtype())  --> float8_e8m0
	print(quantize(one, 'int4:8', 'autoround').linear1.weight:qparams().scale:dtype())  --> float16
end)
it('takes steps by the sign of the gradient', function()
	-- one step of rate r with all rows: V = -r sign(g X s), the clip factor 1 - r where its gradient is above 0
	local one, r = nn.Sequential {nn.Linear(24, 3, {bias = false})}, 0.4
	local w = one[1].weight:detach()
	local s = (w:abs():max {axis = 2} / 7):to 'float32'
	local n = (w / s:view(3, 1)):round()
	local e = x:matmul((n * s:view(3, 1) - w):t())
	local g = e:t():matmul(x)
	local v = (g * s:view(3, 1)):sign() * -r
	local ds = (g * (n - w / s:view(3, 1))):sum {axis = 2} * s
	local s1 = s * (1 - ds:gt(0):to 'float32' * r)
	local wanted = (w / s1:view(3, 1) + v):round():clamp {low = -7, high = 7}
	local q = quantize(one, 'int4/1', {'autoround', steps = 2, rows = 60, rate = r})
	-- two steps, the second of half the rate: the best of the first two values is kept, or the last
	local first, second = wanted * s1:view(3, 1), q[1].weight:dequantize()
	local function loss(y) return squares(x:matmul((y - w):t())) end
	assert(loss(second) <= math.min(loss(first), loss(n * s:view(3, 1))) * (1 + 1e-6))
	local only = quantize(one, 'int4/1', {'autoround', steps = 1, rows = 60, rate = r})[1].weight
	local least = math.min(loss(first), loss(n * s:view(3, 1)))
	assert(math.abs(loss(only:dequantize()) - least) < 1e-4 * least)
end)
it('keeps rounding where it is better', function()
	local q, r = quantize(m, 'int4:8', {'autoround', steps = 1, rate = 0.0001})
	assert(same(q.linear1.weight, m.linear1.weight:detach():quantize 'int4:8'))
	assert(r[1].error == r[1].rtn)
end)
it('takes texts, whose blocks are cut', function()
	local t = nn.Transformer {vocab = 20, d = 16, layers = 2, heads = 2, context = 12, norm = 'rmsnorm'}
	local ids = tensor.randint {4, 12, low = 1, high = 20}
	local list = {{ids}, {tensor.randint {2, 9, low = 1, high = 20}}}
	local q, r = quantize(t, 'int3:8', {'autoround', steps = 15, rows = 3}, list)
	local rtn = quantize(t, 'int3:8', 'rtn', list)
	assert(squares(q(ids) - t(ids)) < squares(rtn(ids) - t(ids)))
	for _, row in ipairs(r) do assert(not row.block or row.block > 0, row.name) end
end)
it('refuses codes without scales of their own', function()
	for _, spec in ipairs {'q4_0', 'nvfp4', 'kmeans4:8', 'nf4:8:32'} do
		local good, message = pcall(quantize, nn.Sequential {nn.Linear(32, 32)}, spec, 'autoround', {{tensor.randn(4, 32)}})
		assert(not good and message:find("quantize: method 'autoround': linear1: wanted", 1, true), message)
	end
end)
