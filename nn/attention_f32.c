/* SPDX-License-Identifier: MIT
 * Attention in float32, a block of queries at a time: scores (block, keys) = q kᵀ against packed keys, softmax of
 * its rows, times v. A block has whole rows of scores, so no running maximum is needed, and the largest temporary
 * is a block of rows, never (queries, keys). Keys after the last one that a block attends to are skipped, and panels of
 * keys before its first one.
 *
 * The backward recomputes the probabilities P of a block, as FlashAttention does (Dao et al., 2022), with
 *   dP = g vᵀ, dS = scale P (dP - rowsum(P dP)):  dq = dS k,  dkᵀ += qᵀ dS,  dvᵀ += gᵀ P.
 * One task has all queries of a shared head, in order, so the sums do not depend on the threads; everything else is
 * independent by row. The buffers of a task are in a slot of scratch memory.
 */
#include <math.h>
#include <string.h>

#include "nn/attention.h"
#include "nn/attention_mask.h"
#include "tensor/loops/exponentials.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/serial.h"
#include "tensor/loops/lanes.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/slots.h"

#define BLOCK 48 /* queries; several rows of tiles, few enough that causal blocks skip many keys */
#define FEWEST 6
#define SCORES 262144 /* numbers of a block of scores, with at least FEWEST rows */
#define TASKS_PER_THREAD 4

struct job {
	const struct ql_ctx *ctx;
	const struct ql_attention *a;
	const struct ql_gemm_f32 *kernel;
	int variant;
	int64_t block, parts; /* queries of a block; tasks of a head (forward) */
	struct ql_slots slots;
};

/* The parts of a slot. */
struct slot {
	float *keys, *scores;                      /* forward */
	float *values, *dscores, *dk, *dv, *q, *g; /* backward: packed vᵀ, …, dkᵀ, dvᵀ (d, keys), qᵀ, gᵀ (d, block) */
	struct ql_gemm_f32_panels packed_keys, packed_values; /* in keys and values */
	float *slopes; /* backward with softcap: derivatives of the capped scores */
	float by[BLOCK];
};

/* The keys that a block computes; first is that of a panel. */
struct columns {
	int64_t first, stop;
};

static int64_t padded(int64_t n)
{
	return ql_ceil_div(n, 16) * 16;
}

/* Assigns the parts of a slot at `base` (NULL: only computes the length); returns its length. */
static int64_t lay_out(const struct job *j, float *base, bool backward, struct slot *s)
{
	const struct ql_attention *a = j->a;
	int64_t length = 0;
	float **part[9] = {&s->keys, &s->scores, &s->values, &s->dscores, &s->dk, &s->dv, &s->q, &s->g, &s->slopes};
	int64_t size[9] = {ql_gemm_f32_panels_length(j->kernel, a->keys, a->d), j->block * a->keys,
		ql_gemm_f32_panels_length(j->kernel, a->keys, a->e), j->block * a->keys, a->d * a->keys, a->e * a->keys,
		a->d * j->block, a->e * j->block, a->softcap > 0 ? j->block * a->keys : 0};

	for (int i = 0; i < (backward ? 9 : 2); i++) {
		*part[i] = base ? base + length : NULL;
		length += padded(size[i]);
	}
	return length;
}

static const float *at(const struct ql_heads *h, int64_t batch, int64_t head, int64_t row)
{
	return (const float *)h->data + ql_heads_at(h, batch, head, row);
}

static float *at_result(const struct ql_heads *h, int64_t batch, int64_t head, int64_t row)
{
	return (float *)h->data + ql_heads_at(h, batch, head, row);
}

/* Packs kᵀ times the scale, so that scores need no separate pass. */
static void pack_keys(const struct job *j, struct slot *s, int64_t batch, int64_t head, int64_t keys)
{
	const struct ql_attention *a = j->a;

	s->packed_keys = ql_gemm_f32_panels_of(j->ctx, keys, a->d, at(&a->k, batch, head, 0), 1, a->k.row, s->keys);
	ql_row_scale(j->variant, ql_gemm_f32_panels_length(j->kernel, keys, a->d), s->keys, (float)a->scale);
}

