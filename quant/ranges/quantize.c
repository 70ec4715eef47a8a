/* SPDX-License-Identifier: MIT
 * Computes params and codes from a spec and data; quant/ranges/fit.c fits one range.
 */
#include "quant/ranges/quantize.h"

#include <math.h>

#include "quant/blocks/block.h"
#include "quant/ranges/codebook.h"
#include "quant/ranges/fit.h"
#include "quant/ranges/fit_functions.h"
#include "quant/ranges/fit_runs.h"
#include "quant/ranges/scales.h"
#include "tensor/codec.h"
#include "tensor/encode_later.h"
#include "tensor/grain.h"
#include "tensor/grid.h"
#include "tensor/ragged.h"
#include "tensor/scratch.h"

static enum ql_status layout(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, struct ql_qparams *q)
{
	int axis = -1;
	enum ql_status status;

	q->axis = q->block_axis = -1;
	q->block = 0;
	if (spec->axis) {
		status = ql_axis(ctx, "quantize: axis", spec->axis, rank, &axis);
		if (status)
			return status;
	}
	if (spec->each_bits && ql_tensor_nelem(spec->each_bits) != shape[axis])
		return ql_fail(ctx, QL_ERR_SHAPE,
			"quantize: bits: wanted a number for each of the %lld channels of axis %d, got %lld",
			(long long)shape[axis], axis + 1, (long long)ql_tensor_nelem(spec->each_bits));
	if (!spec->block) {
		q->axis = (int8_t)axis;
		return QL_OK;
	}
	if (rank == 0)
		return ql_fail(
			ctx, QL_ERR_SHAPE, "quantize: block: wanted a tensor with at least one axis, got a number");
	q->block = (int32_t)spec->block;
	q->block_axis = (int8_t)(axis < 0 ? rank - 1 : axis);
	return ql_block_fits(spec) ? ql_block_check(ctx, spec, shape[q->block_axis]) : QL_OK;
}

/* ---- explicit scale, zero point and minimum ---- */

static enum ql_status check_given(
	struct ql_ctx *ctx, const char *what, const struct ql_tensor *given, const struct ql_tensor *to)
{
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (!given->q && ql_tensor_same_shape(given, to))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "quantize: %s: wanted a plain tensor of shape %s, got %s", what,
		ql_shape_text(to->rank, to->shape, a), ql_shape_text(given->rank, given->shape, b));
}

/* Checks tensors again, because they may have been written to since the spec was made. */
static enum ql_status given_scales(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *to)
{
	const struct ql_tensor *given = spec->scale_tensor;
	int64_t n = ql_tensor_nelem(to);
	enum ql_status status = given ? check_given(ctx, "scale", given, to) : QL_OK;

	for (int64_t i = 0; i < n && !status; i++) {
		double scale = given ? ql_tensor_at_f64(given, i) : spec->scale;

		status = ql_spec_check_scale(ctx, "quantize", spec, scale);
		if (!status)
			ql_scales_store(to, i, scale);
	}
	return status;
}

static enum ql_status given_zeros(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *to)
{
	const struct ql_tensor *given = spec->zero_tensor;
	int64_t n = ql_tensor_nelem(to);
	enum ql_status status = given ? check_given(ctx, "zero_point", given, to) : QL_OK;

	for (int64_t i = 0; i < n && !status; i++) {
		double zero = given ? ql_tensor_at_f64(given, i) : ql_spec_zero(spec, i);

		status = ql_spec_check_zero(ctx, "quantize", spec, zero, spec->each_bits ? i : 0);
		if (!status)
			ql_scales_store(to, i, zero);
	}
	return status;
}

static enum ql_status given_minimums(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *to)
{
	const struct ql_tensor *given = spec->minimum_tensor;
	int64_t n = ql_tensor_nelem(to);
	enum ql_status status = given ? check_given(ctx, "minimum", given, to) : QL_OK;

	for (int64_t i = 0; i < n && !status; i++) {
		double minimum = given ? ql_tensor_at_f64(given, i) : spec->minimum;

		status = ql_spec_check_minimum(ctx, "quantize", minimum);
		if (!status)
			ql_scales_store(to, i, minimum);
	}
	return status;
}

static enum ql_status given_numbers(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_qparams *q)
{
	enum ql_status status = given_scales(ctx, spec, q->scale);

