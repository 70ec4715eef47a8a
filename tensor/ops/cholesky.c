/* SPDX-License-Identifier: MIT
 * Cholesky factors of symmetric positive definite matrices, and inverses by them, computed in float64. A matrix is copied into the upper
 * triangle of a work matrix, turned so that tensor/gemm/triangular.h computes what is wanted there, and copied back.
 *
 * inversefactor: with M the matrix H whose rows and columns are reversed and M = T'T, H is R R' with the upper R that is T' reversed. Its
 * inverse is the upper factor of H^-1, as R^-T R^-1 = (R R')^-1: half the work of inverting H and factoring that.
 */
#include <stdio.h>

#include "tensor/gemm/triangular.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define SIDE 32         /* of blocks that are copied at a time */
#define GROUP (1 << 18) /* numbers of the small matrices that are computed at a time */

enum kind { FACTOR, INVERSE_FACTOR, INVERSE };

struct job {
	enum kind kind;
	bool upper;
	int64_t n, first; /* the first matrix of a group */
	const struct ql_ctx *ctx;
	const struct ql_tensor *in, *out; /* float32 or float64; out is contiguous */
	double *work;                     /* (n, n) for each matrix of the group */
	int64_t *pivot;                   /* of each: n, or the first one that is not above 0; of INVERSE: that is 0 */
};

/* ---- copies ---- */

/* One matrix: element (i, j) of the work matrix is at[i * row + j * column] of the tensor, and the other way round for results, whose
 * elements that the kind does not give are 0. */
struct copy {
	const struct job *job;
	unsigned dtype;
	int64_t from; /* offset of element (0, 0) */
	int64_t row, column;
	double *work;
};

static int64_t matrix_offset(const struct ql_tensor *t, int64_t i)
{
	int64_t offset = t->offset;

	for (int d = t->rank - 3; d >= 0; i /= t->shape[d], d--)
		offset += i % t->shape[d] * t->stride[d];
	return offset;
}

static struct copy copy_in(const struct job *j, int64_t matrix)
{
	const struct ql_tensor *t = j->in;
	int64_t row = t->stride[t->rank - 2], column = t->stride[t->rank - 1];
	struct copy c = {j, t->dtype, matrix_offset(t, j->first + matrix), column, row, j->work + matrix * j->n * j->n};

	if (j->kind == INVERSE && j->upper) {
		c.row = row;
		c.column = column;
	} else if (j->kind == INVERSE_FACTOR) {
		c.from += (j->n - 1) * (row + column);
		c.row = -row;
		c.column = -column;
	}
	return c;
}

/* Rows of blocks */
static void read_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct copy *c = arg;
	const int64_t n = c->job->n;
	const void *data = c->job->in->storage->data;

	for (int64_t b = begin; b < end; b++)
		for (int64_t j0 = b * SIDE; j0 < n; j0 += SIDE)
			for (int64_t i = b * SIDE; i < ql_min64(b * SIDE + SIDE, n); i++)
				for (int64_t j = j0; j < ql_min64(j0 + SIDE, n); j++) {
					int64_t at = c->from + i * c->row + j * c->column;

					c->work[i * n + j] = c->dtype == QL_float64 ? ((const double *)data)[at]
										    : (double)((const float *)data)[at];
				}
}

/* Element (i, j) of the result. */
static double result(const struct job *j, const double *work, int64_t r, int64_t c)
{
	const int64_t n = j->n;

	if (j->kind == INVERSE)
		return c >= r ? work[r * n + c] : work[c * n + r];
	if (j->kind == INVERSE_FACTOR)
		return c >= r ? work[(n - 1 - c) * n + n - 1 - r] : 0;
	if (j->upper)
		return c >= r ? work[r * n + c] : 0;
	return c <= r ? work[c * n + r] : 0;
}

static void write_blocks(void *arg, int64_t begin, int64_t end)
{
	const struct copy *c = arg;
	const int64_t n = c->job->n;
	void *data = c->job->out->storage->data;

	for (int64_t b = begin; b < end; b++)
		for (int64_t j0 = 0; j0 < n; j0 += SIDE)
			for (int64_t i = b * SIDE; i < ql_min64(b * SIDE + SIDE, n); i++)
				for (int64_t j = j0; j < ql_min64(j0 + SIDE, n); j++) {
					double x = result(c->job, c->work, i, j);

					if (c->dtype == QL_float64)
						((double *)data)[c->from + i * n + j] = x;
					else
						((float *)data)[c->from + i * n + j] = (float)x;
				}
}

