/* SPDX-License-Identifier: MIT
 * conv2d and its gradients. float32 (and 16-bit floats through it) by tensor/conv, float64 by plain loops.
 */
#include <math.h>
#include <string.h>

#include "tensor/codec.h"
#include "tensor/conv/conv.h"
#include "tensor/deferred.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ledger.h"
#include "tensor/ops.h"
#include "tensor/ops/conv2d.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"

static const struct ql_attr attrs[] = {
	QL_WINDOW_STRIDE("step of the kernel: a number or {h, w} (default 1)"),
	QL_WINDOW_PAD,
	QL_WINDOW_AUTOPAD,
	{"dilation", QL_ATTR_INTS, 0, NULL, "distance of the kernel's taps: a number or {h, w} (default 1)"},
	{"groups", QL_ATTR_INT, 0, NULL, "channels and outputs fall into so many groups that do not mix (default 1)"},
	{"k", QL_ATTR_INTS, 0, NULL,
		"size of the kernel, a number or {h, w}, of a quantized w whose rows are the outputs: (out, c / groups * kh * kw)"},
	{"act", QL_ATTR_STRING, 0, "relu relu6 gelu silu tanh sigmoid hardswish",
		"activation after the bias (default: none)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* ---- operands ---- */

/* Contiguous operands of an eval in float32 or float64, and a result of that dtype. */
struct sides {
	struct ql_tensor *in[2], *out; /* in[1] may be quantized, if that is asked for */
	bool wide;                     /* float64 */
};

static enum ql_status as_dense(struct ql_ctx *ctx, struct ql_tensor *t, unsigned dtype, struct ql_tensor **out)
{
	struct ql_tensor *decoded = NULL;
	enum ql_status status;

	if (t->q) {
		status = ql_decode(ctx, t, dtype == QL_float32 ? out : &decoded);
		if (!status && decoded)
			status = ql_tensor_cast(ctx, decoded, dtype, out);
		ql_tensor_release(ctx, decoded);
		return status;
	}
	return t->dtype == dtype ? ql_tensor_contiguous(ctx, t, out) : ql_tensor_cast(ctx, t, dtype, out);
}

static enum ql_status sides_open(struct ql_ctx *ctx, struct ql_call *call, bool wide, bool codes, struct sides *s)
{
	struct ql_tensor *out = call->out[0];
	unsigned dtype = wide ? QL_float64 : QL_float32;
	enum ql_status status = QL_OK;

	*s = (struct sides){.wide = wide};
	for (int i = 0; i < 2 && !status; i++)
		if (i == 1 && codes && call->in[i]->q)
			s->in[i] = ql_tensor_keep(call->in[i]);
		else
			status = as_dense(ctx, call->in[i], dtype, &s->in[i]);
	if (!status && out->dtype != dtype)
		status = ql_tensor_new(ctx, dtype, out->rank, out->shape, &s->out);
	else if (!status)
		s->out = ql_tensor_keep(out);
	return status;
}

/* Converts the result if it was computed in another dtype. */
static enum ql_status sides_close(struct ql_ctx *ctx, struct ql_call *call, struct sides *s, enum ql_status status)
{
	if (!status && s->out != call->out[0])
		status = ql_tensor_copy(ctx, call->out[0], s->out);
	for (int i = 0; i < 2; i++)
		ql_tensor_release(ctx, s->in[i]);
	ql_tensor_release(ctx, s->out);
	return status;
}

/* Runs `narrow`, or `loops` for float64 and for taps that are too far apart. */
static enum ql_status compute(struct ql_ctx *ctx, struct ql_call *call, const struct ql_conv *c, int64_t rows,
	enum ql_status (*narrow)(struct ql_ctx *, const struct ql_conv *, const float *, const float *, float *),
	enum ql_status (*loops)(struct ql_ctx *, const struct ql_conv *, const double *, const double *, double *))
{
	struct sides s;
	bool wide = call->out[0]->dtype == QL_float64;
	enum ql_status status = sides_open(ctx, call, wide, false, &s);

	call->path = wide ? "float64" : "float32";
	call->kernel = wide ? "ref" : ql_conv_kernel(ctx, rows);
	if (!status && !wide) {
		status = narrow(ctx, c, ql_tensor_data(s.in[0]), ql_tensor_data(s.in[1]), ql_tensor_data(s.out));
		if (status == QL_ERR_OVERFLOW) {
			sides_close(ctx, call, &s, status);
			status = sides_open(ctx, call, true, false, &s);
			wide = true;
			call->kernel = "ref";
		}
	}
	if (!status && wide)
		status = loops(ctx, c, ql_tensor_data(s.in[0]), ql_tensor_data(s.in[1]), ql_tensor_data(s.out));
	return sides_close(ctx, call, &s, status);
}

/* ---- the result ---- */

/* Whether all operands are plain integers. */
static bool of_integers(const struct ql_call *call)
{
	for (int i = 0; i < call->n_in; i++)
		if (call->in[i]->q || !ql_dtype_is_integer(call->in[i]->dtype) || ql_dtype_is_bool(call->in[i]->dtype))
			return false;
	return true;
}

static enum ql_status check_operands(struct ql_ctx *ctx, const struct ql_call *call, const struct ql_conv *c)
{
	char text[QL_SHAPE_TEXT];

	for (int i = 0; i < call->n_in; i++)
		if (!ql_dtype_is_float(ql_operand_dtype(call->in[i])) && !of_integers(call))
			return ql_fail(ctx, QL_ERR_DTYPE,
				"conv2d: operand %d: wanted floats, a quantized tensor, or integers only, got %s",
				i + 1, ql_tensor_text(call->in[i], text));
	if (ql_call_attr(call, "k") && !call->in[1]->q)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "conv2d: k: wanted a quantized w, got %s",
			ql_tensor_text(call->in[1], text));
	if (call->n_in > 2 && (call->in[2]->rank != 1 || call->in[2]->shape[0] != c->o))
		return ql_fail(ctx, QL_ERR_SHAPE, "conv2d: bias: wanted shape (%lld), got %s", (long long)c->o,
			ql_shape_text(call->in[2]->rank, call->in[2]->shape, text));
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0], *w = call->in[1];
	struct ql_conv c;
	unsigned dtype = ql_operand_dtype(x);
	enum ql_status status = ql_conv_read(ctx, call, x->rank, x->shape, w->rank, w->shape, &c);

	if (!status)
		status = check_operands(ctx, call, &c);
	if (status)
		return status;
	dtype = ql_dtype_promote(dtype, ql_operand_dtype(w));
	if (of_integers(call)) /* as matmul */
		dtype = ql_dtypes[x->dtype].bits <= 8 && ql_dtypes[w->dtype].bits <= 8 ? QL_int32 : QL_int64;
	if (call->n_in > 2)
		dtype = ql_dtype_promote(dtype, ql_operand_dtype(call->in[2]));
	ql_result_set(call, 0, dtype, 4, (const int64_t[]){c.n, c.o, c.window.out[0], c.window.out[1]});
	return QL_OK;
}

