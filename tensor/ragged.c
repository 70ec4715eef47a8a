/* SPDX-License-Identifier: MIT
 * Rows of fields of different widths: layout, packing and unpacking.
 */
#include "tensor/ragged.h"

#include <string.h>

#include "tensor/codes.h"
#include "tensor/parallel.h"

#define BUFFER 512 /* codes converted at a time */

/* ---- fields ---- */

static bool is_signed(const struct ql_ragged *r)
{
	return ql_dtypes[r->base.dtype].kind == QL_KIND_INT;
}

/* The dtype of that many bits, which has faster converters; -1: none, or more than 8 bits. */
static int dtype_of(const struct ql_ragged *r, unsigned bits)
{
	for (int d = 0; d < QL_DTYPE_COUNT; d++)
		if (ql_dtypes[d].bits == bits && ql_dtypes[d].kind == ql_dtypes[r->base.dtype].kind)
			return bits <= 8 ? d : -1;
	return -1;
}

static int64_t get_field(const struct ql_ragged *r, int64_t row, int64_t column)
{
	unsigned bits = r->bits[row];
	int64_t bit = column * (int64_t)bits, sign = is_signed(r) ? (int64_t)1 << (bits - 1) : 0;
	const uint8_t *p = r->data + r->begin[row] + bit / 8;
	uint32_t word = 0, shift = (uint32_t)(bit % 8);

	for (unsigned b = 0; 8 * b < shift + bits; b++)
		word |= (uint32_t)p[b] << 8 * b;
	return ((int64_t)(word >> shift & ((1u << bits) - 1)) ^ sign) - sign;
}

static void put_field(struct ql_ragged *r, int64_t row, int64_t column, int64_t value)
{
	unsigned bits = r->bits[row];
	int64_t bit = column * (int64_t)bits;
	uint8_t *p = r->data + r->begin[row] + bit / 8;
	uint32_t shift = (uint32_t)(bit % 8), mask = ((1u << bits) - 1) << shift,
		 word = (uint32_t)value << shift & mask;

	for (unsigned b = 0; 8 * b < shift + bits; b++)
		p[b] = (uint8_t)((p[b] & ~(mask >> 8 * b)) | word >> 8 * b);
}

static int64_t saturated(const struct ql_ragged *r, int64_t row, int64_t value)
{
	int64_t steps = (int64_t)1 << r->bits[row], lo = is_signed(r) ? -steps / 2 : 0;

	return value < lo ? lo : value > lo + steps - 1 ? lo + steps - 1 : value;
}

/* ---- layout ---- */

/* The row and column of an element of the dense codes; -1 for padding. */
static int64_t place(const struct ql_ragged *r, int64_t at, int64_t *column)
{
	int64_t line = at / r->pitch, rest = at % r->pitch;

	if (r->columns) {
		*column = line;
		return rest < r->rows ? rest : -1;
	}
	*column = (line / r->lines / r->rows * r->lines + line % r->lines) * r->line + rest;
	return rest < r->line ? line / r->lines % r->rows : -1;
}

uint64_t ql_ragged_row_bytes(int64_t n, int bits)
{
	uint64_t whole = (uint64_t)n / 8 * (uint64_t)bits; /* size: below 2^60 * 16 */

	return whole + ((uint64_t)n % 8 * (uint64_t)bits + 7) / 8;
}

static int bits_of(const struct ql_qparams *q, int64_t channel)
{
	return q->bits ? (int)ql_tensor_get_i64(q->bits, &channel) : q->codes.bits;
}

uint64_t ql_ragged_bytes(const struct ql_tensor *t)
{
	int64_t n = ql_tensor_nelem(t), rows = t->q->bits ? t->shape[t->q->axis] : 1;
	uint64_t bytes = 0;

	for (int64_t i = 0; i < rows && bytes < INT64_MAX; i++)
		if (!ql_size_add(bytes, ql_ragged_row_bytes(n / rows, bits_of(t->q, i)), &bytes))
			return INT64_MAX;
	return bytes < INT64_MAX ? bytes : INT64_MAX;
}

