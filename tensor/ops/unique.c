/* SPDX-License-Identifier: MIT
 * Results whose sizes depend on values: nonzero and unique.
 */
#include <string.h>

#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define POLL 65536 /* elements between two polls of the interrupt flag */

static enum ql_status polled(struct ql_ctx *ctx, int64_t i)
{
	return i % POLL == 0 && ql_stopped(ctx) ? ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted") : QL_OK;
}

/* ---- nonzero ---- */

static bool is_set(const struct ql_tensor *t, int64_t i)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	int64_t integer;
	double real;

	if (d->kind != QL_KIND_FLOAT) {
		d->to_i64(t->storage->data, t->offset + i, 1, 1, &integer);
		return integer != 0;
	}
	d->to_f64(t->storage->data, t->offset + i, 1, 1, &real);
	return real != 0;
}

static enum ql_status count_set(struct ql_ctx *ctx, const struct ql_tensor *t, int64_t *count)
{
	int64_t n = ql_tensor_nelem(t);
	enum ql_status status = QL_OK;

	*count = 0;
	for (int64_t i = 0; i < n && !status; i++) {
		status = polled(ctx, i);
		*count += is_set(t, i);
	}
	return status;
}

/* Writes the 1-based indices of element i. */
static void put_position(const struct ql_tensor *x, int64_t i, int64_t *to)
{
	for (int d = x->rank - 1; d >= 0; d--) {
		to[d] = i % x->shape[d] + 1;
		i /= x->shape[d];
	}
}

static enum ql_status eval_nonzero(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *dense = NULL;
	int64_t shape[2] = {0, x->rank}, n = ql_tensor_nelem(x), *to;
	enum ql_status status = ql_tensor_cast(ctx, x, ql_dtype_whole(x->dtype), &dense);

	call->path = ql_dtype_name(x->dtype);
	if (!status)
		status = count_set(ctx, dense, &shape[0]);
	if (!status)
		status = ql_tensor_new(ctx, QL_int64, 2, shape, &call->out[0]);
	to = !status && shape[0] * shape[1] > 0 ? ql_tensor_data(call->out[0]) : NULL;
	for (int64_t i = 0; to && i < n && !status; i++) {
		status = polled(ctx, i);
		if (!is_set(dense, i))
			continue;
		put_position(x, i, to);
		to += x->rank;
	}
	ql_tensor_release(ctx, dense);
	return status;
}

const struct ql_op ql_op_nonzero = {
	.doc = {.name = "nonzero",
		.usage = "x:nonzero()",
		.text = "The positions of the elements that are not 0 (or true): int64 (count, axes of x), 1-based, in row-major order. "
			"x:gathernd(x:nonzero()) gives the elements; x[mask] does both.",
		.example = "print(tensor{{0,7},{5,0}}:nonzero())  --> int64(2, 2)\n--> 1 2\n--> 2 1"},
	.arity_min = 1,
	.arity_max = 1,
	.eval = eval_nonzero,
	.allocates = true,
};

/* ---- unique ---- */

static enum ql_status infer_unique(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	call->n_out = 3;
	return QL_OK;
}

/* Gives the elements of x in ascending order and their positions in x. */
static enum ql_status sorted(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor **values, struct ql_tensor **positions)
{
	struct ql_tensor *dense = NULL, *flat = NULL;
	struct ql_call call = {.op = &ql_op_sort, .in = &flat, .n_in = 1};
	int64_t n = ql_tensor_nelem(x);
	enum ql_status status = ql_tensor_cast(ctx, x, ql_dtype_whole(x->dtype), &dense);

	if (!status)
		status = ql_view_reshape(ctx, "unique", dense, 1, &n, &flat);
	if (!status)
		status = ql_op_apply(ctx, &call);
	ql_tensor_release(ctx, dense);
	ql_tensor_release(ctx, flat);
	if (status)
		return status;
	*values = call.out[0];
	*positions = call.out[1];
	return QL_OK;
}

