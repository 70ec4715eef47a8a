/* SPDX-License-Identifier: MIT
 * nn.recentattention: one step of attention with caches of codes whose later positions are floats (KIVI, arXiv 2402.02750: keys by
 * channel, values by token). A block of positions is coded once, when it is complete and the `recent` positions are behind it. A query
 * sees codes and floats as if the positions had come one by one, so parts of any length give the same bits. Floats that no block has yet
 * are in a ring beside the cache: position p is at p % slots.
 */
#include <math.h>
#include <string.h>

#include "nn/attention_cached.h"
#include "nn/attention_turn.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define FEW 8           /* queries that decode what they read; for more, all codes are decoded once, */
#define SMALL (1 << 17) /* and so are so few */

enum { Q, K, V, CACHE_K, CACHE_V, RING_K, RING_V, STARTS, COS };

/* Keys or values. */
struct side {
	struct ql_tensor *cache, *ring, *fresh; /* fresh: the new positions (b, t, wide) as float32, turned */
	const struct ql_value *spec;
	struct ql_cached_late late;
};

/* ---- checks ---- */

static enum ql_status mismatch(struct ql_ctx *ctx, const struct ql_call *call, const char *wanted)
{
	char q[QL_SHAPE_TEXT], k[QL_SHAPE_TEXT], cache[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_SHAPE, "recentattention: wanted %s, got q %s, k %s and cache %s", wanted,
		ql_shape_text(call->in[Q]->rank, call->in[Q]->shape, q),
		ql_shape_text(call->in[K]->rank, call->in[K]->shape, k),
		ql_shape_text(call->in[CACHE_K]->rank, call->in[CACHE_K]->shape, cache));
}

static enum ql_status sizes_of(struct ql_ctx *ctx, const struct ql_call *call, struct ql_attention_sizes *s)
{
	const struct ql_tensor *q = call->in[Q], *k = call->in[K], *cache = call->in[CACHE_K],
			       *starts = call->in[STARTS];
	int64_t heads = ql_call_int(call, "heads", 1), wide;

	for (int i = Q; i <= RING_V; i++)
		if (call->in[i]->rank != 3 || call->in[i]->shape[0] != q->shape[0] ||
			(i > Q && call->in[i]->shape[2] != k->shape[2]))
			return mismatch(ctx, call,
				"q (b, t, heads * d), k and v (b, t, h * d), caches and rings (b, n, h * d)");
	wide = k->shape[2];
	if (heads < 1 || q->shape[2] < heads || q->shape[2] % heads || wide < 1 || wide % (q->shape[2] / heads) ||
		heads % (wide / (q->shape[2] / heads)))
		return mismatch(ctx, call, "heads= that divides q, in a multiple of the heads of k");
	*s = (struct ql_attention_sizes){q->shape[0], q->shape[1], heads, wide / (q->shape[2] / heads),
		q->shape[2] / heads, cache->shape[1], COS};
	if (k->shape[1] != s->queries || call->in[V]->shape[1] != s->queries || call->in[CACHE_V]->shape[1] != s->room)
		return mismatch(ctx, call, "as many keys and values as queries, and caches of one length");
	if (starts->rank != 1 || starts->shape[0] != s->batches || !ql_dtype_is_integer(starts->dtype) || starts->q)
		return mismatch(ctx, call, "starts of integers (b)");
	return QL_OK;
}

/* Blocks of codes have scales of their own; a position, or a block of them, is coded without another. */
static bool separate(const struct ql_tensor *cache)
{
	const struct ql_qparams *p = cache->q;

	return p->block > 0 && p->block_axis >= 1 && !p->values && !p->bits && !p->scale->q &&
	       !(p->shift && p->shift->q) && ql_dtypes[cache->dtype].bits > 1;
}

static struct side side_of(const struct ql_call *call, bool values, int64_t wide)
{
	struct ql_tensor *cache = call->in[values ? CACHE_V : CACHE_K];
	int64_t block = cache->q && cache->q->block_axis == 1 ? cache->q->block : 1;

	return (struct side){.cache = cache,
		.ring = call->in[values ? RING_V : RING_K],
		.spec = ql_call_attr(call, values ? "vspec" : "kspec"),
		.late = {.slots = call->in[values ? RING_V : RING_K]->shape[1],
			.wide = wide,
			.keep = cache->q ? ql_call_int(call, "recent", 0) : 0,
			.block = block}};
}

static enum ql_status check_side(struct ql_ctx *ctx, const struct ql_call *call, bool values)
{
	const struct side side = side_of(call, values, 1);
	const struct ql_tensor *t = side.cache;
	int64_t least = side.late.keep + side.late.block - 1;
	char text[QL_SHAPE_TEXT];

