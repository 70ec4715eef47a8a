-- SPDX-License-Identifier: MIT
-- Products of 8-bit codes in exported C: linear layers and convolutions, a tile of a few rows by all outputs at a time. In each tile the
-- sums come first and become results in a second pass, so that both are loops that compilers turn into vectors.
--
-- Codes are copied as unsigned bytes ("cells"; int8 codes plus 128, which the constants of the sums make up for), because dot-product
-- instructions take unsigned by signed bytes. For each row of results a convolution copies the columns of its input once, with the
-- kernel's rows of a column side by side: the window of a pixel is then one run of cells, which overlaps with its neighbours', so that
-- a copy is read by kernel_width pixels, and K is as long as it can be. Weights have the order (width, height, channel), therefore.
local _, internal = ...
local parts = internal.import 'nn/export/parts'
local tile = {}

local CELLS = {uint8_t = 0, int8_t = 128}
local WHOLE = 32 -- bytes: rows of w are multiples of that, if it adds little

local ROWS = 8 -- of a tile, where there are vectors

parts.add('sizes', {text = ([[
#if defined __SSE2__ || defined __ARM_NEON || defined __ALTIVEC__ || defined __riscv_vector
#define Q_VECTORS
#define Q_ROWS %d /* of a tile */
#define Q_OUTPUTS 32 /* of a tile: their sums, on the stack, are read when they have left the processor's queue of stores */
#else
#define Q_ROWS 1
#define Q_OUTPUTS 16
#endif
]]):format(ROWS)})

parts.add('cells', {fields = {'x'}, text = [[
static void ${name}(const ${x} *x, int32_t n, uint8_t *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (uint8_t)(x[i] + 128);
}
]]})
parts.add('cellsu', {text = [[
static void ${name}(const uint8_t *x, int32_t n, uint8_t *y)
{
	memcpy(y, x, (size_t)n);
}
]]})

local function cells(f) return f.x == 'uint8_t' and {'cellsu'} or {'cells', {x = f.x}} end

parts.add('columns', {fields = {'x'}, needs = function(f) return {{'window'}, cells(f)} end, text = [[
/* Columns from one pixel of a row of results to the next: windows share them unless they are apart or dilated. */
static int32_t ${name}_step(const struct q_window *w)
{
	return w->dilation_width == 1 && w->stride_width < w->kernel_width ? w->stride_width : w->kernel_width;
}

/* The columns of a row of results, each (kernel_height, channels); codes outside of the image are `zero`. */
static void ${name}(const ${x} *image, const struct q_window *w, int32_t a, int32_t zero, uint8_t *y)
{
	int32_t step = ${name}_step(w), b, p, q, row, column;

	for (b = 0; b < w->out_width; b++)
		for (q = 0; q < (b + 1 < w->out_width ? step : w->kernel_width); q++) {
			column = b * w->stride_width - w->left + q * w->dilation_width;
			for (p = 0; p < w->kernel_height; p++, y += w->channels) {
				row = a * w->stride_height - w->top + p * w->dilation_height;
				if (row >= 0 && row < w->height && column >= 0 && column < w->width)
					${cells}(image + (row * w->width + column) * w->channels, w->channels, y);
				else
					memset(y, zero, (size_t)w->channels);
			}
		}
}
]]})