static struct copy copy_out(const struct job *j, int64_t matrix)
{
	return (struct copy){
		j, j->out->dtype, matrix_offset(j->out, j->first + matrix), 0, 0, j->work + matrix * j->n * j->n};
}

/* ---- matrices ---- */

static int64_t zero_on_diagonal(int64_t n, const double *u)
{
	int64_t i = 0;

	while (i < n && u[i * (n + 1)] != 0)
		i++;
	return i;
}

static int64_t blocks(int64_t n)
{
	return ql_ceil_div(n, SIDE);
}

static void small_matrices(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t m = begin; m < end; m++) {
		struct copy in = copy_in(j, m), out = copy_out(j, m);

		read_blocks(&in, 0, blocks(j->n));
		j->pivot[m] = j->kind == INVERSE ? zero_on_diagonal(j->n, in.work)
						 : ql_triangular_factor_small(j->ctx, j->n, in.work);
		if (j->pivot[m] < j->n)
			continue;
		if (j->kind != FACTOR)
			ql_triangular_invert_small(j->ctx, j->n, in.work);
		if (j->kind == INVERSE)
			ql_triangular_square_small(j->n, in.work);
		write_blocks(&out, 0, blocks(j->n));
	}
}

static enum ql_status large_matrix(struct ql_ctx *ctx, struct job *j)
{
	struct copy in = copy_in(j, 0), out = copy_out(j, 0);
	int64_t n = j->n;
	enum ql_status status = ql_parallel_for(ctx, blocks(n), 1, n * n, read_blocks, &in);

	if (!status && j->kind != INVERSE)
		status = ql_triangular_factor(ctx, n, j->work, j->pivot);
	else if (!status)
		*j->pivot = zero_on_diagonal(n, j->work);
	if (status || *j->pivot < n)
		return status;
	if (j->kind != FACTOR)
		status = ql_triangular_invert(ctx, n, j->work);
	if (!status && j->kind == INVERSE)
		status = ql_triangular_square(ctx, n, j->work);
	return status ? status : ql_parallel_for(ctx, blocks(n), 1, n * n, write_blocks, &out);
}

static enum ql_status fail_pivot(struct ql_ctx *ctx, const struct job *j, const char *op, int64_t matrix)
{
	int64_t pivot = j->pivot[matrix];
	double value = j->work[matrix * j->n * j->n + pivot * (j->n + 1)];
	char which[48] = "";

	if (j->in->rank > 2)
		snprintf(which, sizeof(which), " of matrix %lld", (long long)(j->first + matrix + 1));
	if (j->kind == INVERSE)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"%s: wanted a factor without zeros on its diagonal, got 0 at place %lld%s", op,
			(long long)pivot + 1, which);
	if (j->kind == INVERSE_FACTOR)
		pivot = j->n - 1 - pivot;
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"%s: wanted a symmetric positive definite matrix, got %.6g as pivot %lld%s; add a multiple of the identity",
		op, value, (long long)pivot + 1, which);
}

/* All matrices of j->in, a group at a time. */
static enum ql_status all_matrices(struct ql_ctx *ctx, struct job *j, const char *op, int64_t batches)
{
	const bool small = j->n <= QL_TRIANGULAR_SMALL;
	int64_t group = small ? ql_min64(batches, GROUP / (j->n * j->n)) : 1;
	enum ql_status status = QL_OK;

	j->pivot = ql_alloc_array(ctx, group, sizeof(*j->pivot));
	j->work = ql_alloc_array(ctx, ql_mul64(group, ql_mul64(j->n, j->n)), sizeof(*j->work));
	if (!j->pivot || !j->work)
		status = QL_ERR_MEMORY;
	for (j->first = 0; j->first < batches && !status; j->first += group) {
		int64_t count = ql_min64(group, batches - j->first);

		status = small ? ql_parallel_for(ctx, count, 1, count * j->n * j->n * j->n, small_matrices, j)
			       : large_matrix(ctx, j);
		for (int64_t m = 0; m < count && !status; m++)
			if (j->pivot[m] < j->n)
				status = fail_pivot(ctx, j, op, m);
	}
	ql_free(ctx, j->work);
	ql_free(ctx, j->pivot);
	return status;
}

