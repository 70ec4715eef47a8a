/* SPDX-License-Identifier: MIT
 * The explicit numbers of a spec: scale, zero point and minimum; octaves.
 */
#include <math.h>

#include "quant/spec_format.h"

/* True for symmetric codes, whose zero point is determined by the scheme. */
static bool fixed_zero(const struct ql_spec *s)
{
	return s->scheme->affine && !s->scheme->tight;
}

int32_t ql_spec_zero(const struct ql_spec *spec, int64_t i)
{
	struct ql_codes codes = ql_spec_codes(spec, true, i);

	if (spec->has_zero && !spec->zero_tensor)
		return (int32_t)spec->zero;
	return fixed_zero(spec) ? spec->scheme->zero(&(struct ql_stats){0}, &codes, 1) : 0;
}

enum ql_status ql_spec_check_scale(struct ql_ctx *ctx, const char *who, const struct ql_spec *s, double scale)
{
	if (isfinite((float)scale) && ((float)scale > 0 || s->scheme->host))
		return QL_OK;
	if (s->scheme->host)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: scale: wanted a finite number, got %g", who, scale);
	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: scale: wanted a finite number > 0, got %g", who, scale);
}

enum ql_status ql_spec_check_zero(struct ql_ctx *ctx, const char *who, const struct ql_spec *s, double zero, int64_t i)
{
	struct ql_codes codes = ql_spec_codes(s, true, i);
	int32_t lo = codes.lo, hi = codes.hi;

	if (zero != rint(zero))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: zero_point: wanted whole numbers, got %g", who, zero);
	if (fixed_zero(s)) {
		lo = hi = s->scheme->zero(&(struct ql_stats){0}, &codes, 1);
		if (zero != lo)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"%s: zero_point: wanted %d with the scheme symmetric, got %g; scheme='asymmetric' "
				"takes others",
				who, lo, zero);
	}
	if (zero >= lo && zero <= hi)
		return QL_OK;
	if (s->each_bits)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"%s: zero_point: wanted %d to %d for channel %lld of %d bits, got %g", who, lo, hi,
			(long long)i + 1, codes.bits, zero);
	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: zero_point: wanted %d to %d for %s%s, got %g", who, lo, hi,
		ql_dtype_name(s->dtype), codes.bits < ql_dtypes[s->dtype].bits ? " of fewer bits" : "", zero);
}

/* Lists must have equal lengths; one element applies to all. */
static enum ql_status check_lengths(struct ql_ctx *ctx, const struct ql_spec *s)
{
	const struct ql_tensor *list[] = {s->each_bits, s->scale_tensor, s->zero_tensor, s->minimum_tensor};
	static const char *const names[] = {"bits", "scale", "zero_point", "minimum"};
	int first = -1;

	for (int i = 0; i < 4; i++) {
		if (!list[i])
			continue;
		if (i > 0 && list[i]->q)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: %s: wanted plain numbers, got a quantized tensor",
				names[i]);
		if (first >= 0 && ql_tensor_nelem(list[i]) != ql_tensor_nelem(list[first]))
			return ql_fail(ctx, QL_ERR_SHAPE, "spec: %s: wanted as many numbers as %s has, %lld, got %lld",
				names[i], names[first], (long long)ql_tensor_nelem(list[first]),
				(long long)ql_tensor_nelem(list[i]));
		first = first < 0 ? i : first;
	}
	for (int i = 1; i < 4 && !s->axis && !s->block; i++)
		if (list[i])
			return ql_fail(ctx, QL_ERR_SHAPE,
				"spec: %s: wanted one number without an axis or block, got %lld", names[i],
				(long long)ql_tensor_nelem(list[i]));
	return QL_OK;
}

enum ql_status ql_spec_check_minimum(struct ql_ctx *ctx, const char *who, double minimum)
{
	if (isfinite((float)minimum))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: minimum: wanted a finite number, got %g", who, minimum);
}

