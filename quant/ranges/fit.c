/* SPDX-License-Identifier: MIT
 * Scales are computed in double and rounded once; codes use the rounded scale.
 *
 * Blocks of at most 8 bits have float16 scales: symmetric and log ones rounded to nearest, asymmetric ones upwards
 * from the float32 value, because they need all codes for the range, and a relative error of 2^-11 over 255 steps
 * would clip 0.12 of a step. Over the 65535 steps of 16-bit codes float16 could err by 32 steps, so those blocks
 * have float32 scales.
 */
#include "quant/ranges/fit.h"

#include <float.h>
#include <math.h>

#include "quant/format.h"
#include "tensor/grain.h"
#include "tensor/grid.h"

#define F16_MIN 0x1p-14
#define F16_MAX 65504.0
#define ONE_LESS 0x1.fffffep-1f
#define BELOW_TIE (1 - 0x1p-20) /* moves a float32 quotient below the tie by more than its rounding error, 2^-24 */

bool ql_fit_half(const double *scale, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (scale[i] != 0 && (scale[i] < F16_MIN || scale[i] > F16_MAX))
			return false;
	return true;
}

static float half_scale(float s, bool up)
{
	uint16_t half = ql_f32_to_f16(s);

	return ql_f16_to_f32(up && ql_f16_to_f32(half) < s ? (uint16_t)(half + 1) : half);
}

/* Scales that are powers of two, or whose reciprocal is bounded, may be subnormal. */
static bool may_be_subnormal(const struct ql_codes *codes)
{
	return codes->scaling || (codes->grid && codes->grid->reciprocal);
}

static float rounded(double scale, enum ql_scale_round round, bool subnormal)
{
	float s = (float)scale;

	if (subnormal && s < FLT_MIN)
		return s;
	s = s < FLT_MIN ? FLT_MIN : s > FLT_MAX ? FLT_MAX : s;
	return round == QL_SCALE_FLOAT ? s : half_scale(s, round == QL_SCALE_HALF_UP);
}

/* The code of the range's end `most` may decode to up to half a step beyond it, which may be infinity. Then the
 * scale is reduced by one unit in the last place if that suffices, else increased until the end gets the previous
 * code, still within half a step. q_finite in exported C does the same. */
static float finite_scale(float s, double most)
{
	float end = (float)most, top = rintf(end / s), less = s * ONE_LESS;

	if (top < 1 || isfinite(top * s))
		return s;
	if (isfinite(rintf(end / less) * less))
		return less;
	return (float)(most / (((double)top - 0.5) * BELOW_TIE));
}

/* The number of bits after the leading one in the largest codes. */
static int mantissa_of(const struct ql_codes *codes)
{
	if (!codes->grid)
		return codes->bits - 2;
	return codes->grid->minifloat ? codes->grid->minifloat->mantissa : 0;
}

double ql_fit_scale(const struct ql_scheme *scheme, const struct ql_stats *stats, const struct ql_codes *codes)
{
	double scale = scheme->fit(stats, codes), unit = codes->grid ? (double)codes->grid->unit : (double)codes->hi;

	if (!codes->scaling)
		return scale;
	if (codes->scaling == QL_SCALING_POW2)
		return ql_scaling_of(QL_SCALING_POW2, scale, 1, 0);
	return ql_scaling_of(
		(enum ql_scaling)codes->scaling, fmax(fabs(stats->lo), fabs(stats->hi)), unit, mantissa_of(codes));
}

/* float16 bit patterns are ordered by sign and magnitude. */
float ql_fit_minimum(const struct ql_stats *stats, bool half)
{
	float m = (float)stats->lo;
	uint16_t h = ql_f32_to_f16(m);

	if (!half)
		return (double)m > stats->lo ? nextafterf(m, -INFINITY) : m;
	if ((double)ql_f16_to_f32(h) > stats->lo)
		h = h == 0 ? 0x8001 : h & 0x8000u ? (uint16_t)(h + 1) : (uint16_t)(h - 1);
	return ql_f16_to_f32(h);
}

float ql_fit(const struct ql_scheme *scheme, const struct ql_stats *stats, const struct ql_codes *codes,
	enum ql_scale_round round, int32_t *zero)
{
	return ql_fit_rounded(scheme, ql_fit_scale(scheme, stats, codes), stats, codes, round, zero);
}

float ql_fit_rounded(const struct ql_scheme *scheme, double scale, const struct ql_stats *stats,
	const struct ql_codes *codes, enum ql_scale_round round, int32_t *zero)
{
	float s;

	*zero = 0;
	if (scale == 0)
		s = codes->bits == 1 || (codes->grid && !ql_grid_has_zero(codes->grid)) ? 0 : 1;
	else
		s = rounded(scale, round, may_be_subnormal(codes));
	for (int i = 0; i < 2 && scheme->affine && !codes->scaling && s > FLT_MAX / 0x1p17f;
		i++) /* 2^17: above all codes */
		s = finite_scale(finite_scale(s, -stats->lo), stats->hi);
	if (scheme->zero)
		*zero = scheme->zero(stats, codes, s);
	return s;
}
