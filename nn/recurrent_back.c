/* SPDX-License-Identifier: MIT
 * Recurrent layers backward through time: the steps from the last to the first give the gradients of all sums (din on
 * the side of x, dhidden on that of h); those of x and of the weights are then products over all steps at once.
 */
#include <string.h>

#include "nn/recurrent_steps.h"
#include "tensor/ops/ops.h"

/* All tensors are in the dtype of the computation and owned by the pool of the backward. */
struct backward {
	struct ql_back *b;
	const struct ql_recurrent_cell *cell;
	struct ql_sequences g;
	struct ql_tensor *y, *h, *c, *kept, *w; /* as recorded */
	struct ql_tensor *dy, *dh, *carry;      /* gradients of the results; then of the previous states */
	struct ql_tensor *din, *dhidden;
};

static struct ql_tensor *plain(struct backward *p, struct ql_tensor *t)
{
	struct ql_tensor *out = NULL;
	enum ql_status status;

	if (!t)
		return NULL;
	status = ql_recurrent_plain(p->b->ctx, t, p->g.dtype, &out);
	return ql_back_own(p->b, out, status);
}

/* A writable dense copy. */
static struct ql_tensor *copy(struct backward *p, struct ql_tensor *t)
{
	struct ql_tensor *out = NULL;
	enum ql_status status;

	if (!t)
		return NULL;
	status = ql_tensor_cast(p->b->ctx, t, p->g.dtype, &out);
	return ql_back_own(p->b, out, status);
}

static struct ql_tensor *zeros(struct backward *p, int64_t rows, int64_t columns)
{
	return ql_back_zeros(p->b, &(struct ql_result){.dtype = p->g.dtype, .rank = 2, .shape = {rows, columns}});
}

static struct ql_tensor *empty(struct backward *p, int64_t rows, int64_t columns)
{
	struct ql_tensor *t = NULL;
	enum ql_status status = p->b->status;

	if (status)
		return NULL;
	status = ql_tensor_new(p->b->ctx, p->g.dtype, 2, (int64_t[]){rows, columns}, &t);
	return ql_back_own(p->b, t, status);
}

static void collect(struct backward *p)
{
	struct ql_back *b = p->b;
	int64_t sums = p->cell->gates * p->g.hidden;

	p->y = plain(p, ql_back_out(b, 0));
	p->kept = ql_back_out(b, b->node->n_out - 1);
	p->h = plain(p, ql_back_in(b, 1));
	p->c = p->cell->c ? plain(p, ql_back_in(b, 2)) : NULL;
	p->w = plain(p, ql_back_in(b, p->g.first + 1));
	p->dy = plain(p, ql_back_grad(b, 0));
	p->dh = copy(p, ql_back_grad(b, 1));
	p->carry = p->cell->c ? copy(p, ql_back_grad(b, 2)) : zeros(p, p->g.batch, p->g.hidden);
	p->din = empty(p, p->g.rows, sums);
	p->dhidden = p->cell->split ? empty(p, p->g.rows, sums) : p->din;
}

static enum ql_status walk(struct backward *p)
{
	struct ql_ctx *ctx = p->b->ctx;
	struct ql_steps s = {.ctx = ctx, .cell = p->cell, .g = p->g};
	enum ql_status status = p->b->status;

	if (status)
		return status;
	s.h = ql_tensor_data(p->h);
	s.c = p->c ? ql_tensor_data(p->c) : NULL;
	s.y = ql_tensor_data(p->y);
	s.kept = ql_tensor_data(p->kept);
	s.dy = ql_tensor_data(p->dy);
	s.dh = ql_tensor_data(p->dh);
	s.carry = ql_tensor_data(p->carry);
	s.din = ql_tensor_data(p->din);
	s.dhidden = ql_tensor_data(p->dhidden);
	status = ql_steps_factor_of(ctx, p->w, false, &s.w);
	return status ? status : ql_steps_run(ctx, &s, true);
}

/* h before each step, (rows, hidden) */
static struct ql_tensor *states_before(struct backward *p)
{
	struct ql_tensor *t = empty(p, p->g.rows, p->g.hidden);
	const struct ql_sequences *g = &p->g;
	size_t bytes = ql_size_array(g->hidden, g->size);
	char *to, *y, *h;

	if (!t || p->b->status)
		return NULL;
	to = ql_tensor_data(t);
	y = ql_tensor_data(p->y);
	h = ql_tensor_data(p->h);
	for (int64_t i = 0; i < g->batch; i++)
		for (int64_t s = 0; s < g->steps; s++) {
			int64_t row = i * g->row + s * g->step;

			memcpy(to + (size_t)row * bytes,
				s ? y + (size_t)(row - g->step) * bytes : h + (size_t)i * bytes, bytes);
		}
	return t;
}

/* a' times b, both with one row per step and sequence */
static struct ql_tensor *outer(struct backward *p, struct ql_tensor *a, struct ql_tensor *b)
{
	return a && b ? ql_back_run(p->b, &ql_op_matmul, ql_back_transpose(p->b, a, 0, 1), b) : NULL;
}

static void give_inputs(struct backward *p)
{
	struct ql_back *b = p->b;
	const struct ql_result *x = ql_back_shape(b, 0);
	int64_t flat[2] = {p->g.rows, p->g.input};

	if (ql_back_wants(b, 0)) {
		struct ql_tensor *w = plain(p, ql_back_in(b, p->g.first));

		ql_back_give(b, 0, ql_back_reshape(b, ql_back_run(b, &ql_op_matmul, p->din, w), x->rank, x->shape));
	}
	if (ql_back_wants(b, p->g.first))
		ql_back_give(b, p->g.first, outer(p, p->din, ql_back_reshape(b, plain(p, ql_back_in(b, 0)), 2, flat)));
}

static void give_states(struct backward *p)
{
	struct ql_back *b = p->b;

	if (p->cell->c)
		ql_back_give(b, 2, p->carry);
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, p->cell->c ? p->dh : ql_back_run(b, &ql_op_add, p->dh, p->carry));
	if (ql_back_wants(b, p->g.first + 1))
		ql_back_give(b, p->g.first + 1, outer(p, p->dhidden, states_before(p)));
}

static void give_biases(struct backward *p)
{
	struct ql_back *b = p->b;
	int in = p->g.first + 2, hidden = in + 1;
	struct ql_tensor *sum = NULL;

	if (!p->g.bias)
		return;
	if (ql_back_wants(b, in) || (ql_back_wants(b, hidden) && !p->cell->split))
		sum = ql_back_sum(b, p->din, 1, false);
	ql_back_give(b, in, sum);
	if (ql_back_wants(b, hidden) && p->cell->split)
		sum = ql_back_sum(b, p->dhidden, 1, false);
	ql_back_give(b, hidden, sum);
}

enum ql_status ql_recurrent_backward(struct ql_back *b, const struct ql_recurrent_cell *cell)
{
	struct backward p = {.b = b, .cell = cell, .g = ql_sequences_of(&b->call, cell)};
	enum ql_status status;

	collect(&p);
	status = walk(&p);
	if (status)
		return status;
	give_inputs(&p);
	give_states(&p);
	give_biases(&p);
	return b->status;
}