static struct ql_conv_sums sums_of(
	const struct ql_conv *c, const float *w, const struct ql_epilogue *e, const float *other, float *y)
{
	return (struct ql_conv_sums){.groups = c->groups,
		.channels = c->c / c->groups,
		.rows = c->o / c->groups,
		.a = w,
		.target = y,
		.th = c->window.out[0],
		.tw = c->window.out[1],
		.every = {1, 1},
		.e = *e,
		.other = other};
}

static enum ql_status sums(struct ql_ctx *ctx, const struct ql_conv *c, const float *x, const float *w, float *y)
{
	static const struct ql_epilogue plain;
	struct ql_conv_sums s = sums_of(c, w, &plain, NULL, y);
	enum ql_status status = ql_conv_unfold(ctx, c, x, &s.u);

	return status ? status : ql_conv_sums(ctx, &s);
}

/* What is added to the result by the call that follows, and a relu behind that: where it has the layout of the result and the
 * sums are added up by tiles in place. Else s stays as it is. */
static enum ql_status join_sum(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *out, struct ql_conv_sums *s)
{
	struct ql_join *join = call->join;
	struct ql_tensor *other = join ? join->second->in[1 - join->at] : NULL;
	enum ql_status status = QL_OK;

	if (!join || s->e.act || out != call->out[0] || join->second->op != &ql_op_add ||
		ql_call_attr(join->second, "out") || other->dtype != QL_float32 || other->q ||
		!ql_tensor_is_contiguous(other) || !ql_tensor_same_shape(other, out) || !ql_conv_takes_other(ctx, s))
		return QL_OK;
	status = ql_deferred_settle(ctx, other->storage);
	if (status || ql_is_closed(other))
		return status;
	s->other = ql_tensor_data(other);
	if (join->third) {
		s->e.act = join->third->op->impl;
		s->e.relu = true;
	}
	return QL_OK;
}

/* The rows of the ledger of the calls that were computed, too. */
static void joined(struct ql_join *join, const struct ql_call *call)
{
	join->second->in[join->at] = call->out[0];
	join->operands = ql_ledger_key(join->second);
	join->second->path = call->path;
	join->second->kernel = call->kernel;
	if (join->third) {
		join->third->path = call->path;
		join->third->kernel = call->kernel;
	}
	join->done = true;
}

