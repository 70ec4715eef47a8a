/* SPDX-License-Identifier: MIT
 * Products: every entry of kernels.def that this CPU can run, against plain loops with 64-bit sums:
 * small and odd sizes, strided operands, extreme codes, long sums. One line per kernel.
 */
#include <math.h>

#include "tests/tools/kernels.h"

/* ---- gemm_i8 ---- */

enum fill { RANDOM, HIGH, LOW, MIXED, FILLS };

static uint8_t code_8(enum fill fill, uint8_t lo, uint8_t hi)
{
	switch (fill) {
	case HIGH: return hi;
	case LOW: return lo;
	case MIXED: return draw() & 1 ? hi : lo;
	default: return (uint8_t)draw();
	}
}

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* With bound and numbers of rows, or with neither. */
static struct ql_gemm_i8_scaled scaled(bool with, const int32_t *column, const uint32_t *row, const float *row_scale,
	const float *column_scale, const float *bias, float *y, int64_t ld)
{
	return (struct ql_gemm_i8_scaled){.column = column,
		.row = with ? row : NULL,
		.row_scale = row_scale,
		.column_scale = column_scale,
		.bias = bias,
		.row_step = with,
		.least = with ? 0 : -INFINITY,
		.y = y,
		.ld = ld};
}

/* float32 instead of sums, of `rows` rows more than two tiles: without bias, bound and numbers of rows, or with all. */
static void check_scaled(const struct ql_gemm_i8 *k, int rows, int64_t k4, int64_t gap, const int8_t *b, bool with)
{
	int64_t ld = k->nr + 5, lda = 4 * k4 + gap, all = 2 * k->mr + rows;
	size_t used = (size_t)(ld * (all - 1) + k->nr) * sizeof(float);
	float *y = take(used + 64), column_scale[64], bias[64], row_scale[3 * QL_GEMM_TILE_ROWS];
	uint8_t *a = take((size_t)(lda * all));
	int32_t column[64];
	uint32_t row[3 * QL_GEMM_TILE_ROWS];
	struct ql_gemm_i8_scaled to = scaled(with, column, row, row_scale, column_scale, bias, y, ld);
	bool good = true;

	for (int64_t i = 0; i < lda * all; i++)
		a[i] = (uint8_t)draw();
	for (int i = 0; i < 64; i++) {
		column[i] = i % 3 ? (int32_t)draw() : i % 2;
		column_scale[i] = i == 7 ? INFINITY : (float)draw() / 0x1p31f - 0.5f;
		bias[i] = with ? (float)draw() / 0x1p27f - 8 : -0.0f;
	}
	for (int64_t i = 0; i < all; i++) {
		row[i] = i % 2 ? draw() : 0;
		row_scale[i] = (float)draw() / 0x1p31f + 0.01f;
	}
	k->scaled(all, k4, a, lda, b, &to);
	for (int64_t i = 0; i < all; i++)
		for (int j = 0; j < k->nr; j++) {
			uint32_t sum = 0u - (uint32_t)column[j] - (with ? row[i] : 0);
			float s = row_scale[i * with] * column_scale[j], v;

			for (int64_t l = 0; l < 4 * k4; l++)
				sum += (uint32_t)(a[i * lda + l] * b[(l / 4 * k->nr + j) * 4 + l % 4]);
			v = (float)(int32_t)sum * s;
			v = v + bias[j];
			v = v < to.least ? to.least : v;
			good &= bits_of(v) == bits_of(y[i * ld + j]) || (isnan(v) && isnan(y[i * ld + j]));
		}
	CHECK(good, "%s: %d rows as float32, k %lld", k->name, (int)all, (long long)(4 * k4));
	CHECK(guarded(y, used, used + 64), "%s: wrote behind its rows", k->name);
	free(a);
	free(y);
}

