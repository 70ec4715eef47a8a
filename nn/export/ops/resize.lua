-- SPDX-License-Identifier: MIT
-- resize in exported C: the taps of each output row and column (tensor/loops/resample.h) are constant arrays, found by resizing unit
-- matrices. Columns are computed before rows, and taps in ascending order, so results are bit-equal.
local _, internal = ...
local cast = internal.import 'nn/export/ops/cast'
local parts = internal.import 'nn/export/parts'

local RESIZE = [[
/* Resizes planes (rows, columns). Taps: index of the first input and number of inputs; the weights are concatenated. */
static void ${name}(const ${x} *x, int32_t planes, int32_t rows, int32_t columns, const int32_t *row, const float *row_weight,
	int32_t out_rows, const int32_t *column, const float *column_weight, int32_t out_columns, ${x} *y)
{
	int32_t p, i, j, a, b;

	for (p = 0; p < planes; p++, x += rows * columns) {
		const float *v = row_weight;

		for (i = 0; i < out_rows; v += row[2 * i + 1], i++) {
			const float *w = column_weight;

			for (j = 0; j < out_columns; w += column[2 * j + 1], j++) {
				float sum = 0;

				for (a = 0; a < row[2 * i + 1]; a++) {
					const ${x} *from = x + (row[2 * i] + a) * columns + column[2 * j];
					float part = w[0] * (float)from[0];

					for (b = 1; b < column[2 * j + 1]; b++)
						part += w[b] * (float)from[b];
					part = @ROUND@(part);
					sum = a ? sum + v[a] * part : v[a] * part;
				}
				*y++ = (${x})@ROUND@(sum);
			}
		}
	}
}
]]
parts.add('resizef', {fields = {'x'}, text = (RESIZE:gsub('\t+part = @ROUND@%(part%);\n', ''):gsub('@ROUND@', ''))})
parts.add('resizebytes', {fields = {'x'}, needs = {{'floor'}}, text = (RESIZE:gsub('@ROUND@%((%w+)%)', 'q_floor(%1 + 0.5f)'))})
parts.add('nearest', {fields = {'x'}, text = [=[
/* Resizes planes (rows, columns) by nearest neighbour. */
static void ${name}(const ${x} *x, int32_t planes, int32_t rows, int32_t columns, const int32_t *row, int32_t out_rows, const int32_t *column,
	int32_t out_columns, ${x} *y)
{
	int32_t p, i, j;

	for (p = 0; p < planes; p++, x += rows * columns)
		for (i = 0; i < out_rows; i++)
			for (j = 0; j < out_columns; j++)
				*y++ = x[row[i] * columns + column[j]];
}
]=]})

parts.add('resizecodes', {fields = {'x', 'y'}, needs = {{'round'}}, text = [[
/* Resizes planes (rows, columns) of codes; weights are whole numbers over 2^15. */
static void ${name}(const ${x} *x, int32_t planes, int32_t rows, int32_t columns, const int32_t *row, const int32_t *row_weight,
	int32_t out_rows, const int32_t *column, const int32_t *column_weight, int32_t out_columns, int32_t from, float factor, float lo,
	float hi, int32_t zero, ${y} *y)
{
	int32_t p, i, j, a, b;

	for (p = 0; p < planes; p++, x += rows * columns) {
		const int32_t *v = row_weight;

		for (i = 0; i < out_rows; v += row[2 * i + 1], i++) {
			const int32_t *w = column_weight;

			for (j = 0; j < out_columns; w += column[2 * j + 1], j++) {
				int64_t sum = 0;

				for (a = 0; a < row[2 * i + 1]; a++) {
					const ${x} *q = x + (row[2 * i] + a) * columns + column[2 * j];
					int64_t part = 0;

					for (b = 0; b < column[2 * j + 1]; b++)
						part += (int64_t)w[b] * ((int32_t)q[b] - from);
					sum += v[a] * part;
				}
				*y++ = (${y})q_round((float)sum * factor, lo, hi, zero);
			}
		}
	}
}
]]})

-- The options of node that a unit matrix is resized with along its rows: of height (d = 1) or width.
local function options_of(node, from, to, d)
	local a = node.attrs
	local o = {mode = a.mode, antialias = a.antialias, coords = a.coords, rounding = a.rounding, a = a.a, excludeoutside = a.excludeoutside}
	if a.scale then
		o.scale, o.scalew = 1, d == 2 and a.scalew or a.scale
	else
		o.size = {from, to}
	end
	return o
end

