-- SPDX-License-Identifier: MIT
-- Rows of a table by index, of floats or codes; only these rows are decoded. An index out of range, an error in Quoll, gives zeros. With
-- out= the rows are then quantized.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local decode = internal.import 'nn/export/decode'
local parts = internal.import 'nn/export/parts'
local quantize = internal.import 'nn/export/ops/quantize'

local TEXT = [[
/* Rows of w (rows, k) by 1-based indices; zeros for indices out of range. */
static void ${name}(const ${w} *w, int32_t rows, int32_t k, %sconst ${ids} *ids, int32_t n,
	float *y)
{
	int32_t i;

	for (i = 0; i < n; i++, y += k) {
		int32_t row = ids[i] >= 1 && ids[i] <= rows ? (int32_t)ids[i] - 1 : -1;

		if (row < 0)
			memset(y, 0, (size_t)k * sizeof(*y));
		else
			%s;
	}
}
]]
parts.add('embedding', {fields = {'w', 'ids'}, text = TEXT:format('', 'memcpy(y, w + row * k, (size_t)k * sizeof(*y))')})
parts.add('embeddingw', {fields = {'w', 's', 'z', 'how', 'ids'}, needs = function(f)
	return {decode.part(f), {'weights', f}}
end, text = TEXT:format('const struct ${weights} *g, ', '${decode}(w + row * ${pitch}, k, g, row, y)')})

-- Floats at y.
local function rows(e, node, w, ids, f, y)
	if w:quantized() then
		local d = decode.weight(e, node, w, node.name .. '_weight')
		d.part.ids = f.ctype
		e:call('%s(%s, %d, %d, %s, %s, %d, %s);', e:part('embeddingw', d.part), d.w, d.n, d.k, d.groups, ids, f.count, y)
		return
	end
	e:call('%s(%s, %d, %d, %s, %d, %s);', e:part('embedding', {w = 'float', ids = f.ctype}), e:input(node, 1, 'plain'), w:size(1), w:size(2),
		ids, f.count, y)
end

return {ops = {'embedding'}, emit = function(e, node)
	local w = e:constant(node, 1) or e:decoded_from(node.inputs[1])
	if not w then base.fail("export: node '%s': wanted a constant table", node.name) end
	local ids, f = e:input(node, 2, 'plain')
	local y, g = e:output(node)
	if not f.ctype:find '^u?int' then base.fail("export: node '%s': wanted integer indices, got %s", node.name, f.dtype) end
	local floats = g.scale and e:scratch(4 * g.count) or y
	rows(e, node, w, ids, f, floats)
	if g.scale then quantize.known(e, floats, y, g) end
end}