static void check_i8(
	const struct ql_gemm_i8 *k, int rows, int columns, int64_t k4, int64_t gap, enum fill fa, enum fill fb)
{
	int64_t lda = 4 * k4 + gap;
	uint8_t *a = take((size_t)(lda * rows));
	int8_t *b = take((size_t)(k4 * 4 * k->nr));
	size_t used = (size_t)(k->mr * k->nr) * sizeof(int32_t);
	int32_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = code_8(fa, 0, 255);
	for (int64_t i = 0; i < k4 * 4 * k->nr; i++)
		b[i] = (int8_t)code_8(fb, 128, 127);
	for (int sign = 0; sign <= (k->tile_s8 ? 128 : 0); sign += 128) {
		(sign ? k->tile_s8 : k->tile)(rows, columns, k4, a, lda, b, c);
		for (int i = 0; i < rows; i++)
			for (int j = 0; j < columns; j++) {
				int64_t sum = 0;

				for (int64_t l = 0; l < 4 * k4; l++)
					sum += (int64_t)((a[i * lda + l] ^ sign) - sign) *
					       b[(l / 4 * k->nr + j) * 4 + l % 4];
				good &= (uint32_t)c[i * k->nr + j] == (uint32_t)sum;
			}
		CHECK(good, "%s: rows %d, columns %d, k %lld, fill %d x %d%s", k->name, rows, columns,
			(long long)(4 * k4), fa, fb, sign ? ", signed" : "");
		CHECK(guarded(c, used, used + 64), "%s: wrote behind its tile", k->name);
	}
	if (k->scaled && columns == k->nr)
		check_scaled(k, rows % k->mr, k4, gap, b, (k4 + (int)fa) % 2);
	free(a);
	free(b);
	free(c);
}

static void check_dots(const struct ql_gemm_i8 *k, int rows, int64_t steps, int64_t gap, enum fill fa, enum fill fb)
{
	int64_t lda = steps + gap, ldb = steps + 3 * gap, ldc = QL_DOTS_LINES + gap % 5;
	uint8_t *a = take((size_t)(lda * (rows - 1) + steps));
	int8_t *b = take((size_t)(ldb * (QL_DOTS_LINES - 1) + steps));
	size_t used = (size_t)(ldc * (rows - 1) + QL_DOTS_LINES) * sizeof(int32_t);
	int32_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * (rows - 1) + steps; i++)
		a[i] = code_8(fa, 0, 255);
	for (int64_t i = 0; i < ldb * (QL_DOTS_LINES - 1) + steps; i++)
		b[i] = (int8_t)code_8(fb, 128, 127);
	k->dots(rows, steps, a, lda, b, ldb, c, ldc);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < QL_DOTS_LINES; j++) {
			int64_t sum = 0;

			for (int64_t l = 0; l < steps; l++)
				sum += (int64_t)a[i * lda + l] * b[j * ldb + l];
			good &= (uint32_t)c[i * ldc + j] == (uint32_t)sum;
		}
	CHECK(good, "%s: dots of %d rows, %lld bytes, fill %d x %d", k->name, rows, (long long)steps, fa, fb);
	CHECK(guarded(c, used, used + 64), "%s: dots wrote behind its sums", k->name);
	free(a);
	free(b);
	free(c);
}

