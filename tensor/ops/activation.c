/* SPDX-License-Identifier: MIT
 * Activation functions. Integers give float32. relu and relu6 are in relu.c; this file has their gradient for ops
 * that have them built in.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "tensor/ops/ops.h"
#include "tensor/vmath/act.h"
#include "tensor/vmath/slope.h"

QL_SLOPE_OP(relu, 6, b <= 0 ? 0 : a, b <= 0 ? 0 : a); /* passes for nan, as in PyTorch */
QL_SLOPE_OP(relu6, 6, ((b > 0) & (b < 6)) ? a : 0, ((b > 0) & (b < 6)) ? a : 0);

/* Like MATH in math.c: the last arguments are the gradient's formula; a is the gradient of the result, b the saved
 * value. */
#define ACTIVATION(op_name, op_text, op_example, cost, f32_of, f64_of, saved, slope_f32, slope_f64) \
	QL_MAP_F32_1(op_name##_f32, f32_of) \
	QL_MAP_F64_1(op_name##_f64, f64_of) \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_FLOAT, .f32 = op_name##_f32, .f64 = op_name##_f64, .ns_per_16 = cost}; \
	QL_SLOPE(op_name, saved, cost, slope_f32, slope_f64) \
	QL_UNARY(op_name, "x:" #op_name "()  x:" #op_name "{out=spec}", op_text, op_example, QL_INPLACE, \
		op_name##_map, .backward = op_name##_backward, .saves = QL_SAVES_##saved)

QL_INLINE double silu_slope_double(double x)
{
	double s = 1 / (1 + exp(-x)), rest = 1 / (1 + exp(x)); /* they add up to 1 */

	x = x < -1000 ? -1000 : x > 1000 ? 1000 : x; /* avoids infinity times 0 */
	return s * (1 + x * rest);
}

/* With e = exp(x) and n = e (e + 2), tanh(log(1 + e)) is n / (n + 2). */
QL_INLINE double mish_double(double x)
{
	double e = exp(x > 40 ? 40 : x), n = e * (e + 2);

	return x > 40 ? x : x == -INFINITY ? -0.0 : x * (n / (n + 2));
}

QL_INLINE double mish_slope_double(double x)
{
	double y = x < -1000 ? -1000 : x > 40 ? 40 : x, e = exp(y), n = e * (e + 2);

	return n / (n + 2) + 4 * y * e * (1 + e) / ((n + 2) * (n + 2));
}

#define HARDSWISH_SLOPE b <= -3 ? 0 : b >= 3 ? a : a *(b / 3 + 0.5f)

ACTIVATION(tanh, "The hyperbolic tangent.", "print(tensor{0,1}:tanh())  --> float32(2)  0.0000  0.7616", 15, ql_tanh(a),
	tanh(a), out, a *((1 - b) * (1 + b)), a *((1 - b) * (1 + b)));
ACTIVATION(sigmoid, "1 / (1 + exp(-x)).", "print(tensor{0,1}:sigmoid())  --> float32(2)  0.5000  0.7311", 12,
	ql_sigmoid(a), 1 / (1 + exp(-a)), out, a *(b *(1 - b)), a *(b *(1 - b)));
ACTIVATION(hardswish, "x * relu6(x + 3) / 6.",
	"print(tensor{-4,1,4}:hardswish())  --> float32(3)  -0.0000   0.6667   4.0000", 8,
	a *(a + 3 > 6       ? 6
		: a + 3 > 0 ? a + 3
		: a != a    ? a
			    : 0) /
		6,
	a *(a + 3 > 6       ? 6
		: a + 3 > 0 ? a + 3
		: a != a    ? a
			    : 0) /
		6,
	in, HARDSWISH_SLOPE, HARDSWISH_SLOPE);
ACTIVATION(logsigmoid, "log(sigmoid(x)), exact for large |x|.",
	"print(tensor{0,-20}:logsigmoid())  --> float32(2)   -0.6931  -20.0000", 30, -ql_softplus(-a),
	(a < 0 ? a : 0) - log1p(exp(-fabs(a))), in, a *ql_sigmoid(-b), a / (1 + exp(b)));
ACTIVATION(mish, "x * tanh(softplus(x)).", "print(tensor{-1,0,1}:mish())  --> float32(3)  -0.3034   0.0000   0.8651",
	30, ql_mish(a), mish_double(a), in, a *ql_mish_slope(b), a *mish_slope_double(b));
ACTIVATION(softsign, "x / (1 + |x|); 1 and -1 of the infinities.",
	"print(tensor{-3,0,1}:softsign())  --> float32(3)  -0.7500   0.0000   0.5000", 8,
	fabsf(a) > FLT_MAX ? copysignf(1, a) : a / (1 + fabsf(a)),
	fabs(a) > DBL_MAX ? copysign(1.0, a) : a / (1 + fabs(a)), in, a / ((1 + fabsf(b)) * (1 + fabsf(b))),
	a / ((1 + fabs(b)) * (1 + fabs(b))));

/* ---- gelu ---- */

static const struct ql_attr gelu_attrs[] = {
	{"approximate", QL_ATTR_STRING, 0, "none tanh",
		"'tanh': the formula with tanh that some models were trained with (default none)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};
/* Without out=, because gradients are not quantized. */
static const struct ql_attr gelu_slope_attrs[] = {
	{"approximate", QL_ATTR_STRING, 0, "none tanh", ""},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status approximate(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	(void)ctx;
	args->i[0] = !strcmp(ql_call_string(call, "approximate", "none"), "tanh");
	return QL_OK;
}

/* ql_gelu of n elements or fewer, blocks from the first on; gives how many. One vector's chain of operations is so long that few
 * vectors fit into a processor's window at a time. So each block is computed in stages, whose chains are short. Where no |x| is
 * above 12, 2^k is a normal number and the products with its two factors are one. */
#ifdef QL_EXTRACT
QL_INLINE int64_t gelu_blocks(int64_t n, float *restrict out, const float *restrict x)
{
	(void)n;
	(void)out;
	(void)x;
	return 0;
}
#else
enum { GELU_BLOCK = 64 };

QL_INLINE int64_t gelu_blocks(int64_t n, float *restrict out, const float *restrict x)
{
	const int32_t twelve = 0x41400000;
	float ts[GELU_BLOCK], rs[GELU_BLOCK], gs[GELU_BLOCK];
	uint32_t ks[GELU_BLOCK];
	int64_t done = 0;

	for (; done + GELU_BLOCK <= n; done += GELU_BLOCK, x += GELU_BLOCK, out += GELU_BLOCK) {
		int32_t most = 0;

		for (int i = 0; i < GELU_BLOCK; i++) {
			float a = fabsf(x[i]), d = QL_GELU_C + a, t = QL_GELU_C / d;
			int32_t bits = (int32_t)ql_bits(a);

			most = bits > most ? bits : most;
			rs[i] = ql_gelu_exponent(a, d, t, &ks[i]);
			ts[i] = t;
		}
		if (most > twelve) {
			for (int i = 0; i < GELU_BLOCK; i++)
				out[i] = ql_gelu(x[i]);
			continue;
		}
		for (int i = 0; i < GELU_BLOCK; i++)
			gs[i] = ql_gelu_g(ts[i]);
		for (int i = 0; i < GELU_BLOCK; i++) {
			float tail = ql_gelu_tail(fabsf(x[i]), ts[i], gs[i], rs[i]);

			out[i] = ql_gelu_less(x[i], tail * ql_of_bits((ks[i] - 256 + 127) << 23));
		}
	}
	return done;
}
#endif

QL_SIMD(void, gelu_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
	const float *restrict x = in[0];

	if (args->i[0])
		for (int64_t i = 0; i < n; i++)
			out[i] = ql_gelu_tanh(x[i]);
	else
		for (int64_t i = gelu_blocks(n, out, x); i < n; i++)
			out[i] = ql_gelu(x[i]);
})

QL_INLINE double gelu_double(double x, bool by_tanh)
{
	if (x == -INFINITY)
		return -0.0;
	/* 2 sqrt(2 / pi) and sqrt(1 / 2) */
	return by_tanh ? x / (1 + exp(-1.5957691216057307117 * (x + 0.044715 * x * x * x)))
		       : x * 0.5 * erfc(-x * 0x1.6a09e667f3bcdp-1);
}

/* a times the slope at b: P(X <= b) + b p(b) for a standard normal X with density p; of the approximation */
QL_INLINE double gelu_slope_double(double x, bool by_tanh)
{
	double s, rest, inner;

	x = x < -100 ? -100 : x > 100 ? 100 : x; /* avoids infinity times 0 */
	if (!by_tanh)                            /* sqrt(1 / 2), 1 / sqrt(2 pi) */
		return 0.5 * erfc(-x * 0x1.6a09e667f3bcdp-1) + x * 0x1.9884533d43651p-2 * exp(-0.5 * x * x);
	inner = 1.5957691216057307117 * (x + 0.044715 * x * x * x);
	s = 1 / (1 + exp(-inner));
	rest = 1 / (1 + exp(inner));
	return s * (1 + x * rest * 1.5957691216057307117 * (1 + 3 * 0.044715 * x * x));
}

QL_SIMD(void, gelu_slope_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args),
	{
		const float *g = in[0];
		const float *x = in[1];

		if (args->i[0])
			for (int64_t i = 0; i < n; i++)
				out[i] = g[i] * ql_gelu_tanh_slope(x[i]);
		else
			for (int64_t i = 0; i < n; i++)
				out[i] = g[i] * ql_gelu_slope(x[i]);
	})

QL_MAP_F64_2(gelu_slope_f64, a *gelu_slope_double(b, args->i[0] != 0))
static const struct ql_map gelu_slope_map = {
	.result = QL_MAP_FLOAT, .f32 = gelu_slope_f32, .f64 = gelu_slope_f64, .ns_per_16 = 16, .prepare = approximate};
static const struct ql_op gelu_slope = {.doc = {.name = "gelu_slope", .attrs = gelu_slope_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &gelu_slope_map};

static enum ql_status gelu_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, &gelu_slope, ql_back_grad(b, 0), ql_back_in(b, 0)));
	return b->status;
}

QL_MAP_F64_1(gelu_f64, gelu_double(a, args->i[0] != 0))
static const struct ql_map gelu_map = {
	.result = QL_MAP_FLOAT, .f32 = gelu_f32, .f64 = gelu_f64, .ns_per_16 = 16, .prepare = approximate};
const struct ql_op ql_op_gelu = {
	.doc = {.name = "gelu",
		.usage = "x:gelu()  x:gelu{approximate='tanh', out=spec}",
		.text = "x times the share of the normal distribution below x: x * (1 + erf(x / sqrt(2))) / 2, or the common "
			"approximation x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2.",
		.example = "print(tensor{0,1}:gelu())  --> float32(2)  0.0000  0.8413",
		.attrs = gelu_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_INPLACE | QL_ELEMENTWISE,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &gelu_map,
	.backward = gelu_backward,
	.saves = QL_SAVE(0),
};

/* ---- with numbers as options ---- */

enum ql_status ql_option_number(
	struct ql_ctx *ctx, const struct ql_call *call, const char *name, double otherwise, double *out)
{
	*out = ql_call_float(call, name, otherwise);
	return isnan(*out) ? ql_fail(ctx, QL_ERR_ARGUMENT, "%s: %s: wanted a number, got nan", call->op->doc.name, name)
			   : QL_OK;
}

QL_CURVE_ATTRS(leakyrelu, {"slope", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "slope below 0 (default 0.01)"});

static enum ql_status leakyrelu_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	return ql_option_number(ctx, call, "slope", 0.01, &args->p[0]);
}

QL_CURVE(leakyrelu, "x:leakyrelu(slope)  x:leakyrelu{slope=, out=spec}", "x where it is positive, else slope times x.",
	"print(tensor{-2,3}:leakyrelu(0.5))  --> float32(2)  -1   3", 8, leakyrelu_options, a > 0 ? a : a * QL_P32(0),
	a > 0 ? a : a * QL_P64(0), b > 0 ? a : a * QL_P32(0), b > 0 ? a : a * QL_P64(0));

QL_CURVE_ATTRS(silu,
	{"alpha", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "factor of x inside of the sigmoid, other than 0 (default 1)"});

/* Option `name`, a factor of x (1 by default), and its reciprocal. */
static enum ql_status factor(struct ql_ctx *ctx, const struct ql_call *call, const char *name, double *p)
{
	enum ql_status status = ql_option_number(ctx, call, name, 1, &p[0]);

	p[1] = 1 / p[0];
	if (!status && !(isfinite(p[0]) && isfinite((float)p[1])))
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "%s: %s: wanted a finite number other than 0, got %g",
			call->op->doc.name, name, p[0]);
	return status;
}

static enum ql_status silu_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	return factor(ctx, call, "alpha", args->p);
}

