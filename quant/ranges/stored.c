/* SPDX-License-Identifier: MIT
 * Formats in files: checks that the words and scales of a file are possible results of x:quantize.
 */
#include <math.h>
#include <string.h>

#include "quant/blocks/block.h"
#include "quant/user_format.h"
#include "quant/ranges/quantize.h"
#include "quant/ranges/scales.h"
#include "tensor/grid.h"
#include "tensor/op.h"
#include "tensor/scratch.h"

static bool scaling_by_name(const char *name, uint8_t *scaling)
{
	enum ql_scaling rule;
	bool known = ql_scaling_by_name(name, &rule);

	*scaling = known ? (uint8_t)rule : 0;
	return known;
}

static const char *scaling_name(uint8_t scaling)
{
	return ql_scaling_name((enum ql_scaling)scaling);
}

/* True if the grid is floating point with codes for overflow. */
static bool may_overflow(const struct ql_grid_table *grid)
{
	const struct ql_minifloat *m = grid ? grid->minifloat : NULL;

	return m && (m->infinity || m->nan);
}

static int bits_of(const struct ql_quant_format *f)
{
	return f->bits ? f->bits : ql_dtypes[f->dtype].bits;
}

static enum ql_status complete(struct ql_ctx *ctx, unsigned dtype, struct ql_qparams *q)
{
	const struct ql_quant_format *f = q->format;

	if (!f && (q->scheme->grid || q->scheme->host))
		return ql_fail(ctx, QL_ERR_FORMAT, "quantization note: wanted a format beside the scheme %s, got none",
			q->scheme->doc.name);
	if (f && (f->scheme != q->scheme || f->dtype != dtype || q->codes.bits != bits_of(f)))
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted the scheme %s in %s for the format %s (%d bits), got %s in %s with %d bits",
			f->scheme->doc.name, ql_dtype_name(f->dtype), f->doc.name, bits_of(f), q->scheme->doc.name,
			ql_dtype_name(dtype), q->codes.bits);
	if (f && f->fixed && q->block != f->block)
		return ql_fail(ctx, QL_ERR_FORMAT, "quantization note: wanted blocks of %lld for the format %s, got %d",
			(long long)f->block, f->doc.name, q->block);
	q->codes.grid = f ? ql_quant_format_table(f) : NULL;
	q->codes.host = f ? f->functions : NULL;
	if (q->codes.overflow && !may_overflow(q->codes.grid))
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted overflow=0 without codes of infinity or NaN, got 1");
	return QL_OK;
}

/* ---- scales ---- */

static bool same_codes(const struct ql_tensor *t, const struct ql_spec *of)
{
	return t->q && of->scheme && t->dtype == of->dtype && t->q->scheme == of->scheme &&
	       t->q->format == of->format && !t->q->scale->q && !t->q->shift == !of->outer;
}

/* Gives the spec of scales that are neither float32 nor float16; of->dtype is float32 if there is none. */
static enum ql_status coded_spec(
	struct ql_ctx *ctx, const struct ql_qparams *q, const struct ql_tensor *t, struct ql_spec *of)
{
	const struct ql_spec spec = {.format = q->format};
	enum ql_status status;

	if (!t->q || !t->q->block || !q->block || (q->format && q->format->fixed))
		return ql_scales_spec(ctx, &spec, of);
	status = ql_scales_outer_spec(ctx, t->q->block, of);
	of->outer = of->block;
	return status;
}

static enum ql_status not_of_blocks(struct ql_ctx *ctx, const char *what, const struct ql_qparams *q)
{
	return ql_fail(
		ctx, QL_ERR_FORMAT, "%s: wanted numbers of the format %s, got others", what, q->format->doc.name);
}

/* Checks that scales or minimums are float32, float16 (of blocks), as the format's scales, or codes of double
 * quantization. */
static enum ql_status check_kind(
	struct ql_ctx *ctx, const char *what, const struct ql_qparams *q, const struct ql_tensor *t)
{
	struct ql_spec of;
	enum ql_status status;

	if (q->format && q->format->blocks)
		return ql_block_has(q, t, t == q->shift) ? QL_OK : not_of_blocks(ctx, what, q);
	if (!t->q && (t->dtype == QL_float32 || (t->dtype == QL_float16 && q->block)))
		return QL_OK;
	status = coded_spec(ctx, q, t, &of);
	if (status || same_codes(t, &of) || (!t->q && !of.scheme && t->dtype == of.dtype))
		return status;
	return ql_fail(ctx, QL_ERR_FORMAT, "%s: wanted %s, got %s%s", what,
		q->format && q->format->scale ? q->format->scale
		: q->block                    ? "float32 or float16"
					      : "float32",
		t->q ? "quantized " : "", ql_dtype_name(t->dtype));
}

