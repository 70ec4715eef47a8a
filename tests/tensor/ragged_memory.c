/* SPDX-License-Identifier: MIT
 * Ragged storage when memory ends: nothing is lost, nothing leaks. What it holds is tested by ragged.lua.
 */
#include <string.h>

#include "quant/schemes/affine.h"
#include "tensor/codec.h"
#include "tensor/ragged.h"
#include "tests/check.h"

extern const struct ql_scheme ql_scheme_symmetric;

static const int8_t bits[] = {8, 3, 5, 2}, codes[] = {-127, 5, 127, 3, -3, 0, 15, -15, 1, 1, 0, -1};

/* Dense codes (4, 3) with the bits above. */
static struct ql_tensor *make(struct ql_ctx *ctx)
{
	struct ql_tensor *t;
	struct ql_qparams *q = ql_alloc_zeroed(ctx, sizeof(*q));

	ql_tensor_new(ctx, QL_int8, 2, (const int64_t[]){4, 3}, &t);
	memcpy(ql_tensor_data(t), codes, sizeof(codes));
	*q = (struct ql_qparams){.refs = 1, .scheme = &ql_scheme_symmetric, .block_axis = -1, .from = QL_float32};
	q->codes.bits = 8;
	ql_scheme_symmetric.range(QL_int8, false, &q->codes);
	ql_tensor_new(ctx, QL_float32, 1, (const int64_t[]){4}, &q->scale);
	ql_tensor_new(ctx, QL_int8, 1, (const int64_t[]){4}, &q->bits);
	for (int i = 0; i < 4; i++)
		((float *)ql_tensor_data(q->scale))[i] = 0.5f;
	memcpy(ql_tensor_data(q->bits), bits, sizeof(bits));
	t->q = q;
	return t;
}

static bool has_codes(const struct ql_tensor *t)
{
	bool same = true;

	for (int i = 0; i < 12; i++)
		same = same && ql_tensor_at_f64(t, i) == codes[i];
	return same;
}

typedef enum ql_status act_fn(struct ql_ctx *ctx, struct ql_tensor *t);

static enum ql_status pack(struct ql_ctx *ctx, struct ql_tensor *t)
{
	return ql_ragged_pack(ctx, t);
}

static enum ql_status open_and_close(struct ql_ctx *ctx, struct ql_tensor *t)
{
	enum ql_status status = ql_closed_open(ctx, t->storage);

	if (!status)
		ql_closed_close(ctx, t->storage);
	return status;
}

static enum ql_status clone(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_tensor *copy;
	enum ql_status status = ql_tensor_clone(ctx, t, &copy);

	CHECK(status || (ql_is_closed(copy) && has_codes(copy)), "clone");
	ql_tensor_release(ctx, copy);
	return status;
}

static enum ql_status decode(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_tensor *real;
	enum ql_status status = ql_decode(ctx, t, &real);

	CHECK(status || ql_tensor_at_f64(real, 3) == 1.5, "decode");
	ql_tensor_release(ctx, real);
	return status;
}

static enum ql_status copy(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_tensor *dense = make(ctx);
	enum ql_status status = dense ? ql_tensor_copy(ctx, t, dense) : QL_ERR_MEMORY;

	ql_tensor_release(ctx, dense);
	return status;
}

/* Lets allocation 1, 2, … fail until none does. */
static void try(struct ql_ctx *ctx, const char *name, act_fn *act, struct ql_tensor *t)
{
	enum ql_status status = QL_ERR_MEMORY;
	size_t before = ctx->memory.now;
	int n = 1;

	CASE("%s", name);
	for (; status && n < 50; n++) {
		ctx->memory.fail_after = (uint64_t)n;
		status = act(ctx, t);
		ctx->memory.fail_after = 0;
		CHECK(has_codes(t), "codes after failure %d", n);
		CHECK(!status || ctx->memory.now == before, "%zu bytes after failure %d", ctx->memory.now, n);
		before = act == decode ? ctx->memory.now : before; /* scratch memory may grow */
	}
	CHECK(!status && n > 2, "wanted success after some failures, got %d", n);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);
	struct ql_tensor *t = make(ctx);

	try(ctx, "pack", pack, t);
	CASE("packed");
	CHECK(ql_is_closed(t) && t->storage->bytes == 3 + 2 + 2 + 1, "%zu bytes", t->storage->bytes);
	CHECK(ql_tensor_nbytes(t) == 8 + 16 + 4, "%llu bytes", (unsigned long long)ql_tensor_nbytes(t));
	try(ctx, "open", open_and_close, t);
	try(ctx, "clone", clone, t);
	try(ctx, "decode", decode, t);
	CHECK(!copy(ctx, t) && has_codes(t), "copy");
	ql_tensor_release(ctx, t);
	ql_ctx_free(ctx);
	return check_end();
}
