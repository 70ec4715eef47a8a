/* SPDX-License-Identifier: MIT
 * localresponsenorm (Krizhevsky, Sutskever, Hinton 2012, 3.3), as PyTorch's: each number over a power of the mean square of its
 * neighbours among `size` channels, y = x / d^beta with d = k + alpha / size * (sum of x^2 of the channels c - size / 2 to
 * c + (size - 1) / 2, those that exist). d is rounded once, from sums in float64 in the order of the channels. Gradient:
 *   dx = g d^-beta - 2 alpha beta / size * x * (sum over the channels in whose windows x is of g x d^(-beta - 1)).
 */
#include <math.h>
#include <string.h>

#include "tensor/autograd/back.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"
#include "tensor/parallel.h"

#define CHUNK 512 /* numbers of a channel that are summed at once */

/* ---- sums over neighbouring channels: an op in no table ---- */

/* Operand: x (n, channels, …). Result: plus + factor * (sum of x, or of x^2, of the channels c - low to c + high). */
enum { LOW, HIGH, FACTOR, PLUS, SQUARES };
static const struct ql_attr sum_attrs[] = {{"low", QL_ATTR_INT, 0, NULL, "channels before"},
	{"high", QL_ATTR_INT, 0, NULL, "channels after"}, {"factor", QL_ATTR_FLOAT, 0, NULL, "of the sums"},
	{"plus", QL_ATTR_FLOAT, 0, NULL, "added to them"}, {"squares", QL_ATTR_BOOL, 0, NULL, "sums of squares"},
	{NULL, QL_ATTR_END, 0, NULL, NULL}};

struct sums {
	int64_t channels, inner, low, high;
	double factor, plus;
	bool squares;
	const struct ql_dtype_info *dtype;
	const void *x;
	void *y;
};

/* Numbers from..from+n-1 of a channel, of row `row` of (n, channels). */
static void sum_chunk(const struct sums *s, int64_t row, int64_t from, int64_t n)
{
	double sum[CHUNK], part[CHUNK];
	int64_t c = row % s->channels;

	memset(sum, 0, sizeof(*sum) * (size_t)n);
	for (int64_t i = ql_max64(0, c - s->low); i <= ql_min64(s->channels - 1, c + s->high); i++) {
		s->dtype->to_f64(s->x, (row - c + i) * s->inner + from, 1, n, part);
		for (int64_t k = 0; k < n; k++)
			sum[k] += s->squares ? part[k] * part[k] : part[k];
	}
	for (int64_t k = 0; k < n; k++)
		sum[k] = s->plus + s->factor * sum[k];
	s->dtype->from_f64(s->y, row * s->inner + from, 1, n, sum);
}

/* item: a channel */
static void sums_body(void *arg, int64_t begin, int64_t end)
{
	const struct sums *s = arg;

	for (int64_t row = begin; row < end; row++)
		for (int64_t i = 0; i < s->inner; i += CHUNK)
			sum_chunk(s, row, i, ql_min64(CHUNK, s->inner - i));
}

static enum ql_status sums_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = NULL, *out = call->out[0];
	struct sums s = {.channels = out->shape[1],
		.inner = 1,
		.low = ql_call_int(call, "low", 0),
		.high = ql_call_int(call, "high", 0),
		.factor = ql_call_float(call, "factor", 1),
		.plus = ql_call_float(call, "plus", 0),
		.squares = ql_call_bool(call, "squares", false),
		.dtype = &ql_dtypes[out->dtype]};
	int64_t all = ql_tensor_nelem(out);
	enum ql_status status = ql_dense_of(ctx, call->in[0], out->dtype, &x);

	if (status)
		return status;
	for (int d = 2; d < out->rank; d++)
		s.inner *= out->shape[d];
	s.x = ql_tensor_data(x);
	s.y = ql_tensor_data(out);
	call->path = ql_dtype_name(out->dtype);
	call->kernel = "ref";
	status = ql_parallel_for(ctx, all ? all / s.inner : 0, ql_max64(1, CHUNK / ql_max64(1, s.inner)),
		all * (ql_min64(s.low + s.high, s.channels) + 2), sums_body, &s);
	ql_tensor_release(ctx, x);
	return status;
}

