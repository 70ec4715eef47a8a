-- SPDX-License-Identifier: MIT
-- Products of 8-bit codes in exported C: linear layers and convolutions, a tile of a few rows by all outputs at a time. In each tile the
-- sums come first and become results in a second pass, so that both are loops that compilers turn into vectors.
--
-- Codes are copied as unsigned bytes ("cells"; int8 codes plus 128, which the constants of the sums make up for), because dot-product
-- instructions of x86 take unsigned by signed bytes; targets whose instructions do not have signed cells. For each row of results a
-- convolution copies the columns of its input once, with the kernel's rows of a column side by side: the window of a pixel is then one
-- run of cells, which overlaps with its neighbours', so that a copy is read by kernel_width pixels, and K is as long as it can be.
-- The columns of the next row of results begin one row further in the same memory, so that rows that windows share are copied once.
-- Weights have the order (width, height, channel), therefore.
-- nn/export/targets.lua has the tiles of target=.
local _, internal = ...
local parts = internal.import 'nn/export/parts'
local targets = internal.import 'nn/export/targets'
local tile = {}

local OFFSETS = {uint8_t = 0, int8_t = 128} -- of unsigned cells
local WHOLE = 32 -- bytes: rows of w are multiples of that, if it adds little
local PLAIN = {rows = 8, lanes = 1, word = ''} -- nn/export/targets.lua has the others

parts.add('sizes', {text = ([[
#if defined __SSE2__ || defined __ARM_NEON || defined __ALTIVEC__ || defined __riscv_vector
#define Q_VECTORS
#define Q_ROWS %d /* of a tile */
#define Q_OUTPUTS 32 /* of a tile: their sums, on the stack, are read when they have left the processor's queue of stores */
#else
#define Q_ROWS 1
#define Q_OUTPUTS 16
#endif
]]):format(PLAIN.rows)})

-- A part of two texts: with a target's instructions, else plain C.
local function either(t, fast, plain) return fast and ('#if %s\n%s#else\n%s#endif\n'):format(t.condition, fast, plain) or plain end

-- Codes to cells: FLIP for codes of the other signedness.
local FLIP = [[
static void ${name}(const ${x} *x, int32_t n, uint8_t *y)
{
	int32_t i;

	for (i = 0; i < n; i++)
		y[i] = (uint8_t)(x[i] ^ 128);
}
]]
local SAME = [[
static void ${name}(const ${x} *x, int32_t n, uint8_t *y)
{
	memcpy(y, x, (size_t)n);
}
]]
local FINISH = [[
/* Rows of sums, which become codes, to rows of n codes, from code `from` on: two loops, because bytes are not of the width of sums. */
static void ${name}(int32_t *sum, int32_t rows, int32_t width, int32_t from, int32_t some, const int32_t *bias, const float *factor,
	const struct q_codes *c, ${y} *y, int32_t n)
{
	float lo = c->lo, hi = c->hi;
	int32_t zero = c->zero, least = c->relu ? 0 : INT32_MIN, i, j;

	bias += from;
	factor += from;
	for (i = 0; i < rows; i++)
		for (j = 0; j < some; j++) {
			int32_t s = sum[i * width + j] + bias[j];

			s = s < least ? least : s;
			sum[i * width + j] = q_round((float)s * factor[j], lo, hi, zero);
		}
	if (width == n) { /* one run */
		some *= rows;
		rows = 1;
	}
	for (i = 0; i < rows; i++)
		for (j = 0; j < some; j++)
			y[i * n + from + j] = (${y})sum[i * width + j];
}
]]

-- The plain parts and those of each target.
local function add_parts(t)
	for ctype in pairs(OFFSETS) do
		local text = either(t, t.cells, (ctype == 'int8_t') == not t.signed and FLIP or SAME)
		parts.add('cells' .. ctype:sub(1, 1) .. t.word, {text = text:gsub('${x}', ctype), needs = t.sizes and {{'tile' .. t.word}}})
	end
	if t.finish or t == PLAIN then
		parts.add('finishv' .. t.word, {fields = {'y'}, needs = {{'round'}, {'codes'}, t.sizes and {'tile' .. t.word}}, text = either(t, t.finish, FINISH)})
	end
end

-- Sums of codes under names of their own.
local function add_sums(t)
	parts.add('add' .. t.word, {fields = {'a', 'b', 'y'}, needs = {{'round'}, {'tile' .. t.word}}, text = either(t, t.add, parts.text 'add')})
end

add_parts(PLAIN)
for _, t in ipairs(targets.list) do
	add_parts(t)
	if t.add then add_sums(t) end
end