	if (!status && q->zero_point)
		status = given_zeros(ctx, spec, q->zero_point);
	return status || !spec->has_minimum ? status : given_minimums(ctx, spec, q->shift);
}

/* Explicit float16 scales of blocks stay float16, beside minimums that are float16 too, and those in the dtype of the format's scales
 * that dtype. */
static unsigned given_dtype(const struct ql_spec *spec)
{
	const char *own = spec->format ? spec->format->scale : NULL;
	bool half = spec->block && spec->scale_tensor && spec->scale_tensor->dtype == QL_float16;

	if (spec->has_minimum)
		half = half && spec->minimum_tensor && spec->minimum_tensor->dtype == spec->scale_tensor->dtype;
	if (own && spec->scale_tensor && (int)spec->scale_tensor->dtype == ql_dtype_by_name(own))
		return spec->scale_tensor->dtype;
	return half ? QL_float16 : QL_float32;
}

enum ql_status ql_quantize_stats(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n,
	const struct ql_stats *stats, struct ql_tensor **scale, struct ql_tensor **zero)
{
	struct ql_qparams q = {.axis = spec->axis ? 0 : -1, .block_axis = -1};
	enum ql_status status;

	q.codes = ql_spec_codes(spec, false, 0);
	status = ql_scales_fit_stats(ctx, spec, spec->axis ? 1 : 0, &n, n, stats, &q);
	*scale = status ? NULL : q.scale;
	*zero = status ? NULL : q.zero_point;
	if (status) {
		ql_tensor_release(ctx, q.scale);
		ql_tensor_release(ctx, q.zero_point);
	}
	ql_tensor_release(ctx, q.shift);
	return status;
}

/* Copies the bits of each channel, because the spec only borrows them. */
static enum ql_status take_bits(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_qparams *q)
{
	enum ql_status status = ql_tensor_clone(ctx, spec->each_bits, &q->bits);

	if (!status)
		ql_qparams_settle(ctx, q, spec->dtype);
	return status;
}

/* Quantizes with a format of quant/blocks. */
static enum ql_status quantize_blocks(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *plain, struct ql_tensor **out)
{
	struct ql_qparams place;
	enum ql_status status = layout(ctx, spec, plain->rank, plain->shape, &place);

	return status ? status : ql_block_quantize(ctx, spec, plain, place.block_axis, out);
}

/* Gives only the params of quantize_blocks. */
static enum ql_status block_params(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, struct ql_qparams **out)
{
	struct ql_tensor *codes;
	enum ql_status status = quantize_blocks(ctx, spec, x, &codes);

	if (status)
		return status;
	*out = ql_qparams_keep(codes->q);
	ql_tensor_release(ctx, codes);
	return QL_OK;
}

/* zeros{quant=}, and ranges that a device finds: any scale decodes 0 to 0. quant_min and quant_max can exclude zero point 0. */
static struct ql_spec unit_scale(const struct ql_spec *spec)
{
	struct ql_codes codes = ql_spec_codes(spec, true, 0);
	struct ql_spec unit = *spec;

	unit.scale = 1;
	if (!spec->each_bits) {
		int32_t zero = ql_spec_zero(spec, 0);

		unit.zero = zero < codes.lo ? codes.lo : zero > codes.hi ? codes.hi : zero;
		unit.has_zero = true;
	}
	return unit;
}

enum ql_status ql_quantize_layout(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, struct ql_qparams **out)
{
	struct ql_qparams *q = ql_alloc_zeroed(ctx, sizeof(*q));
	enum ql_status status;

	*out = NULL;
	if (!q)
		return QL_ERR_MEMORY;
	q->refs = 1;
	q->scheme = spec->scheme;
	q->format = spec->format;
	q->from = QL_float32;
	q->codes = ql_spec_codes(spec, spec->has_scale, 0);
	status = layout(ctx, spec, rank, shape, q);
	if (status)
		ql_qparams_release(ctx, q);
	else
		*out = q;
	return status;
}

enum ql_status ql_quantize_params(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	struct ql_tensor *x, struct ql_qparams **out)
{
	struct ql_qparams *q;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status;

