/* SPDX-License-Identifier: MIT
 * Quantized tensors of the core as tensors of a device, for tests that compare both.
 */
#ifndef QUOLL_TESTS_TOOLS_GPU_CODES_H
#define QUOLL_TESTS_TOOLS_GPU_CODES_H

#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tests/tools/gpu_views.h"

/* Codes on a device with their parameters. */
struct gpu_codes {
	struct ql_gpu_tensor t, scale, zero, shift;
	struct ql_gpu_codes codes;
	int64_t *counts;
};

/* The dense tensor t; without `data` its elements are whatever the memory holds. Rows of packed elements are padded. */
static inline struct ql_gpu_tensor gpu_of_core(struct gpu *g, const struct ql_tensor *t, bool data)
{
	if (ql_dtype_is_packed(t->dtype)) {
		int64_t bytes = (int64_t)t->storage->bytes;
		struct ql_gpu_tensor packed = gpu_tensor(g, "uint8", 1, &bytes, data ? t->storage->data : NULL, 0);

		packed.dtype = ql_dtype_name(t->dtype);
		packed.rank = t->rank;
		memcpy(packed.shape, t->shape, sizeof(packed.shape));
		memcpy(packed.stride, t->stride, sizeof(packed.stride));
		return packed;
	}
	return gpu_tensor(g, ql_dtype_name(t->dtype), t->rank, t->shape, data ? ql_tensor_data(t) : NULL, 0);
}

/* Sets c to the quantized dense tensor t. find: only its layout, a kernel is to find the rest. c stays where it is. */
static inline void gpu_codes_of(struct gpu *g, struct gpu_codes *c, const struct ql_tensor *t, bool find)
{
	const struct ql_qparams *q = t->q;

	*c = (struct gpu_codes){0};
	c->t = gpu_of_core(g, t, !find);
	c->scale = gpu_of_core(g, q->scale, !find);
	c->codes = (struct ql_gpu_codes){.size = sizeof(c->codes),
		.flags = (q->scheme->affine ? QL_GPU_AFFINE : 0) | (find ? QL_GPU_FIND : 0),
		.scheme = q->scheme->doc.name,
		.from = "float32",
		.bits = q->codes.bits,
		.lo = q->codes.lo,
		.hi = q->codes.hi,
		.axis = q->axis,
		.block_axis = q->block_axis,
		.block = q->block,
		.fit = q->scheme->offset ? QL_GPU_FIT_RANGE : QL_GPU_FIT_LARGEST};
	c->codes.scale = &c->scale;
	if (q->zero_point) {
		c->zero = gpu_of_core(g, q->zero_point, !find);
		c->codes.zero_point = &c->zero;
	}
	if (q->shift) {
		c->shift = gpu_of_core(g, q->shift, !find);
		c->codes.shift = &c->shift;
	}
	g->v->alloc(g->s, 2 * sizeof(int64_t), (void **)&c->counts);
	c->codes.counts = c->counts;
	c->t.codes = &c->codes;
}

static inline void gpu_codes_free(struct gpu *g, struct gpu_codes *c)
{
	gpu_free(g, &c->t);
	gpu_free(g, &c->scale);
	gpu_free(g, &c->zero);
	gpu_free(g, &c->shift);
	g->v->free(g->s, c->counts);
}

/* The bytes of a dense tensor on the device are those of t. */
static inline void gpu_expect(
	struct gpu *g, const struct ql_gpu_tensor *got, const struct ql_tensor *t, const char *what)
{
	int64_t n = ql_tensor_nelem(t);
	char *bytes = check_alloc((size_t)n * 8 + 8);

	gpu_get(g, got, bytes);
	for (int64_t i = 0; i < n; i++)
		if (!CHECK(view_same(ql_dtype_name(t->dtype), bytes, ql_tensor_data(t), i), "%s: element %d of %d",
			    what, (int)i, (int)n))
			break;
	free(bytes);
}

#endif