enum ql_status ql_conv_finish_apart(struct ql_ctx *ctx, struct ql_call *call)
{
	const char *act = ql_call_string(call, "act", NULL);
	struct ql_tensor *row = NULL, *t = NULL;
	enum ql_status status = QL_OK;

	if (call->n_in > 2) {
		status = ql_tensor_cast(ctx, call->in[2], call->out[0]->dtype, &row);
		if (!status) {
			row->rank = 4;
			memcpy(row->shape, (int64_t[]){1, row->shape[0], 1, 1}, 4 * sizeof(*row->shape));
			memcpy(row->stride, (int64_t[]){0, 1, 0, 0}, 4 * sizeof(*row->stride));
			status = ql_op_run(ctx, &ql_op_add, call->out[0], row, &t);
		}
		if (!status)
			status = ql_tensor_copy(ctx, call->out[0], t);
		ql_tensor_release(ctx, row);
		ql_tensor_release(ctx, t);
	}
	if (status || !act)
		return status;
	status = ql_op_run(ctx, ql_op_by_name(ql_ops, act), call->out[0], NULL, &t);
	if (!status)
		status = ql_tensor_copy(ctx, call->out[0], t);
	ql_tensor_release(ctx, t);
	return status;
}

/* float32: bias and activation, and a sum that follows, while the block is in the cache */
static enum ql_status fused_sums(struct ql_ctx *ctx, struct ql_call *call, const struct ql_conv *c,
	const struct sides *s, const struct ql_epilogue *e)
{
	struct ql_conv_decoder codes = {.decoder = NULL};
	bool coded = s->in[1]->q != NULL;
	struct ql_conv_sums all = sums_of(c, coded ? NULL : ql_tensor_data(s->in[1]), e, NULL, ql_tensor_data(s->out));
	enum ql_status status = ql_conv_unfold(ctx, c, ql_tensor_data(s->in[0]), &all.u);

	if (!status && coded) {
		status = ql_conv_decoder_open(ctx, s->in[1], all.channels, all.u.taps, &codes);
		all.codes = &codes;
	}
	if (!status)
		status = join_sum(ctx, call, s->out, &all);
	if (!status)
		status = ql_conv_sums(ctx, &all);
	if (!status && all.other)
		joined(call->join, call);
	ql_conv_decoder_close(ctx, &codes);
	return status;
}

static enum ql_status eval_fused(struct ql_ctx *ctx, struct ql_call *call, const struct ql_conv *c)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_tensor *bias = NULL;
	struct sides s;
	struct ql_epilogue e;
	enum ql_status status = sides_open(ctx, call, false, true, &s);

	call->path = "float32";
	call->kernel = ql_conv_kernel(ctx, c->o / c->groups);
	if (!status)
		status = ql_epilogue_of(ctx, call, c->o, &e, &bias);
	if (!status)
		status = fused_sums(ctx, call, c, &s, &e);
	ql_tensor_release(ctx, bias);
	status = sides_close(ctx, call, &s, status);
	ql_scratch_release(ctx, mark);
	return status;
}

/* ---- integers ---- */

static double largest(const struct ql_tensor *t)
{
	const double *v = ql_tensor_data(t);
	double most = 0;

	for (int64_t i = 0; i < ql_tensor_nelem(t); i++)
		most = fmax(most, fabs(v[i]));
	return most;
}

/* Sums of integers in double, which are exact below 2^53. */
static enum ql_status exact_sums(struct ql_ctx *ctx, const struct ql_conv *c, const struct ql_tensor *const *in,
	double most, struct ql_tensor *y)
{
	double bound = largest(in[0]) * largest(in[1]);

	bound *= (double)(c->c / c->groups) * (double)c->window.kernel[0] * (double)c->window.kernel[1];
	if (bound > most)
		return ql_fail(ctx, QL_ERR_OVERFLOW,
			"conv2d: wanted integers whose sums are below %.0f, got up to %.14g", most, bound);
	return ql_conv_wide_y(ctx, c, ql_tensor_data(in[0]), ql_tensor_data(in[1]), ql_tensor_data(y));
}

static enum ql_status eval_integers(struct ql_ctx *ctx, struct ql_call *call, const struct ql_conv *c)
{
	struct ql_tensor *out = call->out[0], *in[2] = {NULL, NULL}, *y = NULL;
	enum ql_status status = ql_tensor_new(ctx, QL_float64, 4, out->shape, &y);

