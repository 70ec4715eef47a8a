-- SPDX-License-Identifier: MIT
-- The functions of exported C, as templates: ${field} is replaced by a field, and a function's name ends with its
-- fields, so that each is written once per combination of types. The arithmetic is bit-equal to that of the kernels
-- (quant/integer/rounding.h, quant/integer/product_codes.c, quant/integer/conv_out.c, quant/integer/rescale_bytes.c,
-- quant/integer/pool_codes.c): change them together.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local packed = internal.import 'nn/export/packed'
local parts = {}
local templates = {}

-- A template: fields in the order in which they appear in its name, needs (a list, or a function of the fields), text.
-- A second text under the same name is an error, except for replaced user ops.
function parts.add(name, entry, replace)
	local old = templates[name]
	if old and old.text and entry.text and old.text ~= entry.text and not replace then
		base.fail("export: wanted one text for the template '%s', got two", name)
	end
	templates[name] = entry
end
function parts.has(name) return templates[name] ~= nil end
function parts.text(name) return templates[name].text end

local SHORT = {float = 'f32', int8_t = 'i8', uint8_t = 'u8', int16_t = 'i16', uint16_t = 'u16', int32_t = 'i32', int64_t = 'i64'}

function parts.short(type) return SHORT[type] or type end

local function full_name(name, fields)
	local full = 'q_' .. name
	for _, field in ipairs(templates[name].fields or {}) do
		if fields[field] then full = full .. '_' .. (SHORT[fields[field]] or fields[field]) end
	end
	return full
end

-- The name by which other parts call a part: its own, or that of its family if members differ in the last word only.
local FAMILIES = {'^store', '^row', '^decode', '^first', '^scale', '^cells', '^columns', '^tile', '^finish', '^count'}

local function role_of(name)
	for _, pattern in ipairs(FAMILIES) do
		if name:find(pattern) then return name:match(pattern) end
	end
	return name
end

