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
	double *rows; /* 2 of keys numbers per task */
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

/* p: one number per key that query i attends to; returns their number. */
static int64_t probabilities(const struct ql_attention *a, int64_t batch, int64_t head, int64_t i, double *p)
{
	int64_t n = ql_attention_seen(a, i), shared = head / (a->heads / a->shared);
	double most = -INFINITY, sum = 0;

	for (int64_t k = 0; k < n; k++) {
		p[k] = a->scale * dot(at(&a->q, batch, head, i), at(&a->k, batch, shared, k), a->d);
		most = p[k] > most ? p[k] : most;
	}
	for (int64_t k = 0; k < n; k++)
		sum += p[k] = exp(p[k] - most);
	for (int64_t k = 0; k < n; k++)
		p[k] /= sum;
	return n;
}

static void forward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_attention *a = j->a;

	for (int64_t t = begin; t < end; t++) {
		int64_t head = t % a->heads, batch = t / a->heads, shared = head / (a->heads / a->shared);
		double *p = j->rows + 2 * t * a->keys;

		for (int64_t i = 0; i < a->queries && !ql_stopped(j->ctx); i++) {
			double *o = at(&a->o, batch, head, i);
			int64_t n = probabilities(a, batch, head, i, p);

			memset(o, 0, (size_t)a->e * sizeof(*o));
			for (int64_t k = 0; k < n; k++)
				add(o, at(&a->v, batch, shared, k), p[k], a->e);
		}
	}
}

static void backward_query(const struct ql_attention *a, int64_t batch, int64_t head, int64_t i, double *p, double *dp)
{
	int64_t n = probabilities(a, batch, head, i, p), shared = head / (a->heads / a->shared);
	const double *g = at(&a->g, batch, head, i);
	double *dq = at(&a->dq, batch, head, i), less;

	for (int64_t k = 0; k < n; k++)
		dp[k] = dot(g, at(&a->v, batch, shared, k), a->e);
	less = dot(p, dp, n);
	memset(dq, 0, (size_t)a->d * sizeof(*dq));
	for (int64_t k = 0; k < n; k++) {
		double ds = a->scale * p[k] * (dp[k] - less);

		add(dq, at(&a->k, batch, shared, k), ds, a->d);
		add(at(&a->dk, batch, shared, k), at(&a->q, batch, head, i), ds, a->d);
		add(at(&a->dv, batch, shared, k), g, p[k], a->e);
	}
}

static void backward_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_attention *a = j->a;
	int64_t users = a->heads / a->shared;

	for (int64_t t = begin; t < end; t++) {
		int64_t shared = t % a->shared, batch = t / a->shared;
		double *p = j->rows + 2 * t * a->keys;

		for (int64_t k = 0; k < a->keys; k++) {
			memset(at(&a->dk, batch, shared, k), 0, (size_t)a->d * sizeof(double));
			memset(at(&a->dv, batch, shared, k), 0, (size_t)a->e * sizeof(double));
		}
		for (int64_t head = shared * users; head < (shared + 1) * users; head++)
			for (int64_t i = 0; i < a->queries && !ql_stopped(j->ctx); i++)
				backward_query(a, batch, head, i, p, p + a->keys);
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
		!ql_size_mul(numbers, 2 * sizeof(double), &bytes))
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
