-- SPDX-License-Identifier: MIT
-- Pooling of codes under their own params, and of floats.
local _, internal = ...
local fixed = internal.import 'export_fixed'
local window = internal.import 'export_window'

local LEAST = {uint8_t = '0', uint16_t = '0', int8_t = '-128', int16_t = '-32768', float = '-3.402823466e38f'}

-- Under the params of x, or into others (quant/pool_codes.c).
local function mean(e, node, x, f, g, v, count, y)
	if not node.attrs.out then
		e:call('%s(%s, &%s, %d, %s);', e:part('meanpool', {x = f.ctype, y = f.ctype}), x, v, f.zero, y)
		return
	end
	local rule, m = fixed.rule(node.attrs.out, f.bytes > f.count), f.scale / (count * g.scale)
	if rule then
		e:call('%s(%s, &%s, %d, %s, %d, %d, %d, %s);', e:part('fixedpool', {x = f.ctype, y = g.ctype, rule = rule}), x, v, f.zero,
			e:struct('q_fixed', node.name .. '_factor', fixed.text(m)), g.lo - g.zero, g.hi - g.zero, g.zero, y)
		return
	end
	e:call('%s(%s, &%s, %d, %s, %s, %s, %d, %s);', e:part('rescalepool', {x = f.ctype, y = g.ctype}), x, v, f.zero,
		e.float(e.single(m)), e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

return {ops = {'maxpool2d', 'avgpool2d'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'nhwc')
	local y, g = e:output(node, 'nhwc', nil, f.scale and not node.attrs.out and f or nil)
	local kernel = node.attrs.k
	local kh, kw = window.pair(kernel)
	if not kh then kh, kw = f.shape[3], f.shape[4] end
	local v = window.of(e, node, f, g, {kh, kw})
	if node.op == 'maxpool2d' then
		e:call('%s(%s, &%s, %s, %s);', e:part('maxpool', {x = f.ctype}), x, v, LEAST[f.ctype], y)
	elseif not f.scale then
		e.inexact = true -- the order of the sum is another
		e:call('%s(%s, &%s, %s);', e:part('meanpoolf', {x = 'float', y = 'float'}), x, v, y)
	else
		mean(e, node, x, f, g, v, kh * kw, y)
	end
end}
