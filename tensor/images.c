/* SPDX-License-Identifier: MIT
 * Images with their channels last: which tensors are, and the way back.
 */
#include "tensor/images.h"

#include "tensor/parallel.h"
#include "tensor/transpose.h"

#define PART 1024      /* pixels of an image that a thread takes at once */
#define UNPACK_NS 0.15 /* per code */

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

struct unpacking {
	const struct images *from;
	uint8_t *dense;
	int64_t parts; /* of an image */
};

static void unpack_body(void *arg, int64_t begin, int64_t end)
{
	const struct unpacking *u = arg;
	int64_t channels = u->from->channels, pixels = u->from->pixels;

	for (int64_t i = begin; i < end; i++) {
		int64_t image = i / u->parts * channels * pixels, first = i % u->parts * PART;

		ql_transpose_bytes(channels, ql_min64(PART, pixels - first), u->from->data + image + first * channels,
			channels, u->dense + image + first, pixels);
	}
}

static enum ql_status unpack(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	const struct images *r = (const struct images *)c;
	struct unpacking u = {r, dense, ql_ceil_div(r->pixels, PART)};
	int64_t images = c->codes / (r->channels * r->pixels);
	bool before = ctx->finishing;
	enum ql_status status;

	ctx->finishing = true; /* not interrupted half way */
	status = ql_parallel_for(ctx, images * u.parts, 1, (int64_t)(UNPACK_NS * (double)c->codes), unpack_body, &u);
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