-- The taps of each of `to` outputs among `from` inputs: pairs of first input and count, and the weights.
local function taps(node, from, to, d)
	local unit = tensor.eye(from):resize(options_of(node, from, to, d)):t()
	local list, weights = {}, {}
	for i = 1, to do
		local row, lo, hi = unit[i]:totable(), nil, nil
		for k = 1, from do
			if row[k] ~= 0 then lo, hi = lo or k, k end
		end
		list[#list + 1], list[#list + 2] = lo - 1, hi - lo + 1
		for k = lo, hi do weights[#weights + 1] = row[k] end
	end
	return list, weights
end

local function firsts(list)
	local first = {}
	for i = 1, #list, 2 do first[#first + 1] = list[i] end
	return first
end

-- The weights of each output as whole numbers over 2^15 (quant/paths/resize_sums_int.c).
local function whole(list, weights)
	local made, at = {}, 0
	for i = 2, #list, 2 do
		local sum, most = 0.0, at + 1
		for k = at + 1, at + list[i] do sum = sum + weights[k] end
		local rest = math.tointeger((sum * 32768 + 0x1.8p52) - 0x1.8p52)
		for k = at + 1, at + list[i] do
			made[k] = math.tointeger((weights[k] * 32768 + 0x1.8p52) - 0x1.8p52)
			rest = rest - made[k]
			most = made[k] > made[most] and k or most
		end
		made[most], at = made[most] + rest, at + list[i]
	end
	return made
end

local function resize_codes(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local rank = #f.shape
	local rows, columns, out_rows, out_columns = f.shape[rank - 1], f.shape[rank], g.shape[rank - 1], g.shape[rank]
	local row, row_weight = taps(node, rows, out_rows, 1)
	local column, column_weight = taps(node, columns, out_columns, 2)
	local function array(name, values, text) return e:array(node.name .. name, 'int32_t', values, text) end
	e:call('%s(%s, %d, %d, %d, %s, %s, %d, %s, %s, %d, %d, %s, %s, %s, %d, %s);', e:part('resizecodes', {x = f.ctype, y = g.ctype}), x,
		f.count // (rows * columns), rows, columns, array('_rows', row, 'first row and number of rows'),
		array('_row_weights', whole(row, row_weight), 'weights of rows, over 2^15'), out_rows,
		array('_columns', column, 'first column and number of columns'),
		array('_column_weights', whole(column, column_weight), 'weights of columns, over 2^15'), out_columns, f.zero,
		e.float(e.single(f.scale / (g.scale * 2.0 ^ 30))), e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

local function resize(e, node)
	if node.attrs.out and e:facts(node.inputs[1]).scale then return resize_codes(e, node) end
	local nearest = node.attrs.mode == 'nearest'
	local x, f
	if nearest then x, f = e:input(node, 1, 'plain') else x, f = e:plain(node, 1) end
	if f.ctype ~= 'float' and f.ctype ~= 'uint8_t' and not nearest then x, f = cast.floats(e, node, 1) end
	local y, g = e:output(node, nil, nil, nearest and f.scale and f or nil)
	local rank = #f.shape
	local rows, columns, out_rows, out_columns = f.shape[rank - 1], f.shape[rank], g.shape[rank - 1], g.shape[rank]
	local planes = f.count // (rows * columns)
	local row, row_weight = taps(node, rows, out_rows, 1)
	local column, column_weight = taps(node, columns, out_columns, 2)
	local function array(name, ctype, values, text) return e:array(node.name .. name, ctype, values, text) end
	if nearest then
		return e:call('%s(%s, %d, %d, %d, %s, %d, %s, %d, %s);', e:part('nearest', {x = f.ctype}), x, planes, rows, columns,
			array('_rows', 'int32_t', firsts(row), 'rows that are copied'), out_rows,
			array('_columns', 'int32_t', firsts(column), 'columns that are copied'), out_columns, y)
	end
	e:call('%s(%s, %d, %d, %d, %s, %s, %d, %s, %s, %d, %s);', e:part(f.ctype == 'uint8_t' and 'resizebytes' or 'resizef', {x = f.ctype}), x,
		planes, rows, columns, array('_rows', 'int32_t', row, 'first row and number of rows'),
		array('_row_weights', 'float', row_weight, 'weights of rows'), out_rows,
		array('_columns', 'int32_t', column, 'first column and number of columns'),
		array('_column_weights', 'float', column_weight, 'weights of columns'), out_columns, y)
end

return {ops = {'resize'}, emit = resize}
