/* SPDX-License-Identifier: MIT
 * Right-looking algorithms over blocks of BLOCK rows: a block is finished by substitution, then its products are subtracted from all
 * that follows it.
 */
#include "tensor/gemm/triangular.h"

#include <math.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define BLOCK QL_TRIANGULAR_SMALL
#define STRIP 64 /* columns that are substituted at a time, so that they stay in the first-level cache */
#define RATE 4   /* products of a substitution per ns */

/* ---- one block ---- */

/* Returns n, or the first pivot that is not above 0. */
QL_SIMD(int64_t, factor, (int64_t n, double *u, int64_t ld), {
	for (int64_t j = 0; j < n; j++) {
		double *row = u + j * ld, root;

		if (!(row[j] > 0))
			return j;
		root = sqrt(row[j]);
		row[j] = root;
		for (int64_t c = j + 1; c < n; c++)
			row[c] /= root;
		for (int64_t i = j + 1; i < n; i++) {
			double *to = u + i * ld, f = row[i];

			QL_INDEPENDENT
			for (int64_t c = i; c < n; c++)
				to[c] -= f * row[c];
		}
	}
	return n;
})

/* x (n, m): forward substitution by the lower triangle of l, whose rows are contiguous. */
QL_SIMD(void, substitute, (int64_t n, int64_t m, const double *l, bool unit, double *x, int64_t ldx), {
	for (int64_t i = 0; i < n; i++) {
		double *to = x + i * ldx;

		for (int64_t k = 0; k < i; k++) {
			const double *from = x + k * ldx;
			double f = l[i * n + k];

			QL_INDEPENDENT
			for (int64_t c = 0; c < m; c++)
				to[c] -= f * from[c];
		}
		if (!unit) {
			double d = l[i * n + i];

			for (int64_t c = 0; c < m; c++)
				to[c] /= d;
		}
	}
})

/* Rows of l that substitute reads, contiguous. */
static void take_rows(int64_t n, const struct ql_matrix_f64 *l, double *out)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t k = 0; k <= i; k++)
			out[i * n + k] = l->data[i * l->row + k * l->column];
}

/* A block (n, n) on the diagonal of upper u, turned by 180 degrees: the backward substitution by u is the forward one by it. */
static struct ql_matrix_f64 turned(const double *u, int64_t n, int64_t ld)
{
	return (struct ql_matrix_f64){.data = u + (n - 1) * (ld + 1), .row = -ld, .column = -1};
}

static void set_identity(int64_t n, double *u, int64_t ld)
{
	for (int64_t i = 0; i < n; i++) {
		memset(u + i * ld, 0, (size_t)n * sizeof(*u));
		u[i * ld + i] = 1;
	}
}

int64_t ql_triangular_factor_small(const struct ql_ctx *ctx, int64_t n, double *u)
{
	return factor[ctx->kernels->simd->variant](n, u, n);
}

void ql_triangular_solve_small(const struct ql_ctx *ctx, int64_t n, int64_t m, const struct ql_matrix_f64 *l, bool unit,
	double *x, int64_t ldx)
{
	double rows[BLOCK * BLOCK];

	take_rows(n, l, rows);
	for (int64_t c = 0; c < m; c += STRIP)
		substitute[ctx->kernels->simd->variant](n, ql_min64(STRIP, m - c), rows, unit, x + c, ldx);
}

void ql_triangular_invert_small(const struct ql_ctx *ctx, int64_t n, double *u)
{
	struct ql_matrix_f64 l = turned(u, n, n);
	double rows[BLOCK * BLOCK];

	take_rows(n, &l, rows);
	set_identity(n, u, n);
	if (n > 0)
		substitute[ctx->kernels->simd->variant](n, n, rows, false, u + (n - 1) * n, -n);
}

void ql_triangular_square_small(int64_t n, double *u)
{
	for (int64_t i = 0; i < n; i++)
		for (int64_t j = i; j < n; j++) {
			double sum = 0;

			for (int64_t k = j; k < n; k++)
				sum += u[i * n + k] * u[j * n + k];
			u[i * n + j] = sum;
		}
}

/* ---- substitution on all threads ---- */

struct substitution {
	int64_t n, m;
	double l[BLOCK * BLOCK], *x;
	int64_t ldx;
	bool unit;
	int variant;
};

static void substitute_strips(void *arg, int64_t begin, int64_t end)
{
	const struct substitution *s = arg;

	for (int64_t i = begin; i < end; i++)
		substitute[s->variant](
			s->n, ql_min64(STRIP, s->m - i * STRIP), s->l, s->unit, s->x + i * STRIP, s->ldx);
}

/* x (n <= BLOCK, m) */
static enum ql_status solve_block(
	struct ql_ctx *ctx, int64_t n, int64_t m, const struct ql_matrix_f64 *l, bool unit, double *x, int64_t ldx)
{
	struct substitution s;

	s.n = n;
	s.m = m;
	s.x = x;
	s.ldx = ldx;
	s.unit = unit;
	s.variant = ctx->kernels->simd->variant;
	take_rows(n, l, s.l);
	return ql_parallel_for(ctx, ql_ceil_div(m, STRIP), 1, n * n * m / 2 / RATE, substitute_strips, &s);
}

enum ql_status ql_triangular_solve(
	struct ql_ctx *ctx, int64_t n, int64_t m, const struct ql_matrix_f64 *l, bool unit, double *x, int64_t ldx)
{
	enum ql_status status = QL_OK;

