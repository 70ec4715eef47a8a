/* SPDX-License-Identifier: MIT
 * Scale and zero point that follow from a range of values, by quant/ranges/fit.c.
 */
#ifndef QUOLL_GPU_KERNELS_RANGE_FIT_H
#define QUOLL_GPU_KERNELS_RANGE_FIT_H

#include <float.h>

#include "gpu/kernels/scales.h"

struct ql_fit_rule {
	int32_t fit, bits, lo, hi;
	float unit;  /* of a table: the value of the largest |x|; 0: affine codes */
	int32_t any; /* of a table: scales may be subnormal */
	float none;  /* the scale of zeros */
};

QL_NUMBER int32_t ql_fit_middle(const ql_fit_rule &r)
{
	return r.lo >= 0 ? 1 << (r.bits - 1) : 0;
}

QL_NUMBER double ql_fit_exact(const ql_fit_rule &r, double lo, double hi)
{
	int32_t middle = ql_fit_middle(r), below = middle - r.lo, above = r.hi - middle;

	if (r.fit == QL_GPU_FIT_RANGE)
		return (fmax(hi, 0.0) - fmin(lo, 0.0)) / ((double)r.hi - r.lo);
	if (r.unit > 0)
		return fmax(fabs(lo), fabs(hi)) / (double)r.unit;
	return fmax(fabs(lo), fabs(hi)) / (below < above ? below : above);
}

/* finite_scale of quant/ranges/fit.c: no code of the range may decode to infinity. */
QL_NUMBER float ql_fit_finite(float s, double most)
{
	float end = (float)most, top = rintf(end / s), less = s * 0x1.fffffep-1f;

	if (top < 1 || isfinite(top * s))
		return s;
	if (isfinite(rintf(end / less) * less))
		return less;
	return (float)(most / (((double)top - 0.5) * (1 - 0x1p-20)));
}

/* half: 0 float32, 1 to nearest float16, 2 upwards to float16; any: subnormal ones stay */
QL_NUMBER float ql_fit_rounded(double scale, int32_t half, bool any)
{
	float s = (float)scale;
	uint16_t h;

	if (any && s < FLT_MIN)
		return s;
	s = s < FLT_MIN ? FLT_MIN : s > FLT_MAX ? FLT_MAX : s;
	if (!half)
		return s;
	h = ql_to_f16(s);
	return ql_from_f16(half == 2 && ql_from_f16(h) < s ? (uint16_t)(h + 1) : h);
}

QL_NUMBER int32_t ql_fit_zero(const ql_fit_rule &r, double lo, float scale)
{
	float z = rintf((float)r.lo - (float)fmin(lo, 0.0) / scale);

	if (r.fit == QL_GPU_FIT_LARGEST)
		return ql_fit_middle(r);
	return z < (float)r.lo ? r.lo : z > (float)r.hi ? r.hi : (int32_t)z;
}

/* The scale of a range of finite values, as stored in elements of this type. */
QL_NUMBER float ql_fit_scale(const ql_fit_rule &r, int32_t scale_type, double lo, double hi)
{
	int32_t half = scale_type != QL_E_float16 ? 0 : r.fit == QL_GPU_FIT_RANGE ? 2 : 1;
	double scale = ql_fit_exact(r, lo, hi);
	float x = scale == 0 ? r.none : ql_fit_rounded(scale, half, r.any);

	for (int k = 0; k < 2 && r.unit == 0 && x > FLT_MAX / 0x1p17f; k++)
		x = ql_fit_finite(ql_fit_finite(x, -lo), hi);
	return x;
}

static inline ql_fit_rule ql_fit_rule_of(const struct ql_gpu_codes *c)
{
	const struct ql_gpu_grid *g = c->grid;
	bool zero = !g || g->value[g->zero] == 0;

	return {c->fit, c->bits, c->lo, c->hi, g ? g->unit : 0.0f, g ? g->reciprocal : 0, zero ? 1.0f : 0.0f};
}

/* Whether scales follow from the range of the values alone; else says why not. */
static inline bool ql_fit_takes(const struct ql_gpu_codes *c, struct ql_gpu_plan *p)
{
	if (c->fit != QL_GPU_FIT_LARGEST && c->fit != QL_GPU_FIT_RANGE)
		return ql_refuse(p, "a scale that does not follow from the range");
	if (c->scaling || c->shift || !(c->grid || c->flags & QL_GPU_AFFINE) || c->each_bits ||
		(c->grid && c->fit != QL_GPU_FIT_LARGEST))
		return ql_refuse(p, "scales by another rule than the range of the values");
	return true;
}

#endif
