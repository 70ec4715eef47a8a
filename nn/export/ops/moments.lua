-- SPDX-License-Identifier: MIT
-- Variance, standard deviation and norms along axes, in double and in Quoll's order (tensor/ops/var.c, norm.c): the
-- same bits, except for norms with powers by the C library. Also any and all.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
internal.import 'nn/export/libm'
internal.import 'nn/export/sums'
local parts = internal.import 'nn/export/parts'

parts.add('moments', {text = [[
struct q_moments { /* of n numbers: mean minus `first`, sum of squared deviations from the mean */
	double n, first, mean, square;
};

static void q_moments_join(struct q_moments *a, const struct q_moments *b)
{
	double d = b->first - a->first + (b->mean - a->mean), n = a->n + b->n;

	if (a->n == 0 || b->n == 0) {
		*a = a->n == 0 ? *b : *a;
		return;
	}
	a->mean += d * (b->n / n);
	a->square += b->square + d * d * (a->n * (b->n / n));
	a->n = n;
}
]]})
local VARIANCE = [[
/* Blocks of 1024 numbers in 32 lanes, relative to their first. */
static double ${name}_of(const ${x} *x, int32_t n, int32_t step)
{
	struct q_moments all = {0, 0, 0, 0}, part = {0, 0, 0, 0}, block;
	double lane[2][32], d, sum[2];
	int32_t from, to, i, lanes;

	for (from = 0; from < n; from = to) {
		to = n - from < 1024 ? n : from + 1024;
		lanes = to - from < 32 ? to - from : 32;
		memset(lane, 0, sizeof(lane));
		block.n = (double)(to - from);
		block.first = (double)x[from * step];
		for (i = from; i < to; i++) {
			d = (double)x[i * step] - block.first;
			lane[0][(i - from) & 31] += d;
			lane[1][(i - from) & 31] += d * d;
		}
		for (sum[0] = sum[1] = 0, i = 0; i < lanes; i++) {
			sum[0] += lane[0][i];
			sum[1] += lane[1][i];
		}
		block.mean = sum[0] / block.n;
		d = sum[1] - sum[0] * sum[0] / block.n;
		block.square = d < 0 ? 0 : d;
		q_moments_join(&part, &block);
		if (to == n || to % 65536 == 0) {
			q_moments_join(&all, &part);
			part.n = 0;
		}
	}
	return all.square;
}

/* x (rows, n, inner) over n */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, double divisor, float *y)
{
	int32_t r, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			double square = ${name}_of(x + j, n, inner);

			*y++ = (float)@RESULT@;
		}
}
]]
local FOLD = [[
/* x (rows, n, inner) over n */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, ${y} *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			@TYPE@ a = @FIRST@;

			for (i = 0; i < n; i++) {
				${x} v = x[i * inner + j];

				@STEP@;
			}
			*y++ = (${y})@LAST@;
		}
}
]]
local FOLDS = {
	any = {TYPE = 'int', FIRST = '0', STEP = 'a = v != 0 ? 1 : a', LAST = 'a'},
	all = {TYPE = 'int', FIRST = '1', STEP = 'a = v == 0 ? 0 : a', LAST = 'a'},
	norm0 = {TYPE = 'double', FIRST = '0', STEP = 'a += v != 0', LAST = 'a'},
	norminf = {TYPE = 'double', FIRST = '0', STEP = 'double b = v < 0 ? -(double)v : (double)v;\n\n\t\t\t\ta = b > a || b != b ? b : a', LAST = 'a'},
	normleast = {TYPE = 'double', FIRST = '0', STEP = 'double b = v < 0 ? -(double)v : (double)v + 0.0; /* no -0 */\n\n\t\t\t\ta = i == 0 || b < a || b != b ? b : a', LAST = 'a'},
}
for name, words in pairs {norm1 = {'magnitudes', 'VALUE'}, norm2 = {'squares', 'q_sqrt(VALUE)'}} do
	parts.add('fold_' .. name, {fields = {'x', 'y'}, needs = function(f) return {{words[1], {x = f.x}}, name == 'norm2' and {'sqrt'} or nil} end, text = ([[
/* x (rows, n, inner) over n */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, ${y} *y)
{
	int32_t r, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++)
			*y++ = (float)@VALUE@;
}
]]):gsub('@VALUE@', (words[2]:gsub('VALUE', '${' .. words[1] .. '}(x + j, n, inner)')))})
end
local NORMS = {[0] = 'norm0', [1] = 'norm1', [2] = 'norm2', [math.huge] = 'norminf', [-math.huge] = 'normleast'}
parts.add('normp', {fields = {'x'}, needs = {{'power'}}, text = [[
/* x (rows, n, inner) over n; elements in units of the largest, so that no power overflows */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, float p, float *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			double most = 0, sum = 0, v;

			for (i = 0; i < n; i++) {
				v = (double)x[i * inner + j];
				v = v < 0 ? -v : v;
				most = v > most || v != v ? v : most;
			}
			for (i = 0; i < n && most > 0 && most - most == 0; i++) {
				v = (double)x[i * inner + j] / most;
				sum += (double)q_power((float)(v < 0 ? -v : v), p);
			}
			*y++ = most > 0 && most - most == 0 ? (float)(most * (double)q_power((float)sum, 1 / p)) : (float)most;
		}
}
]]})

local function variance(e, node, x, f, rows, n, inner, y)
	local correction = node.attrs.correction or node.attrs.unbiased == false and 0 or 1
	local name = node.op == 'std' and 'reduce_std' or 'reduce_var'
	parts.add(name, {needs = {{'moments'}, node.op == 'std' and {'sqrt'} or nil},
		fields = {'x'}, text = (VARIANCE:gsub('@RESULT@', node.op == 'std' and 'q_sqrt(square / divisor)' or '(square / divisor)'))})
	e:call('%s(%s, %d, %d, %d, %a, %s);', e:part(name, {x = f.ctype}), x, rows, n, inner, math.max(0, n - correction) + 0.0, y)
end

local function fold(e, node, x, f, rows, n, inner, y, g)
	local which = node.op == 'norm' and NORMS[node.attrs.p or 2] or node.op
	if which == 'norm' then
		local p = node.attrs.p + 0.0
		e.inexact = true
		e:call('%s(%s, %d, %d, %d, %s, %s);', e:part('normp', {x = f.ctype}), x, rows, n, inner, e.float(e.single(p)), y)
		return
	end
	if FOLDS[which] then parts.add('fold_' .. which, {fields = {'x', 'y'}, text = (FOLD:gsub('@(%u+)@', FOLDS[which]))}) end
	e:call('%s(%s, %d, %d, %d, %s);', e:part('fold_' .. which, {x = f.ctype, y = g.ctype}), x, rows, n, inner, y)
end

return {ops = {'var', 'std', 'norm', 'any', 'all'}, emit = function(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local rows, n, inner
	x, rows, n, inner = axes.lines(e, node, x, f)
	if node.op == 'var' or node.op == 'std' then
		variance(e, node, x, f, rows, n, inner, y)
	else
		fold(e, node, x, f, rows, n, inner, y, g)
	end
end}