local function cells(f) return {'cells' .. f.x:sub(1, 1) .. f.target.word} end

parts.add('columns', {fields = {'x'}, needs = function(f) return {{'window'}, cells(f)} end, text = [[
/* Columns from one pixel of a row of results to the next: windows share them unless they are apart or dilated. */
static int32_t ${name}_step(const struct q_window *w)
{
	return w->dilation_width == 1 && w->stride_width < w->kernel_width ? w->stride_width : w->kernel_width;
}

/* Rows from one row of results to the next, where windows share the others; else 0. */
static int32_t ${name}_down(const struct q_window *w)
{
	return w->dilation_height == 1 && w->stride_height < w->kernel_height ? w->stride_height : 0;
}

/* The columns of a row of results, each (kernel_height, channels); codes outside of the image are `zero`. Shared columns are one run.
 * If windows share rows, those of the row of results before are in place, because y is that many rows further in the same memory. */
static void ${name}(const ${x} *image, const struct q_window *w, int32_t a, int32_t zero, uint8_t *y)
{
	int32_t shared = ${name}_step(w) < w->kernel_width, runs = shared ? 1 : w->out_width, down = ${name}_down(w), p, b, q, row, column;
	int32_t length = shared ? (w->out_width - 1) * w->stride_width + w->kernel_width : w->kernel_width;

	for (p = a > 0 && down > 0 ? w->kernel_height - down : 0; p < w->kernel_height; p++) {
		uint8_t *to = y + p * w->channels;

		row = a * w->stride_height - w->top + p * w->dilation_height;
		for (b = 0; b < runs; b++) {
			column = b * w->stride_width - w->left;
			for (q = 0; q < length; q++, column += w->dilation_width, to += w->kernel_height * w->channels)
				if (row >= 0 && row < w->height && column >= 0 && column < w->width)
					${cells}(image + (row * w->width + column) * w->channels, w->channels, to);
				else
					memset(to, zero, (size_t)w->channels);
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

/* Sums (rows, width) of rows of x, `step` apart, with n rows of w. Up to three more numbers are written behind them. */
static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch, int32_t *sum,
	int32_t width)
{
	int32_t i, j;

	for (i = 0; i < rows; i++)
		for (j = 0; j < n; j += 4)
			${name}_four(x + i * step, w + j * pitch, k, pitch, n - j, sum + i * width + j);
}
]]})

parts.add('finish', {fields = {'sum', 'y', 'rule'}, needs = function(f) return {parts.store_of(f)} end, text = [[
/* Rows of sums to rows of n results, from result `from` on. */
static void ${name}(const ${sum} *sum, int32_t rows, int32_t width, int32_t from, int32_t some, const ${sum} *bias,
	const ${factor} *factor, const ${result} *c, ${y} *y, int32_t n)
{
	int32_t i, j;

	for (i = 0; i < rows; i++)
		for (j = 0; j < some; j++)
			${store}(sum[i * width + j], bias, factor, from + j, c, y + i * n + from + j);
}
]]})

-- The part that makes results of sums; only codes by the float rule have loops of vectors.
function parts.finish(f, target)
	if f.y == 'float' or f.rule or f.sum ~= 'int32_t' then return {'finish', {sum = f.sum, y = f.y, rule = f.rule}} end
	local bytes = f.y == 'int8_t' or f.y == 'uint8_t'
	return {'finishv' .. (bytes and target and target.finish and target.word or ''), {y = f.y}}
end

parts.add('product', {fields = {'y', 'rule', 'whole'}, needs = function(f)
	local tiles = f.target.sizes and {'tile' .. f.target.word} or {'tile', f}
	return {tiles, parts.finish({sum = 'int32_t', y = f.y, rule = f.rule}, f.target)}
end, text = [[
/* Results (rows, n) of rows of x, `step` apart, with w. */
static void ${name}(const uint8_t *x, int32_t step, int32_t rows, const int8_t *w, int32_t n, int32_t k, int32_t pitch,
	const int32_t *bias, const ${factor} *factor, const ${result} *c, ${y} *y)
{
	${aligned}int32_t sum[Q_ROWS * Q_OUTPUTS + 3];
	int32_t j, some, width;

	for (j = 0; j < n; j += some) {
		some = n - j < Q_OUTPUTS ? n - j : Q_OUTPUTS;
		width = ${width};
		${tile}(x, step, rows, w + j * pitch, some, k, pitch, sum, width);
		${finish}(sum, rows, width, j, some, bias, factor, c, y, n);
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
parts.add('conv8', {fields = {'x', 'y', 'rule', 'whole'}, needs = function(f) return {{'columns', f}, {'product', f}} end, text = [[
/* Images (n, height, width, channels) by w (outputs, kernel_width, kernel_height, channels), whose rows are `pitch` bytes. */
static void ${name}(const ${x} *x, const struct q_window *v, const int8_t *w, int32_t outputs, int32_t pitch, const int32_t *bias,
	const ${factor} *factor, const ${result} *c, int32_t zero, uint8_t *cells, ${y} *y)
{
	int32_t column = v->kernel_height * v->channels, k = column * v->kernel_width, step = ${columns}_step(v) * column, i, a, b, rows;
	int32_t down = ${columns}_down(v) * v->channels;

	for (i = 0; i < v->n; i++, x += v->height * v->width * v->channels) {
		uint8_t *from = cells;

		for (a = 0; a < v->out_height; a++, from += down) {
			${columns}(x, v, a, zero, from);
			for (b = 0; b < v->out_width; b += rows, y += rows * outputs) {
				rows = v->out_width - b < Q_ROWS ? v->out_width - b : Q_ROWS;
				${product}(from + b * step, step, rows, w, outputs, k, pitch, bias, factor, c, y);
			}
		}
	}
}
]]})

-- What is added to a code of this C type to make a cell; nil: other codes.
function tile.offset(e, ctype) return OFFSETS[ctype] and OFFSETS[ctype] - (e.target and e.target.signed and 128 or 0) end

-- Rows of k numbers as panels: the list, the bytes of an output.
local function panels(values, k, lanes)
	local list, n, groups = {}, #values // k, (k + 3) // 4
	for first = 0, n - 1, lanes do
		for i = 0, groups - 1 do
			for j = first, first + lanes - 1 do
				for l = 4 * i, 4 * i + 3 do list[#list + 1] = j < n and l < k and values[j * k + l + 1] or 0 end
			end
		end
	end
	return list, 4 * groups
end

-- Rows of k numbers in the order of the target e.target. Plain ones have zeros behind them where that adds little.
function tile.pack(e, values, k)
	if e.target then return panels(values, k, e.target.lanes) end
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

-- Scratch memory for rows of cells, `step` apart and read to their pitch; n: cells of the first rows, of which tiles may read more.
local function memory(e, n, step, rows, p)
	local t = e.target or PLAIN
	return e:scratch(n + (t.over and rows > 1 and (t.rows - 1) * step or 0) + p.pitch - p.per, 'uint8_t')
end

local function fields(e, f, p, g)
	local t = e.target or PLAIN
	return {x = f.ctype, y = g.ctype, rule = p.rule, whole = t == PLAIN and p.pitch % WHOLE == 0 and 'whole' or nil, target = t,
		aligned = t == PLAIN and '' or 'Q_ALIGNED ', width = t == PLAIN and 'some' or ('(some + %d) / %d * %d'):format(t.lanes - 1, t.lanes, t.lanes)}
end

-- The part that adds codes of these types by the float rule.
function tile.sum(e, types)
	local bytes = true
	for _, ctype in pairs(types) do bytes = bytes and OFFSETS[ctype] ~= nil end
	return e:part('add' .. (bytes and e.target and e.target.add and e.target.word or ''), types)
end

-- y (m, outputs) of x (m, k): properties f and g, weights p (nn/export/product.lua).
function tile.linear(e, x, f, m, p, y, g)
	local rows = math.min(m, (e.target or PLAIN).rows)
	e:call('%s(%s, %d, %s, %d, %d, %d, %s, %s, %s, %s, %s);', e:part('linear8', fields(e, f, p, g)), x, m, p.w, p.outputs, p.per, p.pitch, p.bias,
		p.factor, p.codes, memory(e, rows * p.per, p.per, m, p), y)
end

-- Images y of images x by the window v (a struct q_window), which is {kernel, stride, dilation} in width and moves `down` rows that
-- others share (0: none); zero: the cell of padding.
function tile.conv(e, x, f, v, shape, zero, p, y, g)
	local step = shape.dilation == 1 and shape.stride < shape.kernel and shape.stride or shape.kernel
	local columns, column = (g.shape[4] - 1) * step + shape.kernel, p.per // shape.kernel
	local count = columns * column + (g.shape[3] - 1) * shape.down * f.shape[2]
	e:call('%s(%s, &%s, %s, %d, %d, %s, %s, %s, %s, %s, %s);', e:part('conv8', fields(e, f, p, g)), x, v, p.w, p.outputs, p.pitch, p.bias, p.factor,
		p.codes, zero, memory(e, count, step * column, g.shape[4], p), y)
end

return tile
