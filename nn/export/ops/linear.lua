-- SPDX-License-Identifier: MIT
-- x (…, k) by w (n, k): exact integer sums of codes, whole or of blocks, floats, or floats with decoded weights. A computed weight is
-- handled like einsum.
local _, internal = ...
local einsum = internal.import 'nn/export/ops/einsum'
local product = internal.import 'nn/export/product'
local tile = internal.import 'nn/export/tile'

local function is_computed(e, node)
	return not e:constant(node, 2) and not e:decoded_from(node.inputs[2]) and not node.inputs[3] and not node.attrs.act and not node.attrs.out
end

-- Rows of x, also where they have no elements.
local function rows_of(f)
	local rows = 1
	for i = 1, #f.shape - 1 do rows = rows * f.shape[i] end
	return rows
end

-- Codes by codes with scales in blocks along k, or of a table of integers times `unit`.
local function emit_blocks(e, node, x, f, unit, result, facts)
	product.result(e, node, result, facts, function(y)
		local d = product.prepare_decoded(e, node, {})
		d.part.x, d.part.per = f.ctype, unit and ('%d'):format(1 // unit)
		e:call('%s(%s, %d, %s, %s, %s, %d, %d, %s, %s, %s, %s);', e:part('linearb' .. (d.part.how or ''), d.part), x, rows_of(f), e:zero_of(f),
			e:scale_of(f) .. (unit and unit ~= 1 and ' * ' .. e.float(unit) or ''), d.w, d.n, d.k, d.groups, d.codes, e:scratch(d.k * 2, 'int16_t'), y)
	end, true)
end

return {ops = {'linear'}, emit = function(e, node)
	if is_computed(e, node) then return einsum.product(e, node, '...k,nk->...n') end
	local x, f = e:input(node, 1, 'plain')
	local result, facts = e:output(node)
	local blocks, unit = product.takes_blocks(e, node, f)
	if blocks then return emit_blocks(e, node, x, f, unit, result, facts) end
	product.result(e, node, result, facts, function(y, g)
		local d = product.prepare_decoded(e, node, f)
		if d then
			e:call('%s(%s, %d, %s, %d, %d, %s, %s, %s, %s);', e:part('linearw', d.part), x, rows_of(f), d.w, d.n, d.k,
				d.groups, d.codes, e:scratch(d.k * 4), y)
			return
		end
		local p = (f.scale or f.params) and product.prepare(e, node, f, g, {fold = true, tile = {}}) or product.prepare_float(e, node)
		if p.pitch then return tile.linear(e, x, f, rows_of(f), p, y, g) end
		e:call('%s(%s, %d, %s, %d, %d, %s, %s, %s, %s);', e:part('linear', {x = f.ctype, w = p.wtype, sum = p.sum, y = g.ctype, rule = p.rule}),
			x, rows_of(f), p.w, p.outputs, p.per, p.bias, p.factor, p.codes, y)
	end)
end}
