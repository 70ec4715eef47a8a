-- SPDX-License-Identifier: MIT
-- Activations in codes of a table under one known scale (fp8_e4m3, fp4_e2m1). No op computes with such codes, so exported C stores
-- their values: floats, rounded to the table as in tensor/grid.c.
local _, internal = ...
local like = internal.import 'quant/like'
local parts = internal.import 'nn/export/parts'
local grid = {}

parts.add('togrid', {text = [[
/* x / scale to the values of a table, of which edge[i] is the least that becomes value[i + 1]; `last`: their number less 1. With
 * `minus` there is a -0. */
static void q_togrid(const float *x, int32_t n, float scale, const float *value, const float *edge, int32_t last, float nan, int minus,
	float *y)
{
	int32_t i;

	for (i = 0; i < n; i++) {
		float t = x[i] / scale, v;
		int32_t low = 0, high = last;

		while (low < high) {
			int32_t middle = (low + high) / 2;

			if (edge[middle] <= t)
				low = middle + 1;
			else
				high = middle;
		}
		v = value[low];
		if (minus && v == 0.0f)
			v = t < 0.0f ? -0.0f : t * 0.0f;
		y[i] = (t != t ? nan : v) * scale;
	}
}
]]})

local function single(x) return (string.unpack('<f', string.pack('<f', x))) end

-- The next float32 in that direction (1 or -1); x is finite.
local function beside(x, direction)
	if x == 0 then return direction * 2.0 ^ -149 end
	local bits = string.unpack('<i4', string.pack('<f', x))
	return (string.unpack('<f', string.pack('<i4', bits + (x > 0 and direction or -direction))))
end

-- The values of a spec in ascending order with the edges between them, the value of nan, and whether there is a -0; nil if codes are
-- not those of the nearest value.
local function table_of(spec)
	local values, zeros, sorted = {}, 0, {}
	for i, v in ipairs(spec.values) do values[i] = v end
	table.sort(values, function(a, b) return a == a and (b ~= b or a < b) end)
	for _, v in ipairs(values) do
		if v == 0 then zeros = zeros + 1 end
		if v == v and math.abs(v) < math.huge and v ~= sorted[#sorted] then sorted[#sorted + 1] = v end
	end
	local one = like.spec(spec, {scale = 1})
	local function rounded(list) return tensor(list):quantize(one):dequantize():totable() end
	local edges, below = {}, {}
	for i = 1, #sorted - 1 do edges[i] = single(single(sorted[i] + sorted[i + 1]) / 2) end
	for i, v in ipairs(rounded(edges)) do edges[i] = v == sorted[i + 1] and edges[i] or beside(edges[i], 1) end
	for i, v in ipairs(edges) do below[i] = beside(v, -1) end
	local up, down = rounded(edges), rounded(below)
	for i = 1, #edges do
		if up[i] ~= sorted[i + 1] or down[i] ~= sorted[i] then return end
	end
	return sorted, edges, rounded {0 / 0}[1], zeros > 1
end

-- Whether results of the spec can be stored as rounded floats.
function grid.fits(spec)
	return spec.values ~= nil and #spec.values <= 256 and spec.scale ~= nil and spec.saturate and not spec.axis and not spec.block and table_of(spec) ~= nil
end

-- Rounds the floats at x to values at y, which has the properties g.
function grid.emit(e, x, y, g)
	local values, edges, nan, minus = table_of(g.grid)
	e:call('%s(%s, %d, %s, %s, %s, %d, %s, %d, %s);', e:part 'togrid', x, g.count, e.float(g.grid_scale), e:array('values', 'float', values, 'values of codes'),
		e:array('edges', 'float', edges, 'between them'), #edges, e.float(nan), minus and 1 or 0, y)
end

return grid
