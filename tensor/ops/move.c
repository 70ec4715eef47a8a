/* SPDX-License-Identifier: MIT
 * Copies and casts: clone, contiguous, to.
 */
#include <stdio.h>
#include <string.h>

#include "tensor/nearest.h"
#include "tensor/codec.h"
#include "tensor/ops/ops.h"
#include "tensor/remote.h"

static enum ql_status clone(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_tensor_clone(ctx, call->in[0], &call->out[0]);
}

const struct ql_op ql_op_clone = {
	.doc = {.name = "clone",
		.usage = "x:clone()",
		.text = "A copy with storage of its own, laid out by rows; quant params stay.",
		.example = "x = tensor{1,2}\ny = x:clone()\ny[1] = 9\nprint(x)  --> float32(2)  1  2"},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_NATIVE | QL_CLOSED | QL_ANYWHERE,
	.eval = clone,
	.allocates = true,
	.backward = ql_backward_same,
};

static enum ql_status contiguous(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *t = call->in[0];

	return ql_tensor_is_contiguous(t) ? ql_tensor_alias(ctx, t, &call->out[0])
					  : ql_tensor_clone(ctx, t, &call->out[0]);
}

const struct ql_op ql_op_contiguous = {
	.doc = {.name = "contiguous",
		.usage = "x:contiguous()",
		.text = "x itself when its elements lie by rows without gaps, else a copy that does.",
		.example = "print(tensor{{1,2},{3,4}}:t():contiguous():stride())  --> 2\t1"},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_NATIVE | QL_CLOSED | QL_ANYWHERE,
	.eval = contiguous,
	.allocates = true,
	.backward = ql_backward_same,
};

static const struct ql_attr to_attrs[] = {
	{"target", QL_ATTR_STRING, QL_POSITIONAL | QL_REQUIRED, NULL,
		"a dtype, or a device: cpu, cuda, cuda:1, cudaemu"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status to_dtype(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out)
{
	struct ql_tensor *real;
	enum ql_status status;

	if (!t->q)
		return t->dtype == dtype ? ql_tensor_alias(ctx, t, out) : ql_tensor_cast(ctx, t, dtype, out);
	if (!ql_dtype_is_float(dtype))
		return ql_fail(ctx, QL_ERR_DTYPE,
			"to: wanted a float dtype for a quantized tensor, got %s; use :codes(), :requantize() or :dequantize()",
			ql_dtype_name(dtype));
	status = ql_decode(ctx, t, &real);
	if (status || dtype == QL_float32) {
		*out = real;
		return status;
	}
	status = ql_tensor_cast(ctx, real, dtype, out);
	ql_tensor_release(ctx, real);
	return status;
}

static enum ql_status to(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *target = ql_call_string(call, "target", "");
	int dtype = ql_dtype_by_name(target);
	const struct ql_device *device;
	char near[96], words[256];
	enum ql_status status;

	if (dtype >= 0)
		return to_dtype(ctx, call->in[0], (unsigned)dtype, &call->out[0]);
	status = ql_device_by_name(ctx, "to", target, &device);
	if (!status)
		return ql_tensor_to(ctx, call->in[0], device, &call->out[0]);
	if (!strncmp(target, "cuda", 4) || !strcmp(target, "cpu"))
		return status;
	snprintf(words, sizeof(words), "%scpu cuda", ql_dtype_names);
	return ql_fail(ctx, QL_ERR_ARGUMENT, "to: wanted the name of a dtype or device, got '%.40s'%s", target,
		ql_nearest(target, words, near));
}

const struct ql_op ql_op_to = {
	.doc = {.name = "to",
		.usage = "x:to 'float16'  x:to 'cpu'",
		.text = "Casts to a dtype or moves to a device; x itself when nothing changes. Floats become integers by rounding half "
			"to even and saturating (NaN gives 0). It never quantizes; a quantized tensor cast to a float is dequantized.",
		.example = "print(tensor{1.5, 2.5, 300}:to 'uint8')  --> uint8(3)    2    2  255",
		.attrs = to_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_NATIVE | QL_CLOSED | QL_ANYWHERE,
	.eval = to,
	.allocates = true,
	.backward = ql_backward_same,
};