/* The keys of queries i..i + rows - 1: at least one. */
static struct columns columns_of(const struct job *j, int64_t batch, int64_t i, int64_t rows)
{
	const struct ql_attention *a = j->a;
	struct columns c = {ql_attention_from(a, batch, i), ql_attention_seen(a, batch, i + rows - 1)};

	c.stop = ql_max64(c.stop, 1);
	c.first = ql_min64(c.first, c.stop - 1) / j->kernel->nr * j->kernel->nr;
	return c;
}

/* Scores of the keys that query i of the block's row attends to: exponentials and what normalizes them. */
static void row_exponentials(
	const struct job *j, struct slot *s, int64_t batch, int64_t head, int64_t i, int64_t r, struct columns c)
{
	const struct ql_attention *a = j->a;
	float *row = s->scores + r * a->keys;
	int64_t from = ql_attention_from(a, batch, i + r), seen = ql_attention_seen(a, batch, i + r), n = seen - from;
	struct ql_masked_row m = ql_masked_row_of(a, batch, head, i + r, from, n);
	double sum;

	if (a->softcap > 0)
		ql_attention_cap(j->variant, n, (float)a->softcap, row + from,
			s->slopes ? s->slopes + r * a->keys + from : NULL);
	ql_attention_mask(j->variant, &m, row + from);
	ql_row_exp(j->variant, n, row + from, row + from, ql_attention_largest(j->variant, row + from, n));
	ql_attention_hide(j->variant, &m, row + from);
	sum = ql_sum_f32(j->variant, row + from, n);
	s->by[r] = sum == 0 ? 0 : (float)(1 / sum);
	if (from > c.first)
		memset(row + c.first, 0, (size_t)(from - c.first) * sizeof(*row));
	if (c.stop > seen)
		memset(row + seen, 0, (size_t)(c.stop - seen) * sizeof(*row));
}

/* Exponentials of the scores of queries i..i + rows - 1, 0 for hidden keys; `by` normalizes each row to
 * probabilities. Returns the keys that are computed. */
static struct columns exponentials(
	const struct job *j, struct slot *s, int64_t batch, int64_t head, int64_t i, int64_t rows)
{
	const struct ql_attention *a = j->a;
	struct columns c = columns_of(j, batch, i, rows);
	int nr = j->kernel->nr;

	s->packed_keys.n = c.stop;
	ql_gemm_f32_columns(&s->packed_keys, c.first / nr, ql_ceil_div(c.stop, nr), rows, at(&a->q, batch, head, i),
		a->q.row, s->scores, a->keys);
	for (int64_t r = 0; r < rows; r++)
		row_exponentials(j, s, batch, head, i, r, c);
	return c;
}

static void forward_block(const struct job *j, struct slot *s, int64_t batch, int64_t head, int64_t i)
{
	const struct ql_attention *a = j->a;
	int64_t rows = ql_min64(j->block, a->queries - i), shared = head / (a->heads / a->shared);
	struct columns c = exponentials(j, s, batch, head, i, rows);

	ql_gemm_serial(j->kernel, rows, a->e, c.stop - c.first, s->scores + c.first, a->keys,
		at(&a->v, batch, shared, c.first), a->v.row, at_result(&a->o, batch, head, i), a->o.row, false);
	for (int64_t r = 0; r < rows; r++)
		ql_row_scale(j->variant, a->e, at_result(&a->o, batch, head, i + r), s->by[r]);
}

/* Task t: part t % parts of the blocks of a head. */
static void forward_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	const struct ql_attention *a = j->a;
	int64_t blocks = ql_ceil_div(a->queries, j->block), length = ql_ceil_div(blocks, j->parts);
	int claimed;
	float *base = ql_slots_enter(&j->slots, &claimed);
	struct slot s;

	lay_out(j, base, false, &s);
	s.slopes = NULL;
	for (int64_t t = begin; t < end; t++) {
		int64_t head = t / j->parts % a->heads, batch = t / j->parts / a->heads;
		int64_t first = t % j->parts * length, stop = ql_min64(first + length, blocks);

		if (first >= stop)
			continue;
		pack_keys(j, &s, batch, head / (a->heads / a->shared),
			ql_max64(1, ql_attention_seen(a, batch, ql_min64(stop * j->block, a->queries) - 1)));
		for (int64_t b = first; b < stop && !ql_stopped(j->ctx); b++)
			forward_block(j, &s, batch, head, b * j->block);
	}
	ql_slots_leave(&j->slots, claimed);
}

