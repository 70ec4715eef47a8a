/* SPDX-License-Identifier: MIT
 * Few rows times a matrix of bfloat16 numbers whose columns are contiguous, the weights of linear, for kernels that multiply its lines
 * where they lie (`few` of gemm_bf16): B is read once and nothing of it is packed. The rows are packed as pairs; one row of an even
 * number of bfloat16 numbers has that form already, and its results are adjacent. Those of several rows are turned. More rows than the
 * kernel takes read a few lines once for each QL_BF16_FEW of them, from the second-level cache but the first time: below MOST rows
 * that is faster than packing the lines.
 */
#include "tensor/gemm/bf16_few.h"

#include "tensor/gemm/half_pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define MOST 64
#define TASKS_PER_THREAD 4
#define VALUES_PER_NS 16 /* of B, roughly */

struct job {
	struct ql_ctx *ctx;
	const struct ql_gemm_bf16 *kernel;
	int64_t m, n, k;
	const struct ql_matrix_float *from; /* A */
	const struct ql_matrix_float *b;
	uint32_t *packed;
	const uint32_t *a; /* which is this, or A itself */
	float *c;
	int64_t ldc;
};

bool ql_gemm_bf16_is_few(const struct ql_ctx *ctx, int64_t m, const struct ql_matrix_float *b)
{
	return m <= MOST && b->row == 1 && ql_is_bf16(b) && ctx->kernels->gemm_bf16->few;
}

static bool take_row(struct job *j)
{
	if (j->m > 1 || j->from->column != 1 || !ql_is_bf16(j->from) || j->k % 2 ||
		(uintptr_t)j->from->data % sizeof(*j->a))
		return false;
	j->a = j->from->data;
	return true;
}

/* Rows of the group that begins with row i. */
static int rows_of(const struct job *j, int64_t i)
{
	return (int)ql_min64(QL_BF16_FEW, j->m - i);
}

/* item: a row; its line is in the memory behind the pairs, which are those of whole groups */
static void pack_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t pairs = (j->k + 1) / 2;

	for (int64_t i = begin; i < end; i++) {
		uint32_t *line = j->packed + (j->m + i) * pairs;
		uint16_t *numbers = (void *)line;
		int64_t first = i / QL_BF16_FEW * QL_BF16_FEW, rows = rows_of(j, first);
		uint32_t *to = j->packed + first * pairs + i - first;

		numbers[2 * pairs - 1] = 0;
		ql_bf16_line(j->ctx->kernels->simd->variant, j->from, i * j->from->row, j->from->column, j->k, numbers);
		for (int64_t l = 0; l < pairs; l++)
			to[l * rows] = line[l];
	}
}

static enum ql_status pack(struct job *j)
{
	if (take_row(j))
		return QL_OK;
	j->a = j->packed = ql_gemm_take(j->ctx, ql_mul64(2, j->m), ql_size_array((j->k + 1) / 2, sizeof(*j->packed)));
	if (!j->packed)
		return QL_ERR_MEMORY;
	return ql_parallel_for(j->ctx, j->m, 1, j->m * j->k, pack_body, j);
}

/* The rows of the group that begins with row i. */
static void group(const struct job *j, int64_t i, int64_t first, int columns)
{
	int rows = rows_of(j, i);
	float sums[64 * QL_BF16_FEW];

	j->kernel->few(rows, columns, j->k, j->a + i * ((j->k + 1) / 2),
		(const uint16_t *)j->b->data + first * j->b->column, j->b->column, j->m == 1 ? j->c + first : sums);
	for (int r = 0; j->m > 1 && r < rows; r++)
		for (int c = 0; c < columns; c++)
			j->c[(i + r) * j->ldc + first + c] = sums[c * rows + r];
}

/* item: nr columns */
static void columns_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int nr = j->kernel->nr;

	for (int64_t t = begin; t < end && !ql_stopped(j->ctx); t++) {
		int64_t first = t * nr;

		for (int64_t i = 0; i < j->m; i += QL_BF16_FEW)
			group(j, i, first, (int)ql_min64(nr, j->n - first));
	}
}

enum ql_status ql_gemm_bf16_few(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c, int64_t ldc)
{
	struct job j = {ctx, ctx->kernels->gemm_bf16, m, n, k, a, b, .c = c, .ldc = ldc};
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int64_t items = ql_ceil_div(n, j.kernel->nr);
	double work = (double)n * (double)k * (1.0 / VALUES_PER_NS + (double)m / j.kernel->rate);
	enum ql_status status = pack(&j);

	if (!status)
		status = ql_parallel_for(ctx, items, ql_max64(1, items / ((int64_t)TASKS_PER_THREAD * ctx->threads)),
			work < 1e18 ? (int64_t)work : INT64_MAX, columns_body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
