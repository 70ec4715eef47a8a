/* SPDX-License-Identifier: MIT
 * Copies of elements and casts between dtypes, for the host's memory and between it and others.
 */
#include <string.h>

#include "tensor/codes.h"
#include "tensor/deferred.h"
#include "tensor/narrow.h"
#include "tensor/kernels/kernels.h"
#include "tensor/meta.h"
#include "tensor/parallel.h"
#include "tensor/qparams.h"
#include "tensor/ragged.h"
#include "tensor/remote.h"
#include "tensor/tensor.h"
#include "tensor/transpose.h"
#include "tensor/walk.h"

#define COPY_SHORT 16   /* rows of fewer elements are swapped for a longer axis */
#define TURN_LEAST 1024 /* elements; fewer packed ones are read one by one */
#define COPY_BLOCK 1024 /* elements converted at a time: 8 KiB of doubles stay in L1 */

struct copy {
	struct ql_walk walk;
	unsigned from, to;
	const void *src;
	void *dst;
	int64_t pieces; /* per row */
	int variant;
};

/* True if float32 cannot represent all values. */
static bool needs_double(const struct ql_dtype_info *d)
{
	return d->kind == QL_KIND_FLOAT ? d->bits > 32 : d->bits > 24;
}

/* Integers are converted through int64, which is exact; a float to or from another type through the wider float. */
static void convert(const struct copy *c, int64_t dst, int64_t dst_stride, int64_t src, int64_t src_stride, int64_t n)
{
	const struct ql_dtype_info *from = &ql_dtypes[c->from], *to = &ql_dtypes[c->to];
	union {
		int64_t i[COPY_BLOCK];
		double d[COPY_BLOCK];
		float f[COPY_BLOCK];
	} row;

	if (from->kind != QL_KIND_FLOAT && to->kind != QL_KIND_FLOAT) {
		from->to_i64(c->src, src, src_stride, n, row.i);
		if (to->kind == QL_KIND_INT || to->kind == QL_KIND_UINT)
			for (int64_t i = 0; i < n; i++)
				row.i[i] = row.i[i] < to->lo ? to->lo : row.i[i] > to->hi ? to->hi : row.i[i];
		to->from_i64(c->dst, dst, dst_stride, n, row.i);
	} else if (from->kind != QL_KIND_FLOAT && from->bits == 64) { /* not all are doubles: one rounding */
		from->to_i64(c->src, src, src_stride, n, row.i);
		to->from_i64(c->dst, dst, dst_stride, n, row.i);
	} else if (needs_double(from) || needs_double(to)) {
		from->to_f64(c->src, src, src_stride, n, row.d);
		to->from_f64(c->dst, dst, dst_stride, n, row.d);
	} else {
		from->to_f32(c->src, src, src_stride, n, row.f);
		to->from_f32(c->dst, dst, dst_stride, n, row.f);
	}
}

/* Repeats one element n times, for expanded views. */
static void repeat(char *dst, const char *src, size_t size, size_t n)
{
	memcpy(dst, src, size);
	for (size_t done = 1; done < n; done *= 2)
		memcpy(dst + done * size, dst, (done < n - done ? done : n - done) * size);
}

/* Whether packed integers become bytes, all of which are in range. */
static bool unpacks(const struct copy *c)
{
	const struct ql_dtype_info *from = &ql_dtypes[c->from], *to = &ql_dtypes[c->to];

	return from->bits < 8 && to->bits == 8 && (to->kind == QL_KIND_INT || to->kind == QL_KIND_UINT) &&
	       (from->kind == QL_KIND_UINT || (from->kind == QL_KIND_INT && to->kind == QL_KIND_INT));
}

#define COPY(type) \
	for (int64_t i = 0; i < n; i++) \
		((type *)c->dst)[to + i * dst_stride] = ((const type *)c->src)[from + i * src_stride]; \
	break

/* n whole elements of one dtype, as they are. */
static void copy_same(const struct copy *c, int64_t to, int64_t dst_stride, int64_t from, int64_t src_stride, int64_t n)
{
	size_t size = ql_dtypes[c->to].bits / 8;
	const char *src = (const char *)c->src + (size_t)from * size;
	char *dst = (char *)c->dst + (size_t)to * size;

	if (dst_stride == 1 && src_stride == 1)
		memcpy(dst, src, (size_t)n * size);
	else if (dst_stride == 1 && src_stride == 0)
		repeat(dst, src, size, (size_t)n);
	else
		switch (size) {
		case 1: COPY(uint8_t);
		case 2: COPY(uint16_t);
		case 4: COPY(uint32_t);
		default: COPY(uint64_t);
		}
}

