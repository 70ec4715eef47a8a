/* SPDX-License-Identifier: MIT
 * A backward that is interrupted, or that gets no memory: the sums of all leaves are as before, no byte is lost, and the
 * same computation, made again, has the right gradients. An op of this test interrupts when its turn comes, so that the
 * walk is stopped at a place that is known.
 */
#include <string.h>

#include "tensor/autograd/back.h"
#include "tensor/ops/ops.h"
#include "tests/check.h"

#define SIZE 200

static bool trap_is_set;

static enum ql_status trap_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	return ql_tensor_clone(ctx, call->in[0], &call->out[0]);
}

static enum ql_status trap_backward(struct ql_back *b)
{
	b->ctx->interrupted = trap_is_set;
	return ql_backward_same(b);
}

static const struct ql_op trap = {.doc = {.name = "trap"},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_NATIVE,
	.eval = trap_eval,
	.allocates = true,
	.backward = trap_backward};

static struct ql_tensor *leaf(struct ql_ctx *ctx, float value)
{
	struct ql_tensor *t = NULL;

	if (ql_tensor_new(ctx, QL_float32, 2, (const int64_t[]){SIZE, SIZE}, &t))
		return NULL;
	for (int i = 0; i < SIZE * SIZE; i++)
		((float *)ql_tensor_data(t))[i] = value;
	CHECK(ql_tape_leaf(ctx, t) == QL_OK, "%s", ctx->err);
	return t;
}

/* *t becomes op(*t, other) */
static enum ql_status then(struct ql_ctx *ctx, const struct ql_op *op, struct ql_tensor *other, struct ql_tensor **t)
{
	struct ql_tensor *next = NULL;
	enum ql_status status = ql_op_run(ctx, op, *t, other, &next);

	ql_tensor_release(ctx, *t);
	*t = next;
	return status;
}

/* sum of ((a + b) * b) @ c, with the trap after step `at`; backward. */
static enum ql_status run(struct ql_ctx *ctx, struct ql_tensor **l, int at)
{
	const struct ql_op *const ops[] = {&ql_op_add, &ql_op_mul, &ql_op_matmul, &ql_op_sum};
	struct ql_tensor *const other[] = {l[1], l[1], l[2], NULL}, *t = ql_tensor_keep(l[0]);
	enum ql_status status = QL_OK;

	for (int i = 0; i < 4 && !status; i++) {
		if (i == at)
			status = then(ctx, &trap, NULL, &t);
		if (!status)
			status = then(ctx, ops[i], other[i], &t);
	}
	if (!status)
		status = ql_backward(ctx, t, NULL);
	ql_tensor_release(ctx, t);
	return status;
}

/* Every gradient is `times` what one backward gives: a = 1, b = 2, c = 3 are constant. */
static bool sums_are(struct ql_tensor **l, float times)
{
	const float one[] = {2 * 3 * SIZE, (2 + 3) * 3 * SIZE, 6 * SIZE};

	for (int i = 0; i < 3; i++) {
		const struct ql_tensor *sum = l[i]->node->sum;

		if (!sum)
			return times == 0;
		for (int k = 0; k < SIZE * SIZE; k++)
			if (((const float *)ql_tensor_data(sum))[k] != times * one[i])
				return false;
	}
	return true;
}

static void test_interrupts(struct ql_ctx *ctx, struct ql_tensor **l)
{
	float times = 1; /* backwards so far */

	for (int at = 0; at < 4; at++) {
		size_t before = ctx->memory.now;

		CASE("interrupted before operation %d", at + 1);
		trap_is_set = true;
		CHECK(run(ctx, l, at) == QL_ERR_INTERRUPTED, "not interrupted");
		ctx->interrupted = 0;
		CHECK(sums_are(l, times), "the sums have changed");
		CHECK(ctx->memory.now == before, "%zu bytes, %zu before", ctx->memory.now, before);
		trap_is_set = false;
		CHECK(run(ctx, l, at) == QL_OK, "%s", ctx->err);
		times++;
		CHECK(sums_are(l, times), "wrong gradients after it was run again");
	}
}

static void test_memory(struct ql_ctx *ctx, struct ql_tensor **l)
{
	enum ql_status status = QL_ERR_MEMORY;
	size_t before = ctx->memory.now;
	int n;

	CASE("every allocation fails");
	CHECK(sums_are(l, 5), "the sums of the case before");
	for (n = 1; n < 1000 && status; n++) {
		ctx->memory.fail_after = (uint64_t)n;
		status = run(ctx, l, 9);
		ctx->memory.fail_after = 0;
		if (!status)
			break;
		CHECK(status == QL_ERR_MEMORY, "allocation %d: %s", n, ctx->err);
		CHECK(sums_are(l, 5), "allocation %d: the sums have changed", n);
	}
	CHECK(!status && n > 20, "%d allocations: %s", n, ctx->err);
	CHECK(ctx->memory.now == before, "%zu bytes, %zu before", ctx->memory.now, before);
	CHECK(sums_are(l, 6), "wrong gradients");
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(2);
	struct ql_tensor *l[3];

	for (int i = 0; i < 3; i++)
		l[i] = leaf(ctx, (float)(i + 1));
	CASE("not interrupted"); /* and the scratch memory has grown to what is needed */
	CHECK(run(ctx, l, 4) == QL_OK, "%s", ctx->err);
	CHECK(sums_are(l, 1), "wrong gradients");
	test_interrupts(ctx, l);
	test_memory(ctx, l);
	for (int i = 0; i < 3; i++)
		ql_tensor_release(ctx, l[i]);
	ql_ctx_free(ctx);
	return check_end();
}
