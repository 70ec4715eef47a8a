/* SPDX-License-Identifier: MIT
 * Exponentials, logarithms, roots, trigonometry, hyperbolic functions. Integers give float32. Functions of float32 are our own
 * (tensor/vmath/vmath.h: the same bits on every instruction set).
 */
#include <math.h>

#include "tensor/ops/ops.h"
#include "tensor/vmath/act.h"
#include "tensor/vmath/arc.h"
#include "tensor/vmath/hyperbolic.h"
#include "tensor/vmath/log.h"
#include "tensor/vmath/wide.h"

/* The last arguments define the gradient: what it reads (in or out), and its formula, where a is the gradient of
 * the result and b the operand or the result. */
#define MATH(op_name, op_text, op_example, cost, f32_of, f64_of, saved, slope_f32, slope_f64) \
	QL_MAP_F32_1(op_name##_f32, f32_of) \
	QL_MAP_F64_1(op_name##_f64, f64_of) \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_FLOAT, .f32 = op_name##_f32, .f64 = op_name##_f64, .ns_per_16 = cost}; \
	QL_SLOPE(op_name, saved, 8, slope_f32, slope_f64) \
	QL_UNARY(op_name, "x:" #op_name "()  x:" #op_name "{out=spec}", op_text, op_example, QL_INPLACE, \
		op_name##_map, .backward = op_name##_backward, .saves = QL_SAVES_##saved)

MATH(exp, "e to the power x.", "print(tensor{0,1}:exp())  --> float32(2)  1.0000  2.7183", 16, ql_exp(a), exp(a), out,
	a *b, a *b);
MATH(exp2, "2 to the power x.", "print(tensor{0,3}:exp2())  --> float32(2)  1  8", 16, ql_exp2(a), exp2(a), out,
	a *b * 0.693147182f, a *b * 0.693147180559945309417);
MATH(expm1, "e to the power x, minus 1, exact near 0.", "print(tensor{0,1}:expm1())  --> float32(2)  0.0000  1.7183",
	16, ql_expm1(a), expm1(a), out, a *(b + 1), a *(b + 1));
MATH(log, "The natural logarithm; of 0 -inf, of a negative number nan.",
	"print(tensor{1,0}:log())  --> float32(2)     0  -inf", 13, ql_log(a), log(a), in, a / b, a / b);
MATH(log2, "The logarithm to base 2.", "print(tensor{1,8}:log2())  --> float32(2)  0  3", 14, ql_log2(a), log2(a), in,
	a / b * 1.44269502f, a / b * 1.44269504088896340736);
MATH(log10, "The logarithm to base 10.", "print(tensor{1,1000}:log10())  --> float32(2)  0  3", 14, ql_log10(a),
	log10(a), in, a / b * 0.434294492f, a / b * 0.434294481903251827651);
MATH(log1p, "The natural logarithm of 1 + x, exact near 0.",
	"print(tensor{0,1}:log1p())  --> float32(2)  0.0000  0.6931", 17, ql_log1p(a), log1p(a), in, a / (1 + b),
	a / (1 + b));
MATH(sqrt, "The square root; of a negative number nan.", "print(tensor{4,9}:sqrt())  --> float32(2)  2  3", 8, sqrtf(a),
	sqrt(a), out, a / (b + b), a / (b + b));
MATH(rsqrt, "1 / sqrt(x), both steps rounded.", "print(tensor{4,16}:rsqrt())  --> float32(2)  0.5000  0.2500", 12,
	1.0f / sqrtf(a), 1.0 / sqrt(a), out, -0.5f * a * (b * b * b), -0.5 * a * (b * b * b));
MATH(square, "x times x.", "print(tensor{-3,2}:square())  --> float32(2)  9  4", 4, a *a, a *a, in, 2 * a * b,
	2 * a * b);
MATH(reciprocal, "1 / x.", "print(tensor{2,4}:reciprocal())  --> float32(2)  0.5000  0.2500", 8, 1.0f / a, 1.0 / a, out,
	-a *(b *b), -a *(b *b));
/* Rows of ql_sin and the like; arguments outside of their domain are computed one by one. */
#define ANGLE(op_name, op_text, op_example, cost, f32_of, f32_else, f64_of, ...) \
	QL_SIMD(void, op_name##_f32, \
		(int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), { \
			const float *restrict x = in[0]; \
\
			(void)args; \
			for (int64_t i = 0; i < n; i++) { \
				float a = x[i]; \
\
				out[i] = f32_of; \
			} \
			for (int64_t i = 0; i < n; i++) \
				if (!ql_sin_fits(x[i])) \
					out[i] = f32_else; \
		}) \
	QL_MAP_F64_1(op_name##_f64, f64_of) \
	static const struct ql_map op_name##_map = { \
		.result = QL_MAP_FLOAT, .f32 = op_name##_f32, .f64 = op_name##_f64, .ns_per_16 = cost}; \
	QL_UNARY(op_name, "x:" #op_name "()  x:" #op_name "{out=spec}", op_text, op_example, QL_INPLACE, \
		op_name##_map, __VA_ARGS__)

static enum ql_status sin_backward(struct ql_back *b)
{
	ql_back_give(b, 0,
		ql_back_run(b, &ql_op_mul, ql_back_grad(b, 0), ql_back_run(b, &ql_op_cos, ql_back_in(b, 0), NULL)));
	return b->status;
}

static enum ql_status cos_backward(struct ql_back *b)
{
	struct ql_tensor *sine = ql_back_run(b, &ql_op_sin, ql_back_in(b, 0), NULL);

	ql_back_give(b, 0, ql_back_run(b, &ql_op_neg, ql_back_run(b, &ql_op_mul, ql_back_grad(b, 0), sine), NULL));
	return b->status;
}

QL_SLOPE(tan, out, 6, a *(1 + b * b), a *(1 + b * b))
ANGLE(sin, "The sine of an angle in radians.", "print(tensor{0}:sin())  --> float32(1)  0", 20, ql_sin(a),
	ql_sin_far(x[i]), sin(a), .backward = sin_backward, .saves = QL_SAVE(0));
ANGLE(cos, "The cosine of an angle in radians.", "print(tensor{0}:cos())  --> float32(1)  1", 24, ql_cos(a),
	ql_cos_far(x[i]), cos(a), .backward = cos_backward, .saves = QL_SAVE(0));
ANGLE(tan, "The tangent of an angle in radians.", "print(tensor{0}:tan())  --> float32(1)  0", 25,
	ql_sin(a) / ql_cos(a), ql_sin_far(x[i]) / ql_cos_far(x[i]), tan(a), .backward = tan_backward,
	.saves = QL_SAVE_RESULT);
MATH(asin, "The angle in radians whose sine is x.", "print(tensor{1}:asin())  --> float32(1)  1.5708", 200, ql_asin(a),
	asin(a), in, a / sqrtf((1 - b) * (1 + b)), a / sqrt((1 - b) * (1 + b)));
MATH(acos, "The angle in radians whose cosine is x.", "print(tensor{1}:acos())  --> float32(1)  0", 200, ql_acos(a),
	acos(a), in, -a / sqrtf((1 - b) * (1 + b)), -a / sqrt((1 - b) * (1 + b)));
MATH(atan, "The angle in radians whose tangent is x.", "print(tensor{1}:atan())  --> float32(1)  0.7854", 200,
	ql_atan(a), atan(a), in, a / (1 + b * b), a / (1 + b * b));
MATH(erf, "The error function.", "print(tensor{0,1}:erf())  --> float32(2)  0.0000  0.8427", 30, ql_erf(a), erf(a), in,
	a * 1.12837917f * ql_exp(-b * b), a * 1.12837916709551257390 * exp(-b * b));
/* The slopes of sinh and cosh are each other. */
MATH(sinh, "The hyperbolic sine.", "print(tensor{0,1}:sinh())  --> float32(2)  0.0000  1.1752", 15, ql_sinh(a), sinh(a),
	in, a *ql_cosh(b), a *cosh(b));
MATH(cosh, "The hyperbolic cosine.", "print(tensor{0,1}:cosh())  --> float32(2)  1.0000  1.5431", 10, ql_cosh(a),
	cosh(a), in, a *ql_sinh(b), a *sinh(b));
MATH(asinh, "The number whose hyperbolic sine is x.", "print(tensor{0,1}:asinh())  --> float32(2)  0.0000  0.8814", 60,
	ql_asinh(a), asinh(a), in, a / (float)sqrt(1 + (double)b * (double)b), a / hypot(1.0, b));
MATH(acosh, "The positive number whose hyperbolic cosine is x; below 1 nan.",
	"print(tensor{1,2}:acosh())  --> float32(2)  0.0000  1.3170", 60, ql_acosh(a), acosh(a), in,
	a / (float)sqrt(((double)b - 1) * ((double)b + 1)), a / (sqrt(b - 1) * sqrt(b + 1)));
MATH(atanh, "The number whose hyperbolic tangent is x; outside of -1..1 nan.",
	"print(tensor{0,0.5}:atanh())  --> float32(2)  0.0000  0.5493", 60, ql_atanh(a), atanh(a), in,
	a / ((1 - b) * (1 + b)), a / ((1 - b) * (1 + b)));

/* ---- atan2 ---- */

QL_MAP_F32_2(atan2_f32, ql_atan2(a, b))
QL_MAP_F64_2(atan2_f64, atan2(a, b))
static const struct ql_map atan2_map = {.result = QL_MAP_FLOAT, .f32 = atan2_f32, .f64 = atan2_f64, .ns_per_16 = 200};

/* x / (x^2 + y^2) and -y / (x^2 + y^2) */
static enum ql_status atan2_backward(struct ql_back *b)
{
	struct ql_tensor *y = ql_back_in(b, 0), *x = ql_back_in(b, 1), *g;

	g = ql_back_run(b, &ql_op_add, ql_back_run(b, &ql_op_square, y, NULL), ql_back_run(b, &ql_op_square, x, NULL));
	g = ql_back_run(b, &ql_op_div, ql_back_grad(b, 0), g);
	if (ql_back_wants(b, 0))
		ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, g, x));
	if (ql_back_wants(b, 1))
		ql_back_give(b, 1, ql_back_scaled(b, ql_back_run(b, &ql_op_mul, g, y), -1));
	return b->status;
}

QL_BINARY_WITH(atan2, ql_out_attrs, "y:atan2(x, {out=spec})",
	"The angle in radians, from -pi to pi, of the point (x, y): that whose tangent is y / x, in the quadrant of the point.",
	"print(tensor{1,1,-1}:atan2(tensor{1,-1,0}))  --> float32(3)   0.7854   2.3562  -1.5708",
	QL_INPLACE | QL_ELEMENTWISE, atan2_map, .backward = atan2_backward, .saves = QL_SAVE(0) | QL_SAVE(1));
