/* SPDX-License-Identifier: MIT
 * Unpacks words to codes. A period is the least number of words that hold whole fields: one, or `bits` where fields cross
 * words. Words are read in tiles, so that a transposed result is written in pieces that stay in the cache.
 */
#include "nn/unpack.h"

#include "tensor/parallel.h"

#define TILE 64

struct job {
	int bits, fields, words; /* of a period */
	uint8_t word[32], shift[32];
	int offset;
	int64_t rows, columns;      /* periods of the words: rows and columns of periods */
	int64_t next, right, below; /* distances of words: within a period, of periods */
	int64_t periods, count;     /* fields along the packed axis */
	bool along;                 /* the packed axis is that of the columns */
	int64_t y_field, y_other;   /* distances in y along the packed axis and the other one */
	const int32_t *x;
	uint8_t *y;
};

static uint8_t field(const struct job *j, const int32_t *x, int k)
{
	uint64_t low = (uint32_t)x[j->word[k] * j->next], high = 0;

	if (j->shift[k] + j->bits > 32)
		high = (uint32_t)x[(j->word[k] + 1) * j->next];
	return (uint8_t)((((high << 32 | low) >> j->shift[k]) & ((1U << j->bits) - 1)) - (unsigned)j->offset);
}

/* The fields of one period; `first` is the number of the first along the packed axis, y where it goes. */
static void one(const struct job *j, const int32_t *x, int64_t first, uint8_t *y)
{
	int n = j->count - first < j->fields ? (int)(j->count - first) : j->fields;

	for (int k = 0; k < n; k++)
		y[k * j->y_field] = field(j, x, k);
}

/* Item i: a row of tiles of periods. */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t c = begin * TILE; c < j->columns && c < end * TILE; c += TILE)
		for (int64_t r = 0; r < j->rows; r += TILE)
			for (int64_t cc = c; cc < c + TILE && cc < j->columns; cc++)
				for (int64_t rr = r; rr < r + TILE && rr < j->rows; rr++) {
					int64_t packed = (j->along ? cc : rr) * j->fields, other = j->along ? rr : cc;

					one(j, j->x + rr * j->below + cc * j->right, packed,
						j->y + packed * j->y_field + other * j->y_other);
				}
}

/* Word and bit of each field of a period; false: the order has no such fields. */
static bool places(struct job *j, const struct ql_unpack *how)
{
	static const uint8_t awq[8] = {0, 4, 1, 5, 2, 6, 3, 7}; /* the field of a word that holds code k */
	bool stream = how->order == QL_UNPACK_STREAM;

	if (how->bits < 1 || how->bits > 8 || (how->order == QL_UNPACK_AWQ && how->bits != 4))
		return false;
	j->bits = how->bits;
	j->fields = stream ? 32 : 32 / how->bits;
	j->words = stream ? how->bits : 1;
	for (int k = 0; k < j->fields; k++) {
		int at = how->order == QL_UNPACK_AWQ ? awq[k] : k;

		j->word[k] = (uint8_t)(at * how->bits / 32);
		j->shift[k] = (uint8_t)(at * how->bits % 32);
	}
	return true;
}

static enum ql_status check(
	struct ql_ctx *ctx, const struct ql_tensor *words, const struct ql_unpack *how, struct job *j)
{
	char text[QL_SHAPE_TEXT];
	bool stream = how->order == QL_UNPACK_STREAM;
	int64_t size;

	if (words->rank != 2 || words->dtype != QL_int32 || words->q)
		return ql_fail(ctx, QL_ERR_SHAPE, "wanted words (rows, columns) in int32, got %s",
			ql_tensor_text(words, text));
	if (!places(j, how))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "wanted fields that the order has, got %d bits", how->bits);
	size = words->shape[how->axis];
	if (how->count < 0 || how->count > size * 32 || /* size: below 2^63 bytes */
		size != (stream ? (how->count * how->bits + 31) / 32 : (how->count + j->fields - 1) / j->fields))
		return ql_fail(ctx, QL_ERR_SHAPE, "wanted words of %lld codes of %d bits along axis %d, got %lld",
			(long long)how->count, how->bits, how->axis + 1, (long long)size);
	j->periods = (how->count + j->fields - 1) / j->fields;
	return QL_OK;
}

enum ql_status ql_unpack(
	struct ql_ctx *ctx, struct ql_tensor *words, const struct ql_unpack *how, struct ql_tensor **out)
{
	struct job j = {.offset = how->offset, .count = how->count, .along = how->axis == 1};
	struct ql_tensor *x = NULL, *y = NULL;
	enum ql_status status = check(ctx, words, how, &j);
	int64_t other = status ? 0 : words->shape[1 - how->axis], shape[2];
	bool packed_last = j.along != how->turn;

	*out = NULL;
	shape[packed_last ? 1 : 0] = how->count;
	shape[packed_last ? 0 : 1] = other;
	if (!status)
		status = ql_tensor_contiguous(ctx, words, &x);
	if (!status)
		status = ql_tensor_new(ctx, how->offset ? QL_int8 : QL_uint8, 2, shape, &y);
	if (!status && ql_tensor_nelem(y) > 0) {
		j.rows = j.along ? x->shape[0] : j.periods;
		j.columns = j.along ? j.periods : x->shape[1];
		j.below = x->shape[1] * (j.along ? 1 : j.words);
		j.right = j.along ? j.words : 1;
		j.next = j.along ? 1 : x->shape[1];
		j.y_field = packed_last ? 1 : other;
		j.y_other = packed_last ? how->count : 1;
		j.x = ql_tensor_data(x);
		j.y = ql_tensor_data(y);
		status = ql_parallel_for(ctx, (j.columns + TILE - 1) / TILE, 1, 2 * ql_tensor_nelem(y), body, &j);
	}
	ql_tensor_release(ctx, x);
	if (status)
		ql_tensor_release(ctx, y);
	else
		*out = y;
	return status;
}
