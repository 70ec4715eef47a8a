/* SPDX-License-Identifier: MIT
 * Panels of an 8-bit matrix B in the place of its codes: one of the layouts of tensor/closed.h. A weight is then in memory once,
 * and products of any number of rows read it as their tiles need it.
 *
 * The code of row l and column j of B is byte j / nr * pitch + (l / 4 * nr + j % nr) * 4 + l % 4, with its top bit flipped if the
 * dtype is not that of the tiles; pitch = ceil(k / 4) * 4 * nr (pack.h). The tail of the last panel and of k is 0. So the bytes
 * are those of the codes where nr divides n; where the tails need more than a 16th, or of recurrent layers, which would pack them at
 * each call, an 11th, the codes stay. The 32-bit sums of columns follow the panels: nearly every product needs them, since tiles take
 * one operand unsigned.
 *
 * A storage of codes (n, k), the weight of a linear layer, has columns of B of consecutive bytes; they are unpacked by 4 x 4
 * blocks of 4 bytes. One of (k, n) has rows of consecutive bytes. What is written to is dense again.
 */
#include "tensor/closed.h"
#include "tensor/gemm/gemm.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/turn.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define HEAD 192   /* keeps what follows aligned */
#define TAIL 16    /* sums after the last one that vectors may read */
#define SHARE 16   /* the part of the codes' bytes that tails and sums may need */
#define MORE 11    /* likewise, of codes that would be packed at each call */
#define LEAST 4096 /* smaller ones stay */

struct stored {
	struct ql_closed base;
	struct ql_gemm_i8_panels panels;
	int64_t n, k, nr, pitch;
	bool columns; /* the codes are (n, k): the columns of B are consecutive bytes */
	uint8_t flip;
};

_Static_assert(sizeof(struct stored) <= HEAD, "the description has room in front");

/* ---- from panels to codes ---- */

static int64_t get(const struct ql_closed *c, int64_t at)
{
	const struct stored *s = (const struct stored *)c;
	int64_t j = s->columns ? at / s->k : at % s->n, l = s->columns ? at % s->k : at / s->n;
	uint8_t code = s->panels.data[j / s->nr * s->pitch + (l / 4 * s->nr + j % s->nr) * 4 + l % 4] ^ s->flip;

	return c->dtype == QL_int8 ? (int8_t)code : code;
}

struct job {
	const struct stored *s;
	uint8_t *dense;
};

static void unpack_columns(const struct job *job, int64_t panel)
{
	const struct stored *s = job->s;
	const uint8_t *from = s->panels.data + panel * s->pitch;
	uint8_t *to = job->dense + panel * s->nr * s->k;
	int64_t columns = ql_min64(s->nr, s->n - panel * s->nr), wide = columns / 4 * 4, whole = s->k / 16 * 16;
	const __m128i flip = _mm_set1_epi8((char)s->flip);

	for (int64_t c = 0; c < wide; c += 4)
		for (int64_t l = 0; l < whole; l += 16)
			ql_turn_4(from + l * s->nr + 4 * c, 4 * s->nr, flip, to + c * s->k + l, s->k);
	for (int64_t c = 0; c < columns; c++)
		for (int64_t l = c < wide ? whole : 0; l < s->k; l++)
			to[c * s->k + l] = from[(l / 4 * s->nr + c) * 4 + l % 4] ^ s->flip;
}

static void unpack_rows(const struct job *job, int64_t panel)
{
	const struct stored *s = job->s;
	const uint8_t *from = s->panels.data + panel * s->pitch;
	uint8_t *to = job->dense + panel * s->nr;
	int64_t columns = ql_min64(s->nr, s->n - panel * s->nr);

	for (int64_t l = 0; l < s->k; l++)
		for (int64_t c = 0; c < columns; c++)
			to[l * s->n + c] = from[(l / 4 * s->nr + c) * 4 + l % 4] ^ s->flip;
}

static void unpack_body(void *arg, int64_t begin, int64_t end)
{
	const struct job *job = arg;

	for (int64_t panel = begin; panel < end; panel++)
		(job->s->columns ? unpack_columns : unpack_rows)(job, panel);
}

static enum ql_status unpack(struct ql_ctx *ctx, const struct ql_closed *c, void *dense)
{
	const struct stored *s = (const struct stored *)c;
	struct job job = {s, dense};

	return ql_parallel_for(ctx, ql_ceil_div(s->n, s->nr), 1, ql_gemm_pack_ns(s->n, s->k), unpack_body, &job);
}

