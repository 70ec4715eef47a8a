/* SPDX-License-Identifier: MIT
 * Rounding of values in units of a scale to codes of an affine spec of at most 16 bits, for all integer paths:
 *   code = sat(rint(v)) + zero, half to even; nan gives the zero point, as in quantize.
 * The bounds are integers, so clamping before rounding gives the same result as after it, and vectorizes.
 */
#ifndef QUOLL_QUANT_INTEGER_ROUNDING_H
#define QUOLL_QUANT_INTEGER_ROUNDING_H

#include "quant/spec.h"
#include "tensor/vmath/simd.h"

#define QL_SUM_SAFE ((int64_t)1 << 30) /* sums and biases below it can be added in 32 bits */

struct ql_fixed;

struct ql_rounding {
	float lo, hi; /* of the codes, without the zero point */
	int32_t zero;
};

/* From params with one zero point, or a tensor with such params. */
struct ql_rounding ql_rounding_of_params(const struct ql_qparams *q);
struct ql_rounding ql_rounding_of(const struct ql_tensor *t);

/* One code. Adding 1.5 * 2^23 to |v| < 2^22 drops the fraction, rounding half to even. */
QL_INLINE int32_t ql_round(float v, float lo, float hi, int32_t zero)
{
	v = v == v ? v : 0;
	v = v < lo ? lo : v;
	v = v > hi ? hi : v;
	return (int32_t)((v + 12582912.0f) - 12582912.0f) + zero;
}

/* n values to codes of int8 or uint8. */
void ql_round_row(int variant, const struct ql_rounding *r, unsigned dtype, int64_t n, const float *v, void *out);

/* A bias in units of the product of two scales, to add to sums. A nan bias gives 0 and sets the factor of its sums
 * to 0, so that they all become the zero point. */
int64_t ql_round_bias(float bias, float scale, float *factor);

/* Conversion of sums to int8 or uint8 codes: code = round((float)max(sum + bias, least) * factor), or fixed point. */
struct ql_sum_codes {
	struct ql_rounding r;
	const int32_t *bias; /* one per element, or one for all */
	const float *factor;
	const struct ql_fixed *fixed; /* replaces factor when rule is a fixed-point rule */
	enum ql_requant rule;
	bool each;
	int32_t least; /* 0: relu; INT32_MIN: none */
	unsigned dtype;
	int variant;
};

/* Converts elements first..first+n-1 of a row; `out` receives the first of them. */
void ql_round_sums(const struct ql_sum_codes *c, int64_t first, int64_t n, const int32_t *sum, void *out);

/* True if a sum of k products of 8-bit codes stays below QL_SUM_SAFE. */
static inline bool ql_sums_fit(int64_t k)
{
	return k < QL_SUM_SAFE / (255 * 255);
}

#endif