parts.add('countk', {text = [[
/* Of a row of w, as many codes as it has. */
static int32_t q_countk(int32_t k, int32_t pitch)
{
	(void)pitch;
	return k;
}
]]})
parts.add('countwhole', {text = (([[
/* Of a row of w, what a sum runs over: where there are vectors, the zeros behind it, too, because a multiple of @ leaves no rest. */
static int32_t q_countwhole(int32_t k, int32_t pitch)
{
#ifdef Q_VECTORS
	(void)k;
	return pitch & -@;
#else
	(void)pitch;
	return k;
#endif
}
]]):gsub('@', tostring(WHOLE)))})
parts.add('tile', {fields = {'whole'}, needs = function(f) return {{'sizes'}, {f.whole and 'countwhole' or 'countk'}} end, text = [[
/* Sums of a row of x with four rows of w, or fewer, in a loop that becomes dot products. On ARM a function of its own,
 * because inlined its nine variables do not stay in the few registers. */
#if defined __GNUC__ && defined __arm__
__attribute__((noinline))
#endif
static void ${name}_four(const uint8_t *x, const int8_t *w, int32_t k, int32_t pitch, int32_t some, int32_t *sum)
{
	const int8_t *w1 = w + (some > 1 ? pitch : 0), *w2 = w1 + (some > 2 ? pitch : 0), *w3 = w2 + (some > 3 ? pitch : 0);
	int32_t count = ${count}(k, pitch), a = 0, b = 0, c = 0, d = 0, i;

	for (i = 0; i < count; i++) {
		a += x[i] * w[i];
		b += x[i] * w1[i];
		c += x[i] * w2[i];
		d += x[i] * w3[i];
	}
	sum[0] = a;
	sum[1] = b;
	sum[2] = c;
	sum[3] = d;
}

/* Sums (rows, n) of rows of x, `step` apart, with rows of w. Up to three more numbers are written behind them. */
static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch, int32_t *sum)
{
	int32_t i, j;

	for (i = 0; i < rows; i++)
		for (j = 0; j < n; j += 4)
			${name}_four(x + i * step, w + j * pitch, k, pitch, n - j, sum + i * n + j);
}
]]})

parts.add('finish', {fields = {'sum', 'y', 'rule'}, needs = function(f) return {parts.store_of(f)} end, text = [[
/* Rows of sums to rows of n results, from result `from` on. */
static void ${name}(const ${sum} *sum, int32_t rows, int32_t from, int32_t some, const ${sum} *bias, const ${factor} *factor,
	const ${result} *c, ${y} *y, int32_t n)
{
	int32_t i, j;

	for (i = 0; i < rows; i++)
		for (j = 0; j < some; j++)
			${store}(sum[i * some + j], bias, factor, from + j, c, y + i * n + from + j);
}
]]})
-- To codes by the float rule; other types have no loops of vectors.
parts.add('finishv', {fields = {'y'}, needs = {{'round'}, {'codes'}}, text = [[
/* Rows of sums, which become codes, to rows of n codes, from code `from` on: two loops, because bytes are not of the width of sums. */
static void ${name}(int32_t *sum, int32_t rows, int32_t from, int32_t some, const int32_t *bias, const float *factor,
	const struct q_codes *c, ${y} *y, int32_t n)
{
	float lo = c->lo, hi = c->hi;
	int32_t zero = c->zero, least = c->relu ? 0 : INT32_MIN, i, j;

	bias += from;
	factor += from;
	for (i = 0; i < rows; i++)
		for (j = 0; j < some; j++) {
			int32_t s = sum[i * some + j] + bias[j];

			s = s < least ? least : s;
			sum[i * some + j] = q_round((float)s * factor[j], lo, hi, zero);
		}
	if (some == n) { /* one run */
		some *= rows;
		rows = 1;
	}
	for (i = 0; i < rows; i++)
		for (j = 0; j < some; j++)
			y[i * n + from + j] = (${y})sum[i * some + j];
}
]]})

-- The part that makes results of sums.
function parts.finish(f)
	if f.y ~= 'float' and not f.rule and f.sum == 'int32_t' then return {'finishv', {y = f.y}} end
	return {'finish', {sum = f.sum, y = f.y, rule = f.rule}}
end

