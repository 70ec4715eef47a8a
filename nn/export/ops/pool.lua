-- SPDX-License-Identifier: MIT
-- Pooling of codes with unchanged params, and of floats.
local _, internal = ...
local fixed = internal.import 'nn/export/fixed'
internal.import 'nn/export/sums'
local parts = internal.import 'nn/export/parts'
local window = internal.import 'nn/export/window'

local MAXPOOL = [[
static void ${name}(const ${x} *x, const struct q_window *v, ${x} least, ${x} *y)
{
	int32_t i, a, b, p, q, c, row, column;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += v->channels) {
				for (c = 0; c < v->channels; c++)
					y[c] = least;
				for (p = 0; p < v->kernel_height; p++)
					for (q = 0; q < v->kernel_width; q++) {
						row = a * v->stride_height - v->top + p * v->dilation_height;
						column = b * v->stride_width - v->left + q * v->dilation_width;
						if (row < 0 || row >= v->height || column < 0 || column >= v->width)
							continue;
						for (c = 0; c < v->channels; c++) {
							${x} value = x[(row * v->width + column) * v->channels + c];

							y[c] = @LARGER@ ? value : y[c];
						}
					}
			}
}
]]
parts.add('maxpool', {fields = {'x'}, needs = {{'window'}}, text = (MAXPOOL:gsub('@LARGER@', 'value > y[c]'))})
-- A nan counts as the largest.
parts.add('maxpoolf', {needs = {{'window'}}, text = (MAXPOOL:gsub('@LARGER@', 'value > y[c] || value != value'):gsub('${x}', 'float'))})

-- The places in x of the largest values y, from 1 on: the first of equal ones.
local PLACES = [[
static void ${name}(const ${x} *x, const struct q_window *v, const ${x} *y, int64_t *place)
{
	int32_t i, a, b, p, q, c, row, column;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += v->channels, place += v->channels)
				for (c = 0; c < v->channels; c++) {
					place[c] = 0;
					for (p = 0; p < v->kernel_height && !place[c]; p++)
						for (q = 0; q < v->kernel_width && !place[c]; q++) {
							row = a * v->stride_height - v->top + p * v->dilation_height;
							column = b * v->stride_width - v->left + q * v->dilation_width;
							if (row >= 0 && row < v->height && column >= 0 && column < v->width) {
								${x} value = x[(row * v->width + column) * v->channels + c];

								if (@EQUAL@)
									place[c] = (int64_t)row * v->width + column + 1;
							}
						}
				}
}
]]
parts.add('maxplaces', {fields = {'x'}, needs = {{'window'}}, text = (PLACES:gsub('@EQUAL@', 'value == y[c]'))})
parts.add('maxplacesf', {needs = {{'window'}}, text = (PLACES:gsub('@EQUAL@', 'value == y[c] || (value != value && y[c] != y[c])'):gsub('${x}', 'float'))})
-- Where means are of different numbers: how many the window at a, b has.
parts.add('edge', {needs = {{'window'}}, text = [[
struct q_edge { /* padding that is part of means */
	int32_t top, bottom, left, right;
};

static int32_t q_counted(int32_t at, int32_t kernel, int32_t before, int32_t end)
{
	return (at + kernel < end ? at + kernel : end) - (at > -before ? at : -before);
}

static int32_t q_edge_count(const struct q_window *v, const struct q_edge *e, int32_t a, int32_t b)
{
	int32_t rows = q_counted(a * v->stride_height - v->top, v->kernel_height, e->top, v->height + e->bottom);
	int32_t columns = q_counted(b * v->stride_width - v->left, v->kernel_width, e->left, v->width + e->right);

	return rows > 0 && columns > 0 ? rows * columns : 1;
}
]]})

-- The mean of each window: further parameters, the type of sums, an element, and the result of a sum. edge: of `count` numbers.
local function mean_pool(arguments, sum, element, result, edge)
	return ([[
/* Padding counts as 0. */
static void ${name}(const ${x} *x, const struct q_window *v, @ARGUMENTS@${y} *y)
{
	int32_t count = v->kernel_height * v->kernel_width, i, a, b, p, q, c, row, column;
	@SUM@ sum;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++)
				for (c = 0; c < v->channels; c++) {
					sum = 0;@COUNT@
					for (p = 0; p < v->kernel_height; p++)
						for (q = 0; q < v->kernel_width; q++) {
							row = a * v->stride_height - v->top + p;
							column = b * v->stride_width - v->left + q;
							if (row >= 0 && row < v->height && column >= 0 && column < v->width)
								sum += @ELEMENT@;
						}
					*y++ = @RESULT@;
				}
	(void)count;
}
]]):gsub('@(%u+)@', {ARGUMENTS = (edge and 'const struct q_edge *edge, ' or '') .. arguments, SUM = sum, RESULT = result,
		COUNT = edge and '\n\t\t\t\t\tcount = q_edge_count(v, edge, a, b);' or '',
		ELEMENT = element:gsub('X', 'x[(row * v->width + column) * v->channels + c]')})