	*out = NULL;
	if (x && ql_block_fits(spec))
		return block_params(ctx, spec, x, out);
	status = ql_quantize_layout(ctx, spec, rank, shape, &q);
	if (status) {
		ql_scratch_release(ctx, mark);
		return status;
	}
	if (ql_block_fits(spec)) {
		status = ql_block_zeros(ctx, spec, rank, shape, q);
	} else if (!spec->has_scale && x) {
		status = ql_scales_fit(ctx, spec, x, q);
	} else {
		struct ql_spec unit = spec->has_scale ? *spec : unit_scale(spec);

		status = ql_scales_new(ctx, spec, rank, shape, given_dtype(spec), q);
		if (!status)
			status = given_numbers(ctx, &unit, q);
	}
	if (!status && spec->each_bits)
		status = take_bits(ctx, spec, q);
	if (!status)
		status = ql_codebook_learn(ctx, spec, x, q);
	ql_scratch_release(ctx, mark);
	if (status)
		ql_qparams_release(ctx, q);
	else
		*out = q;
	return status;
}

/* Gives x as contiguous plain float32. */
static enum ql_status plain_f32(struct ql_ctx *ctx, struct ql_tensor *x, struct ql_tensor **out)
{
	if (x->dtype == QL_float32 && ql_tensor_is_contiguous(x)) {
		*out = ql_tensor_keep(x);
		return QL_OK;
	}
	return ql_tensor_cast(ctx, x, QL_float32, out);
}

/* Sets codes->q and encodes, in one pass over the values where that is possible. */
static enum ql_status params_and_codes(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *plain, struct ql_tensor *codes)
{
	enum ql_status status = ql_quantize_layout(ctx, spec, plain->rank, plain->shape, &codes->q);

	if (status)
		return status;
	if (ql_fit_runs_can(spec, plain, codes->q))
		return ql_fit_runs(ctx, spec, plain, codes);
	ql_qparams_release(ctx, codes->q);
	status = ql_quantize_params(ctx, spec, plain->rank, plain->shape, plain, &codes->q);
	return status ? status
		      : (spec->stochastic ? ql_encode_stochastic : ql_encode)(
				ctx, plain, codes, &codes->q->nan_count, &codes->q->inf_count);
}

enum ql_status ql_quantize(struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_spec *spec, struct ql_tensor **out)
{
	struct ql_tensor *plain = NULL, *codes = NULL;
	enum ql_status status;

	*out = NULL;
	if (x->q)
		return ql_fail(ctx, QL_ERR_DTYPE,
			"quantize: wanted plain numbers, got a tensor that is already quantized; use "
			":requantize()");
	if (ql_dtype_is_float(spec->dtype))
		return ql_tensor_cast(ctx, x, spec->dtype, out);
	if (spec->requant)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"quantize: rounding: wanted integer results for '%s' (out= of an op that stays in "
			"integers, requantize), got floats, which are divided by the scale",
			ql_requant_name(spec->requant));
	status = plain_f32(ctx, x, &plain);
	if (!status && ql_block_fits(spec)) {
		status = quantize_blocks(ctx, spec, plain, out);
		ql_tensor_release(ctx, plain);
		if (!status)
			(*out)->q->from = x->dtype;
		return status;
	}
	if (!status)
		status = ql_tensor_new(ctx, spec->dtype, x->rank, x->shape, &codes);
	if (!status)
		status = params_and_codes(ctx, spec, plain, codes);
	if (!status)
		codes->q->from = x->dtype;
	if (!status && spec->outer)
		status = ql_scales_code_outer(ctx, spec->outer, codes->q);
	ql_tensor_release(ctx, plain);
	if (status)
		ql_tensor_release(ctx, codes);
	else
		*out = codes;
	return status;
}

enum ql_status ql_quantize_later(
	struct ql_ctx *ctx, struct ql_tensor *x, const struct ql_spec *spec, struct ql_tensor **out)
{
	struct ql_qparams *q = NULL;
	enum ql_status status;

	*out = NULL;
	if (x->q || spec->stochastic || spec->requant || spec->outer || !spec->scheme || !spec->scheme->affine ||
		spec->axis || spec->block || !ql_encode_can_wait(x, spec->dtype))
		return QL_OK;
	status = ql_quantize_params(ctx, spec, x->rank, x->shape, x, &q);
	if (!status && !q->shift && !q->bits)
		status = ql_encode_later(ctx, x, spec->dtype, q, out);
	if (*out)
		q->from = x->dtype;
	ql_qparams_release(ctx, q);
	return status;
}

