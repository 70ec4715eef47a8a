/* SPDX-License-Identifier: MIT
 * A storage in a layout that cannot be written to: its codes upside down, each complemented. Every way to the codes finds them; the
 * first write makes the storage dense.
 */
#include <string.h>

#include "quant/schemes/affine.h"
#include "tensor/closed.h"
#include "tensor/codec.h"
#include "tests/check.h"

extern const struct ql_scheme ql_scheme_symmetric;

#define N 1200

struct turned {
	struct ql_closed base;
	int8_t data[N];
};

static int freed;

static enum ql_status unpack(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	(void)ctx;
	for (int i = 0; i < N; i++)
		((int8_t *)dense)[i] = (int8_t) ~((const struct turned *)c)->data[N - 1 - i];
	return QL_OK;
}

static int64_t get(const struct ql_closed *c, int64_t at)
{
	return (int8_t) ~((const struct turned *)c)->data[N - 1 - at];
}

static void drop(struct ql_ctx *ctx, struct ql_closed *c)
{
	freed++;
	ql_free(ctx, c);
}

static const struct ql_closed_kind kind = {.unpack = unpack, .get = get, .free = drop};

static int8_t code_of(int64_t i)
{
	return (int8_t)(i * 7 % 251 - 125);
}

/* Codes (40, 30) with a scale of 0.5, closed. */
static struct ql_tensor *make(struct ql_ctx *ctx)
{
	struct turned *c = ql_alloc_zeroed(ctx, sizeof(*c));
	struct ql_qparams *q = ql_alloc_zeroed(ctx, sizeof(*q));
	struct ql_tensor *t;

	ql_tensor_new(ctx, QL_int8, 2, (const int64_t[]){40, 30}, &t);
	*q = (struct ql_qparams){
		.refs = 1, .scheme = &ql_scheme_symmetric, .axis = -1, .block_axis = -1, .from = QL_float32};
	q->codes.bits = 8;
	ql_scheme_symmetric.range(QL_int8, false, &q->codes);
	ql_tensor_new(ctx, QL_float32, 0, NULL, &q->scale);
	*(float *)ql_tensor_data(q->scale) = 0.5f;
	t->q = q;
	c->base = (struct ql_closed){.kind = &kind, .dtype = QL_int8, .codes = N, .dense = N, .bytes = sizeof(c->data)};
	for (int64_t i = 0; i < N; i++)
		c->data[N - 1 - i] = (int8_t)~code_of(i);
	CHECK(ql_can_close(t), "whole");
	ql_storage_close(ctx, t->storage, &c->base);
	CHECK(!ql_can_close(t) && ql_is_closed(t) && !t->storage->data, "closed");
	return t;
}

static bool has_codes(const struct ql_tensor *t)
{
	bool same = true;

	for (int64_t i = 0; i < N; i++)
		same = same && ql_tensor_at_f64(t, i) == code_of(i);
	return same;
}

static void reads(struct ql_ctx *ctx)
{
	struct ql_tensor *t = make(ctx), *copy = NULL, *plain = NULL;
	bool same = true;

	CASE("%s", "read");
	CHECK(has_codes(t), "elements");
	CHECK(!ql_tensor_clone(ctx, t, &copy) && has_codes(copy) && !ql_is_closed(copy), "a clone");
	CHECK(!ql_decode(ctx, t, &plain), "decoded");
	for (int64_t i = 0; i < N; i++)
		same = same && ql_tensor_at_f64(plain, i) == 0.5 * code_of(i);
	CHECK(same, "values");
	CHECK(!ql_closed_open(ctx, t->storage) && !ql_closed_open(ctx, t->storage), "opened twice");
	for (int64_t i = 0; i < N; i++)
		same = same && ((int8_t *)t->storage->data)[i] == code_of(i);
	CHECK(same, "dense codes");
	ql_closed_close(ctx, t->storage);
	CHECK(t->storage->data, "still open");
	ql_closed_close(ctx, t->storage);
	CHECK(ql_is_closed(t), "closed again");
	ql_tensor_release(ctx, plain);
	ql_tensor_release(ctx, copy);
	ql_tensor_release(ctx, t);
	CHECK(freed == 1, "freed with the storage");
}

/* `n` codes from row 3 on are overwritten. */
static void writes(struct ql_ctx *ctx, int64_t n)
{
	struct ql_tensor *t = make(ctx), *part = NULL, *from = NULL;

	CASE("%d codes are written", (int)n);
	ql_tensor_alias(ctx, t, &part);
	part->rank = 1;
	part->shape[0] = n;
	part->stride[0] = 1;
	part->offset = 90;
	ql_tensor_new(ctx, QL_int8, 1, &n, &from);
	memset(ql_tensor_data(from), 9, (size_t)n);
	CHECK(!ql_tensor_copy(ctx, part, from), "%s", ctx->err);
	CHECK(!t->storage->closed && t->storage->data && t->storage->bytes == N, "dense after a write");
	CHECK(ql_tensor_at_f64(t, 89) == code_of(89) && ql_tensor_at_f64(t, 90) == 9 &&
			ql_tensor_at_f64(t, 89 + n) == 9 && ql_tensor_at_f64(t, 90 + n) == code_of(90 + n),
		"codes");
	ql_tensor_release(ctx, from);
	ql_tensor_release(ctx, part);
	ql_tensor_release(ctx, t);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!CHECK(ctx, "no memory"))
		return check_end();
	reads(ctx);
	writes(ctx, 3); /* few */
	writes(ctx, 600);
	CHECK(freed == 3, "freed by the first write");
	ql_ctx_free(ctx);
	return check_end();
}
