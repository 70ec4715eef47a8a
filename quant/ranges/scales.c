/* SPDX-License-Identifier: MIT
 * Scales, zero points and minimums of a spec from ranges: their dtypes, their rounding, and scales that are coded
 * themselves.
 */
#include "quant/ranges/scales.h"

#include <math.h>

#include "quant/ranges/fit.h"
#include "quant/ranges/fit_functions.h"
#include "quant/ranges/means.h"
#include "quant/ranges/observer.h"
#include "quant/ranges/quantize.h"
#include "tensor/codec.h"
#include "tensor/grid.h"
#include "tensor/scratch.h"

bool ql_scales_may_be_half(const struct ql_spec *spec)
{
	return spec->block && ql_dtypes[spec->dtype].bits <= 8 && !(spec->format && spec->format->scale);
}

bool ql_scales_have_zeros(const struct ql_spec *spec)
{
	return spec->scheme->zero &&
	       (spec->has_zero || spec->scheme->offset || ql_dtypes[spec->dtype].kind == QL_KIND_UINT);
}

enum ql_status ql_scales_new(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	unsigned dtype, struct ql_qparams *q)
{
	int64_t s_shape[QL_MAX_RANK];
	int s_rank = ql_grain_shape(rank, shape, q->axis, q->block_axis, q->block, s_shape);
	enum ql_status status = ql_tensor_new(ctx, dtype, s_rank, s_shape, &q->scale);

	if (!status && ql_scales_have_zeros(spec))
		status = ql_tensor_zeros(ctx, ql_dtype_whole(spec->dtype), s_rank, s_shape, &q->zero_point);
	if (!status && spec->scheme->shift)
		status = ql_tensor_zeros(ctx, dtype, s_rank, s_shape, &q->shift);
	return status;
}

void ql_scales_store(struct ql_tensor *t, int64_t i, double value)
{
	if (t->rank > 1)
		i += i / t->shape[t->rank - 1] * (t->stride[t->rank - 2] - t->shape[t->rank - 1]);
	if (ql_dtype_is_float(t->dtype))
		ql_dtypes[t->dtype].from_f64(t->storage->data, i, 1, 1, &value);
	else
		ql_dtypes[t->dtype].from_i64(t->storage->data, i, 1, 1, &(int64_t){(int64_t)value});
}

/* ---- computed from data ---- */

/* Chooses the rounding of scales: to float16 if all of them, and the minimums, are normal numbers in float16. *out: the
 * scales before rounding; NULL if they have not been computed. */
static enum ql_status choose_round(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_codes *all,
	int64_t n, const struct ql_stats *stats, enum ql_scale_round *round, const double **out)
{
	double *scale;

	*round = QL_SCALE_FLOAT;
	*out = NULL;
	if (!ql_scales_may_be_half(spec))
		return QL_OK;
	scale = ql_scratch_array(ctx, n, 2 * sizeof(*scale));
	if (!scale)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		struct ql_codes codes = spec->each_bits ? ql_spec_codes(spec, false, i) : *all;
		struct ql_stats range = stats[i];

		if (spec->scheme->shift)
			range.lo = (double)ql_fit_minimum(&range, true);
		scale[i] = ql_fit_scale(spec->scheme, &range, &codes);
		scale[n + i] = fabs(range.lo) < fabs(stats[i].lo) / 2 ? INFINITY : fabs(range.lo);
	}
	if (ql_fit_half(scale, spec->scheme->shift ? 2 * n : n))
		*round = spec->scheme->tight ? QL_SCALE_HALF_UP : QL_SCALE_HALF;
	*out = *round || !spec->scheme->shift ? scale : NULL; /* scales change with float32 minimums */
	return QL_OK;
}

enum ql_status ql_scales_spec(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_spec *of)
{
	const char *text = spec->format ? spec->format->scale : NULL;
	int dtype = text ? ql_dtype_by_name(text) : QL_float32;

	*of = (struct ql_spec){.dtype = dtype < 0 ? 0 : (unsigned)dtype};
	return dtype < 0 || !ql_dtype_is_float(of->dtype) ? ql_spec_parse(ctx, text ? text : "float32", of) : QL_OK;
}

/* The code of 1 under an outer scale of 1, for blocks of zeros. */
static int64_t code_of_one(const struct ql_spec *of)
{
	uint8_t code = 1;

	if (of->grid)
		ql_grid_encode(of->grid, 0, false, &(float){1}, &(float){1}, false, 1, &code);
	return code;
}

