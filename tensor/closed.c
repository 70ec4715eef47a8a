/* SPDX-License-Identifier: MIT
 * Storages in another layout than dense codes: opening, closing, single elements.
 */
#include "tensor/closed.h"

#include <string.h>

#define FEW 64 /* smaller parts of a storage than 1/FEW are read and written element by element */
#define RUN 64 /* codes that are read at a time */

bool ql_can_close(const struct ql_tensor *t)
{
	int64_t n = 1;

	if (!ql_storage_can_close(t->storage) || t->offset || !ql_tensor_is_contiguous(t))
		return false;
	for (int d = 0; d < t->rank; d++)
		n *= d == t->rank - 1 ? ql_dtype_pitch(t->dtype, t->shape[d]) : t->shape[d];
	return (uint64_t)n * ql_dtypes[t->dtype].bits / 8 == t->storage->bytes;
}

/* Drops the other layout of a storage that is open. */
static void make_dense(struct ql_ctx *ctx, struct ql_storage *s)
{
	struct ql_closed *c = s->closed;

	s->closed = NULL;
	s->bytes = c->dense;
	c->kind->free(ctx, c);
}

/* Half of the codes would be none, so this is not interrupted, unless they are to be computed. */
static enum ql_status unpack(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	bool before = ctx->finishing;
	enum ql_status status;

	ctx->finishing = before || !c->kind->waits;
	status = c->kind->unpack(ctx, c, dense);
	ctx->finishing = before;
	return status;
}

enum ql_status ql_closed_open(struct ql_ctx *ctx, struct ql_storage *s)
{
	struct ql_closed *c = s->closed;
	enum ql_status status;
	void *dense;

	if (!c || c->opened) {
		if (c)
			c->opened++;
		else
			s->pins++;
		return QL_OK;
	}
	dense = ql_dtype_is_packed(c->dtype) ? ql_alloc_zeroed(ctx, c->dense) : ql_alloc(ctx, c->dense);
	if (!dense)
		return QL_ERR_MEMORY;
	status = unpack(ctx, c, dense);
	if (status) {
		ql_free(ctx, dense);
		return status;
	}
	s->data = dense;
	if (c->kind->once) {
		make_dense(ctx, s);
		s->pins++;
		return QL_OK;
	}
	c->opened = 1;
	c->version = s->version;
	return QL_OK;
}

void ql_closed_close(struct ql_ctx *ctx, struct ql_storage *s)
{
	struct ql_closed *c = s->closed;
	bool written, before = ctx->finishing;

	if (!c) {
		if (s->pins > 0)
			s->pins--; /* else an operand with its channels last was left as it was, and opened by a path */
		return;
	}
	if (c->kind->once || --c->opened > 0) /* once: it was left as it is */
		return;
	written = s->version != c->version;
	if (written && !c->kind->pack) {
		make_dense(ctx, s);
		return;
	}
	ctx->finishing = true;
	if (written)
		c->kind->pack(ctx, c, s->data);
	ctx->finishing = before;
	ql_free(ctx, s->data);
	s->data = NULL;
}

bool ql_closed_fills(const struct ql_tensor *t, const struct ql_tensor *to)
{
	const struct ql_closed *c = t->storage->closed;

	return ql_is_closed(t) && !c->kind->once && !t->offset && t->dtype == c->dtype && t->dtype == to->dtype &&
	       ql_tensor_same_shape(t, to) && ql_tensor_is_contiguous(t) && ql_tensor_nelem(t) == c->codes &&
	       ql_can_close(to) && to->storage->bytes == c->dense;
}

enum ql_status ql_closed_unpack(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor *to)
{
	const struct ql_closed *c = t->storage->closed;

	if (ql_dtype_is_packed(to->dtype))
		memset(to->storage->data, 0, to->storage->bytes);
	to->storage->version++;
	return unpack(ctx, c, to->storage->data);
}

/* ---- elements ---- */

bool ql_closed_few(const struct ql_tensor *t)
{
	const struct ql_closed *c = t->storage->closed;

	return ql_is_closed(t) && !c->kind->once && ql_tensor_nelem(t) < c->codes / FEW;
}

/* Advances the index to the next element in row-major order. */
static void advance(const struct ql_tensor *t, int64_t *index)
{
	for (int d = t->rank - 1; d >= 0 && ++index[d] == t->shape[d]; d--)
		index[d] = 0;
}

/* Of the element at `index` in the dense codes. */
static int64_t place_of(const struct ql_tensor *t, const int64_t *index)
{
	int64_t at = t->offset;

	for (int d = 0; d < t->rank; d++)
		at += index[d] * t->stride[d];
	return at;
}

/* In runs along the last axis. */
enum ql_status ql_closed_gather(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	const struct ql_closed *c = t->storage->closed;
	int last = t->rank - 1;
	int64_t n = ql_tensor_nelem(t), run = t->rank ? t->shape[last] : 1, step = t->rank ? t->stride[last] : 0;
	int64_t index[QL_MAX_RANK] = {0}, code[RUN];
	enum ql_status status = ql_tensor_new(ctx, ql_dtype_whole(t->dtype), t->rank, t->shape, out);

	for (int64_t i = 0; i < n && !status; i += run, advance(t, index)) {
		int64_t at = place_of(t, index);

		for (int64_t k = 0, m; k < run; k += m) {
			m = ql_min64(RUN, run - k);
			for (int64_t e = 0; e < m; e++)
				code[e] = c->kind->get(c, at + (k + e) * step);
			ql_dtypes[(*out)->dtype].from_i64((*out)->storage->data, i + k, 1, m, code);
		}
		if (t->rank)
			index[last] = run - 1;
	}
	return status;
}

void ql_closed_scatter(struct ql_tensor *t, const struct ql_tensor *from)
{
	struct ql_closed *c = t->storage->closed;
	int64_t n = ql_tensor_nelem(t), index[QL_MAX_RANK] = {0};

	t->storage->version++;
	for (int64_t i = 0; i < n; i++, advance(t, index)) {
		c->kind->put(c, place_of(t, index), ql_tensor_get_i64(from, index));
	}
}
