-- SPDX-License-Identifier: MIT
-- Variance, standard deviation and norms of floats along neighbouring axes, in double: a tolerance, as sums run in another order than
-- in Quoll's blocks. any and all, exact.
local _, internal = ...
local axes = internal.import 'export_axes'
local base = internal.import 'base'
local parts = internal.import 'export_parts'

local VARIANCE = [[
/* x (rows, n, inner) over n */
static void ${name}(const float *x, int32_t rows, int32_t n, int32_t inner, double divisor, float *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			double mean = 0, square = 0;

			for (i = 0; i < n; i++)
				mean += x[i * inner + j];
			mean /= n;
			for (i = 0; i < n; i++)
				square += (x[i * inner + j] - mean) * (x[i * inner + j] - mean);
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
	norm2 = {TYPE = 'double', FIRST = '0', STEP = 'a += (double)v * v', LAST = 'q_sqrt(a)'},
	norminf = {TYPE = '${x}', FIRST = '0', STEP = 'v = v < 0 ? -v : v;\n\t\t\t\ta = v > a || v != v ? v : a', LAST = 'a'},
}
local function norm_of(node)
	local p = node.attrs.p or 2
	local name = p == 1 and 'norm1' or p == 2 and 'norm2' or p == math.huge and 'norminf'
	return name or base.fail("export: node '%s': p: wanted 1, 2 or inf, got %g", node.name, p)
end

local function variance(e, node, x, rows, n, inner, y)
	local correction = node.attrs.correction or node.attrs.unbiased == false and 0 or 1
	local name = node.op == 'std' and 'reduce_std' or 'reduce_var'
	parts.add(name, {needs = node.op == 'std' and {{'sqrt'}} or nil,
		text = (VARIANCE:gsub('@RESULT@', node.op == 'std' and 'q_sqrt(square / divisor)' or '(square / divisor)'))})
	e.inexact = true
	e:call('%s(%s, %d, %d, %d, %a, %s);', e:part(name), x, rows, n, inner, math.max(0, n - correction) + 0.0, y)
end

local function fold(e, node, x, f, rows, n, inner, y, g)
	local which = node.op == 'norm' and norm_of(node) or node.op
	e.inexact = e.inexact or node.op == 'norm' and which ~= 'norminf'
	parts.add('fold_' .. which, {fields = {'x', 'y'}, needs = which == 'norm2' and {{'sqrt'}} or nil, text = (FOLD:gsub('@(%u+)@', FOLDS[which]))})
	e:call('%s(%s, %d, %d, %d, %s);', e:part('fold_' .. which, {x = f.ctype, y = g.ctype}), x, rows, n, inner, y)
end

return {ops = {'var', 'std', 'norm', 'any', 'all'}, emit = function(e, node)
	local x, f = e:input(node, 1, 'plain')
	local y, g = e:output(node)
	local rows, n, inner = axes.spans(node, f.shape)
	local whole = node.op == 'any' or node.op == 'all'
	if f.scale or not whole and f.ctype ~= 'float' then
		base.fail("export: node '%s': wanted floats for %s, got %s", node.name, node.op, f.scale and 'codes' or f.dtype)
	end
	if node.op == 'var' or node.op == 'std' then
		variance(e, node, x, rows, n, inner, y)
	else
		fold(e, node, x, f, rows, n, inner, y, g)
	end
end}