/* Contiguous pieces: true if they are converted here. */
static bool convert_fast(const struct copy *c, int64_t to, int64_t from, int64_t n)
{
	const char *src = (const char *)c->src + (size_t)from * (ql_dtypes[c->from].bits / 8);
	char *dst = (char *)c->dst + (size_t)to * (ql_dtypes[c->to].bits / 8);

	if (unpacks(c))
		ql_codes_get(c->from, c->src, from, n, (int8_t *)c->dst + to);
	else if (c->from == QL_float32)
		return ql_narrow_from_f32(c->variant, c->to, n, (const float *)c->src + from, dst);
	else if (c->to == QL_float32)
		return ql_narrow_to_f32(c->variant, c->from, n, src, (float *)c->dst + to);
	else
		return false;
	return true;
}

static void copy_piece(const struct copy *c, int64_t piece)
{
	const struct ql_walk *w = &c->walk;
	int64_t begin = piece % c->pieces * COPY_BLOCK, n = ql_min64(COPY_BLOCK, w->row - begin), offset[2];
	int64_t dst_stride = ql_walk_stride(w, 0), src_stride = ql_walk_stride(w, 1);

	ql_walk_row(w, piece / c->pieces, offset);
	offset[0] += begin * dst_stride;
	offset[1] += begin * src_stride;
	if (c->from == c->to && !ql_dtype_is_packed(c->to)) {
		copy_same(c, offset[0], dst_stride, offset[1], src_stride, n);
		return;
	}
	if (dst_stride != 1 || src_stride != 1 || !convert_fast(c, offset[0], offset[1], n))
		convert(c, offset[0], dst_stride, offset[1], src_stride, n);
}

static void copy_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		copy_piece(arg, i);
}

/* dst and src do not overlap, and their elements are in memory. */
static enum ql_status copy_plain(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src)
{
	struct copy c = {.from = src->dtype,
		.to = dst->dtype,
		.src = src->storage->data,
		.dst = dst->storage->data,
		.variant = ctx->kernels->simd->variant};
	bool packed = ql_dtype_is_packed(dst->dtype);
	int64_t n;

	ql_walk_start(&c.walk, dst->rank, dst->shape);
	ql_walk_add(&c.walk, dst);
	ql_walk_add(&c.walk, src);
	ql_walk_finish(&c.walk, packed);
	if (c.walk.rows == 0)
		return QL_OK;
	dst->storage->version++;
	if (c.from == c.to && !packed) {
		int axis = ql_transpose_axis(&c.walk);

		if (axis >= 0)
			return ql_transpose(ctx, &c.walk, axis, ql_dtypes[c.to].bits / 8, c.dst, c.src);
	}
	if (!packed)
		ql_walk_lengthen(&c.walk, COPY_SHORT);
	c.pieces = ql_ceil_div(c.walk.row, COPY_BLOCK);
	n = c.walk.rows * c.pieces;
	/* neighbouring rows of the packed axis share bytes: one thread */
	return ql_parallel_for(ctx, n, ql_max64(1, 32768 / c.walk.row),
		packed && ql_walk_stride(&c.walk, 0) != 1 ? 0 : ql_tensor_nelem(dst), copy_body, &c);
}

/* ---- packed integers in another order of axes ---- */

/* t with its axes in the order of memory, where axis d of t is axis at[d]. Rows get their padding, which makes them one. */
static struct ql_tensor in_order(const struct ql_tensor *t, int *at)
{
	struct ql_tensor sorted = *t;
	int order[QL_MAX_RANK], last = t->rank - 1;

	for (int d = 0; d < t->rank; d++) {
		int i = d;

		for (; i > 0 && t->stride[order[i - 1]] < t->stride[d]; i--)
			order[i] = order[i - 1];
		order[i] = d;
	}
	for (int i = 0; i < t->rank; i++) {
		sorted.shape[i] = t->shape[order[i]];
		sorted.stride[i] = t->stride[order[i]];
		at[order[i]] = i;
	}
	if (last > 0 && sorted.stride[last - 1] == ql_dtype_pitch(t->dtype, sorted.shape[last]))
		sorted.shape[last] = sorted.stride[last - 1];
	return sorted;
}

/* Whether src has rows in memory that are no rows, or short ones, of its shape, and so many elements that bytes are made first. */
static bool turns_packed(unsigned dtype, const struct ql_tensor *src)
{
	int at[QL_MAX_RANK], last = src->rank - 1;
	struct copy c = {.from = src->dtype, .to = dtype};
	bool rows = last >= 0 && src->stride[last] == 1 && src->shape[last] >= COPY_SHORT;

	return unpacks(&c) && last > 0 && !rows && ql_tensor_nelem(src) >= TURN_LEAST &&
	       in_order(src, at).stride[last] == 1;
}