parts.add('product', {fields = {'y', 'rule', 'whole'}, needs = function(f)
	return {{'tile', f}, parts.finish {sum = 'int32_t', y = f.y, rule = f.rule}}
end, text = [[
/* Results (rows, n) of rows of x, `step` apart, with w. */
static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch,
	const int32_t *bias, const ${factor} *factor, const ${result} *c, ${y} *y)
{
	int32_t sum[Q_ROWS * Q_OUTPUTS + 3], j, some;

	for (j = 0; j < n; j += some) {
		some = n - j < Q_OUTPUTS ? n - j : Q_OUTPUTS;
		${tile}(x, step, rows, w + j * pitch, some, k, pitch, sum);
		${finish}(sum, rows, j, some, bias, factor, c, y, n);
	}
}
]]})
parts.add('linear8', {fields = {'x', 'y', 'rule', 'whole'}, needs = function(f) return {cells(f), {'product', f}} end, text = [[
/* x (m, k) by w (n, k), whose rows are `pitch` bytes. */
static void ${name}(const ${x} *x, int32_t m, const int8_t *w, int32_t n, int32_t k, int32_t pitch, const int32_t *bias,
	const ${factor} *factor, const ${result} *c, uint8_t *cells, ${y} *y)
{
	int32_t i, rows;

	for (i = 0; i < m; i += rows) {
		rows = m - i < Q_ROWS ? m - i : Q_ROWS;
		${cells}(x + i * k, rows * k, cells);
		${product}(cells, k, rows, w, n, k, pitch, bias, factor, c, y + i * n);
	}
}
]]})
parts.add('conv8', {fields = {'x', 'y', 'rule', 'whole'}, needs = function(f) return {{'columns', {x = f.x}}, {'product', f}} end, text = [[
/* Images (n, height, width, channels) by w (outputs, kernel_width, kernel_height, channels), whose rows are `pitch` bytes. */
static void ${name}(const ${x} *x, const struct q_window *v, const int8_t *w, int32_t outputs, int32_t pitch, const int32_t *bias,
	const ${factor} *factor, const ${result} *c, int32_t zero, uint8_t *cells, ${y} *y)
{
	int32_t column = v->kernel_height * v->channels, k = column * v->kernel_width, step = ${columns}_step(v) * column, i, a, b, rows;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels)
		for (a = 0; a < v->out_height; a++) {
			${columns}(x, v, a, zero, cells);
			for (b = 0; b < v->out_width; b += rows, y += rows * outputs) {
				rows = v->out_width - b < Q_ROWS ? v->out_width - b : Q_ROWS;
				${product}(cells + b * step, step, rows, w, outputs, k, pitch, bias, factor, c, y);
			}
		}
}
]]})

-- What is added to a code of this C type to make a cell; nil: other codes.
function tile.offset(ctype) return CELLS[ctype] end

-- Rows of k numbers, with zeros behind them where that adds little: the list, its pitch.
function tile.pack(values, k)
	local pitch = (k + WHOLE - 1) // WHOLE * WHOLE
	if pitch - k > math.max(k // 4, WHOLE // 2) or k < WHOLE // 2 then return values, k end
	local list, at = {}, 0
	for row = 0, #values // k - 1 do
		table.move(values, row * k + 1, row * k + k, at + 1, list)
		for i = at + k + 1, at + pitch do list[i] = 0 end
		at = at + pitch
	end
	return list, pitch
end

-- Scratch memory for n cells, rows of which are read to their pitch.
local function memory(e, n, p) return e:scratch(n + p.pitch - p.per, 'uint8_t') end

local function fields(f, p, g) return {x = f.ctype, y = g.ctype, rule = p.rule, whole = p.pitch % WHOLE == 0 and 'whole' or nil} end

-- y (m, outputs) of x (m, k): properties f and g, weights p (nn/export/product.lua).
function tile.linear(e, x, f, m, p, y, g)
	e:call('%s(%s, %d, %s, %d, %d, %d, %s, %s, %s, %s, %s);', e:part('linear8', fields(f, p, g)), x, m, p.w, p.outputs, p.per, p.pitch, p.bias,
		p.factor, p.codes, memory(e, math.min(m, ROWS) * p.per, p), y)
end

-- Images y of images x by the window v (a struct q_window), which is {kernel, stride, dilation} in width; zero: the cell of padding.
function tile.conv(e, x, f, v, shape, zero, p, y, g)
	local step = shape.dilation == 1 and shape.stride < shape.kernel and shape.stride or shape.kernel
	local columns, column = (g.shape[4] - 1) * step + shape.kernel, p.per // shape.kernel
	e:call('%s(%s, &%s, %s, %d, %d, %s, %s, %s, %s, %s, %s);', e:part('conv8', fields(f, p, g)), x, v, p.w, p.outputs, p.pitch, p.bias, p.factor,
		p.codes, zero, memory(e, columns * column, p), y)
end

return tile
