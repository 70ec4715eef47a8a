/* SPDX-License-Identifier: MIT
 * Words to codes: each order, width, axis and direction against fields that are cut out bit by bit, sizes that do not
 * fit. Codes with given parameters are tested in tests/nn/packings.
 */
#include "nn/unpack.h"

#include <string.h>

#include "tensor/base.h"
#include "tests/check.h"

static const int awq[8] = {0, 4, 1, 5, 2, 6, 3, 7};

/* The word of a row of words along the packed axis. */
static uint32_t word_of(const struct ql_tensor *w, int axis, int64_t other, int64_t i)
{
	const int32_t *x = ql_tensor_data(w);

	return (uint32_t)(axis ? x[other * w->shape[1] + i] : x[i * w->shape[1] + other]);
}

static int code_of(const struct ql_tensor *w, const struct ql_unpack *how, int64_t other, int64_t i)
{
	int64_t at = i * how->bits;
	int code = 0;

	if (how->order != QL_UNPACK_STREAM)
		at = i / (32 / how->bits) * 32 +
		     (how->order == QL_UNPACK_AWQ ? awq[i % 8] : i % (32 / how->bits)) * how->bits;
	for (int b = 0; b < how->bits; b++)
		code |= (int)(word_of(w, how->axis, other, (at + b) / 32) >> (at + b) % 32 & 1) << b;
	return code - how->offset;
}

static int64_t words_for(const struct ql_unpack *how)
{
	int64_t per = 32 / how->bits;

	return how->order == QL_UNPACK_STREAM ? (how->count * how->bits + 31) / 32 : (how->count + per - 1) / per;
}

static struct ql_tensor *words_of(struct ql_ctx *ctx, const struct ql_unpack *how, int64_t other)
{
	struct ql_tensor *w = NULL;
	int64_t n = words_for(how), shape[2] = {how->axis ? other : n, how->axis ? n : other};
	uint32_t state = 1;

	CHECK(ql_tensor_new(ctx, QL_int32, 2, shape, &w) == QL_OK, "%s", ctx->err);
	for (int64_t i = 0; i < ql_tensor_nelem(w); i++) {
		state = state * 1664525U + 1013904223U;
		((int32_t *)ql_tensor_data(w))[i] = (int32_t)(state ^ state >> 15);
	}
	return w;
}

/* Packs the codes and unpacks them again; fields that no code has are 0. */
static void round_trip(struct ql_ctx *ctx, const struct ql_unpack *how, struct ql_tensor *y)
{
	struct ql_tensor *w = NULL, *again = NULL;
	struct ql_unpack longer = *how;

	CHECK(ql_pack(ctx, y, how, &w) == QL_OK && w->shape[how->axis] == words_for(how), "%s", ctx->err);
	CHECK(ql_unpack(ctx, w, how, &again) == QL_OK, "%s", ctx->err);
	CHECK(!memcmp(ql_tensor_data(again), ql_tensor_data(y), (size_t)ql_tensor_nelem(y)), "packed and unpacked");
	ql_tensor_release(ctx, again);
	longer.count += how->count % (32 / how->bits) ? 1 : 0; /* the first free field, where there is one */
	longer.turn = how->axis == 0;
	longer.offset = 0;
	if (how->order == QL_UNPACK_WORDS && longer.count > how->count && y->shape[0] > 0 && y->shape[1] > 0) {
		CHECK(ql_unpack(ctx, w, &longer, &again) == QL_OK, "%s", ctx->err);
		CHECK(((uint8_t *)ql_tensor_data(again))[how->count] == 0, "a field without a code");
		ql_tensor_release(ctx, again);
	}
	ql_tensor_release(ctx, w);
}

