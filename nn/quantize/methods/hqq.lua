-- SPDX-License-Identifier: MIT
-- HQQ (Badri and Shaji 2023, half-quadratic quantization; settings of torchao's quant_primitives.py): minimums, or zero points, for which
-- sum |w - decoded|^p with p < 1 is small, so that few large weights do not move them. With s the reciprocal of the scale and z the zero point
--   q = round(w s + z)      e = shrink(w - (q - z) / s)      z = mean(q - (w - e) s)      shrink(x) = sign(x) max(|x| - |x|^(p - 1) / beta, 0)
local internal = select(2, ...)
local Groups = internal.import 'nn/quantize/groups'

local POWER, BETA, GROWTH, STEPS = 0.7, 10, 1.01, 20
local LEAST_RANGE, MOST_RECIPROCAL = 1e-4, 2e4

-- s and z of the range of each group, (rows, count, 1); codes are lo to hi.
local function start(x, lo, hi, with_zero)
	local low, high = x:min {axis = 3, keep = true}, x:max {axis = 3, keep = true}
	if with_zero then low, high = low:clamp {high = 0}, high:clamp {low = 0} end -- 0 must be a code
	local s = ((hi - lo) / (high - low):clamp {low = LEAST_RANGE}):clamp {high = MOST_RECIPROCAL}
	return s, lo - low * s
end

local function shrink(d, beta)
	local size = d:abs()
	return d:sign() * (size - size:clamp {low = 1e-12} ^ (POWER - 1) / beta):relu()
end

-- The zero points, of the least mean |error| of each group on the way.
local function solve(x, valid, s, z, lo, hi)
	local n, beta = valid:sum {axis = 3, keep = true}, BETA
	local best, at
	for _ = 1, STEPS do
		local q = (x * s + z):round():clamp {low = lo, high = hi}
		local d = x - (q - z) / s
		local e = (d:abs() * valid):sum {axis = 3, keep = true}
		local better = best and e:lt(best)
		at, best = best and tensor.where(better, z, at) or z, best and tensor.where(better, e, best) or e
		z = ((q - (x - shrink(d, beta)) * s) * valid):sum {axis = 3, keep = true} / n
		beta = beta * GROWTH
	end
	return at
end

local function why_not(spec)
	if not (spec.shift or spec.offset) then return "wanted codes with a minimum ('uint4:32+min') or a zero point ('uint4:32'), got '" .. tostring(spec) .. "'" end
	if spec.joint or spec.values then return "wanted a spec that takes scale=, got '" .. tostring(spec) .. "'" end
end

return {
	phase = 'ranges', needs = 'nothing',
	text = [[HQQ: minimums, or zero points, that make the error small for most weights and let a few be off. No data; almost as good as methods with data at
4 bits with a minimum, of little use for zero points, which are rounded.]],
	refuses = function(item) return why_not(item.spec) end,
	run = function(t)
		local spec = t.spec
		local g = Groups.of(t.weight, spec)
		local x, dtype = g:split(t.weight), t.weight:quantize(spec):qparams().scale:dtype()
		local lo, hi = spec.min, spec.max
		local s, z = start(x, lo, hi, not spec.shift)
		z = solve(x, g:valid(x:device()), s, z, lo, hi)
		s, z = s:view(g.rows, g.count), z:view(g.rows, g.count)
		if spec.shift then
			t.spec = g:with(1 / s, nil, -z / s, dtype)
		else
			t.spec = g:with(1 / s, z:round():clamp {low = lo, high = hi}, nil, dtype)
		end
	end,
}