/* Blocks of any number of rows and columns as float32. */
static void check_block(const struct ql_gemm_i8 *k, int64_t rows, int64_t columns, int64_t depth, int64_t gap,
	bool is_signed, bool with)
{
	int64_t k4 = (depth + 3) / 4, panels = (columns + k->nr - 1) / k->nr, lda = depth + gap, ld = columns + gap;
	int64_t form_rows = (rows + k->form_rows - 1) / k->form_rows * k->form_rows;
	int64_t form_k = (depth + k->form_k - 1) / k->form_k * k->form_k;
	size_t used = (size_t)(ld * (rows - 1) + columns) * sizeof(float), formed = (size_t)(form_rows * form_k);
	float *y = take(used + 64), *row_scale = take((size_t)rows * sizeof(float)),
	      *column_scale = take((size_t)columns * sizeof(float)), *bias = take((size_t)columns * sizeof(float));
	int32_t *column = take((size_t)columns * sizeof(int32_t));
	uint32_t *row = take((size_t)rows * sizeof(uint32_t));
	uint8_t *a = take((size_t)(lda * (rows - 1) + depth)), *form = take(formed + 64);
	int8_t *b = take((size_t)(panels * k4 * 4 * k->nr));
	void *memory = aligned_alloc(64, (size_t)panels * QL_GEMM_I8_SUMS);
	struct ql_gemm_i8_block block = {.rows = rows,
		.columns = columns,
		.k4 = k4,
		.is_signed = is_signed,
		.a = form,
		.panels = b,
		.memory = memory};
	struct ql_gemm_i8_scaled to = scaled(with, column, row, row_scale, column_scale, bias, y, ld);
	int sign = is_signed ? 128 : 0;
	bool good = true;

	for (int64_t i = 0; i < lda * (rows - 1) + depth; i++)
		a[i] = (uint8_t)draw();
	for (int64_t i = 0; i < panels * k4 * 4 * k->nr; i++)
		b[i] = (int8_t)draw();
	for (int64_t j = 0; j < columns; j++) {
		column[j] = j % 3 ? (int32_t)draw() : (int32_t)(j % 2);
		column_scale[j] = j == 7 ? INFINITY : (float)draw() / 0x1p31f - 0.5f;
		bias[j] = with ? (float)draw() / 0x1p27f - 8 : -0.0f;
	}
	for (int64_t i = 0; i < rows; i++) {
		row[i] = i % 2 ? draw() : 0;
		row_scale[i] = (float)draw() / 0x1p31f + 0.01f;
	}
	k->form(rows, depth, a, lda, form);
	CHECK(guarded(form, formed, formed + 64), "%s: wrote behind the form of %lld rows", k->name, (long long)rows);
	k->scaled_block(&block, &to);
	for (int64_t i = 0; i < rows; i++)
		for (int64_t j = 0; j < columns; j++) {
			const int8_t *panel = b + j / k->nr * k4 * 4 * k->nr + j % k->nr * 4;
			uint32_t sum = 0u - (uint32_t)column[j] - (with ? row[i] : 0);
			float v;

			for (int64_t l = 0; l < depth; l++)
				sum += (uint32_t)(((a[i * lda + l] ^ sign) - sign) * panel[l / 4 * 4 * k->nr + l % 4]);
			v = (float)(int32_t)sum * (row_scale[i * with] * column_scale[j]);
			v = v + bias[j];
			v = v < to.least ? to.least : v;
			good &= bits_of(v) == bits_of(y[i * ld + j]) || (isnan(v) && isnan(y[i * ld + j]));
		}
	CHECK(good, "%s: block of %lld rows, %lld columns, k %lld%s", k->name, (long long)rows, (long long)columns,
		(long long)depth, is_signed ? ", signed" : "");
	CHECK(guarded(y, used, used + 64), "%s: wrote behind its block", k->name);
	free(memory);
	free(b);
	free(form);
	free(a);
	free(row);
	free(column);
	free(bias);
	free(column_scale);
	free(row_scale);
	free(y);
}

static void test_blocks(const struct ql_gemm_i8 *k)
{
	static const int64_t rows[] = {1, 15, 16, 17, 31, 32, 33, 47, 49, 64, 81},
			     columns[] = {1, 16, 31, 32, 33, 63, 64, 65, 96, 97, 130, 192},
			     depth[] = {1, 3, 4, 60, 63, 64, 65, 128, 200, 321, 1023, 1024, 1025, 1088, 2100};

	for (size_t i = 0; i < 11; i++)
		for (size_t j = 0; j < 12; j++)
			for (size_t l = (i + j) % 3; l < 15; l += 3)
				if (!left_out((int64_t)(i + 2 * j + l / 3), 4))
					check_block(k, rows[i], columns[j], depth[l], (int64_t)(i + l) % 3 * 5,
						(i + j + l / 3) % 2, (j + l / 3) % 2);
}

static void test_dots(const struct ql_gemm_i8 *k)
{
	CHECK(k->dot_rows >= 1, "%s: dots of %d rows", k->name, k->dot_rows);
	for (int rows = 1; rows <= k->dot_rows; rows++)
		for (int64_t steps = QL_DOTS_STEP; steps <= 5 * QL_DOTS_STEP; steps += QL_DOTS_STEP)
			check_dots(k, rows, steps, steps % 3 * 7, RANDOM, RANDOM);
	for (int fa = 0; fa < FILLS; fa++)
		for (int fb = 0; fb < FILLS; fb++)
			check_dots(k, k->dot_rows, 1024, 0, (enum fill)fa, (enum fill)fb);
	check_dots(k, k->dot_rows, 139264, 0, HIGH, LOW); /* wraps */
}