static void compare(struct ql_ctx *ctx, const struct ql_unpack *how, int64_t other)
{
	struct ql_tensor *w = words_of(ctx, how, other), *y = NULL;
	bool last = (how->axis == 1) != how->turn;
	int64_t bad = 0;

	CHECK(ql_unpack(ctx, w, how, &y) == QL_OK, "%s", ctx->err);
	CHECK(y->dtype == (how->offset ? QL_int8 : QL_uint8) && y->shape[last] == how->count &&
			y->shape[!last] == other,
		"shape");
	for (int64_t o = 0; o < other; o++)
		for (int64_t i = 0; i < how->count; i++) {
			int64_t at = last ? o * how->count + i : i * other + o;
			int got = how->offset ? ((int8_t *)ql_tensor_data(y))[at] : ((uint8_t *)ql_tensor_data(y))[at];

			bad += got != code_of(w, how, o, i);
		}
	CHECK(bad == 0, "order %d, %d bits, axis %d, %lld codes, turn %d: %lld differ", how->order, how->bits,
		how->axis, (long long)how->count, how->turn, (long long)bad);
	round_trip(ctx, how, y);
	ql_tensor_release(ctx, w);
	ql_tensor_release(ctx, y);
}

static void orders(struct ql_ctx *ctx)
{
	static const int64_t counts[] = {0, 1, 8, 31, 64, 96, 530}, others[] = {0, 1, 5, 129};

	for (int order = QL_UNPACK_WORDS; order <= QL_UNPACK_AWQ; order++)
		for (int bits = order == QL_UNPACK_AWQ ? 4 : 1; bits <= (order == QL_UNPACK_AWQ ? 4 : 8); bits++)
			for (int k = 0; k < 7 * 4 * 4; k++) {
				struct ql_unpack how = {(enum ql_unpack_order)order, bits, k & 1, counts[k / 16],
					k & 4 ? 1 << (bits - 1) : 0, k & 2};

				compare(ctx, &how, others[k / 4 % 4]);
			}
}

static void refuse(struct ql_ctx *ctx, struct ql_tensor *w, struct ql_unpack how, enum ql_status status)
{
	struct ql_tensor *y = NULL;

	CHECK(ql_unpack(ctx, w, &how, &y) == status && !y, "%d bits, %lld codes", how.bits, (long long)how.count);
}

static void wrong(struct ql_ctx *ctx)
{
	struct ql_unpack how = {QL_UNPACK_WORDS, 4, 1, 24, 0, false};
	struct ql_tensor *w = words_of(ctx, &how, 3), *flat = NULL, *y = NULL;

	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_WORDS, 4, 1, 25, 0, false}, QL_ERR_SHAPE);
	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_WORDS, 4, 1, 16, 0, false}, QL_ERR_SHAPE);
	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_WORDS, 4, 0, 32, 0, false}, QL_ERR_SHAPE);
	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_STREAM, 8, 1, INT64_MAX, 0, false}, QL_ERR_SHAPE);
	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_STREAM, 8, 1, -1, 0, false}, QL_ERR_SHAPE);
	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_WORDS, 9, 1, 8, 0, false}, QL_ERR_ARGUMENT);
	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_WORDS, 0, 1, 8, 0, false}, QL_ERR_ARGUMENT);
	refuse(ctx, w, (struct ql_unpack){QL_UNPACK_AWQ, 8, 1, 8, 0, false}, QL_ERR_ARGUMENT);
	CHECK(ql_pack(ctx, w, &how, &flat) == QL_ERR_SHAPE && !flat, "words as codes");
	CHECK(ql_tensor_cast(ctx, w, QL_uint8, &flat) == QL_OK, "%s", ctx->err);
	CHECK(ql_pack(ctx, flat, &how, &y) == QL_ERR_SHAPE && !y, "another count");
	ql_tensor_release(ctx, flat);
	CHECK(ql_tensor_cast(ctx, w, QL_int64, &flat) == QL_OK, "%s", ctx->err);
	refuse(ctx, flat, how, QL_ERR_SHAPE);
	ql_tensor_release(ctx, flat);
	ql_tensor_release(ctx, w);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(2);

	orders(ctx);
	wrong(ctx);
	ql_ctx_free(ctx);
	return check_end();
}
