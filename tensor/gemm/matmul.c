/* SPDX-License-Identifier: MIT
 * Planning of matrix products, and the epilogue of linear.
 */
#include "tensor/gemm/matmul.h"

#include <string.h>

#include "tensor/codec.h"
#include "tensor/gemm/coded.h"
#include "tensor/half.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/map.h"
#include "tensor/ops.h"
#include "tensor/view.h"

static enum ql_status mismatch(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *a, const struct ql_tensor *b, const char *wanted)
{
	char x[QL_SHAPE_TEXT], y[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted %s, got %s x %s", op, wanted, ql_shape_text(a->rank, a->shape, x),
		ql_shape_text(b->rank, b->shape, y));
}

/* Batch axis d of the result, counted from the last batch axis backwards. */
static bool plan_batch_axis(
	struct ql_matmul *p, const struct ql_tensor *a, const struct ql_tensor *b, int a_batch, int b_batch, int back)
{
	int d = p->batch_rank - 1 - back, ia = a_batch - 1 - back, ib = b_batch - 1 - back;
	int64_t sa = ia >= 0 ? a->shape[ia] : 1, sb = ib >= 0 ? b->shape[ib] : 1;

	if (sa != sb && sa != 1 && sb != 1)
		return false;
	p->batch_shape[d] = sa == 1 ? sb : sa;
	p->a_batch[d] = ia >= 0 && sa != 1 ? a->stride[ia] : 0;
	p->b_batch[d] = ib >= 0 && sb != 1 ? b->stride[ib] : 0;
	p->batches *= p->batch_shape[d];
	return true;
}

enum ql_status ql_matmul_plan(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *a, const struct ql_tensor *b, struct ql_matmul *p)
{
	int ra = a->rank, rb = b->rank, a_batch = ra > 2 ? ra - 2 : 0, b_batch = rb > 2 ? rb - 2 : 0;

	*p = (struct ql_matmul){.batches = 1};
	if (ra == 0 || rb == 0)
		return mismatch(ctx, op, a, b, "operands with at least one axis");
	p->m = ra > 1 ? a->shape[ra - 2] : 1;
	p->k = a->shape[ra - 1];
	p->n = rb > 1 ? b->shape[rb - 1] : 1;
	if (p->k != (rb > 1 ? b->shape[rb - 2] : b->shape[0]))
		return mismatch(ctx, op, a, b, "equal inner sizes (…, m, k) x (…, k, n)");
	p->a_row = ra > 1 ? a->stride[ra - 2] : 0;
	p->a_col = a->stride[ra - 1];
	p->b_row = rb > 1 ? b->stride[rb - 2] : b->stride[0];
	p->b_col = rb > 1 ? b->stride[rb - 1] : 0;
	p->batch_rank = a_batch > b_batch ? a_batch : b_batch;
	for (int back = 0; back < p->batch_rank; back++)
		if (!plan_batch_axis(p, a, b, a_batch, b_batch, back))
			return mismatch(ctx, op, a, b, "batch sizes that broadcast");
	for (int d = 0; d < p->batch_rank; d++)
		p->shape[p->rank++] = p->batch_shape[d];
	if (ra > 1)
		p->shape[p->rank++] = p->m;
	if (rb > 1)
		p->shape[p->rank++] = p->n;
	return QL_OK;
}

void ql_matmul_batch(const struct ql_matmul *p, const struct ql_tensor *a, const struct ql_tensor *b, int64_t i,
	int64_t *a_offset, int64_t *b_offset)
{
	*a_offset = a->offset;
	*b_offset = b->offset;
	for (int d = p->batch_rank - 1; d >= 0; d--) {
		int64_t at = i % p->batch_shape[d];

		i /= p->batch_shape[d];
		*a_offset += at * p->a_batch[d];
		*b_offset += at * p->b_batch[d];
	}
}

