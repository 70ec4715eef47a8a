/* SPDX-License-Identifier: MIT
 * Products of floats: every entry of gemm_f32 that this CPU can run, against sums in double; ordered ones have the bits
 * of plain loops. Small and odd sizes, sums that go on from tile to tile, sources read by taps.
 */
#include <math.h>

#include "tests/tools/kernels.h"

static void fill_f32(float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)draw() / 0x1p30f - 1;
}

/* c (m, n) against sums in double; `before` is what was added to. */
static bool close_f32(const float *c, int64_t ldc, int64_t m, int64_t n, int64_t depth, const float *a, int64_t a_row,
	int64_t a_col, const float *b, int64_t b_row, int64_t b_col, double before)
{
	bool good = true;

	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = before, size = fabs(before);

			for (int64_t l = 0; l < depth; l++) {
				double x = (double)a[i * a_row + l * a_col] * (double)b[l * b_row + j * b_col];

				sum += x;
				size += fabs(x);
			}
			good &= fabs((double)c[i * ldc + j] - sum) <= (double)(depth + 1) * 0x1p-24 * size;
		}
	return good;
}

/* Each sum is that of a plain loop, bit for bit, from `before` on. */
static bool in_order_f32(const float *c, int64_t ldc, int rows, int columns, int64_t depth, const float *a, int64_t lda,
	const float *b, int64_t ldb, float before)
{
	bool good = true;

	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			float sum = before;
			uint32_t wanted, got;

			for (int64_t l = 0; l < depth; l++)
				sum += a[i * lda + l] * b[l * ldb + j];
			memcpy(&wanted, &sum, sizeof(sum));
			memcpy(&got, &c[i * ldc + j], sizeof(got));
			good &= got == wanted;
		}
	return good;
}

static void check_tile_f32(const struct ql_gemm_f32 *k, int rows, int columns, int64_t depth, enum ql_tile_start start)
{
	int64_t lda = depth + 3, ldb = columns + 5, ldc = columns + 2;
	float *a = take((size_t)(lda * rows) * 4), *b = take((size_t)(ldb * depth) * 4);
	float *c = take((size_t)(ldc * rows) * 4);
	bool kept = true, add = start != QL_TILE_NEW;

	/* nothing beyond the columns is read: it would show as NaN */
	for (int64_t i = 0; i < ldb * depth; i++)
		b[i] = NAN;
	for (int64_t l = 0; l < depth; l++)
		fill_f32(b + l * ldb, columns);
	fill_f32(a, lda * rows);
	for (int i = 0; i < rows; i++)
		for (int j = 0; add && j < columns; j++)
			c[i * ldc + j] = 0.375f;
	k->tile(rows, columns, depth, a, lda, b, ldb, c, ldc, start);
	CHECK(close_f32(c, ldc, rows, columns, depth, a, lda, 1, b, ldb, 1, add ? 0.375 : 0),
		"%s: %d x %d x %lld, start %d", k->name, rows, columns, (long long)depth, start);
	CHECK(!k->ordered || in_order_f32(c, ldc, rows, columns, depth, a, lda, b, ldb, add ? 0.375f : 0),
		"%s: %d x %d x %lld, start %d: other bits than a plain loop", k->name, rows, columns, (long long)depth,
		start);
	for (int i = 0; i < rows; i++)
		kept &= guarded(c + i * ldc + columns, 0, 8);
	CHECK(kept, "%s: %d x %d: wrote beyond the columns", k->name, rows, columns);
	free(a);
	free(b);
	free(c);
}

