/* SPDX-License-Identifier: MIT
 * Full: x = q * scale with all codes of the dtype, no zero point, and a scale of either sign: signed codes reach one
 * step further down than up, so that a negative scale suits blocks whose largest |x| is positive (GGUF).
 */
#include "quant/schemes/affine.h"

static bool accepts(unsigned dtype)
{
	return ql_affine_accepts(dtype) && dtype != QL_binary;
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	bool is_signed = ql_dtypes[dtype].kind == QL_KIND_INT;

	(void)wide;
	codes->lo = is_signed ? -(1 << (codes->bits - 1)) : 0;
	codes->hi = is_signed ? (1 << (codes->bits - 1)) - 1 : (1 << codes->bits) - 1;
}

/* A scale from statistics is positive. Unsigned codes represent no negative values. */
static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	double up = fmax(stats->hi, 0) / codes->hi;

	return codes->lo < 0 ? fmax(up, stats->lo / codes->lo) : up;
}

extern const struct ql_scheme ql_scheme_full;
const struct ql_scheme ql_scheme_full = {
	.doc = {.name = "full",
		.usage = "x:quantize{dtype='int4', scheme='full'}",
		.text = "x = q * scale with all codes of the dtype (int4: -8 to 7) and no zero point; unsigned codes have no negative "
			"values. Used by blocks of GGUF (q4_0, q6_k), whose scales may be negative.",
		.example =
			"print(tensor{-8,0,7}:quantize{dtype='int4', scheme='full'}:codes())  --> int4(3)  -8   0   7"},
	.affine = true,
	.zero_code = true,
	.tight = true,
	.any_scale = true,
	.accepts = accepts,
	.range = range,
	.fit = fit,
	.encode = ql_affine_encode,
	.decode = ql_affine_decode,
};
