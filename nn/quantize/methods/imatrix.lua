-- SPDX-License-Identifier: MIT
-- Importance matrix (llama.cpp's imatrix): scales, and minimums, of the least squared error of the weights, each column weighted by the mean square of
-- its input: the diagonal of tr(E H E'). Formats that take importance= search themselves; for others multiples of the scale are tried, then
-- with the codes l the scale of least squares (and the minimum m) is taken where it is better:
--   s = sum(w x l) / sum(w l^2)      with m: s = (Sw Sxl - Sx Sl) / (Sw Sll - Sl^2), m = (Sll Sx - Sl Sxl) / (Sw Sll - Sl^2)
local internal = select(2, ...)
local like = internal.import 'quant/like'
local Scales = internal.import 'nn/quantize/scales'

local HIGH, LOW, STEP = 1.2, 0.3, 0.02
local REFINE = 3

-- The mean square of the input of each column, (1 or outputs, columns); nil: not known.
local function importance_of(t)
	if not t.h then return end
	if t.h:dim() == 2 then return (t.h:diag() / t.rows):to 'float32':view(1, t.h:size(1)) end
	local list = {}
	for g = 1, t.h:size(1) do list[g] = t.h[g]:diag() end
	return (tensor.stack(list) / t.rows):to 'float32':repeatinterleave(t.float:size(1) // t.h:size(1), {axis = 1})
end

-- The multiple of the range of each group with the least weighted error, and this error.
local function coarse(s, error)
	local best = error(s:decoded(1))
	local r = tensor.ones {best:size(1), best:size(2), device = best:device()}
	for i = 0, math.floor((HIGH - LOW) / STEP + 0.5) do
		local here = HIGH - i * STEP
		if not s.limit or here < 1 then -- clipping only makes ranges smaller
			local e = error(s:decoded(here))
			local better = e:lt(best)
			best, r = tensor.where(better, e, best), tensor.where(better, r * 0 + here, r)
		end
	end
	return r, best
end

-- The scale (and minimum) of least squares for codes that stand for scale * l (+ minimum).
local function solve(s, w, scale, minimum, decoded)
	local g = s.groups
	local l = (minimum and decoded - g:spread(minimum) or decoded) / g:spread(scale)
	local x = s.weight
	local sll, sxl = g:sum(w * l * l), g:sum(w * x * l)
	if not minimum then return sxl / sll end
	local sw, sl, sx = g:sum(w + l * 0), g:sum(w * l), g:sum(w * x)
	local det = sw * sll - sl * sl
	return (sw * sxl - sx * sl) / det, (sll * sx - sl * sxl) / det
end

local function refine(s, w, error, r, best)
	local g = s.groups
	local scale = s.scale * r
	local minimum = s.minimum and s.minimum + s.scale * ((1 - r) * (s.steps / 2))
	for _ = 1, REFINE do
		local decoded = s.weight:quantize(g:with(scale, s.zero, minimum, s.dtype)):dequantize()
		local new, low = solve(s, w, scale, minimum, decoded)
		local good = new:gt(0) & new:isfinite()
		new = tensor.where(good, new, scale)
		low = low and tensor.where(good & low:isfinite(), low, minimum)
		local e = error(s.weight:quantize(g:with(new, s.zero, low, s.dtype)):dequantize())
		local better = e:lt(best)
		best, scale = tensor.where(better, e, best), tensor.where(better, new, scale)
		minimum = low and tensor.where(better, low, minimum)
	end
	return g:with(scale, s.zero, minimum, s.dtype)
end

return {
	phase = 'ranges', needs = 'moments',
	text = [[Ranges of the least squared error where columns with large inputs count more (importance matrix of llama.cpp). Cheaper than gptq, and for GGUF's formats the
search that their own tools do. A layer whose inputs are no columns (nn.Embedding) gets equal weights.]],
	run = function(t)
		local w = importance_of(t)
		if t.spec.weighted and w then
			t.spec = like.spec(t.spec, {axis = t.spec.axis, block = t.spec.block, importance = w:mean {axis = 1} / w:max():clamp {low = 1e-30}})
			return
		end
		if not w then
			t:say 'its inputs are no columns: equal weights'
			w = tensor.ones {1, t.weight:size(2), device = t.weight:device()}
		end
		if t.spec.joint then return end
		local s = Scales.of(t.weight, t.spec)
		local function error(d) return s.groups:sum((d - t.float):square() * w) end
		local r, best = coarse(s, error)
		if s.limit then
			t.spec, t.weight = s:times(r)
		else
			t.spec = refine(s, w, error, r, best)
		end
	end,
}
