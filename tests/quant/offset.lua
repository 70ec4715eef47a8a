-- SPDX-License-Identifier: MIT
-- labels: quick
-- x:fake(v, scale, …): rounding with offsets, for integer codes with and without zero point, minimums and tables of values; gradients
-- against finite differences of the smooth surrogate.
tensor.seed(5)
local function same(a, b) return a:eq(b):all():item() end
local function refused(text, f, ...)
	local good, message = pcall(f, ...)
	assert(not good and message:find(text, 1, true), message)
end
-- Scale and origin of a spec for x, as float32.
local function numbers(x, spec)
	local p = x:quantize(spec):qparams()
	local origin = p.minimum or p.scheme == 'asymmetric' and p.zero_point or nil
	return p.scale:to 'float32', origin and origin:to 'float32'
end
local function fake(x, v, s, o, spec)
	if o then return x:fake(v, s, o, spec) end
	return x:fake(v, s, spec)
end
local SPECS = {'int4:32', 'int4/1', 'int3/2', 'int8', 'int4/1:3', 'uint4:32', 'uint4/1', 'uint8/2', 'uint4:9+min', 'uint3:32+min', 'nf4:32', 'mxfp4',
	'fp8_e4m3/1', 'fp4_e2m1:16', 'mxint8', 'ternary/1', {dtype = 'uint8', scheme = 'symmetric', axis = 1}, {dtype = 'int4', scheme = 'full', block = 16},
	{bits = tensor {2, 3, 4, 5, 6}, axis = 1}}

local x = tensor.randn(5, 40) + 0.3
x[1]:fill_(0)

it('is fake without offsets, bit for bit', function()
	for _, spec in ipairs(SPECS) do
		local s, o = numbers(x, spec)
		assert(same(fake(x, tensor.zeros(5, 40), s, o, spec), x:fake(spec)), tostring(quant.spec(spec)))
		assert(same(fake(x:t():contiguous():t(), tensor.zeros(40, 5):t(), s, o, spec), x:fake(spec)), tostring(quant.spec(spec)))
	end
end)
it('chooses between the two codes around a value', function()
	local w = tensor {{-2.4, -0.6, 0.1, 1.3}}
	local s = tensor {0.5}
	print(w:fake(tensor {{-0.5, -0.5, -0.5, -0.5}}, s, 'int4/1')[1])  --> float32(4)  -2.5000  -1.0000   0.0000   1.0000
	print(w:fake(tensor {{0.5, 0.5, 0.5, 0.5}}, s, 'int4/1')[1])  --> float32(4)  -2.0000  -0.5000   0.5000   1.5000
	local t = tensor {{-3.4, 0.2, 2.4, 6}} -- of e2m1: -4 -3, 0 0.5, 2 3, 6
	print(t:fake(tensor {{-0.5, -0.5, -0.5, -0.5}}, tensor {1}, 'fp4_e2m1/1')[1])  --> float32(4)  -4  -0   2   4
	print(t:fake(tensor {{0.5, 0.5, 0.5, 0.5}}, tensor {1}, 'fp4_e2m1/1')[1])  --> float32(4)  -3.0000   0.5000   3.0000   6.0000
	local near0 = tensor {{-0.1, 0.1, -0.3, 0.3}}
	print(near0:fake(tensor {{-0.5, -0.5, -0.5, -0.5}}, tensor {{1}}, 'mxfp4')[1])  --> float32(4)  -0.5000   0.0000  -0.5000   0.0000
	local n, half, one = tensor.rand(40, 40) * 2 - 1, tensor.zeros(40, 40) + 0.5, tensor.ones(40, 1) -- neighbouring distances of nf4 differ
	local low, high = n:fake(-half, one, 'nf4:40'), n:fake(half, one, 'nf4:40')
	assert(low:le(n):all():item() and high:ge(n):all():item())
	local steps = tensor(quant.spec 'nf4'.values)
	local between = steps:view(1, 1, 16):gt(low:unsqueeze(3)):to('int32'):sum {axis = 3} - steps:view(1, 1, 16):ge(high:unsqueeze(3)):to('int32'):sum {axis = 3}
	print(between:min():item(), between:max():item())  --> 0	0
end)

-- What the op computes with the rounding errors r as constants, in float64: the surrogate whose gradient is wanted. inside: 1 where the
-- code may move.
local function surrogate(at, spec, r, inside)
	local s, shift = at.s, at.o
	if shift and not quant.spec(spec).shift then
		return (at.x + at.v * s * r.gap + r.e * s) * inside + (r.c - (shift - r.zero)) * s * (1 - inside)
	end
	if not shift then return (at.x + at.v * s * r.gap + r.e * s) * inside + r.c * s * (1 - inside) end
	return ((at.x - shift) + at.v * s + r.e * s + shift) * inside + (r.c * s + shift) * (1 - inside)
