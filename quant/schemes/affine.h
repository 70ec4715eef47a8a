/* SPDX-License-Identifier: MIT
 * Rows of affine codes, x = (q - zero) * scale, for the dtypes that have no kernel of their own (packed ones).
 */
#ifndef QUOLL_QUANT_SCHEMES_AFFINE_H
#define QUOLL_QUANT_SCHEMES_AFFINE_H

#include <math.h>

#include "tensor/qparams.h"

/* code = clamp(rint(x / scale), lo - zero, hi - zero) + zero; NaN gives zero. Formula: ONNX QuantizeLinear. */
static inline void ql_affine_encode(
	const float *x, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, int32_t *out)
{
	float lo = (float)(codes->lo - zero), hi = (float)(codes->hi - zero);

	for (int64_t i = 0; i < n; i++) {
		float v = rintf(x[i] / scale);

		v = v < lo ? lo : v > hi ? hi : v;
		out[i] = isnan(x[i]) ? zero : (int32_t)v + zero;
	}
}

static inline void ql_affine_decode(
	const int32_t *q, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, float *out)
{
	(void)codes;
	for (int64_t i = 0; i < n; i++)
		out[i] = (float)(q[i] - zero) * scale;
}

static inline bool ql_affine_accepts(unsigned dtype)
{
	enum ql_dtype_kind kind = ql_dtypes[dtype].kind;

	return (kind == QL_KIND_INT || kind == QL_KIND_UINT) && ql_dtypes[dtype].bits <= 16;
}

#endif
