/* SPDX-License-Identifier: MIT
 * Geometry of sliding windows. With a kernel of k, dilation d and p rows of padding in all, n rows give floor((n +
 * p - (d (k - 1) + 1)) / stride) + 1, with ceilmode= the next larger number if that window begins before the padding after x. Every number is at most QL_WINDOW_MOST, so products of two fit in 64 bits.
 */
#include "tensor/conv/window.h"

#include <string.h>

/* Reads one or two numbers of attribute `name`, each >= lo. */
static enum ql_status read_pair(
	struct ql_ctx *ctx, const struct ql_call *call, const char *name, int64_t lo, int64_t *pair)
{
	const struct ql_value *v = ql_call_attr(call, name);

	if (!v)
		return QL_OK;
	if (v->ints.n < 1 || v->ints.n > 2)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: %s: wanted a number or {h, w}, got %d numbers",
			call->op->doc.name, name, v->ints.n);
	for (int d = 0; d < 2; d++) {
		pair[d] = v->ints.at[v->ints.n == 2 ? d : 0];
		if (pair[d] < lo || pair[d] > QL_WINDOW_MOST)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: %s: wanted %lld or more and at most %lld, got %lld",
				call->op->doc.name, name, (long long)lo, (long long)QL_WINDOW_MOST, (long long)pair[d]);
	}
	return QL_OK;
}

static enum ql_status read_pad(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w)
{
	const struct ql_value *v = ql_call_attr(call, "pad");
	enum ql_status status;

	if (v && v->ints.n == 4) {
		for (int d = 0; d < 4; d++)
			if (v->ints.at[d] < 0 || v->ints.at[d] > QL_WINDOW_MOST)
				return ql_fail(ctx, QL_ERR_ARGUMENT,
					"%s: pad: wanted 0 or more and at most %lld, got %lld", call->op->doc.name,
					(long long)QL_WINDOW_MOST, (long long)v->ints.at[d]);
		for (int d = 0; d < 2; d++) {
			w->before[d] = v->ints.at[2 * d];
			w->after[d] = v->ints.at[2 * d + 1];
		}
		return QL_OK;
	}
	if (v && v->ints.n > 2)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"%s: pad: wanted a number, {h, w} or {top, bottom, left, right}, got %d numbers",
			call->op->doc.name, v->ints.n);
	status = read_pair(ctx, call, "pad", 0, w->before);
	w->after[0] = w->before[0];
	w->after[1] = w->before[1];
	return status;
}

static int64_t reach_of(const struct ql_window *w, int d)
{
	return w->dilation[d] * (w->kernel[d] - 1) + 1;
}

/* Padding for ceil(n / stride) results. */
static enum ql_status read_autopad(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w)
{
	const char *rule = ql_call_string(call, "autopad", NULL);

	if (!rule)
		return QL_OK;
	if (ql_call_attr(call, "pad"))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "%s: autopad: wanted pad= or autopad=, got both", call->op->doc.name);
	for (int d = 0; d < 2 && strcmp(rule, "valid") != 0; d++) {
		int64_t last = ql_max64(0, ql_ceil_div(w->in[d], w->stride[d]) - 1) * w->stride[d],
			all = ql_max64(0, last + reach_of(w, d) - w->in[d]), small = all / 2;

		if (all > QL_WINDOW_MOST)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: autopad: wanted at most %lld of padding, got %lld",
				call->op->doc.name, (long long)QL_WINDOW_MOST, (long long)all);
		w->before[d] = strcmp(rule, "same_lower") ? small : all - small;
		w->after[d] = all - w->before[d];
	}
	return QL_OK;
}

/* The results along d. With `ceil` windows may reach beyond the padding after x, unless they begin in it. */
static int64_t results_of(const struct ql_window *w, int d, bool ceil)
{
	int64_t room = w->in[d] + w->before[d] + w->after[d] - reach_of(w, d), step = w->stride[d], n;

	if (!ceil)
		return room < 0 ? 0 : room / step + 1;
	n = room < 0 ? 1 - -room / step : ql_ceil_div(room, step) + 1;
	return n > 0 && (n - 1) * step >= w->in[d] + w->before[d] ? n - 1 : n;
}

static enum ql_status slide(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w)
{
	bool ceil = ql_call_bool(call, "ceilmode", false);

	for (int d = 0; d < 2; d++) {
		w->out[d] = results_of(w, d, ceil);
		if (w->out[d] < 1)
			return ql_fail(ctx, QL_ERR_SHAPE,
				"%s: wanted a kernel no larger than the padded input, got a kernel of %lld x %lld "
				"that reaches over %lld %s of %lld",
				call->op->doc.name, (long long)w->kernel[0], (long long)w->kernel[1],
				(long long)reach_of(w, d), d ? "columns" : "rows",
				(long long)(w->in[d] + w->before[d] + w->after[d]));
		w->after[d] = ql_max64(
			w->after[d], (w->out[d] - 1) * w->stride[d] + reach_of(w, d) - w->before[d] - w->in[d]);
	}
	return QL_OK;
}