/* ---- backward ---- */

/* P = exponentials times by; dS = scale P (dP - sum P dP), in place of dP */
QL_SIMD(void, probabilities_back, (int64_t n, float *restrict p, float by, float *restrict dp, float scale), {
	float lane[QL_REDUCE_LANES] = {0};
	int64_t i = 0;
	double sum = 0;
	float less;

	for (; i + QL_REDUCE_LANES <= n; i += QL_REDUCE_LANES)
		for (int l = 0; l < QL_REDUCE_LANES; l++) {
			p[i + l] *= by;
			lane[l] += p[i + l] * dp[i + l];
		}
	for (int l = 0; i + l < n; l++) {
		p[i + l] *= by;
		lane[l] += p[i + l] * dp[i + l];
	}
	for (int l = 0; l < QL_REDUCE_LANES; l++)
		sum += (double)lane[l];
	less = (float)sum;
	for (i = 0; i < n; i++)
		dp[i] = p[i] * (dp[i] - less) * scale;
})

/* Row r of the block of query i, whose gradient of the probabilities is in dscores: that of the scores, before the
 * scale. The gradient of the mask is left on the way. */
static void row_back(
	const struct job *j, struct slot *s, int64_t batch, int64_t head, int64_t i, int64_t r, struct columns c)
{
	const struct ql_attention *a = j->a;
	int64_t n = c.stop - c.first, from = ql_attention_from(a, batch, i + r);
	float *ds = s->dscores + r * a->keys, *dm;
	bool plain = !a->dmask && !(a->softcap > 0);

	probabilities_back[j->variant](
		n, s->scores + r * a->keys + c.first, s->by[r], ds + c.first, plain ? (float)a->scale : 1);
	if (plain)
		return;
	if (a->dmask) {
		dm = (float *)a->dmask + ((batch * a->heads + head) * a->queries + i + r) * a->keys;
		memset(dm, 0, (size_t)a->keys * sizeof(*dm));
		memcpy(dm + c.first, ds + c.first, (size_t)n * sizeof(*dm));
	}
	if (a->softcap > 0)
		ql_attention_times(j->variant, ql_attention_seen(a, batch, i + r) - from,
			s->slopes + r * a->keys + from, ds + from);
	ql_row_scale(j->variant, n, ds + c.first, (float)a->scale);
}

static void backward_block(const struct job *j, struct slot *s, int64_t batch, int64_t head, int64_t i)
{
	const struct ql_attention *a = j->a;
	int64_t rows = ql_min64(j->block, a->queries - i), shared = head / (a->heads / a->shared);
	struct columns c = exponentials(j, s, batch, head, i, rows);
	int64_t n = c.stop - c.first;
	const float *g = at(&a->g, batch, head, i), *scores = s->scores + c.first, *dscores = s->dscores + c.first;

	s->packed_values.n = c.stop;
	ql_gemm_f32_columns(&s->packed_values, c.first / j->kernel->nr, ql_ceil_div(c.stop, j->kernel->nr), rows, g,
		a->g.row, s->dscores, a->keys);
	for (int64_t r = 0; r < rows; r++)
		row_back(j, s, batch, head, i, r, c);
	ql_gemm_serial(j->kernel, rows, a->d, n, dscores, a->keys, at(&a->k, batch, shared, c.first), a->k.row,
		at_result(&a->dq, batch, head, i), a->dq.row, false);
	ql_gemm_panel_f32(j->variant, at(&a->q, batch, head, i), 1, a->q.row, a->d, (int)rows, j->block, s->q);
	ql_gemm_serial(j->kernel, a->d, n, rows, s->q, j->block, dscores, a->keys, s->dk + c.first, a->keys, true);
	ql_gemm_panel_f32(j->variant, g, 1, a->g.row, a->e, (int)rows, j->block, s->g);
	ql_gemm_serial(j->kernel, a->e, n, rows, s->g, j->block, scores, a->keys, s->dv + c.first, a->keys, true);
}

