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
						row = a * v->stride_height - v->top + p;
						column = b * v->stride_width - v->left + q;
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

-- The mean of each window: further parameters, the type of sums, an element, and the result of a sum.
local function mean_pool(arguments, sum, element, result)
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
					sum = 0;
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
]]):gsub('@(%u+)@', {ARGUMENTS = arguments, SUM = sum, RESULT = result,
		ELEMENT = element:gsub('X', 'x[(row * v->width + column) * v->channels + c]')})
end

-- Codes under the params of x: half to even of the exact quotient.
parts.add('meanpool', {fields = {'x', 'y'}, needs = {{'window'}}, text = (mean_pool('int32_t zero, ', 'int32_t', '(int32_t)X - zero',
	'(${y})((int32_t)(((double)sum / (double)count + 6755399441055744.0) - 6755399441055744.0) + zero)'))})
-- Codes with other params.
parts.add('rescalepool', {fields = {'x', 'y'}, needs = {{'window'}, {'round'}}, text = (mean_pool(
	'int32_t from, float factor, float lo, float hi, int32_t zero, ', 'int32_t', '(int32_t)X - from',
	'(${y})q_round((float)sum * factor, lo, hi, zero)'))})
parts.add('fixedpool', {fields = {'x', 'y', 'rule'}, needs = function(f) return {{'window'}, {f.rule}} end, text = (mean_pool(
	'int32_t from, struct q_fixed m, int32_t lo, int32_t hi, int32_t zero, ', 'int64_t', '(int64_t)X - from',
	'(${y})(q_clamp(q_${rule}(sum, m), lo, hi) + zero)'))}) -- rules of nn/export/fixed.lua
-- Floats, summed as in tensor/conv/planes.c: tap by tap, or a whole plane at once.
parts.add('meanpoolf', {fields = {'x', 'y'}, needs = {{'window'}}, text = (mean_pool('float share, ', 'float', 'X', 'sum * share'))})
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

local LEAST = {uint8_t = '0', uint16_t = '0', int8_t = '-128', int16_t = '-32768', float = parts.float(-math.huge)}

-- With the params of x, or rescaled to others (quant/integer/pool_codes.c).
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
	local top, left = window.before(node.attrs.pad)
	if node.op == 'avgpool2d' and not f.scale and g.shape[3] * g.shape[4] == 1 and kh == f.shape[3] and kw == f.shape[4] and top == 0 and left == 0 then
		return e:call('%s(%s, %d, %d, %d, %s);', e:part 'planemean', x, f.shape[1], kh * kw, f.shape[2], y)
	end
	local v = window.of(e, node, f, g, {kh, kw})
	if node.op == 'maxpool2d' then
		e:call('%s(%s, &%s, %s, %s);', f.ctype == 'float' and e:part 'maxpoolf' or e:part('maxpool', {x = f.ctype}), x, v, LEAST[f.ctype], y)
	elseif not f.scale then
		e:call('%s(%s, &%s, %s, %s);', e:part('meanpoolf', {x = 'float', y = 'float'}), x, v, e.float(e.single(1 / (kh * kw))), y)
	else
		mean(e, node, x, f, g, v, kh * kw, y)
	end
end}
