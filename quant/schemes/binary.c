/* SPDX-License-Identifier: MIT
 * Binary: x = sign(x) * alpha with alpha = mean|x|, the least-squares choice (XNOR-Net, arXiv 1603.05279);
 * sign(0) = +1. One bit per element.
 */
#include <math.h>

#include "tensor/qparams.h"

static bool accepts(unsigned dtype)
{
	return ql_dtype_is_binary(dtype);
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	(void)dtype;
	(void)wide;
	codes->lo = -1;
	codes->hi = 1;
}

static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	(void)codes;
	return stats->meanabs;
}

static void encode(const float *x, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, int32_t *out)
{
	(void)scale;
	(void)zero;
	(void)codes;
	for (int64_t i = 0; i < n; i++)
		out[i] = x[i] < 0 ? -1 : 1;
}

static void decode(const int32_t *q, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, float *out)
{
	(void)zero;
	(void)codes;
	for (int64_t i = 0; i < n; i++)
		out[i] = (float)q[i] * scale;
}

extern const struct ql_scheme ql_scheme_binary;
const struct ql_scheme ql_scheme_binary = {
	.doc = {.name = "binary",
		.usage = "x:quantize 'binary/1'",
		.text = "sign(x) times mean|x|, one bit per element; chosen by the dtype binary. sign(0) is +1.",
		.example = "print(tensor{-1,3}:quantize('binary'):dequantize())  --> float32(2)  -2   2"},
	.affine = true,
	.monotone = true,
	.mean = true,
	.accepts = accepts,
	.range = range,
	.fit = fit,
	.encode = encode,
	.decode = decode,
};
