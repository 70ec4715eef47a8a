-- SPDX-License-Identifier: MIT
-- Sums: of codes of the same shape, or of floats.
local _, internal = ...
local base = internal.import 'base'

local fixed = internal.import 'export_fixed'
local float = internal.import 'float_export'

-- In fixed point (quant/paths/add_mul_int.c).
local function add_fixed(e, node, rule, a, f, b, g, y, r)
	local twice = 2 * math.max(e.single(f.scale), e.single(g.scale))
	local zero = f.wide_zero or g.wide_zero
	local left = f.bytes == f.count and g.bytes == g.count and 20 or zero and 14 or 15
	local m = fixed.array(e, node.name .. '_factors', {f.scale / twice, g.scale / twice, twice / ((1 << left) * e.single(r.scale))})
	e:call('%s(%s, %d, %s, %d, %s, %d, %d, %d, %d, %d, %d, %s);', e:part('addx', {a = f.ctype, b = g.ctype, y = r.ctype, rule = rule}), a, f.zero,
		b, g.zero, m, left, r.count, r.lo - r.zero, r.hi - r.zero, r.zero, node.attrs.act == 'relu' and 1 or 0, y)
end

local function add(e, node)
	local r = e.graph:result_of(node.name)
	if not r.spec then return float.emit(e, node) end
	if type(node.inputs[1]) ~= 'string' or type(node.inputs[2]) ~= 'string' then
		base.fail("export: node '%s': wanted two operands of codes", node.name)
	end
	local a, f, layout = e:input(node, 1)
	local b, g = e:input(node, 2, layout)
	local y, r = e:output(node, layout)
	if not f.scale or not g.scale or not r.scale or f.count ~= g.count then
		base.fail("export: node '%s': wanted two operands of codes of one shape, and out=", node.name)
	end
	local rule = fixed.rule(node.attrs.out)
	if rule then return add_fixed(e, node, rule, a, f, b, g, y, r) end
	e:call('%s(%s, %d, %s, %s, %d, %s, %d, %s, %s, %d, %d, %s);', e:part('add', {a = f.ctype, b = g.ctype, y = r.ctype}), a, f.zero,
		e.float(e.single(f.scale / r.scale)), b, g.zero, e.float(e.single(g.scale / r.scale)), r.count, e.float(r.lo - r.zero),
		e.float(r.hi - r.zero), r.zero, node.attrs.act == 'relu' and 1 or 0, y)
end

return {ops = {'add'}, emit = add}
