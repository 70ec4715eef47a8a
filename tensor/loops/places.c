/* SPDX-License-Identifier: MIT
 * Elements by place. Tensors are (outer, n, inner): inner elements are moved together. Threads share the results of a
 * take, and the outer and inner elements of a put, so that one thread writes all that goes to one element.
 */
#include "tensor/loops/places.h"

#include <string.h>

#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define CHUNK_BYTES 65536 /* moved at a time */
#define BYTES_PER_NS 4
#define PIECE 64 /* elements converted at a time */

enum ql_placing ql_placing_of(const struct ql_call *call)
{
	static const char *const names[] = {"none", "add", "mul", "max", "min"};
	const char *name = ql_call_string(call, "reduce", ql_call_bool(call, "add", false) ? "add" : "none");

	for (int i = 0; i < 5; i++)
		if (!strcmp(name, names[i]))
			return (enum ql_placing)i;
	return QL_PLACE_SET;
}

/* ---- indices ---- */

enum ql_status ql_places_check(struct ql_ctx *ctx, const char *op, const struct ql_tensor *t)
{
	char text[QL_SHAPE_TEXT];

	if (t->q || !ql_dtype_is_integer(t->dtype) || ql_dtype_is_bool(t->dtype) || ql_dtype_is_binary(t->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: index: wanted integers, got %s", op, ql_tensor_text(t, text));
	return QL_OK;
}

enum ql_status ql_places_fault(struct ql_ctx *ctx, const char *op, const struct ql_fault *fault)
{
	long long size = fault->limit;

	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"%s: index: wanted 1 to %lld (or -%lld to -1), the size of axis %d, got %lld", op, size, size,
		fault->axis + 1, (long long)fault->value);
}

/* Makes *at 0-based. */
static enum ql_status resolve(struct ql_ctx *ctx, const char *op, int axis, int64_t size, int64_t *at)
{
	int64_t i = *at < 0 ? *at + size : *at - 1;

