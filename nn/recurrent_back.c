/* SPDX-License-Identifier: MIT
 * Recurrent layers backward through time: the steps from the last to the first, one op, give the gradients of all sums
 * (din on the side of x, dhidden on that of h); those of x and of the weights are then products over all steps at once.
 */
#include <string.h>

#include "nn/recurrent_steps.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

/* ---- the steps: an op in no table ---- */

/* Operands: the gradients of y, h (, c); the saved values, w_hh; c or, for a cell without it, h and y; lengths. */
enum { DY, DH, DC };

static int kept_index(const struct ql_recurrent_cell *cell)
{
	return cell->c ? DC + 1 : DC;
}

enum ql_status ql_recurrent_back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_recurrent_cell *cell = call->op->impl;
	struct ql_sequences g = ql_sequences_of(call, cell);
	int64_t sums[2] = {g.rows, cell->gates * g.hidden};

	(void)ctx;
	ql_result_set(call, 0, g.dtype, 2, sums);
	ql_result_set(call, 1, g.dtype, 2, call->in[DH]->shape);
	if (cell->c)
		ql_result_set(call, 2, g.dtype, 2, call->in[DC]->shape);
	else
		ql_result_set(call, 2, g.dtype, 2, sums);
	call->n_out = cell->c || cell->split ? 3 : 2;
	if (g.lengths && g.reverse)
		ql_result_set(call, call->n_out++, g.dtype, 2, (const int64_t[]){g.rows, 1});
	return QL_OK;
}

/* The tensors of a call, in the dtype of the computation. */
struct steps {
	struct ql_sequences g;
	struct ql_tensor *dy, *w, *state, *y; /* state: the first c or h */
	struct ql_tensor *dh, *carry;         /* gradients of the results; then of the previous states */
	struct ql_tensor *din, *dhidden;
	struct ql_tensor *lengths, *early, *late; /* the rows of w whose products are of h, and the others */
	struct ql_tensor *begins;
};

static enum ql_status take(struct ql_ctx *ctx, const struct ql_call *call, struct steps *t)
{
	const struct ql_recurrent_cell *cell = call->op->impl;
	struct ql_tensor **in = call->in, **rest = in + kept_index(cell) + 1;
	unsigned dtype = t->g.dtype;
	enum ql_status status = ql_recurrent_plain(ctx, in[DY], dtype, &t->dy);

	if (!status)
		status = ql_recurrent_plain(ctx, rest[0], dtype, &t->w);
	if (!status)
		status = ql_recurrent_plain(ctx, rest[1], dtype, &t->state);
	if (!status && !cell->c)
		status = ql_recurrent_plain(ctx, rest[2], dtype, &t->y);
	if (!status) /* these are written to */
		status = ql_tensor_cast(ctx, in[DH], dtype, &t->dh);
	if (!status && cell->c)
		status = ql_tensor_cast(ctx, in[DC], dtype, &t->carry);
	else if (!status)
		status = ql_tensor_zeros(ctx, dtype, 2, in[DH]->shape, &t->carry);
	if (!status)
		status = ql_tensor_new(ctx, dtype, 2, call->result[0].shape, &t->din);
	if (!status && cell->split)
		status = ql_tensor_new(ctx, dtype, 2, call->result[0].shape, &t->dhidden);
	if (!status && t->g.lengths && t->g.reverse)
		status = ql_tensor_zeros(ctx, dtype, 2, (const int64_t[]){t->g.rows, 1}, &t->begins);
	return status ? status : ql_sequences_lengths(ctx, call, &t->g, &t->lengths);
}

/* The factors of the products: of w, or of both parts of it. */
static enum ql_status factors(struct ql_ctx *ctx, const struct ql_call *call, struct steps *t, struct ql_steps *s)
{
	int64_t n = t->g.hidden, early = s->cell->early * n, late = s->cell->gates * n - early;
	enum ql_status status;