/* A sum that goes on from tile to tile, with more columns than a tile has, is that of one tile. */
static void check_split_f32(const struct ql_gemm_f32 *k, int rows, int columns, int64_t depth)
{
	int64_t ldc = columns + 3;
	size_t bytes = (size_t)(ldc * rows) * 4;
	float *a = take((size_t)(depth * rows) * 4), *b = take((size_t)(columns * depth) * 4);
	float *c = take(bytes), *whole = take(bytes);

	fill_f32(a, depth * rows);
	fill_f32(b, columns * depth);
	for (int j = 0; j < columns; j += k->nr)
		k->tile(rows, columns - j < k->nr ? columns - j : k->nr, depth, a, depth, b + j, columns, whole + j,
			ldc, QL_TILE_NEW);
	for (int64_t l = 0; l < depth; l += 7)
		k->tile(rows, columns, depth - l < 7 ? depth - l : 7, a + l, depth, b + l * columns, columns, c, ldc,
			l ? QL_TILE_ON : QL_TILE_NEW);
	CHECK(memcmp(c, whole, bytes) == 0, "%s: %d x %d x %lld in parts: other bits", k->name, rows, columns,
		(long long)depth);
	free(a);
	free(b);
	free(c);
	free(whole);
}

/* c has the bits of plain loops over the sums. */
static bool ended_f32(
	const struct ql_tile_end_f32 *e, int rows, int columns, const float *c, const float *sums, int64_t ldc)
{
	bool good = true;

	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			float x = sums[i * ldc + j];
			uint32_t wanted, got;

			if (e->bias)
				x = x + e->bias[i];
			if (e->other)
				x = x + e->other[i * ldc + j];
			if (x < e->least)
				x = e->least;
			memcpy(&wanted, &x, sizeof(x));
			memcpy(&got, &c[i * ldc + j], sizeof(got));
			good &= isnan(x) ? isnan(c[i * ldc + j]) : got == wanted;
		}
	return good;
}

/* The same with the rows of `a` in order of taps and channels. */
static void check_apart_f32(const struct ql_gemm_f32 *k, struct ql_taps_f32 s, int rows, int columns, const float *a,
	const float *wanted, int64_t ldc, int start)
{
	int64_t depth = s.channels * s.taps, pitch = depth + 3;
	float *apart = take((size_t)(pitch * rows) * 4), *c = take((size_t)(ldc * rows) * 4);

	for (int64_t i = 0; i < depth * rows; i++)
		apart[i / depth * pitch + i % depth % s.taps * s.channels + i % depth / s.taps] = a[i];
	for (int64_t i = 0; start != QL_TILE_NEW && i < ldc * rows; i++)
		c[i] = 0.375f;
	s.apart = s.channels;
	k->taps(rows, columns, &s, apart, pitch, c, ldc, (enum ql_tile_start)start);
	CHECK(memcmp(c, wanted, (size_t)(ldc * rows) * 4) == 0, "%s: turned weights, %d x %d, %lld channels, %lld taps",
		k->name, rows, columns, (long long)s.channels, (long long)s.taps);
	free(apart);
	free(c);
}

/* The product of a source that is read in place by channels and taps: the bits of the tile with the same numbers; what
 * is not inside is not read (it would show as NaN). */
