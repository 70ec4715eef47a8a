/* SPDX-License-Identifier: MIT
 * Runs sequences through a cell. A task takes a block of them through all steps, so that threads never wait for each other. Each block
 * reads the whole w_hh at each step, though: where that comes from beyond the second-level caches, all threads take a step together,
 * and each reads a part of w_hh for all sequences.
 */
#include "nn/recurrent_steps.h"

#include <string.h>

#include "tensor/codec.h"
#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/parallel.h"

#define TASKS 2          /* of a thread in a step that all take together, */
#define SHARED_NS 60e3   /* whose product takes at least so long on one thread */
#define NUMBERS_PER_NS 5 /* of w_hh */

/* The lengths are the last operand, the only one that may be integers. */
static int lengths_index(const struct ql_call *call)
{
	const struct ql_tensor *last = call->in[call->n_in - 1];

	return !last->q && ql_dtype_is_integer(last->dtype) ? call->n_in - 1 : 0;
}

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
	g.lengths = lengths_index(call);
	g.bias = call->n_in - (g.lengths ? 1 : 0) > g.first + 2;
	g.reverse = ql_call_bool(call, "reverse", false);
	g.dtype = ql_operand_dtype(call->in[0]) == QL_float64 ? QL_float64 : QL_float32;
	g.size = g.dtype == QL_float64 ? sizeof(double) : sizeof(float);
	return g;
}

enum ql_status ql_sequences_lengths(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_sequences *g, struct ql_tensor **out)
{
	enum ql_status status = g->lengths ? ql_dense_of(ctx, call->in[g->lengths], QL_int64, out) : QL_OK;
	const int64_t *length = g->lengths && !status ? ql_tensor_data(*out) : NULL;

	for (int64_t i = 0; length && i < g->batch; i++)
		if (length[i] < 0 || length[i] > g->steps)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: lengths: wanted 0 to %lld steps, got %lld",
				call->op->doc.name, (long long)g->steps, (long long)length[i]);
	return status;
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

/* ---- one step of some sequences ---- */

/* Columns from..to-1 of the factor, which the stage needs; those of the same panels may be computed, too: they are replaced later or
 * were used before. */
struct columns {
	int64_t from, to;
};

static struct columns columns_of(const struct ql_steps *j, const struct ql_steps_factor *f)
{
	int64_t early = j->cell->early * j->g.hidden;

	if (!early || j->back)
		return (struct columns){0, f->n};
	return j->second ? (struct columns){early, f->n} : (struct columns){0, early};
}

/* The factor of the stage. */
static const struct ql_steps_factor *factor_of(const struct ql_steps *j)
{
	return j->back && j->cell->early && !j->second ? &j->late : &j->w;
}

/* Rows of the factor's product, of sequences from b on at step t. */
struct rows {
	const void *a;
	int64_t a_row;
	void *c;
	int64_t ldc;
};

static struct rows rows_forward(const struct ql_steps *j, int64_t b, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;
	struct rows r = {.a_row = n, .c = ql_steps_at(j, j->product, b * sums), .ldc = sums};

	if (j->second)
		r.a = ql_steps_at(j, j->reset, b * n);
	else if (t == ql_steps_begin(j, b))
		r.a = ql_steps_at(j, j->h, b * n);
	else {
		r.a = ql_steps_at(j, j->y, ql_steps_row(j, b, t - 1) * n);
		r.a_row = j->g.row * n;
	}
	return r;
}

/* With `early` the first product is that of the other gates. */
static struct rows rows_back(const struct ql_steps *j, int64_t b, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;
	bool first = j->cell->early && !j->second;
	int64_t from = ql_steps_row(j, b, t) * sums + (first ? j->cell->early * n : 0);

	return (struct rows){
		ql_steps_at(j, j->dhidden, from), j->g.row * sums, ql_steps_at(j, first ? j->reset : j->dh, b * n), n};
}

static struct rows rows_of(const struct ql_steps *j, int64_t b, int64_t t)
{
	return j->back ? rows_back(j, b, t) : rows_forward(j, b, t);
}

