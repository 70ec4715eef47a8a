/* SPDX-License-Identifier: MIT
 * Inner product of two vectors: products and lane sums in float64, in the order of tensor/loops/reduce.h; integers
 * in int64.
 */
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/loops/lanes.h"

struct dot_job {
	const struct ql_tensor *x, *y;
	bool integer;
	int64_t n;
	union {
		double *real; /* one per part */
		int64_t *whole;
	} part;
};

static double block_f64(const struct dot_job *j, int64_t p, int64_t n)
{
	double x[QL_REDUCE_BLOCK], y[QL_REDUCE_BLOCK];

	ql_dtypes[j->x->dtype].to_f64(j->x->storage->data, j->x->offset + p * j->x->stride[0], j->x->stride[0], n, x);
	ql_dtypes[j->y->dtype].to_f64(j->y->storage->data, j->y->offset + p * j->y->stride[0], j->y->stride[0], n, y);
	for (int64_t i = 0; i < n; i++)
		x[i] *= y[i];
	return ql_sum_f64(x, n);
}

static uint64_t block_i64(const struct dot_job *j, int64_t p, int64_t n)
{
	int64_t x[QL_REDUCE_BLOCK], y[QL_REDUCE_BLOCK];
	uint64_t sum = 0;

	ql_dtypes[j->x->dtype].to_i64(j->x->storage->data, j->x->offset + p * j->x->stride[0], j->x->stride[0], n, x);
	ql_dtypes[j->y->dtype].to_i64(j->y->storage->data, j->y->offset + p * j->y->stride[0], j->y->stride[0], n, y);
	for (int64_t i = 0; i < n; i++)
		sum += (uint64_t)x[i] * (uint64_t)y[i];
	return sum;
}

static void dot_body(void *arg, int64_t begin, int64_t end)
{
	const struct dot_job *j = arg;

	for (int64_t k = begin; k < end; k++) {
		int64_t stop = ql_min64((k + 1) * QL_REDUCE_PART, j->n);
		uint64_t whole = 0;
		double real = 0;

		for (int64_t p = k * QL_REDUCE_PART; p < stop; p += QL_REDUCE_BLOCK) {
			int64_t n = ql_min64(QL_REDUCE_BLOCK, stop - p);

			if (j->integer)
				whole += block_i64(j, p, n);
			else
				real += block_f64(j, p, n);
		}
		if (j->integer)
			j->part.whole[k] = (int64_t)whole;
		else
			j->part.real[k] = real;
	}
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *y = call->in[1];
	unsigned dtype = ql_dtype_promote(ql_operand_dtype(x), ql_operand_dtype(y));
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (x->rank != 1 || y->rank != 1 || x->shape[0] != y->shape[0])
		return ql_fail(ctx, QL_ERR_SHAPE, "dot: wanted two vectors of one length, got %s and %s",
			ql_shape_text(x->rank, x->shape, a), ql_shape_text(y->rank, y->shape, b));
	ql_result_set(call, 0, ql_dtype_is_float(dtype) ? dtype : QL_int64, 0, NULL);
	return QL_OK;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0];
	struct dot_job j = {.x = call->in[0],
		.y = call->in[1],
		.n = call->in[0]->shape[0],
		.integer = !ql_dtype_is_float(out->dtype)};
	int64_t parts = ql_ceil_div(j.n, QL_REDUCE_PART);
	uint64_t whole = 0;
	double real = 0;
	enum ql_status status;

	call->path = j.integer ? "int64" : "float64";
	j.part.real = ql_scratch_array(ctx, parts, sizeof(double));
	if (!j.part.real)
		return QL_ERR_MEMORY;
	status = ql_parallel_for(ctx, parts, 1, j.n, dot_body, &j);
	for (int64_t k = 0; k < parts && !status; k++) {
		if (j.integer)
			whole += (uint64_t)j.part.whole[k];
		else
			real += j.part.real[k];
	}
	if (j.integer)
		*(int64_t *)out->storage->data = (int64_t)whole;
	else
		ql_dtypes[out->dtype].from_f64(out->storage->data, 0, 1, 1, &real);
	return status;
}

static enum ql_status backward(struct ql_back *b)
{
	for (int i = 0; i < 2; i++)
		if (ql_back_wants(b, i))
			ql_back_give(b, i, ql_back_run(b, &ql_op_mul, ql_back_grad(b, 0), ql_back_in(b, 1 - i)));
	return b->status;
}

const struct ql_op ql_op_dot = {
	.doc = {.name = "dot",
		.usage = "x:dot(y)  tensor.dot(x, y)",
		.text = "Inner product of two vectors, a number. Floats are multiplied and added in float64 and give "
			"their promoted dtype; integers give int64.",
		.example = "print(tensor{1,2,3}:dot(tensor{4,5,6}):item())  --> 32.0"},
	.arity_min = 2,
	.arity_max = 2,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves_for = ql_saves_other,
};
