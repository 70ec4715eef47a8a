/* SPDX-License-Identifier: MIT
 * Scales of runs. The formulas of fit.c and of the affine schemes are written a second time, as loops over many scales
 * (fit_many): for blocks of 32 values a call for each scale takes longer than all the rest. What these loops do not do, such
 * as scales near the ends of float32, is left to fit.c.
 *
 * Scales of blocks are float16 if all of them can be (fit.h). So they are tried as float16 first, and everything is done
 * again with float32 scales when one turns out to be too large or too small.
 */
#include "quant/ranges/fit_runs.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "quant/observer_kind.h"
#include "quant/ranges/codebook.h"
#include "quant/ranges/fit.h"
#include "quant/ranges/fit_functions.h"
#include "quant/ranges/scales.h"
#include "tensor/codec.h"
#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"
#include "tensor/remote.h"
#include "tensor/vmath/simd.h"

#define MANY 128 /* runs at a time */
#define F16_MIN 0x1p-14
#define F16_MAX 65504.0

struct job {
	const struct ql_spec *spec;
	const struct ql_kernels *kernels;
	struct ql_qparams *q;
	enum ql_scale_round round;
	bool by_rule;       /* the scale follows from the range by fit_many */
	double divisor;     /* of its rule */
	int32_t fixed_zero; /* under QL_FIT_LARGEST */
	_Atomic bool unfit; /* float16 does not suffice */
};

/* What is fitted for some runs; `left` marks those that fit.c must do. */
struct many {
	float lo[MANY], hi[MANY], scale[MANY], shift[MANY];
	double mean[MANY]; /* of magnitudes, for the scheme binary */
	int32_t left[MANY];
};

/* Rounds a positive float32 to the 11 digits of float16 in place: to nearest even, or upwards. */
QL_INLINE int32_t half_bits(int32_t bits, bool up)
{
	int32_t near = (bits + 0xfff + (bits >> 13 & 1)) & ~0x1fff;

	return up && near < bits ? near + 0x2000 : near;
}

/* largest: by QL_FIT_LARGEST (qparams.h), else by QL_FIT_RANGE */
QL_SIMD(void, fit_many, (struct many *restrict m, int64_t n, bool largest, double divisor, enum ql_scale_round round), {
	for (int64_t i = 0; i < n; i++) {
		double lo = (double)(m->lo[i] < 0 ? m->lo[i] : 0);
		double hi = (double)(m->hi[i] > 0 ? m->hi[i] : 0);
		double most = (double)(-m->lo[i] > m->hi[i] ? -m->lo[i] : m->hi[i]);
		double scale = (largest ? most : hi - lo) / divisor;
		float s = (float)scale;
		int32_t bits;
		int ends = (s < FLT_MIN) | (s > FLT_MAX / 0x1p17f) | (m->lo[i] > m->hi[i]);

		if (round != QL_SCALE_FLOAT) {
			ends |= (scale < F16_MIN) | (scale > F16_MAX);
			memcpy(&bits, &s, sizeof(bits));
			bits = half_bits(bits, round == QL_SCALE_HALF_UP);
			memcpy(&s, &bits, sizeof(s));
		}
		m->scale[i] = s;
		m->left[i] = ends;
	}
})

/* Zero points under QL_FIT_RANGE. first: the lowest code; last: the highest */
QL_SIMD(void, zeros_of_many,
	(const struct many *restrict m, int64_t n, float first, float last, int32_t *restrict zero), {
		for (int64_t i = 0; i < n; i++) {
			float z = rintf(first - (m->lo[i] < 0 ? m->lo[i] : 0) / m->scale[i]);

			zero[i] = (int32_t)(z > first ? z > last ? last : z : first); /* NaN: left */
		}
	})

/* Minimums, rounded down, and scales of the scheme that has them. */
QL_SIMD(void, fit_minimums, (struct many *restrict m, int64_t n, double divisor, enum ql_scale_round round), {
	for (int64_t i = 0; i < n; i++) {
		float low = m->lo[i];
		int32_t bits;
		int ends = m->lo[i] > m->hi[i];

		if (round != QL_SCALE_FLOAT) {
			memcpy(&bits, &low, sizeof(bits));
			int32_t size = bits & 0x7fffffff;
			int32_t near = half_bits(size, false);

			near -= (bits >= 0) & (near > size) ? 0x2000 : 0;
			near += (bits < 0) & (near < size) ? 0x2000 : 0;
			bits = near | (bits & ~0x7fffffff);
			memcpy(&low, &bits, sizeof(low));
			ends |= ((double)fabsf(low) < F16_MIN) | ((double)fabsf(low) > F16_MAX);
		}
		double scale = ((double)m->hi[i] - (double)low) / divisor;
		float s = (float)scale;

		ends |= (s < FLT_MIN) | (s > FLT_MAX / 0x1p17f);
		if (round != QL_SCALE_FLOAT) {
			ends |= (scale < F16_MIN) | (scale > F16_MAX);
			memcpy(&bits, &s, sizeof(bits));
			bits = half_bits(bits, round == QL_SCALE_HALF_UP);
			memcpy(&s, &bits, sizeof(s));
		}
		m->shift[i] = low;
		m->scale[i] = s;
		m->left[i] = ends;
	}
})