	if (t->q ? !separate(t) : !ql_dtype_is_float(t->dtype) || t->dtype == QL_float64 || t->stride[2] != 1)
		return ql_fail(ctx, QL_ERR_DTYPE,
			"recentattention: operand %d: wanted floats of at most 32 bits with a dense last axis, or codes with scales of their own in blocks along axis 2 or 3, got %s",
			(values ? CACHE_V : CACHE_K) + 1, ql_tensor_text(t, text));
	if (t->q && !side.spec)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "recentattention: %s: wanted the spec of the codes, got none",
			values ? "vspec" : "kspec");
	if (side.ring->q || side.ring->dtype != QL_float32 || !ql_tensor_is_contiguous(side.ring) ||
		side.late.slots < ql_max64(1, least))
		return ql_fail(ctx, QL_ERR_SHAPE,
			"recentattention: operand %d: wanted a contiguous ring of float32 with %lld positions or more, got %s",
			(values ? RING_V : RING_K) + 1, (long long)ql_max64(1, least), ql_tensor_text(side.ring, text));
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_attention_sizes s;
	char text[QL_SHAPE_TEXT];
	enum ql_status status = sizes_of(ctx, call, &s);

	for (int i = Q; i <= V && !status; i++)
		if (!ql_dtype_is_float(ql_operand_dtype(call->in[i])))
			status = ql_fail(ctx, QL_ERR_DTYPE, "recentattention: operand %d: wanted floats, got %s", i + 1,
				ql_tensor_text(call->in[i], text));
	if (!status && (ql_call_int(call, "recent", 0) < 0 || ql_call_int(call, "recent", 0) > INT32_MAX))
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "recentattention: recent: wanted 0 or more positions, got %lld",
			(long long)ql_call_int(call, "recent", 0));
	for (int i = 0; i < 2 && !status; i++)
		status = check_side(ctx, call, i == 1);
	if (!status)
		status = ql_turn_check_options(ctx, call, &s);
	if (!status)
		status = ql_turn_check_tables(ctx, call, &s);
	if (!status)
		ql_result_set(call, 0, QL_float32, 3, (const int64_t[]){s.batches, s.queries, s.heads * s.d});
	return status;
}

/* ---- writing ---- */

/* The floats of a position of row b. */
static const float *floats_of(const struct side *side, const int64_t *start, int64_t queries, int64_t b, int64_t p)
{
	const struct ql_cached_late *l = &side->late;

	return p >= start[b] ? l->fresh + (b * queries + p - start[b]) * l->wide
			     : l->ring + (b * l->slots + p % l->slots) * l->wide;
}

/* Floats of the positions from..to of `rows` rows from row b on, which are at one position. */
static enum ql_status gather(struct ql_ctx *ctx, const struct side *side, const int64_t *start, int64_t queries,
	int64_t b, int64_t rows, int64_t from, int64_t to, struct ql_tensor **out)
{
	int64_t wide = side->late.wide, n = to - from;
	enum ql_status status = ql_tensor_new(ctx, QL_float32, 3, (const int64_t[]){rows, n, wide}, out);

	for (int64_t r = 0; r < rows && !status; r++)
		for (int64_t p = 0; p < n; p++)
			memcpy((float *)ql_tensor_data(*out) + (r * n + p) * wide,
				floats_of(side, start, queries, b + r, from + p), (size_t)wide * sizeof(float));
	return status;
}

/* Codes of the blocks that are complete now, of row b, or of all rows for b < 0. */
static enum ql_status encode(struct ql_ctx *ctx, const struct side *side, const struct ql_attention_sizes *s,
	const int64_t *start, int64_t b)
{
	int64_t first = start[ql_max64(b, 0)], from = ql_cached_coded(&side->late, first),
		to = ql_cached_coded(&side->late, first + s->queries);
	struct ql_tensor *x = NULL, *codes = NULL;
	const struct ql_tensor *cache = side->cache;
	enum ql_status status;

	if (from == to)
		return QL_OK;
	status = gather(ctx, side, start, s->queries, ql_max64(b, 0), b < 0 ? s->batches : 1, from, to, &x);
	if (!status)
		status = ctx->quant->quantize(ctx, x, side->spec->spec, &codes);
	if (!status && (codes->dtype != cache->dtype || codes->q->block != cache->q->block ||
			       codes->q->block_axis != cache->q->block_axis || codes->q->scheme != cache->q->scheme))
		status = ql_fail(ctx, QL_ERR_ARGUMENT,
			"recentattention: wanted kspec and vspec of the codes in the caches, got another");
	if (!status) {
		struct ql_tensor *row = NULL;

		status = b < 0 ? ql_tensor_alias(ctx, cache, &row)
			       : ql_view_narrow(ctx, "recentattention", cache, 0, b, 1, &row);
		if (!status)
			status = ql_cache_put(ctx, row, codes, -1, 1, from);
		ql_tensor_release(ctx, row);
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, codes);
	return status;
}

