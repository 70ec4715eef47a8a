/* SPDX-License-Identifier: MIT
 * + - * / // % ^ and negation. Plain integers compute in int64 and wrap to the promoted dtype; / always gives a float;
 * // and % round towards minus infinity; an integer 0 on the right is an error.
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/vmath/wide.h"

const struct ql_attr ql_out_attrs[] = {
	{"out", QL_ATTR_SPEC, 0, NULL,
		"spec of a quantized result; of codes it stays in integers where it can (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

QL_MAP_F32_2(add_f32, a + b)
QL_MAP_F64_2(add_f64, a + b)
QL_MAP_I64_2(add_i64, (uint64_t)a + (uint64_t)b)
static const struct ql_map add_map = {
	.result = QL_MAP_PROMOTE, .f32 = add_f32, .f64 = add_f64, .i64 = add_i64, .ns_per_16 = 6};

static const struct ql_attr add_attrs[] = {
	{"out", QL_ATTR_SPEC, 0, NULL,
		"spec of a quantized result; of codes it stays in integers where it can (default: float32)"},
	{"act", QL_ATTR_STRING, QL_INTEGER_ONLY, "relu",
		"of two quantized operands with out=: the codes of the sum (default: none)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static enum ql_status add_backward(struct ql_back *b)
{
	const char *act = ql_call_string(&b->call, "act", NULL);
	struct ql_tensor *g = ql_back_grad(b, 0);
	bool from_result;

	if (act)
		g = ql_back_run(b, ql_activation_slope(act, &from_result), g, ql_back_out(b, 0));
	for (int i = 0; i < 2; i++)
		if (ql_back_wants(b, i))
			ql_back_give(b, i, g);
	return b->status;
}

static uint32_t add_saves(const struct ql_call *call)
{
	return ql_call_attr(call, "act") ? QL_SAVE_RESULT : 0;
}

const struct ql_op ql_op_add = {
	.doc = {.name = "add",
		.usage = "x:add(y, {out=spec, act='relu'})  x + y",
		.text = "Elementwise sum of two tensors, or a tensor and a number, with broadcasting. Integers wrap; quantized "
			"operands give float32, or stay integer when out= names a spec; act='relu' then gives the codes of the relu of the sum.",
		.example = "print(tensor{1,2}:add(tensor{10,20}))  --> float32(2)  11  22",
		.attrs = add_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS | QL_INPLACE | QL_ELEMENTWISE,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &add_map,
	.backward = add_backward,
	.saves_for = add_saves,
};

QL_MAP_F32_2(mul_f32, a *b)
QL_MAP_F64_2(mul_f64, a *b)
QL_MAP_I64_2(mul_i64, (uint64_t)a *(uint64_t)b)
static const struct ql_map mul_map = {
	.result = QL_MAP_PROMOTE, .f32 = mul_f32, .f64 = mul_f64, .i64 = mul_i64, .ns_per_16 = 6};

static enum ql_status mul_backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0);

	for (int i = 0; i < 2; i++)
		if (ql_back_wants(b, i))
			ql_back_give(b, i, ql_back_run(b, &ql_op_mul, g, ql_back_in(b, 1 - i)));
	return b->status;
}

const struct ql_op ql_op_mul = {
	.doc = {.name = "mul",
		.usage = "x:mul(y, {out=spec})  x * y",
		.text = "Elementwise product with broadcasting (the matrix product is matmul). Integers wrap; quantized operands "
			"give float32, or stay integer when out= names a spec.",
		.example = "print(tensor{1,2}:mul(3))  --> float32(2)  3  6",
		.attrs = ql_out_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS | QL_INPLACE | QL_ELEMENTWISE,
	.infer = ql_map_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &mul_map,
	.backward = mul_backward,
	.saves_for = ql_saves_other,
};

QL_MAP_F32_2(sub_f32, a - b)
QL_MAP_F64_2(sub_f64, a - b)
QL_MAP_I64_2(sub_i64, (uint64_t)a - (uint64_t)b)
static const struct ql_map sub_map = {
	.result = QL_MAP_PROMOTE, .f32 = sub_f32, .f64 = sub_f64, .i64 = sub_i64, .ns_per_16 = 6};

static enum ql_status sub_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_grad(b, 0));
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_run(b, &ql_op_neg, ql_back_grad(b, 0), NULL));
	return b->status;
}

QL_BINARY_WITH(sub, ql_out_attrs, "x:sub(y, {out=spec})  x - y",
	"Elementwise difference with broadcasting. Integers wrap; codes stay integer when out= names a spec.",
	"print(tensor{5,7} - 2)  --> float32(2)  3  5", QL_INPLACE | QL_ELEMENTWISE, sub_map, .backward = sub_backward);

/* fmod has the sign of a; the result has that of b, as in Lua. */
QL_INLINE float floored_f32(float r, float b)
{
	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

QL_INLINE double floored_f64(double r, double b)
{
	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

QL_MAP_F32_2(mod_f32, floored_f32(fmodf(a, b), b))
QL_MAP_F64_2(mod_f64, floored_f64(fmod(a, b), b))

QL_ROW bool mod_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++) {
		int64_t a = in[0][i], b = in[1][i], r;

		if (b == 0)
			return false;
		r = b == -1 ? 0 : a % b;
		out[i] = r != 0 && (r < 0) != (b < 0) ? r + b : r;
	}
	return true;
}