	if (!early)
		return ql_steps_factor_of(ctx, t->w, false, &s->w);
	status = ql_view_narrow(ctx, call->op->doc.name, t->w, 0, 0, early, &t->early);
	if (!status)
		status = ql_view_narrow(ctx, call->op->doc.name, t->w, 0, early, late, &t->late);
	if (!status)
		status = ql_steps_factor_of(ctx, t->early, false, &s->w);
	if (!status)
		status = ql_steps_factor_of(ctx, t->late, false, &s->late);
	s->reset = status ? NULL : ql_scratch_array(ctx, ql_tensor_nelem(t->dh), t->g.size);
	return status || s->reset ? status : QL_ERR_MEMORY;
}

static void mark_begins(const struct ql_steps *s, struct ql_tensor *begins)
{
	for (int64_t b = 0; b < s->g.batch; b++) {
		int64_t first = ql_steps_begin(s, b), row = ql_steps_row(s, b, first);

		if (first == ql_steps_end(s, b))
			continue;
		if (s->g.dtype == QL_float64)
			((double *)ql_tensor_data(begins))[row] = 1;
		else
			((float *)ql_tensor_data(begins))[row] = 1;
	}
}

static enum ql_status walk(struct ql_ctx *ctx, const struct ql_call *call, struct steps *t)
{
	const struct ql_recurrent_cell *cell = call->op->impl;
	struct ql_steps s = {.ctx = ctx, .cell = cell, .g = t->g};
	enum ql_status status;

	s.h = cell->c ? NULL : ql_tensor_data(t->state);
	s.c = cell->c ? ql_tensor_data(t->state) : NULL;
	s.y = t->y ? ql_tensor_data(t->y) : NULL;
	s.kept = ql_tensor_data(call->in[kept_index(cell)]);
	s.dy = ql_tensor_data(t->dy);
	s.dh = ql_tensor_data(t->dh);
	s.carry = ql_tensor_data(t->carry);
	s.din = ql_tensor_data(t->din);
	s.dhidden = t->dhidden ? ql_tensor_data(t->dhidden) : s.din;
	s.lengths = t->lengths ? ql_tensor_data(t->lengths) : NULL;
	if (t->begins)
		mark_begins(&s, t->begins);
	status = factors(ctx, call, t, &s);
	return status ? status : ql_steps_run(ctx, &s, true);
}

static enum ql_status hand_out(struct ql_ctx *ctx, struct ql_call *call, const struct steps *t)
{
	const struct ql_recurrent_cell *cell = call->op->impl;
	enum ql_status status = QL_OK;

	if (cell->c)
		call->out[1] = ql_tensor_keep(t->dh);
	else
		status = ql_op_run(ctx, &ql_op_add, t->dh, t->carry, &call->out[1]);
	if (status)
		return status;
	call->out[0] = ql_tensor_keep(t->din);
	if (cell->c || cell->split)
		call->out[2] = ql_tensor_keep(cell->c ? t->carry : t->dhidden);
	if (t->begins)
		call->out[call->n_out - 1] = ql_tensor_keep(t->begins);
	return QL_OK;
}

enum ql_status ql_recurrent_back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct steps t = {.g = ql_sequences_of(call, call->op->impl)};
	struct ql_tensor *all[12];
	enum ql_status status = take(ctx, call, &t);

	call->path = ql_dtype_name(t.g.dtype);
	call->kernel = t.g.dtype == QL_float64 ? "ref" : ql_gemm_f32_name(ctx);
	if (!status)
		status = walk(ctx, call, &t);
	if (!status)
		status = hand_out(ctx, call, &t);
	memcpy(all,
		(struct ql_tensor *[]){
			t.dy, t.w, t.state, t.y, t.dh, t.carry, t.din, t.dhidden, t.lengths, t.early, t.late, t.begins},
		sizeof(all));
	for (int i = 0; i < 12; i++)
		ql_tensor_release(ctx, all[i]);
	return status;
}

/* ---- the gradients ---- */

