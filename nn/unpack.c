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
	int32_t *x;                 /* words */
	uint8_t *y;                 /* codes */
	bool pack;                  /* from codes to words */
};

static uint8_t field(const struct job *j, const int32_t *x, int k)
{
	uint64_t low = (uint32_t)x[j->word[k] * j->next], high = 0;

	if (j->shift[k] + j->bits > 32)
		high = (uint32_t)x[(j->word[k] + 1) * j->next];
	return (uint8_t)((((high << 32 | low) >> j->shift[k]) & ((1U << j->bits) - 1)) - (unsigned)j->offset);
}

static void set_field(const struct job *j, int32_t *x, int k, unsigned code)
{
	uint64_t bits = (uint64_t)((code + (unsigned)j->offset) & ((1U << j->bits) - 1)) << j->shift[k];
	int32_t *word = &x[j->word[k] * j->next];

	*word = (int32_t)((uint32_t)*word | (uint32_t)bits);
	if (j->shift[k] + j->bits > 32)
		word[j->next] = (int32_t)((uint32_t)word[j->next] | (uint32_t)(bits >> 32));
}

/* The fields of one period; `first` is the number of the first along the packed axis, y where it goes. */
static void one(const struct job *j, int32_t *x, int64_t first, uint8_t *y)
{
	int n = j->count - first < j->fields ? (int)(j->count - first) : j->fields;

	for (int k = 0; k < n && j->pack; k++)
		set_field(j, x, k, y[k * j->y_field]);
	for (int k = 0; k < n && !j->pack; k++)
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

/* How many words the codes take along their axis. */
static int64_t words_of(const struct job *j, const struct ql_unpack *how)
{
	bool stream = how->order == QL_UNPACK_STREAM;

	return stream ? (how->count * how->bits + 31) / 32 : (how->count + j->fields - 1) / j->fields;
}

static enum ql_status check_order(struct ql_ctx *ctx, const struct ql_unpack *how, struct job *j)
{
	if (!places(j, how))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "wanted fields that the order has, got %d bits", how->bits);
	return QL_OK;
}

static enum ql_status check_words(
	struct ql_ctx *ctx, const struct ql_tensor *words, const struct ql_unpack *how, struct job *j)
{
	char text[QL_SHAPE_TEXT];
	enum ql_status status;
	int64_t size;

	if (words->rank != 2 || words->dtype != QL_int32 || words->q)
		return ql_fail(ctx, QL_ERR_SHAPE, "wanted words (rows, columns) in int32, got %s",
			ql_tensor_text(words, text));
	status = check_order(ctx, how, j);
	if (status)
		return status;
	size = words->shape[how->axis];
	if (how->count < 0 || how->count > size * 32 /* size: below 2^63 bytes */ || size != words_of(j, how))
		return ql_fail(ctx, QL_ERR_SHAPE, "wanted words of %lld codes of %d bits along axis %d, got %lld",
			(long long)how->count, how->bits, how->axis + 1, (long long)size);
	return QL_OK;
}

static enum ql_status check_codes(
	struct ql_ctx *ctx, const struct ql_tensor *codes, const struct ql_unpack *how, struct job *j)
{
	char text[QL_SHAPE_TEXT];
	bool packed_last = (how->axis == 1) != how->turn;

	if (codes->rank != 2 || codes->dtype != (how->offset ? QL_int8 : QL_uint8) || codes->q)
		return ql_fail(ctx, QL_ERR_SHAPE, "wanted codes (rows, columns) in %s, got %s",
			how->offset ? "int8" : "uint8", ql_tensor_text(codes, text));
	if (codes->shape[packed_last ? 1 : 0] != how->count)
		return ql_fail(ctx, QL_ERR_SHAPE, "wanted %lld codes along axis %d, got %s", (long long)how->count,
			packed_last ? 2 : 1, ql_tensor_text(codes, text));
	return check_order(ctx, how, j);
}

/* The loop over words and codes, both contiguous. */
static enum ql_status run(struct ql_ctx *ctx, struct job *j, const struct ql_unpack *how, struct ql_tensor *words,
	struct ql_tensor *codes)
{
	bool packed_last = j->along != how->turn;
	int64_t columns = words->shape[1];

	j->offset = how->offset;
	j->count = how->count;
	j->periods = (how->count + j->fields - 1) / j->fields;
	j->rows = j->along ? words->shape[0] : j->periods;
	j->columns = j->along ? j->periods : columns;
	j->below = columns * (j->along ? 1 : j->words);
	j->right = j->along ? j->words : 1;
	j->next = j->along ? 1 : columns;
	j->y_field = packed_last ? 1 : codes->shape[1];
	j->y_other = packed_last ? codes->shape[1] : 1;
	j->x = ql_tensor_data(words);
	j->y = ql_tensor_data(codes);
	return ql_parallel_for(ctx, (j->columns + TILE - 1) / TILE, 1, 2 * ql_tensor_nelem(codes), body, j);
}

enum ql_status ql_unpack(
	struct ql_ctx *ctx, struct ql_tensor *words, const struct ql_unpack *how, struct ql_tensor **out)
{
	struct job j = {.along = how->axis == 1};
	struct ql_tensor *x = NULL, *y = NULL;
	enum ql_status status = check_words(ctx, words, how, &j);
	bool packed_last = j.along != how->turn;
	int64_t shape[2];

	*out = NULL;
	if (status)
		return status;
	shape[packed_last ? 1 : 0] = how->count;
	shape[packed_last ? 0 : 1] = words->shape[1 - how->axis];
	status = ql_tensor_contiguous(ctx, words, &x);
	if (!status)
		status = ql_tensor_new(ctx, how->offset ? QL_int8 : QL_uint8, 2, shape, &y);
	if (!status && ql_tensor_nelem(y) > 0)
		status = run(ctx, &j, how, x, y);
	ql_tensor_release(ctx, x);
	if (status)
		ql_tensor_release(ctx, y);
	else
		*out = y;
	return status;
}

enum ql_status ql_pack(struct ql_ctx *ctx, struct ql_tensor *codes, const struct ql_unpack *how, struct ql_tensor **out)
{
	struct job j = {.along = how->axis == 1, .pack = true};
	struct ql_tensor *x = NULL, *y = NULL;
	enum ql_status status = check_codes(ctx, codes, how, &j);
	int64_t shape[2];

	*out = NULL;
	if (status)
		return status;
	shape[how->axis] = words_of(&j, how);
	shape[1 - how->axis] = codes->shape[j.along != how->turn ? 0 : 1];
	status = ql_tensor_contiguous(ctx, codes, &y);
	if (!status)
		status = ql_tensor_zeros(ctx, QL_int32, 2, shape, &x);
	if (!status && ql_tensor_nelem(y) > 0)
		status = run(ctx, &j, how, x, y);
	ql_tensor_release(ctx, y);
	if (status)
		ql_tensor_release(ctx, x);
	else
		*out = x;
	return status;
}
