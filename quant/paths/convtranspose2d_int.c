/* SPDX-License-Identifier: MIT
 * convtranspose2d of quantized operands: for each remainder of rows and columns modulo the stride a convolution of x in integers
 * (conv2d_int.c, conv2d_int16.c) with the taps that reach it, whose results are put beside each other. So sums are exact and each is
 * converted as in conv2d. A remainder that no tap reaches has one tap of zeros.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "quant/ranges/quantize.h"
#include "tensor/closed.h"
#include "tensor/ops.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

#define ATTRS 16 /* at least those of conv2d */

/* ---- conditions ---- */

static bool fits(const struct ql_tensor *t, const char **reason)
{
	*reason = ql_dtype_is_float(t->dtype) ? "an operand is not quantized" : "an operand is a plain integer tensor";
	if (!t->q)
		return false;
	*reason = "codes of this scheme are not multiples of a scale";
	if (!ql_qparams_affine(t->q))
		return false;
	*reason = "scale varies in blocks";
	if (t->q->block)
		return false;
	*reason = "+-1 codes have no transposed convolution";
	return !ql_dtype_is_binary(t->dtype) && !t->q->bits;
}

static bool match(struct ql_call *call, const char **reason)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];

	if (!fits(x, reason) || !fits(w, reason))
		return false;
	*reason = "scale varies along the summed axes";
	return x->q->axis < 0 && (w->q->axis < 0 || w->q->axis == 1);
}

/* ---- weights ---- */

/* The taps of one direction that reach a remainder, in descending order, and the offset of the first from the row that is written. */
struct line {
	int64_t n, low, apart; /* apart: between offsets of taps that follow each other */
	int64_t *tap;
};

struct job {
	struct ql_ctx *ctx;
	struct ql_call *call;
	struct ql_conv c;
	struct ql_tensor *x;     /* of whole bytes */
	struct ql_tensor *codes; /* of w: whole bytes, contiguous */
	struct ql_qparams *q;    /* of the weights of convolutions: by output */
	const struct ql_spec *spec;
	struct ql_tensor *out;    /* the result, without params until the end */
	struct ql_qparams *given; /* those of the results; NULL: floats */
	struct line line[2];
};

/* Params of w with one scale for each output, or one for all. */
static enum ql_status params_of(struct job *j, const struct ql_tensor *w)
{
	struct ql_ctx *ctx = j->ctx;
	int64_t groups = j->c.groups, n = ql_tensor_nelem(w->q->scale);
	struct ql_tensor **part[2];

	j->q = ql_qparams_copy(ctx, w->q);
	if (!j->q)
		return QL_ERR_MEMORY;
	if (w->q->axis < 0)
		return QL_OK;
	j->q->axis = 0;
	part[0] = &j->q->scale;
	part[1] = &j->q->zero_point;
	for (int i = 0; i < 2; i++) {
		struct ql_tensor *wide = NULL, *flat = NULL, *dense = NULL;
		enum ql_status status;

		if (groups == 1 || !*part[i])
			continue;
		status = ql_view_expand(ctx, "convtranspose2d", *part[i], 2, (const int64_t[]){groups, n}, &wide);
		if (!status)
			status = ql_tensor_contiguous(ctx, wide, &dense);
		if (!status)
			status =
				ql_view_reshape(ctx, "convtranspose2d", dense, 1, (const int64_t[]){groups * n}, &flat);
		ql_tensor_release(ctx, wide);
		ql_tensor_release(ctx, dense);
		if (status)
			return status;
		ql_tensor_release(ctx, *part[i]);
		*part[i] = flat;
	}
	return QL_OK;
}

/* The code of 0 of output o. */
static int64_t zero_of(const struct job *j, int64_t o)
{
	const struct ql_tensor *zero = j->q->zero_point;

	return zero ? (int64_t)ql_tensor_at_f64(zero, j->q->axis < 0 ? 0 : o) : 0;
}

/* Copies the taps of output o and its channel i to `to`, or its zero. */
static void copy_taps(const struct job *j, int64_t o, int64_t i, size_t size, char *to)
{
	const struct line *rows = &j->line[0], *columns = &j->line[1];
	int64_t outputs = j->c.c / j->c.groups, per = j->c.o / j->c.groups, zero = zero_of(j, o),
		taps = j->c.window.kernel[0] * j->c.window.kernel[1], plane = o / outputs * per + i;
	const char *from =
		(const char *)ql_tensor_data(j->codes) + (size_t)((plane * outputs + o % outputs) * taps) * size;

	if (rows->n * columns->n == 0) {
		if (size == 1)
			memcpy(to, &(int8_t){(int8_t)zero}, 1);
		else
			memcpy(to, &(int16_t){(int16_t)zero}, 2);
		return;
	}
	for (int64_t r = 0; r < rows->n; r++)
		for (int64_t c = 0; c < columns->n; c++, to += size)
			memcpy(to, from + (size_t)(rows->tap[r] * j->c.window.kernel[1] + columns->tap[c]) * size,
				size);
}