/* Which padding is part of means. */
static void read_counted(const struct ql_call *call, struct ql_window *w)
{
	bool all = ql_call_bool(call, "countincludepad", true);

	for (int d = 0; d < 2; d++) {
		w->counted[d][0] = all ? w->before[d] : 0;
		w->counted[d][1] = all ? w->after[d] : 0;
	}
}

/* Reads stride=, pad= and the other options of the call (those that its op has) for w->in and w->kernel and sets the other
 * members. `stride` is the default of stride=; 0: the size of the kernel. */
static enum ql_status read_window(struct ql_ctx *ctx, const struct ql_call *call, int64_t stride, struct ql_window *w)
{
	enum ql_status status = QL_OK;

	for (int d = 0; d < 2; d++) {
		w->stride[d] = stride ? stride : w->kernel[d];
		w->dilation[d] = 1;
		w->before[d] = w->after[d] = 0;
		if (w->kernel[d] < 1 || w->kernel[d] > QL_WINDOW_MOST)
			return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted a kernel of at least 1 x 1, got %lld x %lld",
				call->op->doc.name, (long long)w->kernel[0], (long long)w->kernel[1]);
	}
	status = read_pair(ctx, call, "stride", 1, w->stride);
	if (!status)
		status = read_pair(ctx, call, "dilation", 1, w->dilation);
	if (!status)
		status = read_pad(ctx, call, w);
	if (!status)
		status = read_autopad(ctx, call, w);
	read_counted(call, w);
	return status ? status : slide(ctx, call, w);
}

enum ql_status ql_pool_window(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w)
{
	const struct ql_tensor *x = call->in[0];
	const struct ql_value *k = ql_call_attr(call, "k");

	*w = (struct ql_window){.in = {x->shape[2], x->shape[3]}};
	for (int d = 0; d < 2; d++)
		w->kernel[d] = !k || k->ints.n == 0 ? w->in[d] : k->ints.at[k->ints.n == 2 ? d : 0];
	if (k && k->ints.n > 2)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: k: wanted a number or {h, w}, got %d numbers",
			call->op->doc.name, k->ints.n);
	return read_window(ctx, call, 0, w);
}

int64_t ql_window_count(const struct ql_window *w, int d, int64_t i)
{
	int64_t at = i * w->stride[d] - w->before[d], stop = ql_min64(at + w->kernel[d], w->in[d] + w->counted[d][1]);

	return ql_max64(0, stop - ql_max64(at, -w->counted[d][0]));
}

bool ql_window_even(const struct ql_window *w)
{
	for (int d = 0; d < 2; d++)
		if (w->before[d] > w->counted[d][0] ||
			(w->out[d] - 1) * w->stride[d] - w->before[d] + w->kernel[d] > w->in[d] + w->counted[d][1])
			return false;
	return true;
}

int64_t ql_window_inside(const struct ql_window *w, int d, int64_t i, int64_t *first)
{
	int64_t at = i * w->stride[d] - w->before[d], step = w->dilation[d], skip = at < 0 ? ql_ceil_div(-at, step) : 0,
		stop = at >= w->in[d] ? 0 : (w->in[d] - 1 - at) / step + 1;

	*first = ql_min64(at + skip * step, w->in[d]);
	return ql_max64(0, ql_min64(w->kernel[d], stop) - skip);
}

void ql_window_reach(const struct ql_window *w, int d, int64_t shift, int64_t *from, int64_t *to)
{
	int64_t lo = shift < 0 ? ql_ceil_div(-shift, w->stride[d]) : 0;
	int64_t hi = shift >= w->in[d] ? 0 : (w->in[d] - 1 - shift) / w->stride[d] + 1;

	*from = ql_min64(lo, w->out[d]);
	*to = ql_max64(*from, ql_min64(hi, w->out[d]));
}

/* The shape of a kernel of the size k=, which is held as a matrix with a row for each output. */
static bool read_matrix(const struct ql_call *call, int rank, const int64_t *w, int64_t *shape)
{
	const struct ql_value *k = ql_call_attr(call, "k");
	int64_t h = k->ints.at[0], width = k->ints.at[k->ints.n - 1];

	if (rank != 2 || k->ints.n > 2 || h < 1 || width < 1 || h > QL_WINDOW_MOST || width > QL_WINDOW_MOST ||
		w[1] % (h * width))
		return false;
	memcpy(shape, (int64_t[]){w[0], w[1] / (h * width), h, width}, 4 * sizeof(*shape));
	return true;
}