static void test_gemm_i8(const void *kernel)
{
	static const int64_t depth[] = {0, 1, 2, 3, 4, 5, 16, 17, 33, 64};
	const struct ql_gemm_i8 *k = kernel;

	CHECK(k->nr % 16 == 0 && k->mr * k->nr <= QL_GEMM_TILE && k->rate > 0, "%s: tile %d x %d", k->name, k->mr,
		k->nr);
	for (int rows = 1; rows <= k->mr; rows++)
		for (int columns = 1; columns <= k->nr; columns++)
			if (!left_out(rows + columns, 2))
				check_i8(k, rows, columns, depth[(rows * k->nr + columns) % 10], columns % 3 * 7,
					RANDOM, RANDOM);
	for (size_t d = 0; d < sizeof(depth) / sizeof(depth[0]); d++)
		check_i8(k, k->mr, k->nr, depth[d], 5, RANDOM, RANDOM);
	for (int fa = 0; fa < FILLS; fa++)
		for (int fb = 0; fb < FILLS; fb++)
			check_i8(k, k->mr, k->nr, 257, 0, (enum fill)fa, (enum fill)fb);
	/* k = 70 000 stays within 32 bits only without the largest codes; k = 139 264 wraps, as it should */
	check_i8(k, k->mr, 17 < k->nr ? 17 : k->nr, 70000 / 4, 0, HIGH, HIGH);
	check_i8(k, 1, 3, 139264 / 4, 0, HIGH, LOW);
	check_i8(k, k->mr, 3, 139264 / 4, 0, MIXED, MIXED);
	test_dots(k);
	if (k->scaled_block)
		test_blocks(k);
}

/* ---- pack_i8 ---- */

static void check_pack(const struct ql_pack_i8 *k, int64_t k4, int64_t columns, int nr, int64_t gap, int flip)
{
	int64_t row = columns + gap, panels = (columns + nr - 1) / nr, pitch = k4 * 4 * nr + 64;
	uint8_t *b = take((size_t)(4 * k4 * row)), *to = take((size_t)(panels * pitch));
	bool good = true;

	for (int64_t i = 0; i < 4 * k4 * row; i++)
		b[i] = (uint8_t)draw();
	k->rows(k4, columns, nr, b, row, (uint8_t)flip, to, pitch);
	for (int64_t l = 0; l < 4 * k4; l++)
		for (int64_t c = 0; c < columns; c++) {
			uint8_t *at = to + c / nr * pitch + (l / 4 * nr + c % nr) * 4 + l % 4;

			good &= *at == (b[l * row + c] ^ flip);
			*at = GUARD;
		}
	CHECK(good, "%s: %lld x %lld, panels of %d", k->name, (long long)(4 * k4), (long long)columns, nr);
	CHECK(guarded(to, 0, (size_t)(panels * pitch)), "%s: wrote beside its columns", k->name);
	free(b);
	free(to);
}

static void test_pack_i8(const void *kernel)
{
	const struct ql_pack_i8 *k = kernel;

	for (int64_t columns = 0; columns <= 272; columns += 16)
		for (int64_t k4 = 0; k4 < 6; k4++) {
			check_pack(k, k4, columns, 64, columns % 7, k4 & 1 ? 128 : 0);
			check_pack(k, k4, columns, 16, k4, k4 & 1 ? 0 : 128);
		}
	for (int64_t n = 0; n < 200; n++) {
		uint8_t *from = take((size_t)n + 1), *to = take((size_t)n + 64), flip = (uint8_t)(n & 1 ? 128 : 0);
		bool good = true;

		for (int64_t i = 0; i < n + 1; i++)
			from[i] = (uint8_t)draw();
		k->copy(n, from + 1, flip, to + n % 5);
		for (int64_t i = 0; i < n; i++)
			good &= to[n % 5 + i] == (from[1 + i] ^ flip);
		CHECK(good, "%s: copy of %lld", k->name, (long long)n);
		CHECK(guarded(to, (size_t)(n % 5 + n), (size_t)n + 64), "%s: copied too much", k->name);
		free(from);
		free(to);
	}
}

/* ---- gemm_i16 ---- */

static int16_t code_16(enum fill fill)
{
	switch (fill) {
	case HIGH: return INT16_MAX;
	case LOW: return INT16_MIN;
	case MIXED: return draw() & 1 ? INT16_MAX : INT16_MIN;
	default: return (int16_t)draw();
	}
}

