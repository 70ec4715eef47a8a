/* SPDX-License-Identifier: MIT
 * The fields of a spec that its format determines, and the options of scales and code range.
 */
#include "quant/spec_format.h"

#include <string.h>

#include "quant/importance.h"
#include "tensor/grid.h"
#include "tensor/nearest.h"

unsigned ql_spec_unsigned(unsigned dtype)
{
	for (unsigned i = 0; i < QL_DTYPE_COUNT; i++)
		if (ql_dtypes[i].kind == QL_KIND_UINT && ql_dtypes[i].bits == ql_dtypes[dtype].bits)
			return i;
	return dtype;
}

/* Returns a given field that only formats with their own fit (quant/blocks) determine; NULL: none is given. */
static const char *decided(const struct ql_spec_fields *f)
{
	return f->observer || f->choose                      ? "observer"
	       : f->has_bins                                 ? "bins"
	       : f->has_scale                                ? "scale"
	       : f->scaling                                  ? "scaling"
	       : f->rounding && strcmp(f->rounding, "float") ? "rounding"
							     : NULL;
}

enum ql_status ql_spec_make_format(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	const struct ql_quant_format *format = s->format;
	const char *given = f->has_bits || f->each_bits ? "bits"
			    : f->scheme                 ? "scheme"
			    : f->with_minimum           ? "+min"
			    : f->has_zero_point         ? "zero_point"
							: NULL;

	if (!given && format->blocks)
		given = decided(f);
	if (given)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: %s: wanted none beside the format %s, which decides it",
			given, format->doc.name);
	if (format->fixed && f->has_block && f->block != format->block)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: block: wanted %lld, the block of the format %s, got %lld",
			(long long)format->block, format->doc.name, (long long)f->block);
	s->dtype = format->dtype;
	s->bits = format->bits ? format->bits : ql_dtypes[format->dtype].bits;
	s->scheme = format->scheme;
	s->grid = ql_quant_format_table(format);
	s->scaling = format->scaling;
	return QL_OK;
}

enum ql_status ql_spec_make_scaling(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	const struct ql_minifloat *m = s->grid ? s->grid->minifloat : NULL;

	if (f->scaling && (!s->scheme || s->scheme->mean || s->scheme->shift || s->scheme->host || f->has_scale))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: scaling: wanted a scale of max|x| beside it, got %s",
			f->has_scale                   ? "an explicit scale"
			: s->scheme && s->scheme->host ? s->format->doc.name
			: s->scheme                    ? s->scheme->doc.name
						       : ql_dtype_name(s->dtype));
	if (f->scaling && !ql_scaling_by_name(f->scaling, &s->scaling))
		return ql_fail_choice(ctx, "spec: scaling", ql_scaling_names, f->scaling);
	if (f->scaling && s->format && s->format->scaling && !s->scaling)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: scaling: wanted a power of two for the format %s, got exact", s->format->doc.name);
	if (f->scaling && s->scheme->tight && s->scaling && s->scaling != QL_SCALING_POW2)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: scaling: wanted exact or pow2 with the scheme %s, got %s",
			s->scheme->doc.name, f->scaling);
	if (f->has_saturate && !(m && (m->infinity || m->nan)))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: saturate: wanted a format with infinity or NaN beside it (fp8_e4m3, fp8_e5m2), got %s",
			s->format ? s->format->doc.name : ql_dtype_name(s->dtype));
	if (f->importance && !ql_importance_fits(s))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: importance: wanted none beside %s, which does not use it",
			s->format ? s->format->doc.name : ql_dtype_name(s->dtype));
	if (f->importance && s->format->functions && f->has_scale)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: importance: wanted none beside an explicit scale, got both for the format %s",
			s->format->doc.name);
	s->importance = f->importance;
	s->overflow = f->has_saturate && !f->saturate;
	return QL_OK;
}

enum ql_status ql_spec_check_outer(struct ql_ctx *ctx, const struct ql_spec_fields *f, const struct ql_spec *s)
{
	const char *got = !s->scheme                                            ? ql_dtype_name(s->dtype)
			  : s->format && (s->format->fixed || s->scheme->host)  ? s->format->doc.name
			  : s->scheme->shift || s->scheme->offset || s->scaling ? s->scheme->doc.name
			  : f->has_scale                                        ? "an explicit scale"
			  : !f->has_block && !(s->format && s->format->block)   ? "no block"
										: NULL;

	if (!got)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"spec: outer: wanted blocks whose scales come from max|x| beside it, without zero points, got %s", got);
}

enum ql_status ql_spec_make_bounds(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s)
{
	struct ql_codes codes;
	int64_t lo, hi, zero;

	if (!f->has_quant_min && !f->has_quant_max)
		return QL_OK;
	if (!s->scheme || !s->scheme->affine || s->scheme->mean || s->scheme->shift || s->scheme->any_scale ||
		s->each_bits || s->format)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: quant_min: wanted symmetric or asymmetric codes of one number of bits beside it, got %s",
			s->format   ? s->format->doc.name
			: s->scheme ? s->scheme->doc.name
				    : ql_dtype_name(s->dtype));
	codes = ql_spec_codes(s, true, 0);
	lo = f->has_quant_min ? f->quant_min : codes.lo;
	hi = f->has_quant_max ? f->quant_max : codes.hi;
	zero = s->scheme->offset || ql_dtypes[s->dtype].kind == QL_KIND_INT ? 0
									    : ((int64_t)codes.lo + codes.hi + 1) / 2;
	if (lo < codes.lo || hi > codes.hi || lo >= hi || (!s->scheme->offset && (lo >= zero || hi <= zero)))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: quant_min: wanted %d <= quant_min < quant_max <= %d%s, got %lld and %lld", codes.lo,
			codes.hi, s->scheme->offset ? "" : " around the zero point", (long long)lo, (long long)hi);
	codes = ql_spec_codes(s, false, 0);
	s->has_min = f->has_quant_min && lo != codes.lo;
	s->has_max = f->has_quant_max && hi != codes.hi;
	s->quant_min = s->has_min ? (int32_t)lo : 0;
	s->quant_max = s->has_max ? (int32_t)hi : 0;
	return QL_OK;
}
