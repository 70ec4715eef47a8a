/* SPDX-License-Identifier: MIT
 * Rows by number.
 */
#include "tensor/loops/rows.h"

#include <string.h>

#include "tensor/parallel.h"
#include "tensor/closed.h"
#include "tensor/view.h"

#define CHUNK_BYTES 65536 /* copied at a time */
#define BYTES_PER_NS 8
#define FEW 256 /* rows of a table of closed codes for each one that is unpacked alone */

char *ql_position_text(int rank, const int64_t *shape, int64_t i, char text[QL_SHAPE_TEXT])
{
	int64_t at[QL_MAX_RANK];

	for (int d = rank - 1; d >= 0; d--) {
		at[d] = i % shape[d] + 1;
		i /= shape[d];
	}
	return ql_shape_text(rank, at, text);
}

enum ql_status ql_rows_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *table = call->in[0], *ids = call->in[1];
	int64_t shape[QL_MAX_RANK];
	char text[QL_SHAPE_TEXT];

	if (table->rank != 2)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted a table of shape (v, d), got %s", call->op->doc.name,
			ql_shape_text(table->rank, table->shape, text));
	if (ids->q || !ql_dtype_is_integer(ids->dtype) || ql_dtype_is_bool(ids->dtype) ||
		ql_dtype_is_binary(ids->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "%s: ids: wanted integers, got %s", call->op->doc.name,
			ql_tensor_text(ids, text));
	if (ids->rank == QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_SHAPE, "%s: ids: wanted at most %d axes, got %d", call->op->doc.name,
			QL_MAX_RANK - 1, ids->rank);
	memcpy(shape, ids->shape, sizeof(ids->shape));
	shape[ids->rank] = table->shape[1];
	ql_result_set(call, 0, ql_operand_dtype(table), ids->rank + 1, shape);
	return QL_OK;
}

enum ql_status ql_rows_fault(struct ql_ctx *ctx, const char *op, const struct ql_fault *fault)
{
	char text[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"%s: ids: wanted 1 to %lld, the rows of the table, got %lld at position %s", op,
		(long long)fault->limit, (long long)fault->value,
		ql_position_text(fault->rank, fault->shape, fault->position, text));
}

enum ql_status ql_rows_numbers(
	struct ql_ctx *ctx, const char *op, const struct ql_tensor *ids, int64_t size, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_cast(ctx, ids, QL_int64, out);
	int64_t n = ql_tensor_nelem(ids);
	const int64_t *number;

	if (status)
		return status;
	number = ql_tensor_data(*out);
	for (int64_t i = 0; i < n; i++)
		if (number[i] < 1 || number[i] > size) {
			struct ql_fault fault = {i, number[i], size, ids->rank, ids->shape, -1};

			status = ql_rows_fault(ctx, op, &fault);
			ql_tensor_release(ctx, *out);
			*out = NULL;
			return status;
		}
	return QL_OK;
}

struct job {
	const char *from;
	char *to;
	const int64_t *number;
	int64_t divisor;
	size_t pitch, to_pitch, bytes; /* distance of rows in the source and the copy; size of a row */
};

static void take_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t i = begin; i < end; i++)
		memcpy(j->to + (size_t)i * j->to_pitch, j->from + (size_t)((j->number[i] - 1) / j->divisor) * j->pitch,
			j->bytes);
}

/* True if each row is dense; rows may have any distance, of packed elements in whole bytes. */
static bool has_dense_rows(const struct ql_tensor *t)
{
	int64_t stride = 1;

	for (int d = t->rank - 1; d > 0; d--) {
		if (t->shape[d] != 1 && t->stride[d] != stride)
			return false;
		stride *= t->shape[d];
	}
	return !ql_dtype_is_packed(t->dtype) || (t->rank == 2 && t->stride[0] * ql_dtypes[t->dtype].bits % 8 == 0);
}

static enum ql_status take(struct ql_ctx *ctx, const struct ql_tensor *t, const int64_t *number, int64_t n,
	int64_t divisor, struct ql_tensor **out)
{
	size_t bits = ql_dtypes[t->dtype].bits;
	int64_t shape[QL_MAX_RANK], row = 1;
	struct job j = {.from = (const char *)t->storage->data + (size_t)t->offset * bits / 8,
		.number = number,
		.divisor = divisor,
		.pitch = (size_t)t->stride[0] * bits / 8};
	enum ql_status status;

	memcpy(shape, t->shape, sizeof(shape));
	shape[0] = n;
	status = ql_tensor_new(ctx, t->dtype, t->rank, shape, out);
	if (status)
		return status;
	for (int d = 1; d < t->rank; d++)
		row *= t->shape[d];
	j.bytes = ((size_t)row * bits + 7) / 8; /* size: *out is allocated, or no row is copied */
	j.to_pitch = (size_t)ql_dtype_pitch(t->dtype, row) * bits / 8;
	j.to = ql_tensor_nelem(*out) ? (*out)->storage->data : NULL;
	if (!j.to)
		return QL_OK;
	return ql_parallel_for(ctx, n, ql_max64(1, CHUNK_BYTES / (int64_t)j.bytes), n * (int64_t)j.bytes / BYTES_PER_NS,
		take_body, &j);
}

/* From codes of channels that differ in bits: a few rows one by one. */
static enum ql_status take_few(struct ql_ctx *ctx, struct ql_tensor *t, const int64_t *number, int64_t n,
	int64_t divisor, struct ql_tensor **out)
{
	int64_t shape[QL_MAX_RANK];
	struct ql_tensor *from, *to;
	enum ql_status status;

	memcpy(shape, t->shape, sizeof(shape));
	shape[0] = n;
	status = ql_tensor_new(ctx, t->dtype, t->rank, shape, out);
	for (int64_t i = 0; i < n && !status; i++) {
		status = ql_view_narrow(ctx, "embedding", t, 0, (number[i] - 1) / divisor, 1, &from);
		if (status)
			break;
		status = ql_view_narrow(ctx, "embedding", *out, 0, i, 1, &to);
		if (!status)
			status = ql_tensor_copy(ctx, to, from);
		ql_tensor_release(ctx, from);
		ql_tensor_release(ctx, to);
	}
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

static enum ql_status take_closed(struct ql_ctx *ctx, struct ql_tensor *t, const int64_t *number, int64_t n,
	int64_t divisor, struct ql_tensor **out)
{
	enum ql_status status;

	if (n < t->shape[0] / FEW)
		return take_few(ctx, t, number, n, divisor, out);
	status = ql_closed_open(ctx, t->storage);
	if (status)
		return status;
	status = ql_rows_take(ctx, t, number, n, divisor, out);
	ql_closed_close(ctx, t->storage);
	return status;
}

enum ql_status ql_rows_take(struct ql_ctx *ctx, struct ql_tensor *t, const int64_t *number, int64_t n, int64_t divisor,
	struct ql_tensor **out)
{
	struct ql_tensor *dense;
	enum ql_status status;

	*out = NULL;
	if (ql_is_closed(t))
		return take_closed(ctx, t, number, n, divisor, out);
	if (has_dense_rows(t))
		return take(ctx, t, number, n, divisor, out);
	status = ql_tensor_clone(ctx, t, &dense);
	if (status)
		return status;
	status = take(ctx, dense, number, n, divisor, out);
	ql_tensor_release(ctx, dense);
	return status;
}