/* Task t: a shared head and the heads of q that use it. */
static void backward_body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	const struct ql_attention *a = j->a;
	int64_t users = a->heads / a->shared;
	int claimed;
	float *base = ql_slots_enter(&j->slots, &claimed);
	struct slot s;

	lay_out(j, base, true, &s);
	for (int64_t t = begin; t < end; t++) {
		int64_t shared = t % a->shared, batch = t / a->shared;

		pack_keys(j, &s, batch, shared, a->keys);
		s.packed_values = ql_gemm_f32_panels_of(
			j->ctx, a->keys, a->e, at(&a->v, batch, shared, 0), 1, a->v.row, s.values);
		memset(s.dk, 0, (size_t)(a->d * a->keys) * sizeof(float));
		memset(s.dv, 0, (size_t)(a->e * a->keys) * sizeof(float));
		for (int64_t head = shared * users; head < (shared + 1) * users; head++)
			for (int64_t i = 0; i < a->queries && !ql_stopped(j->ctx); i += j->block)
				backward_block(j, &s, batch, head, i);
		ql_gemm_panel_f32(j->variant, s.dk, 1, a->keys, a->keys, (int)a->d, a->dk.row,
			at_result(&a->dk, batch, shared, 0));
		ql_gemm_panel_f32(j->variant, s.dv, 1, a->keys, a->keys, (int)a->e, a->dv.row,
			at_result(&a->dv, batch, shared, 0));
	}
	ql_slots_leave(&j->slots, claimed);
}

/* ---- running ---- */

static enum ql_status take_slots(struct ql_ctx *ctx, struct job *j, int64_t tasks, bool backward)
{
	struct slot unused;
	uint64_t bytes, widest = (uint64_t)ql_max64(j->a->d, j->a->e) + (uint64_t)j->block + 128;

	/* an upper bound of a slot: 6 padded parts of (d or e, keys) and 3 of (block, keys) */
	if (!ql_size_mul(widest, 9 * sizeof(float), &widest) ||
		!ql_size_mul(widest, (uint64_t)j->a->keys + 128, &bytes) || bytes > (uint64_t)1 << 48)
		return ql_fail(ctx, QL_ERR_OVERFLOW,
			"attention: wanted heads that fit in memory, got %lld keys of %lld", (long long)j->a->keys,
			(long long)j->a->d);
	return ql_slots_take_for(
		ctx, tasks, (uint64_t)ql_mul64(lay_out(j, NULL, backward, &unused), sizeof(float)), &j->slots);
}

static enum ql_status run(struct ql_ctx *ctx, const struct ql_attention *a, bool backward)
{
	struct job j = {.ctx = ctx, .a = a, .kernel = ctx->kernels->tiles, .variant = ctx->kernels->simd->variant};
	int64_t heads = a->batches * (backward ? a->shared : a->heads), tasks;
	double ns = (double)a->batches * (double)a->heads * (double)a->queries * (double)a->keys *
		    ((double)(a->d + a->e) * (backward ? 3 : 1) / j.kernel->rate + 1);
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status;

	if (heads == 0)
		return QL_OK;
	j.block = ql_min64(BLOCK, ql_max64(FEWEST, SCORES / a->keys));
	j.parts = ql_ceil_div((int64_t)TASKS_PER_THREAD * ctx->threads, heads);
	j.parts = backward ? 1 : ql_min64(j.parts, ql_max64(1, ql_ceil_div(a->queries, j.block)));
	tasks = heads * j.parts;
	status = take_slots(ctx, &j, tasks, backward);
	if (!status)
		status = ql_parallel_for(ctx, tasks, 1, ns < 1e18 ? (int64_t)ns : INT64_MAX,
			backward ? backward_body : forward_body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_attention_f32(struct ql_ctx *ctx, const struct ql_attention *a)
{
	return a->queries && a->e ? run(ctx, a, false) : QL_OK;
}

enum ql_status ql_attention_f32_backward(struct ql_ctx *ctx, const struct ql_attention *a)
{
	return run(ctx, a, true);
}
