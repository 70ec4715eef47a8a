/* SPDX-License-Identifier: MIT
 * Symmetric: x = q * scale with codes -(2^(b-1)-1) .. 2^(b-1)-1 and scale = max|x| / (2^(b-1)-1), so -q is always
 * valid. Unsigned codes have the zero point in the middle (128 for uint8) and do not use code 0.
 */
#include "quant/schemes/affine.h"

static int32_t steps(const struct ql_codes *codes)
{
	return (1 << (codes->bits - 1)) - 1;
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	int32_t top = steps(codes), middle = ql_dtypes[dtype].kind == QL_KIND_UINT ? top + 1 : 0;

	codes->lo = middle - top - (wide ? 1 : 0);
	codes->hi = middle + top;
}

/* Codes on the shorter side of the zero point, which quant_min and quant_max may bound. */
static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	double most = fmax(fabs(stats->lo), fabs(stats->hi));
	int32_t middle = codes->lo >= 0 ? steps(codes) + 1 : 0, below = middle - codes->lo, above = codes->hi - middle;

	return most / (below < above ? below : above);
}

/* The middle of the codes: 0 for signed ones. */
static int32_t zero(const struct ql_stats *stats, const struct ql_codes *codes, float scale)
{
	(void)stats;
	(void)scale;
	return codes->lo >= 0 ? steps(codes) + 1 : 0;
}

extern const struct ql_scheme ql_scheme_symmetric;
const struct ql_scheme ql_scheme_symmetric = {
	.doc = {.name = "symmetric",
		.usage = "x:quantize{dtype='int8', scheme='symmetric'}",
		.text = "x = q * scale with scale = max|x| / (2^(bits-1) - 1); the default of signed codes. Unsigned codes have a "
			"zero point in the middle (128 for uint8).",
		.example = "print(tensor{-1,0,1}:quantize('int8'):codes())  --> int8(3)  -127     0   127"},
	.affine = true,
	.rule = QL_FIT_LARGEST,
	.monotone = true,
	.zero_code = true,
	.accepts = ql_affine_accepts,
	.range = range,
	.fit = fit,
	.zero = zero,
	.encode = ql_affine_encode,
	.decode = ql_affine_decode,
};