enum ql_status ql_conv_read(struct ql_ctx *ctx, const struct ql_call *call, int x_rank, const int64_t *x, int w_rank,
	const int64_t *w, struct ql_conv *out)
{
	const char *op = call->op->doc.name;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	int64_t groups = ql_call_int(call, "groups", 1), kernel[4];

	if (ql_call_attr(call, "k")) {
		if (!read_matrix(call, w_rank, w, kernel))
			return ql_fail(ctx, QL_ERR_SHAPE,
				"%s: k: wanted the size of the kernel, {h, w}, of w (out, c / groups * h * w), got w %s",
				op, ql_shape_text(w_rank, w, b));
		w = kernel;
		w_rank = 4;
	}
	if (x_rank != 4 || w_rank != 4)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: wanted x (n, c, h, w) and w (out, c / groups, kh, kw), got %s and %s", op,
			ql_shape_text(x_rank, x, a), ql_shape_text(w_rank, w, b));
	if (groups < 1 || x[1] % groups || w[0] % groups)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"%s: groups: wanted a divisor of %lld channels and of %lld outputs, got %lld", op,
			(long long)x[1], (long long)w[0], (long long)groups);
	if (x[1] / groups != w[1])
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted w (out, %lld, kh, kw) for x %s in %lld group%s, got %s",
			op, (long long)(x[1] / groups), ql_shape_text(x_rank, x, a), (long long)groups,
			groups == 1 ? "" : "s", ql_shape_text(w_rank, w, b));
	*out = (struct ql_conv){.window = {.in = {x[2], x[3]}, .kernel = {w[2], w[3]}},
		.n = x[0],
		.c = x[1],
		.o = w[0],
		.groups = groups};
	return read_window(ctx, call, 1, &out->window);
}

/* ---- transposed convolutions ---- */

/* Padding with which h rows give h stride rows; *more: rows that windows do not reach. */
static void transposed_autopad(const struct ql_call *call, struct ql_window *w, int64_t *more)
{
	const char *rule = ql_call_string(call, "autopad", "valid");

	for (int d = 0; d < 2 && strcmp(rule, "valid") != 0; d++) {
		int64_t all = reach_of(w, d) + more[d] - w->stride[d], small = ql_max64(0, all) / 2;

		w->before[d] = strcmp(rule, "same_lower") ? small : ql_max64(0, all) - small;
		w->after[d] = ql_max64(0, all) - w->before[d];
		more[d] -= ql_min64(0, all);
	}
}

static enum ql_status read_transposed(struct ql_ctx *ctx, const struct ql_call *call, struct ql_window *w)
{
	int64_t more[2] = {0, 0};
	enum ql_status status = read_pair(ctx, call, "stride", 1, w->stride);

	if (!status)
		status = read_pair(ctx, call, "dilation", 1, w->dilation);
	if (!status)
		status = read_pair(ctx, call, "outputpad", 0, more);
	if (!status)
		status = read_pad(ctx, call, w);
	if (!status && ql_call_attr(call, "autopad") && ql_call_attr(call, "pad"))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "%s: autopad: wanted pad= or autopad=, got both", call->op->doc.name);
	for (int d = 0; d < 2 && !status; d++)
		if (more[d] >= ql_max64(w->stride[d], w->dilation[d]))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"%s: outputpad: wanted less than the stride or the dilation, %lld, got %lld",
				call->op->doc.name, (long long)ql_max64(w->stride[d], w->dilation[d]),
				(long long)more[d]);
	if (!status)
		transposed_autopad(call, w, more);
	for (int d = 0; d < 2 && !status; d++) {
		w->in[d] = (w->out[d] - 1) * w->stride[d] + reach_of(w, d) + more[d] - w->before[d] - w->after[d];
		if (w->out[d] < 1 || w->in[d] < 1)
			return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted a result of at least one %s, got %lld from %lld",
				call->op->doc.name, d ? "column" : "row", (long long)w->in[d], (long long)w->out[d]);
	}
	return status;
}

enum ql_status ql_convtranspose_read(struct ql_ctx *ctx, const struct ql_call *call, int x_rank, const int64_t *x,
	int w_rank, const int64_t *w, struct ql_conv *out)
{
	const char *op = call->op->doc.name;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	int64_t groups = ql_call_int(call, "groups", 1);

	if (x_rank != 4 || w_rank != 4 || x[1] != w[0])
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: wanted x (n, c, h, w) and w (c, out / groups, kh, kw), got %s and %s", op,
			ql_shape_text(x_rank, x, a), ql_shape_text(w_rank, w, b));
	if (groups < 1 || x[1] % groups)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: groups: wanted a divisor of %lld channels, got %lld", op,
			(long long)x[1], (long long)groups);
	for (int d = 2; d < 4; d++)
		if (w[d] < 1 || w[d] > QL_WINDOW_MOST || x[d] > QL_WINDOW_MOST)
			return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted a kernel of at least 1 x 1, got %lld x %lld", op,
				(long long)w[2], (long long)w[3]);
	*out = (struct ql_conv){
		.window = {.kernel = {w[2], w[3]}, .stride = {1, 1}, .dilation = {1, 1}, .out = {x[2], x[3]}},
		.n = x[0],
		.c = ql_mul64(w[1], groups),
		.o = x[1],
		.groups = groups};
	return read_transposed(ctx, call, &out->window);
}
