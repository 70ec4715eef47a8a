/* SPDX-License-Identifier: MIT
 * A view of a buffer, as a tensor of a device and as one of the core, for tests that compare both.
 */
#ifndef QUOLL_TESTS_TOOLS_GPU_VIEWS_H
#define QUOLL_TESTS_TOOLS_GPU_VIEWS_H

#include "tensor/ops.h"
#include "tensor/tensor.h"
#include "tests/tools/gpu_device.h"

#define VIEW_BUFFER 4096 /* elements */

struct view {
	const char *what;
	int rank;
	int64_t shape[4], stride[4], first; /* of the buffer */
	uint32_t axes;                      /* to reduce */
};

/* Element i in row-major order, as an index of the buffer. */
static inline int64_t view_at(const struct view *v, int64_t i)
{
	int64_t at = v->first;

	for (int d = v->rank - 1; d >= 0; d--) {
		at += i % v->shape[d] * v->stride[d];
		i /= v->shape[d];
	}
	return at;
}

static inline struct ql_gpu_tensor view_gpu(struct gpu *g, const struct view *v, const char *dtype, const void *data)
{
	struct ql_gpu_tensor t = gpu_tensor(g, dtype, 1, (const int64_t[]){VIEW_BUFFER}, data, 0);

	t.rank = v->rank;
	t.at = (char *)t.base + v->first * ql_dtypes[ql_dtype_by_name(dtype)].bits / 8;
	for (int d = 0; d < v->rank; d++) {
		t.shape[d] = v->shape[d];
		t.stride[d] = v->stride[d];
	}
	return t;
}

/* NULL without memory. */
static inline struct ql_tensor *view_core(struct ql_ctx *ctx, const struct view *v, const char *dtype, const void *data)
{
	unsigned type = (unsigned)ql_dtype_by_name(dtype);
	struct ql_tensor *t;

	if (ql_tensor_new(ctx, type, 1, (const int64_t[]){VIEW_BUFFER}, &t))
		return NULL;
	memcpy(ql_tensor_data(t), data, VIEW_BUFFER * ql_dtypes[type].bits / 8u);
	t->rank = (uint8_t)v->rank;
	t->offset = v->first;
	for (int d = 0; d < v->rank; d++) {
		t->shape[d] = v->shape[d];
		t->stride[d] = v->stride[d];
	}
	return t;
}

/* A buffer of random elements; floats are small numbers, of which a few are special. */
static inline void view_fill(const char *dtype, void *data, bool special)
{
	static const double values[] = {NAN, INFINITY, -INFINITY, 0.0, -0.0};
	const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(dtype)];

	for (int64_t i = 0; i < VIEW_BUFFER; i++) {
		double x = (double)gpu_draw_float();
		int64_t whole = (int64_t)(((uint64_t)gpu_draw() << 32 | gpu_draw()) >> gpu_draw() % 64);

		if (special && gpu_draw() % 16 == 0)
			x = values[gpu_draw() % 5];
		if (d->kind == QL_KIND_FLOAT)
			d->from_f64(data, i, 1, 1, &x);
		else
			d->from_i64(data, i, 1, 1, &whole);
	}
}

/* Element i of both, whose dtype is the same: equal bits, or NaN. */
static inline bool view_same(const char *dtype, const void *a, const void *b, int64_t i)
{
	const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(dtype)];
	size_t size = d->bits / 8;
	double x, y;

	if (!memcmp((const char *)a + (size_t)i * size, (const char *)b + (size_t)i * size, size))
		return true;
	d->to_f64(a, i, 1, 1, &x);
	d->to_f64(b, i, 1, 1, &y);
	return d->kind == QL_KIND_FLOAT && isnan(x) && isnan(y);
}

#endif