/* Tensors of the dtype of the computation, owned by the pool of the backward. */
struct backward {
	struct ql_back *b;
	const struct ql_recurrent_cell *cell;
	struct ql_sequences g;
	struct ql_tensor *din, *dh, *dc, *dhidden;
	struct ql_tensor *kept, *begins;
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

static void run_steps(struct backward *p, const struct ql_op *op)
{
	struct ql_back *b = p->b;
	struct ql_tensor *in[7], *out[QL_MAX_OUT];
	int n = 0, given = p->cell->c || p->cell->split ? 3 : 2;

	in[n++] = ql_back_grad(b, 0);
	in[n++] = ql_back_grad(b, 1);
	if (p->cell->c)
		in[n++] = ql_back_grad(b, 2);
	p->kept = in[n++] = ql_back_out(b, b->node->n_out - 1);
	in[n++] = ql_back_in(b, p->g.first + 1);
	in[n++] = ql_back_in(b, p->cell->c ? 2 : 1);
	if (!p->cell->c)
		in[n++] = ql_back_out(b, 0);
	if (p->g.lengths)
		in[n++] = ql_back_in(b, p->g.lengths);
	p->din = ql_back_all(b, op, in, n, NULL, out);
	p->dh = out[1];
	p->dc = p->cell->c ? out[2] : NULL;
	p->dhidden = p->cell->split ? out[2] : p->din;
	p->begins = p->g.lengths && p->g.reverse ? out[given] : NULL;
}

/* h before each step, (rows, hidden); backwards with lengths h before the first step is added where a sequence begins, after y of 0. */
static struct ql_tensor *states_before(struct backward *p)
{
	struct ql_back *b = p->b;
	const struct ql_sequences *g = &p->g;
	int axis = g->step == 1 ? 1 : 0; /* of the steps */
	int64_t one[3] = {g->batch, g->batch, g->hidden}, rows[2] = {g->rows, g->hidden}, column[3] = {0, 0, 1};
	struct ql_tensor *y = plain(p, ql_back_out(b, 0)), *in[2], *all, *first;
	struct ql_named attrs[] = {{"axis", {.i = axis + 1}}, {NULL, {.set = false}}};
	int at = g->reverse ? 1 : 0;

	one[axis] = 1;
	column[axis] = g->steps;
	column[1 - axis] = g->batch;
	first = ql_back_reshape(b, plain(p, ql_back_in(b, 1)), 3, one);
	in[at] = p->begins ? ql_back_scaled(b, first, 0) : first;
	in[1 - at] = y ? ql_back_narrow(b, y, axis, at, g->steps - 1) : NULL;
	all = ql_back_many(b, &ql_op_cat, in, 2, attrs);
	if (p->begins)
		all = ql_back_run(b, &ql_op_add, all,
			ql_back_run(b, &ql_op_mul, ql_back_reshape(b, p->begins, 3, column), first));
	return ql_back_reshape(b, all, 2, rows);
}

/* a' times b, both with one row per step and sequence */
static struct ql_tensor *outer(struct backward *p, struct ql_tensor *a, struct ql_tensor *b)
{
	return a && b ? ql_back_run(p->b, &ql_op_matmul, ql_back_transpose(p->b, a, 0, 1), b) : NULL;
}

/* That of w_hh where the last gates multiply h times the first saved value. */
static struct ql_tensor *both_outer(struct backward *p, struct ql_tensor *h)
{
	struct ql_back *b = p->b;
	int64_t n = p->g.hidden, early = p->cell->early * n;
	struct ql_named attrs[] = {{"axis", {.i = 1}}, {NULL, {.set = false}}};
	struct ql_tensor *in[2], *factor = ql_back_narrow(b, p->kept, 1, 0, n);

	in[0] = outer(p, ql_back_narrow(b, p->dhidden, 1, 0, early), h);
	in[1] = outer(p, ql_back_narrow(b, p->dhidden, 1, early, p->cell->gates * n - early),
		ql_back_run(b, &ql_op_mul, factor, h));
	return ql_back_many(b, &ql_op_cat, in, 2, attrs);
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

	ql_back_give(b, 1, p->dh);
	if (p->cell->c)
		ql_back_give(b, 2, p->dc);
	if (ql_back_wants(b, p->g.first + 1))
		ql_back_give(b, p->g.first + 1,
			p->cell->early ? both_outer(p, states_before(p)) : outer(p, p->dhidden, states_before(p)));
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

enum ql_status ql_recurrent_backward(struct ql_back *b, const struct ql_recurrent_cell *cell, const struct ql_op *steps)
{
	struct backward p = {.b = b, .cell = cell, .g = ql_sequences_of(&b->call, cell)};

	run_steps(&p, steps);
	give_inputs(&p);
	give_states(&p);
	give_biases(&p);
	return b->status;
}
