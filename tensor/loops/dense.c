/* SPDX-License-Identifier: MIT
 * Contiguous operands of one dtype.
 */
#include "tensor/loops/dense.h"

#include "tensor/codec.h"
#include "tensor/qparams.h"

unsigned ql_dense_dtype(unsigned dtype)
{
	return dtype == QL_float64 ? QL_float64 : QL_float32;
}

enum ql_status ql_dense_of(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out)
{
	struct ql_tensor *decoded;
	enum ql_status status;

	*out = NULL;
	if (t->q) {
		status = ql_decode(ctx, t, &decoded);
		if (status)
			return status;
		status = ql_dense_of(ctx, decoded, dtype, out);
		ql_tensor_release(ctx, decoded);
		return status;
	}
	if (t->dtype != dtype)
		return ql_tensor_cast(ctx, t, dtype, out);
	return ql_tensor_contiguous(ctx, t, out);
}

enum ql_status ql_dense_result(struct ql_ctx *ctx, struct ql_tensor *to, unsigned dtype, struct ql_tensor **out)
{
	if (to->dtype != dtype)
		return ql_tensor_new(ctx, dtype, to->rank, to->shape, out);
	*out = ql_tensor_keep(to);
	return QL_OK;
}

enum ql_status ql_dense_finish(
	struct ql_ctx *ctx, struct ql_tensor *to, struct ql_tensor *result, enum ql_status status)
{
	if (!status && to != result)
		status = ql_tensor_copy(ctx, to, result);
	ql_tensor_release(ctx, result);
	return status;
}
