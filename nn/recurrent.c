/* SPDX-License-Identifier: MIT
 * Recurrent layers forward: one product for x of all steps, then the steps.
 */
#include "nn/recurrent_steps.h"

#include <string.h>

#include "tensor/fallback.h"
#include "tensor/gemm/coded.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

/* ---- inference ---- */

static enum ql_status check_shape(struct ql_ctx *ctx, const struct ql_call *call, int i, const char *name, int rank,
	int64_t rows, int64_t columns)
{
	const struct ql_tensor *t = call->in[i];
	int64_t wanted[2] = {rows, columns};
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (t->rank == rank && t->shape[0] == rows && (rank == 1 || t->shape[1] == columns))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "%s: %s: wanted shape %s, got %s", call->op->doc.name, name,
		ql_shape_text(rank, wanted, a), ql_shape_text(t->rank, t->shape, b));
}

/* n_in: operands without the lengths */
static enum ql_status check_dtypes(struct ql_ctx *ctx, const struct ql_call *call, int n_in)
{
	bool wide = ql_operand_dtype(call->in[0]) == QL_float64;
	char text[QL_SHAPE_TEXT];

	for (int i = 0; i < n_in; i++) {
		unsigned dtype = ql_operand_dtype(call->in[i]);

		if (!ql_dtype_is_float(dtype) || (dtype == QL_float64) != wide)
			return ql_fail(ctx, QL_ERR_DTYPE, "%s: operand %d: wanted %s, got %s", call->op->doc.name,
				i + 1, wide ? "float64, as x is" : "a float up to 32 bits or a quantized tensor",
				ql_tensor_text(call->in[i], text));
	}
	return QL_OK;
}

static enum ql_status check_lengths(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_sequences *g)
{
	const struct ql_tensor *t = call->in[g->lengths];
	char text[QL_SHAPE_TEXT];

	if (t->rank == 1 && t->shape[0] == g->batch)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "%s: lengths: wanted integers (%lld), one for each row of the batch, got %s",
		call->op->doc.name, (long long)g->batch, ql_tensor_text(t, text));
}

static enum ql_status check_operands(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_recurrent_cell *cell)
{
	struct ql_sequences g = ql_sequences_of(call, cell);
	int64_t gates;
	char text[QL_SHAPE_TEXT];
	int n_in = call->n_in - (g.lengths ? 1 : 0);
	enum ql_status status = check_dtypes(ctx, call, n_in);

	if (status)
		return status;
	if (__builtin_mul_overflow(g.hidden, (int64_t)cell->gates, &gates))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "%s: h: hidden size %lld is too large", call->op->doc.name,
			(long long)g.hidden);
	if (g.steps == 0)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: x: wanted at least one step, got none", call->op->doc.name);
	status = check_shape(ctx, call, 1, "h", 2, g.batch, g.hidden);
	if (!status && cell->c)
		status = check_shape(ctx, call, 2, "c", 2, g.batch, g.hidden);
	if (!status)
		status = check_shape(ctx, call, g.first, "w_ih", 2, gates, g.input);
	if (!status)
		status = check_shape(ctx, call, g.first + 1, "w_hh", 2, gates, g.hidden);
	if (!status && n_in == g.first + 3)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "%s: b_hh: wanted both biases or none, got one", call->op->doc.name);
	if (!status && n_in > g.first + 4)
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: lengths: wanted integers (%lld), got %s", call->op->doc.name,
			(long long)g.batch, ql_tensor_text(call->in[n_in - 1], text));
	for (int i = g.first + 2; i < n_in && !status; i++)
		status = check_shape(ctx, call, i, i == g.first + 2 ? "b_ih" : "b_hh", 1, gates, 0);
	return status || !g.lengths ? status : check_lengths(ctx, call, &g);
}

/* What is saved for backward, (rows, width hidden) in the dtype of the computation, is the last result. */
static enum ql_status infer_kept(struct ql_ctx *ctx, struct ql_call *call, const struct ql_recurrent_cell *cell)
{
	struct ql_sequences g = ql_sequences_of(call, cell);
	int64_t shape[2] = {g.rows, 0};

	if (__builtin_mul_overflow(g.hidden, (int64_t)cell->width, &shape[1]))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "%s: h: hidden size %lld is too large", call->op->doc.name,
			(long long)g.hidden);
	ql_result_set(call, call->n_out, g.dtype, 2, shape);
	call->n_out += ql_tape_wanted(ctx, call) ? 1 : 0;
	return QL_OK;
}

