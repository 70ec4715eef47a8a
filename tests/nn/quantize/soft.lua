-- SPDX-License-Identifier: MIT
-- Soft weights: values are those of the codes, factors of ranges by the formulas, gradients against finite differences; the variables of AdaRound.
local internal = debug.getregistry()['quoll.internal']
local Soft, Rectified = internal.import 'nn/quantize/soft', internal.import 'nn/quantize/rectified'
tensor.seed(12)
local function same(a, b) return a:eq(b):all():item() end
local w = tensor.randn(6, 40) + 0.2
local SPECS = {'int4/1', 'int4:16', 'int8', 'uint4:16', 'uint4/1', 'uint4:16+min', 'nf4:16', 'mxfp4', 'int3/1@mse', 'fp8_e4m3/1', 'ternary/1'}
local function spec_of(text) return quant.spec(text) end

it('has the values of its codes', function()
	for _, text in ipairs(SPECS) do
		local s = Soft.of(w, spec_of(text))
		local v = tensor.rand(6, 40) - 0.5
		local low, high = s.scale * 0 + 0.83, s.scale * 0 + 0.71
		local scale, origin = s.scale, s.origin
		if s:moves() then scale, origin = s:clipped(low, high) end
		local y = s:values(v, scale, origin)
		local q = s:codes(y, scale, origin)
		assert(same(q:dequantize(), y), text)
		assert(q:nbytes() == w:quantize(text):nbytes() and q:qparams().scale:dtype() == w:quantize(text):qparams().scale:dtype(), text)
		assert(same(s:values(v * 0, s.scale, s.origin), w:quantize(text):dequantize()), text)
	end
end)
it('clips the ends of ranges', function()
	local s = Soft.of(w, spec_of 'int4/1')
	assert(same(s:clipped(nil, s.scale * 0 + 0.5), s.scale * 0.5))
	local u = Soft.of(w, spec_of 'uint4/1')
	local one = u.scale * 0 + 1
	local scale, zero = u:clipped(one * 0.6, one * 0.8)
	local lo, hi = -u.origin * u.scale * 0.6, (15 - u.origin) * u.scale * 0.8
	assert(((hi - lo) / 15 - scale):abs():max():item() < 1e-6 and (-lo / scale - zero):abs():max():item() < 1e-4)
	local m = Soft.of(w, spec_of 'uint4:40+min')
	scale, zero = m:clipped(m.scale * 0 + 0.6, m.scale * 0 + 0.8)
	assert((m.origin * 0.6 - zero):abs():max():item() < 2e-3 and ((m.origin + 15 * m.scale) * 0.8 - m.origin * 0.6 - 15 * scale):abs():max():item() < 1e-2)
end)
it('has gradients of the factors', function()
	-- without rounding of float16: rows of float32 scales; the error that rounding makes is a constant
	for _, text in ipairs {'int4/1', 'uint4/1'} do
		local s = Soft.of(w, spec_of(text))
		local g, e = tensor.randn(6, 40), 1e-3
		local factor = {low = s.kind and (s.scale * 0 + 0.9):requires_grad_(), high = (s.scale * 0 + 0.9):requires_grad_()}
		local scale, origin = s:clipped(factor.low, factor.high)
		local y = s:values(tensor.zeros(6, 40), scale, origin)
		y:backward(g)
		local sc, zero = scale:detach():view(6, 1), (origin and origin:detach():round() or scale:detach() * 0):view(6, 1)
		local c = y:detach() / sc
		local free = (w / sc):round():sub(c):abs():lt(0.5):to 'float32'
		-- inside: x + rest * scale; outside: (code - zero) * scale, where the zero point moves as a real number
		local function value(low, high)
			local s2, o2 = s:clipped(low, high)
			s2 = s2:detach():view(6, 1)
			local shift = origin and (o2:detach() - origin:detach()):view(6, 1) or 0
			return (((w + (c - w / sc) * s2) * free + (c - shift) * s2 * (1 - free)) * g):to 'float64':sum {axis = 2}
		end
		for name in pairs(factor) do
			local at = {low = factor.low and factor.low:detach(), high = factor.high:detach()}
			local up, down = {low = at.low, high = at.high}, {low = at.low, high = at.high}
			up[name], down[name] = at[name] + e, at[name] - e
			local slope = (value(up.low, up.high) - value(down.low, down.high)) / (2 * e)
			local grad = factor[name]:grad()
			assert((slope - grad):abs():max():item() < 2e-2 * grad:abs():max():item(), text .. ' ' .. name)
		end
		assert(zero:size(1) == 6)
	end
end)
it('has the schedule of AdaRound', function()
	print(('%.15f'):format(Rectified.beta(8000, 10000)))  --> 4.636038969321072
	print(Rectified.beta(2000, 10000), Rectified.beta(1999, 10000), Rectified.beta(10000, 10000))  --> 20.0	nil	2.0
end)
it('begins at the weight and ends at codes', function()
	for _, text in ipairs(SPECS) do
		local s = Soft.of(w, spec_of(text))
		local t = {weight = w, spec = spec_of(text)}
		for _, o in ipairs {{}, s:moves() and {scale = true} or nil} do
			local r = Rectified.of(t, o)
			local clipped = w:maximum(r.low):minimum(r.high)
			assert((r:weight() - clipped):abs():max():item() < 1e-5, text)
			assert(same(r:codes():dequantize(), tensor.where((w - r.low):ge((r.high - r.low) / 2), r.high, r.low)) or text == 'int8', text)
			r.v:detach():copy_(tensor.randn(6, 40))
			if r.factor then r.factor:detach():copy_(r.factor:detach() * 0.9) end
			local q = r:codes():dequantize()
			if not r.factor then assert(same(q, tensor.where(r.v:detach():ge(0), r.high, r.low)), text) end
			if r.factor and not s.kind then
				local wanted = tensor.where(r.v:detach():ge(0), r.high, r.low) * 0.9
				assert((q - wanted):abs():max():item() < 2e-3 * wanted:abs():max():item(), text)
			end
		end
	end
end)
it('has a penalty and its gradient', function()
	local r = Rectified.of({weight = w, spec = spec_of 'int4/1'}, {})
	r:penalty(4):backward()
	local h = ((-r.v:detach()):exp() + 1):to 'float64' ^ -1
	local d = h * 1.2 - 0.1
	local slope = (d * 2 - 1):abs() ^ 3 * (d * 2 - 1):sign() * -8 * 1.2 * h * (1 - h)
	local within = d:gt(1e-4):to 'float64' * d:lt(1 - 1e-4):to 'float64'
	assert(((slope - r.v:grad()) * within):abs():max():item() < 1e-4 and within:sum():item() > 200)
end)
