/* SPDX-License-Identifier: MIT
 * Class numbers to rows with a single 1.
 */
#include <string.h>

#include "tensor/ops/ops.h"

static const struct ql_attr attrs[] = {
	{"n", QL_ATTR_INT, QL_POSITIONAL, NULL, "number of classes (default: the largest in x)"},
	{"dtype", QL_ATTR_DTYPE, 0, NULL, "element type of the result (default int64)"},
	{"on", QL_ATTR_FLOAT, 0, NULL, "value at the position (default 1)"},
	{"off", QL_ATTR_FLOAT, 0, NULL, "value elsewhere (default 0)"},
	{"foreign", QL_ATTR_BOOL, 0, NULL, "other numbers give rows of off, no error (default false)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static int64_t class_of(const struct ql_tensor *x, int64_t i)
{
	int64_t index[QL_MAX_RANK] = {0};

	for (int d = x->rank - 1; d >= 0; d--) {
		index[d] = i % x->shape[d];
		i /= x->shape[d];
	}
	return ql_tensor_get_i64(x, index);
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	unsigned dtype = (unsigned)ql_call_int(call, "dtype", QL_int64);
	int64_t n = ql_call_int(call, "n", 0), count = ql_tensor_nelem(x), shape[QL_MAX_RANK + 1];
	bool given = ql_call_attr(call, "n") != NULL, foreign = ql_call_bool(call, "foreign", false);
	char text[QL_SHAPE_TEXT];

	if (x->q || !ql_dtype_is_integer(x->dtype) || ql_dtype_is_bool(x->dtype) || ql_dtype_is_binary(x->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "onehot: wanted integers, got %s", ql_tensor_text(x, text));
	if (ql_dtype_is_packed(dtype))
		return ql_fail(
			ctx, QL_ERR_DTYPE, "onehot: dtype: wanted one of whole bytes, got %s", ql_dtype_name(dtype));
	if (x->rank == QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "onehot: wanted at most %d axes, got %d", QL_MAX_RANK - 1, x->rank);
	if (given && n < 0)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "onehot: n: wanted 0 or more, got %lld", (long long)n);
	for (int64_t i = 0; i < count; i++) {
		int64_t class = class_of(x, i);

		if (!foreign && (class < 1 || (given && class > n)))
			return ql_fail(ctx, QL_ERR_ARGUMENT, "onehot: wanted classes from 1%s, got %lld",
				given ? " to n" : "", (long long)class);
		if (!given)
			n = ql_max64(n, class);
	}
	memcpy(shape, x->shape, sizeof(x->shape));
	shape[x->rank] = n;
	ql_result_set(call, 0, dtype, x->rank + 1, shape);
	return QL_OK;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *out = call->out[0];
	int64_t n = out->shape[out->rank - 1], count = ql_tensor_nelem(call->in[0]);
	double on = ql_call_float(call, "on", 1), off = ql_call_float(call, "off", 0);
	void *y = out->storage->data;

	(void)ctx;
	call->path = ql_dtype_name(out->dtype);
	if (off == 0)
		memset(y, 0, out->storage->bytes);
	for (int64_t i = 0; off != 0 && i < count * n; i++)
		ql_dtypes[out->dtype].from_f64(y, i, 1, 1, &off);
	for (int64_t i = 0; i < count; i++) {
		int64_t class = class_of(call->in[0], i);

		if (class >= 1 && class <= n)
			ql_dtypes[out->dtype].from_f64(y, i * n + class - 1, 1, 1, &on);
	}
	return QL_OK;
}

const struct ql_op ql_op_onehot = {
	.doc = {.name = "onehot",
		.usage = "x:onehot(n)  x:onehot(n, {dtype=, on=, off=, foreign=})",
		.text = "A new last axis of size n with 1 at the position that each integer of x names, 1 to n, and 0 "
			"elsewhere. With foreign=true other numbers give rows without it, as in ONNX.",
		.example = "print(tensor{2,1, dtype='int64'}:onehot(3)[1])  --> int64(3)  0 1 0",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
};