static void check_taps_f32(
	const struct ql_gemm_f32 *k, int rows, int columns, int64_t channels, int64_t taps, int start)
{
	int64_t depth = channels * taps, plane = 150, ldc = columns + 2;
	float *a = take((size_t)(depth * rows) * 4), *b = take((size_t)(depth * columns) * 4);
	float *from = take((size_t)(channels * plane) * 4);
	size_t bytes = (size_t)(ldc * rows) * 4;
	float *c = take(bytes), *wanted = take(bytes), *bias = take((size_t)rows * 4), *other = take(bytes);
	int64_t at[9];
	uint64_t inside[9];
	struct ql_taps_f32 s = {.from = from + 20,
		.channels = channels,
		.plane = plane,
		.taps = taps,
		.at = at,
		.inside = inside,
		.ahead = rows % 2 ? 0 : plane};

	fill_f32(a, depth * rows);
	fill_f32(bias, rows);
	fill_f32(other, ldc * rows);
	bias[0] = other[0] = -0.0f;
	bias[rows / 2] = rows % 3 ? bias[rows / 2] : NAN; /* passes through, too */
	for (int64_t i = 0; i < channels * plane; i++)
		from[i] = NAN;
	for (int64_t t = 0; t < taps; t++) {
		at[t] = (int64_t)(draw() % 40) - 20;
		inside[t] = t % 3 == 1 ? UINT64_MAX : (uint64_t)draw() << 40 ^ (uint64_t)draw() << 20 ^ draw();
	}
	for (int64_t i = 0; i < depth; i++)
		for (int j = 0; j < columns; j++)
			if (inside[i % taps] >> j & 1)
				fill_f32(from + 20 + i / taps * plane + at[i % taps] + j, 1);
	for (int64_t t = 0; t < taps; t++) /* beyond the columns nothing is inside */
		inside[t] &= UINT64_MAX >> (64 - columns);
	for (int64_t i = 0; i < depth; i++)
		for (int j = 0; j < columns; j++)
			b[i * columns + j] =
				inside[i % taps] >> j & 1 ? s.from[i / taps * plane + at[i % taps] + j] : 0;
	for (int64_t i = 0; start != QL_TILE_NEW && i < ldc * rows; i++)
		c[i] = wanted[i] = 0.375f;
	k->taps(rows, columns, &s, a, depth, c, ldc, (enum ql_tile_start)start);
	for (int i = 0; i < rows; i += k->mr)
		k->tile(rows - i < k->mr ? rows - i : k->mr, columns, depth, a + i * depth, depth, b, columns,
			wanted + i * ldc, ldc, (enum ql_tile_start)start);
	CHECK(memcmp(c, wanted, bytes) == 0, "%s: taps of %d x %d, %lld channels, %lld taps, start %d", k->name, rows,
		columns, (long long)channels, (long long)taps, start);
	check_apart_f32(k, s, rows, columns, a, wanted, ldc, start);
	for (int way = 0; way < 8; way++) {
		struct ql_tile_end_f32 end = {way & 1 ? bias : NULL, way & 2 ? other : NULL, way & 4 ? 0 : -INFINITY};

		s.end = &end;
		for (int64_t i = 0; i < ldc * rows; i++)
			c[i] = 0.375f;
		k->taps(rows, columns, &s, a, depth, c, ldc, (enum ql_tile_start)start);
		CHECK(ended_f32(&end, rows, columns, c, wanted, ldc), "%s: taps of %d x %d, end %d, start %d", k->name,
			rows, columns, way, start);
	}
	free(bias);
	free(other);
	free(a);
	free(b);
	free(from);
	free(c);
	free(wanted);
}

/* B by columns: the bits of the tile with the same numbers. */
static void check_turned_f32(const struct ql_gemm_f32 *k, int rows, int64_t depth, int start)
{
	int64_t ldb = depth + depth % 5, ldc = k->lanes + 3, n = k->lanes;
	float *a = take((size_t)(depth * rows) * 4), *plain = take((size_t)(depth * rows) * 4);
	float *b = take((size_t)(ldb * (n - 1) + depth) * 4), *turned = take((size_t)(n * depth) * 4);
	size_t bytes = (size_t)(ldc * (rows - 1) + n) * 4;
	float *c = take(bytes), *wanted = take(bytes);

	fill_f32(a, depth * rows);
	fill_f32(b, ldb * (n - 1) + depth);
	for (int64_t l = 0; l < depth; l++) {
		for (int i = 0; i < rows; i++)
			plain[i * depth + l] = a[l * rows + i];
		for (int64_t j = 0; j < n; j++)
			turned[l * n + j] = b[j * ldb + l];
	}
	for (size_t i = 0; i < bytes / 4; i++)
		c[i] = wanted[i] = 0.375f;
	k->turned(rows, depth, a, b, ldb, c, ldc, (enum ql_tile_start)start);
	for (int i = 0; i < rows; i++)
		k->tile(1, (int)n, depth, plain + i * depth, depth, turned, n, wanted + i * ldc, ldc,
			(enum ql_tile_start)start);
	CHECK(memcmp(c, wanted, bytes) == 0, "%s: turned: %d rows, %lld deep, start %d", k->name, rows,
		(long long)depth, start);
	free(a);
	free(plain);
	free(b);
	free(turned);
	free(c);
	free(wanted);
}