end

it('has the gradients of the smooth surrogate', function()
	for _, spec in ipairs {'int4/1', 'uint4/1', 'uint4:40+min', 'int3:40', 'nf4:40', 'fp4_e2m1:40'} do
		local x = tensor.randn(4, 40) + 0.2
		local s, o = numbers(x, spec)
		s = s * 0.7 -- some values are clipped
		local shape = {s:size()}
		local v = tensor.rand(4, 40) - 0.5
		local leaf = {x = x:clone(), v = v:clone(), s = s:clone(), o = o and o:clone()}
		for _, t in next, leaf do t:requires_grad_() end
		local g = tensor.randn(4, 40)
		local y = fake(leaf.x, leaf.v, leaf.s, leaf.o, spec)
		y:backward(g)
		local wide = {x = x:to 'float64', v = v:to 'float64', s = s:to('float64'):view(4, 1), o = o and o:to('float64'):view(4, 1)}
		local inside = leaf.x:grad():ne(0):to 'float64'
		local shifted = quant.spec(spec).shift
		local c = (y:detach():to 'float64' - (shifted and wide.o or 0)) / wide.s
		local gap = quant.spec(spec).values and (leaf.v:grad() / (g * s:view(4, 1))):to 'float64' or 1
		local r = {c = c, zero = wide.o and wide.o:clone(), gap = gap}
		r.e = c - (wide.x - (shifted and wide.o or 0)) / wide.s - wide.v * gap
		local function loss() return (surrogate(wide, spec, r, inside) * g:to 'float64'):sum():item() end
		for key, t in next, leaf do
			local list = wide[key]
			for _, at in ipairs {{1, 1}, {2, key == 'x' and 7 or key == 'v' and 9 or 1}, {4, 1}} do
				local e, was = 1e-5, list[at[1]][at[2]]:item()
				list[at[1]][at[2]] = was + e
				local up = loss()
				list[at[1]][at[2]] = was - e
				local down = loss()
				list[at[1]][at[2]] = was
				local grad = t:grad():view(4, list:size(2))[at[1]][at[2]]:item()
				assert(math.abs((up - down) / (2 * e) - grad) < 1e-3 * math.max(1, math.abs(grad)),
					('%s %s: %g, wanted %g'):format(spec, key, grad, (up - down) / (2 * e)))
			end
		end
		local moved = inside:sum():item()
		assert(moved > 80 and moved < 160, moved) -- some are inside, some are not
		assert(#shape == leaf.s:grad():dim())
	end
end)
it('reaches every layout of scales', function()
	for _, spec in ipairs {'int4', 'int4/2', 'int4/1:3', 'int4:7'} do
		local s = numbers(x, spec):requires_grad_()
		local v = tensor.zeros(5, 40):requires_grad_()
		x:fake(v, s, spec):sum():backward()
		-- the sum of c - x / s of a scale is (y - x) / s
		local rest = ((x:fake(spec) - x):sum() / 1):item()
		local got = (s:grad() * s:detach()):sum():item()
		assert(math.abs(got - rest) < 1e-3, spec)
		assert(v:grad():gt(0):all():item())
	end
end)
it('refuses what has no such offsets', function()
	local v, s = tensor.zeros(5, 40), tensor.ones(5, 2)
	refused('fake: wanted a scale after the offsets, got none', x.fake, x, v, 'int4:32')
	refused('fake: offset: wanted shape (5, 40), got (5, 2)', x.fake, x, s, s, 'int4:32')
	refused('fake: scale: wanted shape (5, 2), a number for each scale, got (5, 40)', x.fake, x, v, v, 'int4:32')
	refused("fake: minimum: wanted it after the scale for 'minimum', got none", x.fake, x, v, s, 'uint4:32+min')
	refused("fake: zero_point: wanted none for 'symmetric', got one", x.fake, x, v, s, s, 'int4:32')
	refused('fake: scale: wanted finite numbers > 0, got -1', x.fake, x, v, -s, 'int4:32')
	for _, spec in ipairs {'q4_0', 'binary/1', 'float16', 'kmeans4', {dtype = 'int8', scheme = 'log', axis = 1}, {dtype = 'int4', scale = 0.1}} do
		refused('fake: offset: wanted codes that are integers or of a fixed grid', x.fake, x, v, tensor.ones(5), spec)
	end
	refused('fake: offset: wanted plain floats', x.fake, x, v:to 'int8', s, 'int4:32')
	print(tensor.zeros(0, 3):fake(tensor.zeros(0, 3), tensor.zeros(0), 'int4/1'):size())  --> 0	3
end)