static const struct ql_map mod_map = {.result = QL_MAP_PROMOTE,
	.f32 = mod_f32,
	.f64 = mod_f64,
	.i64 = mod_i64,
	.ns_per_16 = 200,
	.trouble = "wanted a divisor other than 0 for integers, got 0"};

/* x - floor(x / y) y with a constant quotient */
static enum ql_status mod_backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0);

	ql_back_give(b, 0, g);
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1,
			ql_back_scaled(b,
				ql_back_run(b, &ql_op_mul, g,
					ql_back_run(b, &ql_op_idiv, ql_back_in(b, 0), ql_back_in(b, 1))),
				-1));
	return b->status;
}

static uint32_t mod_saves(const struct ql_call *call)
{
	return call->in[1]->node ? QL_SAVE(0) | QL_SAVE(1) : 0;
}

QL_BINARY(mod, "x:mod(y)  x % y",
	"Remainder of the division rounded towards minus infinity, as in Lua: it has the sign of y.",
	"print(tensor{-1,5} % 3)  --> float32(2)  2  2", QL_INPLACE, mod_map, .backward = mod_backward,
	.saves_for = mod_saves);

QL_MAP_F32_2(fmod_f32, fmodf(a, b))
QL_MAP_F64_2(fmod_f64, fmod(a, b))

QL_ROW bool fmod_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++) {
		if (in[1][i] == 0)
			return false;
		out[i] = in[1][i] == -1 ? 0 : in[0][i] % in[1][i];
	}
	return true;
}

static const struct ql_map fmod_map = {.result = QL_MAP_PROMOTE,
	.f32 = fmod_f32,
	.f64 = fmod_f64,
	.i64 = fmod_i64,
	.ns_per_16 = 200,
	.trouble = "wanted a divisor other than 0 for integers, got 0"};

/* x - trunc(x / y) y with a constant quotient */
static enum ql_status fmod_backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0), *whole;

	ql_back_give(b, 0, g);
	if (!ql_back_wants(b, 1))
		return b->status;
	whole = ql_back_run(b, &ql_op_trunc, ql_back_run(b, &ql_op_div, ql_back_in(b, 0), ql_back_in(b, 1)), NULL);
	ql_back_give(b, 1, ql_back_scaled(b, ql_back_run(b, &ql_op_mul, g, whole), -1));
	return b->status;
}

QL_BINARY(fmod, "x:fmod(y)",
	"Remainder of the division rounded towards 0, as in C: it has the sign of x. (x % y has that of y.)",
	"print(tensor{-1,5}:fmod(3))  --> float32(2)  -1   2", QL_INPLACE, fmod_map, .backward = fmod_backward,
	.saves_for = mod_saves);

QL_MAP_F32_2(idiv_f32, floorf(a / b))
QL_MAP_F64_2(idiv_f64, floor(a / b))

/* INT64_MIN // -1 wraps to itself */
QL_ROW bool idiv_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++) {
		int64_t a = in[0][i], b = in[1][i];

		if (b == 0)
			return false;
		out[i] = b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b - (a % b != 0 && (a < 0) != (b < 0));
	}
	return true;
}

static const struct ql_map idiv_map = {.result = QL_MAP_PROMOTE,
	.f32 = idiv_f32,
	.f64 = idiv_f64,
	.i64 = idiv_i64,
	.ns_per_16 = 20,
	.trouble = "wanted a divisor other than 0 for integers, got 0"};
QL_BINARY(idiv, "x:idiv(y)  x // y",
	"The quotient x / y of the dtype, rounded towards minus infinity, as in Lua (1 // 0.1 is 10, not Python's 9). Its operands get no "
	"gradient.",
	"print(tensor{-1,5} // 3)  --> float32(2)  -1   1", QL_INPLACE, idiv_map, .backward = ql_backward_none);

/* ---- div, with round= too ---- */

/* Macros, not names: rows for devices are taken out of this file. */
#define EXACT 0
#define FLOOR 1
#define TRUNC 2