	if (i < 0 || i >= size)
		return ql_places_fault(ctx, op, &(struct ql_fault){.value = *at, .limit = size, .axis = axis});
	*at = i;
	return QL_OK;
}

enum ql_status ql_places_of(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *ids, int axis, int64_t size, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_cast(ctx, ids, QL_int64, out);
	int64_t n = ql_tensor_nelem(ids), *at = status || !n ? NULL : ql_tensor_data(*out);

	for (int64_t i = 0; i < n && !status; i++)
		status = resolve(ctx, op, axis, size, &at[i]);
	if (!status)
		return QL_OK;
	ql_tensor_release(ctx, *out);
	*out = NULL;
	return status;
}

enum ql_status ql_places_of_tuples(struct ql_ctx *ctx, const char *op, const struct ql_tensor *index,
	const struct ql_tensor *x, int batch, struct ql_tensor **out)
{
	int k = (int)index->shape[index->rank - 1];
	struct ql_tensor *tuples = NULL;
	int64_t n = 1, each = 1, *number;
	enum ql_status status;

	*out = NULL;
	for (int d = 0; d < index->rank - 1; d++)
		n *= index->shape[d];
	for (int d = batch; d < index->rank - 1; d++)
		each *= index->shape[d];
	status = ql_tensor_cast(ctx, index, QL_int64, &tuples);
	if (!status)
		status = ql_tensor_new(ctx, QL_int64, 1, &n, out);
	number = status || !n ? NULL : ql_tensor_data(*out);
	for (int64_t i = 0; i < n && !status; i++) {
		number[i] = i / each;
		for (int d = 0; d < k && !status; d++) {
			int64_t at = ((const int64_t *)ql_tensor_data(tuples))[i * k + d];

			status = resolve(ctx, op, batch + d, x->shape[batch + d], &at);
			number[i] = number[i] * x->shape[batch + d] + at;
		}
	}
	ql_tensor_release(ctx, tuples);
	if (!status)
		return QL_OK;
	ql_tensor_release(ctx, *out);
	*out = NULL;
	return status;
}

/* ---- taking ---- */

struct take_job {
	const char *from;
	char *to;
	const int64_t *at;
	int64_t n, m;
	size_t bytes; /* of what is moved together */
};

#define TAKE(type) \
	for (int64_t i = begin; i < end; i++) \
		((type *)(void *)j->to)[i] = ((const type *)(const void *)j->from)[i / j->m * j->n + j->at[i % j->m]];

/* Items are the (outer, m) results. */
static void take_body(void *arg, int64_t begin, int64_t end)
{
	const struct take_job *j = arg;

	if (j->bytes == 4) {
		TAKE(uint32_t)
	} else if (j->bytes == 1) {
		TAKE(uint8_t)
	} else if (j->bytes == 8) {
		TAKE(uint64_t)
	} else {
		for (int64_t i = begin; i < end; i++)
			memcpy(j->to + (size_t)i * j->bytes,
				j->from + (size_t)(i / j->m * j->n + j->at[i % j->m]) * j->bytes, j->bytes);
	}
}

/* Along the packed axis: rows are unpacked. */
static enum ql_status take_packed(
	struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *at, int64_t m, struct ql_tensor *out)
{
	const struct ql_dtype_info *d = &ql_dtypes[t->dtype];
	int64_t n = t->shape[t->rank - 1], rows = ql_tensor_nelem(out) / m;
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int64_t *codes = ql_scratch_array(ctx, n, sizeof(*codes)), *taken = ql_scratch_array(ctx, m, sizeof(*taken));

	for (int64_t r = 0; codes && taken && r < rows; r++) {
		d->to_i64(t->storage->data, t->offset + r * ql_dtype_pitch(t->dtype, n), 1, n, codes);
		for (int64_t i = 0; i < m; i++)
			taken[i] = codes[at[i]];
		d->from_i64(out->storage->data, r * ql_dtype_pitch(t->dtype, m), 1, m, taken);
	}
	ql_scratch_release(ctx, mark);
	return codes && taken ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status take_dense(
	struct ql_ctx *ctx, const struct ql_tensor *t, int axis, const int64_t *at, int64_t m, struct ql_tensor *out)
{
	size_t bits = ql_dtypes[t->dtype].bits;
	struct take_job j = {.from = (const char *)t->storage->data + (size_t)t->offset * bits / 8,
		.to = out->storage->data,
		.at = at,
		.n = t->shape[axis],
		.m = m};
	int64_t outer = 1, inner = 1;

	for (int d = 0; d < axis; d++)
		outer *= t->shape[d];
	for (int d = axis + 1; d < t->rank; d++)
		inner *= d == t->rank - 1 ? ql_dtype_pitch(t->dtype, t->shape[d]) : t->shape[d];
	j.bytes = (size_t)inner * bits / 8; /* size: both tensors exist */
	return ql_parallel_for(ctx, outer * m, ql_max64(1, CHUNK_BYTES / (int64_t)j.bytes),
		outer * m * ((int64_t)j.bytes / BYTES_PER_NS + 1), take_body, &j);
}

enum ql_status ql_places_take(
	struct ql_ctx *ctx, struct ql_tensor *t, int axis, const int64_t *at, int64_t m, struct ql_tensor **out)
{
	int64_t shape[QL_MAX_RANK];
	struct ql_tensor *dense = NULL;
	bool packed = ql_dtype_is_packed(t->dtype) && axis == t->rank - 1;
	enum ql_status status;

	*out = NULL;
	memcpy(shape, t->shape, sizeof(shape));
	shape[axis] = m;
	status = ql_tensor_new(ctx, t->dtype, t->rank, shape, out);
	if (!status && ql_tensor_nelem(*out) > 0) {
		status = ql_tensor_contiguous(ctx, t, &dense);
		if (!status)
			status = packed ? take_packed(ctx, dense, at, m, *out)
					: take_dense(ctx, dense, axis, at, m, *out);
		ql_tensor_release(ctx, dense);
	}
	if (!status)
		return QL_OK;
	ql_tensor_release(ctx, *out);
	*out = NULL;
	return status;
}

/* ---- putting ---- */

struct put_job {
	const struct ql_dtype_info *dtype;
	enum ql_placing how;
	const void *from;
	void *to;
	int64_t from_offset, to_offset;
	const int64_t *at;
	int64_t n, m, inner;
	int64_t width, pieces; /* inner elements of an item, items of each outer index */
};

/* Elements f.. of `from` onto t.. of `to` */
static void put_span(const struct put_job *j, int64_t f, int64_t t, int64_t n)
{
	size_t size = j->dtype->bits / 8u;
	double a[PIECE], v[PIECE];
	int64_t ai[PIECE], vi[PIECE];

	if (j->how == QL_PLACE_SET) {
		memcpy((char *)j->to + (size_t)t * size, (const char *)j->from + (size_t)f * size, (size_t)n * size);
		return;
	}
	for (int64_t done = 0, w; done < n; done += w) {
		w = ql_min64(PIECE, n - done);
		if (j->dtype->kind == QL_KIND_FLOAT) {
			j->dtype->to_f64(j->to, t + done, 1, w, a);
			j->dtype->to_f64(j->from, f + done, 1, w, v);
			for (int64_t i = 0; i < w; i++)
				a[i] = ql_place_f64(j->how, a[i], v[i]);
			j->dtype->from_f64(j->to, t + done, 1, w, a);
		} else {
			j->dtype->to_i64(j->to, t + done, 1, w, ai);
			j->dtype->to_i64(j->from, f + done, 1, w, vi);
			for (int64_t i = 0; i < w; i++)
				ai[i] = ql_place_i64(j->how, ai[i], vi[i]);
			j->dtype->from_i64(j->to, t + done, 1, w, ai);
		}
	}
}

static void put_body(void *arg, int64_t begin, int64_t end)
{
	const struct put_job *j = arg;

	for (int64_t item = begin; item < end; item++) {
		int64_t o = item / j->pieces, first = item % j->pieces * j->width;
		int64_t width = ql_min64(j->width, j->inner - first);

		for (int64_t i = 0; i < j->m; i++)
			put_span(j, j->from_offset + (o * j->m + i) * j->inner + first,
				j->to_offset + (o * j->n + j->at[i]) * j->inner + first, width);
	}
}

enum ql_status ql_places_put(struct ql_ctx *ctx, struct ql_tensor *to, int axis, const int64_t *at, int64_t m,
	const struct ql_tensor *from, enum ql_placing how)
{
	struct put_job j = {.dtype = &ql_dtypes[to->dtype],
		.how = how,
		.from = from->storage->data,
		.to = to->storage->data,
		.from_offset = from->offset,
		.to_offset = to->offset,
		.at = at,
		.n = to->shape[axis],
		.m = m,
		.inner = 1};
	int64_t outer = 1;

	for (int d = 0; d < axis; d++)
		outer *= to->shape[d];
	for (int d = axis + 1; d < to->rank; d++)
		j.inner *= to->shape[d];
	if (outer == 0 || j.inner == 0 || m == 0)
		return QL_OK;
	j.width = ql_max64(PIECE, CHUNK_BYTES / 4 / m);
	j.pieces = ql_ceil_div(j.inner, j.width);
	return ql_parallel_for(ctx, outer * j.pieces, 1, ql_tensor_nelem(from), put_body, &j);
}
