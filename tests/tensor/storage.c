/* SPDX-License-Identifier: MIT
 * What is kept with a storage: found again by its key, made anew after a write, the oldest dropped, all freed with it.
 */
#include "tensor/tensor.h"
#include "tests/check.h"

static struct ql_derived_key key_of(const void *maker, int64_t offset)
{
	return (struct ql_derived_key){
		.maker = maker, .offset = offset, .stride = {1, 2}, .size = {3, 4}, .dtype = QL_int8};
}

static struct ql_derived *place(struct ql_ctx *ctx, struct ql_tensor *t, const void *maker, int64_t offset)
{
	struct ql_derived_key key = key_of(maker, offset);

	return ql_storage_derived(ctx, t->storage, &key);
}

static void test_keys(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_derived_key key = key_of(ctx, 0), other = key;
	struct ql_derived *d = ql_storage_derived(ctx, t->storage, &key);

	CASE("keys");
	CHECK(d && d->asked == 0 && !d->data, "first");
	d->data = ql_alloc(ctx, 1000);
	CHECK(ql_storage_derived(ctx, t->storage, &key) == d && d->asked == 1, "again");
	other.maker = t;
	CHECK(ql_storage_derived(ctx, t->storage, &other) != d, "maker");
	other = key;
	other.offset++;
	CHECK(ql_storage_derived(ctx, t->storage, &other) != d, "offset");
	other = key;
	other.stride[1]++;
	CHECK(ql_storage_derived(ctx, t->storage, &other) != d, "stride");
	CHECK(ql_storage_derived(ctx, t->storage, &key) == d && d->asked == 2, "still there");
}

static void test_writes(struct ql_ctx *ctx, struct ql_tensor *t)
{
	size_t before;
	struct ql_derived *d;

	CASE("writes");
	t->storage->version++;
	place(ctx, t, ctx, 0);
	before = ctx->memory.now;
	d = place(ctx, t, ctx, 0);
	CHECK(d && d->asked == 1, "asked %d", d ? d->asked : -1);
	d->data = ql_alloc(ctx, 5000);
	t->storage->version++;
	d = place(ctx, t, ctx, 0);
	CHECK(d && d->asked == 0 && !d->data, "stale");
	CHECK(ctx->memory.now == before, "%zu bytes more", ctx->memory.now - before);
}

static void test_oldest(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_derived *d;

	CASE("the oldest goes");
	t->storage->version++;
	for (int64_t i = 0; i < 4; i++) {
		d = place(ctx, t, ctx, i);
		d->data = ql_alloc(ctx, 100);
	}
	CHECK(place(ctx, t, ctx, 0)->asked == 1, "four are kept");
	CHECK(place(ctx, t, ctx, 9)->asked == 0, "a fifth");
	CHECK(place(ctx, t, ctx, 3)->asked == 1, "the newest stay");
	CHECK(place(ctx, t, ctx, 0)->asked == 0, "the first went");
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);
	struct ql_tensor *t = NULL;
	size_t before = ctx->memory.now;

	if (ql_tensor_zeros(ctx, QL_int8, 1, (const int64_t[]){16}, &t))
		return 1;
	test_keys(ctx, t);
	test_writes(ctx, t);
	test_oldest(ctx, t);
	CASE("no memory");
	ctx->memory.fail_after = 1;
	CHECK(!place(ctx, t, t, 77), "wanted none");
	ctx->memory.fail_after = 0;
	CASE("freed with the storage");
	ql_tensor_release(ctx, t);
	CHECK(ctx->memory.now == before, "%zu bytes left", ctx->memory.now - before);
	ql_ctx_free(ctx);
	return check_end();
}