/* Scale, zero point and minimum of run i by the formulas of fit.c; false: the scale is no float16. */
static bool fit_one(const struct job *j, const struct many *m, int64_t i, float *scale, int32_t *zero, float *shift)
{
	const struct ql_scheme *scheme = j->spec->scheme;
	bool none = m->lo[i] > m->hi[i], half = j->round != QL_SCALE_FLOAT;
	struct ql_stats range = {.count = !none};
	double s;

	range.lo = none ? 0 : (double)m->lo[i];
	range.hi = none ? 0 : (double)m->hi[i];
	range.meanabs = scheme->mean ? m->mean[i] : 0;
	if (shift) {
		double lo = range.lo;

		range.lo = (double)ql_fit_minimum(&range, half);
		*shift = (float)range.lo;
		/* so far off that rounding has lost the minimum, or beyond float16: as choose_round in scales.c */
		if (half && (fabs(range.lo) < fabs(lo) / 2 || !ql_fit_half(&(double){fabs(range.lo)}, 1)))
			return false;
	}
	s = ql_fit_scale(scheme, &range, &j->q->codes);
	if (half && !ql_fit_half(&s, 1))
		return false;
	*scale = ql_fit_rounded(scheme, s, &range, &j->q->codes, j->round, zero);
	return true;
}

/* The zero points do not depend on the data under QL_FIT_LARGEST. */
static int32_t fixed_zero(const struct job *j)
{
	struct ql_stats none = {.count = 1};

	return j->spec->scheme->zero && !j->spec->scheme->offset ? j->spec->scheme->zero(&none, &j->q->codes, 1) : 0;
}

/* Returns whether some are left. */
static bool fit_by_rule(const struct job *j, struct many *m, int64_t n, float *scale, float *shift, int32_t *zero)
{
	const struct ql_codes *codes = &j->q->codes;
	bool largest = j->spec->scheme->rule == QL_FIT_LARGEST;
	int32_t left = 0;

	if (shift)
		fit_minimums[j->kernels->simd->variant](m, n, j->divisor, j->round);
	else
		fit_many[j->kernels->simd->variant](m, n, largest, j->divisor, j->round);
	if (shift)
		memcpy(shift, m->shift, (size_t)n * sizeof(*shift));
	memcpy(scale, m->scale, (size_t)n * sizeof(*scale));
	for (int64_t i = 0; i < n; i++)
		left |= m->left[i];
	if (zero && !largest)
		zeros_of_many[j->kernels->simd->variant](m, n, (float)codes->lo, (float)codes->hi, zero);
	for (int64_t i = 0; zero && largest && i < n; i++)
		zero[i] = j->fixed_zero;
	return left;
}

static bool fit_group(const struct job *j, struct many *m, int64_t n, const struct ql_codec_runs *r, int64_t at)
{
	float *scale = r->scale + at, *shift = r->shift ? r->shift + at : NULL;
	int32_t *zero = r->zero ? r->zero + at : NULL, unused;

	if (j->by_rule && !fit_by_rule(j, m, n, scale, shift, zero))
		return true;
	for (int64_t i = 0; i < n; i++)
		if ((!j->by_rule || m->left[i]) &&
			!fit_one(j, m, i, &scale[i], zero ? &zero[i] : &unused, shift ? &shift[i] : NULL))
			return false;
	return true;
}

/* ---- the tensors of params ---- */

/* Scales are normal numbers of float16, or 0, so that moving the fields converts them. */
static void put_scales(struct ql_tensor *t, int64_t first, int64_t n, const float *x)
{
	uint16_t *half = (uint16_t *)t->storage->data + first;

	if (t->dtype == QL_float32)
		memcpy((float *)t->storage->data + first, x, (size_t)n * sizeof(*x));
	for (int64_t i = 0; i < n && t->dtype != QL_float32; i++) {
		uint32_t bits;

		memcpy(&bits, &x[i], sizeof(bits));
		half[i] = (uint16_t)(bits ? (bits - 0x38000000u) >> 13 : 0);
	}
}

static void put_shifts(struct ql_tensor *t, int64_t first, int64_t n, const float *x)
{
	ql_dtypes[t->dtype].from_f32(t->storage->data, first, 1, n, x);
}

