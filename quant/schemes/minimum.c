/* SPDX-License-Identifier: MIT
 * Minimum: x = q * scale + m with codes 0 .. 2^b-1 and the block's minimum m, a real number. Unlike with a zero
 * point, m need not be a multiple of the scale, and the range need not contain 0 (Q4_1 of GGUF, HQQ, AWQ).
 */
#include "quant/schemes/affine.h"

static bool accepts(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_UINT && ql_dtypes[dtype].bits <= 8;
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	(void)dtype;
	(void)wide;
	codes->lo = 0;
	codes->hi = (1 << codes->bits) - 1;
}

static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	return (stats->hi - stats->lo) / codes->hi;
}

extern const struct ql_scheme ql_scheme_minimum;
const struct ql_scheme ql_scheme_minimum = {
	.doc = {.name = "minimum",
		.usage = "x:quantize 'int4:32+min'",
		.text = "x = q * scale + minimum with a real minimum per scale and unsigned codes; both are float16. For blocks whose "
			"range is far from 0. There is no integer product: ops decode first.",
		.example = "print(tensor{5,7,20}:quantize('int4:32+min'):dequantize())  --> float32(3)   5   7  20"},
	.affine = true,
	.monotone = true,
	.tight = true,
	.shift = true,
	.accepts = accepts,
	.range = range,
	.fit = fit,
	.encode = ql_affine_encode,
	.decode = ql_affine_decode,
};