/* The weight (outputs, channels of a group, taps) of the remainder. */
static enum ql_status weight_of(struct job *j, struct ql_tensor **w)
{
	int64_t per = j->c.o / j->c.groups, rows = j->line[0].n, columns = j->line[1].n, taps = rows * columns;
	size_t size = ql_dtypes[j->codes->dtype].bits / 8;
	bool none = taps == 0;
	enum ql_status status = ql_tensor_new(
		j->ctx, j->codes->dtype, 4, (const int64_t[]){j->c.c, per, none ? 1 : rows, none ? 1 : columns}, w);

	for (int64_t o = 0; o < j->c.c && !status; o++)
		for (int64_t i = 0; i < per; i++)
			copy_taps(j, o, i, size,
				(char *)ql_tensor_data(*w) + (size_t)((o * per + i) * (none ? 1 : taps)) * size);
	if (!status)
		(*w)->q = ql_qparams_keep(j->q);
	return status;
}

/* Gives x, in whole bytes, as views of packed codes cannot begin anywhere. */
static enum ql_status whole(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor **out)
{
	enum ql_status status = QL_OK;

	if (ql_dtypes[x->dtype].bits >= 8)
		*out = ql_tensor_keep(x);
	else
		status = ql_tensor_cast(ctx, x, ql_dtype_whole(x->dtype), out);
	if (!status && *out != x)
		(*out)->q = ql_qparams_keep(x->q);
	return status;
}

/* ---- one remainder ---- */

static void line_of(const struct ql_window *w, int d, int64_t r, struct line *l)
{
	int64_t last = 0;

	*l = (struct line){.tap = l->tap, .apart = 1};
	for (int64_t k = w->kernel[d] - 1; k >= 0; k--) {
		int64_t at = r + w->before[d] - k * w->dilation[d];

		if (at % w->stride[d])
			continue;
		if (l->n == 0)
			l->low = at / w->stride[d];
		if (l->n == 1)
			l->apart = at / w->stride[d] - last;
		last = at / w->stride[d];
		l->tap[l->n++] = k;
	}
}

static int64_t high_of(const struct line *l, int64_t count)
{
	return l->low + (l->n ? l->n - 1 : 0) * l->apart + count - 1;
}

/* Drops all taps if none reads an element of x. */
static void drop_idle(struct job *j, const int64_t *count)
{
	bool idle = false;

	for (int d = 0; d < 2; d++) {
		const struct line *l = &j->line[d];

		idle = idle || l->n == 0 || l->low >= j->c.window.out[d] || high_of(l, count[d]) < 0;
	}
	for (int d = 0; d < 2 && idle; d++)
		j->line[d] = (struct line){.tap = j->line[d].tap, .apart = 1};
}

/* The part of *x that `count` rows or columns read, in its place, and the padding before and after it. */
static enum ql_status cut(struct job *j, int d, int64_t count, struct ql_tensor **x, int64_t *pad)
{
	const struct line *l = &j->line[d];
	int64_t size = (*x)->shape[2 + d], high = high_of(l, count), from = ql_max64(0, l->low),
		to = ql_min64(size - 1, high);
	struct ql_tensor *part;
	enum ql_status status;

	pad[0] = from - l->low;
	pad[1] = high - to;
	if (from == 0 && to == size - 1)
		return QL_OK;
	status = ql_view_narrow(j->ctx, "convtranspose2d", *x, 2 + d, from, to - from + 1, &part);
	if (status)
		return status;
	ql_tensor_release(j->ctx, *x);
	*x = part;
	return QL_OK;
}

static void set(struct ql_value *attr, const char *name, struct ql_value v)
{
	const struct ql_attr *list = ql_op_by_name(ql_ops, "conv2d")->doc.attrs;

	for (int i = 0; list[i].type != QL_ATTR_END; i++)
		if (!strcmp(list[i].name, name)) {
			attr[i] = v;
			attr[i].set = true;
		}
}

/* The convolution of x with w, whose result is given in *y. */
static enum ql_status convolve(
	struct job *j, struct ql_tensor *x, struct ql_tensor *w, int64_t *pad, struct ql_tensor **y)
{
	const struct ql_value *act = ql_call_attr(j->call, "act");
	struct ql_tensor *in[3] = {x, w, j->call->n_in > 2 ? j->call->in[2] : NULL};
	int64_t apart[2] = {j->line[0].apart, j->line[1].apart};
	struct ql_value attr[ATTRS] = {{.set = false}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, "conv2d"), .in = in, .n_in = j->call->n_in, .attr = attr};
	enum ql_status status;

	set(attr, "pad", (struct ql_value){.ints = {4, pad}});
	set(attr, "dilation", (struct ql_value){.ints = {2, apart}});
	set(attr, "groups", (struct ql_value){.i = j->c.groups});
	if (act)
		set(attr, "act", *act);
	if (j->spec)
		set(attr, "out", (struct ql_value){.spec = j->spec});
	status = ql_op_apply(j->ctx, &call);
	if (!status) {
		j->call->path = call.path;
		j->call->kernel = call.kernel;
		*y = call.out[0];
	}
	return status;
}