static void put_zeros(struct ql_tensor *t, int64_t first, int64_t n, const int32_t *x)
{
	for (int64_t i = 0; i < n; i++)
		if (ql_dtypes[t->dtype].bits == 8)
			((uint8_t *)t->storage->data)[first + i] = (uint8_t)x[i];
		else
			((uint16_t *)t->storage->data)[first + i] = (uint16_t)x[i];
}

/* What the fit needs of n runs from number `at` on. */
static void measure(const struct job *j, const struct ql_codec_runs *r, int64_t at, int64_t n, struct many *m)
{
	int64_t count;

	if (!j->spec->scheme->mean) {
		j->kernels->quantize->ranges(r->x + at * r->n, r->n, n, m->lo, m->hi);
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		m->mean[i] = ql_grain_mean(
			j->kernels->simd->variant, r->x + (at + i) * r->n, r->n, j->spec->block > 0, &count);
		m->lo[i] = m->hi[i] = 0;
	}
}

static bool fit_runs(void *arg, const struct ql_codec_runs *r)
{
	struct job *j = arg;
	struct many m;

	for (int64_t at = 0, n; at < r->count; at += n) {
		n = ql_min64(MANY, r->count - at);
		measure(j, r, at, n, &m);
		if (!fit_group(j, &m, n, r, at)) {
			atomic_store(&j->unfit, true);
			return false;
		}
	}
	put_scales(j->q->scale, r->first, r->count, r->scale);
	if (r->shift)
		put_shifts(j->q->shift, r->first, r->count, r->shift);
	if (r->zero)
		put_zeros(j->q->zero_point, r->first, r->count, r->zero);
	return true;
}

/* ---- all runs ---- */

bool ql_fit_runs_can(const struct ql_spec *spec, const struct ql_tensor *x, const struct ql_qparams *q)
{
	const struct ql_scheme *s = spec->scheme;
	struct ql_grain g = ql_grain_of(x->rank, x->shape, spec->dtype, q->axis, q->block_axis, q->block);

	if (!s || !(s->affine || s->grid) || (s->mean && s->zero_code) || s->host || s->any_scale || spec->has_scale ||
		spec->has_zero || spec->each_bits || spec->stochastic)
		return false;
	if (!spec->observer->plain || ql_fit_functions_has(spec) || q->codes.scaling)
		return false;
	if (spec->format && spec->format->scale && strcmp(spec->format->scale, "float32") != 0)
		return false; /* scales that are rounded otherwise, or coded */
	return !ql_codebook_bytes(spec) && !ql_is_remote(x) && g.scales > 1 && g.row > 0 && ql_encode_fits(&g);
}

static void release_scales(struct ql_ctx *ctx, struct ql_qparams *q)
{
	struct ql_tensor **all[] = {&q->scale, &q->zero_point, &q->shift};

	for (int i = 0; i < 3; i++) {
		ql_tensor_release(ctx, *all[i]);
		*all[i] = NULL;
	}
}

static enum ql_status run(struct ql_ctx *ctx, struct job *j, const struct ql_tensor *x, struct ql_tensor *codes)
{
	struct ql_codec_fit fit = {fit_runs, j};
	struct ql_qparams *q = codes->q;
	unsigned dtype = j->round == QL_SCALE_FLOAT ? QL_float32 : QL_float16;
	enum ql_status status = ql_scales_new(ctx, j->spec, x->rank, x->shape, dtype, q);

	atomic_store(&j->unfit, false);
	return status ? status : ql_encode_fitted(ctx, x, codes, &fit, &q->nan_count, &q->inf_count);
}

enum ql_status ql_fit_runs(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_tensor *codes)
{
	const struct ql_scheme *scheme = spec->scheme;
	struct ql_stats one = {.hi = 1, .count = 1};
	struct job j = {.spec = spec, .kernels = ctx->kernels, .q = codes->q};
	enum ql_status status;

	if (ql_scales_may_be_half(spec))
		j.round = scheme->tight ? QL_SCALE_HALF_UP : QL_SCALE_HALF;
	j.by_rule = scheme->rule == QL_FIT_LARGEST || scheme->rule == QL_FIT_RANGE || scheme->shift;
	j.fixed_zero = fixed_zero(&j);
	if (scheme->grid)
		j.divisor = (double)codes->q->codes.grid->unit;
	else
		j.divisor =
			scheme->mean ? 1 : nearbyint(1 / scheme->fit(&one, &codes->q->codes)); /* a number of steps */
	status = run(ctx, &j, x, codes);
	if (status || !j.unfit)
		return status;
	release_scales(ctx, codes->q);
	j.round = QL_SCALE_FLOAT;
	return run(ctx, &j, x, codes);
}
