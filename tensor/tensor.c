/* SPDX-License-Identifier: MIT
 * Creates and queries tensors. Views are in view.c, copies in copy.c.
 */
#include "tensor/tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tensor/mapping.h"
#include "tensor/qparams.h"
#include "tensor/ragged.h"
#include "tensor/remote.h"
#include "tensor/tape.h"

int64_t ql_tensor_nelem(const struct ql_tensor *t)
{
	int64_t n = 1;

	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

enum ql_status ql_shape_check(struct ql_ctx *ctx, const char *op, int rank, const int64_t *shape)
{
	uint64_t n = 1;
	char text[QL_SHAPE_TEXT];

	for (int d = 0; d < rank; d++)
		if (shape[d] > 0 && (!ql_size_mul(n, (uint64_t)shape[d], &n) || n > INT64_MAX))
			return ql_fail(ctx, QL_ERR_OVERFLOW, "%s: wanted sizes whose product is below 2^63, got %s", op,
				ql_shape_text(rank, shape, text));
	return QL_OK;
}

/* Checks the sizes, sets contiguous strides and computes the byte count. */
static enum ql_status layout(struct ql_ctx *ctx, struct ql_tensor *t, uint64_t *bytes)
{
	uint64_t n = 1, align = (uint64_t)ql_dtype_group(t->dtype);
	bool ok = true;
	char text[QL_SHAPE_TEXT];

	for (int d = t->rank - 1; d >= 0; d--) {
		if (t->shape[d] < 0)
			return ql_fail(ctx, QL_ERR_SHAPE, "tensor: size of axis %d: wanted 0 or more, got %lld", d + 1,
				(long long)t->shape[d]);
		t->stride[d] = (int64_t)n;
		/* for strides an axis of size 0 counts as 1 */
		ok = ok && ql_size_mul(n, t->shape[d] ? (uint64_t)t->shape[d] : 1, &n);
		if (d == t->rank - 1)
			ok = ok && ql_size_align(n, align, &n);
		ok = ok && n <= INT64_MAX / 8;
	}
	if (!ok || !ql_size_mul(n, ql_dtypes[t->dtype].bits, bytes) || *bytes > (uint64_t)1 << 59)
		return ql_fail(ctx, QL_ERR_OVERFLOW, "tensor: shape %s of %s: wanted a size that fits in memory",
			ql_shape_text(t->rank, t->shape, text), ql_dtype_name(t->dtype));
	*bytes = (*bytes + 7) / 8;
	if (ql_tensor_nelem(t) == 0)
		*bytes = 0;
	return QL_OK;
}

/* Sets all bytes to 0. */
static enum ql_status clear(struct ql_storage *s)
{
	if (s->remote)
		return s->device->fill(s->device, s->remote->at, 0, s->bytes);
	memset(s->data, 0, s->bytes);
	return QL_OK;
}

enum ql_status ql_tensor_new_on(struct ql_ctx *ctx, const struct ql_device *device, unsigned dtype, int rank,
	const int64_t *shape, struct ql_tensor **out)
{
	struct ql_tensor *t;
	uint64_t bytes;
	enum ql_status status;

	*out = NULL;
	if (rank > QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "tensor: wanted at most %d axes, got %d", QL_MAX_RANK, rank);
	t = ql_alloc(ctx, sizeof(*t));
	if (!t)
		return QL_ERR_MEMORY;
	*t = (struct ql_tensor){.refs = 1, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
	for (int d = 0; d < rank; d++)
		t->shape[d] = shape[d];
	status = layout(ctx, t, &bytes);
	if (!status)
		t->storage = ql_storage_new(ctx, device, bytes);
	if (!t->storage) {
		ql_free(ctx, t);
		return status ? status : QL_ERR_MEMORY;
	}
	if (ql_dtype_is_packed(dtype))
		status = clear(t->storage);
	if (status)
		ql_tensor_release(ctx, t);
	else
		*out = t;
	return status;
}

enum ql_status ql_tensor_mapped(struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape,
	struct ql_mapping *m, uint64_t offset, struct ql_tensor **out)
{
	struct ql_tensor *t = ql_alloc(ctx, sizeof(*t));
	uint64_t bytes;
	enum ql_status status = t ? QL_OK : QL_ERR_MEMORY;

	*out = NULL;
	if (!status) {
		*t = (struct ql_tensor){.refs = 1, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
		for (int d = 0; d < rank; d++)
			t->shape[d] = shape[d];
		status = layout(ctx, t, &bytes);
	}
	if (!status) {
		t->storage = ql_storage_mapped(ctx, m, m->base + offset, (size_t)bytes);
		status = t->storage ? QL_OK : QL_ERR_MEMORY;
	}
	if (status)
		ql_free(ctx, t);
	else
		*out = t;
	return status;
}

enum ql_status ql_tensor_closed(
	struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape, struct ql_closed *c, struct ql_tensor **out)
{
	struct ql_tensor *t = ql_alloc(ctx, sizeof(*t));
	uint64_t bytes;
	enum ql_status status = t ? QL_OK : QL_ERR_MEMORY;

	*out = NULL;
	if (!status) {
		*t = (struct ql_tensor){.refs = 1, .dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
		memcpy(t->shape, shape, (size_t)rank * sizeof(*shape));
		status = layout(ctx, t, &bytes);
	}
	if (!status && !(t->storage = ql_storage_closed(ctx, c)))
		status = QL_ERR_MEMORY;
	if (status)
		ql_free(ctx, t);
	else
		*out = t;
	return status;
}

enum ql_status ql_tensor_new(struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape, struct ql_tensor **out)
{
	return ql_tensor_new_on(ctx, &ql_device_cpu, dtype, rank, shape, out);
}

enum ql_status ql_tensor_zeros_on(struct ql_ctx *ctx, const struct ql_device *device, unsigned dtype, int rank,
	const int64_t *shape, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_new_on(ctx, device, dtype, rank, shape, out);

	if (!status)
		status = clear((*out)->storage);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

enum ql_status ql_tensor_zeros(
	struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape, struct ql_tensor **out)
{
	return ql_tensor_zeros_on(ctx, &ql_device_cpu, dtype, rank, shape, out);
}

enum ql_status ql_tensor_of_f32(struct ql_ctx *ctx, float value, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_new(ctx, QL_float32, 0, NULL, out);

	if (!status)
		*(float *)(*out)->storage->data = value;
	return status;
}

enum ql_status ql_tensor_alias(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_tensor *view = ql_alloc(ctx, sizeof(*view));

	*out = NULL;
	if (!view)
		return QL_ERR_MEMORY;
	*view = *t;
	view->refs = 1;
	view->node = NULL;
	view->discarded = false;
	ql_storage_keep(view->storage);
	if (view->q)
		ql_qparams_keep(view->q);
	*out = view;
	return QL_OK;
}

struct ql_tensor *ql_tensor_keep(struct ql_tensor *t)
{
	t->refs++;
	return t;
}

void ql_tensor_release(struct ql_ctx *ctx, struct ql_tensor *t)
{
	if (!t || --t->refs > 0)
		return;
	ql_node_release(ctx, t->node);
	ql_qparams_release(ctx, t->q);
	ql_storage_release(ctx, t->storage);
	ql_free(ctx, t);
}

bool ql_tensor_is_contiguous(const struct ql_tensor *t)
{
	int64_t n = 1;

	for (int d = t->rank - 1; d >= 0; d--) {
		if (t->shape[d] == 0)
			return true;
		if (t->shape[d] != 1 && t->stride[d] != n)
			return false;
		n *= t->shape[d];
		if (d == t->rank - 1 && ql_dtype_is_packed(t->dtype))
			n = ql_dtype_pitch(t->dtype, n);
	}
	return true;
}

bool ql_tensor_overlaps_itself(const struct ql_tensor *t)
{
	/* Strides come from views of contiguous tensors, so only a broadcast axis (stride 0) can overlap. */
	for (int d = 0; d < t->rank; d++)
		if (t->shape[d] > 1 && t->stride[d] == 0)
			return true;
	return false;
}

bool ql_tensor_same_shape(const struct ql_tensor *a, const struct ql_tensor *b)
{
	if (a->rank != b->rank)
		return false;
	for (int d = 0; d < a->rank; d++)
		if (a->shape[d] != b->shape[d])
			return false;
	return true;
}

/* The axis whose elements share bytes: the one with stride 1, also in a view. */
static int packed_axis(const struct ql_tensor *t)
{
	for (int d = t->rank - 1; d >= 0 && ql_dtype_is_packed(t->dtype); d--)
		if (t->stride[d] == 1 && t->shape[d] > 1)
			return d;
	return t->rank - 1;
}

uint64_t ql_rows_bytes(int64_t rows, int64_t row, unsigned dtype)
{
	unsigned bits = ql_dtypes[dtype].bits;
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)row / 8, bits, &bytes))
		return INT64_MAX;
	bytes += (uint64_t)ql_dtype_pitch(dtype, row % 8) * bits / 8; /* size: the rest is at most 8 elements */
	return ql_size_mul((uint64_t)rows, bytes, &bytes) && bytes < INT64_MAX ? bytes : INT64_MAX;
}

uint64_t ql_tensor_nbytes(const struct ql_tensor *t)
{
	int64_t row = t->rank ? t->shape[packed_axis(t)] : 1, rows = row ? ql_tensor_nelem(t) / row : 0;
	const struct ql_tensor *params[] = {t->q ? t->q->scale : NULL, t->q ? t->q->zero_point : NULL,
		t->q ? t->q->shift : NULL, t->q ? t->q->bits : NULL, t->q ? t->q->values : NULL};
	uint64_t bytes = t->rank ? ql_rows_bytes(rows, row, t->dtype) : (ql_dtypes[t->dtype].bits + 7u) / 8;

	if (t->q && ql_ragged_of(t->storage))
		bytes = ql_ragged_bytes(t);
	for (size_t i = 0; i < sizeof(params) / sizeof(*params); i++)
		if (params[i]) /* of five numbers below 2^63, four of parts that fit in memory */
			bytes += ql_tensor_nbytes(params[i]);
	return bytes < INT64_MAX ? bytes : INT64_MAX;
}

void *ql_tensor_data(const struct ql_tensor *t)
{
	return (char *)t->storage->data + t->offset * (ql_dtypes[t->dtype].bits / 8);
}

/* ---- single elements and text ---- */

static int64_t element(const struct ql_tensor *t, const int64_t *index)
{
	int64_t at = t->offset;

	for (int d = 0; d < t->rank; d++)
		at += index[d] * t->stride[d];
	return at;
}

double ql_tensor_get_f64(const struct ql_tensor *t, const int64_t *index)
{
	const void *data = ql_storage_bytes(t->storage);
	double value = NAN;

	if (ql_is_closed(t))
		return (double)t->storage->closed->kind->get(t->storage->closed, element(t, index));
	if (data)
		ql_dtypes[t->dtype].to_f64(data, element(t, index), 1, 1, &value);
	return value;
}

int64_t ql_tensor_get_i64(const struct ql_tensor *t, const int64_t *index)
{
	const void *data = ql_storage_bytes(t->storage);
	int64_t value = 0;

	if (ql_is_closed(t))
		return t->storage->closed->kind->get(t->storage->closed, element(t, index));
	if (data)
		ql_dtypes[t->dtype].to_i64(data, element(t, index), 1, 1, &value);
	return value;
}

double ql_tensor_at_f64(const struct ql_tensor *t, int64_t i)
{
	int64_t index[QL_MAX_RANK] = {0};

	/* scales, which every op on codes reads */
	if (t->rank <= 1 && t->dtype == QL_float32 && t->storage->data && !t->storage->remote)
		return (double)((
			const float *)t->storage->data)[t->offset + (t->rank ? i % t->shape[0] * t->stride[0] : 0)];
	for (int d = t->rank - 1; d >= 0; d--) {
		index[d] = i % t->shape[d];
		i /= t->shape[d];
	}
	return ql_tensor_get_f64(t, index);
}

char *ql_shape_text(int rank, const int64_t *shape, char text[QL_SHAPE_TEXT])
{
	int n = snprintf(text, QL_SHAPE_TEXT, "(");

	for (int d = 0; d < rank; d++)
		n += snprintf(text + n, (size_t)(QL_SHAPE_TEXT - n), d ? ", %lld" : "%lld", (long long)shape[d]);
	snprintf(text + n, (size_t)(QL_SHAPE_TEXT - n), ")");
	return text;
}

char *ql_tensor_text(const struct ql_tensor *t, char text[QL_SHAPE_TEXT])
{
	char shape[QL_SHAPE_TEXT];

	ql_shape_text(t->rank, t->shape, shape);
	snprintf(text, QL_SHAPE_TEXT, "%s%.*s%s", ql_dtype_name(t->dtype), QL_SHAPE_TEXT - 40, shape,
		t->q ? " quantized" : "");
	return text;
}

enum ql_status ql_axis(struct ql_ctx *ctx, const char *what, int64_t given, int rank, int *out)
{
	if (given == 0 || given > rank || given < -(int64_t)rank)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted an axis from 1 to %d (or -%d to -1), got %lld", what,
			rank, rank, (long long)given);
	*out = (int)(given < 0 ? given + rank : given - 1);
	return QL_OK;
}

enum ql_status ql_index(struct ql_ctx *ctx, const char *what, int64_t given, int64_t size, int64_t *out)
{
	if (given == 0 || given > size || given < -size)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"%s: wanted an index from 1 to %lld (or negative, from the end), got %lld", what,
			(long long)size, (long long)given);
	*out = given < 0 ? given + size : given - 1;
	return QL_OK;
}
