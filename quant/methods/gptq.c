/* SPDX-License-Identifier: MIT
 * GPTQ (Frantar et al., arXiv 2210.17323; formulas of IST-DASLab/gptq): the columns of a weight W (rows, columns) are rounded in order,
 * and the error of each is taken off the columns that follow, as far as the second moments H of the inputs say that they can make up
 * for it. With U upper triangular, U'U = H^-1:
 *
 *   e_j = (w_j - q_j) / U_jj      w_k -= e_j U_jk   for k > j
 *
 * Columns are taken in blocks: within one, errors go to the rest of it at once, to the columns behind it at its end. Rows are
 * independent and run in parallel; each element takes its errors in the order of the columns, in float64.
 */
#include <math.h>
#include <string.h>

#include "quant/ranges/columns.h"
#include "tensor/codec.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tensor/op.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define BLOCK 128   /* columns */
#define ROWS 16     /* of a task */
#define ROUND_NS 25 /* an element */

struct run {
	struct ql_columns columns;
	double *w;            /* (rows, columns), in the order of rounding */
	float *rounded;       /* what is encoded, in the order of the weight */
	double *error;        /* (rows, BLOCK), of the block */
	const double *u;      /* (groups, columns, columns) */
	const int64_t *order; /* (groups, columns), from 0; NULL: that of the weight */
	int64_t per;          /* rows of a group */
	int64_t first, stop;  /* columns of the block */
	int64_t begin, end;   /* columns of it that are rounded now */
	int variant;
};

/* w[k] -= e u[k] for the columns k of 0 .. n - 1. */
QL_SIMD(void, subtract, (double *restrict w, double e, const double *restrict u, int64_t n), {
	for (int64_t k = 0; k < n; k++)
		w[k] -= e * u[k];
})

/* The column of the weight that a row's group rounds as its j-th. */
static int64_t column_of(const struct run *g, int64_t row, int64_t j)
{
	return g->order ? g->order[row / g->per * g->columns.columns + j] : j;
}

static const double *factor_of(const struct run *g, int64_t row)
{
	return g->u + row / g->per * g->columns.columns * g->columns.columns;
}

static void round_row(const struct run *g, int64_t row)
{
	int64_t n = g->columns.columns;
	double *w = g->w + row * n, *error = g->error + row * BLOCK;
	const double *u = factor_of(g, row);

	for (int64_t j = g->begin; j < g->end; j++) {
		int64_t column = column_of(g, row, j);
		float x = (float)w[j];
		double *e = error + (j - g->first);

		*e = (w[j] - (double)ql_columns_round(&g->columns, row, column, x)) / u[j * n + j];
		g->rounded[row * n + column] = x;
		subtract[g->variant](w + j + 1, *e, u + j * n + j + 1, g->stop - j - 1);
	}
}

static void round_rows(void *arg, int64_t begin, int64_t end)
{
	for (int64_t row = begin; row < end; row++)
		round_row(arg, row);
}

/* Takes the errors of the block off the columns behind it. */
static enum ql_status pass_on(struct ql_ctx *ctx, const struct run *g)
{
	int64_t n = g->columns.columns, left = n - g->stop;
	enum ql_status status = QL_OK;

	for (int64_t row = 0; row < g->columns.rows && left > 0 && !status; row += g->per) {
		struct ql_matrix_f64 error = {g->error + row * BLOCK, BLOCK, 1},
				     u = {factor_of(g, row) + g->first * n + g->stop, n, 1};

		status = ql_gemm_f64(ctx, g->per, left, g->stop - g->first, &error, &u, g->w + row * n + g->stop, n,
			QL_F64_ADD | QL_F64_NEGATE);
	}
	return status;
}

/* Fits the scales of the columns from `first` on to what is left of them. */
static enum ql_status fit_group(struct ql_ctx *ctx, struct run *g, int64_t first)
{
	int64_t n = g->columns.columns, left = n - first;
	int64_t shape[2] = {g->columns.rows, left < g->columns.group ? left : g->columns.group};
	struct ql_tensor *part;
	enum ql_status status = ql_tensor_new(ctx, QL_float32, 2, shape, &part);
	float *to = status ? NULL : ql_tensor_data(part);

	if (status)
		return status;
	for (int64_t i = 0; i < shape[0] * shape[1]; i++)
		to[i] = (float)g->w[i / shape[1] * n + first + i % shape[1]];
	status = ql_columns_fit(ctx, &g->columns, first, part);
	ql_tensor_release(ctx, part);
	return status;
}

