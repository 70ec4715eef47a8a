-- SPDX-License-Identifier: MIT
-- Variance, standard deviation and norms along axes, in double: a tolerance, as sums run in another order than
-- in Quoll's blocks. any and all, exact.
local _, internal = ...
local axes = internal.import 'export_axes'
internal.import 'export_libm'
local parts = internal.import 'export_parts'

local VARIANCE = [[
/* x (rows, n, inner) over n */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, double divisor, float *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			double mean = 0, square = 0;

			for (i = 0; i < n; i++)
				mean += (double)x[i * inner + j];
			mean /= n;
			for (i = 0; i < n; i++)
				square += ((double)x[i * inner + j] - mean) * ((double)x[i * inner + j] - mean);
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
	norm1 = {TYPE = 'double', FIRST = '0', STEP = 'a += v < 0 ? -(double)v : (double)v', LAST = 'a'},
	norm2 = {TYPE = 'double', FIRST = '0', STEP = 'a += (double)v * (double)v', LAST = 'q_sqrt(a)'},
	norm0 = {TYPE = 'double', FIRST = '0', STEP = 'a += v != 0', LAST = 'a'},
	norminf = {TYPE = 'double', FIRST = '0', STEP = 'double b = v < 0 ? -(double)v : (double)v;\n\n\t\t\t\ta = b > a || b != b ? b : a', LAST = 'a'},
	normleast = {TYPE = 'double', FIRST = '0', STEP = 'double b = v < 0 ? -(double)v : (double)v;\n\n\t\t\t\ta = i == 0 || b < a || b != b ? b : a', LAST = 'a'},
}
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
	parts.add(name, {needs = node.op == 'std' and {{'sqrt'}} or nil,
		fields = {'x'}, text = (VARIANCE:gsub('@RESULT@', node.op == 'std' and 'q_sqrt(square / divisor)' or '(square / divisor)'))})
	e.inexact = true
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
	e.inexact = e.inexact or (which == 'norm1' or which == 'norm2')
	parts.add('fold_' .. which, {fields = {'x', 'y'}, needs = which == 'norm2' and {{'sqrt'}} or nil, text = (FOLD:gsub('@(%u+)@', FOLDS[which]))})
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
