-- SPDX-License-Identifier: MIT
-- method='omniclip': scales of clipped ranges under which rounding is better, before other methods, and what it refuses.
tensor.seed(3)
local m = nn.Sequential {nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 8)}
tensor.nograd(function() m.linear1.weight:narrow(2, 3, 1):mul_(4) end) -- one large input, which is hardly ever there
local x = tensor.randn(60, 24)
x:narrow(2, 3, 1):mul_(0.02)
local function quantize(model, spec, method)
	tensor.seed(9)
	return model:quantize {mode = 'weight_only', weight = spec, method = method, data = {{x}}, log = false}
end
local function squares(y) return y:detach():to 'float64':square():sum():item() end

it('is better than rounding where few weights are large', function()
	local one = nn.Sequential {m[1]}
	for _, spec in ipairs {'int4/1', 'uint4/1', 'int4:24', 'uint4:24+min', 'nf4:24'} do
		local q, r = quantize(one, spec, {'omniclip', rows = 60, rate = 0.1})
		local noise, plain = squares(q(x) - one(x)), squares(quantize(one, spec, 'rtn')(x) - one(x))
		assert(noise < 0.6 * plain, ('%s: %g'):format(spec, noise / plain))
		assert(r[1].error > r[1].rtn + 2)
		local again = quantize(one, spec, {'omniclip', rows = 60, rate = 0.1})
		assert(q[1].weight:codes():eq(again[1].weight:codes()):all():item())
		local w = one[1].weight:detach() -- rounding under its scales
		local p = q[1].weight:qparams()
		local s = {dtype = p.format or p.dtype, scheme = not p.format and p.scheme or nil, axis = p.axis == 1 and 1 or nil, block = p.block, scale = p.scale,
			zero_point = p.zero_point, minimum = p.minimum}
		assert(w:quantize(s):codes():eq(q[1].weight:codes()):all():item(), spec)
	end
end)
it('goes before methods that decide codes', function()
	local q, r = quantize(m, 'int4/1', {{'omniclip', rows = 60, rate = 0.1, steps = 60}, 'gptq'})
	local plain = quantize(m, 'int4/1', 'rtn')
	assert(squares(q(x) - m(x)) < 0.5 * squares(plain(x) - m(x)))
	print(r[1].method)  --> omniclip gptq
end)
it('says where clipping does not help', function()
	local y = tensor.eye(24)
	tensor.seed(9)
	local _, r = nn.Sequential {nn.Linear(24, 32)}:quantize {mode = 'weight_only', weight = 'int8/1', method = {'omniclip', steps = 2, rate = 3}, data = {{y}}, log = false}
	print(r[1].why)  --> clipping does not help
end)
it('refuses scales that cannot be moved', function()
	local good, message = pcall(quantize, m, 'mxfp4', 'omniclip')
	print(good, message:match 'wanted.*')  --> false	wanted scales that are no powers of two, got 'mxfp4'
end)
