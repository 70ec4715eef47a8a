-- SPDX-License-Identifier: MIT
-- Softmax and its logarithm, layer and RMS norm along the last axis, sums and similar reductions along adjacent axes,
-- argmax and argmin, running sums. Sums of floats are added in Quoll's order (nn/export/sums.lua) and are bit-equal; those of integers
-- wrap.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
local base = internal.import 'interp/prelude/base'
local cast = internal.import 'nn/export/ops/cast'
local parts = internal.import 'nn/export/parts'
local vmath = internal.import 'nn/export/vmath'
local of_codes = internal.import 'nn/export/ops/line_codes'
internal.import 'nn/export/sums'

---------------------------------------------------------------- softmax

local SOFTMAX = [[
/* x (rows, n, inner) along n */
static void ${name}(const float *x, int32_t rows, int32_t n, int32_t inner, float *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner, y += n * inner)
		for (j = 0; j < inner; j++) {
			float most = q_largest(x + j, n, inner);
			@TYPE@;

			for (i = 0; i < n; i++)
				y[i * inner + j] = q_exp_below(x[i * inner + j], most);
			@LAST@
		}
}
]]
local SOFTMAXES = {
	softmax = {TYPE = 'float by', LAST = 'by = (float)(1 / q_sum(y + j, n, inner));\n\t\t\tfor (i = 0; i < n; i++)\n\t\t\t\ty[i * inner + j] *= by;'},
	logsoftmax = {TYPE = 'double rest', LAST = 'rest = q_log_f64(q_sum(y + j, n, inner) * 0x1p-24);\n\t\t\tfor (i = 0; i < n; i++)\n' ..
		'\t\t\t\ty[i * inner + j] = (float)((double)x[i * inner + j] - (double)most - rest);'},
}

local function split(shape, axis)
	local rows, inner = 1, 1
	for i = 1, axis - 1 do rows = rows * shape[i] end
	for i = axis + 1, #shape do inner = inner * shape[i] end
	return rows, shape[axis], inner
end