/* Sets the mapping from lines of the dense codes to rows. */
static void set_lines(struct ql_ragged *r, const struct ql_tensor *t)
{
	int axis = t->q->axis, last = t->rank - 1;

	r->rows = t->shape[axis];
	r->row = ql_tensor_nelem(t) / r->rows;
	r->columns = axis == last;
	r->pitch = ql_dtype_pitch(t->dtype, t->shape[last]);
	r->lines = 1;
	r->line = r->columns ? 1 : t->shape[last];
	for (int d = axis + 1; d < last; d++)
		r->lines *= t->shape[d];
	if (r->columns || r->pitch != r->line)
		return;
	r->line *= r->lines;
	r->pitch = r->line;
	r->lines = 1;
}

static enum ql_status make(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_ragged **out)
{
	struct ql_ragged *r = ql_alloc_zeroed(ctx, sizeof(*r));

	*out = r;
	if (!r)
		return QL_ERR_MEMORY;
	r->base.dtype = t->dtype;
	r->base.dense = t->storage->bytes;
	set_lines(r, t);
	r->base.bytes = (size_t)ql_ragged_bytes(t);
	r->begin = ql_alloc_array(ctx, r->rows, sizeof(*r->begin));
	r->bits = ql_alloc_array(ctx, r->rows, sizeof(*r->bits));
	r->data = ql_alloc_zeroed(ctx, r->base.bytes);
	if (!r->begin || !r->bits || !r->data)
		return QL_ERR_MEMORY;
	for (int64_t i = 0, at = 0; i < r->rows; i++) {
		r->bits[i] = (uint8_t)bits_of(t->q, i);
		r->begin[i] = at;
		at += (int64_t)ql_ragged_row_bytes(r->row, r->bits[i]);
	}
	return QL_OK;
}

static void ragged_free(struct ql_ctx *ctx, struct ql_closed *c)
{
	struct ql_ragged *r = (struct ql_ragged *)c;

	if (!r)
		return;
	ql_free(ctx, r->begin);
	ql_free(ctx, r->bits);
	ql_free(ctx, r->data);
	ql_free(ctx, r);
}

/* ---- rows ---- */

/* Reads n codes of a row, as bytes or as 16-bit numbers. */
static void get_run(const struct ql_ragged *r, int64_t row, int64_t column, int64_t n, void *code)
{
	int dtype = ql_dtypes[r->base.dtype].bits <= 8 ? dtype_of(r, r->bits[row]) : -1;
	const uint8_t *from = r->data + r->begin[row];

	if (dtype >= 0 && r->bits[row] == 8)
		memcpy(code, from + column, (size_t)n);
	else if (dtype >= 0)
		ql_codes_get((unsigned)dtype, from, column, n, code);
	else if (ql_dtypes[r->base.dtype].bits <= 8)
		for (int64_t i = 0; i < n; i++)
			((int8_t *)code)[i] = (int8_t)get_field(r, row, column + i);
	else
		for (int64_t i = 0; i < n; i++)
			((int16_t *)code)[i] = (int16_t)get_field(r, row, column + i);
}

/* Writes codes given one per byte; the row has up to 8 bits and a dtype of that width (not 7). */
static void put_bytes(struct ql_ragged *r, int64_t row, int64_t column, int64_t n, const uint8_t *byte)
{
	uint8_t *to = r->data + r->begin[row];

	if (r->bits[row] == 8)
		memcpy(to + column, byte, (size_t)n);
	else
		ql_codes_put((unsigned)dtype_of(r, r->bits[row]), to, column, n, byte);
}

