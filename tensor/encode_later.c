/* SPDX-License-Identifier: MIT
 * Codes that wait to be encoded.
 */
#include "tensor/encode_later.h"

#include "tensor/codec.h"
#include "tensor/deferred.h"

#define LEAST_ROWS 65   /* products of fewer rows read codes more than once */
#define LEAST (1 << 18) /* elements: below, what a call costs is more than what is saved */

struct waiting {
	struct ql_deferred base;
	struct ql_qparams *q;
	float scale;
	int32_t zero;
	bool taken;
};

static void forget(struct ql_ctx *ctx, struct ql_closed *c)
{
	struct waiting *w = (struct waiting *)c;

	ql_deferred_unlink(ctx, &w->base);
	ql_qparams_release(ctx, w->q);
	ql_free(ctx, w);
}

static enum ql_status encode(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	const struct waiting *w = (const struct waiting *)c;
	struct ql_tensor *x = w->base.in[0];
	struct ql_storage storage = {.refs = 1, .bytes = c->dense, .data = dense, .device = &ql_device_cpu};
	struct ql_tensor codes = *x;

	if (x->storage->version != w->base.version[0])
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "quantize: the operand of a result that waits has been written to");
	codes.refs = 1;
	codes.dtype = c->dtype;
	codes.offset = 0;
	codes.storage = &storage;
	codes.q = w->q;
	return ql_encode(ctx, x, &codes, &w->q->nan_count, &w->q->inf_count);
}

/* Elements are never asked for one by one: who reads them settles the storage first. */
static int64_t no_element(const struct ql_closed *c, int64_t at)
{
	(void)c;
	(void)at;
	return 0;
}

static const struct ql_closed_kind kind = {
	.unpack = encode, .once = true, .waits = true, .get = no_element, .free = forget};

bool ql_encode_can_wait(const struct ql_tensor *x, unsigned dtype)
{
	int64_t n = ql_tensor_nelem(x), row = x->rank ? x->shape[x->rank - 1] : 0;

	return n >= LEAST && n >= LEAST_ROWS * row && (dtype == QL_int8 || dtype == QL_uint8) &&
	       x->dtype == QL_float32 && ql_tensor_is_contiguous(x) && !x->storage->remote && !x->storage->closed;
}

enum ql_status ql_encode_later(
	struct ql_ctx *ctx, struct ql_tensor *x, unsigned dtype, struct ql_qparams *q, struct ql_tensor **out)
{
	struct waiting *w = ql_alloc_zeroed(ctx, sizeof(*w));
	struct ql_closed *closed;
	enum ql_status status;

	if (!w)
		return QL_ERR_MEMORY;
	ql_deferred_link(ctx, &w->base);
	closed = &w->base.base;
	closed->kind = &kind;
	closed->dtype = (uint8_t)dtype;
	closed->codes = ql_tensor_nelem(x);
	closed->dense = closed->bytes = ql_size_array(closed->codes, 1);
	w->q = ql_qparams_keep(q);
	w->scale = (float)ql_tensor_at_f64(q->scale, 0);
	w->zero = q->zero_point ? (int32_t)ql_tensor_at_f64(q->zero_point, 0) : 0;
	/* an alias: the tensor itself may be given other elements by x:copy_ and the like */
	status = ql_tensor_alias(ctx, x, &w->base.in[0]);
	w->base.n_in = !status;
	w->base.version[0] = x->storage->version;
	if (!status)
		status = ql_tensor_closed(ctx, dtype, x->rank, x->shape, closed, out);
	if (status) {
		forget(ctx, closed);
		return status;
	}
	(*out)->q = ql_qparams_keep(q);
	w->base.storage = (*out)->storage;
	return QL_OK;
}

bool ql_encode_waits(const struct ql_tensor *t)
{
	return t->storage->closed && t->storage->closed->kind == &kind;
}

bool ql_encode_take(const struct ql_tensor *t, struct ql_encode_source *from)
{
	struct waiting *w = ql_encode_waits(t) ? (struct waiting *)t->storage->closed : NULL;

	if (!w || w->taken || w->base.in[0]->storage->version != w->base.version[0])
		return false;
	w->taken = true;
	*from = (struct ql_encode_source){.x = ql_tensor_data(w->base.in[0]),
		.scale = w->scale,
		.zero = w->zero,
		.lo = w->q->codes.lo,
		.hi = w->q->codes.hi};
	return true;
}