static void check_whole_f32(const struct ql_gemm_f32 *k, int64_t m, int64_t n, int64_t depth, bool ta, bool tb)
{
	int64_t lda = (ta ? m : depth) + 3, ldb = (tb ? depth : n) + 1, ldc = n + 2;
	float *a = take((size_t)(lda * (ta ? depth : m)) * 4), *b = take((size_t)(ldb * (tb ? n : depth)) * 4);
	float *c = take((size_t)(ldc * m) * 4);

	fill_f32(a, lda * (ta ? depth : m));
	fill_f32(b, ldb * (tb ? n : depth));
	k->whole(m, n, depth, a, ta ? 1 : lda, ta ? lda : 1, b, tb ? 1 : ldb, tb ? ldb : 1, c, ldc);
	CHECK(close_f32(c, ldc, m, n, depth, a, ta ? 1 : lda, ta ? lda : 1, b, tb ? 1 : ldb, tb ? ldb : 1, 0),
		"%s: %lld x %lld x %lld, %d %d", k->name, (long long)m, (long long)n, (long long)depth, ta, tb);
	free(a);
	free(b);
	free(c);
}

static void test_gemm_f32(const void *kernel)
{
	static const int64_t size[] = {1, 2, 3, 16, 17, 63, 65, 127, 129};
	const struct ql_gemm_f32 *k = kernel;
	const int sizes = sizeof(size) / sizeof(size[0]);

	for (int i = 0; k->whole && i < sizes * sizes; i++)
		for (int t = 0; t < 4; t++)
			check_whole_f32(
				k, size[i % sizes], size[i / sizes], size[(i + 2 * (i / sizes)) % sizes], t & 1, t & 2);
	for (int rows = 1; k->tile && rows <= k->mr; rows++)
		for (int columns = 1; columns <= 2 * k->nr + 1; columns++) {
			for (int start = QL_TILE_NEW; start <= QL_TILE_ON; start++)
				check_tile_f32(
					k, rows, columns, size[(rows + columns) % sizes], (enum ql_tile_start)start);
			check_split_f32(k, rows, columns, 1 + (rows * columns) % 40);
			if (columns <= k->nr)
				check_taps_f32(
					k, rows, columns, 1 + (rows + columns) % 5, 1 + columns % 9, columns % 3);
		}
	for (int rows = k->mr + 1; k->tile && rows <= k->narrow; rows++)
		for (int columns = 1; columns <= k->narrow_columns; columns++)
			check_taps_f32(k, rows, columns, 1 + (rows + columns) % 5, 1 + columns % 9, columns % 3);
	for (int rows = 1; k->tile && k->lanes && rows <= QL_TURNED_ROWS; rows++)
		for (int64_t depth = 1; depth < 50; depth++)
			check_turned_f32(k, rows, depth, (int)(depth + rows) % 3);
	if (k->tile) {
		CHECK(k->nr <= 64 && k->rate > 0, "%s: tile %d x %d", k->name, k->mr, k->nr);
		check_tile_f32(k, 1, 1, 20000, QL_TILE_NEW);
	}
}

/* tests/kernels.c and its kin */
#define test_conv_i8 NULL
#define test_depth_i8 NULL
#define test_dequantize NULL
#define test_gemm_b1 NULL
#define test_gemm_bf16 NULL
#define test_gemm_coded NULL
#define test_gemm_i16 NULL
#define test_gemm_i8 NULL
#define test_limit NULL
#define test_pack_i8 NULL
#define test_quantize NULL
#define test_simd NULL
#define test_taps_i16 NULL

int main(void)
{
#define F(name) {#name, test_##name},
	static const struct family families[] = {QL_KERNEL_FAMILIES(F)};
#undef F

	test_kernels(families, sizeof(families) / sizeof(families[0]));
	return check_end();
}
