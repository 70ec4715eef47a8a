/* SPDX-License-Identifier: MIT
 * Portable float32 tile: sums over k in order, each product rounded.
 */
#include "tensor/kernels/kernels.h"

#define MR 4
#define NR 32
#define STEP 32 /* rows of B gathered at a time */

static void row(int columns, int64_t k, const float *a, const float *b, int64_t ldb, float *c, enum ql_tile_start start)
{
	float sum[NR] = {0};

	for (int j = 0; start != QL_TILE_NEW && j < columns; j++)
		sum[j] = c[j];
	for (int64_t l = 0; l < k; l++)
		for (int j = 0; j < columns; j++)
			sum[j] += a[l] * b[l * ldb + j];
	for (int j = 0; j < columns; j++)
		c[j] = sum[j];
}

static void tile(int rows, int columns, int64_t k, const float *a, int64_t lda, const float *b, int64_t ldb, float *c,
	int64_t ldc, enum ql_tile_start start)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j += NR)
			row(columns - j < NR ? columns - j : NR, k, a + i * lda, b + j, ldb, c + i * ldc + j, start);
}

static float number(const struct ql_taps_f32 *s, int64_t c, int64_t t, int p)
{
	if (s->line)
		return s->from[c * s->plane + s->at[t] + s->line[p / NR] + p % NR];
	return s->inside[t] >> p & 1 ? s->from[c * s->plane + s->at[t] + p] : 0;
}

static void finish(const struct ql_tile_end_f32 *e, int rows, int columns, float *c, int64_t ldc)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			float x = c[i * ldc + j];

			x = e->bias ? x + e->bias[i] : x;
			x = e->other ? x + e->other[i * ldc + j] : x;
			c[i * ldc + j] = x < e->least ? e->least : x;
		}
}

/* Numbers l..l+depth-1 of a row of A in the order of channels and taps. */
static void in_order(const struct ql_taps_f32 *s, const float *a, int64_t l, int64_t depth, float *out)
{
	for (int64_t i = 0; i < depth; i++)
		out[i] = s->apart ? a[(l + i) / s->taps + (l + i) % s->taps * s->apart] : a[l + i];
}

static void taps(int rows, int columns, const struct ql_taps_f32 *s, const float *a, int64_t lda, float *c, int64_t ldc,
	enum ql_tile_start start)
{
	for (int64_t l = 0, k = s->channels * s->taps; l < k; l += STEP, start = QL_TILE_ON) {
		int64_t depth = k - l < STEP ? k - l : STEP;
		float b[STEP * NR], some[MR * STEP];

		for (int i = 0; i < rows; i++)
			in_order(s, a + i * lda, l, depth, some + i * STEP);
		for (int64_t i = 0; i < depth; i++)
			for (int j = 0; j < columns; j++)
				b[i * NR + j] = number(s, (l + i) / s->taps, (l + i) % s->taps, j);
		tile(rows, columns, depth, some, STEP, b, NR, c, ldc, start);
	}
	if (s->end)
		finish(s->end, rows, columns, c, ldc);
}

extern const struct ql_gemm_f32 gemm_f32_ref;
const struct ql_gemm_f32 gemm_f32_ref = {.name = "gemm_f32_ref",
	.mr = MR,
	.nr = NR,
	.rate = 3,
	.ordered = true,
	.tile = tile,
	.taps = taps,
	.narrow = MR,
	.narrow_columns = NR};