static enum ql_status div_prepare(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	const char *round = ql_call_string(call, "round", NULL);

	(void)ctx;
	args->i[0] = !round ? EXACT : round[0] == 'f' ? FLOOR : TRUNC;
	return QL_OK;
}

QL_SIMD(void, div_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
	const float *x = in[0];
	const float *y = in[1];

	if (args->i[0] == EXACT)
		for (int64_t i = 0; i < n; i++)
			out[i] = x[i] / y[i];
	else if (args->i[0] == FLOOR)
		for (int64_t i = 0; i < n; i++)
			out[i] = floorf(x[i] / y[i]);
	else
		for (int64_t i = 0; i < n; i++)
			out[i] = truncf(x[i] / y[i]);
})
QL_MAP_F64_2(div_f64, args->i[0] == EXACT ? a / b : args->i[0] == FLOOR ? floor(a / b) : trunc(a / b))

/* Of integers and round= only. */
QL_ROW bool div_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args)
{
	bool down = args->i[0] == FLOOR;

	for (int64_t i = 0; i < n; i++) {
		int64_t a = in[0][i], b = in[1][i];

		if (b == 0)
			return false;
		out[i] = b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b - (down && a % b != 0 && (a < 0) != (b < 0));
	}
	return true;
}

static const struct ql_map div_map = {.result = QL_MAP_FLOAT,
	.f32 = div_f32,
	.f64 = div_f64,
	.i64 = div_i64,
	.ns_per_16 = 6,
	.trouble = "wanted a divisor other than 0 for integers, got 0",
	.prepare = div_prepare};

/* Integers that are rounded stay integers. */
static enum ql_status div_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	static const struct ql_op whole = {.doc = {.name = "div"}, .impl = &idiv_map};
	struct ql_call rounded = *call;
	enum ql_status status;

	if (!ql_call_attr(call, "round"))
		return ql_map_infer(ctx, call);
	rounded.op = &whole;
	status = ql_map_infer(ctx, &rounded);
	call->result[0] = rounded.result[0];
	return status;
}

/* g / y, and -(g / y) (x / y) */
static enum ql_status div_backward(struct ql_back *b)
{
	struct ql_tensor *g;

	if (ql_call_attr(&b->call, "round"))
		return ql_backward_none(b);
	g = ql_back_run(b, &ql_op_div, ql_back_grad(b, 0), ql_back_in(b, 1));
	ql_back_give(b, 0, g);
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_scaled(b, ql_back_run(b, &ql_op_mul, g, ql_back_out(b, 0)), -1));
	return b->status;
}

static uint32_t div_saves(const struct ql_call *call)
{
	if (ql_call_attr(call, "round"))
		return 0;
	return QL_SAVE(1) | (call->in[1]->node ? QL_SAVE_RESULT : 0);
}