static void drop(struct ql_ctx *ctx, struct ql_closed *c)
{
	ql_free(ctx, c);
}

static const struct ql_closed_kind kind = {.unpack = unpack, .get = get, .free = drop};

/* ---- from codes to panels ---- */

static uint64_t panel_bytes(int64_t n, int64_t k, int64_t nr)
{
	return (uint64_t)(ql_ceil_div(n, nr) * nr * (ql_ceil_div(k, 4) * 4)); /* size: see ql_gemm_i8_can_store */
}

/* What is added to the panels: description and sums. */
static uint64_t more_bytes(int64_t n)
{
	return HEAD + ql_size_array(n + TAIL, sizeof(int32_t));
}

static bool can_store(const struct ql_ctx *ctx, const struct ql_tensor *b, int share)
{
	int64_t k = b->shape[0], n = b->shape[1];
	uint64_t bytes = b->storage->bytes;
	bool whole = b->stride[1] == 1 ? b->stride[0] == n : b->stride[0] == 1 && b->stride[1] == k;

	if ((b->dtype != QL_int8 && b->dtype != QL_uint8) || b->rank != 2 || b->offset || !whole ||
		!ql_storage_can_close(b->storage))
		return false;
	/* n and k are sizes of a tensor of `bytes` elements: with tails there are at most 4 * nr times as many */
	return bytes >= LEAST && (uint64_t)n * (uint64_t)k == bytes && n > 1 && k > 1 &&
	       panel_bytes(n, k, ctx->kernels->gemm_i8->nr) + more_bytes(n) <= bytes + bytes / (unsigned)share;
}

bool ql_gemm_i8_can_store(const struct ql_ctx *ctx, const struct ql_tensor *b)
{
	return can_store(ctx, b, SHARE);
}

bool ql_gemm_i8_can_store_more(const struct ql_ctx *ctx, const struct ql_tensor *b)
{
	return can_store(ctx, b, MORE);
}

enum ql_status ql_gemm_i8_store(struct ql_ctx *ctx, const struct ql_tensor *b)
{
	int64_t k = b->shape[0], n = b->shape[1], nr = ctx->kernels->gemm_i8->nr;
	uint64_t panels = panel_bytes(n, k, nr);
	const struct ql_matrix_int codes = {
		.data = ql_tensor_data(b), .dtype = b->dtype, .row = b->stride[0], .column = b->stride[1]};
	struct stored *s = ql_alloc_zeroed(ctx, panels + more_bytes(n));
	enum ql_status status;
	uint8_t *data;

	if (!s)
		return QL_OK;
	data = (uint8_t *)s + HEAD;
	*s = (struct stored){.panels = {ctx->kernels->gemm_i8, data, (int32_t *)(void *)(data + panels), NULL},
		.n = n,
		.k = k,
		.nr = nr,
		.pitch = ql_ceil_div(k, 4) * 4 * nr,
		.columns = b->stride[1] != 1,
		.flip = b->dtype == QL_uint8 ? 128 : 0};
	s->base = (struct ql_closed){.kind = &kind,
		.dtype = b->dtype,
		.codes = n * k,
		.dense = b->storage->bytes,
		.bytes = panels + more_bytes(n)};
	status = ql_gemm_i8_pack_to(ctx, n, k, &codes, data, (int32_t *)(void *)(data + panels), NULL);
	if (status)
		ql_free(ctx, s);
	else
		ql_storage_close(ctx, b->storage, &s->base);
	return status;
}

bool ql_gemm_i8_stored(const struct ql_ctx *ctx, const struct ql_tensor *b, struct ql_gemm_i8_panels *out)
{
	const struct stored *s = (const struct stored *)b->storage->closed;
	int64_t column, first;

	*out = (struct ql_gemm_i8_panels){0};
	if (!ql_is_closed(b) || s->base.kind != &kind)
		return false;
	column = s->columns ? s->k : 1;
	first = b->offset / column;
	if (b->rank == 2 && b->dtype == s->base.dtype && s->nr == ctx->kernels->gemm_i8->nr && b->shape[0] == s->k &&
		b->stride[0] == (s->columns ? 1 : s->n) && b->stride[1] == column && b->offset % column == 0 &&
		first % s->nr == 0 && first + b->shape[1] <= s->n)
		*out = (struct ql_gemm_i8_panels){
			ctx->kernels->gemm_i8, s->panels.data + first / s->nr * s->pitch, s->panels.sum + first, NULL};
	return true;
}
