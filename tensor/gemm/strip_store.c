/* SPDX-License-Identifier: MIT
 * A storage whose codes are strips: of a whole matrix, whose rows may end within a byte.
 */
#include "tensor/gemm/strip_store.h"

#include "tensor/closed.h"
#include "tensor/gemm/strip_codes.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/storage.h"

#define HEAD 128    /* of strips, keeps them aligned */
#define SHARE 16    /* the part of the codes' bytes that tails may need */
#define PACK_NS 0.6 /* per code */

struct stored {
	struct ql_closed base;
	int64_t n, k, bytes; /* rows, codes of a row; bytes of a strip */
	int64_t pitch;       /* codes between rows of dense ones: those behind k are zeros */
	const uint8_t *codes;
};

_Static_assert(sizeof(struct stored) <= HEAD, "the description has room in front");

int64_t ql_strips_bytes(const struct ql_tensor *t)
{
	return ql_mul64(ql_ceil_div(t->shape[0], QL_STRIP), ql_strip_bytes(t->dtype, t->shape[1]));
}

/* ---- packing ---- */

struct packing {
	const struct ql_tensor *t;
	const void *rows;
	int64_t pitch, bytes;
	uint8_t *to;
};

static void pack_body(void *arg, int64_t begin, int64_t end)
{
	const struct packing *p = arg;
	const struct ql_tensor *t = p->t;

	for (int64_t i = begin; i < end; i++)
		ql_strip_pack(t->dtype, p->rows, t->offset + i * QL_STRIP * p->pitch, p->pitch,
			(int)ql_min64(QL_STRIP, t->shape[0] - i * QL_STRIP), t->shape[1], p->to + i * p->bytes);
}

static enum ql_status on_strips(
	struct ql_ctx *ctx, int64_t n, int64_t k, void (*body)(void *, int64_t, int64_t), void *arg)
{
	return ql_parallel_for(ctx, ql_ceil_div(n, QL_STRIP), 1, (int64_t)(PACK_NS * (double)n * (double)k), body, arg);
}

enum ql_status ql_strips_pack(struct ql_ctx *ctx, const struct ql_tensor *t, uint8_t *to)
{
	struct packing p = {.t = t,
		.pitch = ql_dtype_pitch(t->dtype, t->shape[1]),
		.bytes = ql_strip_bytes(t->dtype, t->shape[1]),
		.to = to};
	enum ql_status status =
		ql_closed_open(ctx, t->storage); /* products of integers may have put panels in their place */

	if (status)
		return status;
	p.rows = t->storage->data;
	status = on_strips(ctx, t->shape[0], t->shape[1], pack_body, &p);
	ql_closed_close(ctx, t->storage);
	return status;
}

/* ---- the storage ---- */

static int64_t get_one(const struct ql_closed *c, int64_t at)
{
	const struct stored *s = (const struct stored *)c;
	int64_t row = at / s->pitch, l = at % s->pitch;

	if (l >= s->k)
		return ql_dtype_is_binary(c->dtype) ? -1 : 0;
	return ql_strip_code(c->dtype, s->codes + row / QL_STRIP * s->bytes, (int)(row % QL_STRIP), l);
}

struct unpacking {
	const struct stored *from;
	void *dense;
};

static void unpack_body(void *arg, int64_t begin, int64_t end)
{
	const struct unpacking *u = arg;
	const struct stored *s = u->from;

	for (int64_t i = begin; i < end; i++)
		ql_strip_unpack(s->base.dtype, s->codes + i * s->bytes, (int)ql_min64(QL_STRIP, s->n - i * QL_STRIP),
			s->k, u->dense, i * QL_STRIP * s->pitch, s->pitch);
}

static enum ql_status unpack_all(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	struct unpacking u = {(const struct stored *)c, dense};

	return on_strips(ctx, u.from->n, u.from->k, unpack_body, &u);
}

static void drop(struct ql_ctx *ctx, struct ql_closed *c)
{
	ql_free(ctx, c);
}

static const struct ql_closed_kind kind = {.unpack = unpack_all, .get = get_one, .free = drop};

const uint8_t *ql_strips_stored(const struct ql_tensor *t)
{
	const struct stored *s = (const struct stored *)t->storage->closed;

	return ql_is_closed(t) && !t->offset && s->base.kind == &kind && s->base.dtype == t->dtype &&
			       s->n == t->shape[0] && s->k == t->shape[1]
		       ? s->codes
		       : NULL;
}

/* Whether nothing is in the bits behind the rows of t, which are dense. Where rows end within a byte, t may be a view that cuts longer
 * ones there: strips would not have their last codes. */
static bool ends_empty(const struct ql_tensor *t)
{
	int64_t bits = ql_dtypes[t->dtype].bits, pitch = ql_dtype_pitch(t->dtype, t->shape[1]) * bits / 8;
	int64_t used = t->shape[1] * bits, bytes = pitch - used / 8;
	const uint8_t *end = (const uint8_t *)t->storage->data + used / 8;
	unsigned held = 0;

	for (int64_t i = 0; i < t->shape[0] && bytes > 0 && !held; i++) {
		held = (unsigned)end[i * pitch] >> used % 8;
		for (int64_t k = 1; k < bytes; k++)
			held |= end[i * pitch + k];
	}
	return !held;
}

/* Nothing may hold the codes by their address. */
bool ql_strips_can_store(const struct ql_ctx *ctx, const struct ql_tensor *t)
{
	int64_t now = (int64_t)t->storage->bytes;

	return ql_closed_may_move(ctx) && ql_can_close(t) && !ql_storage_inside(t->storage, t->storage->data) &&
	       ql_strips_bytes(t) <= now + now / SHARE && ends_empty(t);
}

enum ql_status ql_strips_store(struct ql_ctx *ctx, struct ql_tensor *t, const uint8_t **strips)
{
	uint64_t bytes = (uint64_t)ql_add64(HEAD, ql_strips_bytes(t));
	struct stored *stored = ql_alloc(ctx, bytes);
	uint8_t *to = (uint8_t *)stored + HEAD;
	enum ql_status status;

	if (!stored)
		return QL_OK;
	status = ql_strips_pack(ctx, t, to);
	if (status) {
		ql_free(ctx, stored);
		return status;
	}
	*strips = to;
	*stored = (struct stored){.base = {.kind = &kind,
					  .dtype = t->dtype,
					  .codes = t->shape[0] * t->shape[1],
					  .dense = t->storage->bytes,
					  .bytes = bytes},
		.n = t->shape[0],
		.k = t->shape[1],
		.bytes = ql_strip_bytes(t->dtype, t->shape[1]),
		.pitch = ql_dtype_pitch(t->dtype, t->shape[1]),
		.codes = to};
	ql_storage_close(ctx, t->storage, &stored->base);
	return QL_OK;
}