local function softmax(e, node)
	local given = e:facts(node.inputs[1])
	e.inexact = e.inexact or given.ctype ~= 'float' and not given.scale -- Quoll computes integers in double
	local x, f = cast.floats(e, node, 1)
	local y = e:output(node)
	local needs = {{'largest'}, {'exp_below'}, {'sum'}}
	if node.op == 'logsoftmax' then needs[4] = {vmath.part 'ql_log_f64'} end
	parts.add(node.op, {needs = needs, text = (SOFTMAX:gsub('@(%u+)@', SOFTMAXES[node.op]))})
	local rows, n, inner = split(f.shape, axes.at(node.attrs.axis or -1, #f.shape))
	e:call('%s(%s, %d, %d, %d, %s);', e:part(node.op), x, rows, n, inner, y)
end

---------------------------------------------------------------- norms

parts.add('centre', {needs = {{'sum'}, {'join_lanes'}, {'sqrt'}}, text = [[
struct q_centre { /* normalization of a row: elements are ((x - shift) + rest) * by */
	float shift, rest, by;
};

/* As in tensor/ops/layernorm.c: differences to a float near the mean, in lanes like q_lanes. */
static struct q_centre ${name}_of(const float *x, int32_t n, double eps, int center)
{
	struct q_centre c = {center ? (float)(q_sum(x, n, 1) / (double)n) : 0.0f, 0, 0};
	double wide[2][32], rest = 0, variance;
	int32_t i, k, from;
	float lane[2][32], d;

	memset(wide, 0, sizeof(wide));
	for (from = 0; from < n; from += 256) {
		memset(lane, 0, sizeof(lane));
		for (i = from; i < n && i < from + 256; i++) {
			d = x[i] - c.shift;
			lane[0][i & 31] += d;
			lane[1][i & 31] += d * d;
		}
		for (k = 0; k < 32; k++) {
			wide[0][k] += (double)lane[0][k];
			wide[1][k] += (double)lane[1][k];
		}
	}
	if (center)
		rest = -q_join_lanes(wide[0], 32) / (double)n;
	variance = q_join_lanes(wide[1], 32) / (double)n - rest * rest;
	c.rest = (float)rest;
	c.by = (float)(1 / q_sqrt((variance < 0 ? 0 : variance) + eps));
	return c;
}

/* Scales a row whose squares overflow or underflow by a power of two; writes it to y and returns y. */
static const float *${name}(struct q_centre *c, const float *x, int32_t n, double eps, int center, float *y)
{
	double most = 0, unit = 1, size;
	int32_t i;

	*c = ${name}_of(x, n, eps, center);
	if (c->by > 0)
		return x;
	for (i = 0; i < n; i++) {
		size = x[i] < 0 ? -(double)x[i] : (double)x[i];
		if (!(size - size == 0))
			return x;
		most = size > most ? size : most;
	}
	while (most * unit >= 2)
		unit *= 0.5;
	for (i = 0; i < n; i++)
		y[i] = (float)((double)x[i] * unit);
	*c = ${name}_of(y, n, eps * unit * unit, center);
	return y;
}
]]})
parts.add('layernorm', {needs = {{'centre'}}, text = [[
static void ${name}(const float *x, int32_t rows, int32_t n, const float *weight, const float *bias, double eps, int center, float *y)
{
	struct q_centre c;
	const float *row;
	int32_t r, i;

	for (r = 0; r < rows; r++, x += n, y += n) {
		row = q_centre(&c, x, n, eps, center, y);
		for (i = 0; i < n; i++)
			y[i] = ((row[i] - c.shift) + c.rest) * c.by * (weight ? weight[i] : 1.0f) + (bias ? bias[i] : 0.0f);
	}
}
]]})

local function norm(e, node)
	local x, f = cast.floats(e, node, 1)
	local weight = node.inputs[2] and cast.floats(e, node, 2) or '0'
	local bias = node.op == 'layernorm' and node.inputs[3] and cast.floats(e, node, 3) or '0'
	local y = e:output(node)
	local n = f.shape[#f.shape]
	local wf = node.inputs[2] and e:facts(node.inputs[2])
	if wf and #wf.shape ~= 1 then base.fail("export: node '%s': wanted a norm over the last axis", node.name) end
	e:call('%s(%s, %d, %d, %s, %s, %s, %d, %s);', e:part 'layernorm', x, f.count // n, n, weight, bias,
		('%a'):format(node.attrs.eps or 1e-5), node.op == 'layernorm' and 1 or 0, y)
end

---------------------------------------------------------------- reductions

local REDUCE = [[
/* x (rows, n, inner) over n */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, ${y} *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			@TYPE@ a = @FIRST@;

			for (i = @FROM@; i < n; i++) {
				${x} b = x[i * inner + j];

				@STEP@;
			}
			*y++ = (${y})@LAST@;
		}
}
]]
local REDUCTIONS = {
	sumwhole = {TYPE = 'uint64_t', FIRST = '0', FROM = '0', STEP = 'a += (uint64_t)b', LAST = 'a'},
	mean = {TYPE = 'double', FIRST = '0', FROM = '0', STEP = 'a += (double)b', LAST = '(a / n)'},
	max = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = a == 0 && b == 0 ? b + a : b > a || b != b ? b : a', LAST = 'a'},
	min = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = a == 0 && b == 0 ? -(-b - a) : b < a || b != b ? b : a', LAST = 'a'},
	maxwhole = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = b > a ? b : a', LAST = 'a'},
	minwhole = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = b < a ? b : a', LAST = 'a'},
}
local SUMS = {sum = 'q_sum(x + j, n, inner)', mean = '(q_sum(x + j, n, inner) / (double)n)'}
for name, value in pairs(SUMS) do
	parts.add(('reduce%sf'):format(name), {fields = {'x', 'y'}, needs = {{'sum'}}, text = ([[
/* x (rows, n, inner) over n */
static void ${name}(const float *x, int32_t rows, int32_t n, int32_t inner, float *y)
{
	int32_t r, j;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++)
			*y++ = (float)@VALUE@;
}
]]):gsub('@VALUE@', value)})
end
for name, words in pairs(REDUCTIONS) do parts.add('reduce' .. name, {fields = {'x', 'y'}, text = (REDUCE:gsub('@(%u+)@', words))}) end
for type, words in pairs {float = {'double', '(double)*p'}, int64_t = {'uint64_t', '(uint64_t)*p'}} do
	parts.add('cumsum_' .. type, {fields = {'x'}, text = ([[
/* Running sums along n of x (rows, n, inner). */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, @Y@ *y)
{
	int32_t r, i, j;

	for (r = 0; r < rows; r++, x += n * inner, y += n * inner)
		for (j = 0; j < inner; j++) {
			const ${x} *p = x + j;
			@SUM@ sum = 0;

			for (i = 0; i < n; i++, p += inner) {
				sum += @VALUE@;
				y[i * inner + j] = (@Y@)sum;
			}
		}
}
]]):gsub('@(%u+)@', {Y = type, SUM = words[1], VALUE = words[2]})})
end
-- For floats the first nan, if there is one.
local function add_place(name, which, better)
	parts.add(name, {fields = {'x'}, text = ([[
/* 1-based index of the first @WHICH@ element along n of x (rows, n, inner). */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, int64_t *y)
{
	int32_t r, i, j, best;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			best = 0;
			for (i = 1; i < n; i++) {
				${x} v = x[i * inner + j], found = x[best * inner + j];

				if (@BETTER@)
					best = i;
			}
			*y++ = best + 1;
		}
}
]]):gsub('@(%u+)@', {WHICH = which, BETTER = better})})
end
local PLACES = {argmax = {'largest', 'v > found'}, argmin = {'smallest', 'v < found'}}
for name, words in pairs(PLACES) do
	add_place(name, words[1], words[2])
	add_place(name .. 'f', words[1], words[2] .. ' || (v != v && found == found)')
