/* SPDX-License-Identifier: MIT
 * Quantization parameters: sharing, and views of them. Encoding and decoding are in codec.c.
 */
#include "tensor/qparams.h"

#include "tensor/codec.h"
#include "tensor/grid.h"
#include "tensor/op.h"
#include "tensor/remote.h"
#include "tensor/view.h"

/* The table of a codebook, shared by the params of views. */
struct ql_codebook {
	int refs;
	struct ql_grid_table table;
};

struct ql_qparams *ql_qparams_keep(struct ql_qparams *q)
{
	q->refs++;
	return q;
}

void ql_qparams_release(struct ql_ctx *ctx, struct ql_qparams *q)
{
	if (!q || --q->refs > 0)
		return;
	ql_tensor_release(ctx, q->scale);
	ql_tensor_release(ctx, q->zero_point);
	ql_tensor_release(ctx, q->shift);
	ql_tensor_release(ctx, q->bits);
	ql_tensor_release(ctx, q->values);
	ql_tensor_release(ctx, q->counts);
	if (q->codebook && --q->codebook->refs == 0)
		ql_free(ctx, q->codebook);
	ql_free(ctx, q);
}

void ql_qparams_counts(const struct ql_qparams *q, int64_t *nan, int64_t *inf)
{
	*nan = q->nan_count + (q->counts ? ql_tensor_get_i64(q->counts, (const int64_t[]){0}) : 0);
	*inf = q->inf_count + (q->counts ? ql_tensor_get_i64(q->counts, (const int64_t[]){1}) : 0);
}

struct ql_qparams *ql_qparams_copy(struct ql_ctx *ctx, const struct ql_qparams *q)
{
	struct ql_qparams *copy = ql_alloc(ctx, sizeof(*copy));

	if (!copy)
		return NULL;
	*copy = *q;
	copy->refs = 1;
	if (copy->scale) /* not of a layout alone */
		ql_tensor_keep(copy->scale);
	if (copy->zero_point)
		ql_tensor_keep(copy->zero_point);
	if (copy->shift)
		ql_tensor_keep(copy->shift);
	if (copy->bits)
		ql_tensor_keep(copy->bits);
	if (copy->values)
		ql_tensor_keep(copy->values);
	if (copy->counts)
		ql_tensor_keep(copy->counts);
	if (copy->codebook)
		copy->codebook->refs++;
	return copy;
}

enum ql_status ql_qparams_set_values(struct ql_ctx *ctx, struct ql_qparams *q, struct ql_tensor *values)
{
	struct ql_codebook *book = ql_alloc(ctx, sizeof(*book));

	if (!book)
		return QL_ERR_MEMORY;
	if (!ql_grid_fill(&book->table, ql_tensor_data(values), (int)ql_tensor_nelem(values), QL_TIE_LOWER)) {
		ql_free(ctx, book);
		return ql_fail(ctx, QL_ERR_ARGUMENT, "values: wanted two different finite numbers, got fewer");
	}
	book->refs = 1;
	book->table.unit = q->codes.grid->unit;
	q->values = ql_tensor_keep(values);
	q->codebook = book;
	q->codes.grid = &book->table;
	return QL_OK;
}

struct ql_codes ql_qparams_codes(const struct ql_qparams *q, unsigned dtype, int64_t i)
{
	struct ql_codes codes = q->codes;

	if (!q->bits)
		return codes;
	q->scheme->range(dtype, false, &codes);
	bool wide = codes.lo != q->codes.lo || codes.hi != q->codes.hi; /* possible with an explicit scale */
	codes.bits = (uint8_t)ql_tensor_at_f64(q->bits, i);
	q->scheme->range(dtype, wide, &codes);
	return codes;
}

void ql_qparams_settle(struct ql_ctx *ctx, struct ql_qparams *q, unsigned dtype)
{
	int64_t n = q->bits ? ql_tensor_nelem(q->bits) : 0, widest = 0;
	bool alike = true;

	for (int64_t i = 1; i < n; i++) {
		alike &= ql_tensor_at_f64(q->bits, i) == ql_tensor_at_f64(q->bits, 0);
		widest = ql_tensor_at_f64(q->bits, i) > ql_tensor_at_f64(q->bits, widest) ? i : widest;
	}
	if (n)
		q->codes = ql_qparams_codes(q, dtype, widest);
	if (!alike)
		return;
	ql_tensor_release(ctx, q->bits);
	q->bits = NULL;
}

