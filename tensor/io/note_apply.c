/* SPDX-License-Identifier: MIT
 * Attaching quantization parameters from a file to the codes, with checks that prevent a crafted file from passing
 * values to a kernel that no quantizer produces.
 */
#include <math.h>

#include "tensor/grain.h"
#include "tensor/grid.h"
#include "tensor/io/note.h"
#include "tensor/op.h"
#include "tensor/ragged.h"

#define PIECE 512 /* codes checked at a time */

static enum ql_status check_scale(struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *scale)
{
	const struct ql_qparams *q = &note->q;
	struct ql_tensor wanted = {0};
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	wanted.rank = (uint8_t)ql_grain_shape(note->rank, note->shape, q->axis, q->block_axis, q->block, wanted.shape);
	if (!ql_tensor_same_shape(scale, &wanted))
		return ql_fail(ctx, QL_ERR_FORMAT, "scale: wanted shape %s, got %s",
			ql_shape_text(wanted.rank, wanted.shape, a), ql_shape_text(scale->rank, scale->shape, b));
	return QL_OK;
}

/* A minimum for every scale if the scheme has them; tables may have them where they code scales. */
static enum ql_status check_shift(
	struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *scale, const struct ql_tensor *shift)
{
	const struct ql_scheme *scheme = note->q.scheme;
	bool fits = shift ? (scheme->shift || scheme->grid) && ql_tensor_same_shape(shift, scale) : !scheme->shift;

	if (fits)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_FORMAT, "minimum: wanted %s for the scheme %s, got %s",
		scheme->shift ? "one per scale" : "none", scheme->doc.name,
		!shift          ? "none"
		: scheme->shift ? "another shape"
				: "some");
}

/* Checks integers of a contiguous tensor against a range; skipped when it covers the dtype. */
static enum ql_status check_range(
	struct ql_ctx *ctx, const char *what, int64_t lo, int64_t hi, const struct ql_tensor *t)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1, rows = row ? ql_tensor_nelem(t) / row : 0;
	int64_t pitch = t->rank > 1 ? t->stride[t->rank - 2] : row, value[PIECE], n;

	if (lo <= d->lo && hi >= d->hi)
		return QL_OK;
	for (int64_t r = 0; r < rows; r++)
		for (int64_t begin = 0; begin < row; begin += n) {
			n = ql_min64(PIECE, row - begin);
			d->to_i64(t->storage->data, r * pitch + begin, 1, n, value);
			for (int64_t i = 0; i < n; i++)
				if (value[i] < lo || value[i] > hi)
					return ql_fail(ctx, QL_ERR_FORMAT, "%s: wanted %lld to %lld, got %lld", what,
						(long long)lo, (long long)hi, (long long)value[i]);
		}
	return QL_OK;
}

static enum ql_status check_zero(
	struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *scale, const struct ql_tensor *zero)
{
	const struct ql_dtype_info *d = &ql_dtypes[note->dtype];

	if (!zero)
		return QL_OK;
	if (!note->q.scheme->zero)
		return ql_fail(ctx, QL_ERR_FORMAT, "zero_point: wanted none for the scheme %s, got one",
			note->q.scheme->doc.name);
	if (zero->dtype != ql_dtype_whole(note->dtype) || !ql_tensor_same_shape(zero, scale))
		return ql_fail(ctx, QL_ERR_FORMAT, "zero_point: wanted the dtype %s and the scale's shape, got others",
			ql_dtype_name(ql_dtype_whole(note->dtype)));
	return check_range(ctx, "zero_point", d->lo, d->hi, zero);
}

/* Checks the bits of each channel of an affine per-axis tensor: at most those of the note. */
static enum ql_status check_bits(
	struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *scale, const struct ql_tensor *bits)
{
	if (!bits)
		return QL_OK;
	if (note->q.axis < 0 || !note->q.scheme->affine)
		return ql_fail(ctx, QL_ERR_FORMAT, "bits: wanted none for the scheme %s %s, got some",
			note->q.scheme->doc.name, note->q.axis < 0 ? "without an axis" : "");
	if (bits->dtype != QL_int8 || !ql_tensor_same_shape(bits, scale))
		return ql_fail(ctx, QL_ERR_FORMAT, "bits: wanted int8 and the scale's shape, got others");
	return check_range(ctx, "bits", 2, note->q.codes.bits, bits);
}

/* A codebook if the format learns one. */
static enum ql_status check_values(struct ql_ctx *ctx, const struct ql_note *note, const struct ql_tensor *values)
{
	const struct ql_grid_table *grid = note->q.codes.grid;

	if (!values && !(grid && grid->learned))
		return QL_OK;
	if (!grid || !grid->learned)
		return ql_fail(ctx, QL_ERR_FORMAT, "values: wanted none for the scheme %s, got some",
			note->q.scheme->doc.name);
	if (!values || values->dtype != QL_float32 || values->rank != 1 || values->shape[0] != grid->n)
		return ql_fail(ctx, QL_ERR_FORMAT, "values: wanted %d numbers in float32, got %s", grid->n,
			values ? "others" : "none");
	for (int i = 0; i < grid->n; i++)
		if (!isfinite(((const float *)ql_tensor_data(values))[i]))
			return ql_fail(ctx, QL_ERR_FORMAT, "values: wanted finite numbers, got %g",
				(double)((const float *)ql_tensor_data(values))[i]);
	return QL_OK;
}