/* Sets the outer scale, if there is only one, from the largest scale before rounding. */
static void set_outer(struct ql_spec *of, double most)
{
	struct ql_stats stats = {.hi = most, .count = 1};
	struct ql_codes codes;
	int32_t zero;

	if (!of->scheme || of->axis || of->block)
		return;
	codes = ql_spec_codes(of, false, 0);
	of->has_scale = true;
	of->scale = (double)ql_fit(of->scheme, &stats, &codes, QL_SCALE_FLOAT, &zero);
}

/* Quantizes the float32 scales by the format's spec of scales. Scales above 0 that would become 0 get the smallest
 * code. */
static enum ql_status code_scales(struct ql_ctx *ctx, const struct ql_spec *of, struct ql_tensor **scale)
{
	struct ql_tensor *coded = NULL, *back = NULL;
	enum ql_status status = ql_quantize(ctx, *scale, of, &coded);
	const float *plain = ql_tensor_data(*scale);

	if (!status && coded->q)
		status = ql_decode(ctx, coded, &back);
	for (int64_t i = 0; back && i < ql_tensor_nelem(back); i++)
		if (coded->q && ((const float *)ql_tensor_data(back))[i] == 0)
			ql_scales_store(coded, i, plain[i] > 0 ? 1 : (double)code_of_one(of));
	ql_tensor_release(ctx, back);
	if (status) {
		ql_tensor_release(ctx, coded);
		return status;
	}
	ql_tensor_release(ctx, *scale);
	*scale = coded;
	return QL_OK;
}

/* Makes q->scale from n scales that a function found. */
static enum ql_status store_found(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	int64_t n, const double *scale, struct ql_qparams *q)
{
	double *most = ql_scratch_array(ctx, n, sizeof(*most));
	enum ql_status status = most ? QL_OK : QL_ERR_MEMORY;
	bool half;

	for (int64_t i = 0; i < n && !status; i++)
		most[i] = fabs(scale[i]);
	half = !status && ql_scales_may_be_half(spec) && ql_fit_half(most, n);
	if (!status)
		status = ql_scales_new(ctx, spec, rank, shape, half ? QL_float16 : QL_float32, q);
	for (int64_t i = 0; i < n && !status; i++)
		ql_scales_store(q->scale, i, scale[i]);
	return status;
}

/* Fills scale, zero_point and shift of q, for a tensor of `shape`, by the scheme's formula. */
static enum ql_status fit_ranges(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	int64_t n, const struct ql_stats *stats, struct ql_qparams *q)
{
	enum ql_scale_round round;
	struct ql_spec of;
	const double *known;
	double most = 0, scale;
	enum ql_status status = choose_round(ctx, spec, &q->codes, n, stats, &round, &known);

	if (!status)
		status = ql_scales_spec(ctx, spec, &of);
	if (!status)
		status = ql_scales_new(ctx, spec, rank, shape, round ? QL_float16 : QL_float32, q);
	for (int64_t i = 0; i < n && !status; i++) {
		struct ql_codes codes = spec->each_bits ? ql_spec_codes(spec, false, i) : q->codes;
		struct ql_stats range = stats[i];
		int32_t zero = 0;

		if (q->shift) {
			range.lo = (double)ql_fit_minimum(&range, round != QL_SCALE_FLOAT);
			ql_scales_store(q->shift, i, range.lo);
		}
		scale = known ? known[i] : ql_fit_scale(spec->scheme, &range, &codes);
		most = fmax(most, scale);
		if (of.scheme && range.lo == 0 && range.hi == 0)
			ql_scales_store(q->scale, i, 0);
		else
			ql_scales_store(
				q->scale, i, (double)ql_fit_rounded(spec->scheme, scale, &range, &codes, round, &zero));
		if (q->zero_point)
			ql_scales_store(q->zero_point, i, zero);
	}
	if (status || of.dtype == QL_float32)
		return status;
	set_outer(&of, most);
	return code_scales(ctx, &of, &q->scale);
}

enum ql_status ql_scales_fit_stats(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	int64_t n, const struct ql_stats *stats, struct ql_qparams *q)
{
	double *scale;
	enum ql_status status;

	if (!ql_fit_functions_has(spec))
		return fit_ranges(ctx, spec, rank, shape, n, stats, q);
	scale = ql_scratch_array(ctx, n, sizeof(*scale));
	if (!scale)
		return QL_ERR_MEMORY;
	status = ql_fit_functions_ranges(ctx, spec, n, stats, scale);
	return status ? status : store_found(ctx, spec, rank, shape, n, scale, q);
}

/* Fits the scales to all data, by the function of the format. */
static enum ql_status fit_data(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_grain *g,
	const struct ql_tensor *x, struct ql_qparams *q)
{
	double *scale = ql_scratch_array(ctx, g->scales, sizeof(*scale));
	int axis = q->block ? q->block_axis : x->rank - 1;
	enum ql_status status;

	if (!scale)
		return QL_ERR_MEMORY;
	status = ql_fit_functions_data(ctx, spec, g, x, axis, scale);
	return status ? status : store_found(ctx, spec, x->rank, x->shape, g->scales, scale, q);
}

