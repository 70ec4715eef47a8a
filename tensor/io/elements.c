/* SPDX-License-Identifier: MIT
 * Conversion of elements between file and tensor.
 */
#include "tensor/io/elements.h"

#include <string.h>

#include "tensor/ragged.h"

#define LEAST_MAPPED 4096 /* bytes of a tensor; smaller ones are copied */
#define PIECE 1024        /* unsigned integers widened at a time */

enum ql_status ql_elements_size(struct ql_ctx *ctx, int rank, const int64_t *shape, unsigned bytes, uint64_t *out)
{
	char text[QL_SHAPE_TEXT];
	bool fits = true, empty = false;

	if (rank > QL_MAX_RANK)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "shape: wanted at most %d axes, got %d", QL_MAX_RANK, rank);
	*out = bytes;
	for (int d = 0; d < rank; d++) {
		empty = empty || shape[d] == 0;
		fits = fits && shape[d] >= 0 && (shape[d] == 0 || ql_size_mul(*out, (uint64_t)shape[d], out));
	}
	if (!fits)
		return ql_fail(ctx, QL_ERR_FORMAT, "shape: wanted a size below 2^64 bytes, got %s",
			ql_shape_text(rank, shape, text));
	if (empty)
		*out = 0;
	return QL_OK;
}

static void swap_bytes(uint8_t *p, uint64_t n, unsigned size)
{
	for (uint64_t i = 0; i < n; i++, p += size)
		for (unsigned lo = 0, hi = size - 1; lo < hi; lo++, hi--) {
			uint8_t byte = p[lo];

			p[lo] = p[hi];
			p[hi] = byte;
		}
}

static enum ql_status widen_piece(struct ql_ctx *ctx, const uint8_t *from, uint64_t n, unsigned size, int64_t *to)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t value = size == 4 ? ql_le32(from + 4 * i) : ql_le64(from + 8 * i);

		if (value > INT64_MAX)
			return ql_fail(ctx, QL_ERR_UNSUPPORTED,
				"unsigned 64-bit data: wanted values up to 2^63-1 (they become int64), got "
				"%llu",
				(unsigned long long)value);
		to[i] = (int64_t)value;
	}
	return QL_OK;
}

static enum ql_status read_unsigned(struct ql_stream *s, const struct ql_element_wire *wire, struct ql_tensor *t)
{
	uint8_t piece[PIECE * 8];
	uint64_t n = (uint64_t)ql_tensor_nelem(t), part;
	int64_t *to = t->storage->data;
	enum ql_status status = QL_OK;

	for (; !status && n > 0; n -= part, to += part) {
		part = n < PIECE ? n : PIECE;
		status = ql_stream_read(s, piece, part * wire->bytes, "data");
		if (!status && wire->big_endian)
			swap_bytes(piece, part, wire->bytes);
		if (!status)
			status = widen_piece(s->reader->ctx, piece, part, wire->bytes, to);
	}
	return status;
}

static enum ql_status fill(struct ql_stream *s, const struct ql_element_wire *wire, struct ql_tensor *t)
{
	uint64_t n = (uint64_t)ql_tensor_nelem(t);
	uint8_t *data = t->storage->data;
	enum ql_status status;

	if (wire->is_unsigned)
		return read_unsigned(s, wire, t);
	status = ql_stream_read(s, data, n * wire->bytes, "data");
	if (!status && wire->big_endian)
		swap_bytes(data, n, wire->bytes);
	/* kernels rely on a bool being 0 or 1 */
	for (uint64_t i = 0; !status && ql_dtype_is_bool(wire->dtype) && i < n; i++)
		data[i] = data[i] != 0;
	return status;
}

enum ql_status ql_elements_read(
	struct ql_stream *s, const struct ql_element_wire *wire, int rank, const int64_t *shape, struct ql_tensor **out)
{
	struct ql_ctx *ctx = s->reader->ctx;
	uint64_t bytes;
	enum ql_status status = ql_elements_size(ctx, rank, shape, wire->bytes, &bytes);
	char text[QL_SHAPE_TEXT];

	*out = NULL;
	if (status)
		return status;
	if (bytes > s->left)
		return ql_fail(ctx, QL_ERR_FORMAT, "data: wanted %llu bytes for shape %s, got %llu",
			(unsigned long long)bytes, ql_shape_text(rank, shape, text), (unsigned long long)s->left);
	status = ql_tensor_new(ctx, wire->dtype, rank, shape, out);
	if (!status)
		status = fill(s, wire, *out);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

enum ql_status ql_elements_map(const struct ql_reader *r, unsigned dtype, int rank, const int64_t *shape,
	uint64_t offset, uint64_t bytes, struct ql_tensor **out)
{
	bool plain = !ql_dtype_is_packed(dtype) && !ql_dtype_is_bool(dtype);

	*out = NULL;
	if (!r->mapping || !plain || bytes < LEAST_MAPPED || offset % (ql_dtypes[dtype].bits / 8))
		return QL_OK;
	return ql_tensor_mapped(r->ctx, dtype, rank, shape, r->mapping, offset, out);
}

uint64_t ql_elements_bytes(const struct ql_tensor *t)
{
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1;

	if (ql_ragged_wanted(t))
		return ql_ragged_bytes(t);
	return t->rank ? ql_rows_bytes(row ? ql_tensor_nelem(t) / row : 0, row, t->dtype)
		       : (ql_dtypes[t->dtype].bits + 7u) / 8;
}

/* True if rows of the packed t end within bytes: a view's may hold bits of the elements after it there. */
static bool has_padding(const struct ql_tensor *t)
{
	int64_t row = t->rank ? t->shape[t->rank - 1] : 1;

	return ql_dtype_is_packed(t->dtype) && row * ql_dtypes[t->dtype].bits % 8;
}

static enum ql_status write_dense(struct ql_writer *w, struct ql_tensor *t)
{
	struct ql_tensor *flat;
	enum ql_status status =
		has_padding(t) ? ql_tensor_clone(w->ctx, t, &flat) : ql_tensor_contiguous(w->ctx, t, &flat);
	const uint8_t *data;

	if (!status)
		status = ql_closed_open(w->ctx, flat->storage); /* of one channel, or of codes alone */
	if (!status) {
		data = flat->storage->data;
		/* the offset of a packed view is a whole number of bytes */
		status = ql_writer_put(
			w, data + flat->offset * ql_dtypes[flat->dtype].bits / 8, ql_elements_bytes(flat));
		ql_closed_close(w->ctx, flat->storage);
	}
	ql_tensor_release(w->ctx, flat);
	return status;
}

/* The rows of the channels. */
static enum ql_status write_ragged(struct ql_writer *w, struct ql_tensor *t)
{
	const struct ql_ragged *r = ql_ragged_of(t->storage);
	bool whole = r && t->offset == 0 && ql_tensor_is_contiguous(t) && r->rows * r->row == ql_tensor_nelem(t);
	struct ql_tensor *rows;
	enum ql_status status = whole ? ql_tensor_alias(w->ctx, t, &rows) : ql_tensor_clone(w->ctx, t, &rows);

	if (!status)
		status = ql_ragged_pack(w->ctx, rows);
	if (!status)
		r = ql_ragged_of(rows->storage);
	if (!status)
		status = ql_writer_put(w, r->data, r->base.bytes);
	ql_tensor_release(w->ctx, rows);
	return status;
}

enum ql_status ql_elements_write(struct ql_writer *w, struct ql_tensor *t)
{
	if (ql_ragged_wanted(t))
		return write_ragged(w, t);
	return write_dense(w, t);
}
