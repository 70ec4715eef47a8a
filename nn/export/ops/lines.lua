-- SPDX-License-Identifier: MIT
-- Softmax and its logarithm, layer and RMS norm along the last axis, sums and similar reductions along adjacent axes, logsumexp,
-- argmax and argmin, running sums, products and extremes. Sums of floats are added in Quoll's order (nn/export/sums.lua) and are bit-equal; those of integers
-- wrap.
local _, internal = ...
local axes = internal.import 'nn/export/axes'
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
	local n = 1
	for i = #f.shape - (node.attrs.axes or 1) + 1, #f.shape do n = n * f.shape[i] end
	e:call('%s(%s, %d, %d, %s, %s, %s, %d, %s);', e:part 'layernorm', x, f.count // n, n, weight, bias,
		('%a'):format(node.attrs.eps or 1e-5), node.op == 'layernorm' and 1 or 0, y)
end

parts.add('channels', {text = [[
/* y (outer, channels, inner) = y * weight + bias of the channel; either may be missing. */
static void ${name}(float *y, int32_t outer, int32_t channels, int32_t inner, const float *weight, const float *bias)
{
	int32_t o, c, i;

	for (o = 0; o < outer; o++)
		for (c = 0; c < channels; c++, y += inner) {
			for (i = 0; weight && i < inner; i++)
				y[i] *= weight[c];
			for (i = 0; bias && i < inner; i++)
				y[i] += bias[c];
		}
}
]]})