	for (int64_t k = 0, stop; k < n && !status; k = stop) {
		struct ql_matrix_f64 diagonal = {l->data + k * (l->row + l->column), l->row, l->column};
		struct ql_matrix_f64 below, done = {x + k * ldx, ldx, 1};

		stop = ql_min64(k + BLOCK, n);
		below = (struct ql_matrix_f64){l->data + stop * l->row + k * l->column, l->row, l->column};
		status = solve_block(ctx, stop - k, m, &diagonal, unit, x + k * ldx, ldx);
		if (!status && stop < n)
			status = ql_gemm_f64(ctx, n - stop, m, stop - k, &below, &done, x + stop * ldx, ldx,
				QL_F64_ADD | QL_F64_NEGATE);
	}
	return status;
}

/* ---- factors ---- */

enum ql_status ql_triangular_factor(struct ql_ctx *ctx, int64_t n, double *u, int64_t *pivot)
{
	enum ql_status status = QL_OK;

	*pivot = n;
	for (int64_t k = 0, stop; k < n && !status; k = stop) {
		double *diagonal = u + k * (n + 1), *right;
		struct ql_matrix_f64 l = {diagonal, 1, n}, a, b;
		int64_t done;

		stop = ql_min64(k + BLOCK, n);
		right = diagonal + (stop - k);
		done = factor[ctx->kernels->simd->variant](stop - k, diagonal, n);
		if (done < stop - k) {
			*pivot = k + done;
			return QL_OK;
		}
		if (stop == n)
			break;
		a = (struct ql_matrix_f64){right, 1, n};
		b = (struct ql_matrix_f64){right, n, 1};
		status = solve_block(ctx, stop - k, n - stop, &l, false, right, n);
		if (!status)
			status = ql_gemm_f64(ctx, n - stop, n - stop, stop - k, &a, &b, u + stop * (n + 1), n,
				QL_F64_ADD | QL_F64_NEGATE | QL_F64_UPPER);
	}
	return status;
}

/* ---- inverses and squares, in place ---- */

/* Columns that are moved out of the matrix before it gets other numbers there: rows of `columns` contiguous ones. */
struct move {
	int64_t columns, ld;
	double *from, *to;
};

static void move_rows(void *arg, int64_t begin, int64_t end)
{
	const struct move *m = arg;
	const size_t bytes = ql_size_array(m->columns, sizeof(double));

	for (int64_t i = begin; i < end; i++) {
		memcpy(m->to + i * m->columns, m->from + i * m->ld, bytes);
		memset(m->from + i * m->ld, 0, bytes);
	}
}

/* Rows 0..stop-1 of columns k..stop-1 */
static enum ql_status move_panel(
	struct ql_ctx *ctx, int64_t n, int64_t k, int64_t stop, double *u, int64_t rows, double *panel)
{
	struct move m = {stop - k, n, u + k, panel};

	return ql_parallel_for(ctx, rows, BLOCK, rows * (stop - k), move_rows, &m);
}

static enum ql_status invert_block(struct ql_ctx *ctx, int64_t n, int64_t k, int64_t stop, double *u, double *panel)
{
	int64_t size = stop - k;
	double *diagonal = u + k * (n + 1);
	struct ql_matrix_f64 a = {panel + size - 1, size, -1}, b = {u + (stop - 1) * n + k, -n, 1};
	struct ql_matrix_f64 l = {panel + (size - 1) * (size + 1), -size, -1};
	enum ql_status status;

	for (int64_t i = 0; i < size; i++)
		memcpy(panel + i * size, diagonal + i * n, (size_t)size * sizeof(*u));
	set_identity(size, diagonal, n);
	status = solve_block(ctx, size, n - k, &l, false, u + (stop - 1) * n + k, -n);
	if (!status && k > 0)
		status = move_panel(ctx, n, k, stop, u, k, panel);
	if (!status && k > 0)
		status = ql_gemm_f64(ctx, k, n - k, size, &a, &b, u + k, n, QL_F64_ADD | QL_F64_NEGATE);
	return status;
}

enum ql_status ql_triangular_invert(struct ql_ctx *ctx, int64_t n, double *u)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	double *panel = ql_scratch_array(ctx, ql_mul64(n, BLOCK), sizeof(double));
	enum ql_status status = panel ? QL_OK : QL_ERR_MEMORY;

	for (int64_t stop = n, k; stop > 0 && !status; stop = k) {
		k = (stop - 1) / BLOCK * BLOCK;
		status = invert_block(ctx, n, k, stop, u, panel);
	}
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_triangular_square(struct ql_ctx *ctx, int64_t n, double *u)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	double *panel = ql_scratch_array(ctx, ql_mul64(n, BLOCK), sizeof(double));
	enum ql_status status = panel ? QL_OK : QL_ERR_MEMORY;

	for (int64_t k = 0, stop; k < n && !status; k = stop) {
		struct ql_matrix_f64 a, b;

		stop = ql_min64(k + BLOCK, n);
		a = (struct ql_matrix_f64){panel, stop - k, 1};
		b = (struct ql_matrix_f64){panel, 1, stop - k};
		for (int64_t i = k; i < stop; i++)
			memset(u + i * n + k, 0, (size_t)(i - k) * sizeof(*u));
		status = move_panel(ctx, n, k, stop, u, stop, panel);
		if (!status)
			status = ql_gemm_f64(ctx, stop, stop, stop - k, &a, &b, u, n, QL_F64_ADD | QL_F64_UPPER);
	}
	ql_scratch_release(ctx, mark);
	return status;
}
