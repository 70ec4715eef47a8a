-- SPDX-License-Identifier: MIT
-- method='adaround': better than rounding in the outputs of each layer, the same twice; learned scales and biases; where it does not apply.
tensor.seed(7)
local m = nn.Sequential {nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 8, {bias = false})}
local x = (tensor.randn(200, 6):to 'float64':matmul(tensor.randn(6, 24):to 'float64') + tensor.randn(200, 24) * 0.1):to 'float32' -- the same bits at each level of kernels
local data = {{x:narrow(1, 1, 50)}, {x:narrow(1, 51, 150)}}
local function quantize(model, spec, method, given)
	tensor.seed(9)
	return model:quantize {mode = 'weight_only', weight = spec, method = method, data = given or data, log = false}
end
local function same(a, b) return a:codes():eq(b:codes()):all():item() and a:dequantize():eq(b:dequantize()):all():item() end
local function squares(y) return y:to 'float64':square():sum():item() end
local short = {'adaround', steps = 150, rate = 0.05, rows = 100}

it('is better than rounding, also behind the activation, and the same twice', function()
	for _, spec in ipairs {'int4:8', 'int3/1', 'uint4:8+min', 'nf4:8'} do
		local q, r = quantize(m, spec, short)
		local w = m.linear1.weight:detach()
		local function loss(code) return squares((x:linear(code, m.linear1.bias) - m[1](x)):detach()) end
		local mine, plain = loss(q.linear1.weight:dequantize()), loss(w:quantize(spec):dequantize())
		assert(mine < 0.7 * plain, ('%s: %g'):format(spec, mine / plain))
		assert(r[1].error > r[1].rtn + 1.5 and r[2].error > r[2].rtn)
		assert(squares((q(x) - m(x)):detach()) < 0.7 * squares((quantize(m, spec, 'rtn')(x) - m(x)):detach()))
		local again = quantize(m, spec, short)
		assert(same(q.linear1.weight, again.linear1.weight) and same(q.linear2.weight, again.linear2.weight))
	end
end)
it('chooses one of the two codes around each weight', function()
	local q = quantize(m, 'int4/1', short).linear1.weight
	local w = m.linear1.weight:detach()
	local s = w:quantize 'int4/1':qparams().scale
	assert(q:qparams().scale:eq(s):all():item())
	assert((q:dequantize() - w):abs():le(s:view(32, 1)):all():item() and not same(q, w:quantize 'int4/1'))
end)
it('learns scales and biases', function()
	local o = {'adaround', steps = 150, rate = 0.05, rows = 100, scale = true, bias = true}
	local q = quantize(m, 'int3/1', o)
	assert(not q.linear1.weight:qparams().scale:eq(m.linear1.weight:detach():quantize 'int3/1':qparams().scale):all():item())
	assert(q.linear2.bias and not m.linear2.bias and m.linear1.bias:ne(q.linear1.bias):any():item())
	assert(squares((q(x) - m(x)):detach()) < squares((quantize(m, 'int3/1', short)(x) - m(x)):detach()))
end)
it('convolutions, with groups', function()
	local c = nn.Sequential {nn.Conv2d(4, 8, 3, {pad = 1, groups = 2}), nn.ReLU(), nn.Conv2d(8, 6, 3, {groups = 2, stride = 2})}
	local images = tensor.randn(12, 1, 8, 8):repeatinterleave(4, {axis = 2}) + tensor.randn(12, 4, 8, 8) * 0.1
	local q, r = quantize(c, 'int3/1', short, {{images}})
	assert(r[1].error > r[1].rtn + 1 and r[2].error > r[2].rtn)
	assert(squares((q(images) - c(images)):detach()) < 0.8 * squares((quantize(c, 'int3/1', 'rtn', {{images}})(images) - c(images)):detach()))
end)
it('layers without columns are rounded', function()
	local t = nn.Transformer {vocab = 20, d = 16, layers = 1, heads = 2, context = 12}
	local _, r = quantize(t, 'int4:8', {'adaround', steps = 2}, {{tensor.randint {4, 12, low = 1, high = 20}}})
	for _, row in ipairs(r) do
		if row.kind == 'Embedding' then print(row.why:find('so it is rounded', 1, true) ~= nil) end  --> true
	end
end)