static void put_run(struct ql_ragged *r, int64_t row, int64_t column, int64_t n, int64_t *code)
{
	uint8_t byte[BUFFER];

	for (int64_t i = 0; i < n; i++)
		code[i] = saturated(r, row, code[i]);
	if (dtype_of(r, r->bits[row]) < 0) {
		for (int64_t i = 0; i < n; i++)
			put_field(r, row, column + i, code[i]);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		byte[i] = (uint8_t)code[i];
	put_bytes(r, row, column, n, byte);
}

/* Copies n codes of a row to elements at, at + step, … of the dense codes. */
static void unpack_run(
	const struct ql_ragged *r, int64_t row, int64_t column, int64_t n, void *dense, int64_t at, int64_t step)
{
	const struct ql_dtype_info *d = &ql_dtypes[r->base.dtype], *whole = &ql_dtypes[ql_dtype_whole(r->base.dtype)];
	int16_t code[BUFFER];
	int64_t wide[BUFFER];

	if (step == 1 && d->bits >= 8) {
		get_run(r, row, column, n, (uint8_t *)dense + at * (d->bits / 8));
		return;
	}
	for (int64_t i = 0, m; i < n; i += m) {
		m = ql_min64(BUFFER, n - i);
		get_run(r, row, column + i, m, code);
		if (step == 1) {
			ql_codes_put(r->base.dtype, dense, at + i, m, (const uint8_t *)code);
			continue;
		}
		whole->to_i64(code, 0, 1, m, wide);
		d->from_i64(dense, at + i * step, step, m, wide);
	}
}

/* Clamps 8-bit codes to their channel's range. */
static void clamp_bytes(const struct ql_ragged *r, int64_t row, int64_t n, const void *dense, uint8_t *out)
{
	const int8_t *x = dense;
	const uint8_t *u = dense;
	int lo = (int)saturated(r, row, INT8_MIN), hi = (int)saturated(r, row, UINT8_MAX);

	if (is_signed(r))
		for (int64_t i = 0; i < n; i++)
			out[i] = (uint8_t)(x[i] < lo ? lo : x[i] > hi ? hi : x[i]);
	else
		for (int64_t i = 0; i < n; i++)
			out[i] = (uint8_t)(u[i] > hi ? hi : u[i]);
}

static void pack_run(
	struct ql_ragged *r, int64_t row, int64_t column, int64_t n, const void *dense, int64_t at, int64_t step)
{
	bool bytes = step == 1 && ql_dtypes[r->base.dtype].bits == 8 && dtype_of(r, r->bits[row]) >= 0;
	uint8_t byte[BUFFER];
	int64_t wide[BUFFER];

	for (int64_t i = 0, m; i < n; i += m) {
		m = ql_min64(BUFFER, n - i);
		if (bytes) {
			clamp_bytes(r, row, m, (const uint8_t *)dense + at + i, byte);
			put_bytes(r, row, column + i, m, byte);
			continue;
		}
		ql_dtypes[r->base.dtype].to_i64(dense, at + i * step, step, m, wide);
		put_run(r, row, column + i, m, wide);
	}
}

struct job {
	struct ql_ragged *r;
	void *dense;
	bool pack;
};

static void convert_run(const struct job *j, int64_t row, int64_t column, int64_t n, int64_t at, int64_t step)
{
	if (j->pack)
		pack_run(j->r, row, column, n, j->dense, at, step);
	else
		unpack_run(j->r, row, column, n, j->dense, at, step);
}

static void convert_row(const struct job *j, int64_t row)
{
	const struct ql_ragged *r = j->r;

	if (r->columns) {
		convert_run(j, row, 0, r->row, row, r->pitch);
		return;
	}
	for (int64_t i = 0; i < r->row / r->line; i++)
		convert_run(j, row, i * r->line, r->line,
			((i / r->lines * r->rows + row) * r->lines + i % r->lines) * r->pitch, 1);
}

static void convert_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		convert_row(arg, i);
}

/* Converts all rows to or from dense codes. Columns of packed codes share bytes, so one thread unpacks them. */
static enum ql_status convert(struct ql_ctx *ctx, struct ql_ragged *r, void *dense, bool pack)
{
	struct job j = {.r = r, .dense = dense, .pack = pack};
	bool alone = r->columns && ql_dtype_is_packed(r->base.dtype) && !pack;

	return ql_parallel_for(
		ctx, r->rows, ql_max64(1, 32768 / r->row), alone ? 0 : ql_mul64(r->rows, r->row), convert_body, &j);
}

/* ---- storages ---- */

static enum ql_status unpack(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	return convert(ctx, (struct ql_ragged *)c, dense, false);
}