-- {name, text, needs}: the text calls a needed function by the name of its template.
function parts.instance(name, fields)
	local entry = templates[name]
	local needs = entry.needs or {}
	if type(needs) == 'function' then needs = needs(fields) end
	local shared = packed.of[fields.w]
	local all = setmetatable({name = full_name(name, fields), factor = fields.rule == 'exact' and 'struct q_exact' or fields.rule and 'struct q_fixed' or 'float',
		bound = fields.rule and 'int32_t' or 'float', result = fields.rule and fields.y ~= 'float' and 'struct q_limits' or 'struct q_codes',
		bias = packed.keeps_zeros(fields.w) and fields.sum and 'struct q_zeros_' .. parts.short(fields.sum) or fields.sum,
		pitch = shared and shared.pitch or 'k', w = shared and 'uint8_t'}, {__index = fields})
	for _, need in ipairs(needs) do all[role_of(need[1])] = full_name(need[1], need[2] or {}) end
	if shared then needs = table.move(needs, 1, #needs, 2, {{fields.w}}) end
	local text = entry.text:gsub('%$at%((%w+), (%b())%)', function(array, index)
		return (shared and shared.at or '%s[%s]'):format(array, index:sub(2, -2))
	end):gsub('%${(%w+)}', function(field)
		local value = all[field]
		if value == nil then error('export: template ' .. name .. ' has no field ' .. field) end
		return value
	end)
	return {name = all.name, text = text, needs = needs}
end

for _, name in ipairs(packed.names) do parts.add(name, {text = packed.of[name].text}) end

-- The literal of exactly this float32.
function parts.float(x)
	if x ~= x then return '(0.0f / 0.0f)' end
	if x == math.huge then return '(1.0f / 0.0f)' end
	if x == -math.huge then return '(-1.0f / 0.0f)' end
	return ('%af'):format(x)
end

-- Integers in columns of the width of the widest.
local function integer_lines(values)
	local lo, hi = math.min(0, values[1]), values[1]
	for i = 2, #values do
		local value = values[i]
		if value < lo then lo = value elseif value > hi then hi = value end
	end
	local per, lines = 110 // (math.max(#('%d'):format(lo), #('%d'):format(hi)) + 2), {}
	for i = 1, #values, per do lines[#lines + 1] = table.concat(values, ', ', i, math.min(i + per - 1, #values)) end
	return lines, lo
end

local function float_lines(values)
	local lines, line, width = {}, {}, 0
	for i, value in ipairs(values) do
		local text = parts.float(value)
		if width + #text + 2 > 110 then
			lines[#lines + 1], line, width = table.concat(line, ', '), {}, 0
		end
		line[#line + 1], width = text, width + #text + 2
		if i == #values then lines[#lines + 1] = table.concat(line, ', ') end
	end
	return lines
end

-- The elements of an array, as lines of less than 120 characters.
function parts.values(ctype, values)
	if ctype == 'float' then return '\t' .. table.concat(float_lines(values), ',\n\t') end
	if #values == 0 then return '\t' end
	local whole = values
	if math.type(values[1]) ~= 'integer' or table.concat(values, ' '):find '[.e]' then
		whole = {}
		for i, value in ipairs(values) do whole[i] = math.tointeger(value) end
	end
	local lines, lo = integer_lines(whole)
	local text = '\t' .. table.concat(lines, ',\n\t')
	if lo > -2147483648 then return text end
	text = text:gsub('%-2147483648%f[^%d]', 'INT32_MIN') -- neither is a literal in C
	return (text:gsub('%-9223372036854775808%f[^%d]', 'INT64_MIN'))
end

---------------------------------------------------------------- rounding

parts.add('round', {text = [[
/* sat(rint(v)) + zero, half to even; nan gives the zero point. Adding 1.5 2^23 to |v| < 2^22 leaves no fraction. */
static int32_t q_round(float v, float lo, float hi, int32_t zero)
{
	v = v == v ? v : 0.0f;
	v = v < lo ? lo : v;
	v = v > hi ? hi : v;
	return (int32_t)((v + 12582912.0f) - 12582912.0f) + zero;
}
]]})

parts.add('params', {text = [[
struct q_params { /* of codes whose range is found at run time */
	float scale;
	int32_t zero;
};
]]})
for field, type in pairs {scale = 'float', zero = 'int32_t'} do
	parts.add('found_' .. field, {needs = {{'params'}}, text = ([[
static %s q_found_%s(const struct q_params *p)
{
	return p->%s;
}
]]):format(type, field, field)})
end
parts.add('finite', {text = [[
/* 1 if x with the scale s is encoded as a code that decodes to a finite number. x / s is below 2^22. */
static int q_is_finite(float x, float s)
{
	float code = x / s;

	code = (code + 12582912.0f) - 12582912.0f;
	return code < 1.0f || code * s - code * s == 0.0f;
}

/* The scale s, changed so that the range's end x is not decoded to infinity, as quant/ranges/fit.c does it. */
static float q_finite(float s, double x)
{
	float less = s * 0x1.fffffep-1f, code;

	if (q_is_finite((float)x, s))
		return s;
	if (q_is_finite((float)x, less))
		return less;
	code = (float)x / s;
	code = (code + 12582912.0f) - 12582912.0f;
	return (float)(x / (((double)code - 0.5) * (1 - 0x1p-20)));
}
]]})
parts.add('range', {needs = {{'params'}, {'finite'}}, text = [[
/* Scale and zero point of codes lo to hi for the finite values of x, as in quant/ranges/fit.c: the range is computed in double and
 * includes 0; the scale is rounded to float and is a normal number. */
static void q_range(const float *x, int32_t n, int symmetric, int32_t lo, int32_t hi, struct q_params *p)
{
	double least = 0, most = 0, scale;
	float end;
	int32_t i;

	for (i = 0; i < n; i++) {
		least = x[i] - x[i] == 0.0f && x[i] < least ? x[i] : least;
		most = x[i] - x[i] == 0.0f && x[i] > most ? x[i] : most;
	}
	if (symmetric)
		scale = (most > -least ? most : -least) / ((hi - lo) / 2);
	else
		scale = (most - least) / ((double)hi - lo);
	p->scale = scale > 0 ? (float)scale : 1.0f;
	p->scale = p->scale < FLT_MIN ? FLT_MIN : p->scale;
	for (i = 0; i < 2 && p->scale > FLT_MAX / 0x1p17f; i++)
		p->scale = q_finite(q_finite(p->scale, -least), most);
	if (symmetric) {
		p->zero = (lo + hi) / 2;
		return;
	}
	end = (float)least / p->scale;
	end = (float)lo - end;
	end = end < (float)lo ? (float)lo : end > (float)hi ? (float)hi : end;
	p->zero = (int32_t)((end + 12582912.0f) - 12582912.0f);
}
]]})
parts.add('folded', {fields = {'sum'}, needs = {{'params'}}, text = [[
/* For sums of codes whose range is found at run time: the factors of the outputs, and the terms of the zero point in their sums, to
 * which `offset` was added. */
static void ${name}(const struct q_params *p, int32_t offset, const float *scale, const ${sum} *sums, int32_t n, float *factor, ${sum} *bias)
{
	int32_t j;

	for (j = 0; j < n; j++) {
		factor[j] = p->scale * scale[j];
		bias[j] = -((p->zero + offset) * sums[j]);
	}
}
]]})

parts.add('quantize', {fields = {'type'}, needs = {{'round'}}, text = [[
static void ${name}(const float *x, int32_t n, float scale, float lo, float hi, int32_t zero, ${type} *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (${type})q_round(x[i] / scale, lo, hi, zero);
}
]]})

parts.add('sign', {text = [[
static void ${name}(const float *x, int32_t n, int8_t *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = x[i] < 0.0f ? -1 : 1;
}
]]})

parts.add('dequantize', {fields = {'type'}, text = [[
static void ${name}(const ${type} *x, int32_t n, float scale, int32_t zero, float *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (float)((int32_t)x[i] - zero) * scale;
}
]]})

parts.add('requantize', {fields = {'x', 'y'}, needs = {{'round'}}, text = [[
/* Equivalent to decoding and quantizing again. */
static void ${name}(const ${x} *x, int32_t from, float scale, float unit, int32_t n, float lo, float hi, int32_t zero, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (${y})q_round((float)((int32_t)x[i] - from) * scale / unit, lo, hi, zero);
}
]]})

parts.add('sqrt', {text = [[
/* The square root by Newton's steps on 1 <= x < 4; the last takes x - r * r exactly, from r in two halves, so that the result is
 * rounded as the processor's. */
static double q_sqrt(double x)
{
	double scale = 1, r = 1.5, high, low;
	int i;

	if (!(x > 0) || x - x != 0)
		return x < 0 ? (x - x) / (x - x) : x;
	for (; x >= 4; x *= 0.25)
		scale *= 2;
	for (; x < 1; x *= 4)
		scale *= 0.5;
	for (i = 0; i < 6; i++)
		r = 0.5 * (r + x / r);
	high = 134217729.0 * r;
	high = high - (high - r);
	low = r - high;
	r = r + (((x - high * high) - 2 * high * low) - low * low) / (2 * r);
	return r * scale;
}
]]})

---------------------------------------------------------------- moving

parts.add('transpose', {fields = {'type'}, text = [[
/* (n, rows, columns) to (n, columns, rows) */
static void ${name}(const ${type} *x, int32_t n, int32_t rows, int32_t columns, ${type} *y)
{
	int32_t i, r, c;

	for (i = 0; i < n; i++)
		for (c = 0; c < columns; c++)
			for (r = 0; r < rows; r++)
				y[(i * columns + c) * rows + r] = x[(i * rows + r) * columns + c];
}
]]})

---------------------------------------------------------------- products

parts.add('dot4', {fields = {'x', 'w', 'sum'}, text = [[
/* Products of x (n) with four rows of w. */
static void ${name}(const ${x} *x, const ${w} *w, int32_t n, int32_t pitch, ${sum} sum[4])
{
	const ${w} *w1 = w + pitch, *w2 = w1 + pitch, *w3 = w2 + pitch;
	${sum} a = 0, b = 0, c = 0, d = 0;
	int32_t i;

	for (i = 0; i < n; i++) {
		a += (${sum})x[i] * $at(w, (i));
		b += (${sum})x[i] * $at(w1, (i));
		c += (${sum})x[i] * $at(w2, (i));
		d += (${sum})x[i] * $at(w3, (i));
	}
	sum[0] = a;
	sum[1] = b;
	sum[2] = c;
	sum[3] = d;
}
]]})

parts.add('dot1', {fields = {'x', 'w', 'sum'}, text = [[
static ${sum} ${name}(const ${x} *x, const ${w} *w, int32_t n)
{
	${sum} a = 0;
	int32_t i;

	for (i = 0; i < n; i++)
		a += (${sum})x[i] * $at(w, (i));
	return a;
}
]]})

-- Conversion of a sum to a result: codes, or floats with a bias that is added after scaling.
local CODES = [[
static void ${name}(${sum} sum, const ${sum} *bias, const float *factor, int32_t j, const struct q_codes *c, ${y} *y)
{
	sum += bias[j];
	sum = c->relu && sum < 0 ? 0 : sum;
	*y = (${y})q_round((float)sum * factor[j], c->lo, c->hi, c->zero);
}
]]
local FLOATS = [[
static void ${name}(${sum} sum, const ${sum} *bias, const float *factor, int32_t j, const struct q_codes *c, ${y} *y)
{
	float v = (float)(sum + bias[j]) * factor[j];

	if (c->add)
		v = v + c->add[j];
	*y = c->relu && v < 0.0f ? 0.0f : v;
}
]]

-- Sums of floats have no bias of their own.
local PLAIN = [[
static void ${name}(float sum, const float *bias, const float *factor, int32_t j, const struct q_codes *c, float *y)
{
	(void)bias;
	(void)factor;
	if (c->add)
		sum = sum + c->add[j];
	*y = c->relu && sum < 0.0f ? 0.0f : sum;
}
]]

parts.add('codes', {text = [[
struct q_codes { /* conversion of sums to results: codes from lo + zero to hi + zero, or floats */
	float lo, hi;
	int32_t zero;
	int relu;
	const float *add; /* bias of floats, or 0 */
};
]]})
parts.add('store', {fields = {'sum', 'y'}, needs = {{'round'}, {'codes'}}, text = CODES})
parts.add('storef', {fields = {'sum', 'y'}, needs = {{'codes'}}, text = FLOATS})

parts.add('storeff', {needs = {{'codes'}}, text = PLAIN})

local function store_of(f)
	if f.rule == 'double32' then return {'storen', {y = f.y}} end
	return {f.sum == 'float' and 'storeff' or f.y == 'float' and 'storef' or f.rule and 'storex' or 'store',
		{sum = f.sum, y = f.y, rule = f.rule}}
end
parts.store_of = store_of

local function product_needs(f)
	return {{'dot4', {x = f.x, w = f.w, sum = f.sum}}, {'dot1', {x = f.x, w = f.w, sum = f.sum}},
		store_of(f)}
end

-- One row of x (k) by w (n, k).
parts.add('row', {fields = {'x', 'w', 'sum', 'y', 'rule'}, needs = product_needs, text = [[
static void ${name}(const ${x} *x, const ${w} *w, int32_t n, int32_t k, const ${sum} *bias, const ${factor} *factor,
	const ${result} *c, ${y} *y)
{
	${sum} sum[4];
	int32_t whole = n - n % 4, j, l;

	for (j = 0; j < whole; j += 4) {
		${dot4}(x, w + j * ${pitch}, k, ${pitch}, sum);
		for (l = 0; l < 4; l++)
			${store}(sum[l], bias, factor, j + l, c, y + j + l);
	}
	for (j = whole; j < n; j++)
		${store}(${dot1}(x, w + j * ${pitch}, k), bias, factor, j, c, y + j);
}
]]})

-- For codes that do not fit their packed dtype after subtraction of the zero point.
parts.add('zeros', {fields = {'sum'}, text = [[
struct ${name} { /* corrections of sums of codes: a constant, and zero points of w times the sum of x */
	const ${sum} *bias;
	const uint8_t *zero;
};
]]})
parts.add('rowz', {fields = {'x', 'w', 'sum', 'y', 'rule'}, needs = function(f)
	return {{'zeros', {sum = f.sum}}, {'dot1', {x = f.x, w = f.w, sum = f.sum}}, store_of(f)}
end, text = [[
static void ${name}(const ${x} *x, const ${w} *w, int32_t n, int32_t k, const ${bias} *bias, const ${factor} *factor,
	const ${result} *c, ${y} *y)
{
	${sum} total = 0;
	int32_t j;

	for (j = 0; j < k; j++)
		total += x[j];
	for (j = 0; j < n; j++)
		${store}(${dot1}(x, w + j * ${pitch}, k) - total * bias->zero[j], bias->bias, factor, j, c, y + j);
}
]]})
function parts.row_of(f) return packed.keeps_zeros(f.w) and 'rowz' or 'row' end

parts.add('linear', {fields = {'x', 'w', 'sum', 'y', 'rule'}, needs = function(f) return {{parts.row_of(f), f}} end, text = [[
/* x (m, k) by w (n, k) */
static void ${name}(const ${x} *x, int32_t m, const ${w} *w, int32_t n, int32_t k, const ${bias} *bias, const ${factor} *factor,
	const ${result} *c, ${y} *y)
{
	int32_t i;

	for (i = 0; i < m; i++)
		${row}(x + i * k, w, n, k, bias, factor, c, y + i * n);
}
]]})

parts.add('window', {text = [[
struct q_window { /* of images (n, height, width, channels) */
	int32_t n, height, width, channels, out_height, out_width;
	int32_t kernel_height, kernel_width, stride_height, stride_width, top, left, dilation_height, dilation_width;
};
]]})

parts.add('patch', {fields = {'x'}, needs = {{'window'}}, text = [[
/* The elements of a window, (kernel_height, kernel_width, channels); those outside of the image are `zero`. */
static void ${name}(const ${x} *image, const struct q_window *w, int32_t row, int32_t column, ${x} zero, ${x} *patch)
{
	int32_t a, b, i, y, x;

	for (a = 0; a < w->kernel_height; a++)
		for (b = 0; b < w->kernel_width; b++, patch += w->channels) {
			y = row * w->stride_height - w->top + a * w->dilation_height;
			x = column * w->stride_width - w->left + b * w->dilation_width;
			if (y >= 0 && y < w->height && x >= 0 && x < w->width)
				memcpy(patch, image + (y * w->width + x) * w->channels, (size_t)w->channels * sizeof(${x}));
			else
				for (i = 0; i < w->channels; i++)
					patch[i] = zero;
		}
}
]]})

parts.add('conv', {fields = {'x', 'w', 'sum', 'y', 'rule'}, needs = function(f) return {{'patch', {x = f.x}}, {parts.row_of(f), f}} end, text = [[
/* Images (n, height, width, channels) by w (outputs, kernel_height, kernel_width, channels). */
static void ${name}(const ${x} *x, const struct q_window *v, const ${w} *w, int32_t outputs, const ${bias} *bias,
	const ${factor} *factor, const ${result} *c, ${x} zero, ${x} *patch, ${y} *y)
{
	int32_t k = v->kernel_height * v->kernel_width * v->channels, i, a, b;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += outputs) {
				${patch}(x, v, a, b, zero, patch);
				${row}(patch, w, outputs, k, bias, factor, c, y);
			}
}
]]})

parts.add('depthwise', {fields = {'x', 'w', 'sum', 'y', 'rule'}, needs = function(f)
	return {{'window'}, parts.finish(f)}
end, text = [[
/* Depthwise: w (kernel_height, kernel_width, channels). */
static void ${name}(const ${x} *x, const struct q_window *v, const ${w} *w, const ${sum} *bias, const ${factor} *factor,
	const ${result} *c, int32_t zero, ${y} *y)
{
	int32_t n = v->channels, some, i, a, b, p, q, from, j, row, column;
	${sum} sum[32];

	for (i = 0; i < v->n; i++, x += v->height * v->width * n)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += n)
				for (from = 0; from < n; from += some) {
					some = n - from < 32 ? n - from : 32;
					memset(sum, 0, sizeof(sum));
					for (p = 0; p < v->kernel_height; p++)
						for (q = 0; q < v->kernel_width; q++) {
							row = a * v->stride_height - v->top + p * v->dilation_height;
							column = b * v->stride_width - v->left + q * v->dilation_width;
							if (row < 0 || row >= v->height || column < 0 || column >= v->width)
								continue;
							for (j = 0; j < some; j++)
								sum[j] += (${sum})(x[(row * v->width + column) * n + from + j] - zero) *
									$at(w, ((p * v->kernel_width + q) * n + from + j));
						}
					${finish}(sum, 1, some, from, some, bias, factor, c, y, n);
				}
}
]]})

parts.add('grouped', {fields = {'x', 'w', 'sum', 'y', 'rule'}, needs = function(f)
	return {{'window'}, store_of(f)}
end, text = [[
/* One output at one position: the channels of its group in the window times w (kernel_height, kernel_width, channels / groups). */
static ${sum} ${name}_at(const ${x} *x, const struct q_window *v, int32_t per, const ${w} *w, int32_t a, int32_t b, int32_t zero)
{
	int32_t p, q, i, row, column;
	${sum} sum = 0;

	for (p = 0; p < v->kernel_height; p++)
		for (q = 0; q < v->kernel_width; q++) {
			row = a * v->stride_height - v->top + p * v->dilation_height;
			column = b * v->stride_width - v->left + q * v->dilation_width;
			if (row < 0 || row >= v->height || column < 0 || column >= v->width)
				continue;
			for (i = 0; i < per; i++)
				sum += (${sum})(x[(row * v->width + column) * v->channels + i] - zero) *
					$at(w, ((p * v->kernel_width + q) * per + i));
		}
	return sum;
}

/* Images (n, height, width, channels) by w (outputs, kernel_height, kernel_width, channels / groups). */
static void ${name}(const ${x} *x, const struct q_window *v, const ${w} *w, int32_t outputs, int32_t groups, const ${sum} *bias,
	const ${factor} *factor, const ${result} *c, int32_t zero, ${y} *y)
{
	int32_t per = v->channels / groups, k = per * v->kernel_height * v->kernel_width, i, a, b, o;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++)
			for (b = 0; b < v->out_width; b++, y += outputs)
				for (o = 0; o < outputs; o++)
					${store}(${name}_at(x + o / (outputs / groups) * per, v, per, w + o * ${pitch}, a, b, zero), bias, factor, o, c,
						y + o);
}
]]})

---------------------------------------------------------------- sums of codes

parts.add('add', {fields = {'a', 'b', 'y'}, needs = {{'round'}}, text = [[
static void ${name}(const ${a} *a, int32_t za, float ma, const ${b} *b, int32_t zb, float mb, int32_t n, float lo, float hi,
	int32_t zero, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++) {
		float v = (float)((int32_t)a[i] - za) * ma;

		v = v + (float)((int32_t)b[i] - zb) * mb;
		y[i] = (${y})q_round(v, lo, hi, zero);
	}
}
]]})

parts.add('relu', {fields = {'x'}, text = [[
static void ${name}(const ${x} *x, int32_t n, ${x} zero, ${x} *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = x[i] > zero ? x[i] : zero;
}
]]})

return parts
