/* SPDX-License-Identifier: MIT
 * Runs sequences through a cell. A task takes a block of them through all steps, so that threads never wait for each other. Each block
 * reads the whole w_hh at each step, though: where that comes from beyond the second-level caches, all threads take a step together,
 * and each reads a part of w_hh for all sequences.
 */
#include "nn/recurrent_steps.h"

#include "tensor/codec.h"
#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define TASKS 2          /* of a thread in a step that all take together, */
#define SHARED_NS 60e3   /* whose product takes at least so long on one thread */
#define NUMBERS_PER_NS 5 /* of w_hh */

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

/* ---- one step of some sequences ---- */

/* Rows of the factor's product, of sequences from b on at step t. */
struct rows {
	const void *a;
	int64_t a_row;
	void *c;
	int64_t ldc;
};

static struct rows rows_of(const struct ql_steps *j, int64_t b, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;

	if (j->back)
		return (struct rows){ql_steps_at(j, j->dhidden, ql_steps_row(j, b, t) * sums), j->g.row * sums,
			ql_steps_at(j, j->dh, b * n), n};
	return (struct rows){t ? ql_steps_at(j, j->y, ql_steps_row(j, b, t - 1) * n) : ql_steps_at(j, j->h, b * n),
		t ? j->g.row * n : n, ql_steps_at(j, j->product, b * sums), sums};
}

static void product(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	struct rows r = rows_of(j, lo, t);

	multiply(&j->w, lo, hi - lo, r.a, r.a_row, r.c, r.ldc);
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

static void cells_forward(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;
	ql_cell_fn *run = j->w.b ? j->cell->f64 : j->cell->f32[j->ctx->kernels->simd->variant];

	for (int64_t b = lo; b < hi; b++)
		run(&(struct ql_cell_row){.n = n,
			.hidden = ql_steps_at(j, j->product, b * sums),
			.bias_in = j->bias_in,
			.bias_hidden = j->bias_hidden,
			.before = state_before(j, b, t),
			.kept = ql_steps_at(j, j->kept, ql_steps_row(j, b, t) * j->cell->width * n),
			.h = ql_steps_at(j, j->y, ql_steps_row(j, b, t) * n)});
}

static void cells_back(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
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
}

static void cells(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	if (j->back)
		cells_back(j, lo, hi, t);
	else
		cells_forward(j, lo, hi, t);
}

/* ---- all steps ---- */

static int64_t ns_of(double work)
{
	return work < 1e18 ? (int64_t)work : INT64_MAX;
}

/* Step i in the order of the computation */
static int64_t step_of(const struct ql_steps *j, int64_t i)
{
	return j->back ? j->g.steps - 1 - i : i;
}

/* item: a block of sequences, through all steps */
static void sequences_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_steps *j = arg;

	for (int64_t block = begin; block < end; block++) {
		int64_t lo = block * j->block, hi = ql_min64(lo + j->block, j->g.batch);

		for (int64_t i = 0; i < j->g.steps && !ql_stopped(j->ctx); i++) {
			int64_t t = step_of(j, i);

			if (j->back)
				cells(j, lo, hi, t);
			product(j, lo, hi, t);
			if (!j->back)
				cells(j, lo, hi, t);
		}
	}
}

/* item: a panel of the factor, for all sequences */
static void panels_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_steps *j = arg;
	struct rows r = rows_of(j, 0, j->now);

	ql_gemm_f32_columns(&j->w.panels, begin, end, j->g.batch, r.a, r.a_row, r.c, r.ldc);
}

/* item: a sequence */
static void cells_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_steps *j = arg;

	cells(j, begin, end, j->now);
}

/* One step after the other: threads share each product by the factor's panels. */
static enum ql_status run_together(struct ql_ctx *ctx, struct ql_steps *j)
{
	int64_t panels = ql_ceil_div(j->w.n, j->w.panels.kernel->nr), rows = j->g.batch;
	int64_t cells_ns = ns_of((double)rows * (double)j->cell->gates * (double)j->g.hidden);
	int64_t ns = ns_of((double)rows * (double)j->w.n * (double)j->w.k / j->w.panels.kernel->rate);
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < j->g.steps && !status; i++) {
		j->now = step_of(j, i);
		if (j->back)
			status = ql_parallel_for(ctx, rows, 1, cells_ns, cells_body, j);
		if (!status)
			status = ql_parallel_for(
				ctx, panels, ql_ceil_div(panels, TASKS * ctx->threads), ns, panels_body, j);
		if (!status && !j->back)
			status = ql_parallel_for(ctx, rows, 1, cells_ns, cells_body, j);
	}
	return status;
}

/* True if each block of sequences would read a factor of more than half its cache at each step, for long enough that threads can wait for
 * each other. */
static bool is_large(const struct ql_ctx *ctx, const struct ql_steps *j)
{
	double numbers = (double)j->w.n * (double)j->w.k;
	double ns = numbers * ((double)j->g.batch / (double)ctx->kernels->gemm_f32->rate + 1.0 / NUMBERS_PER_NS);

	return ctx->threads > 1 && j->w.panels.data && numbers > (double)ql_cpu()->l2 / 8 && ns > SHARED_NS;
}

enum ql_status ql_steps_run(struct ql_ctx *ctx, struct ql_steps *j, bool backward)
{
	double products = (double)j->g.rows * (double)j->cell->gates * (double)j->g.hidden;
	double work = products * ((double)j->g.hidden / (double)ctx->kernels->gemm_f32->rate + 2);

	j->back = backward;
	if (is_large(ctx, j))
		return run_together(ctx, j);
	j->block = ql_max64(1, ql_min64(QL_STEPS_BLOCK, ql_ceil_div(j->g.batch, ctx->threads)));
	return ql_parallel_for(ctx, ql_ceil_div(j->g.batch, j->block), 1, ns_of(work), sequences_body, j);
}