/* Checks n codes of scale s, or (each) of scales s and following. */
static enum ql_status check_codes(
	struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *code, int64_t n, int64_t s, bool each)
{
	struct ql_codes codes = {0};

	for (int64_t i = 0; i < n; i++) {
		if (each || i == 0)
			codes = ql_qparams_codes(t->q, t->dtype, s + (each ? i : 0));
		if (code[i] < codes.lo || code[i] > codes.hi)
			return ql_fail(ctx, QL_ERR_FORMAT, "codes: wanted %d to %d in a channel of %d bits, got %lld",
				codes.lo, codes.hi, codes.bits, (long long)code[i]);
	}
	return QL_OK;
}

/* Checks the codes of a contiguous tensor with a range per channel. */
static enum ql_status check_channels(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	struct ql_grain g = ql_grain_of(t->rank, t->shape, t->dtype, t->q->axis, -1, 0);
	int64_t code[PIECE], n, run;
	enum ql_status status = QL_OK;

	for (int64_t r = 0; r < g.rows; r++)
		for (int64_t begin = 0; begin < g.row && !status; begin += n) {
			int64_t s = ql_grain_scale(&g, r, begin, &run);

			n = ql_min64(PIECE, g.row - begin);
			ql_dtypes[t->dtype].to_i64(t->storage->data, r * g.pitch + begin, 1, n, code);
			status = check_codes(ctx, t, code, n, s, g.kind == QL_GRAIN_COLUMN);
		}
	return status;
}

/* Bytes of the rows of channels; false on an overflow. */
static bool rows_bytes(const struct ql_note *note, const struct ql_tensor *bits, uint64_t *bytes)
{
	struct ql_tensor like = {.rank = (uint8_t)note->rank};
	int64_t rows = note->shape[note->q.axis], n;

	for (int d = 0; d < note->rank; d++)
		like.shape[d] = note->shape[d];
	n = ql_tensor_nelem(&like);
	*bytes = 0;
	for (int64_t i = 0; i < rows; i++)
		if (!ql_size_add(*bytes, ql_ragged_row_bytes(n / rows, (int)ql_tensor_at_f64(bits, i)), bytes))
			return false;
	return true;
}

enum ql_status ql_note_room(
	struct ql_ctx *ctx, const struct ql_note *note, const struct ql_note_parts *parts, struct ql_tensor **out)
{
	uint64_t bytes = 0, given = (uint64_t)ql_tensor_nelem(parts->rows);
	enum ql_status status = ql_shape_check(ctx, "shape", note->rank, note->shape);

	*out = NULL;
	if (!status && (!parts->bits || note->q.axis < 0))
		status = ql_fail(ctx, QL_ERR_FORMAT, "bits: wanted a number for every channel of an axis, got none");
	if (!status)
		status = check_scale(ctx, note, parts->scale);
	if (!status)
		status = check_bits(ctx, note, parts->scale, parts->bits);
	if (!status && (!rows_bytes(note, parts->bits, &bytes) || bytes != given || !given))
		status = ql_fail(ctx, QL_ERR_FORMAT,
			"codes: wanted the %llu bytes of channels of these bits and this shape, got %llu",
			(unsigned long long)bytes, (unsigned long long)given);
	return status ? status : ql_tensor_new(ctx, note->dtype, note->rank, note->shape, out);
}

static struct ql_tensor *keep(struct ql_tensor *t)
{
	return t ? ql_tensor_keep(t) : NULL;
}

static enum ql_status attach(
	struct ql_ctx *ctx, const struct ql_note *note, struct ql_tensor *t, const struct ql_note_parts *parts)
{
	enum ql_status status;

	t->q = ql_alloc(ctx, sizeof(*t->q));
	if (!t->q)
		return QL_ERR_MEMORY;
	*t->q = note->q;
	t->q->refs = 1;
	t->q->scale = keep(parts->scale);
	t->q->zero_point = keep(parts->zero_point);
	t->q->shift = keep(parts->shift);
	t->q->bits = keep(parts->bits);
	status = ctx->quant->formats->check_scales(ctx, t->dtype, t->q);
	return status || !parts->values ? status : ql_qparams_set_values(ctx, t->q, parts->values);
}

enum ql_status ql_note_check_codes(struct ql_ctx *ctx, const struct ql_tensor *t)
{
	return check_range(ctx, "codes", t->q->codes.lo, t->q->codes.hi, t);
}

/* Sets the codes, if they are ragged, and checks them: integer kernels and tables rely on codes being in range. */
static enum ql_status finish(
	struct ql_ctx *ctx, const struct ql_note *note, struct ql_tensor *t, const struct ql_note_parts *parts)
{
	enum ql_status status = QL_OK;

	if (note->ragged)
		status = ql_ragged_take(ctx, t, parts->rows->storage->data, (size_t)ql_tensor_nelem(parts->rows));
	if (!status)
		status = ql_closed_open(ctx, t->storage);
	if (status)
		return status;
	status = check_range(ctx, "codes", note->q.codes.lo, note->q.codes.hi, t);
	if (!status && parts->bits)
		status = check_channels(ctx, t);
	ql_closed_close(ctx, t->storage);
	return status ? status : ql_ragged_pack(ctx, t);
}

enum ql_status ql_note_apply(
	struct ql_ctx *ctx, const struct ql_note *note, struct ql_tensor *t, const struct ql_note_parts *parts)
{
	enum ql_status status = check_scale(ctx, note, parts->scale);

	if (!status)
		status = check_zero(ctx, note, parts->scale, parts->zero_point);
	if (!status)
		status = check_shift(ctx, note, parts->scale, parts->shift);
	if (!status)
		status = check_bits(ctx, note, parts->scale, parts->bits);
	if (!status)
		status = check_values(ctx, note, parts->values);
	if (!status)
		status = attach(ctx, note, t, parts);
	if (status)
		return status;
	ql_qparams_settle(ctx, t->q, t->dtype);
	return finish(ctx, note, t, parts);
}