static enum ql_status store(
	struct ql_ctx *ctx, const struct side *side, const struct ql_attention_sizes *s, const int64_t *start)
{
	struct ql_tensor *cache = side->cache;
	enum ql_status status = QL_OK;

	cache->storage->version++;
	if (cache->q && ql_starts_agree(start, s->batches))
		return encode(ctx, side, s, start, -1);
	for (int64_t b = 0; b < s->batches && !status; b++)
		if (cache->q)
			status = encode(ctx, side, s, start, b);
		else
			for (int64_t t = 0; t < s->queries; t++)
				ql_dtypes[cache->dtype].from_f32(cache->storage->data,
					cache->offset + b * cache->stride[0] + (start[b] + t) * cache->stride[1], 1,
					side->late.wide, side->late.fresh + (b * s->queries + t) * side->late.wide);
	return status;
}

/* The last new positions to their places in the ring. */
static void keep_recent(const struct side *side, const struct ql_attention_sizes *s, const int64_t *start)
{
	const struct ql_cached_late *l = &side->late;
	float *ring = ql_tensor_data(side->ring);

	side->ring->storage->version++;
	for (int64_t b = 0; b < s->batches; b++)
		for (int64_t t = ql_max64(0, s->queries - l->slots); t < s->queries; t++)
			memcpy(ring + (b * l->slots + (start[b] + t) % l->slots) * l->wide,
				l->fresh + (b * s->queries + t) * l->wide, (size_t)l->wide * sizeof(float));
}

/* ---- attention ---- */

/* The codes of one side, decoded at once or row by row. */
static enum ql_status open_side(struct ql_ctx *ctx, struct side *side, const struct ql_cached *a, int64_t heads,
	struct ql_tensor **kept, struct ql_decoder **decoder, struct ql_cached_rows *rows)
{
	struct ql_tensor *from = side->cache, *part = NULL;
	int64_t most = 0;
	enum ql_status status = QL_OK;

	for (int64_t b = 0; b < a->batches; b++)
		most = ql_max64(most, ql_cached_coded(&side->late, a->seen[b] + a->queries));
	if (from->q && (a->queries >= FEW || a->batches * most * side->late.wide <= SMALL)) {
		status = ql_view_narrow(ctx, "recentattention", from, 1, 0, most, &part);
		if (!status)
			status = ql_dense_of(ctx, part, QL_float32, kept);
		ql_tensor_release(ctx, part);
		from = *kept;
	} else if (from->q) {
		status = ql_decoder_open(ctx, from, decoder);
	}
	if (!status)
		*rows = (struct ql_cached_rows){*decoder ? NULL : ql_tensor_data(from), from->stride[0], a->d,
			from->stride[1], from->dtype, *decoder, heads, from->shape[1], &side->late};
	return status;
}

static enum ql_status attend(struct ql_ctx *ctx, struct ql_call *call, const struct ql_attention_sizes *s,
	struct side *sides, struct ql_cached *a)
{
	struct ql_tensor *kept[2] = {NULL, NULL};
	struct ql_decoder *decoder[2] = {NULL, NULL};
	enum ql_status status = QL_OK;

	for (int i = 0; i < 2 && !status; i++)
		status = open_side(ctx, &sides[i], a, s->shared, &kept[i], &decoder[i], i ? &a->v : &a->k);
	call->kernel = ctx->kernels->simd->name;
	if (!status)
		status = ql_attention_cached(ctx, a);
	for (int i = 1; i >= 0; i--) {
		if (decoder[i])
			ql_decoder_close(ctx, decoder[i]);
		ql_tensor_release(ctx, kept[i]);
	}
	return status;
}

/* New keys and values are turned, and complete blocks become codes. */
static enum ql_status prepare(struct ql_ctx *ctx, struct ql_call *call, const struct ql_attention_sizes *s,
	const int64_t *start, struct side *sides, struct ql_tensor **q)
{
	struct ql_tensor *table = NULL;
	struct ql_turn turn, none = {0};
	enum ql_status status = ql_turn_make(ctx, call, s, start, &turn, &table);

	if (!status)
		status = ql_turn_heads(ctx, call->in[Q], &turn, s, s->heads, false, q);
	for (int i = 0; i < 2 && !status; i++) {
		sides[i] = side_of(call, i == 1, s->shared * s->d);
		status = ql_turn_heads(ctx, call->in[K + i], i ? &none : &turn, s, s->shared, false, &sides[i].fresh);
		if (!status) {
			sides[i].late.fresh = ql_tensor_data(sides[i].fresh);
			sides[i].late.ring = ql_tensor_data(sides[i].ring);
			status = store(ctx, &sides[i], s, start);
		}
	}
	ql_tensor_release(ctx, table);
	return status;
}