static const struct ql_op channel_sums = {.doc = {.name = "channel_sums", .attrs = sum_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = ql_infer_same,
	.eval = sums_eval};

/* ---- forward ---- */

/* The options of a call: channels before and after, alpha / size, beta, k. */
struct window {
	int64_t low, high;
	double factor, beta, k;
};

static struct window window_of(const struct ql_call *call)
{
	int64_t size = ql_call_int(call, "size", 1);

	return (struct window){size / 2, (size - 1) / 2, ql_call_float(call, "alpha", 1e-4) / (double)size,
		ql_call_float(call, "beta", 0.75), ql_call_float(call, "k", 1)};
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	static const char *const number[] = {"alpha", "beta", "k"};
	const struct ql_tensor *x = call->in[0];
	char text[QL_SHAPE_TEXT];

	if (x->rank < 2)
		return ql_fail(ctx, QL_ERR_SHAPE, "localresponsenorm: wanted x (n, channels, …), got %s",
			ql_shape_text(x->rank, x->shape, text));
	if (!ql_dtype_is_float(ql_operand_dtype(x)))
		return ql_fail(ctx, QL_ERR_DTYPE, "localresponsenorm: wanted floats, got %s", ql_tensor_text(x, text));
	if (ql_call_int(call, "size", 1) < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "localresponsenorm: size: wanted 1 or more, got %lld",
			(long long)ql_call_int(call, "size", 1));
	for (int i = 0; i < 3; i++)
		if (!isfinite(ql_call_float(call, number[i], 1)))
			return ql_fail(ctx, QL_ERR_ARGUMENT, "localresponsenorm: %s: wanted a finite number, got %g",
				number[i], ql_call_float(call, number[i], 1));
	return ql_infer_same(ctx, call);
}

/* Gives d. */
static enum ql_status scales(struct ql_ctx *ctx, struct ql_tensor *x, const struct window *w, struct ql_tensor **out)
{
	struct ql_value attr[] = {[LOW] = {.set = true, .i = w->low},
		[HIGH] = {.set = true, .i = w->high},
		[FACTOR] = {.set = true, .f = w->factor},
		[PLUS] = {.set = true, .f = w->k},
		[SQUARES] = {.set = true, .b = true}};
	struct ql_call call = {.op = &channel_sums, .in = &x, .n_in = 1, .attr = attr};
	enum ql_status status = ql_op_apply(ctx, &call);

	*out = status ? NULL : call.out[0];
	return status;
}

static enum ql_status power(struct ql_ctx *ctx, struct ql_tensor *d, double exponent, struct ql_tensor **out)
{
	struct ql_tensor *number = NULL;
	enum ql_status status = ql_tensor_new(ctx, d->dtype, 0, NULL, &number);

	if (!status) {
		ql_dtypes[d->dtype].from_f64(number->storage->data, 0, 1, 1, &exponent);
		status = ql_op_run(ctx, &ql_op_pow, d, number, out);
	}
	ql_tensor_release(ctx, number);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_result *r = &call->result[0];
	struct window w = window_of(call);
	struct ql_tensor *x = NULL, *d = NULL, *p = NULL, *y = NULL;
	unsigned dtype = ql_dense_dtype(r->dtype);
	enum ql_status status = ql_dense_of(ctx, call->in[0], dtype, &x);

	if (!status)
		status = scales(ctx, x, &w, &d);
	if (!status)
		status = power(ctx, d, w.beta, &p);
	if (!status)
		status = ql_op_run(ctx, &ql_op_div, x, p, &y);
	if (!status)
		status = ql_dense_of(ctx, y, r->dtype, &call->out[0]);
	call->path = ql_dtype_name(dtype);
	call->kernel = ctx->kernels->simd->name;
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, d);
	ql_tensor_release(ctx, p);
	ql_tensor_release(ctx, y);
	return status;
}

/* ---- gradient ---- */

static struct ql_tensor *raised(struct ql_back *b, struct ql_tensor *d, double exponent)
{
	return d ? ql_back_run(b, &ql_op_pow, d, ql_back_number(b, exponent, d)) : NULL;
}

static enum ql_status backward(struct ql_back *b)
{
	struct window w = window_of(&b->call);
	struct ql_tensor *g = ql_back_grad(b, 0), *x = ql_back_real(b, ql_back_in(b, 0)), *d, *all;
	struct ql_named squares[] = {{"low", {.set = true, .i = w.low}}, {"high", {.set = true, .i = w.high}},
		{"factor", {.set = true, .f = w.factor}}, {"plus", {.set = true, .f = w.k}},
		{"squares", {.set = true, .b = true}}, {NULL, {0}}};
	struct ql_named others[] = {{"low", {.set = true, .i = w.high}}, {"high", {.set = true, .i = w.low}},
		{"factor", {.set = true, .f = -2 * w.factor * w.beta}}, {NULL, {0}}};

	d = ql_back_with(b, &channel_sums, x, NULL, squares);
	all = ql_back_run(b, &ql_op_mul, ql_back_run(b, &ql_op_mul, g, x), raised(b, d, -w.beta - 1));
	all = ql_back_run(b, &ql_op_mul, ql_back_with(b, &channel_sums, all, NULL, others), x);
	ql_back_give(b, 0, ql_back_run(b, &ql_op_add, ql_back_run(b, &ql_op_mul, g, raised(b, d, -w.beta)), all));
	return b->status;
}

static const struct ql_attr attrs[] = {{"size", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "channels of a window"},
	{"alpha", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "factor of the mean square (default 1e-4)"},
	{"beta", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "exponent (default 0.75)"},
	{"k", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "added to the mean square (default 1)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL}};

const struct ql_op ql_op_localresponsenorm = {
	.doc = {.name = "localresponsenorm",
		.usage = "nn.localresponsenorm(x, size)  nn.localresponsenorm(x, size, alpha, beta, k)  "
			 "nn.localresponsenorm(x, size, {alpha=, beta=, k=})",
		.text = "Local response normalization of x (n, channels, …), as in AlexNet and PyTorch's local_response_norm: x / (k + alpha * m)^beta, "
			"where m is the sum of the squares of the channels c - size // 2 to c + (size - 1) // 2 over size; channels that do not "
			"exist count as 0. Has a gradient; sums in float64.",
		.example =
			"x = tensor{{1, 2, 3}}\nprint(nn.localresponsenorm(x, 3, {alpha=3, beta=1}):view(3))  --> float32(3)  0.1667  0.1333  0.2143",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_FUNCTION,
	.infer = infer,
	.eval = eval,
	.allocates = true,
	.backward = backward,
	.saves = QL_SAVE(0),
};