static bool is_within(const struct ql_steps *j, int64_t b, int64_t t)
{
	return t >= ql_steps_begin(j, b) && t < ql_steps_end(j, b);
}

/* The end of the sequences from lo on, before hi, that are like the first one at step t: within or not, at their first step or not. */
static int64_t end_of_alike(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	int64_t end = j->lengths ? lo + 1 : hi;

	while (end < hi && is_within(j, end, t) == is_within(j, lo, t) &&
		(t == ql_steps_begin(j, end)) == (t == ql_steps_begin(j, lo)))
		end++;
	return end;
}

/* Multiplies rows first..first+m-1 of the batch. */
static void multiply(const struct ql_steps_factor *f, struct columns n, int64_t first, int64_t m, struct rows r)
{
	if (f->kernel)
		ql_steps_multiply_int(f, n.from, n.to, first, m, r.a, r.a_row, r.c, r.ldc);
	else if (f->b)
		ql_steps_product_f64(m, n.to - n.from, f->k, r.a, r.a_row, f->b + n.from * f->b_col, f->b_row, f->b_col,
			(double *)r.c + n.from, r.ldc);
	else
		ql_gemm_f32_columns(&f->panels, n.from / f->panels.kernel->nr, ql_ceil_div(n.to, f->panels.kernel->nr),
			m, r.a, r.a_row, r.c, r.ldc);
}

static void product(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	const struct ql_steps_factor *f = factor_of(j);

	while (lo < hi && !f->given) {
		int64_t end = end_of_alike(j, lo, hi, t);

		if (is_within(j, lo, t))
			multiply(f, columns_of(j, f), lo, end - lo, rows_of(j, lo, t));
		lo = end;
	}
}

/* c or h of sequence b before step t */
static const void *state_before(const struct ql_steps *j, int64_t b, int64_t t)
{
	int64_t n = j->g.hidden;

	if (t == ql_steps_begin(j, b))
		return ql_steps_at(j, j->cell->c ? j->c : j->h, b * n);
	if (j->cell->c) /* c is the last of the saved values */
		return ql_steps_at(j, j->kept, (ql_steps_row(j, b, t - 1) + 1) * j->cell->width * n - n);
	return ql_steps_at(j, j->y, ql_steps_row(j, b, t - 1) * n);
}

static ql_cell_fn *forward_cell(const struct ql_steps *j, bool first)
{
	const struct ql_recurrent_cell *cell = j->cell;
	int variant = j->ctx->kernels->simd->variant;

	if (first)
		return j->w.b ? cell->reset_f64 : cell->reset_f32[variant];
	return j->w.b ? cell->f64 : cell->f32[variant];
}

static void cells_forward(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;
	bool first = j->cell->early && !j->second;
	ql_cell_fn *run = forward_cell(j, first);

	for (int64_t b = lo; b < hi; b++) {
		int64_t row = ql_steps_row(j, b, t);

		if (!is_within(j, b, t)) {
			memset(ql_steps_at(j, j->y, row * n), 0, (size_t)n * j->g.size);
			continue;
		}
		run(&(struct ql_cell_row){.n = n,
			.hidden = ql_steps_at(j, j->product, b * sums),
			.bias_in = j->bias_in,
			.bias_hidden = j->bias_hidden,
			.before = state_before(j, b, t),
			.kept = ql_steps_at(j, j->kept, row * j->cell->width * n),
			.h = ql_steps_at(j, j->y, row * n),
			.reset = first ? ql_steps_at(j, j->reset, b * n) : NULL});
	}
}

static ql_cell_back_fn *back_cell(const struct ql_steps *j)
{
	const struct ql_recurrent_cell *cell = j->cell;
	int variant = j->ctx->kernels->simd->variant;

	if (j->second)
		return j->w.b ? cell->reset_back_f64 : cell->reset_back_f32[variant];
	return j->w.b ? cell->back_f64 : cell->back_f32[variant];
}

/* Steps beyond a sequence have no gradient. */
static void no_gradient(const struct ql_steps *j, int64_t row)
{
	int64_t sums = j->cell->gates * j->g.hidden;

	memset(ql_steps_at(j, j->din, row * sums), 0, (size_t)sums * j->g.size);
	memset(ql_steps_at(j, j->dhidden, row * sums), 0, (size_t)sums * j->g.size);
}