/* Puts y into the rows and columns from `at` on, stride apart. */
static enum ql_status put(struct job *j, const int64_t *at, struct ql_tensor *y)
{
	struct ql_tensor *view = NULL;
	struct ql_qparams *q = y->q;
	enum ql_status status = ql_is_closed(y) ? ql_closed_open(j->ctx, y->storage) : QL_OK;

	if (!status)
		status = ql_view_permute(j->ctx, "convtranspose2d", j->out, (const int[]){0, 1, 2, 3}, &view);
	for (int d = 0; d < 2 && !status; d++) {
		view->offset += at[d] * view->stride[2 + d];
		view->shape[2 + d] = y->shape[2 + d];
		view->stride[2 + d] *= j->c.window.stride[d];
	}
	y->q = NULL; /* the codes are copied as they are */
	if (!status)
		status = ql_tensor_copy(j->ctx, view, y);
	y->q = q;
	ql_tensor_release(j->ctx, view);
	return status;
}

/* The first result decides about dtype and params. */
static enum ql_status open_result(struct job *j, const struct ql_tensor *y)
{
	const struct ql_result *r = &j->call->result[0];
	enum ql_status status = ql_tensor_new(j->ctx, y->dtype, r->rank, r->shape, &j->call->out[0]);

	if (!status)
		j->out = j->call->out[0];
	return status;
}

static enum ql_status remainder_of(struct job *j, const int64_t *at)
{
	const struct ql_window *v = &j->c.window;
	struct ql_tensor *x = ql_tensor_keep(j->x), *w = NULL, *y = NULL;
	int64_t pad[4], count[2];
	enum ql_status status;

	for (int d = 0; d < 2; d++) {
		count[d] = ql_ceil_div(v->in[d] - at[d], v->stride[d]);
		line_of(v, d, at[d], &j->line[d]);
	}
	drop_idle(j, count);
	status = weight_of(j, &w);
	for (int d = 0; d < 2 && !status; d++)
		status = cut(j, d, count[d], &x, pad + 2 * d);
	if (!status)
		status = convolve(j, x, w, pad, &y);
	if (!status && !j->out)
		status = open_result(j, y);
	if (!status)
		status = put(j, at, y);
	if (!status && y->q && !j->given)
		j->given = ql_qparams_keep(y->q);
	ql_tensor_release(j->ctx, x);
	ql_tensor_release(j->ctx, w);
	ql_tensor_release(j->ctx, y);
	return status;
}

/* ---- the path ---- */

/* The spec that each remainder can have by itself: with one given scale. */
static const struct ql_spec *spec_of(const struct ql_call *call)
{
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_spec *s = v ? v->spec : NULL;

	return s && s->scheme && s->has_scale && !s->axis && !s->block && !s->stochastic &&
			       ql_dtypes[s->dtype].bits >= 8
		       ? s
		       : NULL;
}

static enum ql_status run(struct job *j)
{
	const struct ql_window *v = &j->c.window;
	enum ql_status status = ql_conv_int_codes(j->ctx, j->call->in[1], &j->codes);

	if (!status)
		status = whole(j->ctx, j->call->in[0], &j->x);
	for (int d = 0; d < 2 && !status; d++) {
		j->line[d].tap = ql_scratch_array(j->ctx, v->kernel[d], sizeof(int64_t));
		if (!j->line[d].tap)
			status = QL_ERR_MEMORY;
	}
	if (!status)
		status = params_of(j, j->call->in[1]);
	for (int64_t y = 0; y < ql_min64(v->stride[0], v->in[0]) && !status; y++)
		for (int64_t x = 0; x < ql_min64(v->stride[1], v->in[1]) && !status; x++)
			status = remainder_of(j, (const int64_t[]){y, x});
	if (!status && j->given)
		j->call->out[0]->q = ql_qparams_keep(j->given);
	ql_tensor_release(j->ctx, j->x);
	ql_tensor_release(j->ctx, j->codes);
	ql_qparams_release(j->ctx, j->q);
	ql_qparams_release(j->ctx, j->given);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *v = ql_call_attr(call, "out");
	const struct ql_tensor *x = call->in[0], *w = call->in[1];
	struct job j = {.ctx = ctx, .call = call, .spec = spec_of(call)};
	enum ql_status status = ql_convtranspose_read(ctx, call, x->rank, x->shape, w->rank, w->shape, &j.c);

	if (!status)
		status = run(&j);
	return status || j.spec ? status : ql_quantize_result(ctx, call, v ? v->spec : NULL);
}

extern const struct ql_path ql_path_convtranspose2d_int;
const struct ql_path ql_path_convtranspose2d_int = {
	.op = "convtranspose2d",
	.name = "int8",
	.codes = "8 16=int16 packed",
	.text = "exact integer sums, a convolution for each remainder of the stride; one scale for x, one for w or per output",
	.match = match,
	.eval = eval,
};