static void check_i16(
	const struct ql_gemm_i16 *k, int rows, int columns, int64_t k4, int64_t gap, enum fill fa, enum fill fb)
{
	int64_t lda = 4 * k4 + gap;
	int16_t *a = take((size_t)(lda * rows) * 2), *b = take((size_t)(k4 * 4 * k->nr) * 2);
	size_t used = (size_t)(k->mr * k->nr) * sizeof(int64_t);
	int64_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = code_16(fa);
	for (int64_t i = 0; i < k4 * 4 * k->nr; i++)
		b[i] = code_16(fb);
	k->tile(rows, columns, k4, a, lda, b, c);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			int64_t sum = 0;

			for (int64_t l = 0; l < 4 * k4; l++)
				sum += (int64_t)a[i * lda + l] * b[(l / 4 * k->nr + j) * 4 + l % 4];
			good &= c[i * k->nr + j] == sum;
		}
	CHECK(good, "%s: rows %d, columns %d, k %lld, fill %d x %d", k->name, rows, columns, (long long)(4 * k4), fa,
		fb);
	CHECK(guarded(c, used, used + 64), "%s: wrote behind its tile", k->name);
	free(a);
	free(b);
	free(c);
}

static void test_gemm_i16(const void *kernel)
{
	const struct ql_gemm_i16 *k = kernel;

	CHECK(k->mr * k->nr <= QL_GEMM_TILE && k->rate > 0, "%s: tile %d x %d", k->name, k->mr, k->nr);
	for (int rows = 1; rows <= k->mr; rows++)
		for (int columns = 1; columns <= k->nr; columns++)
			for (int64_t k4 = 0; k4 < 6; k4++)
				check_i16(k, rows, columns, k4, columns % 3, RANDOM, RANDOM);
	for (int fa = 0; fa < FILLS; fa++)
		for (int fb = 0; fb < FILLS; fb++)
			check_i16(k, k->mr, k->nr, 257, 0, (enum fill)fa, (enum fill)fb);
	check_i16(k, k->mr, 3, 70000 / 4, 0, LOW, LOW);
	check_i16(k, k->mr, 3, 139264 / 4, 0, LOW, MIXED);
}

/* ---- taps_i16 ---- */

/* Codes less zero points, or anything that fits. */
static int16_t tap_16(enum fill fill)
{
	return fill == MIXED    ? (int16_t)(draw() & 1 ? 255 : -255)
	       : fill == RANDOM ? (int16_t)(draw() % 511 - 255)
				: code_16(fill);
}

static void check_taps(
	const struct ql_taps_i16 *k, int64_t n, int step, int outputs, int64_t pairs, enum fill fx, enum fill fw)
{
	int64_t reach = 3 * pairs + step * n + QL_TAPS_SLACK + 2;
	int64_t pitch = n + QL_TAPS_SLACK + 16;
	int16_t *x = take((size_t)reach * sizeof(*x)), *w = take((size_t)(2 * outputs * pairs) * sizeof(*w));
	int64_t *at = take((size_t)pairs * sizeof(*at));
	int32_t *to = take((size_t)(outputs * pitch) * sizeof(*to));
	bool good = true;

	for (int64_t i = 0; i < reach; i++)
		x[i] = tap_16(fx);
	for (int64_t l = 0; l < 2 * outputs * pairs; l++)
		w[l] = tap_16(fw);
	for (int64_t l = 0; l < pairs; l++)
		at[l] = (int64_t)(draw() % (uint32_t)(3 * pairs));
	k->sums(n, step, outputs, pairs, x, at, w, to, pitch);
	for (int64_t i = 0; i < n * outputs; i++) {
		const int16_t *by = w + i / n * 2 * pairs;
		int64_t sum = 0;

		for (int64_t l = 0; l < pairs; l++)
			sum += (int64_t)x[at[l] + step * (i % n)] * by[2 * l] +
			       (int64_t)x[at[l] + step * (i % n) + 1] * by[2 * l + 1];
		good &= (uint32_t)to[i / n * pitch + i % n] == (uint32_t)sum;
	}
	CHECK(good, "%s: n %lld, step %d, outputs %d, pairs %lld, fill %d x %d", k->name, (long long)n, step, outputs,
		(long long)pairs, fx, fw);
	for (int64_t o = 1; o <= outputs; o++)
		CHECK(guarded(to, (size_t)(o * pitch - 16) * sizeof(*to), (size_t)(o * pitch) * sizeof(*to)),
			"%s: wrote behind its slack", k->name);
	free(x);
	free(w);
	free(at);
	free(to);
}