enum ql_status ql_recurrent_infer(struct ql_ctx *ctx, struct ql_call *call, const struct ql_recurrent_cell *cell)
{
	const struct ql_tensor *x = call->in[0], *h = call->in[1];
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	int64_t shape[3];
	enum ql_status status;

	if (x->rank != 3 || h->rank != 2)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted x with 3 axes and h (batch, hidden), got %s and %s",
			call->op->doc.name, ql_shape_text(x->rank, x->shape, a), ql_shape_text(h->rank, h->shape, b));
	status = check_operands(ctx, call, cell);
	if (status)
		return status;
	memcpy(shape, x->shape, sizeof(shape));
	shape[2] = h->shape[1];
	ql_result_set(call, 0, ql_operand_dtype(x), 3, shape);
	ql_result_set(call, 1, ql_operand_dtype(x), 2, h->shape);
	ql_result_set(call, 2, ql_operand_dtype(x), 2, h->shape);
	call->n_out = cell->c ? 3 : 2;
	return infer_kept(ctx, call, cell);
}

/* ---- operands ---- */

static void release_all(struct ql_ctx *ctx, struct ql_tensor **list, int n)
{
	for (int i = 0; i < n; i++)
		ql_tensor_release(ctx, list[i]);
}

/* Decodes the operands once for all steps, except those whose bit in `done` is set. Decoding is reported like any
 * fallback. */
static enum ql_status plain_operands(struct ql_ctx *ctx, struct ql_call *call, unsigned dtype, unsigned done,
	const char *reason, struct ql_tensor **plain)
{
	struct ql_tensor *in[QL_RECURRENT_IN], *decoded[QL_RECURRENT_IN] = {NULL};
	struct ql_call rest = *call;
	enum ql_status status = QL_OK;
	int n = 0;

	for (int i = 0; i < call->n_in; i++)
		if (!(done >> i & 1) && call->in[i]->q)
			in[n++] = call->in[i];
	rest.in = in;
	rest.n_in = n;
	if (n) {
		status = ql_fallback(ctx, &rest, reason, 0, decoded);
		call->path = "fallback";
		call->reason = reason;
	}
	n = 0;
	for (int i = 0; i < call->n_in && !status; i++) {
		if (done >> i & 1 || ql_dtype_is_integer(ql_operand_dtype(call->in[i]))) /* lengths */
			continue;
		if (call->in[i]->q)
			plain[i] = ql_tensor_keep(decoded[n++]);
		else
			status = ql_recurrent_plain(ctx, call->in[i], dtype, &plain[i]);
	}
	ql_fallback_done(ctx, rest.n_in, decoded);
	return status;
}

/* ---- forward ---- */

/* The tensors of a call, in the dtype of the computation. */
struct forward {
	struct ql_tensor *in[QL_RECURRENT_IN], *y, *h, *c, *kept;
	struct ql_tensor *w;       /* dense codes of w_hh for the integer product; NULL: use in[] */
	struct ql_tensor *hidden;  /* the product of the only step with w_hh; NULL: steps compute it */
	struct ql_tensor *lengths; /* int64; NULL: none */
};

/* Bits of weights whose codes are decoded in parts: by the products of x, of the only step, or while panels for all steps are packed.
 * States that were to be integers and cannot be are a fallback. */
static unsigned coded_weights(const struct ql_call *call, const struct ql_sequences *g)
{
	unsigned bits = 0;

	if (g->dtype != QL_float32)
		return 0;
	if (!call->in[0]->q && ql_gemm_coded_takes(call->in[g->first]))
		bits |= 1u << g->first;
	if (!ql_call_string(call, "states", NULL) && ql_gemm_coded_takes(call->in[g->first + 1]))
		bits |= 1u << (g->first + 1);
	return bits;
}

static enum ql_status make_results(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_recurrent_cell *cell,
	const struct ql_sequences *g, struct forward *f)
{
	const struct ql_result *kept = &call->result[cell->c ? 3 : 2];
	enum ql_status status = ql_tensor_new(ctx, g->dtype, 3, call->result[0].shape, &f->y);

	if (!status)
		status = ql_tensor_new(ctx, g->dtype, 2, call->result[1].shape, &f->h);
	if (!status && cell->c)
		status = ql_tensor_new(ctx, g->dtype, 2, call->result[2].shape, &f->c);
	return status ? status : ql_tensor_new(ctx, g->dtype, 2, kept->shape, &f->kept);
}