static bool same_values(const struct ql_tensor *a, const struct ql_tensor *b)
{
	int64_t n;

	if (!a || !b)
		return a == b;
	if (!ql_tensor_same_shape(a, b) || !a->q != !b->q || (a->q && !ql_qparams_equal(a->q, b->q)))
		return false;
	n = ql_tensor_nelem(a);
	for (int64_t i = 0; i < n; i++)
		if (ql_tensor_at_f64(a, i) != ql_tensor_at_f64(b, i))
			return false;
	return true;
}

bool ql_qparams_equal(const struct ql_qparams *a, const struct ql_qparams *b)
{
	return a == b || (a->scheme == b->scheme && a->codes.lo == b->codes.lo && a->codes.hi == b->codes.hi &&
				 a->codes.octaves == b->codes.octaves &&
				 (a->codes.grid == b->codes.grid || (a->values && b->values)) &&
				 same_values(a->values, b->values) && a->codes.overflow == b->codes.overflow &&
				 a->format == b->format && a->axis == b->axis && a->block_axis == b->block_axis &&
				 a->block == b->block && same_values(a->scale, b->scale) &&
				 same_values(a->zero_point, b->zero_point) && same_values(a->shift, b->shift) &&
				 same_values(a->bits, b->bits));
}

enum ql_status ql_qparams_scales(struct ql_ctx *ctx, const struct ql_tensor *scale, float *out)
{
	struct ql_tensor *plain = NULL;
	enum ql_status status = scale->q ? ql_decode(ctx, scale, &plain) : QL_OK;
	const struct ql_tensor *t = plain ? plain : scale;
	int64_t n = ql_tensor_nelem(scale);

	const void *data = status ? NULL : ql_storage_bytes(t->storage);

	if (!status && data && ql_tensor_is_contiguous(t))
		ql_dtypes[t->dtype].to_f32(data, t->offset, 1, n, out);
	else
		for (int64_t i = 0; i < n && !status; i++)
			out[i] = (float)ql_tensor_at_f64(t, i);
	ql_tensor_release(ctx, plain);
	return status;
}

void ql_qparams_zeros(const struct ql_tensor *t, int32_t *out)
{
	const void *data = ql_storage_bytes(t->storage);
	bool dense = data && ql_tensor_is_contiguous(t) && !ql_dtype_is_packed(t->dtype);
	int64_t n = ql_tensor_nelem(t), wide[256];

	for (int64_t i = 0, m; i < n; i += m) {
		m = ql_min64(n - i, 256);
		if (dense)
			ql_dtypes[t->dtype].to_i64(data, t->offset + i, 1, m, wide);
		for (int64_t k = 0; k < m; k++)
			out[i + k] = dense ? (int32_t)wide[k] : (int32_t)ql_tensor_at_f64(t, i + k);
	}
}

bool ql_qparams_affine(const struct ql_qparams *q)
{
	return q->scheme->affine && !q->shift && !q->scale->q;
}

bool ql_qparams_monotone(const struct ql_qparams *q)
{
	return q->scheme->monotone && !(q->scale->q && q->scale->q->shift);
}

/* ---- views ---- */

enum follow { PERMUTE, SLICE, SELECT, RESHAPE, EXPAND };

/* A view operation on scale, zero_point, shift and bits, in their own axes. */
struct change {
	enum follow kind;
	const char *op;
	int axis;                    /* SLICE, SELECT */
	int64_t start, step, length; /* SLICE; SELECT: start is the index */
	const int *order;            /* PERMUTE */
	int rank;                    /* RESHAPE, EXPAND */
	int64_t shape[QL_MAX_RANK];
};