QL_INLINE double silu_double(double x)
{
	return x == -INFINITY ? -0.0 : x / (1 + exp(-x));
}

/* silu(alpha x) / alpha, whose derivative is that of silu at alpha x */
QL_CURVE(silu, "x:silu()  x:silu(alpha)  x:silu{alpha=, out=spec}",
	"x * sigmoid(alpha x), also called swish; alpha = 1.702 is a common approximation of gelu.",
	"print(tensor{0,1}:silu())  --> float32(2)  0.0000  0.7311", 13, silu_options,
	ql_silu(a *QL_P32(0)) * QL_P32(1), silu_double(a *QL_P64(0)) * QL_P64(1), a *ql_silu_slope(QL_P32(0) * b),
	a *silu_slope_double(QL_P64(0) * b));

QL_CURVE_ATTRS(softplus, {"beta", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "factor of x, other than 0 (default 1)"},
	{"threshold", QL_ATTR_FLOAT, QL_POSITIONAL, NULL,
		"where beta x is above it the result is x (default: none; in PyTorch 20)"});

static enum ql_status softplus_options(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	enum ql_status status = factor(ctx, call, "beta", args->p);

	return status ? status : ql_option_number(ctx, call, "threshold", INFINITY, &args->p[2]);
}

QL_INLINE double softplus_double(double x)
{
	return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

/* Both values first, so that loops have no branch. */
QL_INLINE float softplus_single(float x, float beta, float inverse, float threshold)
{
	float y = x * beta, v = ql_softplus(y) * inverse;

	return y > threshold ? x : v;
}

QL_INLINE float softplus_slope_single(float g, float x, float beta, float threshold)
{
	float y = x * beta, v = g * ql_sigmoid(y);

	return y > threshold ? g : v;
}

QL_CURVE(softplus, "x:softplus()  x:softplus(beta, threshold)  x:softplus{beta=, threshold=, out=spec}",
	"log(1 + exp(beta x)) / beta, a smooth relu.",
	"print(tensor{0,20}:softplus())  --> float32(2)   0.6931  20.0000", 30, softplus_options,
	softplus_single(a, QL_P32(0), QL_P32(1), QL_P32(2)),
	a *QL_P64(0) > QL_P64(2) ? a : softplus_double(a * QL_P64(0)) * QL_P64(1),
	softplus_slope_single(a, b, QL_P32(0), QL_P32(2)),
	b *QL_P64(0) > QL_P64(2) ? a : a / (1 + exp(-b * QL_P64(0))));

/* ---- inside other ops ---- */

const struct ql_op *ql_activation_slope(const char *act, bool *from_result)
{
	static const struct {
		const char *act;
		const struct ql_op *slope;
		bool from_result;
	} table[] = {{"relu", &relu_slope, true}, {"relu6", &relu6_slope, true}, {"tanh", &tanh_slope, true},
		{"sigmoid", &sigmoid_slope, true}, {"gelu", &gelu_slope, false}, {"silu", &silu_slope, false},
		{"hardswish", &hardswish_slope, false}};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (!strcmp(table[i].act, act)) {
			*from_result = table[i].from_result;
			return table[i].slope;
		}
	return NULL;
}