/* x times a weight, one of them codes or not: as linear computes it, possibly in integers. */
static enum ql_status linear_product(
	struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor *w, struct ql_tensor **product)
{
	enum ql_status status;

	ctx->lends = ctx->depth == 1; /* nothing holds the codes of w here */
	status = ql_op_run(ctx, &ql_op_linear, x, w, product);
	ctx->lends = false;
	return status;
}

/* Computes x times w_ih for all steps into the first columns of `kept`. */
static enum ql_status project(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_sequences *g, struct forward *f, int64_t gates)
{
	int64_t pitch = f->kept->shape[1], sums = gates * g->hidden, shape[2] = {g->rows, sums};
	struct ql_tensor *x = f->in[0], *w = f->in[g->first], *product = NULL, *flat = NULL, *place = NULL;
	enum ql_status status;

	if (w && g->dtype == QL_float32)
		return ql_gemm_f32(ctx, g->rows, sums, g->input, ql_tensor_data(x), g->input, 1, ql_tensor_data(w), 1,
			g->input, ql_tensor_data(f->kept), pitch);
	if (w) {
		ql_steps_product_f64(g->rows, sums, g->input, ql_tensor_data(x), g->input, ql_tensor_data(w), 1,
			g->input, ql_tensor_data(f->kept), pitch);
		return QL_OK;
	}
	status = linear_product(ctx, x ? x : call->in[0], call->in[g->first], &product);
	if (!status)
		status = ql_view_reshape(ctx, call->op->doc.name, product, 2, shape, &flat);
	if (!status)
		status = ql_view_narrow(ctx, call->op->doc.name, f->kept, 1, 0, sums, &place);
	if (!status)
		status = ql_tensor_copy(ctx, place, flat);
	release_all(ctx, (struct ql_tensor *[]){product, flat, place}, 3);
	return status;
}

/* With one step there is nothing to pack w_hh for: its product reads it as it is, by all threads. */
static enum ql_status only_step(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_recurrent_cell *cell,
	const struct ql_sequences *g, struct forward *f)
{
	struct ql_tensor *w = f->in[g->first + 1];

	if (cell->early || g->steps > 1 || g->dtype != QL_float32 || f->w)
		return QL_OK;
	return linear_product(ctx, f->in[1], w ? w : call->in[g->first + 1], &f->hidden);
}

/* Copies the states after the last step of each sequence, which may have none. */
static void copy_last(const struct ql_steps *j, struct forward *f)
{
	int64_t n = j->g.hidden, width = j->cell->width;

	for (int64_t b = 0; b < j->g.batch; b++) {
		int64_t end = ql_steps_end(j, b), row = ql_steps_row(j, b, end - 1);
		bool any = end > ql_steps_begin(j, b);

		memcpy(ql_steps_at(j, ql_tensor_data(f->h), b * n),
			any ? ql_steps_at(j, j->y, row * n) : ql_steps_at(j, j->h, b * n), (size_t)n * j->g.size);
		if (f->c)
			memcpy(ql_steps_at(j, ql_tensor_data(f->c), b * n),
				any ? ql_steps_at(j, j->kept, (row + 1) * width * n - n) : ql_steps_at(j, j->c, b * n),
				(size_t)n * j->g.size);
	}
}

/* Takes zeros for biases that are not given, and memory of the steps. */
static enum ql_status take_memory(
	struct ql_ctx *ctx, const struct ql_sequences *g, const struct forward *f, struct ql_steps *j)
{
	size_t sums = (size_t)(j->cell->gates * g->hidden) * g->size;
	char *zeros = ql_scratch_take(ctx, sums);
	uint64_t bytes;

	j->product = f->hidden ? ql_tensor_data(f->hidden) : NULL;
	if (!zeros || !ql_size_mul((uint64_t)g->batch, sums, &bytes) ||
		(!j->product && !(j->product = ql_scratch_take(ctx, bytes))))
		return QL_ERR_MEMORY;
	if (j->cell->early && !(j->reset = ql_scratch_take(ctx, bytes / (uint64_t)j->cell->gates)))
		return QL_ERR_MEMORY;
	memset(zeros, 0, sums);
	j->bias_in = g->bias ? ql_tensor_data(f->in[g->first + 2]) : zeros;
	j->bias_hidden = g->bias ? ql_tensor_data(f->in[g->first + 3]) : zeros;
	return QL_OK;
}

