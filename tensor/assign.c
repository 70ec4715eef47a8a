/* SPDX-License-Identifier: MIT
 * Assignment with broadcasting and quantization on either side.
 */
#include "tensor/assign.h"

#include "tensor/codec.h"
#include "tensor/qparams.h"
#include "tensor/tape.h"
#include "tensor/view.h"

static enum ql_status convert(struct ql_ctx *ctx, struct ql_tensor *dst, struct ql_tensor *src)
{
	struct ql_tensor *real;
	enum ql_status status;

	if (!src->q)
		return dst->q ? ql_encode(ctx, src, dst, NULL, NULL) : ql_tensor_copy(ctx, dst, src);
	if (dst->q && dst->dtype == src->dtype && ql_qparams_equal(dst->q, src->q))
		return ql_tensor_copy(ctx, dst, src);
	status = ql_decode(ctx, src, &real);
	if (status)
		return status;
	status = dst->q ? ql_encode(ctx, real, dst, NULL, NULL) : ql_tensor_copy(ctx, dst, real);
	ql_tensor_release(ctx, real);
	return status;
}

/* Once started, it finishes before an interrupt is handled. */
static enum ql_status assign_same_shape(struct ql_ctx *ctx, struct ql_tensor *dst, struct ql_tensor *src)
{
	enum ql_status status;

	ctx->finishing = true;
	status = convert(ctx, dst, src);
	ctx->finishing = false;
	return status;
}

enum ql_status ql_tensor_assign(struct ql_ctx *ctx, const char *op, struct ql_tensor *dst, struct ql_tensor *src)
{
	struct ql_tensor *wide, *real = NULL;
	enum ql_status status = QL_OK;

	status = ql_tape_check_write(ctx, op, dst, src);
	if (status)
		return status;
	if (ql_tensor_overlaps_itself(dst))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"%s: wanted a tensor whose elements are all distinct, got an expanded view", op);
	if (ql_tensor_same_shape(dst, src))
		return assign_same_shape(ctx, dst, src);
	if (src->q) {
		status = ql_decode(ctx, src, &real);
		src = real;
	}
	if (!status)
		status = ql_view_expand(ctx, op, src, dst->rank, dst->shape, &wide);
	if (!status) {
		status = assign_same_shape(ctx, dst, wide);
		ql_tensor_release(ctx, wide);
	}
	ql_tensor_release(ctx, real);
	return status;
}