/* Checks that the numbers are finite and not below `least`. */
static enum ql_status check_numbers(struct ql_ctx *ctx, const char *what, const struct ql_tensor *t, float least)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int64_t n = ql_tensor_nelem(t);
	float *value = ql_scratch_array(ctx, n, sizeof(*value));
	enum ql_status status = value ? ql_qparams_scales(ctx, t, value) : QL_ERR_MEMORY;

	for (int64_t i = 0; i < n && !status; i++)
		if (!isfinite(value[i]) || value[i] < least)
			status = ql_fail(ctx, QL_ERR_FORMAT, "%s: wanted finite numbers%s, got %g", what,
				least > 0 ? " above 0" : "", (double)value[i]);
	ql_scratch_release(ctx, mark);
	return status;
}

/* The least valid scale. Binary codes and tables without 0 have scale 0 if all values were 0. Scales that are quantized
 * themselves may be 0 too, and slightly negative if they are coded around their mean. */
static float least_scale(unsigned dtype, const struct ql_qparams *q)
{
	if ((q->scale->q && q->scale->q->shift) || q->scheme->any_scale || (q->format && q->format->blocks))
		return -INFINITY;
	if (q->codes.grid && !ql_grid_has_zero(q->codes.grid))
		return 0;
	return ql_dtype_is_binary(dtype) || q->scale->q ? 0 : nextafterf(0, 1);
}

/* Checks that q may have a shift: by its scheme, or as codes of double quantization. */
static enum ql_status check_shift(struct ql_ctx *ctx, const struct ql_qparams *q)
{
	struct ql_spec of;
	enum ql_status status;

	if (q->scheme->shift)
		return QL_OK;
	status = q->block ? ql_scales_outer_spec(ctx, q->block, &of) : QL_OK;

	if (status || (q->block && q->format == of.format))
		return status;
	return ql_fail(ctx, QL_ERR_FORMAT, "minimum: wanted none for the scheme %s, got some", q->scheme->doc.name);
}

static enum ql_status check_scales(struct ql_ctx *ctx, unsigned dtype, const struct ql_qparams *q)
{
	enum ql_status status = check_kind(ctx, "scale", q, q->scale);

	if (!status && q->shift)
		status = check_shift(ctx, q);

	if (!status)
		status = check_numbers(ctx, "scale", q->scale, least_scale(dtype, q));
	if (!status && q->shift)
		status = check_kind(ctx, "minimum", q, q->shift);
	if (!status && q->shift)
		status = check_numbers(ctx, "minimum", q->shift, -INFINITY);
	return status;
}

/* Fails for an unknown format. Names of formats made at run time have a suffix after #. */
static enum ql_status missing(struct ql_ctx *ctx, const char *name)
{
	const char *part = strchr(name, '#');
	int n = part ? (int)(part - name) : 0;

	if (!part)
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted a known format (a newer Quoll may have written it), got '%.60s'",
			name);
	if (strcmp(part, QL_FORMAT_FUNCTIONS))
		return ql_fail(ctx, QL_ERR_FORMAT,
			"quantization note: wanted the format '%.*s', made by quant.scheme{name='%.*s', table=…} with the values that "
			"the file was written with, got none of these values",
			n, name, n, name);
	return ql_fail(ctx, QL_ERR_FORMAT,
		"quantization note: wanted the format '%.*s', made by quant.scheme{name='%.*s', encode=…, decode=…} before "
		"loading, got none",
		n, name, n, name);
}

static enum ql_status room(struct ql_ctx *ctx, const char *name, int rank, const int64_t *shape, struct ql_tensor **out)
{
	struct ql_spec spec;
	enum ql_status status = ql_spec_parse(ctx, name, &spec);

	*out = NULL;
	if (!status)
		status = ql_tensor_new(ctx, spec.dtype, rank, shape, out);
	if (!status)
		status = ql_quantize_params(ctx, &spec, rank, shape, NULL, &(*out)->q);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

const struct ql_format_words ql_format_words = {
	.by_name = ql_quant_format_by_name,
	.missing = missing,
	.name = ql_format_stored_name,
	.scaling_by_name = scaling_by_name,
	.scaling_name = scaling_name,
	.complete = complete,
	.check_scales = check_scales,
	.room = room,
};
