/* SPDX-License-Identifier: MIT
 * Images with their channels last: which tensors are, and the way back.
 */
#include "tensor/images.h"

#include <string.h>

bool ql_images_last(const struct ql_tensor *t)
{
	const struct ql_ragged *r = t->storage->ragged;
	int64_t pixels;

	if (t->rank != 4 || ql_dtypes[t->dtype].bits != 8 || !ql_tensor_is_contiguous(t))
		return false;
	pixels = t->shape[2] * t->shape[3];
	if (!ql_ragged_closed(t))
		return !t->storage->remote && (t->shape[1] == 1 || pixels == 1);
	return r->channels == t->shape[1] && r->pixels == pixels && t->offset % (r->channels * r->pixels) == 0;
}

uint8_t *ql_images_data(const struct ql_tensor *t)
{
	return ql_ragged_closed(t) ? t->storage->ragged->data + t->offset : ql_tensor_data(t);
}

enum ql_status ql_images_declare(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_storage *s = t->storage;
	struct ql_ragged *r;

	if (t->shape[1] <= 1 || t->shape[2] * t->shape[3] <= 1 || s->bytes == 0)
		return QL_OK;
	r = ql_alloc_zeroed(ctx, sizeof(*r));
	if (!r)
		return QL_ERR_MEMORY;
	r->dtype = t->dtype;
	r->channels = t->shape[1];
	r->pixels = t->shape[2] * t->shape[3];
	r->dense = r->bytes = s->bytes;
	r->data = s->data;
	s->data = NULL;
	s->ragged = r;
	return QL_OK;
}

/* Copies images from one order to the other; `strides` are those of the source. */
static enum ql_status reorder(struct ql_ctx *ctx, const struct ql_ragged *r, void *from, void *to)
{
	int64_t plane = r->channels * r->pixels, n = (int64_t)r->bytes / plane;
	struct ql_storage of[2] = {{.refs = 1, .bytes = r->bytes, .data = from, .device = &ql_device_cpu},
		{.refs = 1, .bytes = r->bytes, .data = to, .device = &ql_device_cpu}};
	struct ql_tensor src = {.refs = 1,
		.dtype = QL_uint8,
		.rank = 3,
		.storage = &of[0],
		.shape = {n, r->channels, r->pixels},
		.stride = {plane, 1, r->channels}};
	struct ql_tensor dst = src;

	dst.storage = &of[1];
	dst.stride[1] = r->pixels;
	dst.stride[2] = 1;
	return ql_tensor_copy(ctx, &dst, &src);
}

enum ql_status ql_images_open(struct ql_ctx *ctx, struct ql_storage *s)
{
	struct ql_ragged *r = s->ragged;
	bool before = ctx->finishing;
	void *dense = ql_alloc(ctx, r->bytes), *bytes = r->data;
	enum ql_status status;

	if (!dense)
		return QL_ERR_MEMORY;
	ctx->finishing = true; /* not interrupted half way */
	status = reorder(ctx, r, bytes, dense);
	ctx->finishing = before;
	if (status) {
		ql_free(ctx, dense);
		return status;
	}
	r->data = NULL;
	ql_ragged_free(ctx, r);
	s->ragged = NULL;
	ql_storage_take(ctx, s, bytes, dense);
	return QL_OK;
}