static enum ql_status apply(struct ql_ctx *ctx, const struct change *c, struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_tensor *flat;
	enum ql_status status;

	switch (c->kind) {
	case PERMUTE: return ql_view_permute(ctx, c->op, t, c->order, out);
	case SLICE: return ql_view_slice(ctx, c->op, t, c->axis, c->start, c->step, c->length, out);
	case SELECT: return ql_view_select(ctx, c->op, t, c->axis, c->start, out);
	case EXPAND: return ql_view_expand(ctx, c->op, t, c->rank, c->shape, out);
	case RESHAPE: break;
	}
	status = ql_tensor_contiguous(ctx, t, &flat);
	if (status)
		return status;
	status = ql_view_reshape(ctx, c->op, flat, c->rank, c->shape, out);
	ql_tensor_release(ctx, flat);
	return status;
}

/* Replaces one of the tensors, if present, with its view. */
static enum ql_status replace(struct ql_ctx *ctx, const struct change *c, struct ql_tensor **t)
{
	struct ql_tensor *view;
	enum ql_status status;

	if (!*t)
		return QL_OK;
	status = apply(ctx, c, *t, &view);
	if (status)
		return status;
	ql_tensor_release(ctx, *t);
	*t = view;
	return QL_OK;
}

/* Gives a copy of the params with views of scale, zero_point, shift and bits; `dtype` is that of the codes. */
static enum ql_status changed(
	struct ql_ctx *ctx, const struct change *c, const struct ql_qparams *q, unsigned dtype, struct ql_qparams **out)
{
	struct ql_qparams *copy = ql_qparams_copy(ctx, q);
	enum ql_status status;

	*out = NULL;
	if (!copy)
		return QL_ERR_MEMORY;
	status = replace(ctx, c, &copy->scale);
	if (!status)
		status = replace(ctx, c, &copy->zero_point);
	if (!status)
		status = replace(ctx, c, &copy->shift);
	if (!status)
		status = replace(ctx, c, &copy->bits);
	if (status) {
		ql_qparams_release(ctx, copy);
		return status;
	}
	ql_qparams_settle(ctx, copy, dtype);
	*out = copy;
	return QL_OK;
}

/* Gives the shared params if the view does not affect them, else a copy with other axis numbers. */
static enum ql_status renumbered(struct ql_ctx *ctx, struct ql_qparams *q, int axis, struct ql_qparams **out)
{
	if (axis == q->axis) {
		*out = ql_qparams_keep(q);
		return QL_OK;
	}
	*out = ql_qparams_copy(ctx, q);
	if (!*out)
		return QL_ERR_MEMORY;
	(*out)->axis = (int8_t)axis;
	return QL_OK;
}

static int position(const int *order, int rank, int axis)
{
	for (int i = 0; i < rank; i++)
		if (order[i] == axis)
			return i;
	return -1;
}

enum ql_status ql_qparams_permute(
	struct ql_ctx *ctx, const struct ql_tensor *t, const int *order, struct ql_qparams **out)
{
	struct change c = {.kind = PERMUTE, .op = "permute", .order = order};
	enum ql_status status;

	if (!t->q->block)
		return renumbered(ctx, t->q, t->q->axis < 0 ? -1 : position(order, t->rank, t->q->axis), out);
	status = changed(ctx, &c, t->q, t->dtype, out);
	if (!status)
		(*out)->block_axis = (int8_t)position(order, t->rank, t->q->block_axis);
	return status;
}

static enum ql_status cuts_block(struct ql_ctx *ctx, const char *op, const struct ql_qparams *q)
{
	return ql_fail(ctx, QL_ERR_SHAPE,
		"%s: wanted a view that keeps the blocks of %d along axis %d whole, got one that cuts them; use :dequantize() "
		"first",
		op, q->block, q->block_axis + 1);
}

enum ql_status ql_qparams_slice(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t start,
	int64_t step, int64_t length, struct ql_qparams **out)
{
	struct ql_qparams *q = t->q;
	struct change c = {.kind = SLICE, .op = op, .axis = axis, .start = start, .step = step, .length = length};

	if (q->block && axis == q->block_axis) {
		if ((step != 1 && q->block > 1) || start % q->block ||
			(length % q->block && start + length != t->shape[axis]))
			return cuts_block(ctx, op, q);
		c.start = start / q->block;
		c.length = ql_ceil_div(length, q->block);
	} else if (!q->block) {
		if (axis != q->axis) {
			*out = ql_qparams_keep(q);
			return QL_OK;
		}
		c.axis = 0;
	}
	return changed(ctx, &c, q, t->dtype, out);
}