/* Unpacks src in vectors: bytes of the dtype with the shape of src, in its order of axes in memory. */
static enum ql_status unpack_in_order(
	struct ql_ctx *ctx, const struct ql_tensor *src, unsigned dtype, struct ql_tensor **bytes)
{
	int at[QL_MAX_RANK];
	struct ql_tensor from = in_order(src, at), made;
	enum ql_status status = ql_tensor_new(ctx, dtype, from.rank, from.shape, bytes);

	if (status)
		return status;
	status = copy_plain(ctx, *bytes, &from);
	made = **bytes;
	for (int d = 0; d < made.rank; d++) {
		(*bytes)->shape[d] = src->shape[d];
		(*bytes)->stride[d] = made.stride[at[d]];
	}
	return status;
}

/* dst and src do not overlap, and their elements are in memory. */
static enum ql_status copy_dense(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src)
{
	struct ql_tensor *bytes = NULL;
	enum ql_status status;

	if (!turns_packed(dst->dtype, src))
		return copy_plain(ctx, dst, src);
	status = unpack_in_order(ctx, src, dst->dtype, &bytes);
	if (!status)
		status = copy_plain(ctx, dst, bytes);
	ql_tensor_release(ctx, bytes);
	return status;
}

static bool takes_few(const struct ql_tensor *t)
{
	return ql_closed_few(t) && t->storage->closed->kind->put;
}

/* A few elements from a closed storage, or into one; dst and src do not overlap. */
static enum ql_status copy_few(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src)
{
	bool from = ql_closed_few(src);
	struct ql_tensor *codes;
	enum ql_status status = from ? ql_closed_gather(ctx, src, &codes)
				     : ql_tensor_cast(ctx, src, ql_dtype_whole(dst->dtype), &codes);

	if (!status && takes_few(dst))
		ql_closed_scatter(dst, codes);
	else if (!status)
		status = ql_tensor_copy(ctx, dst, codes);
	ql_tensor_release(ctx, codes);
	return status;
}

/* dst and src do not overlap. */
static enum ql_status copy_apart(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src)
{
	enum ql_status status;

	if (ql_is_meta(dst)) /* has no values */
		return QL_OK;
	status = ql_deferred_settle(ctx, src->storage);
	if (!status)
		status = ql_deferred_before_write(ctx, dst->storage);
	if (status)
		return status;
	if (src->storage->remote || dst->storage->remote)
		return ql_remote_copy(ctx, dst, src);
	if (ql_closed_few(src) || takes_few(dst))
		return copy_few(ctx, dst, src);
	if (ql_closed_fills(src, dst))
		return ql_closed_unpack(ctx, src, dst);
	status = ql_closed_open(ctx, src->storage);
	if (status)
		return status;
	status = ql_closed_open(ctx, dst->storage);
	if (!status) {
		status = copy_dense(ctx, dst, src);
		ql_closed_close(ctx, dst->storage);
	}
	ql_closed_close(ctx, src->storage);
	return status;
}

enum ql_status ql_tensor_copy(struct ql_ctx *ctx, struct ql_tensor *dst, const struct ql_tensor *src)
{
	struct ql_tensor *apart;
	enum ql_status status;

	if (dst->storage != src->storage)
		return copy_apart(ctx, dst, src);
	status = ql_tensor_new_on(ctx, src->storage->device, src->dtype, src->rank, src->shape, &apart);
	if (!status)
		status = copy_apart(ctx, apart, src);
	if (!status)
		status = copy_apart(ctx, dst, apart);
	ql_tensor_release(ctx, apart);
	return status;
}

enum ql_status ql_tensor_cast(struct ql_ctx *ctx, const struct ql_tensor *t, unsigned dtype, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_new_on(ctx, t->storage->device, dtype, t->rank, t->shape, out);

	if (!status)
		status = copy_apart(ctx, *out, t);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

enum ql_status ql_tensor_bytes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	enum ql_status status;

	if (ql_is_closed(t) || t->storage->remote)
		return ql_tensor_cast(ctx, t, ql_dtype_whole(t->dtype), out);
	if (!ql_dtype_is_packed(t->dtype)) {
		*out = ql_tensor_keep(t);
		return QL_OK;
	}
	if (!turns_packed(ql_dtype_whole(t->dtype), t))
		return ql_tensor_cast(ctx, t, ql_dtype_whole(t->dtype), out);
	status = unpack_in_order(ctx, t, ql_dtype_whole(t->dtype), out);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

enum ql_status ql_tensor_clone(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_cast(ctx, t, t->dtype, out);

	if (!status && t->q)
		(*out)->q = ql_qparams_keep(t->q);
	if (!status && ql_is_closed(t))
		status = ql_ragged_pack(ctx, *out);
	return status;
}

enum ql_status ql_tensor_contiguous(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	if (ql_tensor_is_contiguous(t)) {
		*out = ql_tensor_keep(t);
		return QL_OK;
	}
	return ql_tensor_clone(ctx, t, out);
}