static const struct ql_attr div_attrs[] = {
	{"round", QL_ATTR_STRING, 0, "floor trunc",
		"the whole part of the quotient: 'trunc' towards 0, as C; 'floor' as x // y (default: the quotient itself)"},
	{"out", QL_ATTR_SPEC, 0, NULL,
		"spec of a quantized result; of codes it stays in integers where it can (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

const struct ql_op ql_op_div = {
	.doc = {.name = "div",
		.usage = "x:div(y, {round=, out=spec})  x / y",
		.text = "Elementwise quotient with broadcasting; integers give float32. By 0 it is inf or nan. With round= the quotient is "
			"rounded to an integer, integers stay integers, and operands get no gradient.",
		.example =
			"print(tensor{3,1} / 2, tensor{-7,7}:div(2, {round='trunc'}))  --> float32(2) 1.5000 0.5000 float32(2) -3 3",
		.attrs = div_attrs},
	.arity_min = 2,
	.arity_max = 2,
	.flags = QL_NUMBERS | QL_INPLACE | QL_ELEMENTWISE,
	.infer = div_infer,
	.eval = ql_map_eval,
	.defer = ql_map_defer,
	.may_overwrite = ql_map_may_overwrite,
	.impl = &div_map,
	.backward = div_backward,
	.saves_for = div_saves,
};

/* Squares are always computed as products, whatever the other elements' exponents. */
QL_SIMD(void, pow_f32, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), {
	const float *x = in[0];
	const float *y = in[1];
	int64_t squares = 0;

	(void)args;
	for (int64_t i = 0; i < n; i++) {
		squares += y[i] == 2;
		out[i] = x[i] * x[i];
	}
	if (squares == n)
		return;
	for (int64_t i = 0; i < n; i++) {
		float a = x[i], b = y[i], power = ql_pow(a, b);

		out[i] = b == 2 ? a * a : power;
	}
	for (int64_t i = 0; i < n; i++)
		if (!ql_pow_fits(x[i], y[i]) && y[i] != 2)
			out[i] = powf(x[i], y[i]);
})
QL_MAP_F64_2(pow_f64, b == 2 ? a * a : pow(a, b))

/* By squaring, wrapping; a negative exponent is an error. */
QL_ROW bool pow_i64(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args)
{
	(void)args;
	for (int64_t i = 0; i < n; i++) {
		uint64_t base = (uint64_t)in[0][i], result = 1;

		if (in[1][i] < 0)
			return false;
		for (int64_t e = in[1][i]; e; e >>= 1) {
			result *= e & 1 ? base : 1;
			base *= base;
		}
		out[i] = (int64_t)result;
	}
	return true;
}

static const struct ql_map pow_map = {.result = QL_MAP_PROMOTE,
	.f32 = pow_f32,
	.f64 = pow_f64,
	.i64 = pow_i64,
	.ns_per_16 = 32,
	.trouble = "wanted exponents of 0 or more for integers, got a negative one"};

/* y x^(y - 1); 0 where y is 0, as in PyTorch. A single exponent is the common case: the slope of squares stays a
 * product. */
static struct ql_tensor *pow_base_slope(struct ql_back *b)
{
	struct ql_tensor *x = ql_back_in(b, 0), *y = ql_back_in(b, 1), *slope;

	if (b->status)
		return NULL;
	if (ql_tensor_nelem(y) == 1 && !y->q) {
		double e = ql_tensor_at_f64(y, 0);

		if (e == 0)
			return ql_back_number(b, 0, x);
		return ql_back_scaled(b, e == 2 ? x : ql_back_run(b, &ql_op_pow, x, ql_back_plus(b, y, -1)), e);
	}
	slope = ql_back_run(b, &ql_op_mul, y, ql_back_run(b, &ql_op_pow, x, ql_back_plus(b, y, -1)));
	return ql_back_run3(b, &ql_op_where, ql_back_run(b, &ql_op_eq, y, ql_back_number(b, 0, y)),
		ql_back_number(b, 0, slope), slope);
}

/* x^y log x; 0 where x is 0 and y is not negative */
static struct ql_tensor *pow_exponent_slope(struct ql_back *b)
{
	struct ql_tensor *x = ql_back_in(b, 0), *y = ql_back_in(b, 1), *slope, *flat;

	slope = ql_back_run(b, &ql_op_mul, ql_back_out(b, 0), ql_back_run(b, &ql_op_log, x, NULL));
	flat = ql_back_run(b, &ql_op_mul, ql_back_run(b, &ql_op_eq, x, ql_back_number(b, 0, x)),
		ql_back_run(b, &ql_op_ge, y, ql_back_number(b, 0, y)));
	return ql_back_run3(b, &ql_op_where, ql_back_run(b, &ql_op_ne, flat, ql_back_number(b, 0, flat)),
		ql_back_number(b, 0, slope), slope);
}

static enum ql_status pow_backward(struct ql_back *b)
{
	struct ql_tensor *g = ql_back_grad(b, 0);

	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, g, pow_base_slope(b)));
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_run(b, &ql_op_mul, g, pow_exponent_slope(b)));
	return b->status;
}

static uint32_t pow_saves(const struct ql_call *call)
{
	return QL_SAVE(0) | QL_SAVE(1) | (call->in[1]->node ? QL_SAVE_RESULT : 0);
}

QL_BINARY_WITH(pow, ql_out_attrs, "x:pow(y, {out=spec})  x ^ y",
	"x to the power y. Integers wrap and take no negative exponent.",
	"print(tensor{2,3} ^ 2)  --> float32(2)  4  9", QL_INPLACE | QL_ELEMENTWISE, pow_map, .backward = pow_backward,
	.saves_for = pow_saves);

QL_MAP_F32_1(neg_f32, -a)
QL_MAP_F64_1(neg_f64, -a)
QL_MAP_I64_1(neg_i64, 0 - (uint64_t)a)
static const struct ql_map neg_map = {.result = QL_MAP_PROMOTE, .f32 = neg_f32, .f64 = neg_f64, .i64 = neg_i64};

static enum ql_status neg_backward(struct ql_back *b)
{
	ql_back_give(b, 0, ql_back_run(b, &ql_op_neg, ql_back_grad(b, 0), NULL));
	return b->status;
}

QL_UNARY(neg, "x:neg{out=spec}  -x", "The negated elements. Integers wrap.",
	"print(-tensor{1,-2})  --> float32(2)  -1   2", QL_INPLACE, neg_map, .backward = neg_backward);