/* weight: w_hh as it was given */
static enum ql_status steps_forward(struct ql_ctx *ctx, const struct ql_sequences *g,
	const struct ql_recurrent_cell *cell, struct ql_tensor *weight, struct forward *f)
{
	struct ql_steps j = {.ctx = ctx,
		.cell = cell,
		.g = *g,
		.h = ql_tensor_data(f->in[1]),
		.c = cell->c ? ql_tensor_data(f->in[2]) : NULL,
		.y = ql_tensor_data(f->y),
		.kept = ql_tensor_data(f->kept),
		.lengths = f->lengths ? ql_tensor_data(f->lengths) : NULL};
	enum ql_status status = take_memory(ctx, g, f, &j);

	if (status)
		return status;
	if (f->hidden)
		j.w = (struct ql_steps_factor){.given = true};
	else if (f->w)
		status = ql_steps_factor_int(ctx, f->w, g->batch, &j.w);
	else
		status = ql_steps_factor_of(ctx, f->in[g->first + 1] ? f->in[g->first + 1] : weight, true, &j.w);
	if (!status)
		status = ql_steps_run(ctx, &j, false);
	if (!status)
		copy_last(&j, f);
	return status;
}

/* Sets result i to t in its dtype. */
static enum ql_status hand_out(struct ql_ctx *ctx, struct ql_call *call, int i, struct ql_tensor *t)
{
	if (t->dtype != call->result[i].dtype)
		return ql_tensor_cast(ctx, t, call->result[i].dtype, &call->out[i]);
	call->out[i] = ql_tensor_keep(t);
	return QL_OK;
}

/* states='int8': uses the codes of w_hh if the integer product supports them; else sets the reason. */
static enum ql_status choose_states(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_sequences *g, const char **reason, struct forward *f)
{
	struct ql_tensor *w = call->in[g->first + 1];
	char text[QL_SHAPE_TEXT];

	*reason = "the states are not quantized (states='int8' does it)";
	if (!ql_call_string(call, "states", NULL))
		return QL_OK;
	if (!w->q)
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: states: wanted a quantized w_hh, got %s", call->op->doc.name,
			ql_tensor_text(w, text));
	return ql_steps_int_fits(w, reason) ? ql_tensor_contiguous(ctx, w, &f->w) : QL_OK;
}

uint32_t ql_recurrent_decodes(const struct ql_call *call, const struct ql_recurrent_cell *cell)
{
	int first = cell->c ? 3 : 2;

	return (call->in[first]->q ? 1u << first : 0) | (call->in[first + 1]->q ? 2u << first : 0);
}

static void name_path(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_sequences *g, bool inputs, bool states, bool coded)
{
	call->path = inputs && states   ? "int8"
		     : inputs || states ? "mixed"
		     : coded            ? "weight_only"
					: ql_dtype_name(g->dtype);
	call->kernel = states                   ? ctx->kernels->gemm_i8->name
		       : coded                  ? ql_gemm_coded_name(ctx)
		       : g->dtype == QL_float64 ? "ref"
						: ql_gemm_f32_name(ctx);
}

enum ql_status ql_recurrent_eval(struct ql_ctx *ctx, struct ql_call *call, const struct ql_recurrent_cell *cell)
{
	struct ql_sequences g = ql_sequences_of(call, cell);
	struct forward f = {.in = {NULL}};
	bool integer = call->in[0]->q && call->in[g.first]->q;
	const char *reason;
	enum ql_status status = choose_states(ctx, call, &g, &reason, &f);
	unsigned coded = coded_weights(call, &g);

	name_path(ctx, call, &g, integer, f.w, coded);
	if (!status)
		status = plain_operands(ctx, call, g.dtype,
			(integer ? 1u | 1u << g.first : 0) | (f.w ? 1u << (g.first + 1) : 0) | coded, reason, f.in);
	if (!status)
		status = ql_sequences_lengths(ctx, call, &g, &f.lengths);
	if (!status)
		status = make_results(ctx, call, cell, &g, &f);
	if (!status)
		status = project(ctx, call, &g, &f, cell->gates);
	if (!status)
		status = only_step(ctx, call, cell, &g, &f);
	if (!status)
		status = steps_forward(ctx, &g, cell, call->in[g.first + 1], &f);
	if (!status)
		status = hand_out(ctx, call, 0, f.y);
	if (!status)
		status = hand_out(ctx, call, 1, f.h);
	if (!status && cell->c)
		status = hand_out(ctx, call, 2, f.c);
	if (!status && call->n_out > (cell->c ? 3 : 2))
		call->out[call->n_out - 1] = ql_tensor_keep(f.kept);
	release_all(ctx, f.in, QL_RECURRENT_IN);
	release_all(ctx, (struct ql_tensor *[]){f.y, f.h, f.c, f.kept, f.w, f.hidden, f.lengths}, 7);
	return status;
}