/* Rounds the columns of a block, group by group. */
static enum ql_status round_block(struct ql_ctx *ctx, struct run *g)
{
	int64_t group = g->columns.group, rows = g->columns.rows;
	enum ql_status status = QL_OK;

	for (g->begin = g->first; g->begin < g->stop && !status; g->begin = g->end) {
		g->end = group && group < g->stop - g->begin ? g->begin + group : g->stop;
		if (group && g->begin % group == 0)
			status = fit_group(ctx, g, g->begin);
		if (!status)
			status = ql_parallel_for(ctx, rows, ROWS, rows * (g->end - g->begin) * ROUND_NS, round_rows, g);
	}
	return status;
}

/* Blocks end where groups do, or lie within one. */
static int64_t end_of_block(const struct run *g, int64_t first)
{
	int64_t group = g->columns.group, n = g->columns.columns, end = first + BLOCK;

	if (group && group <= BLOCK)
		end = first + BLOCK / group * group;
	else if (group && end > first / group * group + group)
		end = first / group * group + group;
	return end < n ? end : n;
}

static enum ql_status round_all(struct ql_ctx *ctx, struct run *g)
{
	int64_t n = g->columns.columns;
	enum ql_status status = QL_OK;

	for (g->first = 0; g->first < n && !status; g->first = g->stop) {
		g->stop = end_of_block(g, g->first);
		status = round_block(ctx, g);
		if (!status)
			status = pass_on(ctx, g);
	}
	return status;
}

/* ---- the op ---- */

static const struct ql_attr attrs[] = {
	{"spec", QL_ATTR_SPEC, QL_POSITIONAL | QL_REQUIRED, NULL, "a spec like 'int4:32' or {bits=4, axis=1}"},
	{"order", QL_ATTR_TENSOR, QL_OPERAND, "int",
		"the order of rounding: the columns, from 1, for all rows or (groups, columns); scales are fitted first"},
	{"static", QL_ATTR_BOOL, 0, NULL, "fit all scales to the weight before anything is rounded (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status check_factor(struct ql_ctx *ctx, const struct ql_tensor *w, const struct ql_tensor *u)
{
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	int64_t groups = u->rank == 3 ? u->shape[0] : 1;

	if (w->rank == 2 && (u->rank == 2 || u->rank == 3) && u->shape[u->rank - 1] == w->shape[1] &&
		u->shape[u->rank - 2] == w->shape[1] && groups > 0 && w->shape[0] % groups == 0)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE,
		"gptq: wanted a weight (rows, n) and a factor (n, n) or (groups, n, n), got %s and %s",
		ql_shape_text(w->rank, w->shape, a), ql_shape_text(u->rank, u->shape, b));
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *w = call->in[0], *u = call->in[1];
	const struct ql_value *spec = ql_call_attr(call, "spec");
	enum ql_status status;

	if (!spec)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "gptq: spec: wanted a spec, got false");
	if (w->q || !ql_dtype_is_float(w->dtype) || u->q || !ql_dtype_is_float(u->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "gptq: wanted plain floats, got %s and %s", ql_dtype_name(w->dtype),
			ql_dtype_name(u->dtype));
	status = check_factor(ctx, w, u);
	if (!status)
		ql_result_set(call, 0, spec->spec->dtype, w->rank, w->shape);
	return status;
}

/* The pivots, which everything is divided by. */
static enum ql_status check_pivots(struct ql_ctx *ctx, const double *u, int64_t groups, int64_t n)
{
	for (int64_t i = 0; i < groups * n; i++) {
		double pivot = u[i / n * n * n + i % n * (n + 1)];

		if (!(pivot > 0) || !isfinite(pivot))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"gptq: the factor: wanted numbers > 0 on its diagonal, got %g at %lld", pivot,
				(long long)(i % n + 1));
	}
	return QL_OK;
}

/* Reads the order, which must be a permutation for each group, from 0. */
static enum ql_status take_order(struct ql_ctx *ctx, struct run *g, const struct ql_tensor *order, int64_t groups)
{
	int64_t n = g->columns.columns, given = ql_tensor_nelem(order);
	int64_t all = ql_mul64(groups, n), *to = ql_scratch_array(ctx, all, sizeof(*to));
	char *seen = ql_scratch_array(ctx, n, 1);

