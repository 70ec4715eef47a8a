/* SPDX-License-Identifier: MIT
 * How values in units of a scale become the codes of an affine spec of at most 16 bits, for all that stays in integers:
 *   code = sat(rint(v)) + zero, half to even; nan gives the zero point, as in quantize.
 * The bounds are whole numbers, so clamping before rounding gives the same as behind it, and is vectorised.
 */
#ifndef QUOLL_QUANT_ROUNDING_H
#define QUOLL_QUANT_ROUNDING_H

#include "quant/spec.h"
#include "tensor/simd.h"

#define QL_SUM_SAFE ((int64_t)1 << 30) /* sums and biases below it add in 32 bits */

struct ql_fixed;

struct ql_rounding {
	float lo, hi; /* of the codes, without the zero point */
	int32_t zero;
};

/* Of params with one zero point, and of a tensor with such. */
struct ql_rounding ql_rounding_of_params(const struct ql_qparams *q);
struct ql_rounding ql_rounding_of(const struct ql_tensor *t);

/* One code. Adding 1.5 2^23 to |v| < 2^22 leaves no fraction, and rounds half to even. */
QL_INLINE int32_t ql_round(float v, float lo, float hi, int32_t zero)
{
	v = v == v ? v : 0;
	v = v < lo ? lo : v;
	v = v > hi ? hi : v;
	return (int32_t)((v + 12582912.0f) - 12582912.0f) + zero;
}

/* n values to codes of int8 or uint8. */
void ql_round_row(int variant, const struct ql_rounding *r, unsigned dtype, int64_t n, const float *v, void *out);

/* A bias in units of the product of two scales, to be added to sums. A nan is no number of units: it gives 0 and takes
 * the factor of its sums, so that they all become the zero point. */
int64_t ql_round_bias(float bias, float scale, float *factor);

/* Sums of products to codes of int8 or uint8: code = round((float)max(sum + bias, least) * factor), or in fixed point. */
struct ql_sum_codes {
	struct ql_rounding r;
	const int32_t *bias; /* one for each element, or one for all */
	const float *factor;
	const struct ql_fixed *fixed; /* in the place of factor, when rule is one of fixed point */
	enum ql_requant rule;
	bool each;
	int32_t least; /* 0: relu; INT32_MIN: none */
	unsigned dtype;
	int variant;
};

/* Elements first..first+n-1 of a row; `out` is where the first of them goes. */
void ql_round_sums(const struct ql_sum_codes *c, int64_t first, int64_t n, const int32_t *sum, void *out);

/* Number of products of 8-bit codes whose sum stays below QL_SUM_SAFE. */
static inline bool ql_sums_fit(int64_t k)
{
	return k < QL_SUM_SAFE / (255 * 255);
}

#endif
