-- SPDX-License-Identifier: MIT
-- GPTQ (arXiv 2210.17323): the error of each rounded column is made up for by the columns behind it (quant/methods/gptq.c).
local DAMP, MOST = 0.01, 1

-- The moments of a group with dead inputs and the order of rounding (nil: that of the weight).
local function prepared(h, act)
	local diagonal = h:diag()
	local dead = diagonal:eq(0)
	if dead:any():item() then h = h + dead:to 'float64':diag() end
	if not act then return h, nil, dead end
	local _, order = diagonal:sort {descending = true}
	return h:indexselect(1, order):indexselect(2, order), order, dead
end

-- The factor of the inverse with as little damping, from `damp` on, as it can be found with; nil if there is none.
local function factor(h, damp)
	local n = h:size(1)
	local mean = h:diag():mean():item()
	local eye = tensor.eye(n, {device = h:device()}):to 'float64'
	while damp <= MOST do
		local good, u = pcall(h.inversefactor, h + eye * (damp * mean))
		if good then return u, damp end
		damp = damp * 10
	end
end

local function each_group(h) return h:dim() == 3 and h:size(1) or 1, function(g) return h:dim() == 3 and h[g] or h end end

return {
	phase = 'codes', needs = 'moments',
	text = [[GPTQ: columns are rounded one after the other, and what rounding changes in the layer's outputs is made up for by the columns that are
still to come, as the inputs of the calibration data allow. The first method to try at 4 and 3 bits. act=true rounds the inputs with the largest moments first,
which mostly helps, and fits all scales before.]],
	options = {{'act', 'true or false', 'inputs with the largest second moments first (default false)'},
		{'static', 'true or false', 'fit all scales before rounding (default: with act)'},
		{'damp', 'number', 'added to the diagonal of the moments, times its mean (default 0.01)'},
		{'range', 'text', "the observer that finds ranges: 'mse' mostly helps (default: that of the spec)"}},
	run = function(t, o)
		if o.range then t:observe(o.range) end
		if not t.h then return nil, 'its inputs are no columns that it is multiplied with, so it is rounded' end
		local n, of = each_group(t.h)
		local factors, orders, used, w = {}, {}, 0, t.weight
		local keep = {}
		for g = 1, n do
			local h, order, dead = prepared(of(g), o.act)
			local u, damp = factor(h, o.damp or DAMP)
			if not u then return nil, 'the moments of its inputs have no inverse, so it is rounded' end
			factors[g], orders[g], keep[g], used = u, order, dead, math.max(used, damp)
		end
		local rows = w:size(1) // n
		for g = 1, n do -- weights of inputs that are always 0 have no effect
			if keep[g]:any():item() then
				if rawequal(w, t.weight) then w = w:clone() end
				local part = w:narrow(1, (g - 1) * rows + 1, rows)
				part:mul_((1 - keep[g]:to 'float32'):view(1, w:size(2)))
			end
		end
		local options = {static = o.static or nil, order = o.act and (n == 1 and orders[1] or tensor.stack(orders)) or nil}
		local u = n == 1 and factors[1] or tensor.stack(factors)
		return w:gptq(u, t.spec, options), used > (o.damp or DAMP) and ('damping %g'):format(used) or nil
	end,
}
