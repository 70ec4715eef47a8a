/* SPDX-License-Identifier: MIT */
#include "nn/attention_turn.h"

#include <math.h>
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

/* ---- checks ---- */

enum ql_status ql_turn_check_options(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s)
{
	int64_t dims = ql_call_int(call, "dims", s->d);
	double base = ql_call_float(call, "base", 10000), scale = ql_call_float(call, "scale", 1),
	       cap = ql_call_float(call, "softcap", 1);

	if (ql_call_attr(call, "rope") && (dims < 2 || dims > s->d || dims % 2))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: dims: wanted an even number from 2 to %lld, got %lld",
			call->op->doc.name, (long long)s->d, (long long)dims);
	if (!(base > 0 && isfinite(base)))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "%s: base: wanted a number above 0, got %g", call->op->doc.name, base);
	if (ql_call_int(call, "window", 1) < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: window: wanted 1 or more, got %lld", call->op->doc.name,
			(long long)ql_call_int(call, "window", 1));
	if (!isfinite(scale) || !(cap > 0 && isfinite(cap)))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted a finite scale and a softcap above 0, got %g and %g",
			call->op->doc.name, scale, cap);
	return QL_OK;
}

enum ql_status ql_turn_check_tables(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s)
{
	int64_t half = ql_call_int(call, "dims", s->d) / 2;
	char text[QL_SHAPE_TEXT];

	if (call->n_in == s->tables + 1 ||
		(call->n_in > s->tables && (!ql_call_attr(call, "rope") || ql_call_attr(call, "base"))))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted cos and sin with rope= and without base=, got another",
			call->op->doc.name);
	for (int i = s->tables; i < call->n_in; i++)
		if (call->in[i]->rank != 2 || call->in[i]->shape[1] != half ||
			call->in[i]->shape[0] != call->in[s->tables]->shape[0] || call->in[i]->q ||
			!ql_dtype_is_float(call->in[i]->dtype))
			return ql_fail(ctx, QL_ERR_SHAPE, "%s: %s: wanted floats (positions, %lld), got %s",
				call->op->doc.name, i == s->tables ? "cos" : "sin", (long long)half,
				ql_tensor_text(call->in[i], text));
	return QL_OK;
}

enum ql_status ql_turn_starts(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s, struct ql_tensor **starts)
{
	enum ql_status status = ql_dense_of(ctx, call->in[s->tables - 1], QL_int64, starts);
	const int64_t *start;

	if (status)
		return status;
	start = ql_tensor_data(*starts);
	for (int64_t b = 0; b < s->batches; b++)
		if (start[b] < 0 || start[b] > s->room - s->queries)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"%s: starts: wanted 0 to %lld, so that %lld more positions fit, got %lld",
				call->op->doc.name, (long long)ql_max64(0, s->room - s->queries), (long long)s->queries,
				(long long)start[b]);
	return QL_OK;
}

/* ---- rotary positions: the numbers of nn.rope ---- */

/* By base and dims. */
static void compute_turn(
	const struct ql_attention_sizes *s, const int64_t *start, double base, const struct ql_turn *turn)
{
	int64_t half = turn->n / 2;

	for (int64_t i = 0; i < half; i++) {
		double frequency = pow(base, -2 * (double)i / (double)turn->n);

		for (int64_t r = 0; r < s->batches * s->queries; r++) {
			double angle = (double)(start[r / s->queries] + r % s->queries) * frequency;

			turn->cosine[r * half + i] = (float)cos(angle);
			turn->sine[r * half + i] = (float)sin(angle);
		}
	}
}

/* By the tables of cosines and sines. */
static enum ql_status copy_turn(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s,
	const int64_t *start, const struct ql_turn *turn)
{
	float *to[2] = {turn->cosine, turn->sine};
	int64_t half = turn->n / 2, rows = call->in[s->tables]->shape[0];
	enum ql_status status = QL_OK;

	for (int64_t b = 0; b < s->batches; b++)
		if (start[b] > rows - s->queries)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: cos: wanted %lld positions, got %lld",
				call->op->doc.name, (long long)(start[b] + s->queries), (long long)rows);
	for (int i = 0; i < 2 && !status; i++) {
		struct ql_tensor *t = NULL;

		status = ql_dense_of(ctx, call->in[s->tables + i], QL_float32, &t);
		for (int64_t b = 0; b < s->batches && !status; b++)
			memcpy(to[i] + b * s->queries * half, (const float *)ql_tensor_data(t) + start[b] * half,
				(size_t)(s->queries * half) * sizeof(float));
		ql_tensor_release(ctx, t);
	}
	return status;
}