	call->path = ql_dtype_name(out->dtype);
	call->kernel = "ref";
	for (int i = 0; i < 2 && !status; i++)
		status = ql_tensor_cast(ctx, call->in[i], QL_float64, &in[i]);
	if (!status)
		status = exact_sums(
			ctx, c, (const struct ql_tensor *const *)in, out->dtype == QL_int32 ? 0x1p31 : 0x1p53, y);
	if (!status)
		status = ql_tensor_copy(ctx, out, y);
	ql_tensor_release(ctx, in[0]);
	ql_tensor_release(ctx, in[1]);
	ql_tensor_release(ctx, y);
	return status ? status : ql_conv_finish_apart(ctx, call);
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_conv c;
	enum ql_status status =
		ql_conv_read(ctx, call, 4, call->in[0]->shape, call->in[1]->rank, call->in[1]->shape, &c);

	if (!status && of_integers(call))
		return eval_integers(ctx, call, &c);
	if (!status && call->out[0]->dtype != QL_float64) {
		status = eval_fused(ctx, call, &c);
		if (status != QL_ERR_OVERFLOW)
			return status;
		status = QL_OK;
	}
	if (!status)
		status = compute(ctx, call, &c, c.o / c.groups, sums, ql_conv_wide_y);
	return status ? status : ql_conv_finish_apart(ctx, call);
}

/* ---- the input's gradient ---- */

static enum ql_status input_gradient(
	struct ql_ctx *ctx, const struct ql_conv *c, const float *g, const float *w, float *dx)
{
	static const struct ql_epilogue plain;

	return ql_conv_input(ctx, c, g, w, &plain, dx);
}

/* ---- the weight's gradient ---- */

static enum ql_status weight_gradient(
	struct ql_ctx *ctx, const struct ql_conv *c, const float *g, const float *x, float *dw)
{
	struct ql_conv_weight s = {.groups = c->groups,
		.channels = c->c / c->groups,
		.rows = c->o / c->groups,
		.gradient = g,
		.weight = dw};
	enum ql_status status = ql_conv_unfold(ctx, c, x, &s.u);

	return status ? status : ql_conv_weight(ctx, &s);
}

/* ---- ops of the gradients: not in the table of ops, called by backward only ---- */

static const struct ql_attr gradient_attrs[] = {
	{"size", QL_ATTR_INTS, 0, NULL, "shape of what is wanted"},
	QL_WINDOW_STRIDE("as in conv2d"),
	QL_WINDOW_PAD,
	QL_WINDOW_AUTOPAD,
	{"dilation", QL_ATTR_INTS, 0, NULL, "as in conv2d"},
	{"groups", QL_ATTR_INT, 0, NULL, "as in conv2d"},
	{"k", QL_ATTR_INTS, 0, NULL, "as in conv2d"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status gradient_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_value *size = ql_call_attr(call, "size");

	(void)ctx;
	ql_result_set(call, 0, ql_dtype_promote(call->in[0]->dtype, call->in[1]->dtype), 4, size->ints.at);
	return QL_OK;
}

static enum ql_status input_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_conv c;
	enum ql_status status =
		ql_conv_read(ctx, call, 4, call->out[0]->shape, call->in[1]->rank, call->in[1]->shape, &c);

	return status ? status : compute(ctx, call, &c, c.c / c.groups, input_gradient, ql_conv_wide_dx);
}

static enum ql_status weight_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_conv c;
	enum ql_status status = ql_conv_read(ctx, call, 4, call->in[1]->shape, 4, call->out[0]->shape, &c);

	for (int d = 0; d < 2; d++) /* of a transposed convolution they may be fewer than the window gives */
		c.window.out[d] = call->in[0]->shape[2 + d];
	return status ? status : compute(ctx, call, &c, c.o / c.groups, weight_gradient, ql_conv_wide_dw);
}

#define GRADIENT_OP(op_name, op_eval) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, .attrs = gradient_attrs}, \
		.arity_min = 2, \
		.arity_max = 2, \
		.infer = gradient_infer, \
		.eval = op_eval, \
	};
static GRADIENT_OP(conv2d_input, input_eval) GRADIENT_OP(conv2d_weight, weight_eval)

/* Appends the geometry of the recorded call at named[n]. MAX_NAMED includes entries before it and the terminator. */
#define MAX_NAMED 8
	static void geometry(const struct ql_back *b, struct ql_named *named, int n)
{
	for (int i = 1; gradient_attrs[i].type != QL_ATTR_END; i++) {
		const struct ql_value *v = ql_call_attr(&b->call, gradient_attrs[i].name);

		if (v)
			named[n++] = (struct ql_named){gradient_attrs[i].name, *v};
	}
}