enum ql_status ql_qparams_select(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int axis, int64_t index, struct ql_qparams **out)
{
	struct ql_qparams *q = t->q;
	struct change c = {.kind = SELECT, .op = op, .axis = axis, .start = index};
	enum ql_status status;

	if (!q->block && axis != q->axis)
		return renumbered(ctx, q, q->axis > axis ? q->axis - 1 : q->axis, out);
	if (q->block && axis == q->block_axis)
		return cuts_block(ctx, op, q);
	if (!q->block)
		c.axis = 0;
	status = changed(ctx, &c, q, t->dtype, out);
	if (status)
		return status;
	if (!q->block)
		(*out)->axis = -1;
	else if (axis < q->block_axis)
		(*out)->block_axis--;
	return QL_OK;
}

/* The axis of `shape` with the same size and the same number of elements before it as `axis` of t, which the
 * reshape neither merges nor splits; -1: none. */
static int kept_axis(const struct ql_tensor *t, int axis, int rank, const int64_t *shape)
{
	int64_t before = 1, seen = 1;

	for (int d = 0; d < axis; d++)
		before *= t->shape[d];
	for (int d = 0; d < rank; d++) {
		if (seen == before && shape[d] == t->shape[axis])
			return d;
		seen *= shape[d];
	}
	return -1;
}

enum ql_status ql_qparams_reshape(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_qparams **out)
{
	struct ql_qparams *q = t->q;
	struct change c = {.kind = RESHAPE, .op = op, .rank = rank};
	int old = q->block ? q->block_axis : q->axis, axis;
	char from[QL_SHAPE_TEXT], to[QL_SHAPE_TEXT];
	enum ql_status status;

	if (old < 0) {
		*out = ql_qparams_keep(q);
		return QL_OK;
	}
	axis = kept_axis(t, old, rank, shape);
	if (axis < 0)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: wanted a shape that keeps the quantized axis %d whole, got %s to %s; use :dequantize() first",
			op, old + 1, ql_shape_text(t->rank, t->shape, from), ql_shape_text(rank, shape, to));
	if (!q->block)
		return renumbered(ctx, q, axis, out);
	for (int d = 0; d < rank; d++)
		c.shape[d] = d == axis ? ql_ceil_div(shape[d], q->block) : shape[d];
	status = changed(ctx, &c, q, t->dtype, out);
	if (status == QL_ERR_SHAPE && q->scale->q) /* packed codes of scales: their rows are whole bytes */
		return ql_fail(ctx, QL_ERR_SHAPE,
			"%s: wanted a shape that keeps the rows of the quantized scales, got %s to %s; use :dequantize() first",
			op, ql_shape_text(t->rank, t->shape, from), ql_shape_text(rank, shape, to));
	if (!status)
		(*out)->block_axis = (int8_t)axis;
	return status;
}

enum ql_status ql_qparams_expand(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t, int rank,
	const int64_t *shape, struct ql_qparams **out)
{
	struct ql_qparams *q = t->q;
	struct change c = {.kind = EXPAND, .op = op, .rank = rank};
	int shift = rank - t->rank;
	enum ql_status status;

	if (q->block) {
		for (int d = 0; d < rank; d++)
			c.shape[d] = d - shift == q->block_axis ? ql_ceil_div(shape[d], q->block) : shape[d];
		status = changed(ctx, &c, q, t->dtype, out);
		if (!status)
			(*out)->block_axis = (int8_t)(q->block_axis + shift);
		return status;
	}
	if (q->axis < 0 || shape[q->axis + shift] == t->shape[q->axis])
		return renumbered(ctx, q, q->axis < 0 ? -1 : q->axis + shift, out);
	c.rank = 1;
	c.shape[0] = shape[q->axis + shift];
	status = changed(ctx, &c, q, t->dtype, out);
	if (!status)
		(*out)->axis = (int8_t)(q->axis + shift);
	return status;
}