/* Whether element i of the sorted values is that before it; all nan are one value. */
static bool repeated(const struct ql_tensor *t, int64_t i)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	int64_t integer[2];
	double real[2];

	if (i == 0)
		return false;
	if (d->kind != QL_KIND_FLOAT) {
		d->to_i64(t->storage->data, t->offset + i - 1, 1, 2, integer);
		return integer[0] == integer[1];
	}
	d->to_f64(t->storage->data, t->offset + i - 1, 1, 2, real);
	return real[0] == real[1] || (real[0] != real[0] && real[1] != real[1]);
}

/* Fills `inverse` with the number of the value of each element, and `number` with that of each sorted value. */
static enum ql_status number_values(struct ql_ctx *ctx, const struct ql_tensor *values, const int64_t *positions,
	int64_t *inverse, int64_t *number, int64_t *count)
{
	int64_t n = ql_tensor_nelem(values);
	enum ql_status status = QL_OK;

	*count = 0;
	for (int64_t i = 0; i < n && !status; i++) {
		status = polled(ctx, i);
		*count += !repeated(values, i);
		number[i] = *count;
		inverse[positions[i] - 1] = *count;
	}
	return status;
}

/* The first of each run of sorted values, in the dtype of x, and the lengths of the runs. */
static enum ql_status give_runs(
	struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *values, const int64_t *number, int64_t count)
{
	const struct ql_dtype_info *d = &ql_dtypes[values->dtype];
	struct ql_tensor *whole = NULL;
	int64_t n = ql_tensor_nelem(values), *length, zero = 0;
	enum ql_status status = ql_tensor_new(ctx, values->dtype, 1, &count, &whole);

	if (!status)
		status = ql_tensor_new(ctx, QL_int64, 1, &count, &call->out[2]);
	length = !status && count ? ql_tensor_data(call->out[2]) : &zero;
	for (int64_t i = 0; i < n && !status; i++) {
		bool first = i == 0 || number[i] != number[i - 1];
		size_t size = d->bits / 8;

		if (first)
			memcpy((char *)whole->storage->data + (size_t)(number[i] - 1) * size,
				(const char *)values->storage->data + (size_t)(values->offset + i) * size, size);
		length[number[i] - 1] = first ? 1 : length[number[i] - 1] + 1;
	}
	if (!status)
		status = ql_tensor_cast(ctx, whole, call->in[0]->dtype, &call->out[0]);
	ql_tensor_release(ctx, whole);
	return status;
}

static enum ql_status eval_unique(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = call->in[0], *values = NULL, *positions = NULL, *number = NULL;
	int64_t count = 0, n = ql_tensor_nelem(x);
	enum ql_status status = sorted(ctx, x, &values, &positions);

	call->path = ql_dtype_name(x->dtype);
	if (!status)
		status = ql_tensor_new(ctx, QL_int64, 1, &n, &number);
	if (!status)
		status = ql_tensor_new(ctx, QL_int64, x->rank, x->shape, &call->out[1]);
	if (!status && n > 0)
		status = number_values(ctx, values, ql_tensor_data(positions), ql_tensor_data(call->out[1]),
			ql_tensor_data(number), &count);
	if (!status)
		status = give_runs(ctx, call, values, n ? ql_tensor_data(number) : NULL, count);
	ql_tensor_release(ctx, values);
	ql_tensor_release(ctx, positions);
	ql_tensor_release(ctx, number);
	return status;
}

const struct ql_op ql_op_unique = {
	.doc = {.name = "unique",
		.usage = "values, inverse, counts = x:unique()",
		.text = "The different elements of x in ascending order, for each element of x the 1-based number of its value (int64, the "
			"shape of x), and how often each value occurs (int64). All nan count as one value, the last.",
		.example =
			"values, inverse, counts = tensor{3,1,3}:unique()\nprint(values, inverse, counts)  --> float32(2)  1 3 int64(3)  2 1 "
			"2 int64(2)  1 2"},
	.arity_min = 1,
	.arity_max = 1,
	.outputs = 3,
	.infer = infer_unique,
	.eval = eval_unique,
	.allocates = true,
};
