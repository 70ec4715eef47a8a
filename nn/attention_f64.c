/* SPDX-License-Identifier: MIT
 * Attention in float64, one query at a time: the reference for float32 and for gradient checks.
 */
#include <math.h>
#include <string.h>

#include "nn/attention.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

struct job {
	const struct ql_ctx *ctx;
	const struct ql_attention *a;
	double *rows; /* 3 of keys numbers per task */
};

static double *at(const struct ql_heads *h, int64_t batch, int64_t head, int64_t row)
{
	return (double *)h->data + ql_heads_at(h, batch, head, row);
}

static double dot(const double *a, const double *b, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static void add(double *to, const double *x, double by, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] += x[i] * by;
}

/* Adds the mask to the scores of a query, or hides those that it hides. */
static void mask_scores(const struct ql_attention *a, int64_t at, int64_t from, int64_t to, double *score)
{
	for (int64_t k = from; k < to; k++) {
		int64_t of = at + k * a->mask.key;

		if (a->mask.kind == QL_MASK_ADDED)
			score[k] += ((const double *)a->mask.data)[of];
		else if (!((const uint8_t *)a->mask.data)[of])
			score[k] = -INFINITY;
	}
}

/* Scores to probabilities; zeros if all are hidden. */
static void normalize(double *p, int64_t from, int64_t to)
{
	double most = -INFINITY, sum = 0;

	for (int64_t k = from; k < to; k++)
		most = p[k] > most ? p[k] : most;
	for (int64_t k = from; k < to; k++)
		sum += p[k] = exp(p[k] - (most == -INFINITY ? 0 : most));
	for (int64_t k = from; k < to; k++)
		p[k] = sum == 0 ? 0 : p[k] / sum;
}

/* A query and the keys that it attends to. */
struct query {
	int64_t batch, head, shared, i, from, to;
};

static struct query query_of(const struct ql_attention *a, int64_t batch, int64_t head, int64_t i)
{
	return (struct query){.batch = batch,
		.head = head,
		.shared = head / (a->heads / a->shared),
		.i = i,
		.from = ql_attention_from(a, batch, i),
		.to = ql_attention_seen(a, batch, i)};
}

/* p: one number per key of the query; slope (may be NULL): the derivative of the capped scores. */
static void probabilities(const struct ql_attention *a, const struct query *q, double *p, double *slope)
{
	for (int64_t k = q->from; k < q->to; k++) {
		p[k] = a->scale * dot(at(&a->q, q->batch, q->head, q->i), at(&a->k, q->batch, q->shared, k), a->d);
		if (slope)
			slope[k] = 1;
		if (a->softcap > 0) {
			double t = tanh(p[k] / a->softcap);

			p[k] = a->softcap * t;
			if (slope)
				slope[k] = 1 - t * t;
		}
	}
	if (a->mask.kind != QL_MASK_NONE)
		mask_scores(a, ql_attention_mask_at(a, q->batch, q->head, q->i), q->from, q->to, p);
	normalize(p, q->from, q->to);
}

static void forward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_attention *a = j->a;

	for (int64_t t = begin; t < end; t++) {
		int64_t head = t % a->heads, batch = t / a->heads;
		double *p = j->rows + 3 * t * a->keys;

		for (int64_t i = 0; i < a->queries && !ql_stopped(j->ctx); i++) {
			struct query q = query_of(a, batch, head, i);
			double *o = at(&a->o, batch, head, i);

			probabilities(a, &q, p, NULL);
			memset(o, 0, (size_t)a->e * sizeof(*o));
			for (int64_t k = q.from; k < q.to; k++)
				add(o, at(&a->v, batch, q.shared, k), p[k], a->e);
		}
	}
}

/* The gradient of the masked scores, P (dP - sum P dP), in dp. */
static void scores_back(
	const struct ql_attention *a, const struct query *q, const double *g, const double *p, double *dp)
{
	double less;

	for (int64_t k = q->from; k < q->to; k++)
		dp[k] = dot(g, at(&a->v, q->batch, q->shared, k), a->e);
	less = dot(p + q->from, dp + q->from, q->to - q->from);
	for (int64_t k = q->from; k < q->to; k++)
		dp[k] = p[k] * (dp[k] - less);
}

/* rows: 3 of keys numbers. */
static void backward_query(const struct ql_attention *a, const struct query *q, double *rows)
{
	double *p = rows, *dp = rows + a->keys, *slope = dp + a->keys;
	const double *g = at(&a->g, q->batch, q->head, q->i);
	double *dq = at(&a->dq, q->batch, q->head, q->i);

	probabilities(a, q, p, slope);
	scores_back(a, q, g, p, dp);
	memset(dq, 0, (size_t)a->d * sizeof(*dq));
	for (int64_t k = q->from; k < q->to; k++) {
		double ds = a->scale * slope[k] * dp[k];

		add(dq, at(&a->k, q->batch, q->shared, k), ds, a->d);
		add(at(&a->dk, q->batch, q->shared, k), at(&a->q, q->batch, q->head, q->i), ds, a->d);
		add(at(&a->dv, q->batch, q->shared, k), g, p[k], a->e);
	}
	if (a->dmask) {
		double *dm = (double *)a->dmask + ((q->batch * a->heads + q->head) * a->queries + q->i) * a->keys;

		memset(dm, 0, (size_t)a->keys * sizeof(*dm));
		memcpy(dm + q->from, dp + q->from, (size_t)(q->to - q->from) * sizeof(*dm));
	}
}

static void backward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_attention *a = j->a;
	int64_t users = a->heads / a->shared;

	for (int64_t t = begin; t < end; t++) {
		int64_t shared = t % a->shared, batch = t / a->shared;
		double *rows = j->rows + 3 * t * a->keys;

		for (int64_t k = 0; k < a->keys; k++) {
			memset(at(&a->dk, batch, shared, k), 0, (size_t)a->d * sizeof(double));
			memset(at(&a->dv, batch, shared, k), 0, (size_t)a->e * sizeof(double));
		}
		for (int64_t head = shared * users; head < (shared + 1) * users; head++)
			for (int64_t i = 0; i < a->queries && !ql_stopped(j->ctx); i++) {
				struct query q = query_of(a, batch, head, i);

				backward_query(a, &q, rows);
			}
	}
}

static enum ql_status run(struct ql_ctx *ctx, const struct ql_attention *a, int64_t tasks, ql_parallel_fn *body)
{
	struct job j = {.ctx = ctx, .a = a};
	double ns = (double)tasks * (double)a->queries * (double)a->keys * (double)(a->d + a->e);
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	uint64_t numbers, bytes;
	enum ql_status status;

	if (!ql_size_mul((uint64_t)tasks, (uint64_t)a->keys, &numbers) ||
		!ql_size_mul(numbers, 3 * sizeof(double), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "attention: wanted heads that fit in memory, got %lld keys",
			(long long)a->keys);
	j.rows = ql_scratch_take(ctx, bytes);
	status = j.rows ? ql_parallel_for(ctx, tasks, 1, ns < 1e18 ? (int64_t)ns : INT64_MAX, body, &j) : QL_ERR_MEMORY;
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_attention_f64(struct ql_ctx *ctx, const struct ql_attention *a)
{
	return run(ctx, a, a->batches * a->heads, forward_body);
}

enum ql_status ql_attention_f64_backward(struct ql_ctx *ctx, const struct ql_attention *a)
{
	return run(ctx, a, a->batches * a->shared, backward_body);
}
