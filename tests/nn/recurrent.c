/* SPDX-License-Identifier: MIT
 * Recurrent layers and optimizers when the user interrupts and when memory is short: an interrupted layer gives an error
 * and no result, a step that has begun is finished, every failing allocation is an error after which all is as before.
 */
#include <string.h>

#include "nn/nn.h"
#include "nn/optimizer.h"
#include "tensor/tape.h"
#include "tests/check.h"

static struct ql_tensor *make(struct ql_ctx *ctx, int rank, int64_t a, int64_t b, int64_t c)
{
	struct ql_tensor *t = NULL;
	float *x;

	if (ql_tensor_new(ctx, QL_float32, rank, (int64_t[]){a, b, c}, &t))
		return NULL;
	x = ql_tensor_data(t);
	for (int64_t i = 0; i < ql_tensor_nelem(t); i++)
		x[i] = (float)(i % 7) * 0.1f - 0.3f;
	return t;
}

struct layer {
	struct ql_tensor *in[7];
	struct ql_call call;
};

static void open_layer(struct ql_ctx *ctx, struct layer *l)
{
	*l = (struct layer){
		.in = {make(ctx, 3, 3, 4, 5), make(ctx, 2, 3, 6, 0), make(ctx, 2, 3, 6, 0), make(ctx, 2, 24, 5, 0),
			make(ctx, 2, 24, 6, 0), make(ctx, 1, 24, 0, 0), make(ctx, 1, 24, 0, 0)}};
	for (int i = 0; i < 7; i++)
		CHECK(ql_tape_leaf(ctx, l->in[i]) == QL_OK, "%s", ctx->err);
}

static void close_layer(struct ql_ctx *ctx, struct layer *l)
{
	for (int i = 0; i < 7; i++)
		ql_tensor_release(ctx, l->in[i]);
}

/* Forward and backward. */
static enum ql_status run(struct ql_ctx *ctx, struct layer *l)
{
	struct ql_tensor *seed = NULL;
	enum ql_status status;

	l->call = (struct ql_call){.op = ql_op_by_name(ql_nn_ops, "lstm"), .in = l->in, .n_in = 7};
	status = ql_op_apply(ctx, &l->call);
	for (int i = 3; i < QL_MAX_OUT; i++)
		CHECK(!l->call.out[i], "what is kept for backward was handed out");
	if (!status)
		status = ql_tensor_zeros(ctx, QL_float32, 3, l->call.out[0]->shape, &seed);
	if (!status)
		status = ql_backward(ctx, l->call.out[0], seed);
	ql_tensor_release(ctx, seed);
	for (int i = 0; i < 3; i++)
		ql_tensor_release(ctx, l->call.out[i]);
	return status;
}

static void test_interrupt(struct ql_ctx *ctx)
{
	struct layer l;

	CASE("an interrupted layer");
	open_layer(ctx, &l);
	ctx->interrupted = 1;
	CHECK(run(ctx, &l) == QL_ERR_INTERRUPTED, "%s", ctx->err);
	ctx->interrupted = 0;
	CHECK(run(ctx, &l) == QL_OK, "%s", ctx->err);
	close_layer(ctx, &l);
}

static void test_memory(struct ql_ctx *ctx)
{
	struct layer l;
	enum ql_status status = QL_ERR_MEMORY;
	int n;

	CASE("every allocation of a layer fails");
	open_layer(ctx, &l);
	CHECK(run(ctx, &l) == QL_OK, "%s", ctx->err); /* gradients are there: they are added to or not */
	for (n = 1; n < 500 && status; n++) {
		ctx->memory.fail_after = (uint64_t)n;
		status = run(ctx, &l);
		ctx->memory.fail_after = 0;
		if (!status)
			break;
		CHECK(status == QL_ERR_MEMORY, "allocation %d: %s", n, ctx->err);
		for (int i = 0; i < 7; i++)
			CHECK(l.in[i]->refs == 1, "allocation %d: operand %d has %d references", n, i, l.in[i]->refs);
	}
	CHECK(!status && n > 20, "%d allocations: %s", n, ctx->err);
	close_layer(ctx, &l);
}

static void step_of(struct ql_ctx *ctx, struct ql_trained *t, struct ql_adam *o)
{
	*t = (struct ql_trained){.value = make(ctx, 2, 40, 50, 0), .gradient = make(ctx, 2, 40, 50, 0), .step = 1};
	for (int i = 0; i < 2; i++)
		CHECK(ql_tensor_zeros(ctx, QL_float32, 2, (int64_t[]){40, 50}, &t->state[i]) == QL_OK, "%s", ctx->err);
	*o = (struct ql_adam){.clip = {1, 0}, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
}

static void test_step(struct ql_ctx *ctx)
{
	struct ql_trained t;
	struct ql_adam o;
	uint64_t version;
	double norm;

	CASE("a step under an interrupt");
	step_of(ctx, &t, &o);
	version = t.value->storage->version;
	ctx->interrupted = 1;
	CHECK(ql_gradient_norm(ctx, 1, &t.gradient, &norm) == QL_ERR_INTERRUPTED, "norm: %s", ctx->err);
	CHECK(ql_adam_step(ctx, 1, &t, &o) == QL_OK, "%s", ctx->err);
	ctx->interrupted = 0;
	CHECK(t.value->storage->version > version, "the version did not change");
	/* gradient 0.1 at element 4: the first step is lr long */
	CHECK(((float *)ql_tensor_data(t.value))[4] < 0.1f - 0.099f, "not finished");
	CHECK(((float *)ql_tensor_data(t.value))[1999] != (float)(1999 % 7) * 0.1f - 0.3f, "not finished");
	CASE("a state of the wrong shape");
	ql_tensor_release(ctx, t.state[1]);
	t.state[1] = make(ctx, 2, 50, 40, 0);
	CHECK(ql_adam_step(ctx, 1, &t, &o) == QL_ERR_SHAPE &&
			strstr(ctx->err, "adam: state: wanted a dense float32(40, 50)"),
		"%s", ctx->err);
	ql_tensor_release(ctx, t.value);
	ql_tensor_release(ctx, t.gradient);
	ql_tensor_release(ctx, t.state[0]);
	ql_tensor_release(ctx, t.state[1]);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(2);

	test_interrupt(ctx);
	test_memory(ctx);
	test_step(ctx);
	ql_ctx_free(ctx);
	return check_end();
}
