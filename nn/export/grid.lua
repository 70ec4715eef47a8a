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

-- Integers in the order of the float32 numbers, and back.
local function key(x)
	local k = string.unpack('<i4', string.pack('<f', math.abs(x)))
	return x < 0 and -k or k
end

local function number(k)
	local x = string.unpack('<f', string.pack('<i4', math.abs(k)))
	return k < 0 and -x or x
end

-- edge[i]: the least float32 that is rounded to values[i + 1], all by bisection at once.
local function edges_of(values, rounded)
	local low, high, middle = {}, {}, {}
	for i = 1, #values - 1 do
		local a, b = values[i], values[i + 1]
		low[i], high[i] = key(a == a and a or -math.huge), key(b == b and b or math.huge)
	end
	for _ = 1, 33 do
		for i = 1, #low do middle[i] = number((low[i] + high[i]) // 2) end
		for i, v in ipairs(rounded(middle)) do
			local at, above = (low[i] + high[i]) // 2, v == values[i + 1]
			if values[i + 1] ~= values[i + 1] then above = v ~= values[i] end
			if low[i] < high[i] and above then high[i] = at elseif low[i] < high[i] then low[i] = at + 1 end
		end
	end
	for i = 1, #low do low[i] = number(low[i]) end
	return low
end

-- The values of a spec in ascending order, the edges between them, the value of nan, and whether there is a -0. Without saturation the
-- first and last value are those of infinities: inf or nan.
local function table_of(spec)
	local one, zeros, sorted, values = like.spec(spec, {scale = 1}), 0, {}, {}
	local function rounded(list) return tensor(list):quantize(one):dequantize():totable() end
	for _, v in ipairs(spec.values) do
		if v == 0 then zeros = zeros + 1 end
		if v == v and math.abs(v) < math.huge then sorted[#sorted + 1] = v end
	end
	table.sort(sorted)
	local ends = rounded {-math.huge, math.huge, 0 / 0}
	if ends[1] ~= sorted[1] then values[1] = ends[1] end
	for _, v in ipairs(sorted) do values[#values + 1] = v ~= values[#values] and v or nil end
	if ends[2] ~= values[#values] then values[#values + 1] = ends[2] end
	return values, edges_of(values, rounded), ends[3], zeros > 1
end

-- Whether results of the spec can be stored as rounded floats.
function grid.fits(spec)
	return spec.values ~= nil and #spec.values <= 256 and spec.scale ~= nil and not spec.axis and not spec.block and spec.rounding ~= 'stochastic'
end

-- Rounds the floats at x to values at y, which has the properties g.
function grid.emit(e, x, y, g)
	local values, edges, nan, minus = table_of(g.grid)
	e:call('%s(%s, %d, %s, %s, %s, %d, %s, %d, %s);', e:part 'togrid', x, g.count, e.float(g.grid_scale), e:array('values', 'float', values, 'values of codes'),
		e:array('edges', 'float', edges, 'between them'), #edges, e.float(nan), minus and 1 or 0, y)
end

return grid
