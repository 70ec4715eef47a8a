/* SPDX-License-Identifier: MIT
 * Images with their channels last: which tensors are, and the way back.
 */
#include "tensor/images.h"

#include <string.h>

struct images {
	struct ql_closed base;
	int64_t channels, pixels; /* of an image */
	uint8_t *data;
	bool inside; /* data is in the block of the storage */
};

static const struct ql_closed_kind kind;

static const struct images *of_storage(const struct ql_storage *s)
{
	return s->closed && s->closed->kind == &kind ? (const struct images *)s->closed : NULL;
}

bool ql_images_last(const struct ql_tensor *t)
{
	const struct images *r = of_storage(t->storage);
	int64_t pixels;

	if (t->rank != 4 || ql_dtypes[t->dtype].bits != 8 || !ql_tensor_is_contiguous(t))
		return false;
	pixels = t->shape[2] * t->shape[3];
	if (!ql_is_closed(t))
		return !t->storage->remote && (t->shape[1] == 1 || pixels == 1);
	return r && r->channels == t->shape[1] && r->pixels == pixels && t->offset % (r->channels * r->pixels) == 0;
}

uint8_t *ql_images_data(const struct ql_tensor *t)
{
	return ql_is_closed(t) ? of_storage(t->storage)->data + t->offset : ql_tensor_data(t);
}

/* Copies images from one order to the other; `strides` are those of the source. */
static enum ql_status reorder(struct ql_ctx *ctx, const struct images *r, void *from, void *to)
{
	int64_t plane = r->channels * r->pixels, n = (int64_t)r->base.bytes / plane;
	struct ql_storage of[2] = {{.refs = 1, .bytes = r->base.bytes, .data = from, .device = &ql_device_cpu},
		{.refs = 1, .bytes = r->base.bytes, .data = to, .device = &ql_device_cpu}};
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

static enum ql_status unpack(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	const struct images *r = (const struct images *)c;
	bool before = ctx->finishing;
	enum ql_status status;

	ctx->finishing = true; /* not interrupted half way */
	status = reorder(ctx, r, r->data, dense);
	ctx->finishing = before;
	return status;
}

static int64_t get(const struct ql_closed *c, int64_t at)
{
	const struct images *r = (const struct images *)c;
	int64_t image = at / (r->channels * r->pixels), rest = at % (r->channels * r->pixels);
	uint8_t code = r->data[(image * r->pixels + rest % r->pixels) * r->channels + rest / r->pixels];

	return ql_dtypes[c->dtype].kind == QL_KIND_INT ? (int8_t)code : code;
}

static void images_free(struct ql_ctx *ctx, struct ql_closed *c)
{
	struct images *r = (struct images *)c;

	if (!r->inside)
		ql_free(ctx, r->data);
	ql_free(ctx, r);
}

static const struct ql_closed_kind kind = {.unpack = unpack, .once = true, .get = get, .free = images_free};

enum ql_status ql_images_declare(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_storage *s = t->storage;
	struct images *r;

	if (t->shape[1] <= 1 || t->shape[2] * t->shape[3] <= 1 || s->bytes == 0)
		return QL_OK;
	r = ql_alloc_zeroed(ctx, sizeof(*r));
	if (!r)
		return QL_ERR_MEMORY;
	r->base = (struct ql_closed){
		.kind = &kind, .dtype = t->dtype, .codes = (int64_t)s->bytes, .dense = s->bytes, .bytes = s->bytes};
	r->channels = t->shape[1];
	r->pixels = t->shape[2] * t->shape[3];
	r->data = s->data;
	r->inside = ql_storage_inside(s, s->data);
	s->data = NULL;
	s->closed = &r->base;
	return QL_OK;
}