static void cells_back(const struct ql_steps *j, int64_t lo, int64_t hi, int64_t t)
{
	int64_t n = j->g.hidden, sums = j->cell->gates * n;
	ql_cell_back_fn *run = back_cell(j);

	for (int64_t b = lo; b < hi; b++) {
		int64_t row = ql_steps_row(j, b, t);

		if (!is_within(j, b, t)) {
			no_gradient(j, row);
			continue;
		}
		run(&(struct ql_cell_back){.n = n,
			.kept = ql_steps_at(j, j->kept, row * j->cell->width * n),
			.before = state_before(j, b, t),
			.dy = ql_steps_at(j, j->dy, row * n),
			.dh = ql_steps_at(j, j->dh, b * n),
			.carry = ql_steps_at(j, j->carry, b * n),
			.din = ql_steps_at(j, j->din, row * sums),
			.dhidden = ql_steps_at(j, j->dhidden, row * sums),
			.dreset = j->second ? ql_steps_at(j, j->reset, b * n) : NULL});
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

/* Of a step: products and cells that wait for each other. */
static int stages_of(const struct ql_steps *j)
{
	return j->cell->early ? 2 : 1;
}

/* item: a block of sequences, through all steps */
static void sequences_body(void *arg, int64_t begin, int64_t end)
{
	struct ql_steps j = *(const struct ql_steps *)arg;
	int stages = stages_of(&j);

	for (int64_t block = begin; block < end; block++) {
		int64_t lo = block * j.block, hi = ql_min64(lo + j.block, j.g.batch);

		for (int64_t i = 0; i < j.g.steps * stages && !ql_stopped(j.ctx); i++) {
			int64_t t = step_of(&j, i / stages);

			j.second = i % stages;
			if (j.back)
				cells(&j, lo, hi, t);
			product(&j, lo, hi, t);
			if (!j.back)
				cells(&j, lo, hi, t);
		}
	}
}

/* item: a panel of the factor, for all sequences */
static void panels_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_steps *j = arg;
	const struct ql_steps_factor *f = factor_of(j);
	int64_t first = columns_of(j, f).from / f->panels.kernel->nr;

	for (int64_t lo = 0, stop; lo < j->g.batch; lo = stop) {
		struct rows r = rows_of(j, lo, j->now);

		stop = end_of_alike(j, lo, j->g.batch, j->now);
		if (is_within(j, lo, j->now))
			ql_gemm_f32_columns(
				&f->panels, first + begin, first + end, stop - lo, r.a, r.a_row, r.c, r.ldc);
	}
}

/* item: a sequence */
static void cells_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_steps *j = arg;

	cells(j, begin, end, j->now);
}

/* The product of a stage: threads share it by the factor's panels. */
static enum ql_status product_together(struct ql_ctx *ctx, struct ql_steps *j)
{
	const struct ql_steps_factor *f = factor_of(j);
	struct columns n = columns_of(j, f);
	int nr = f->panels.kernel->nr;
	int64_t panels = ql_ceil_div(n.to, nr) - n.from / nr;
	double work = (double)j->g.batch * (double)(n.to - n.from) * (double)f->k;

	return ql_parallel_for(ctx, panels, ql_ceil_div(panels, TASKS * ctx->threads),
		ns_of(work / f->panels.kernel->rate), panels_body, j);
}

/* One step after the other. */
static enum ql_status run_together(struct ql_ctx *ctx, struct ql_steps *j)
{
	int64_t rows = j->g.batch, stages = stages_of(j);
	int64_t cells_ns = ns_of((double)rows * (double)j->cell->gates * (double)j->g.hidden);
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < j->g.steps * stages && !status; i++) {
		j->now = step_of(j, i / stages);
		j->second = i % stages;
		if (j->back)
			status = ql_parallel_for(ctx, rows, 1, cells_ns, cells_body, j);
		if (!status)
			status = product_together(ctx, j);
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