static enum ql_status step(
	struct ql_ctx *ctx, struct ql_call *call, const struct ql_attention_sizes *s, const int64_t *start)
{
	struct side sides[2] = {0};
	struct ql_tensor *q = NULL;
	enum ql_status status = prepare(ctx, call, s, start, sides, &q);

	if (!status) {
		struct ql_cached a = {.batches = s->batches,
			.heads = s->heads,
			.shared = s->shared,
			.queries = s->queries,
			.d = s->d,
			.seen = start,
			.window = ql_call_int(call, "window", 0),
			.softcap = ql_call_float(call, "softcap", 0),
			.scale = ql_call_float(call, "scale", 1 / sqrt((double)s->d)),
			.q = ql_tensor_data(q),
			.y = ql_tensor_data(call->out[0])};

		call->path = call->in[CACHE_K]->q ? ql_dtype_name(call->in[CACHE_K]->dtype) : "float32";
		status = attend(ctx, call, s, sides, &a);
	}
	for (int i = 0; i < 2; i++) {
		if (!status)
			keep_recent(&sides[i], s, start);
		ql_tensor_release(ctx, sides[i].fresh);
	}
	ql_tensor_release(ctx, q);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *starts = NULL;
	struct ql_attention_sizes s;
	enum ql_status status = sizes_of(ctx, call, &s);

	if (!status)
		status = ql_turn_starts(ctx, call, &s, &starts);
	if (!status && s.batches && s.queries)
		status = step(ctx, call, &s, ql_tensor_data(starts));
	ql_tensor_release(ctx, starts);
	return status;
}

static uint32_t writes(const struct ql_call *call)
{
	(void)call;
	return QL_SAVE(CACHE_K) | QL_SAVE(CACHE_V) | QL_SAVE(RING_K) | QL_SAVE(RING_V);
}

static const struct ql_attr attrs[] = {
	{"heads", QL_ATTR_INT, 0, NULL, "heads of q (default 1)"},
	{"recent", QL_ATTR_INT, 0, NULL, "positions that no code takes the place of yet (default 0)"},
	QL_CACHE_ATTRS,
	{"kspec", QL_ATTR_SPEC, QL_NOT_RESULT, NULL, "of codes in the cache of keys, in blocks along axis 2 or 3"},
	{"vspec", QL_ATTR_SPEC, QL_NOT_RESULT, NULL, "of codes in that of values"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_op ql_op_recentattention;
const struct ql_op ql_op_recentattention = {
	.doc = {.name = "recentattention",
		.usage =
			"nn.recentattention(q, k, v, kcache, vcache, kring, vring, starts, {heads=, recent=, rope=, window=, softcap=, kspec=, vspec=})",
		.text = "`nn.cachedattention` to caches (b, n, h * d) of codes with blocks along positions (axis 2, as 'uint4/2:32+min': a scale "
			"for each channel and 32 positions) or along channels (axis 3), whose last positions are floats: those of the last recent= "
			"positions and of blocks that are not complete. A query attends to codes and floats as if the positions had come one by one, "
			"and codes are never encoded again. The floats are in rings (b, r, h * d) of float32, r at least recent + block - 1 and 1 (block "
			"1 for blocks along channels), in which position p, counted from 0, is at p % r; rings and caches are written in place. A cache of "
			"floats has all positions and needs no ring but one of 1 position. There is no gradient. nn.Attention and m:generate use it.",
		.example =
			"k, v = tensor.zeros{1, 8, 4}:quantize 'uint4/2:4+min', tensor.zeros{1, 8, 4}:quantize 'uint4/3:4+min'\n"
			"kring, vring, start = tensor.zeros{1, 3, 4}, tensor.zeros{1, 1, 4}, tensor{0, dtype='int64'}\n"
			"x = tensor.ones(1, 6, 4)\n"
			"y = nn.recentattention(x, x, x, k, v, kring, vring, start, {kspec='uint4/2:4+min', vspec='uint4/3:4+min'})\n"
			"print(k:dequantize():sum():item(), kring:sum():item())  --> 16.0 12.0",
		.attrs = attrs},
	.arity_min = 8,
	.arity_max = 10,
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer,
	.eval = eval,
	.writes = writes,
};
