/* SPDX-License-Identifier: MIT
 * Attention of a few queries to a cache. A task has a head of keys, and all heads of queries that share it: rows of keys are read once,
 * CHUNK at a time, converted on the way if the cache is not float32; so are those of values, after the softmax. Sums of a score have
 * LANES parts, those of values follow the positions: the bits depend neither on threads nor on instructions.
 */
#include "nn/attention_cached.h"

#include "nn/attention_mask.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/exponentials.h"
#include "tensor/loops/lanes.h"
#include "tensor/narrow.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/slots.h"

#define CHUNK 32
#define LANES 16

struct job {
	const struct ql_ctx *ctx;
	const struct ql_cached *a;
	int variant;
	int64_t users; /* heads of queries of a task */
	struct ql_slots slots;
	int64_t most; /* positions of a row of scores */
};

/* out[j] = scale * q · row j */
QL_SIMD(void, dots,
	(int64_t n, int64_t d, const float *restrict q, const float *restrict rows, int64_t stride, float scale,
		float *restrict out),
	{
		for (int64_t j = 0; j < n; j++) {
			const float *row = rows + j * stride;
			float lane[LANES] = {0};
			int64_t i = 0;

			for (; i + LANES <= d; i += LANES)
				for (int l = 0; l < LANES; l++)
					lane[l] += q[i + l] * row[i + l];
			for (int l = 0; i + l < d; l++)
				lane[l] += q[i + l] * row[i + l];
			for (int w = LANES / 2; w > 0; w /= 2)
				for (int l = 0; l < w; l++)
					lane[l] += lane[l + w];
			out[j] = lane[0] * scale;
		}
	})

/* y += sum of p[j] * row j, in the order of the rows */
QL_SIMD(void, add_rows,
	(int64_t n, int64_t d, const float *restrict p, const float *restrict rows, int64_t stride, float *restrict y),
	{
		int64_t j = 0;

		for (; j + 4 <= n; j += 4) {
			const float *a = rows + j * stride, *b = a + stride, *c = b + stride, *e = c + stride;

			for (int64_t i = 0; i < d; i++)
				y[i] = (((y[i] + p[j] * a[i]) + p[j + 1] * b[i]) + p[j + 2] * c[i]) + p[j + 3] * e[i];
		}
		for (; j < n; j++)
			for (int64_t i = 0; i < d; i++)
				y[i] += p[j] * rows[j * stride + i];
	})

/* Rows of 16 bits: at once where one follows the other. */
static void widen(int variant, const struct ql_cached_rows *c, int64_t at, int64_t n, int64_t d, float *buffer)
{
	const char *data = c->data;
	int64_t size = ql_dtypes[c->dtype].bits / 8;

	if (c->row == d && ql_narrow_to_f32(variant, c->dtype, n * d, data + at * size, buffer))
		return;
	for (int64_t j = 0; j < n; j++)
		ql_dtypes[c->dtype].to_f32(c->data, at + j * c->row, 1, d, buffer + j * d);
}

/* Rows `first` and later of a head as float32: in place, or converted into `buffer`. */
static const float *rows_of(int variant, const struct ql_cached_rows *c, int64_t batch, int64_t head, int64_t first,
	int64_t n, int64_t d, float *buffer, int64_t *stride)
{
	int64_t at = batch * c->batch + head * c->head + first * c->row;

	if (!c->decoder && c->dtype == QL_float32) {
		*stride = c->row;
		return (const float *)c->data + at;
	}
	*stride = d;
	if (c->decoder && c->late)
		for (int64_t j = 0; j < n; j++)
			ql_decoder_read(c->decoder, batch * c->room + first + j, head * d, d, buffer + j * d);
	else if (c->decoder)
		ql_decoder_read(c->decoder, (batch * c->heads + head) * c->room + first, 0, n * d, buffer);
	else
		widen(variant, c, at, n, d, buffer);
	return buffer;
}