/* ---- the ops ---- */

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	unsigned dtype = ql_operand_dtype(x);
	char text[QL_SHAPE_TEXT];

	if (x->rank < 2 || x->shape[x->rank - 1] != x->shape[x->rank - 2])
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted square matrices (…, n, n), got %s", call->op->doc.name,
			ql_shape_text(x->rank, x->shape, text));
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_float32, x->rank, x->shape);
	return QL_OK;
}

/* Gives t itself if it is float32 or float64, else a tensor for or of its numbers in float64. */
static enum ql_status as_wide(struct ql_ctx *ctx, struct ql_tensor *t, bool copy, struct ql_tensor **out)
{
	if (t->dtype == QL_float32 || t->dtype == QL_float64) {
		*out = ql_tensor_keep(t);
		return QL_OK;
	}
	return copy ? ql_tensor_cast(ctx, t, QL_float64, out) : ql_tensor_new(ctx, QL_float64, t->rank, t->shape, out);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	struct ql_tensor *in = NULL, *out = NULL;
	struct job j = {.upper = ql_call_bool(call, "upper", false), .n = x->shape[x->rank - 1], .ctx = ctx};
	int64_t elements = ql_tensor_nelem(x);
	enum ql_status status = as_wide(ctx, call->in[0], true, &in);

	j.kind = *(const enum kind *)call->op->impl;
	call->path = ql_dtype_name(QL_float64);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = as_wide(ctx, call->out[0], false, &out);
	j.in = in;
	j.out = out;
	if (!status && elements > 0)
		status = all_matrices(ctx, &j, call->op->doc.name, elements / j.n / j.n);
	if (!status && out != call->out[0])
		status = ql_tensor_copy(ctx, call->out[0], out);
	ql_tensor_release(ctx, in);
	ql_tensor_release(ctx, out);
	return status;
}

static const enum kind kinds[] = {FACTOR, INVERSE_FACTOR, INVERSE};

/* ---- gradients ---- */

/* The triangle of t with half of its diagonal. */
static struct ql_tensor *half_triangle(struct ql_back *b, const struct ql_op *part, struct ql_tensor *t)
{
	struct ql_named strict[] = {{"diagonal", {.i = part == &ql_op_tril ? -1 : 1}}, {NULL, {.set = false}}};
	struct ql_tensor *with = ql_back_run(b, part, t, NULL), *without = ql_back_with(b, part, t, NULL, strict);

	return ql_back_scaled(b, ql_back_run(b, &ql_op_add, with, without), 0.5);
}

static struct ql_tensor *transposed(struct ql_back *b, struct ql_tensor *t)
{
	return t ? ql_back_transpose(b, t, t->rank - 2, t->rank - 1) : NULL;
}

static struct ql_tensor *product(struct ql_back *b, struct ql_tensor *x, struct ql_tensor *y)
{
	return ql_back_run(b, &ql_op_matmul, x, y);
}

/* (t + t') / 2 */
static struct ql_tensor *symmetric(struct ql_back *b, struct ql_tensor *t)
{
	return ql_back_scaled(b, ql_back_run(b, &ql_op_add, t, transposed(b, t)), 0.5);
}

/* With P the lower triangle of L' gL and half of its diagonal, the gradient is the symmetric part of L^-T P L^-1 (Murray, Differentiation
 * of the Cholesky decomposition, arXiv 1602.07527). */
static enum ql_status factor_backward(struct ql_back *b)
{
	struct ql_named from_left[] = {{"transpose", {.b = true}}, {NULL, {.set = false}}};
	struct ql_named from_right[] = {{"left", {.b = false}}, {NULL, {.set = false}}};
	bool upper = ql_call_bool(&b->call, "upper", false);
	struct ql_tensor *l = ql_back_out(b, 0), *g = ql_back_grad(b, 0), *p;