enum ql_status ql_quantize_result(struct ql_ctx *ctx, struct ql_call *call, const struct ql_spec *spec)
{
	struct ql_tensor *q;
	enum ql_status status;

	if (!spec || call->out[0]->q)
		return QL_OK;
	status = ql_quantize(ctx, call->out[0], spec, &q);
	if (status)
		return status;
	ql_tensor_release(ctx, call->out[0]);
	call->out[0] = q;
	return QL_OK;
}

static enum ql_status range_by_function(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_stats *stats, float *scale)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	double found = 0;
	enum ql_status status = ql_fit_functions_ranges(ctx, spec, 1, stats, &found);

	*scale = (float)found;
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_quantize_range(
	struct ql_ctx *ctx, const struct ql_spec *spec, double lo, double hi, float *scale, int32_t *zero)
{
	struct ql_stats stats = {.lo = lo, .hi = hi, .meanabs = (fabs(lo) + fabs(hi)) / 2, .count = 1};
	struct ql_codes codes;

	if (!isfinite(lo) || !isfinite(hi) || lo > hi)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "params: wanted finite lo <= hi, got %g and %g", lo, hi);
	if (!spec->scheme)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "params: wanted a spec with codes, got %s", ql_dtype_name(spec->dtype));
	codes = ql_spec_codes(spec, false, 0);
	if (spec->each_bits)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"params: bits: wanted one number, because one range is given, got a list");
	*scale = ql_fit(spec->scheme, &stats, &codes, QL_SCALE_FLOAT, zero);
	return ql_fit_functions_has(spec) ? range_by_function(ctx, spec, &stats, scale) : QL_OK;
}

/* ---- sizes ---- */

/* Equal bits of all channels are stored as one number. */
static bool differ(const struct ql_tensor *bits)
{
	int64_t n = ql_tensor_nelem(bits);

	for (int64_t i = 1; i < n; i++)
		if (ql_tensor_at_f64(bits, i) != ql_tensor_at_f64(bits, 0))
			return true;
	return false;
}

/* Bytes of the codes if each channel of `row` elements has its own number of bits. */
static uint64_t channel_bytes(const struct ql_tensor *bits, int64_t row)
{
	uint64_t bytes = 0;

	for (int64_t i = 0; i < ql_tensor_nelem(bits);
		i++) /* size: as many rows, each below 2^37 bytes, as in memory */
		bytes += ql_ragged_row_bytes(row, (int)ql_tensor_at_f64(bits, i));
	return bytes;
}

enum ql_status ql_quantize_bytes(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, uint64_t *bytes)
{
	int64_t s_shape[QL_MAX_RANK];
	struct ql_qparams q;
	uint64_t rows = 1, scales = 1, row = rank ? (uint64_t)shape[rank - 1] : 1, more = 0;
	int s_rank;
	enum ql_status status;

	for (int d = 0; d < rank; d++)
		if (shape[d] < 0 || (d < rank - 1 && !ql_size_mul(rows, (uint64_t)shape[d], &rows)) ||
			rows > UINT32_MAX || row > UINT32_MAX)
			return ql_fail(ctx, QL_ERR_OVERFLOW,
				"estimate: wanted sizes of a tensor that fits in memory, got a larger one");
	/* size: rows and row are below 2^32, a row has at most 8 bytes an element */
	*bytes =
		rank ? ql_rows_bytes((int64_t)rows, (int64_t)row, spec->dtype) : (ql_dtypes[spec->dtype].bits + 7u) / 8;
	if (!spec->scheme)
		return QL_OK;
	status = layout(ctx, spec, rank, shape, &q);
	if (status)
		return status;
	s_rank = ql_grain_shape(rank, shape, q.axis, q.block_axis, q.block, s_shape);
	for (int d = 0; d < s_rank; d++)
		scales *= (uint64_t)s_shape[d];
	if (spec->each_bits && differ(spec->each_bits))
		*bytes = channel_bytes(spec->each_bits, (int64_t)(rows * row / scales));
	if (ql_block_fits(spec))
		more = ql_block_bytes(spec, scales);
	else
		status = ql_scales_bytes(ctx, spec, s_rank, s_shape, &more);
	*bytes += more + ql_codebook_bytes(spec);
	if (spec->each_bits && differ(spec->each_bits))
		*bytes += scales;
	if (ql_scales_have_zeros(spec))
		*bytes += scales * (ql_dtypes[ql_dtype_whole(spec->dtype)].bits / 8);
	return status;
}

