/* SPDX-License-Identifier: MIT
 * Activation functions. Integers give float32. relu and relu6 are in relu.c; this file has their gradient for ops
 * that have them built in.
 */
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

#define HARDSWISH_SLOPE b <= -3 ? 0 : b >= 3 ? a : a *(b / 3 + 0.5f)

ACTIVATION(tanh, "The hyperbolic tangent.", "print(tensor{0,1}:tanh())  --> float32(2)  0.0000  0.7616", 20, ql_tanh(a),
	tanh(a), out, a *((1 - b) * (1 + b)), a *((1 - b) * (1 + b)));
ACTIVATION(sigmoid, "1 / (1 + exp(-x)).", "print(tensor{0,1}:sigmoid())  --> float32(2)  0.5000  0.7311", 20,
	ql_sigmoid(a), 1 / (1 + exp(-a)), out, a *(b *(1 - b)), a *(b *(1 - b)));
ACTIVATION(silu, "x * sigmoid(x), also called swish.", "print(tensor{0,1}:silu())  --> float32(2)  0.0000  0.7311", 20,
	ql_silu(a), a == -INFINITY ? -0.0 : a / (1 + exp(-a)), in, a *ql_silu_slope(b), a *silu_slope_double(b));
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
ACTIVATION(softplus, "log(1 + exp(x)), a smooth relu.",
	"print(tensor{0,20}:softplus())  --> float32(2)   0.6931  20.0000", 30, ql_softplus(a),
	(a > 0 ? a : 0) + log1p(exp(-fabs(a))), in, a *ql_sigmoid(b), a / (1 + exp(-b)));

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

/* ---- leakyrelu ---- */

static const struct ql_attr slope_attrs[] = {
	{"slope", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, "slope below 0 (default 0.01)"},
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};
static const struct ql_attr leakyrelu_slope_attrs[] = {
	{"slope", QL_ATTR_FLOAT, QL_POSITIONAL, NULL, ""},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status slope(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	(void)ctx;
	args->p[0] = ql_call_float(call, "slope", 0.01);
	return QL_OK;
}

QL_SIMD(void, leakyrelu_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
	const float *restrict x = in[0];
	float s = (float)args->p[0];

	for (int64_t i = 0; i < n; i++)
		out[i] = x[i] > 0 ? x[i] : x[i] * s;
})
QL_MAP_F64_1(leakyrelu_f64, a > 0 ? a : a * args->p[0])
static const struct ql_map leakyrelu_map = {
	.result = QL_MAP_FLOAT, .f32 = leakyrelu_f32, .f64 = leakyrelu_f64, .prepare = slope};

QL_SIMD(void, leakyrelu_slope_f32,
	(int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
		const float *g = in[0];
		const float *x = in[1];
		float s = (float)args->p[0];

		for (int64_t i = 0; i < n; i++)
			out[i] = x[i] > 0 ? g[i] : g[i] * s;
	})
QL_MAP_F64_2(leakyrelu_slope_f64, b > 0 ? a : a * args->p[0])
static const struct ql_map leakyrelu_slope_map = {
	.result = QL_MAP_FLOAT, .f32 = leakyrelu_slope_f32, .f64 = leakyrelu_slope_f64, .prepare = slope};
static const struct ql_op leakyrelu_slope = {.doc = {.name = "leakyrelu_slope", .attrs = leakyrelu_slope_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &leakyrelu_slope_map};

static enum ql_status leakyrelu_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_again(b, &leakyrelu_slope, ql_back_grad(b, 0), ql_back_in(b, 0)));
	return b->status;
}

const struct ql_op ql_op_leakyrelu = {
	.doc = {.name = "leakyrelu",
		.usage = "x:leakyrelu(slope)  x:leakyrelu{slope=, out=spec}",
		.text = "x where it is positive, else slope times x.",
		.example = "print(tensor{-2,3}:leakyrelu(0.5))  --> float32(2)  -1   3",
		.attrs = slope_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.flags = QL_INPLACE | QL_ELEMENTWISE,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &leakyrelu_map,
	.backward = leakyrelu_backward,
	.saves = QL_SAVE(0),
};

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
