/* SPDX-License-Identifier: MIT
 * Runs sequences through a cell, one block per task. Backward has the same structure as forward.
 */
#include "nn/recurrent_steps.h"

#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

struct ql_sequences ql_sequences_of(const struct ql_call *call, const struct ql_recurrent_cell *cell)
{
	bool batch_first = ql_call_bool(call, "batchfirst", true);
	struct ql_sequences g = {.first = cell->c ? 3 : 2};
	const int64_t *x = call->in[0]->shape;

	g.batch = x[batch_first ? 0 : 1];
	g.steps = x[batch_first ? 1 : 0];
	g.input = x[2];
	g.hidden = call->in[1]->shape[1];
	g.rows = g.batch * g.steps;
	g.row = batch_first ? g.steps : 1;
	g.step = batch_first ? 1 : g.batch;
	g.bias = call->n_in > g.first + 2;
	g.dtype = ql_operand_dtype(call->in[0]) == QL_float64 ? QL_float64 : QL_float32;
	g.size = g.dtype == QL_float64 ? sizeof(double) : sizeof(float);
	return g;
}

enum ql_status ql_recurrent_plain(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out)
{
	if (t->q)
		return ql_decode(ctx, t, out);
	return t->dtype == dtype ? ql_tensor_contiguous(ctx, t, out) : ql_tensor_cast(ctx, t, dtype, out);
}

void ql_steps_product_f64(int64_t m, int64_t n, int64_t k, const double *a, int64_t a_row, const double *b,
	int64_t b_row, int64_t b_col, double *c, int64_t ldc)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = 0;

			for (int64_t l = 0; l < k; l++)
				sum += a[i * a_row + l] * b[l * b_row + j * b_col];
			c[i * ldc + j] = sum;
		}
}

enum ql_status ql_steps_factor_of(struct ql_ctx *ctx, struct ql_tensor *w, bool transposed, struct ql_steps_factor *f)
{
	int64_t row = transposed ? 1 : w->shape[1], column = transposed ? w->shape[1] : 1;

	*f = (struct ql_steps_factor){
		.b_row = row, .b_col = column, .n = w->shape[transposed ? 0 : 1], .k = w->shape[transposed ? 1 : 0]};
	if (w->q)
		return ql_gemm_f32_pack_codes(ctx, w, &f->panels);
	if (w->dtype == QL_float64) {
		f->b = ql_tensor_data(w);
		return QL_OK;
	}
	return ql_gemm_f32_pack(ctx, f->n, f->k, ql_tensor_data(w), row, column, &f->panels);
}

/* Multiplies rows first..first+m-1 of the batch. */
static void multiply(
	const struct ql_steps_factor *f, int64_t first, int64_t m, const void *a, int64_t a_row, void *c, int64_t ldc)
{
	if (f->given)
		return;
	if (f->kernel)
		ql_steps_multiply_int(f, first, m, a, a_row, c, ldc);
	else if (f->b)
		ql_steps_product_f64(m, f->n, f->k, a, a_row, f->b, f->b_row, f->b_col, c, ldc);
	else
		ql_gemm_f32_rows(&f->panels, m, a, a_row, c, ldc);
}

/* c or h of sequence b before step t */
static const void *state_before(const struct ql_steps *j, int64_t b, int64_t t)
{
	int64_t n = j->g.hidden;

	if (t == 0)
		return ql_steps_at(j, j->cell->c ? j->c : j->h, b * n);
	if (j->cell->c) /* c is the last of the saved values */
		return ql_steps_at(j, j->kept, (ql_steps_row(j, b, t - 1) + 1) * j->cell->width * n - n);
	return ql_steps_at(j, j->y, ql_steps_row(j, b, t - 1) * n);
}

static void forward_step(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;
	ql_cell_fn *run = j->w.b ? j->cell->f64 : j->cell->f32[j->ctx->kernels->simd->variant];

	if (t == 0)
		multiply(&j->w, lo, hi - lo, ql_steps_at(j, j->h, lo * n), n, ql_steps_at(j, j->product, lo * sums),
			sums);
	else
		multiply(&j->w, lo, hi - lo, ql_steps_at(j, j->y, ql_steps_row(j, lo, t - 1) * n), j->g.row * n,
			ql_steps_at(j, j->product, lo * sums), sums);
	for (int64_t b = lo; b < hi; b++)
		run(&(struct ql_cell_row){.n = n,
			.hidden = ql_steps_at(j, j->product, b * sums),
			.bias_in = j->bias_in,
			.bias_hidden = j->bias_hidden,
			.before = state_before(j, b, t),
			.kept = ql_steps_at(j, j->kept, ql_steps_row(j, b, t) * j->cell->width * n),
			.h = ql_steps_at(j, j->y, ql_steps_row(j, b, t) * n)});
}

static void backward_step(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;
	ql_cell_back_fn *run = j->w.b ? j->cell->back_f64 : j->cell->back_f32[j->ctx->kernels->simd->variant];

	for (int64_t b = lo; b < hi; b++) {
		int64_t row = ql_steps_row(j, b, t);

		run(&(struct ql_cell_back){.n = n,
			.kept = ql_steps_at(j, j->kept, row * j->cell->width * n),
			.before = state_before(j, b, t),
			.dy = ql_steps_at(j, j->dy, row * n),
			.dh = ql_steps_at(j, j->dh, b * n),
			.carry = ql_steps_at(j, j->carry, b * n),
			.din = ql_steps_at(j, j->din, row * sums),
			.dhidden = ql_steps_at(j, j->dhidden, row * sums)});
	}
	multiply(&j->w, lo, hi - lo, ql_steps_at(j, j->dhidden, ql_steps_row(j, lo, t) * sums), j->g.row * sums,
		ql_steps_at(j, j->dh, lo * n), n);
}

static void forward_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_steps *j = arg;

	for (int64_t i = begin; i < end; i++)
		for (int64_t t = 0; t < j->g.steps && !ql_stopped(j->ctx); t++)
			forward_step(j, i * j->block, ql_min64((i + 1) * j->block, j->g.batch), t);
}

static void backward_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_steps *j = arg;

	for (int64_t i = begin; i < end; i++)
		for (int64_t t = j->g.steps - 1; t >= 0 && !ql_stopped(j->ctx); t--)
			backward_step(j, i * j->block, ql_min64((i + 1) * j->block, j->g.batch), t);
}

enum ql_status ql_steps_run(struct ql_ctx *ctx, struct ql_steps *j, bool backward)
{
	double products = (double)j->g.rows * (double)j->cell->gates * (double)j->g.hidden;
	double work = products * ((double)j->g.hidden / (double)ctx->kernels->gemm_f32->rate + 2);

	j->block = ql_max64(1, ql_min64(QL_STEPS_BLOCK, ql_ceil_div(j->g.batch, ctx->threads)));
	return ql_parallel_for(ctx, ql_ceil_div(j->g.batch, j->block), 1, work < 1e18 ? (int64_t)work : INT64_MAX,
		backward ? backward_body : forward_body, j);
}