static struct ql_tensor *gradient(struct ql_back *b, const struct ql_op *op, struct ql_tensor *g, int other, int wanted)
{
	const struct ql_result *shape = ql_back_shape(b, wanted);
	struct ql_named named[MAX_NAMED] = {{"size", {.ints = {4, (int64_t *)(uintptr_t)shape->shape}}}};

	geometry(b, named, 1);
	return ql_back_with(b, op, g, ql_back_real(b, ql_back_in(b, other)), named);
}

/* The options of the recorded call but act= and out=. MOST_NAMED includes the terminator. */
#define MOST_NAMED 12
static void all_but_act(const struct ql_back *b, struct ql_named *named)
{
	const struct ql_attr *attr = b->call.op->doc.attrs;

	for (int i = 0, n = 0; attr[i].type != QL_ATTR_END && n < MOST_NAMED - 1; i++) {
		const struct ql_value *v = ql_call_attr(&b->call, attr[i].name);

		if (v && strcmp(attr[i].name, "act") != 0 && strcmp(attr[i].name, "out") != 0)
			named[n++] = (struct ql_named){attr[i].name, *v};
	}
}

struct ql_tensor *ql_conv_before_act(struct ql_back *b)
{
	const char *act = ql_call_string(&b->call, "act", NULL);
	struct ql_tensor *g = ql_back_grad(b, 0), *in[3] = {NULL};
	struct ql_named named[MOST_NAMED] = {{NULL, {.set = false}}};
	const struct ql_op *slope;
	bool from_result;

	if (!act || b->status)
		return g;
	slope = ql_activation_slope(act, &from_result);
	if (from_result)
		return ql_back_run(b, slope, g, ql_back_out(b, 0));
	for (int i = 0; i < b->node->n_in; i++)
		in[i] = ql_back_in(b, i);
	all_but_act(b, named);
	return ql_back_run(b, slope, g, ql_back_many(b, b->call.op, in, b->node->n_in, named));
}

uint32_t ql_conv_saves(const struct ql_call *call)
{
	const char *act = ql_call_string(call, "act", NULL);
	bool from_result = true;

	if (act)
		ql_activation_slope(act, &from_result);
	if (!from_result)
		return QL_SAVE(0) | QL_SAVE(1) | QL_SAVE(2);
	return ql_saves_other(call) | (act ? QL_SAVE_RESULT : 0);
}

static enum ql_status backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_conv_before_act(b);

	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, gradient(b, &ql_op_conv2d_input, g, 1, 0));
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, gradient(b, &ql_op_conv2d_weight, g, 0, 1));
	if (ql_back_wants(b, 2))
		ql_back_give(b, 2, ql_back_sum(b, g, 1u | 4u | 8u, false));
	return b->status;
}

/* The codes of w, in parts. */
static uint32_t decodes(const struct ql_call *call)
{
	return call->result[0].dtype != QL_float64 && ql_conv_decoder_takes(call->in[1]) ? QL_SAVE(1) : 0;
}

const struct ql_op ql_op_conv2d = {
	.doc = {.name = "conv2d",
		.usage = "x:conv2d(w, bias, {stride=, pad=, autopad=, dilation=, groups=, act=, out=})",
		.text = "Convolution (as in PyTorch: the kernel is not turned) of x (n, c, h, w) with w (out, c / groups, kh, kw), "
			"plus "
			"bias (out) when given, then the activation: a result (n, out, h', w') with h' = floor((h + pads - dilation "
			"(kh - 1) - 1) / stride) + 1. Outside of x there is 0. float16 and bfloat16 are summed in float32, float64 by "
			"plain loops (for checks). Quantized x and w of 8 or 16 bits are multiplied in integers where the scales of w change along "
			"its outputs only; else codes of w are decoded in parts that stay in the caches. out= makes codes of the result. Plain integers give exact "
			"sums: int32 of 8 bits, else int64. x:explain() says which way it went, and why.",
		.example = "x, w = tensor.ones(1, 1, 3, 3), tensor.ones(1, 1, 3, 3)\n"
			   "print(x:conv2d(w, {pad=1}):view(3, 3):totable()[2][3])  --> 6.0\n"
			   "print(x:conv2d(w, tensor{1}):item())  --> 10.0",
		.attrs = attrs},
	.arity_min = 2,
	.arity_max = 3,
	.flags = QL_BY_ROWS,
	.infer = infer,
	.eval = eval,
	.backward = backward,
	.saves_for = ql_conv_saves,
	.decodes = decodes,
};