	if (!to || !seen)
		return QL_ERR_MEMORY;
	if (order->q || ql_dtype_is_float(order->dtype) || (given != n && given != groups * n))
		return ql_fail(ctx, QL_ERR_SHAPE, "gptq: order: wanted %lld integers for each group, got %lld of %s",
			(long long)n, (long long)given, ql_dtype_name(order->dtype));
	for (int64_t i = 0; i < all; i++) {
		double at = ql_tensor_at_f64(order, i % given);

		if (i % n == 0)
			memset(seen, 0, (size_t)n);
		if (!(at >= 1 && at <= (double)n) || seen[(int64_t)at - 1])
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"gptq: order: wanted each column from 1 to %lld once, got %g", (long long)n, at);
		to[i] = (int64_t)at - 1;
		seen[to[i]] = 1;
	}
	g->order = to;
	return QL_OK;
}

static enum ql_status take_weight(struct ql_ctx *ctx, struct run *g, const float *w)
{
	int64_t rows = g->columns.rows, n = g->columns.columns;

	g->w = ql_scratch_array(ctx, ql_mul64(rows, n), sizeof(*g->w));
	g->error = ql_scratch_array(ctx, rows, BLOCK * sizeof(*g->error));
	if (!g->w || !g->error)
		return QL_ERR_MEMORY;
	for (int64_t row = 0; row < rows; row++)
		for (int64_t j = 0; j < n; j++)
			g->w[row * n + j] = (double)w[row * n + column_of(g, row, j)];
	return QL_OK;
}

static const struct ql_tensor *order_of(const struct ql_call *call)
{
	return call->n_in > 2 ? call->in[2] : NULL;
}

/* w and u: contiguous float32 and float64; rounded: room for what is encoded. */
static enum ql_status compensate(
	struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *w, struct ql_tensor *u, struct ql_tensor *rounded)
{
	const struct ql_value *fixed = ql_call_attr(call, "static");
	const struct ql_tensor *order = order_of(call);
	int64_t groups = u->rank == 3 ? u->shape[0] : 1;
	struct run g = {.u = ql_tensor_data(u),
		.rounded = ql_tensor_data(rounded),
		.per = w->shape[0] / groups,
		.variant = ctx->kernels->simd->variant};
	enum ql_status status = check_pivots(ctx, g.u, groups, w->shape[1]);

	if (status)
		return status;
	status = ql_columns_open(ctx, &g.columns, ql_call_attr(call, "spec")->spec, w, !order && !(fixed && fixed->b));
	if (status)
		return status;
	if (order)
		status = take_order(ctx, &g, order, groups);
	if (!status)
		status = take_weight(ctx, &g, ql_tensor_data(w));
	if (!status)
		status = round_all(ctx, &g);
	if (!status)
		status = ql_encode(ctx, rounded, g.columns.codes, NULL, NULL);
	if (status)
		ql_tensor_release(ctx, g.columns.codes);
	else
		call->out[0] = g.columns.codes;
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *w = NULL, *u = NULL, *rounded = NULL;
	enum ql_status status = ql_tensor_cast(ctx, call->in[0], QL_float32, &w);

	call->path = ql_dtype_name(ql_call_attr(call, "spec")->spec->dtype);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_tensor_cast(ctx, call->in[1], QL_float64, &u);
	if (!status)
		status = ql_tensor_new(ctx, QL_float32, w->rank, w->shape, &rounded);
	if (!status)
		status = compensate(ctx, call, w, u, rounded);
	ql_tensor_release(ctx, w);
	ql_tensor_release(ctx, u);
	ql_tensor_release(ctx, rounded);
	ql_scratch_release(ctx, mark);
	return status;
}

extern const struct ql_op ql_op_gptq;
const struct ql_op ql_op_gptq = {
	.doc = {.name = "gptq",
		.usage = "w:gptq(u, 'int4:32')  w:gptq(u, 'int4/1', {order=p})",
		.text = "Quantizes a weight (rows, n) so that its products with the inputs keep their values, instead of its "
			"elements: each column is rounded, and its error is taken off the columns behind it (GPTQ, arXiv "
			"2210.17323). u is the upper triangular factor of the inverse of H = X'X + damping, H:inversefactor(): (n, n), or "
			"(groups, n, n) if groups of rows have inputs of their own. Scales of blocks are fitted when their turn "
			"comes, unless static=true or order= is given; then H must have its rows and columns in that order.",
		.example = "w, x = tensor.randn(8, 16), tensor.randn(64, 16):to 'float64'\n"
			   "u = (x:t():matmul(x) + tensor.eye(16):to 'float64'):inversefactor()\n"
			   "print(w:gptq(u, 'int4/1'):spec())  --> int4/1",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 3,
	.infer = infer,
	.eval = eval,
	.allocates = true,
};