static void pack(struct ql_ctx *ctx, struct ql_closed *c, void *dense)
{
	convert(ctx, (struct ql_ragged *)c, dense, true);
}

static int64_t get(const struct ql_closed *c, int64_t at)
{
	const struct ql_ragged *r = (const struct ql_ragged *)c;
	int64_t column, row = place(r, at, &column);

	return row < 0 ? 0 : get_field(r, row, column);
}

static void put(struct ql_closed *c, int64_t at, int64_t value)
{
	struct ql_ragged *r = (struct ql_ragged *)c;
	int64_t column, row = place(r, at, &column);

	if (row >= 0)
		put_field(r, row, column, saturated(r, row, value));
}

static const struct ql_closed_kind ragged_kind = {
	.unpack = unpack, .pack = pack, .get = get, .put = put, .free = ragged_free};

const struct ql_ragged *ql_ragged_of(const struct ql_storage *s)
{
	return s->closed && s->closed->kind == &ragged_kind ? (const struct ql_ragged *)s->closed : NULL;
}

/* True if t covers a whole storage of dense codes and its channels differ in bits. */
static bool can_pack(const struct ql_tensor *t)
{
	const struct ql_qparams *q = t->q;

	return ql_ragged_wanted(t) && q->axis >= 0 && q->scheme->affine && !ql_dtype_is_binary(t->dtype) &&
	       ql_can_close(t);
}

static void close_storage(struct ql_ctx *ctx, struct ql_storage *s, struct ql_ragged *r)
{
	r->base.kind = &ragged_kind;
	r->base.codes = r->rows * r->row;
	ql_storage_close(ctx, s, &r->base);
}

enum ql_status ql_ragged_pack(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_ragged *r;
	enum ql_status status;

	if (!can_pack(t))
		return QL_OK;
	status = make(ctx, t, &r);
	if (!status)
		status = convert(ctx, r, t->storage->data, true);
	if (status)
		ragged_free(ctx, r ? &r->base : NULL);
	else
		close_storage(ctx, t->storage, r);
	return status;
}

/* True if all bits after the last code of each row are 0. */
static bool padding_is_zero(const struct ql_ragged *r)
{
	for (int64_t i = 0; i < r->rows; i++) {
		int64_t used = r->row % 8 * r->bits[i] % 8;
		int64_t end = r->begin[i] + (int64_t)ql_ragged_row_bytes(r->row, r->bits[i]);

		if (used && r->data[end - 1] >> used)
			return false;
	}
	return true;
}

enum ql_status ql_ragged_take(struct ql_ctx *ctx, struct ql_tensor *t, const uint8_t *rows, size_t bytes)
{
	struct ql_ragged *r = NULL;
	enum ql_status status = can_pack(t) ? make(ctx, t, &r) : QL_ERR_FORMAT;

	if (status == QL_ERR_FORMAT || (!status && r->base.bytes != bytes))
		status = ql_fail(ctx, QL_ERR_FORMAT,
			"codes: wanted %zu bytes of channels that differ in bits, got %zu bytes", r ? r->base.bytes : 0,
			bytes);
	if (!status) {
		memcpy(r->data, rows, bytes);
		if (!padding_is_zero(r))
			status = ql_fail(ctx, QL_ERR_FORMAT,
				"codes: wanted zero bits after the end of every channel, got others");
	}
	if (status)
		ragged_free(ctx, r ? &r->base : NULL);
	else
		close_storage(ctx, t->storage, r);
	return status;
}

/* ---- elements ---- */

void ql_ragged_get(const struct ql_ragged *r, int64_t at, int64_t n, void *code)
{
	size_t size = ql_dtypes[ql_dtype_whole(r->base.dtype)].bits / 8;
	uint8_t *to = code;

	for (int64_t m, column, row; n > 0; n -= m, at += m, to += (size_t)m * size) {
		row = place(r, at, &column);
		m = r->columns || row < 0 ? 1 : ql_min64(n, r->line - at % r->pitch);
		if (row < 0)
			memset(to, 0, size);
		else
			get_run(r, row, column, m, to);
	}
}
