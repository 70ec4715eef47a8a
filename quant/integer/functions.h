/* SPDX-License-Identifier: MIT
 * Functions of a code in fixed point, as TensorFlow Lite's reference kernels have them (reference/integer_ops/logistic.h, tanh.h,
 * reference/leaky_relu.h, hard_swish.h), for rounding='double':
 *   sigmoid, tanh   16 bits to 16 bits of scale 1/32768: between places of a table of sigmoid(i / 24) in 65536ths
 *   leakyrelu       8 or 16 bits: two factors
 *   hardswish       8 bits: x and relu6(x + 3) / 6 in 16 bits
 *   abs             8 or 16 bits: one factor
 *   sqrt            8 or 16 bits: in float32, the result cut to an integer (elementwise.cc); 0 of negative numbers
 *   log             8 bits: in float32, halves away from 0; the lowest code of numbers up to 0
 *   exp, log, rsqrt, gelu   16 bits: between 513 places (functions_lut.c)
 */
#ifndef QUOLL_QUANT_INTEGER_FUNCTIONS_H
#define QUOLL_QUANT_INTEGER_FUNCTIONS_H

#include "quant/integer/fixed.h"
#include "tensor/op.h"

struct ql_function_int {
	int64_t (*code)(const struct ql_function_int *f, int64_t x); /* of a code less its zero point; not saturated */
	struct ql_fixed m[2];
	int32_t multiplier, shift; /* sigmoid, tanh: of x; leakyrelu: the sign of the slope */
	const uint16_t *table;
	float scale[2];      /* sqrt: of x and of the result */
	int16_t places[513]; /* exp, log, rsqrt, gelu */
};

/* Fill f->places for scales of x and of the result; the code between them. */
void ql_function_exp(const struct ql_call *call, double scale, double out, struct ql_function_int *f);
void ql_function_log(const struct ql_call *call, double scale, double out, struct ql_function_int *f);
void ql_function_rsqrt(const struct ql_call *call, double scale, double out, struct ql_function_int *f);
void ql_function_gelu(const struct ql_call *call, double scale, double out, struct ql_function_int *f);
int64_t ql_function_lut_code(const struct ql_function_int *f, int64_t x);

/* Whether the op has such a function. */
bool ql_function_int_has(const struct ql_op *op);
/* The function for codes of x and the spec out=; fails if the op has none, or not for these codes. */
enum ql_status ql_function_int_of(
	struct ql_ctx *ctx, const struct ql_call *call, const struct ql_tensor *x, struct ql_function_int *out);

#endif