-- Group and instance norm: rows of layer norm without weight, then the channels.
local function group_norm(e, node)
	local x, f = cast.floats(e, node, 1)
	local weight = node.inputs[2] and cast.floats(e, node, 2) or '0'
	local bias = node.inputs[3] and cast.floats(e, node, 3) or '0'
	local y = e:output(node)
	local channels = f.shape[2]
	local rows = f.shape[1] * (node.attrs.groups or channels)
	e:call('%s(%s, %d, %d, 0, 0, %s, 1, %s);', e:part 'layernorm', x, rows, f.count // rows, ('%a'):format(node.attrs.eps or 1e-5), y)
	if node.inputs[2] then
		e:call('%s(%s, %d, %d, %d, %s, %s);', e:part 'channels', y, f.shape[1], channels, f.count // (f.shape[1] * channels), weight, bias)
	end
end

parts.add('response', {needs = {{'power'}}, text = [[
/* x (outer, channels, inner) over (k + factor * the sum of the squares of the channels c - low to c + high)^beta */
static void ${name}(const float *x, int32_t outer, int32_t channels, int32_t inner, int32_t low, int32_t high, double factor, double k,
	float beta, float *y)
{
	int32_t o, c, i, j;

	for (o = 0; o < outer; o++, x += channels * inner)
		for (c = 0; c < channels; c++)
			for (i = 0; i < inner; i++) {
				double sum = 0;

				for (j = c < low ? 0 : c - low; j < channels && j <= c + high; j++)
					sum += (double)x[j * inner + i] * (double)x[j * inner + i];
				sum = factor * sum;
				*y++ = x[c * inner + i] / q_power((float)(k + sum), beta);
			}
}
]]})

local function response(e, node)
	local x, f = cast.floats(e, node, 1)
	local a, y, inner = node.attrs, e:output(node), 1
	for i = 3, #f.shape do inner = inner * f.shape[i] end
	e:call('%s(%s, %d, %d, %d, %d, %d, %a, %a, %s, %s);', e:part 'response', x, f.shape[1], f.shape[2], inner, math.min(a.size // 2, f.shape[2]),
		math.min((a.size - 1) // 2, f.shape[2]), (a.alpha or 1e-4) / a.size, a.k or 1, e.float(e.single(a.beta or 0.75)), y)
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
	prodwhole = {TYPE = 'uint64_t', FIRST = '1', FROM = '0', STEP = 'a *= (uint64_t)b', LAST = 'a'},
	sumwhole = {TYPE = 'uint64_t', FIRST = '0', FROM = '0', STEP = 'a += (uint64_t)b', LAST = 'a'},
	mean = {TYPE = 'double', FIRST = '0', FROM = '0', STEP = 'a += (double)b', LAST = '(a / n)'},
	max = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = a == 0 && b == 0 ? b + a : b > a || b != b ? b : a', LAST = 'a'},
	min = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = a == 0 && b == 0 ? -(-b - a) : b < a || b != b ? b : a', LAST = 'a'},
	maxwhole = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = b > a ? b : a', LAST = 'a'},
	minwhole = {TYPE = '${x}', FIRST = 'x[j]', FROM = '1', STEP = 'a = b < a ? b : a', LAST = 'a'},
}
parts.add('productf', {text = [[
/* In double: blocks of 1024 numbers in 32 lanes, which are multiplied in their order. */
static double q_productf(const float *x, int32_t n, int32_t step)
{
	double all = 1, part = 1, lane[32];
	int32_t from, to, i;

	for (from = 0; from < n; from = to) {
		to = n - from < 1024 ? n : from + 1024;
		for (i = 0; i < 32; i++)
			lane[i] = 1;
		for (i = from; i < to; i++)
			lane[(i - from) & 31] *= (double)x[i * step];
		for (i = 1; i < 32; i++)
			lane[0] *= lane[i];
		part *= lane[0];
		if (to == n || to % 65536 == 0) {
			all *= part;
			part = 1;
		}
	}
	return all;
}
]]})
local SUMS = {sum = 'q_sum(x + j, n, inner)', mean = '(q_sum(x + j, n, inner) / (double)n)', prod = 'q_productf(x + j, n, inner)'}
for name, value in pairs(SUMS) do
	parts.add(('reduce%sf'):format(name), {fields = {'x', 'y'}, needs = {{name == 'prod' and 'productf' or 'sum'}}, text = ([[
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
-- Sums and products: type of the result, type and start of the total.
local SCANS = {cumsum = {'0', '+'}, cumprod = {'1', '*'}}
for op, scan in pairs(SCANS) do
	for type, total in pairs {float = 'double', int64_t = 'uint64_t'} do
		parts.add(op .. '_' .. type, {fields = {'x'}, text = ([[
/* Along n of x (rows, n, inner), from the end with `reverse`; `exclusive`: of the elements before each only. */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, int exclusive, int reverse, @Y@ *y)
{
	int32_t r, i, j, at;

	for (r = 0; r < rows; r++, x += n * inner, y += n * inner)
		for (j = 0; j < inner; j++) {
			@TOTAL@ all = @FIRST@;

			for (i = 0; i < n; i++) {
				at = (reverse ? n - 1 - i : i) * inner + j;
				if (exclusive)
					y[at] = (@Y@)all;
				all = all @OP@ (@TOTAL@)x[at];
				if (!exclusive)
					y[at] = (@Y@)all;
			}
		}
}
]]):gsub('@(%u+)@', {Y = type, TOTAL = total, FIRST = scan[1], OP = scan[2]})})
	end
end
for op, order in pairs {cummax = '>=', cummin = '<='} do
	parts.add(op, {fields = {'x'}, text = ([[
/* Along n of x (rows, n, inner), and the 1-based places; of equal ones the last. */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, ${x} *y, int64_t *place)
{
	int32_t r, i, j, best;

	for (r = 0; r < rows; r++, x += n * inner, y += n * inner, place += n * inner)
		for (j = 0; j < inner; j++) {
			best = 0;
			for (i = 0; i < n; i++) {
				${x} v = x[i * inner + j];

				if (v != v || v @ORDER@ x[best * inner + j])
					best = i;
				y[i * inner + j] = x[best * inner + j];
				place[i * inner + j] = best + 1;
			}
		}
}
]]):gsub('@(%u+)@', {ORDER = order})})
end
parts.add('logsumexp', {needs = {{'exp_below'}, {'sum'}, {vmath.part 'ql_log_f64'}, {vmath.part 'ql_of_bits'}}, text = [[
/* x (rows, n, inner) along n, in pieces of 1024 exponentials (tensor/loops/exponentials.c) */
static void ${name}(const float *x, int32_t rows, int32_t n, int32_t inner, float *y)
{
	float most, piece[1024];
	int32_t r, i, j, from, nan;
	double sum;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			most = q_of_bits(0xff800000u);
			for (nan = i = 0; i < n; i++) {
				most = x[i * inner + j] > most ? x[i * inner + j] : most;
				nan |= x[i * inner + j] != x[i * inner + j];
			}
			for (sum = from = 0; from < n && !nan && most - most == 0; from += 1024) {
				for (i = 0; i < 1024 && from + i < n; i++)
					piece[i] = q_exp_below(x[(from + i) * inner + j], most);
				sum += q_sum(piece, i, 1);
			}
			if (nan)
				*y++ = q_of_bits(0x7fc00000u);
			else if (!(most - most == 0))
				*y++ = most;
			else
				*y++ = (float)((double)most + q_log_f64(sum * 0x1p-24));
		}
}
]]})
-- For floats the first nan, if there is one.
local function add_place(name, which, better, last)
	parts.add(name, {fields = {'x'}, text = ([[
/* 1-based index of the @WHICH@ element along n of x (rows, n, inner). */
static void ${name}(const ${x} *x, int32_t rows, int32_t n, int32_t inner, int64_t *y)
{
	int32_t r, i, j, best;

	for (r = 0; r < rows; r++, x += n * inner)
		for (j = 0; j < inner; j++) {
			best = @BEGIN@;
			for (i = @FROM@) {
				${x} v = x[i * inner + j], found = x[best * inner + j];

				if (@BETTER@)
					best = i;
			}
			*y++ = best + 1;
		}
}
]]):gsub('@(%u+)@', {WHICH = (last and 'last ' or 'first ') .. which, BETTER = better, BEGIN = last and 'n - 1' or '0',
		FROM = last and 'n - 2; i >= 0; i--' or '1; i < n; i++'})})
end
local PLACES = {argmax = {'largest', 'v > found'}, argmin = {'smallest', 'v < found'}}
for name, words in pairs(PLACES) do
	for _, last in ipairs {false, true} do
		add_place(name .. (last and 'last' or ''), words[1], words[2], last)
		add_place(name .. (last and 'lastf' or 'f'), words[1], words[2] .. ' || (v != v && found == found)', last)
	end
end

local function reduce(e, node)
	local which, codes = node.op, PLACES[node.op] and e:facts(node.inputs[1]).scale
	local x, f
	if codes then x, f = e:input(node, 1, 'plain') else x, f = e:plain(node, 1) end
	local y, g = e:output(node)
	local rows, n, inner
	x, rows, n, inner = axes.lines(e, node, x, f)
	if PLACES[which] then
		which = which .. (node.attrs.last and 'last' or '') .. (f.ctype == 'float' and 'f' or '')
		e:call('%s(%s, %d, %d, %d, %s);', e:part(which, {x = f.ctype}), x, rows, n, inner, y)
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

local function scan(e, node)
	local x, f = e:plain(node, 1)
	local y, g = e:output(node)
	local rows, n, inner = split(f.shape, axes.at(node.attrs.axis or -1, #f.shape))
	e:call('%s(%s, %d, %d, %d, %d, %d, %s);', e:part(node.op .. '_' .. g.ctype, {x = f.ctype}), x, rows, n or 1, inner,
		node.attrs.exclusive and 1 or 0, node.attrs.reverse and 1 or 0, y)
end

local function running_extreme(e, node)
	local x, f = e:plain(node, 1)
	local y, places = e:output(node), (e:output(node, nil, 2))
	local rows, n, inner = split(f.shape, axes.at(node.attrs.axis or -1, #f.shape))
	e:call('%s(%s, %d, %d, %d, %s, %s);', e:part(node.op, {x = f.ctype}), x, rows, n or 1, inner, y, places)
end

local function logsumexp(e, node)
	local given = e:facts(node.inputs[1])
	e.inexact = e.inexact or given.ctype ~= 'float' and not given.scale -- Quoll computes integers in double
	local x, f = cast.floats(e, node, 1)
	local y = e:output(node)
	local rows, n, inner
	x, rows, n, inner = axes.lines(e, node, x, f)
	e:call('%s(%s, %d, %d, %d, %s);', e:part 'logsumexp', x, rows, n, inner, y)
end

local BY = {softmax = softmax, logsoftmax = softmax, layernorm = norm, rmsnorm = norm, groupnorm = group_norm, instancenorm = group_norm, localresponsenorm = response, cumsum = scan, cumprod = scan, cummax = running_extreme,
	cummin = running_extreme, logsumexp = logsumexp, aminmax = both}

return {ops = {'softmax', 'logsoftmax', 'layernorm', 'rmsnorm', 'groupnorm', 'instancenorm', 'localresponsenorm', 'sum', 'mean', 'max', 'min', 'aminmax', 'argmax', 'argmin',
	'cumsum', 'cumprod', 'cummax', 'cummin', 'prod', 'logsumexp'},
emit = function(e, node)
	local f = e:facts(node.inputs[1])
	if f.scale and of_codes.can(node) then return of_codes.emit(e, node) end
	local emit = BY[node.op] or reduce
	emit(e, node)
end}