end

local function reduce(e, node)
	local which, codes = node.op, PLACES[node.op] and e:facts(node.inputs[1]).scale
	local x, f
	if codes then x, f = e:input(node, 1, 'plain') else x, f = e:plain(node, 1) end
	local y, g = e:output(node)
	local rows, n, inner
	x, rows, n, inner = axes.lines(e, node, x, f)
	if PLACES[which] then
		e:call('%s(%s, %d, %d, %d, %s);', e:part(which .. (f.ctype == 'float' and 'f' or ''), {x = f.ctype}), x, rows, n, inner, y)
		return
	end
	if f.ctype == 'float' and SUMS[which] then which = which .. 'f' end
	if f.ctype ~= 'float' and which ~= 'mean' then which = which .. 'whole' end
	e:call('%s(%s, %d, %d, %d, %s);', e:part('reduce' .. which, {x = f.ctype, y = g.ctype}), x, rows, n, inner, y)
end

-- aminmax: both reductions of the same lines.
local function both(e, node)
	local x, f = e:plain(node, 1)
	local rows, n, inner
	x, rows, n, inner = axes.lines(e, node, x, f)
	for i, which in ipairs {'reducemin', 'reducemax'} do
		local y, g = e:output(node, nil, i)
		if f.ctype ~= 'float' then which = which .. 'whole' end
		e:call('%s(%s, %d, %d, %d, %s);', e:part(which, {x = f.ctype, y = g.ctype}), x, rows, n, inner, y)
	end
end

local function cumsum(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local rows, n, inner = split(f.shape, axes.at(node.attrs.axis or -1, #f.shape))
	e:call('%s(%s, %d, %d, %d, %s);', e:part('cumsum_' .. g.ctype, {x = f.ctype}), x, rows, n or 1, inner, y)
end

local BY = {softmax = softmax, logsoftmax = softmax, layernorm = norm, rmsnorm = norm, cumsum = cumsum, aminmax = both}

return {ops = {'softmax', 'logsoftmax', 'layernorm', 'rmsnorm', 'sum', 'mean', 'max', 'min', 'aminmax', 'argmax', 'argmin', 'cumsum'},
emit = function(e, node)
	local f = e:facts(node.inputs[1])
	if f.scale and of_codes.can(node) then return of_codes.emit(e, node) end
	local emit = BY[node.op] or reduce
	emit(e, node)
end}
