/* SPDX-License-Identifier: MIT
 * Absmean: x = q * scale with scale = mean |x| and symmetric codes, -1, 0 and 1 for 2 bits: the ternary weights of
 * BitNet b1.58 (arXiv 2402.17764).
 */
#include "quant/schemes/affine.h"

static bool accepts(unsigned dtype)
{
	return ql_dtypes[dtype].kind == QL_KIND_INT && ql_dtypes[dtype].bits <= 16;
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	(void)dtype;
	(void)wide;
	codes->hi = (1 << (codes->bits - 1)) - 1;
	codes->lo = -codes->hi;
}

static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	(void)codes;
	return stats->meanabs;
}

extern const struct ql_scheme ql_scheme_absmean;
const struct ql_scheme ql_scheme_absmean = {
	.doc = {.name = "absmean",
		.usage = "x:quantize 'ternary'  x:quantize 'int2/1 absmean'",
		.text = "x = q * scale with scale = mean |x|; with 2 bits the codes are -1, 0 and 1 (BitNet b1.58).",
		.example = "print(tensor{-3,0.4,1,2}:quantize('int4 absmean'):codes())  --> int4(4)  -2   0   1   1"},
	.affine = true,
	.monotone = true,
	.zero_code = true,
	.mean = true,
	.accepts = accepts,
	.range = range,
	.fit = fit,
	.encode = ql_affine_encode,
	.decode = ql_affine_decode,
};
