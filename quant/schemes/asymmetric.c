/* SPDX-License-Identifier: MIT
 * Asymmetric: x = (q - zero_point) * scale over the whole range of the codes. The range is first widened to
 * contain 0, so 0.0 always decodes to exactly 0.0 (gemmlowp's nudged zero point; ONNX DynamicQuantizeLinear).
 */
#include "quant/schemes/affine.h"

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	bool is_signed = ql_dtypes[dtype].kind == QL_KIND_INT;

	(void)wide;
	codes->lo = is_signed ? -(1 << (codes->bits - 1)) : 0;
	codes->hi = is_signed ? (1 << (codes->bits - 1)) - 1 : (1 << codes->bits) - 1;
}

static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	return (fmax(stats->hi, 0) - fmin(stats->lo, 0)) / ((double)codes->hi - codes->lo);
}

/* In float32, like ONNX DynamicQuantizeLinear: a range -a..a of 8 bits ends at 127.5 steps, and the quotient's last
 * bit decides whether that is a tie, which rounds to the even zero point. */
static int32_t zero(const struct ql_stats *stats, const struct ql_codes *codes, float scale)
{
	float end = (float)fmin(stats->lo, 0) / scale, z = rintf((float)codes->lo - end);

	return z < (float)codes->lo ? codes->lo : z > (float)codes->hi ? codes->hi : (int32_t)z;
}

extern const struct ql_scheme ql_scheme_asymmetric;
const struct ql_scheme ql_scheme_asymmetric = {
	.doc = {.name = "asymmetric",
		.usage = "x:quantize{dtype='int8', scheme='asymmetric'}",
		.text = "x = (q - zero_point) * scale over all codes; the range is widened to contain 0. The default of unsigned "
			"codes.",
		.example = "print(tensor{-1,3}:quantize('uint8'):qparams().zero_point:item())  --> 64"},
	.affine = true,
	.rule = QL_FIT_RANGE,
	.monotone = true,
	.zero_code = true,
	.offset = true,
	.tight = true,
	.accepts = ql_affine_accepts,
	.range = range,
	.fit = fit,
	.zero = zero,
	.encode = ql_affine_encode,
	.decode = ql_affine_decode,
};
