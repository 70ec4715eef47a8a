/* SPDX-License-Identifier: MIT
 * float64 products. Both operands are packed for tiles of ROWS x COLUMNS sums, DEPTH products at a time. Every product is rounded and
 * added to its sum in order of k, starting at 0 or at what is in c: the bits of a plain loop, on every kernel level and for any
 * number of threads.
 */
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define ROWS 8
#define COLUMNS 16
#define DEPTH 256
#define TASK_ROWS 8    /* panels of A of a task */
#define TASK_COLUMNS 8 /* panels of B */
#define RATE 10        /* products per ns on one core, roughly: for the size of chunks only */

typedef double two __attribute__((vector_size(16), aligned(8), may_alias));
typedef double four __attribute__((vector_size(32), aligned(8), may_alias));
typedef double eight __attribute__((vector_size(64), aligned(8), may_alias));

/* c (ROWS, COLUMNS) in parts of `rows` rows and 2 vectors, whose sums stay in registers */
#define TILE(name, target, vector, rows) \
	target static void name(int64_t k, const double *a, const double *b, double *c, int64_t ldc, bool on) \
	{ \
		enum { LANES = sizeof(vector) / sizeof(double) }; \
\
		for (int i = 0; i < ROWS; i += (rows)) \
			for (int j = 0; j < COLUMNS; j += 2 * LANES) { \
				vector left[rows] = {{0}}, right[rows] = {{0}}; \
\
				_Pragma("GCC unroll 8") for (int r = 0; on && r < (rows); r++) \
				{ \
					left[r] = *(const vector *)(c + (i + r) * ldc + j); \
					right[r] = *(const vector *)(c + (i + r) * ldc + j + LANES); \
				} \
				for (int64_t l = 0; l < k; l++) { \
					vector v = *(const vector *)(b + l * COLUMNS + j); \
					vector w = *(const vector *)(b + l * COLUMNS + j + LANES); \
\
					_Pragma("GCC unroll 8") for (int r = 0; r < (rows); r++) \
					{ \
						left[r] += a[l * ROWS + i + r] * v; \
						right[r] += a[l * ROWS + i + r] * w; \
					} \
				} \
				_Pragma("GCC unroll 8") for (int r = 0; r < (rows); r++) \
				{ \
					*(vector *)(c + (i + r) * ldc + j) = left[r]; \
					*(vector *)(c + (i + r) * ldc + j + LANES) = right[r]; \
				} \
			} \
	}

typedef void tile_fn(int64_t k, const double *a, const double *b, double *c, int64_t ldc, bool on);

TILE(tile_ref, , two, 4)
TILE(tile_avx2, QL_TARGET_AVX2, four, 4)
TILE(tile_avx512, QL_TARGET_AVX512, eight, 8)
static tile_fn *const tiles[QL_SIMD_VARIANTS] = {tile_ref, tile_avx2, tile_avx512};

struct job {
	int64_t m, n, k; /* k: of this part */
	struct ql_matrix_f64 a, b;
	double *c;
	int64_t ldc;
	bool on, negate, upper;
	double *pa, *pb; /* panels of ROWS rows of a, of COLUMNS columns of b: k times that many numbers each */
	tile_fn *tile;
};

/* to[l * width + i] = from[i * step + l * along], negated or not; 0 for i from `count` on */
static void pack(const double *from, int64_t step, int64_t along, int64_t count, int64_t width, int64_t k, bool negate,
	double *to)
{
	for (int64_t l = 0; l < k; l++, to += width) {
		const double *at = from + l * along;

		if (step == 1 && count == width && !negate) {
			memcpy(to, at, (size_t)width * sizeof(*to));
			continue;
		}
		for (int64_t i = 0; i < count; i++)
			to[i] = negate ? -at[i * step] : at[i * step];
		for (int64_t i = count; i < width; i++)
			to[i] = 0;
	}
}

static void pack_a(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++)
		pack(j->a.data + p * ROWS * j->a.row, j->a.row, j->a.column, ql_min64(ROWS, j->m - p * ROWS), ROWS,
			j->k, j->negate, j->pa + p * ROWS * j->k);
}

static void pack_b(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t p = begin; p < end; p++)
		pack(j->b.data + p * COLUMNS * j->b.column, j->b.column, j->b.row,
			ql_min64(COLUMNS, j->n - p * COLUMNS), COLUMNS, j->k, false, j->pb + p * COLUMNS * j->k);
}