static void test_taps_i16(const void *kernel)
{
	const struct ql_taps_i16 *k = kernel;

	CHECK(k->rate > 0, "%s: rate", k->name);
	for (int step = 1; step <= 2; step++) {
		for (int64_t n = 1; n <= 150; n++)
			check_taps(k, n, step, 1 + (int)n % QL_TAPS_OUTPUTS, 1 + n % 13, RANDOM, RANDOM);
		for (int outputs = 1; outputs <= QL_TAPS_OUTPUTS; outputs++)
			check_taps(k, 1000, step, outputs, 100, RANDOM, RANDOM);
		for (int fx = 0; fx < FILLS; fx++)
			for (int fw = 0; fw < FILLS; fw++)
				check_taps(k, 77, step, 4, 6, (enum fill)fx, (enum fill)fw);
	}
}

/* ---- gemm_b1 ---- */

static uint64_t word(enum fill fill)
{
	switch (fill) {
	case HIGH: return UINT64_MAX;
	case LOW: return 0;
	case MIXED: return draw() & 1 ? UINT64_MAX : 0;
	default: return (uint64_t)draw() << 40 ^ (uint64_t)draw() << 20 ^ draw();
	}
}

static void check_b1(const struct ql_gemm_b1 *k, int rows, int columns, int64_t words, enum fill fa, enum fill fb)
{
	int64_t lda = words + 3;
	uint64_t *a = take((size_t)(lda * rows) * 8), *b = take((size_t)(words * k->nr) * 8);
	size_t used = (size_t)(k->mr * k->nr) * sizeof(int32_t);
	int32_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = word(fa);
	for (int64_t i = 0; i < words * k->nr; i++)
		b[i] = word(fb);
	k->tile(rows, columns, words, a, lda, b, c);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			int64_t n = 0;

			for (int64_t w = 0; w < words; w++)
				for (uint64_t x = a[i * lda + w] ^ b[w * k->nr + j]; x; x &= x - 1)
					n++;
			good &= c[i * k->nr + j] == n;
		}
	CHECK(good, "%s: rows %d, columns %d, words %lld, fill %d x %d", k->name, rows, columns, (long long)words, fa,
		fb);
	CHECK(guarded(c, used, used + 64), "%s: wrote behind its tile", k->name);
	free(a);
	free(b);
	free(c);
}

static void test_gemm_b1(const void *kernel)
{
	static const int64_t words[] = {0, 1, 2, 3, 30, 31, 32, 61, 62, 63, 200};
	const struct ql_gemm_b1 *k = kernel;

	CHECK(k->mr * k->nr <= QL_GEMM_TILE && k->rate > 0, "%s: tile %d x %d", k->name, k->mr, k->nr);
	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		for (int rows = 1; rows <= k->mr; rows++)
			check_b1(k, rows, 1 + (int)(draw() % (unsigned)k->nr), words[w], RANDOM, RANDOM);
		for (int fa = 0; fa < FILLS; fa++)
			for (int fb = 0; fb < FILLS; fb++)
				check_b1(k, k->mr, k->nr, words[w], (enum fill)fa, (enum fill)fb);
	}
	check_b1(k, 1, 2, 2176, HIGH, LOW);
}

/* ---- all ---- */

/* tests/kernels_f32.c, kernels_bf16.c, kernels_codes.c, kernels_conv.c, kernels_coded.c */
#define test_gemm_f32 NULL
#define test_gemm_bf16 NULL
#define test_gemm_coded NULL
#define test_conv_i8 NULL
#define test_depth_i8 NULL
#define test_quantize NULL
#define test_dequantize NULL
#define test_simd NULL
#define test_limit NULL

extern const struct ql_gemm_i8 gemm_i8_evex, gemm_i8_amx_model;

int main(void)
{
#define F(name) {#name, test_##name},
	static const struct family families[] = {QL_KERNEL_FAMILIES(F)};
#undef F
	const struct family i8 = {"gemm_i8", test_gemm_i8};
	uint32_t evex = QL_CPU_AVX512 | QL_CPU_AVX512VNNI;

	setenv("QUOLL_BLAS", "libblas.so.3", 0);
	test_kernels(families, sizeof(families) / sizeof(families[0]));
	if (evex & ~ql_cpu()->features)
		missing("gemm_i8_avxvnni in AVX-512 encoding", evex);
	else
		test_kernel(&i8, "avxvnni in AVX-512 encoding", &gemm_i8_evex);
	test_kernel(&i8, "amx on a model of its instructions", &gemm_i8_amx_model);
	return check_end();
}