end

-- Adds the mean over windows of one size, and with the suffix _edge over others: `many` is the argument that has an element for each count.
local function add_means(name, fields, needs, arguments, sum, element, result, many)
	for _, edge in ipairs {false, true} do
		local function all(f)
			local list = {{'window'}, edge and {'edge'} or nil}
			for _, need in ipairs(needs(f)) do list[#list + 1] = need end
			return list
		end
		local text, value = arguments, result
		if edge and many then
			text, value = text:gsub('([%w_${}]+) ' .. many .. ',', 'const %1 *' .. many .. ','), value:gsub('%f[%w]' .. many .. '%f[%W]', many .. '[count - 1]')
		end
		parts.add(edge and name .. '_edge' or name, {fields = fields, needs = all, text = (mean_pool(text, sum, element, value, edge))})
	end
end

local function none() return {} end
-- Codes under the params of x: half to even of the exact quotient.
add_means('meanpool', {'x', 'y'}, none, 'int32_t zero, ', 'int32_t', '(int32_t)X - zero',
	'(${y})((int32_t)(((double)sum / (double)count + 6755399441055744.0) - 6755399441055744.0) + zero)')
-- Codes with other params.
add_means('rescalepool', {'x', 'y'}, function() return {{'round'}} end, 'int32_t from, float factor, float lo, float hi, int32_t zero, ',
	'int32_t', '(int32_t)X - from', '(${y})q_round((float)sum * factor, lo, hi, zero)', 'factor')
add_means('fixedpool', {'x', 'y', 'rule'}, function(f) return {{f.rule}} end, 'int32_t from, ${factor} m, int32_t lo, int32_t hi, int32_t zero, ',
	'int64_t', '(int64_t)X - from', '(${y})(q_clamp(q_${rule}(sum, m), lo, hi) + zero)', 'm') -- rules of nn/export/fixed.lua
-- The rule `double` with the params of x: the quotient of the sum of codes, halves away from 0.
parts.add('quotient', {text = [[
static int64_t q_quotient(int64_t sum, int64_t n)
{
	return (sum > 0 ? sum + n / 2 : sum - n / 2) / n;
}
]]})
add_means('quotientpool', {'x', 'y'}, function() return {{'clamp'}, {'quotient'}} end, 'int32_t from, int32_t lo, int32_t hi, ', 'int64_t',
	'(int64_t)X - from', '(${y})q_clamp(q_quotient(sum + (int64_t)count * from, count), lo, hi)')
-- Floats, summed as in tensor/conv/planes.c: tap by tap, or a whole plane at once.
parts.add('meanpoolf', {fields = {'x', 'y'}, needs = {{'window'}}, text = (mean_pool('float share, ', 'float', 'X', 'sum * share'))})
parts.add('meanpoolf_edge', {fields = {'x', 'y'}, needs = {{'window'}, {'edge'}}, text = (mean_pool('', 'float', 'X', 'sum / (float)count', true))})
parts.add('planemean', {needs = {{'sum'}}, text = [[
/* Means of planes (n, pixels, channels); few elements are added in 16 lanes of float. */
static void ${name}(const float *x, int32_t n, int32_t pixels, int32_t channels, float *y)
{
	float lane[16], sum;
	int32_t i, c, l;

	for (i = 0; i < n; i++, x += pixels * channels)
		for (c = 0; c < channels; c++) {
			if (pixels > 256) {
				*y++ = (float)(q_sum(x + c, pixels, channels) / (double)pixels);
				continue;
			}
			memset(lane, 0, sizeof(lane));
			for (l = 0; l < pixels; l++)
				lane[l & 15] += x[l * channels + c];
			for (sum = 0.0f, l = 0; l < 16; l++)
				sum += lane[l];
			*y++ = sum / (float)pixels;
		}
}
]]})

local LEAST = {uint8_t = '0', uint16_t = '0', int8_t = '-128', int16_t = '-32768', uint32_t = '0', uint64_t = '0', int32_t = 'INT32_MIN', int64_t = 'INT64_MIN',
	float = parts.float(-math.huge)}

-- The padding that is part of means, if windows differ in what they count (ql_window_even), as the name of a constant and a comma; else nil.
local function edge_of(e, node, f, g, kernel)
	local top, left, bottom, right = window.pads(node, {f.shape[3], f.shape[4]}, kernel)
	local sh, sw = window.pair(node.attrs.stride, nil)
	sh, sw = sh or kernel[1], sw or kernel[2]
	local counted = node.attrs.countincludepad ~= false and {top, bottom, left, right} or {0, 0, 0, 0}
	local even = top <= counted[1] and left <= counted[3] and (g.shape[3] - 1) * sh - top + kernel[1] <= f.shape[3] + counted[2] and
		(g.shape[4] - 1) * sw - left + kernel[2] <= f.shape[4] + counted[4]
	if even then return nil end
	e:part 'edge'
	return ('&%s, '):format(e:struct('q_edge', node.name .. '_edge', ('{%d, %d, %d, %d}'):format(table.unpack(counted))))
end

-- The factor of a sum of `count` numbers, or the name of an array with those of 1 to count numbers.
local function factor_of(e, node, f, g, count, edge, rule)
	local first, name = edge and 1 or count, node.name .. '_factor'
	local list = {}
	for n = first, count do
		local m = f.scale / (n * g.scale)
		list[#list + 1] = rule and fixed.text(m, rule) or e.single(m)
	end
	local struct = rule == 'exact' and 'q_exact' or 'q_fixed'
	if rule then return edge and e:structs(struct, name, list) or e:struct(struct, name, list[1]) end
	return edge and e:array(name, 'float', list, 'by the numbers of a window') or e.float(list[1])
end

-- With the params of x, or rescaled to others (quant/integer/pool_codes.c).
local function mean(e, node, x, f, g, v, count, edge, y)
	local suffix = edge and '_edge' or ''
	if not node.attrs.out then
		e:call('%s(%s, &%s, %s%d, %s);', e:part('meanpool' .. suffix, {x = f.ctype, y = f.ctype}), x, v, edge or '', f.zero, y)
		return
	end
	if node.attrs.out.rounding == 'double' and f.scale == g.scale and f.zero == g.zero then
		e:call('%s(%s, &%s, %s%d, %d, %d, %s);', e:part('quotientpool' .. suffix, {x = f.ctype, y = g.ctype}), x, v, edge or '', f.zero, g.lo, g.hi,
			y)
		return
	end
	local rule = fixed.rule(node.attrs.out, f.bytes > f.count)
	local factor = factor_of(e, node, f, g, count, edge, rule)
	if rule then
		e:call('%s(%s, &%s, %s%d, %s, %d, %d, %d, %s);', e:part('fixedpool' .. suffix, {x = f.ctype, y = g.ctype, rule = rule}), x, v, edge or '',
			f.zero, factor, g.lo - g.zero, g.hi - g.zero, g.zero, y)
		return
	end
	e:call('%s(%s, &%s, %s%d, %s, %s, %s, %d, %s);', e:part('rescalepool' .. suffix, {x = f.ctype, y = g.ctype}), x, v, edge or '', f.zero,
		factor, e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
end

local function largest(e, node, x, f, v, y)
	e:call('%s(%s, &%s, %s, %s);', f.ctype == 'float' and e:part 'maxpoolf' or e:part('maxpool', {x = f.ctype}), x, v, LEAST[f.ctype], y)
	if node.attrs.indices then
		e:call('%s(%s, &%s, %s, %s);', f.ctype == 'float' and e:part 'maxplacesf' or e:part('maxplaces', {x = f.ctype}), x, v, y, (e:output(node, 'nhwc', 2)))
	end
end

-- Whether the only window is the plane itself.
local function is_whole(node, f, g, kh, kw)
	local top, left = window.pads(node, {f.shape[3], f.shape[4]}, {kh, kw})
	return g.shape[3] * g.shape[4] == 1 and kh == f.shape[3] and kw == f.shape[4] and top == 0 and left == 0
end

return {ops = {'maxpool2d', 'avgpool2d'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'nhwc')
	local y, g = e:output(node, 'nhwc', nil, f.scale and not node.attrs.out and f or nil)
	local kernel = node.attrs.k
	local kh, kw = window.pair(kernel ~= 'all' and kernel or nil)
	if not kh then kh, kw = f.shape[3], f.shape[4] end
	if node.op == 'avgpool2d' and not f.scale and is_whole(node, f, g, kh, kw) then
		return e:call('%s(%s, %d, %d, %d, %s);', e:part 'planemean', x, f.shape[1], kh * kw, f.shape[2], y)
	end
	local v = window.of(e, node, f, g, {kh, kw})
	if node.op == 'maxpool2d' then return largest(e, node, x, f, v, y) end
	local edge = edge_of(e, node, f, g, {kh, kw})
	if f.scale then return mean(e, node, x, f, g, v, kh * kw, edge, y) end
	if edge then
		e:call('%s(%s, &%s, %s%s);', e:part('meanpoolf_edge', {x = 'float', y = 'float'}), x, v, edge, y)
	else
		e:call('%s(%s, &%s, %s, %s);', e:part('meanpoolf', {x = 'float', y = 'float'}), x, v, e.float(e.single(1 / (kh * kw))), y)
	end
end}
