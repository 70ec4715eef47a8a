/* SPDX-License-Identifier: MIT
 * Quantized tensors of the core as tensors of a device, for tests that compare both.
 */
#ifndef QUOLL_TESTS_TOOLS_GPU_CODES_H
#define QUOLL_TESTS_TOOLS_GPU_CODES_H

#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tensor/grid.h"
#include "tests/tools/gpu_views.h"

/* What scales or shifts need that are codes themselves. */
struct gpu_level {
	struct ql_gpu_tensor scale, shift;
	struct ql_gpu_codes codes;
	struct ql_gpu_grid grid;
};

/* Codes on a device with their parameters. */
struct gpu_codes {
	struct ql_gpu_tensor t, scale, zero, shift;
	struct gpu_level scales, shifts;
	struct ql_gpu_codes codes;
	struct ql_gpu_grid grid;
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

static inline struct ql_gpu_grid gpu_grid_of(const struct ql_grid_table *t)
{
	struct ql_gpu_grid g = {.n = t->n,
		.ranks = t->ranks,
		.zero = t->zero,
		.nan = t->nan,
		.unit = t->unit,
		.least = t->least,
		.reciprocal = t->reciprocal,
		.value = t->value,
		.edge = t->edge,
		.code = t->code};

	if (t->minifloat) {
		g.exponent = t->minifloat->exponent;
		g.mantissa = t->minifloat->mantissa;
		g.bias = t->minifloat->bias;
		g.most = t->minifloat->most;
		g.infinity = t->minifloat->infinity;
	}
	return g;
}

/* What is not a tensor. */
static inline struct ql_gpu_codes gpu_layout_of(const struct ql_qparams *q, struct ql_gpu_grid *grid)
{
	struct ql_gpu_codes codes = {.size = sizeof(codes),
		.flags = (q->scheme->affine ? QL_GPU_AFFINE : 0) | (q->codes.overflow ? QL_GPU_OVERFLOW : 0),
		.scheme = q->scheme->doc.name,
		.from = "float32",
		.bits = q->codes.bits,
		.lo = q->codes.lo,
		.hi = q->codes.hi,
		.scaling = q->codes.scaling,
		.axis = q->axis,
		.block_axis = q->block_axis,
		.block = q->block,
		.octaves = q->codes.octaves,
		.fit = q->scheme->offset ? QL_GPU_FIT_RANGE : QL_GPU_FIT_LARGEST};

	if (q->codes.grid) {
		*grid = gpu_grid_of(q->codes.grid);
		codes.grid = grid;
	}
	return codes;
}

/* The tensor t, which may be codes under plain scales, kept in l. */
static inline struct ql_gpu_tensor gpu_level_of(
	struct gpu *g, struct gpu_level *l, const struct ql_tensor *t, bool data)
{
	struct ql_gpu_tensor level = gpu_of_core(g, t, data);

	if (!t->q)
		return level;
	l->codes = gpu_layout_of(t->q, &l->grid);
	l->scale = gpu_of_core(g, t->q->scale, data);
	l->codes.scale = &l->scale;
	if (t->q->shift) {
		l->shift = gpu_of_core(g, t->q->shift, data);
		l->codes.shift = &l->shift;
	}
	level.codes = &l->codes;
	return level;
}

static inline void gpu_level_free(struct gpu *g, struct gpu_level *l)
{
	gpu_free(g, &l->scale);
	gpu_free(g, &l->shift);
}

/* Sets c to the quantized dense tensor t. find: only its layout, a kernel is to find the rest. c stays where it is. */
static inline void gpu_codes_of(struct gpu *g, struct gpu_codes *c, const struct ql_tensor *t, bool find)
{
	const struct ql_qparams *q = t->q;

	*c = (struct gpu_codes){0};
	c->t = gpu_of_core(g, t, !find);
	c->scale = gpu_level_of(g, &c->scales, q->scale, !find);
	c->codes = gpu_layout_of(q, &c->grid);
	c->codes.flags |= find ? QL_GPU_FIND : 0;
	c->codes.scale = &c->scale;
	if (q->zero_point) {
		c->zero = gpu_of_core(g, q->zero_point, !find);
		c->codes.zero_point = &c->zero;
	}
	if (q->shift) {
		c->shift = gpu_level_of(g, &c->shifts, q->shift, !find);
		c->codes.shift = &c->shift;
	}
	g->v->alloc(g->s, 2 * sizeof(int64_t), (void **)&c->counts);
	c->codes.counts = c->counts;
	c->t.codes = &c->codes;
}

static inline void gpu_codes_free(struct gpu *g, struct gpu_codes *c)
{
	gpu_free(g, &c->t);
	gpu_free(g, &c->zero);
	gpu_free(g, &c->scale);
	gpu_free(g, &c->shift);
	gpu_level_free(g, &c->scales);
	gpu_level_free(g, &c->shifts);
	g->v->free(g->s, c->counts);
}

/* Codes that fill no byte: the element i of a tensor of the core, from these bytes. */
static inline int64_t gpu_packed_at(const struct ql_tensor *t, const void *bytes, int64_t i)
{
	int64_t length = t->rank ? t->shape[t->rank - 1] : 1, code;

	ql_dtypes[t->dtype].to_i64(bytes, i / length * ql_dtype_pitch(t->dtype, length) + i % length, 1, 1, &code);
	return code;
}

/* Packed elements are those of t. */
static inline void gpu_expect_packed(
	struct gpu *g, const struct ql_gpu_tensor *got, const struct ql_tensor *t, const char *what)
{
	int64_t n = ql_tensor_nelem(t);
	uint8_t *bytes = check_alloc((size_t)got->bytes + 8);

	gpu_get(g, got, bytes);
	for (int64_t i = 0; i < n; i++)
		if (!CHECK(gpu_packed_at(t, bytes, i) == gpu_packed_at(t, t->storage->data, i),
			    "%s: element %d of %d is %d, wanted %d", what, (int)i, (int)n,
			    (int)gpu_packed_at(t, bytes, i), (int)gpu_packed_at(t, t->storage->data, i)))
			break;
	free(bytes);
}

/* The bytes of a dense tensor on the device are those of t. */
static inline void gpu_expect(
	struct gpu *g, const struct ql_gpu_tensor *got, const struct ql_tensor *t, const char *what)
{
	int64_t n = ql_tensor_nelem(t);
	char *bytes;

	if (ql_dtype_is_packed(t->dtype)) {
		gpu_expect_packed(g, got, t, what);
		return;
	}
	bytes = check_alloc((size_t)n * 8 + 8);
	gpu_get(g, got, bytes);
	for (int64_t i = 0; i < n; i++)
		if (!CHECK(view_same(ql_dtype_name(t->dtype), bytes, ql_tensor_data(t), i), "%s: element %d of %d",
			    what, (int)i, (int)n))
			break;
	free(bytes);
}

#endif