/* All batches of a are rows of one product with the same b. */
static enum ql_status by_codes(
	struct ql_ctx *ctx, const struct ql_matmul *p, struct ql_tensor *a, struct ql_tensor *b, float *c)
{
	bool in_place = p->batches == 1 ? p->a_col == 1 || p->k == 1 : ql_tensor_is_contiguous(a);
	struct ql_tensor *rows = NULL;
	enum ql_status status = in_place ? QL_OK : ql_tensor_clone(ctx, a, &rows);

	if (!status)
		status = ql_gemm_coded(ctx, p->batches * p->m, ql_tensor_data(rows ? rows : a),
			in_place && p->batches == 1 ? p->a_row : p->k, b, c);
	ql_tensor_release(ctx, rows);
	return status;
}

/* Gives t itself when it is float32, quantized or, with `halves`, of 16 bits, else a contiguous cast to float32. */
static enum ql_status operand(struct ql_ctx *ctx, struct ql_tensor *t, bool halves, struct ql_tensor **out)
{
	if (t->dtype != QL_float32 && !t->q && !(halves && ql_dtype_is_half(t->dtype)))
		return ql_tensor_cast(ctx, t, QL_float32, out);
	*out = ql_tensor_keep(t);
	return QL_OK;
}

static struct ql_matrix_float matrix_of(const struct ql_tensor *t, int64_t offset, int64_t row, int64_t column)
{
	return (struct ql_matrix_float){
		(const char *)t->storage->data + offset * (ql_dtypes[t->dtype].bits / 8), t->dtype, row, column};
}

static enum ql_status one(struct ql_ctx *ctx, const struct ql_matmul *p, const struct ql_matrix_float *a,
	const struct ql_matrix_float *b, float *c)
{
	if (ctx->kernels->bf16)
		return ql_gemm_bf16(ctx, p->m, p->n, p->k, a, b, c, p->n);
	if (a->dtype != QL_float32 || b->dtype != QL_float32)
		return ql_gemm_half(ctx, p->m, p->n, p->k, a, b, c, p->n);
	return ql_gemm_f32(ctx, p->m, p->n, p->k, a->data, a->row, a->column, b->data, b->row, b->column, c, p->n);
}

static enum ql_status batches(
	struct ql_ctx *ctx, const struct ql_matmul *p, const struct ql_tensor *a, const struct ql_tensor *b, float *c)
{
	enum ql_status status = QL_OK;
	int64_t ao, bo;

	for (int64_t i = 0; i < p->batches && !status; i++, c += p->m * p->n) {
		struct ql_matrix_float x, y;

		ql_matmul_batch(p, a, b, i, &ao, &bo);
		x = matrix_of(a, ao, p->a_row, p->a_col);
		y = matrix_of(b, bo, p->b_row, p->b_col);
		status = one(ctx, p, &x, &y, c);
	}
	return status;
}

enum ql_status ql_matmul_float(struct ql_ctx *ctx, const char *op, struct ql_tensor *a, struct ql_tensor *b, float *c)
{
	struct ql_tensor *x = NULL, *y = NULL;
	struct ql_matmul p;
	bool halves = !b->q && (ctx->kernels->bf16 || ql_dtype_is_half(b->dtype));
	enum ql_status status = operand(ctx, a, halves, &x);

	if (!status)
		status = operand(ctx, b, halves, &y);
	if (!status)
		status = ql_matmul_plan(ctx, op, x, y, &p);
	if (!status)
		status = b->q ? by_codes(ctx, &p, x, y, c) : batches(ctx, &p, x, y, c);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
	return status;
}

uint32_t ql_matmul_decodes(const struct ql_call *call)
{
	return call->result[0].dtype != QL_float64 && ql_gemm_coded_takes(call->in[1]) ? 2 : 0;
}

void ql_matmul_name(struct ql_ctx *ctx, struct ql_call *call)
{
	bool bf16 = ctx->kernels->bf16 && !call->in[1]->q;

	call->path = ql_dtype_name(bf16 ? QL_bfloat16 : QL_float32);
	call->kernel = bf16                                   ? ctx->kernels->gemm_bf16->name
		       : call->in[1]->q                       ? ql_gemm_coded_name(ctx)
		       : ql_dtype_is_half(call->in[1]->dtype) ? ctx->kernels->tiles->name
							      : ql_gemm_f32_name(ctx);
}

