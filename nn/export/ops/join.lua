-- SPDX-License-Identifier: MIT
-- cat and stack, of floats or of codes, which are rescaled to the params of the result (quant/paths/cat_int.c).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fixed = internal.import 'nn/export/fixed'
local parts = internal.import 'nn/export/parts'

-- Copies blocks of `count` elements to positions that are `pitch` apart.
local function place(name, fields, arguments, value, needs)
	parts.add(name, {fields = fields, needs = needs, text = ([[
static void ${name}(const ${x} *x, int32_t blocks, int32_t count, int32_t pitch, @ARGUMENTS@${y} *y)
{
	int32_t i, j;

	for (i = 0; i < blocks; i++, y += pitch)
		for (j = 0; j < count; j++)
			y[j] = @VALUE@;
}
]]):gsub('@(%u+)@', {ARGUMENTS = arguments, VALUE = value})})
end
place('join', {'x', 'y'}, '', '*x++')
place('joincodes', {'x', 'y'}, 'int32_t from, float factor, float lo, float hi, int32_t zero, ',
	'(${y})q_round((float)((int32_t)*x++ - from) * factor, lo, hi, zero)', {{'round'}})
place('joinfixed', {'x', 'y', 'rule'}, 'int32_t from, ${factor} m, int32_t lo, int32_t hi, int32_t zero, ',
	'(${y})(q_clamp(q_${rule}((int64_t)*x++ - from, m), lo, hi) + zero)', function(f) return {{f.rule}} end)

local function product_from(shape, first)
	local n = 1
	for i = first, #shape do n = n * shape[i] end
	return n
end

local function place_codes(e, node, x, f, blocks, count, pitch, y, g, i)
	local rule = fixed.rule(node.attrs.out)
	if rule then
		local m = fixed.array(e, ('%s_factor%d'):format(node.name, i), {f.scale / g.scale}, rule)
		e:call('%s(%s, %d, %d, %d, %d, %s[0], %d, %d, %d, %s);', e:part('joinfixed', {x = f.ctype, y = g.ctype, rule = rule}), x, blocks, count,
			pitch, f.zero, m, g.lo - g.zero, g.hi - g.zero, g.zero, y)
		return
	end
	e:call('%s(%s, %d, %d, %d, %d, %s, %s, %s, %d, %s);', e:part('joincodes', {x = f.ctype, y = g.ctype}), x, blocks, count, pitch, f.zero,
		e.float(e.single(f.scale / g.scale)), e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

return {ops = {'cat', 'stack'}, emit = function(e, node)
	local y, g = e:output(node)
	local axis = node.attrs.axis or 1
	axis = axis < 0 and #g.shape + 1 + axis or axis
	local pitch, start = product_from(g.shape, axis), 0
	for i in ipairs(node.inputs) do
		local x, f = e:input(node, i, 'plain')
		local count = product_from(f.shape, axis)
		local to = ('%s + %d'):format(y, start)
		if (f.scale == nil) ~= (g.scale == nil) or not g.scale and f.ctype ~= g.ctype then
			base.fail("export: node '%s': wanted items that are all codes or all %s, got %s", node.name, g.dtype, f.dtype)
		end
		local blocks = pitch > 0 and g.count // pitch or 0
		if g.scale then
			place_codes(e, node, x, f, blocks, count, pitch, to, g, i)
		else
			e:call('%s(%s, %d, %d, %d, %s);', e:part('join', {x = f.ctype, y = g.ctype}), x, blocks, count, pitch, to)
		end
		start = start + count
	end
end}