static void copy_rows(int64_t rows, int64_t columns, const double *from, int64_t from_row, double *to, int64_t to_row)
{
	for (int64_t i = 0; i < rows; i++)
		memcpy(to + i * to_row, from + i * from_row, (size_t)columns * sizeof(*to));
}

/* Panel p of A times panel q of B. */
static void multiply(const struct job *j, int64_t p, int64_t q)
{
	int64_t rows = ql_min64(ROWS, j->m - p * ROWS), columns = ql_min64(COLUMNS, j->n - q * COLUMNS);
	const double *a = j->pa + p * ROWS * j->k, *b = j->pb + q * COLUMNS * j->k;
	double edge[ROWS * COLUMNS], *c = j->c + p * ROWS * j->ldc + q * COLUMNS;

	if (j->upper && (q + 1) * COLUMNS <= p * ROWS)
		return;
	if (rows == ROWS && columns == COLUMNS) {
		j->tile(j->k, a, b, c, j->ldc, j->on);
		return;
	}
	memset(edge, 0, sizeof(edge));
	if (j->on)
		copy_rows(rows, columns, c, j->ldc, edge, COLUMNS);
	j->tile(j->k, a, b, edge, COLUMNS, j->on);
	copy_rows(rows, columns, edge, COLUMNS, c, j->ldc);
}

/* Tasks are blocks of panels, row by row. */
static void multiply_tasks(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int64_t down = ql_ceil_div(j->m, ROWS), across = ql_ceil_div(j->n, COLUMNS);
	int64_t tasks = ql_ceil_div(across, TASK_COLUMNS);

	for (int64_t t = begin; t < end; t++) {
		int64_t p0 = t / tasks * TASK_ROWS, q0 = t % tasks * TASK_COLUMNS;

		for (int64_t q = q0; q < ql_min64(q0 + TASK_COLUMNS, across); q++)
			for (int64_t p = p0; p < ql_min64(p0 + TASK_ROWS, down); p++)
				multiply(j, p, q);
	}
}

static enum ql_status part(struct ql_ctx *ctx, struct job *j)
{
	int64_t down = ql_ceil_div(j->m, ROWS), across = ql_ceil_div(j->n, COLUMNS);
	int64_t tasks = ql_ceil_div(down, TASK_ROWS) * ql_ceil_div(across, TASK_COLUMNS);
	enum ql_status status = ql_parallel_for(ctx, down, 4, j->m * j->k, pack_a, j);

	if (!status)
		status = ql_parallel_for(ctx, across, 4, j->n * j->k, pack_b, j);
	if (!status)
		status = ql_parallel_for(ctx, tasks, 1, ql_mul64(j->m * j->n, j->k) / RATE, multiply_tasks, j);
	return status;
}

static void clear(const struct job *j)
{
	for (int64_t i = 0; i < j->m; i++)
		memset(j->c + i * j->ldc, 0, (size_t)j->n * sizeof(*j->c));
}

enum ql_status ql_gemm_f64(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_matrix_f64 *a,
	const struct ql_matrix_f64 *b, double *c, int64_t ldc, unsigned how)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.m = m, .n = n, .a = *a, .b = *b, .c = c, .ldc = ldc};
	int64_t depth = ql_min64(k, DEPTH), rows, columns;
	enum ql_status status = QL_OK;

	if (m == 0 || n == 0)
		return QL_OK;
	j.on = how & QL_F64_ADD;
	j.negate = how & QL_F64_NEGATE;
	j.upper = how & QL_F64_UPPER;
	j.tile = tiles[ctx->kernels->simd->variant];
	if (k == 0) {
		if (!j.on)
			clear(&j);
		return QL_OK;
	}
	rows = ql_mul64(ql_ceil_div(m, ROWS), ROWS);
	columns = ql_mul64(ql_ceil_div(n, COLUMNS), COLUMNS);
	j.pa = ql_scratch_array(ctx, ql_mul64(rows, depth), sizeof(double));
	j.pb = j.pa ? ql_scratch_array(ctx, ql_mul64(columns, depth), sizeof(double)) : NULL;
	if (!j.pb)
		status = QL_ERR_MEMORY;
	for (int64_t l = 0; l < k && !status; l += depth) {
		j.k = ql_min64(depth, k - l);
		status = part(ctx, &j);
		j.a.data += j.k * a->column;
		j.b.data += j.k * b->row;
		j.on = true;
	}
	ql_scratch_release(ctx, mark);
	return status;
}