/* ---- epilogue ---- */

#define PIECE 512

void ql_epilogue_row(const struct ql_epilogue *e, int64_t j, int64_t n, float *y)
{
	float buffer[PIECE];

	if (e->bias)
		for (int64_t i = 0; i < n; i++)
			y[i] = y[i] + e->bias[j + i];
	for (int64_t i = 0; e->act && i < n; i += PIECE) {
		int64_t m = ql_min64(PIECE, n - i);
		const float *in[1] = {buffer};

		memcpy(buffer, y + i, (size_t)m * sizeof(*y));
		e->act->f32[e->variant](m, y + i, in, &e->args);
	}
}

/* Gives the bias as float32: itself if it is, unless the call writes into an operand. */
static enum ql_status bias_values(struct ql_ctx *ctx, const struct ql_call *call, int64_t n, struct ql_tensor **out)
{
	struct ql_tensor *bias = call->in[2];
	char text[QL_SHAPE_TEXT];

	if (bias->rank != 1 || bias->shape[0] != n)
		return ql_fail(ctx, QL_ERR_SHAPE, "linear: bias: wanted shape (%lld), got %s", (long long)n,
			ql_shape_text(bias->rank, bias->shape, text));
	if (bias->dtype == QL_float32 && !bias->q && !call->into && bias->storage->data &&
		ql_tensor_is_contiguous(bias)) {
		*out = ql_tensor_keep(bias);
		return QL_OK;
	}
	return bias->q ? ql_decode(ctx, bias, out) : ql_tensor_cast(ctx, bias, QL_float32, out);
}

/* The op without options. */
static enum ql_status activation(struct ql_ctx *ctx, const char *name, struct ql_epilogue *e)
{
	struct ql_call call = {.op = ql_op_by_name(ql_ops, name)};

	e->act = call.op->impl;
	e->args = (struct ql_map_args){.p = {0}};
	return e->act->prepare ? e->act->prepare(ctx, &call, &e->args) : QL_OK;
}

enum ql_status ql_epilogue_of(
	struct ql_ctx *ctx, const struct ql_call *call, int64_t n, struct ql_epilogue *e, struct ql_tensor **keep)
{
	const char *act = ql_call_string(call, "act", NULL);
	enum ql_status status;

	*keep = NULL;
	*e = (struct ql_epilogue){.variant = ctx->kernels->simd->variant};
	e->relu = act && !strcmp(act, "relu");
	status = act ? activation(ctx, act, e) : QL_OK;
	if (status || call->n_in < 3)
		return status;
	status = bias_values(ctx, call, n, keep);
	if (!status)
		e->bias = ql_tensor_data(*keep);
	return status;
}

/* ---- linear ---- */

enum ql_status ql_linear_operands(
	struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor **x, struct ql_tensor **w)
{
	struct ql_tensor *in = call->in[0], *dense;
	int64_t shape[2] = {1, in->shape[in->rank - 1]};
	enum ql_status status;

	*x = *w = NULL;
	for (int d = 0; d < in->rank - 1; d++)
		shape[0] *= in->shape[d];
	if (ql_view_can_reshape(in, 2, shape)) {
		dense = ql_tensor_keep(in);
	} else {
		status = ql_tensor_clone(ctx, in, &dense);
		if (status)
			return status;
	}
	if (dense->rank == 2)
		*x = ql_tensor_keep(dense);
	status = *x ? QL_OK : ql_view_reshape(ctx, "linear", dense, 2, shape, x);
	ql_tensor_release(ctx, dense);
	if (!status)
		status = ql_view_permute(ctx, "linear", call->in[1], (const int[]){1, 0}, w);
	if (status) {
		ql_tensor_release(ctx, *x);
		*x = NULL;
	}
	return status;
}
