-- SPDX-License-Identifier: MIT
-- Borders between floats and codes, in any layout.
local _, internal = ...
local base = internal.import 'base'

local function quantize(e, node)
	local x, f, layout = e:input(node, 1)
	local y, g = e:output(node, layout)
	e:call('%s(%s, %d, %s, %s, %s, %d, %s);', e:part('quantize', {type = g.ctype}), x, f.count, e.float(g.scale), e.float(g.lo - g.zero),
		e.float(g.hi - g.zero), g.zero, y)
end

local function dequantize(e, node)
	local x, f, layout = e:input(node, 1)
	if not f.scale then return e:alias(node, 1, 'any') end
	local y = e:output(node, layout)
	e:call('%s(%s, %d, %s, %d, %s);', e:part('dequantize', {type = f.ctype}), x, f.count, e.float(f.scale), f.zero, y)
end

-- y = sat(rint((float)(q - z) * M) + zero), M = (float)((double)s / s_out): one side of a sum (quant/rescale.c)
local function requantize(e, node)
	local x, f, layout = e:input(node, 1)
	local y, g = e:output(node, layout)
	e:call('%s(%s, %d, %s, %d, %s, %s, %d, %s);', e:part('requantize', {x = f.ctype, y = g.ctype}), x, f.zero,
		e.float(e.single(e.single(f.scale) / e.single(g.scale))), f.count, e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

local by = {quantize = quantize, dequantize = dequantize, requantize = requantize}
return {ops = {'quantize', 'dequantize', 'requantize'}, emit = function(e, node)
	if node.op == 'quantize' and not node.attrs.spec.scale then
		base.fail("export: node '%s': wanted a spec with its scale, got '%s': quantize in mode static", node.name, tostring(node.attrs.spec))
	end
	by[node.op](e, node)
end}
