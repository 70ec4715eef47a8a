/* SPDX-License-Identifier: MIT
 * 8-bit integer product of one row of A with a B in strips (strips.h): the kernels of strips take its codes as they are held, where
 * panels of bytes would have to be made for each product. They give D = sum (a - za) u of unsigned codes u, which are b plus what
 * the least code is short of 0 (signs: b = 2 u - 1). With A = sum (a - za) the result is
 *
 *   sum (a - za) (b - zb) = D - A (zb + less), of signs 2 D - A (zb + 1)
 *
 * mod 2^32, as in i8.c. Sums over BLOCK k are added as integers: a chain of products waits for each, several chains do not.
 */
#include <string.h>

#include "tensor/dtype.h"
#include "tensor/gemm/i8_finish.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/gemm/strip_codes.h"
#include "tensor/gemm/strips.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define BLOCK 128
#define MOST_K (1 << 15)                       /* then sums of any codes have 32 bits */
#define COLUMNS (2 * QL_STRIP_TILE * QL_STRIP) /* of a task; at most 64 are finished at a time */
#define CODES_PER_NS 50                        /* of one thread, roughly: for the size of chunks only */

struct job {
	const struct ql_gemm_coded *kernel;
	const struct ql_strips *b;
	const struct ql_gemm_operand *columns; /* of B, with its zero points */
	struct ql_strip form;
	struct ql_strip_rows row;
	uint32_t sum;         /* A */
	uint32_t times, less; /* b = times * u - less */
	struct ql_gemm_i8_finish finish;
};

bool ql_gemm_i8_row_fits(int64_t m, const struct ql_matrix_int *b)
{
	return m == 1 && b->strips && b->strips->k <= MOST_K;
}

/* Strips first..first+strips-1, with zero points, to c. */
static void strips_sums(const struct job *j, int64_t first, int strips, int32_t *c)
{
	struct ql_strip s[QL_STRIP_TILE];
	_Alignas(64) float sums[QL_STRIP_TILE * QL_STRIP];

	for (int t = 0; t < strips; t++) {
		s[t] = j->form;
		s[t].codes = j->b->codes + (first + t) * j->b->bytes;
	}
	j->kernel->dots(strips, 1, s, j->b->k, &j->row, sums);
	memcpy(c, sums, (size_t)(strips * QL_STRIP) * sizeof(*c));
	for (int64_t l = 0, at = first * QL_STRIP; l < strips * QL_STRIP && at + l < j->b->n; l++) {
		uint32_t zero = (uint32_t)ql_gemm_zero_of(j->columns, at + l) + j->columns->flip;

		c[l] = (int32_t)((uint32_t)c[l] * j->times - j->sum * (zero + j->less));
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t strips = ql_ceil_div(j->b->n, QL_STRIP), most = COLUMNS / QL_STRIP;
	_Alignas(64) int32_t c[COLUMNS];

	for (int64_t t = begin; t < end; t++) {
		int64_t first = t * most, last = ql_min64(first + most, strips), column = first * QL_STRIP;

		for (int64_t s = first; s < last; s += QL_STRIP_TILE)
			strips_sums(j, s, (int)ql_min64(QL_STRIP_TILE, last - s), c + (s - first) * QL_STRIP);
		ql_gemm_i8_finish_tile(&j->finish, 0, 1, column, ql_min64(COLUMNS, j->b->n - column), c, COLUMNS);
	}
}

/* A' as signed bytes, its zero point and sum. Blocks begin with 0. */
static enum ql_status take_row(
	struct ql_ctx *ctx, struct job *j, const struct ql_gemm_operand *a, int64_t k, int32_t *zero)
{
	int64_t whole = ql_ceil_div(k, 8) * 8, blocks = ql_ceil_div(k, BLOCK);
	int8_t *row = ql_gemm_take(ctx, whole, 1);
	int32_t *start = ql_gemm_take(ctx, blocks, sizeof(*start));

	if (!row || !start)
		return QL_ERR_MEMORY;
	ql_gemm_rows_8(ctx->kernels->pack_i8, a->from, k, 0, 1, a->flip ^ 128, (uint8_t *)row, whole);
	memset(row + k, 0, (size_t)(whole - k));
	memset(start, 0, (size_t)blocks * sizeof(*start));
	*zero = ql_gemm_zero_of(a, 0) - 128;
	for (int64_t l = 0; l < k; l++)
		j->sum += (uint32_t)(row[l] - *zero);
	j->row = (struct ql_strip_rows){row, whole, start, start, blocks, *zero ? zero : NULL};
	return QL_OK;
}

enum ql_status ql_gemm_i8_row(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_gemm_operand *a,
	const struct ql_gemm_operand *b, const struct ql_gemm_i8_out *out)
{
	const struct ql_strips *strips = b->from->strips;
	bool signs = ql_dtype_is_binary(strips->dtype);
	struct ql_gemm_operand plain_a = {.from = a->from}, plain_b = {.from = b->from};
	struct job j = {.kernel = ctx->kernels->gemm_coded,
		.b = strips,
		.columns = b,
		.form = {.bits = strips->form.bits,
			.held = ql_strip_is_plain(strips->dtype) ? 0 : ql_dtypes[strips->dtype].bits,
			.block = BLOCK},
		.times = signs ? 2 : 1,
		.less = signs ? 1 : (uint32_t)ql_strip_least(strips->dtype),
		.finish = {.a = &plain_a, .b = &plain_b, .out = out, .variant = ctx->kernels->simd->variant}};
	int32_t zero;
	enum ql_status status = take_row(ctx, &j, a, k, &zero);

	if (!status)
		status = ql_gemm_i8_finish_init(ctx, &j.finish, 1, n);
	if (status)
		return status;
	ql_gemm_i8_finish_columns(&j.finish, 0, n);
	return ql_parallel_for(ctx, ql_ceil_div(n, COLUMNS), ql_max64(1, 65536 / (COLUMNS * k)),
		(int64_t)((double)n * (double)k / CODES_PER_NS), body, &j);
}