	if (upper) {
		l = transposed(b, l);
		g = transposed(b, g);
	}
	p = half_triangle(b, &ql_op_tril, product(b, transposed(b, l), g));
	p = ql_back_with(b, &ql_op_solvetriangular, l, p, from_left);
	p = ql_back_with(b, &ql_op_solvetriangular, l, p, from_right);
	ql_back_give(b, 0, symmetric(b, p));
	return b->status;
}

/* With R = U^-1 and H = R R' the same formula is, of the upper triangle, U' P U with P that of -gU U'. */
static enum ql_status inverse_factor_backward(struct ql_back *b)
{
	struct ql_tensor *u = ql_back_out(b, 0), *g = ql_back_grad(b, 0);
	struct ql_tensor *p = half_triangle(b, &ql_op_triu, product(b, g, transposed(b, u)));

	p = product(b, product(b, transposed(b, u), p), u);
	ql_back_give(b, 0, ql_back_scaled(b, symmetric(b, p), -1));
	return b->status;
}

/* Of A^-1 with A = L L': gA = -A^-1 g A^-1, gL = the lower triangle of (gA + gA') L; U is L'. */
static enum ql_status inverse_backward(struct ql_back *b)
{
	bool upper = ql_call_bool(&b->call, "upper", false);
	struct ql_tensor *x = ql_back_in(b, 0), *y = ql_back_out(b, 0), *g = symmetric(b, ql_back_grad(b, 0));

	g = product(b, product(b, y, g), y);
	g = upper ? product(b, x, g) : product(b, g, x);
	ql_back_give(b, 0, ql_back_scaled(b, ql_back_run(b, upper ? &ql_op_triu : &ql_op_tril, g, NULL), -2));
	return b->status;
}

static const struct ql_attr attrs[] = {
	{"upper", QL_ATTR_BOOL, 0, NULL,
		"the upper factor U, with U'U = x, in place of the lower L, with LL' = x (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_cholesky = {
	.doc = {.name = "cholesky",
		.usage = "x:cholesky{upper=false}",
		.text = "The Cholesky factor L, lower, with LL' = x, of symmetric positive definite matrices (…, n, n), of which the lower "
			"triangle is read. Computed in float64, products in order of k, with the same bits on every processor. A pivot that is "
			"not above 0 is an error that names it: x + eps * tensor.eye(n) has larger ones. The gradient is symmetric.",
		.example = "print(tensor{{4,2},{2,5}}:cholesky():view(4))  --> float32(4)  2 0 1 2",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = factor_backward,
	.saves = QL_SAVE_RESULT,
	.impl = &kinds[FACTOR],
};

const struct ql_op ql_op_inversefactor = {
	.doc = {.name = "inversefactor",
		.usage = "x:inversefactor()",
		.text = "The upper Cholesky factor U of the inverse: U'U = x^-1, of symmetric positive definite matrices (…, n, n), of which the "
			"lower triangle is read. It is the inverse of the upper R with RR' = x, so x^-1 itself is not computed: what GPTQ "
			"needs of its second moments. Pivots are counted from the first row and computed from the last one. Otherwise as "
			"`x:cholesky`.",
		.example =
			"u = tensor{{4,2},{2,2}}:inversefactor()\nprint(u:t():matmul(u):view(4))  --> float32(4)  0.5000 -0.5000 -0.5000 1.0000",
		.attrs = NULL},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = inverse_factor_backward,
	.saves = QL_SAVE_RESULT,
	.impl = &kinds[INVERSE_FACTOR],
};

static const struct ql_attr inverse_attrs[] = {
	{"upper", QL_ATTR_BOOL, 0, NULL, "x is the upper factor (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_choleskyinverse = {
	.doc = {.name = "choleskyinverse",
		.usage = "x:choleskyinverse{upper=false}",
		.text = "The inverse of symmetric positive definite matrices (…, n, n) from their Cholesky factors x (`x:cholesky`), of which one "
			"triangle is read. Computed in float64, with the same bits on every processor; symmetric.",
		.example =
			"print(tensor{{4,2},{2,5}}:cholesky():choleskyinverse():view(4))  --> float32(4)  0.3125 -0.1250 -0.1250 0.2500",
		.attrs = inverse_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = inverse_backward,
	.saves = QL_SAVE(0) | QL_SAVE_RESULT,
	.impl = &kinds[INVERSE],
};
