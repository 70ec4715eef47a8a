/* SPDX-License-Identifier: MIT
 * Constructors that fill a tensor with a value.
 */
#include <string.h>

#include "tensor/ops/ops.h"

static const struct ql_attr size_attrs[] = {
	{"size", QL_ATTR_INTS, QL_POSITIONAL, NULL, "sizes of the axes; none: a single number"},
	{"dtype", QL_ATTR_DTYPE, 0, NULL, "element type (default float32)"},
	{"quant", QL_ATTR_SPEC, 0, NULL, "quantize the result by this spec"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status infer_size(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *size = ql_call_attr(call, "size");

	if (size && size->ints.n > QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted at most %d sizes, got %d", call->op->doc.name, QL_MAX_RANK,
			size->ints.n);
	ql_result_set(call, 0, (unsigned)ql_call_int(call, "dtype", QL_float32), size ? size->ints.n : 0,
		size ? size->ints.at : NULL);
	return QL_OK;
}

static enum ql_status zeros(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	memset(call->out[0]->storage->data, 0, call->out[0]->storage->bytes);
	return QL_OK;
}

const struct ql_op ql_op_zeros = {
	.doc = {.name = "zeros",
		.usage = "tensor.zeros(2, 3)  tensor.zeros{2, 3, dtype='int8'}",
		.text = "A tensor of zeros.",
		.example = "print(tensor.zeros(2):sum():item())  --> 0.0",
		.attrs = size_attrs},
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer_size,
	.eval = zeros,
};