/* ---- consistency ---- */

static enum ql_status check_codes(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	int64_t n = ql_tensor_nelem(t), behind = 1;

	for (int d = t->q->axis + 1; d < t->rank; d++)
		behind *= t->shape[d];
	for (int64_t i = 0; i < n; i++) {
		struct ql_codes codes =
			t->q->bits ? ql_qparams_codes(t->q, t->dtype, i / behind % t->shape[t->q->axis]) : t->q->codes;
		/* codes from other programs may use the whole dtype; fewer bits are enforced */
		bool fewer = codes.bits < ql_dtypes[t->dtype].bits;
		int64_t lo = fewer ? codes.lo : ql_dtypes[t->dtype].lo, hi = fewer ? codes.hi : ql_dtypes[t->dtype].hi;
		double code = ql_tensor_at_f64(t, i);

		if (code < (double)lo || code > (double)hi)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "check: code %lld: wanted %lld to %lld, got %g",
				(long long)i + 1, (long long)lo, (long long)hi, code);
	}
	return QL_OK;
}

static enum ql_status check_shapes(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	const struct ql_qparams *q = t->q;
	int64_t shape[QL_MAX_RANK];
	struct ql_tensor wanted = {
		.rank = (uint8_t)ql_grain_shape(t->rank, t->shape, q->axis, q->block_axis, q->block, shape)};

	for (int d = 0; d < wanted.rank; d++)
		wanted.shape[d] = shape[d];
	if (ql_tensor_same_shape(&wanted, q->scale) &&
		(!q->zero_point || ql_tensor_same_shape(&wanted, q->zero_point)) &&
		(!q->shift || ql_tensor_same_shape(&wanted, q->shift)))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "check: wanted one scale per group, got another number");
}

/* Scales that are quantized themselves may be 0, for blocks of zeros, and slightly negative if they are coded around
 * their mean. Those of quant/blocks may be any finite number. */
static enum ql_status check_numbers(
	struct ql_ctx *ctx, const struct ql_tensor *t, const float *scale, const float *shift)
{
	const struct ql_qparams *q = t->q;
	int64_t n = ql_tensor_nelem(q->scale);
	bool free = q->scheme->any_scale || (q->format && q->format->blocks);
	bool none = ql_dtype_is_binary(t->dtype) || q->scale->q || (q->codes.grid && !ql_grid_has_zero(q->codes.grid));

	for (int64_t i = 0; i < n; i++) {
		double s = (double)scale[i], z = q->zero_point ? ql_tensor_at_f64(q->zero_point, i) : 0;

		if (!isfinite(s) || (s < 0 && !free && !(q->scale->q && q->scale->q->shift)) ||
			(s == 0 && !free && !none))
			return ql_fail(ctx, QL_ERR_ARGUMENT, "check: scale %lld: wanted a finite number > 0, got %g",
				(long long)i + 1, s);
		if (z < (double)ql_dtypes[t->dtype].lo || z > (double)ql_dtypes[t->dtype].hi)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "check: zero_point %lld: wanted %lld to %lld, got %g",
				(long long)i + 1, (long long)ql_dtypes[t->dtype].lo, (long long)ql_dtypes[t->dtype].hi,
				z);
		if (q->shift && !isfinite(shift[i]))
			return ql_fail(ctx, QL_ERR_ARGUMENT, "check: minimum %lld: wanted a finite number, got %g",
				(long long)i + 1, (double)shift[i]);
	}
	return QL_OK;
}

static enum ql_status check_params(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int64_t n = ql_tensor_nelem(t->q->scale);
	float *numbers = ql_scratch_array(ctx, n, 2 * sizeof(*numbers));
	enum ql_status status = numbers ? check_shapes(ctx, t) : QL_ERR_MEMORY;

	if (!status)
		status = ql_qparams_scales(ctx, t->q->scale, numbers);
	if (!status && t->q->shift)
		status = ql_qparams_scales(ctx, t->q->shift, numbers + n);
	if (!status)
		status = check_numbers(ctx, t, numbers, numbers + n);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_quantize_check(struct ql_ctx *ctx, struct ql_tensor *t)
{
	enum ql_status status = t->q ? check_params(ctx, t) : QL_OK;

	return status || !t->q ? status : check_codes(ctx, t);
}