/* The same for a query that sees `stop` positions; *n becomes the number of rows up to where codes, the ring or its end end. */
static const float *part_of(const struct job *j, const struct ql_cached_rows *c, int64_t batch, int64_t head,
	int64_t first, int64_t stop, int64_t *n, float *buffer, int64_t *stride)
{
	const struct ql_cached_late *l = c->late;
	int64_t coded = l ? ql_cached_coded(l, stop) : stop, start = j->a->seen[batch], slot;

	*n = ql_min64(CHUNK, stop - first);
	if (first < coded) {
		*n = ql_min64(*n, coded - first);
		return rows_of(j->variant, c, batch, head, first, *n, j->a->d, buffer, stride);
	}
	*stride = l->wide;
	if (first >= start)
		return l->fresh + (batch * j->a->queries + first - start) * l->wide + head * j->a->d;
	slot = first % l->slots;
	*n = ql_min64(*n, ql_min64(start - first, l->slots - slot));
	return l->ring + (batch * l->slots + slot) * l->wide + head * j->a->d;
}

/* Exponentials of a row of scores; returns what makes them probabilities. */
static float normalize(const struct job *j, float *row, int64_t n)
{
	double sum;

	if (j->a->softcap > 0)
		ql_attention_cap(j->variant, n, (float)j->a->softcap, row, NULL);
	ql_row_exp(j->variant, n, row, row, ql_attention_largest(j->variant, row, n));
	sum = ql_sum_f32(j->variant, row, n);
	return sum == 0 ? 0 : (float)(1 / sum);
}

static void query(const struct job *j, int64_t batch, int64_t shared, int64_t t, float *scores, float *buffer)
{
	const struct ql_cached *a = j->a;
	int64_t stop = a->seen[batch] + t + 1, from = a->window ? ql_max64(0, stop - a->window) : 0, n = stop - from,
		stride, part;
	int64_t at = ((batch * a->queries + t) * a->heads + shared * j->users) * a->d;
	const float *rows;

	for (int64_t i = 0; i < n; i += part) {
		rows = part_of(j, &a->k, batch, shared, from + i, stop, &part, buffer, &stride);
		for (int64_t u = 0; u < j->users; u++)
			dots[j->variant](part, a->d, a->q + at + u * a->d, rows, stride, (float)a->scale,
				scores + u * j->most + i);
	}
	for (int64_t u = 0; u < j->users; u++)
		ql_row_scale(j->variant, n, scores + u * j->most, normalize(j, scores + u * j->most, n));
	for (int64_t i = 0; i < j->users * a->d; i++)
		a->y[at + i] = 0;
	for (int64_t i = 0; i < n; i += part) {
		rows = part_of(j, &a->v, batch, shared, from + i, stop, &part, buffer, &stride);
		for (int64_t u = 0; u < j->users; u++)
			add_rows[j->variant](part, a->d, scores + u * j->most + i, rows, stride, a->y + at + u * a->d);
	}
}

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	int slot;
	float *scores = ql_slots_enter(&j->slots, &slot);

	for (int64_t i = begin; i < end && !ql_stopped(j->ctx); i++)
		for (int64_t t = 0; t < j->a->queries; t++)
			query(j, i / j->a->shared, i % j->a->shared, t, scores, scores + j->users * j->most);
	ql_slots_leave(&j->slots, slot);
}

/* Room for the scores of a task and CHUNK converted rows, for each thread. */
static enum ql_status take_slots(struct ql_ctx *ctx, struct job *j)
{
	const struct ql_cached *a = j->a;
	int64_t numbers;

	for (int64_t b = 0; b < a->batches; b++)
		j->most = ql_max64(j->most, a->seen[b] + a->queries);
	numbers = ql_add64(ql_add64(ql_mul64(j->users, j->most), ql_mul64(CHUNK, a->d)), LANES);
	return ql_slots_take(ctx, (uint64_t)ql_mul64(numbers, sizeof(float)), &j->slots);
}

enum ql_status ql_attention_cached(struct ql_ctx *ctx, const struct ql_cached *a)
{
	struct job j = {.ctx = ctx, .a = a, .variant = ctx->kernels->simd->variant, .users = a->heads / a->shared};
	int64_t tasks = a->batches * a->shared;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status = tasks ? take_slots(ctx, &j) : QL_OK;
	double ns =
		(double)a->batches * (double)a->heads * (double)a->queries * (double)j.most * ((double)a->d / 8 + 2);

	if (!status && tasks)
		status = ql_parallel_for(ctx, tasks, 1, ns < 1e18 ? (int64_t)ns : INT64_MAX, body, &j);
	ql_scratch_release(ctx, mark);
	return status;
}