static enum ql_status check_values(struct ql_ctx *ctx, const struct ql_spec *s)
{
	int64_t scales = s->scale_tensor ? ql_tensor_nelem(s->scale_tensor) : 1, zeros = 1;
	int64_t minimums = s->minimum_tensor ? ql_tensor_nelem(s->minimum_tensor) : 1;
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < scales && s->has_scale && !status; i++)
		status = ql_spec_check_scale(
			ctx, "spec", s, s->scale_tensor ? ql_tensor_at_f64(s->scale_tensor, i) : s->scale);
	if (s->zero_tensor || s->each_bits)
		zeros = ql_tensor_nelem(s->zero_tensor ? s->zero_tensor : s->each_bits);
	for (int64_t i = 0; i < zeros && s->has_zero && !status; i++)
		status = ql_spec_check_zero(
			ctx, "spec", s, s->zero_tensor ? ql_tensor_at_f64(s->zero_tensor, i) : (double)s->zero, i);
	for (int64_t i = 0; i < minimums && s->has_minimum && !status; i++)
		status = ql_spec_check_minimum(
			ctx, "spec", s->minimum_tensor ? ql_tensor_at_f64(s->minimum_tensor, i) : s->minimum);
	return status;
}

/* Reads the explicit scale, zero point and minimum. A tensor of one element counts as a number. */
static enum ql_status take_numbers(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	enum ql_status status = QL_OK;

	s->has_scale = f->has_scale;
	s->has_zero = f->has_zero_point;
	s->has_minimum = f->has_minimum;
	s->scale = f->scale;
	s->zero = f->zero_point;
	s->minimum = f->minimum;
	s->scale_tensor = f->scale_tensor;
	s->zero_tensor = f->zero_tensor;
	s->minimum_tensor = f->minimum_tensor;
	if (s->scale_tensor && ql_tensor_nelem(s->scale_tensor) == 1 && !s->scale_tensor->q) {
		s->scale = ql_tensor_at_f64(s->scale_tensor, 0);
		s->scale_tensor = NULL;
	}
	if (s->minimum_tensor && ql_tensor_nelem(s->minimum_tensor) == 1 && !s->minimum_tensor->q) {
		s->minimum = ql_tensor_at_f64(s->minimum_tensor, 0);
		s->minimum_tensor = NULL;
	}
	if (s->zero_tensor && ql_tensor_nelem(s->zero_tensor) == 1 && !s->zero_tensor->q) {
		double zero = ql_tensor_at_f64(s->zero_tensor, 0);

		status = ql_spec_check_zero(ctx, "spec", s, zero, 0);
		s->zero = status ? 0 : (int64_t)zero;
		s->zero_tensor = NULL;
	}
	return status;
}

/* With an explicit scale only, the zero point is 0, as in ONNX, or the middle of symmetric unsigned codes.
 * Symmetric signed codes have none; with bits per channel each has its own. */
static void choose_zero(struct ql_spec *s)
{
	bool is_signed = ql_dtypes[s->dtype].kind == QL_KIND_INT;

	if (s->has_zero && fixed_zero(s) && is_signed && !s->zero_tensor)
		s->has_zero = false; /* an explicit 0 */
	if (!s->has_scale || s->has_zero || !s->scheme->zero || (fixed_zero(s) && (is_signed || s->each_bits)))
		return;
	s->zero = ql_spec_zero(s, 0);
	s->has_zero = true;
}

double ql_spec_octaves(int bits)
{
	return bits <= 4 ? 6 : 16;
}

/* Zero points and minimums belong to a scale. */
static enum ql_status check_beside(struct ql_ctx *ctx, const struct ql_spec_fields *f, const struct ql_spec *s)
{
	if (f->has_zero_point && !f->has_scale)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: zero_point: wanted together with scale, got it alone");
	if (f->has_minimum && !(s->scheme && s->scheme->shift && !s->format))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: minimum: wanted a spec with +min beside it, got %s",
			s->format   ? s->format->doc.name
			: s->scheme ? s->scheme->doc.name
				    : ql_dtype_name(s->dtype));
	if (f->has_minimum && !f->has_scale)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: minimum: wanted together with scale, got it alone");
	return QL_OK;
}

enum ql_status ql_spec_make_numbers(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	bool is_log = s->scheme && s->scheme->table_length;
	enum ql_status status = check_beside(ctx, f, s);

	if (status)
		return status;
	if (f->octaves != 0 && (!is_log || !(f->octaves > 0 && f->octaves <= 120)))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: octaves: wanted 0 < octaves <= 120 with the scheme log, got %g", f->octaves);
	s->octaves = f->octaves != 0 ? f->octaves : ql_spec_octaves(s->bits);
	if (!s->scheme)
		return QL_OK;
	status = take_numbers(ctx, f, s);
	if (!status)
		status = check_lengths(ctx, s);
	if (!status)
		status = check_values(ctx, s);
	if (!status)
		choose_zero(s);
	return status;
}