enum ql_status ql_scales_fit(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, struct ql_qparams *q)
{
	struct ql_grain g = ql_grain_of(x->rank, x->shape, QL_float32, q->axis, q->block_axis, q->block);
	struct ql_stats *stats = ql_scratch_array(ctx, g.scales, sizeof(*stats));
	int64_t nan, inf;
	enum ql_status status;

	if (!stats)
		return QL_ERR_MEMORY;
	if (ql_fit_functions_has(spec) && spec->observer->plain)
		return fit_data(ctx, spec, &g, x, q);
	status = ql_grain_stats(ctx, &g, ql_tensor_data(x), stats, &nan, &inf);
	if (!status && spec->scheme->mean && spec->scheme->zero_code)
		status = ql_means(ctx, &g, ql_tensor_data(x), stats);
	if (!status)
		status = ql_observe_once(ctx, spec, &g, ql_tensor_data(x), stats);
	return status ? status : ql_scales_fit_stats(ctx, spec, x->rank, x->shape, g.scales, stats, q);
}

/* ---- double quantization ---- */

/* Makes the params of scales in blocks of `outer` around `mean`: x = table[code] * largest |x - mean| + mean. */
static enum ql_status outer_params(
	struct ql_ctx *ctx, const struct ql_spec *of, struct ql_tensor *scale, float mean, struct ql_qparams **out)
{
	struct ql_tensor *around = NULL;
	enum ql_status status = ql_tensor_clone(ctx, scale, &around);
	int64_t n = ql_tensor_nelem(scale);

	for (int64_t i = 0; i < n && !status; i++)
		((float *)ql_tensor_data(around))[i] -= mean;
	if (!status)
		status = ql_quantize_params(ctx, of, scale->rank, scale->shape, around, out);
	if (!status)
		status = ql_tensor_new(ctx, QL_float32, (*out)->scale->rank, (*out)->scale->shape, &(*out)->shift);
	for (int64_t i = 0; !status && i < ql_tensor_nelem((*out)->shift); i++)
		((float *)ql_tensor_data((*out)->shift))[i] = mean;
	ql_tensor_release(ctx, around);
	return status;
}

static float mean_of(const float *x, int64_t n)
{
	double sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += (double)x[i];
	return n ? (float)(sum / (double)n) : 0;
}

enum ql_status ql_scales_outer_spec(struct ql_ctx *ctx, int64_t outer, struct ql_spec *of)
{
	enum ql_status status = ql_spec_parse(ctx, "dynamic8", of);

	of->block = outer;
	return status;
}

enum ql_status ql_scales_code_outer(struct ql_ctx *ctx, int64_t outer, struct ql_qparams *q)
{
	struct ql_spec of;
	struct ql_tensor *plain = NULL, *codes = NULL;
	enum ql_status status = ql_scales_outer_spec(ctx, outer, &of);

	if (!status)
		status = ql_tensor_cast(ctx, q->scale, QL_float32, &plain);
	if (!status)
		status = ql_tensor_new(ctx, of.dtype, plain->rank, plain->shape, &codes);
	if (!status)
		status = outer_params(
			ctx, &of, plain, mean_of(ql_tensor_data(plain), ql_tensor_nelem(plain)), &codes->q);
	if (!status)
		status = ql_encode(ctx, plain, codes, NULL, NULL);
	ql_tensor_release(ctx, plain);
	if (status) {
		ql_tensor_release(ctx, codes);
		return status;
	}
	ql_tensor_release(ctx, q->scale);
	q->scale = codes;
	return QL_OK;
}

enum ql_status ql_scales_bytes(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, uint64_t *bytes)
{
	struct ql_spec of;
	uint64_t scales = 1, each = ql_scales_may_be_half(spec) ? 2 : 4, outer = 1;
	enum ql_status status = QL_OK;

	for (int d = 0; d < rank; d++) {
		scales *= (uint64_t)shape[d];
		outer *= d == rank - 1 && spec->outer ? (uint64_t)ql_ceil_div(shape[d], spec->outer)
						      : (uint64_t)shape[d];
	}
	if (spec->outer) {
		*bytes = scales + outer * 2 * sizeof(float);
	} else if (spec->format && spec->format->scale) {
		status = ql_scales_spec(ctx, spec, &of);
		if (!status)
			status = ql_quantize_bytes(ctx, &of, rank, shape, bytes);
	} else {
		each *= spec->scheme->shift ? 2 : 1;
		*bytes = scales * each; /* size: fewer scales than elements, of at most 8 bytes */
	}
	return status;
}