enum ql_status ql_turn_make(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_attention_sizes *s,
	const int64_t *start, struct ql_turn *turn, struct ql_tensor **table)
{
	int64_t rows = s->batches * s->queries;
	enum ql_status status;

	*turn = (struct ql_turn){.on = ql_call_attr(call, "rope") != NULL,
		.halves = !strcmp(ql_call_string(call, "rope", "pairs"), "half")};
	if (!turn->on)
		return QL_OK;
	turn->n = ql_call_int(call, "dims", s->d);
	status = ql_tensor_new(ctx, QL_float32, 3, (const int64_t[]){2, rows, turn->n / 2}, table);
	if (status)
		return status;
	turn->cosine = ql_tensor_data(*table);
	turn->sine = turn->cosine + rows * (turn->n / 2);
	if (call->n_in > s->tables)
		return copy_turn(ctx, call, s, start, turn);
	compute_turn(s, start, ql_call_float(call, "base", 10000), turn);
	return QL_OK;
}

/* Differences are sums with a negated sine: compilers join a difference beside a sum to one instruction that rounds once. */
static void turn_head(const struct ql_turn *turn, int64_t row, int64_t d, const float *x, float *y)
{
	int64_t half = turn->n / 2, step = turn->halves ? 1 : 2, other = turn->halves ? half : 1;
	const float *c = turn->cosine + row * half, *sine = turn->sine + row * half;

	memcpy(y, x, (size_t)d * sizeof(*y));
	for (int64_t i = 0; turn->on && i < half; i++) {
		float a = x[i * step], b = x[i * step + other], less = -sine[i];
		float first = a * c[i], second = b * less, third = b * c[i], fourth = a * sine[i];

		y[i * step] = first + second;
		y[i * step + other] = third + fourth;
	}
}

/* Gives x (b, t, heads * d), turned or not, as (b, t, heads, d), or by_head as (b, heads, t, d). */
enum ql_status ql_turn_heads(struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_turn *turn,
	const struct ql_attention_sizes *s, int64_t heads, bool by_head, struct ql_tensor **out)
{
	struct ql_tensor *from = NULL;
	enum ql_status status = ql_dense_of(ctx, x, QL_float32, &from);
	int64_t t = s->queries, d = s->d;

	if (!status)
		status = ql_tensor_new(ctx, QL_float32, 4,
			by_head ? (const int64_t[]){s->batches, heads, t, d}
				: (const int64_t[]){s->batches, t, heads, d},
			out);
	if (!status) {
		const float *in = ql_tensor_data(from);
		float *to = ql_tensor_data(*out);

		for (int64_t r = 0; r < s->batches * t; r++)
			for (int64_t h = 0; h < heads; h++)
				turn_head(turn, r, d, in + (r * heads + h) * d,
					to + (by_head ? ((r / t * heads + h) * t + r % t) * d : (r * heads + h) * d));
	}
	ql_tensor_release(ctx, from);
	return status;
}

/* ---- codes ---- */

bool ql_starts_agree(const int64_t *start, int64_t n)
{
	for (int64_t b = 1; b < n; b++)
		if (start[b] != start[0])
			return false;
	return true;
}

/* n positions of row b; all rows for b < 0. */
static enum ql_status cache_part(struct ql_ctx *ctx, const struct ql_tensor *t, int64_t b, int axis, int64_t first,
	int64_t n, struct ql_tensor **out)
{
	struct ql_tensor *row = NULL;
	enum ql_status status =
		b < 0 ? ql_tensor_alias(ctx, t, &row) : ql_view_narrow(ctx, "cachedattention", t, 0, b, 1, &row);

	if (!status)
		status = ql_view_narrow(ctx, "cachedattention", row, axis, first, n, out);
	ql_tensor_release(ctx, row);
	return status;
}

static enum ql_status copy_params(struct ql_ctx *ctx, struct ql_tensor *to, const struct ql_tensor *from)
{
	struct ql_tensor *into[3] = {to->q->scale, to->q->zero_point, to->q->shift};
	struct ql_tensor *of[3] = {from->q->scale, from->q->zero_point, from->q->shift};
	enum ql_status status = QL_OK;

	for (int i = 0; i < 3 && !status; i++)
		if (into[i] && of[i]) {
			status = ql_tensor_copy(ctx, into[i], of[i]);
			into[i]->storage->version++;
		}
	return status;
}

enum ql_status ql_cache_put(
	struct ql_ctx *ctx, struct ql_tensor *cache, const struct ql_tensor *codes, int64_t b, int axis, int64_t first)
{
	struct ql_tensor *to = NULL, *from = NULL;
	enum ql_status status = cache_part(ctx, cache, b, axis, first, codes->shape[axis], &to);

	if (!status)
		status = cache_part(ctx, codes, b, axis, 0, codes->shape[axis], &from);
	if (!status)
		status = ql_tensor_copy(ctx, to, from);
	if (!status)
		status = copy_params(ctx, to, from);
	ql_tensor_release(ctx, to);
	ql_tensor_release(ctx, from);
	return status;
}
