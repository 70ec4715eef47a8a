-- SPDX-License-Identifier: MIT
-- method='brecq': better than rounding in the result of the block, one of the two codes around each weight, the same twice.
tensor.seed(7)
local m = nn.Sequential {nn.Conv2d(3, 8, 3, {pad = 1}), nn.ReLU(), nn.Conv2d(8, 6, 3, {stride = 2}), nn.ReLU(), nn.Flatten(), nn.Linear(54, 5)}
local images = tensor.randn(24, 1, 8, 8):repeatinterleave(3, {axis = 2}) + tensor.randn(24, 3, 8, 8) * 0.3
local data = {{images:narrow(1, 1, 10)}, {images:narrow(1, 11, 14)}}
local function quantize(spec, method)
	tensor.seed(9)
	return m:quantize {mode = 'weight_only', weight = spec, method = method, data = data, log = false}
end
local function same(a, b) return a:codes():eq(b:codes()):all():item() end
local function squares(y) return y:detach():to 'float64':square():sum():item() end
local short = {'brecq', steps = 80, rate = 0.05, rows = 12}

it('is better than rounding, and the same twice', function()
	local q, r = quantize('int3/1', short)
	assert(squares(q(images) - m(images)) < 0.6 * squares(quantize('int3/1', 'rtn')(images) - m(images)))
	local again = quantize('int3/1', short)
	for _, name in ipairs {'conv1', 'conv2', 'linear1'} do assert(same(q[name].weight, again[name].weight), name) end
	assert(r[3].block > r[3].rtn)
end)
it('chooses one of the two codes around each weight', function()
	local q, w = quantize('uint4/1', short).linear1.weight, m.linear1.weight:detach()
	local s = w:quantize 'uint4/1':qparams().scale
	assert((q:dequantize() - w):abs():le(s:view(5, 1) * (1 + 1e-5)):all():item() and not same(q, w:quantize 'uint4/1'))
	local other = quantize('int4/1', {'brecq', steps = 80, rate = 0.05, rows = 12, scale = true}).linear1.weight
	print(other:qparams().scale:eq(w:quantize 'int4/1':qparams().scale):all():item())  --> false
end)
it('keeps rounding where it is better', function()
	local q, r = quantize('int8/1', {'brecq', steps = 1})
	print(same(q.linear1.weight, m.linear1.weight:detach():quantize 'int8/1'), r[3].error == r[3].rtn)  --> true	true
end)
