/* SPDX-License-Identifier: MIT
 * Operands of ops as tensors of the core and of a device with the same elements: any type or codes, dense, unaligned or
 * transposed.
 */
#ifndef QUOLL_TESTS_TOOLS_GPU_OPERAND_H
#define QUOLL_TESTS_TOOLS_GPU_OPERAND_H

#include "tensor/view.h"
#include "tests/tools/gpu_codes.h"

#define UNALIGNED 1u  /* memory begins 4 bytes behind a multiple of 16 */
#define TRANSPOSED 2u /* a view whose last two axes are swapped */

struct operand {
	const char *type; /* a dtype, or the spec of codes, beginning with '=' */
	unsigned how;
	int rank;
	int64_t shape[4];
};

/* The same elements on both sides. */
struct operand_pair {
	struct ql_tensor *core;
	struct ql_gpu_tensor t;
	struct gpu_codes codes; /* with codes */
	bool quantized;
};

static inline void operand_fill(struct ql_tensor *t)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];

	for (int64_t i = 0; i < ql_tensor_nelem(t); i++) {
		double x = (double)gpu_draw_float();
		int64_t whole = (int64_t)(gpu_draw() >> gpu_draw() % 32);

		if (d->kind == QL_KIND_FLOAT)
			d->from_f64(ql_tensor_data(t), i, 1, 1, &x);
		else
			d->from_i64(ql_tensor_data(t), i, 1, 1, &whole);
	}
}

static inline bool operand_swap(struct ql_ctx *ctx, struct operand_pair *b)
{
	int order[4], n = b->core->rank;
	struct ql_tensor *view;

	for (int d = 0; d < n; d++)
		order[d] = d < n - 2 ? d : 2 * n - 3 - d;
	if (!CHECK(!ql_view_permute(ctx, "test", b->core, order, &view), "%s", ctx->err))
		return false;
	ql_tensor_release(ctx, b->core);
	b->core = view;
	memcpy(b->t.shape, view->shape, sizeof(view->shape));
	memcpy(b->t.stride, view->stride, sizeof(view->stride));
	if (!b->quantized)
		return true;
	b->codes.codes.axis = view->q->axis;
	b->codes.codes.block_axis = view->q->block_axis;
	if (view->q->block && b->codes.codes.scale) {
		memcpy(b->codes.scale.shape, view->q->scale->shape, sizeof(b->codes.scale.shape));
		memcpy(b->codes.scale.stride, view->q->scale->stride, sizeof(b->codes.scale.stride));
		memcpy(b->codes.zero.shape, b->codes.scale.shape, sizeof(b->codes.scale.shape));
		memcpy(b->codes.zero.stride, b->codes.scale.stride, sizeof(b->codes.scale.stride));
		memcpy(b->codes.shift.shape, b->codes.scale.shape, sizeof(b->codes.scale.shape));
		memcpy(b->codes.shift.stride, b->codes.scale.stride, sizeof(b->codes.scale.stride));
	}
	return true;
}

static inline bool operand_quantize(struct gpu *g, struct ql_ctx *ctx, struct operand_pair *b, const char *text)
{
	struct ql_tensor *q;
	struct ql_spec spec;

	if (!CHECK(!ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, b->core, &spec, &q), "%s: %s", text, ctx->err))
		return false;
	ql_tensor_release(ctx, b->core);
	b->core = q;
	gpu_codes_of(g, &b->codes, q, false);
	b->t = b->codes.t;
	b->quantized = true;
	return true;
}

static inline bool operand_make(struct gpu *g, struct ql_ctx *ctx, const struct operand *o, struct operand_pair *b)
{
	bool codes = *o->type == '=';
	unsigned dtype = codes ? QL_float32 : (unsigned)ql_dtype_by_name(o->type);
	int64_t shape[4];

	*b = (struct operand_pair){.core = NULL};
	memcpy(shape, o->shape, sizeof(shape));
	if (o->how & TRANSPOSED) {
		shape[o->rank - 1] = o->shape[o->rank - 2];
		shape[o->rank - 2] = o->shape[o->rank - 1];
	}
	if (!CHECK(!ql_tensor_new(ctx, dtype, o->rank, shape, &b->core), "%s", ctx->err))
		return false;
	operand_fill(b->core);
	if (codes && !operand_quantize(g, ctx, b, o->type + 1))
		return false;
	if (!codes)
		b->t = gpu_tensor(g, o->type, o->rank, shape, ql_tensor_data(b->core), o->how & UNALIGNED ? 4 : 0);
	return o->how & TRANSPOSED ? operand_swap(ctx, b) : true;
}

static inline void operand_drop(struct gpu *g, struct ql_ctx *ctx, struct operand_pair *b)
{
	ql_tensor_release(ctx, b->core);
	if (b->quantized)
		gpu_codes_free(g, &b->codes);
	else
		gpu_free(g, &b->t);
}

/* Gives the numbers of t, decoded. */
static inline enum ql_status operand_plain(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	if (t->q)
		return ql_decode(ctx, t, out);
	*out = ql_tensor_keep(t);
	return QL_OK;
}

#endif
