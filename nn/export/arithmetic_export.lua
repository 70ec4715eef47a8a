-- SPDX-License-Identifier: MIT
-- Sums: of codes of the same shape, or of floats.
local _, internal = ...
local base = internal.import 'base'

local float = internal.import 'float_export'

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
	e:call('%s(%s, %d, %s, %s, %d, %s, %d, %s, %s, %d, %d, %s);', e:part('add', {a = f.ctype, b = g.ctype, y = r.ctype}), a, f.zero,
		e.float(e.single(f.scale / r.scale)), b, g.zero, e.float(e.single(g.scale / r.scale)), r.count, e.float(r.lo - r.zero),
		e.float(r.hi - r.zero), r.zero, node.attrs.act == 'relu' and 1 or 0, y)
end

return {ops = {'add'}, emit = add}
