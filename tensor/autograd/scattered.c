/* SPDX-License-Identifier: MIT
 * Gradients of writes to places. Replaced values get none; equal largest or smallest ones share theirs evenly, as in
 * PyTorch; the factor of a product is the product of all other ones, without a division by 0.
 */
#include "tensor/autograd/scattered.h"

enum ql_status ql_places_reshape(
	struct ql_ctx *ctx, struct ql_tensor *t, int rank, const int64_t *shape, struct ql_tensor **out)
{
	struct ql_value size = {.set = true, .ints = {rank, (int64_t *)(uintptr_t)shape}};
	struct ql_call call = {.op = &ql_op_reshape, .in = &t, .n_in = 1, .attr = &size};
	enum ql_status status = ql_op_apply(ctx, &call);

	*out = status ? NULL : call.out[0];
	return status;
}

struct ql_tensor *ql_placed_put(struct ql_back *b, const struct ql_placer *p, struct ql_tensor *x,
	struct ql_tensor *index, struct ql_tensor *src, const char *reduce)
{
	struct ql_tensor *in[3] = {x, index, src};
	struct ql_named attrs[] = {p->attr, {"reduce", {.s = reduce}}, {NULL, {.set = false}}};

	return ql_back_many(b, p->put, in, 3, attrs);
}

struct ql_tensor *ql_placed_take(
	struct ql_back *b, const struct ql_placer *p, struct ql_tensor *x, struct ql_tensor *index)
{
	struct ql_named attrs[] = {p->attr, {NULL, {.set = false}}};

	return ql_back_with(b, p->take, x, index, attrs);
}

uint32_t ql_placed_saves(const struct ql_call *call)
{
	enum ql_placing how = ql_placing_of(call);

	if (how == QL_PLACE_SET || how == QL_PLACE_ADD)
		return QL_SAVE(1);
	return QL_SAVE(0) | QL_SAVE(1) | QL_SAVE(2) | (how == QL_PLACE_MUL ? 0 : QL_SAVE_RESULT);
}

/* ---- an op in no table: the elements of the operand numbered in row-major order from 0 ---- */

static enum ql_status numbers_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	(void)ctx;
	ql_result_set(call, 0, QL_int64, call->in[0]->rank, call->in[0]->shape);
	return QL_OK;
}

static enum ql_status numbers_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	int64_t n = ql_tensor_nelem(call->out[0]), *to = ql_tensor_data(call->out[0]);

	(void)ctx;
	call->path = "int64";
	for (int64_t i = 0; i < n; i++)
		to[i] = i;
	return QL_OK;
}

static const struct ql_op scatter_numbers = {.doc = {.name = "scatter_numbers"},
	.arity_min = 1,
	.arity_max = 1,
	.infer = numbers_infer,
	.eval = numbers_eval};

/* ---- replacing ---- */

static struct ql_tensor *or_zero(struct ql_back *b, struct ql_tensor *some, struct ql_tensor *t)
{
	return ql_back_run3(b, &ql_op_where, some, t, ql_back_number(b, 0, t));
}

/* True for the values that were the last to be written to their place, found by writing their numbers and reading them
 * back. `like` has their shape. */
static struct ql_tensor *last_writers(
	struct ql_back *b, const struct ql_placer *p, struct ql_tensor *index, struct ql_tensor *like)
{
	struct ql_result places = *ql_back_shape(b, 0);
	struct ql_tensor *numbers = ql_back_run(b, &scatter_numbers, like, NULL), *put;

	places.dtype = QL_int64;
	put = ql_placed_put(b, p, ql_back_zeros(b, &places), index, numbers, "none");
	return ql_back_run(b, &ql_op_eq, numbers, ql_placed_take(b, p, put, index));
}

static struct ql_tensor *set_backward(
	struct ql_back *b, const struct ql_placer *p, struct ql_tensor *g, struct ql_tensor *index)
{
	struct ql_tensor *part;

	if (ql_back_wants(b, 0)) {
		/* where g is: only a number may be elsewhere */
		struct ql_tensor *zero = ql_back_zeros(b, &(struct ql_result){.dtype = g->dtype});

		part = ql_placed_take(b, p, g, index);
		zero = part ? ql_back_expand(b, zero, part->rank, part->shape) : NULL;
		ql_back_give(b, 0, ql_placed_put(b, p, g, index, zero, "none"));
	}
	if (!ql_back_wants(b, 2))
		return NULL;
	part = ql_placed_take(b, p, g, index);
	return or_zero(b, last_writers(b, p, index, part), part);
}

/* ---- largest and smallest ---- */

/* 1 where `some` is true, else 0, in the dtype of g */
static struct ql_tensor *ones(struct ql_back *b, struct ql_tensor *g, struct ql_tensor *some)
{
	return ql_back_run3(b, &ql_op_where, some, ql_back_number(b, 1, g), ql_back_number(b, 0, g));
}

static struct ql_tensor *extreme_backward(struct ql_back *b, const struct ql_placer *p, struct ql_tensor *g,
	struct ql_tensor *index, struct ql_tensor *src)
{
	struct ql_tensor *result = ql_back_out(b, 0), *own, *written, *count, *share;

	own = ql_back_run(b, &ql_op_eq, ql_back_in(b, 0), result);
	written = ql_back_run(b, &ql_op_eq, src, ql_placed_take(b, p, result, index));
	count = ql_placed_put(b, p, ones(b, g, own), index, ones(b, g, written), "add");
	share = ql_back_run(b, &ql_op_div, g, count);
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, or_zero(b, own, share));
	return ql_back_wants(b, 2) ? or_zero(b, written, ql_placed_take(b, p, share, index)) : NULL;
}

/* ---- products ---- */

static struct ql_tensor *product_backward(struct ql_back *b, const struct ql_placer *p, struct ql_tensor *g,
	struct ql_tensor *index, struct ql_tensor *src)
{
	struct ql_tensor *x = ql_back_in(b, 0), *zeros, *more, *product, *part;

	product = ql_back_nonzero(b, x, &zeros);
	part = ql_back_nonzero(b, src, &more);
	product = ql_placed_put(b, p, product, index, part, "mul");
	zeros = ql_placed_put(b, p, zeros, index, more, "add");
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, g, ql_back_others(b, x, product, zeros)));
	if (!ql_back_wants(b, 2))
		return NULL;
	part = ql_back_others(b, src, ql_placed_take(b, p, product, index), ql_placed_take(b, p, zeros, index));
	return ql_back_run(b, &ql_op_mul, ql_placed_take(b, p, g, index), part);
}

struct ql_tensor *ql_placed_backward(struct ql_back *b, const struct ql_placer *p, struct ql_tensor *src)
{
	struct ql_tensor *g = ql_back_grad(b, 0), *index = ql_back_in(b, 1);

	if (b->status)
		return NULL;
	switch (ql_placing_of(&b->call)) {
	case QL_PLACE_SET: return set_backward(b, p, g, index);
	case QL_PLACE_MAX:
	case QL_PLACE_MIN: return extreme_backward(b, p, g, index, src);
	case QL_PLACE_MUL: return product_backward(b, p, g, index, src);
	case QL_PLACE_ADD: break;
	}
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, g);
	return ql_back_wants(b, 2) ? ql_placed_take(b, p, g, index) : NULL;
}
