/* SPDX-License-Identifier: MIT
 * nn.cachedattention: one step of attention with a cache of keys and values, as generation needs it (GroupQueryAttention of onnxruntime
 * does the same): keys are rotated, keys and values are written behind the earlier ones of each row of the batch, and queries attend to
 * what the cache then holds. Codes are encoded for the new positions only. Few queries read the cache in place (nn/attention_cached.c);
 * many that begin at one position, as of a prompt, go to the blocks of nn/attention_f32.c.
 */
#include <math.h>
#include <string.h>

#include "nn/attention.h"
#include "nn/attention_cached.h"
#include "nn/attention_turn.h"
#include "tensor/codec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/loops/dense.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

#define FEW 8 /* queries that read the cache in place */

enum { Q, K, V, CACHE_K, CACHE_V, STARTS, COS };

/* ---- checks ---- */

static enum ql_status mismatch(struct ql_ctx *ctx, const struct ql_call *call, const char *wanted)
{
	char q[QL_SHAPE_TEXT], k[QL_SHAPE_TEXT], cache[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_SHAPE, "cachedattention: wanted %s, got q %s, k %s and cache %s", wanted,
		ql_shape_text(call->in[Q]->rank, call->in[Q]->shape, q),
		ql_shape_text(call->in[K]->rank, call->in[K]->shape, k),
		ql_shape_text(call->in[CACHE_K]->rank, call->in[CACHE_K]->shape, cache));
}

static bool same_shape(const struct ql_tensor *a, const struct ql_tensor *b)
{
	return a->rank == b->rank && !memcmp(a->shape, b->shape, (size_t)a->rank * sizeof(*a->shape));
}

static enum ql_status sizes_of(struct ql_ctx *ctx, const struct ql_call *call, struct ql_attention_sizes *s)
{
	const struct ql_tensor *q = call->in[Q], *k = call->in[K], *cache = call->in[CACHE_K],
			       *starts = call->in[STARTS];
	int64_t heads = ql_call_int(call, "heads", 1);

	if (heads < 1)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "cachedattention: heads: wanted 1 or more, got %lld", (long long)heads);
	if (q->rank != 3 || k->rank != 3 || cache->rank != 4 || !same_shape(k, call->in[V]) ||
		!same_shape(cache, call->in[CACHE_V]))
		return mismatch(ctx, call, "q (b, t, heads * d), k and v (b, t, h * d), and two caches (b, h, n, d)");
	*s = (struct ql_attention_sizes){
		q->shape[0], q->shape[1], heads, cache->shape[1], cache->shape[3], cache->shape[2], COS};
	if (k->shape[0] != s->batches || cache->shape[0] != s->batches || k->shape[1] != s->queries || s->d < 1 ||
		s->shared < 1 || q->shape[2] / s->d != heads || q->shape[2] % s->d || k->shape[2] / s->d != s->shared ||
		k->shape[2] % s->d || heads % s->shared)
		return mismatch(ctx, call,
			"sizes that go together: q (b, t, heads * d), k and v (b, t, h * d), caches (b, h, n, d), heads a multiple of h");
	if (starts->rank != 1 || starts->shape[0] != s->batches || !ql_dtype_is_integer(starts->dtype) || starts->q)
		return mismatch(ctx, call, "starts of integers (b)");
	return QL_OK;
}

/* New positions must not change what codes of others mean: each has scales of its own. */
static bool separate(const struct ql_tensor *cache)
{
	const struct ql_qparams *p = cache->q;

	return p->block > 0 && p->block_axis == 3 && !p->values && !p->bits && !p->scale->q &&
	       !(p->shift && p->shift->q);
}

static enum ql_status check_cache(struct ql_ctx *ctx, const struct ql_call *call, int i)
{
	const struct ql_tensor *t = call->in[i];
	const char *spec = i == CACHE_K ? "kspec" : "vspec";
	char text[QL_SHAPE_TEXT];

	if (t->q ? !separate(t) : !ql_dtype_is_float(t->dtype) || t->dtype == QL_float64 || t->stride[3] != 1)
		return ql_fail(ctx, QL_ERR_DTYPE,
			"cachedattention: operand %d: wanted floats of at most 32 bits with a dense last axis, or codes with scales of their own in blocks along it, got %s",
			i + 1, ql_tensor_text(t, text));
	if (t->q && !ql_call_attr(call, spec))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"cachedattention: %s: wanted the spec of the codes in operand %d, got none", spec, i + 1);
	return QL_OK;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_attention_sizes s;
	char text[QL_SHAPE_TEXT];
	enum ql_status status = sizes_of(ctx, call, &s);

	for (int i = Q; i <= V && !status; i++)
		if (!ql_dtype_is_float(ql_operand_dtype(call->in[i])))
			status = ql_fail(ctx, QL_ERR_DTYPE, "cachedattention: operand %d: wanted floats, got %s", i + 1,
				ql_tensor_text(call->in[i], text));
	for (int i = CACHE_K; i <= CACHE_V && !status; i++)
		status = check_cache(ctx, call, i);
	if (!status)
		status = ql_turn_check_options(ctx, call, &s);
	if (!status)
		status = ql_turn_check_tables(ctx, call, &s);
	if (!status)
		ql_result_set(call, 0, QL_float32, 3, (const int64_t[]){s.batches, s.queries, s.heads * s.d});
	return status;
}

/* ---- writing ---- */

/* Rows of floats (b, h, t, d) behind those that are there. */
static void write_floats(
	struct ql_tensor *cache, const struct ql_attention_sizes *s, const int64_t *start, const float *x)
{
	for (int64_t b = 0; b < s->batches; b++)
		for (int64_t h = 0; h < s->shared; h++)
			for (int64_t t = 0; t < s->queries; t++)
				ql_dtypes[cache->dtype].from_f32(cache->storage->data,
					cache->offset + b * cache->stride[0] + h * cache->stride[1] +
						(start[b] + t) * cache->stride[2],
					1, s->d, x + ((b * s->shared + h) * s->queries + t) * s->d);
}

static enum ql_status store(struct ql_ctx *ctx, struct ql_tensor *cache, const struct ql_attention_sizes *s,
	const int64_t *start, struct ql_tensor *x, const struct ql_value *spec)
{
	struct ql_tensor *codes = NULL;
	enum ql_status status;

	cache->storage->version++;
	if (!cache->q) {
		write_floats(cache, s, start, ql_tensor_data(x));
		return QL_OK;
	}
	status = ctx->quant->quantize(ctx, x, spec->spec, &codes);
	if (!status && (codes->dtype != cache->dtype || codes->q->block != cache->q->block ||
			       codes->q->scheme != cache->q->scheme))
		status = ql_fail(ctx, QL_ERR_ARGUMENT,
			"cachedattention: wanted kspec and vspec of the codes in the caches, got another");
	if (!status && ql_starts_agree(start, s->batches))
		status = ql_cache_put(ctx, cache, codes, -1, 2, start[0]);
	else
		for (int64_t b = 0; b < s->batches && !status; b++)
			status = ql_cache_put(ctx, cache, codes, b, 2, start[b]);
	ql_tensor_release(ctx, codes);
	return status;
}

/* ---- attention ---- */

static struct ql_cached_rows rows_in(const struct ql_tensor *cache, const struct ql_decoder *decoder)
{
	return (struct ql_cached_rows){ql_dtypes[cache->dtype].bits < 8 ? NULL : ql_tensor_data(cache),
		cache->stride[0], cache->stride[1], cache->stride[2], cache->dtype, decoder, cache->shape[1],
		cache->shape[2], NULL};
}

static enum ql_status open_decoder(struct ql_ctx *ctx, struct ql_tensor *cache, struct ql_decoder **d)
{
	return cache->q ? ql_decoder_open(ctx, cache, d) : QL_OK;
}

static enum ql_status few(struct ql_ctx *ctx, struct ql_call *call, struct ql_cached *a)
{
	struct ql_decoder *d[2] = {NULL, NULL};
	enum ql_status status = open_decoder(ctx, call->in[CACHE_K], &d[0]);

	if (!status)
		status = open_decoder(ctx, call->in[CACHE_V], &d[1]);
	if (!status) {
		a->k = rows_in(call->in[CACHE_K], d[0]);
		a->v = rows_in(call->in[CACHE_V], d[1]);
		call->kernel = ctx->kernels->simd->name;
		status = ql_attention_cached(ctx, a);
	}
	for (int i = 1; i >= 0; i--)
		if (d[i])
			ql_decoder_close(ctx, d[i]);
	return status;
}

/* The first n positions of a cache as float32 heads; the caller releases *kept. */
static enum ql_status heads_of(
	struct ql_ctx *ctx, struct ql_tensor *cache, int64_t n, struct ql_tensor **kept, struct ql_heads *heads)
{
	struct ql_tensor *part = NULL;
	enum ql_status status = ql_view_narrow(ctx, "cachedattention", cache, 2, 0, n, &part);

	if (!status && !cache->q && cache->dtype == QL_float32)
		*kept = ql_tensor_keep(part);
	else if (!status)
		status = ql_dense_of(ctx, part, QL_float32, kept);
	ql_tensor_release(ctx, part);
	if (!status)
		*heads = (struct ql_heads){
			ql_tensor_data(*kept), (*kept)->stride[0], (*kept)->stride[1], (*kept)->stride[2]};
	return status;
}

static enum ql_status many(struct ql_ctx *ctx, struct ql_call *call, const struct ql_cached *c)
{
	int64_t keys = c->seen[0] + c->queries, wide = c->heads * c->d;
	struct ql_heads rows = {(void *)(uintptr_t)c->q, c->queries * wide, c->d, wide}, results = rows;
	struct ql_attention a = {.batches = c->batches,
		.heads = c->heads,
		.shared = c->shared,
		.queries = c->queries,
		.keys = keys,
		.d = c->d,
		.e = c->d,
		.causal = true,
		.scale = c->scale,
		.window = c->window ? ql_min64(c->window, keys) : 0,
		.softcap = c->softcap,
		.q = rows};
	struct ql_tensor *kept[2] = {NULL, NULL};
	enum ql_status status = heads_of(ctx, call->in[CACHE_K], keys, &kept[0], &a.k);

	if (!status)
		status = heads_of(ctx, call->in[CACHE_V], keys, &kept[1], &a.v);
	results.data = c->y;
	a.o = results;
	call->kernel = ctx->kernels->tiles->name;
	if (!status)
		status = ql_attention_f32(ctx, &a);
	ql_tensor_release(ctx, kept[0]);
	ql_tensor_release(ctx, kept[1]);
	return status;
}

static enum ql_status attend(struct ql_ctx *ctx, struct ql_call *call, const struct ql_attention_sizes *s,
	const int64_t *start, const struct ql_tensor *q)
{
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
	return s->queries >= FEW && ql_starts_agree(start, s->batches) ? many(ctx, call, &a) : few(ctx, call, &a);
}

/* q is turned, and k and v are in the caches. */
static enum ql_status prepare(struct ql_ctx *ctx, struct ql_call *call, const struct ql_attention_sizes *s,
	const int64_t *start, struct ql_tensor **q)
{
	struct ql_tensor *table = NULL, *k = NULL, *v = NULL;
	struct ql_turn turn, none = {0};
	enum ql_status status = ql_turn_make(ctx, call, s, start, &turn, &table);

	if (!status)
		status = ql_turn_heads(ctx, call->in[Q], &turn, s, s->heads, false, q);
	if (!status)
		status = ql_turn_heads(ctx, call->in[K], &turn, s, s->shared, true, &k);
	if (!status)
		status = ql_turn_heads(ctx, call->in[V], &none, s, s->shared, true, &v);
	if (!status)
		status = store(ctx, call->in[CACHE_K], s, start, k, ql_call_attr(call, "kspec"));
	if (!status)
		status = store(ctx, call->in[CACHE_V], s, start, v, ql_call_attr(call, "vspec"));
	ql_tensor_release(ctx, table);
	ql_tensor_release(ctx, k);
	ql_tensor_release(ctx, v);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *starts = NULL, *q = NULL;
	struct ql_attention_sizes s;
	enum ql_status status = sizes_of(ctx, call, &s);

	if (!status)
		status = ql_turn_starts(ctx, call, &s, &starts);
	if (!status && s.batches && s.queries) {
		status = prepare(ctx, call, &s, ql_tensor_data(starts), &q);
		if (!status)
			status = attend(ctx, call, &s, ql_tensor_data(starts), q);
	}
	ql_tensor_release(ctx, starts);
	ql_tensor_release(ctx, q);
	return status;
}

static uint32_t writes(const struct ql_call *call)
{
	(void)call;
	return QL_SAVE(CACHE_K) | QL_SAVE(CACHE_V);
}

static const struct ql_attr attrs[] = {
	{"heads", QL_ATTR_INT, 0, NULL, "heads of q (default 1)"},
	QL_CACHE_ATTRS,
	{"kspec", QL_ATTR_SPEC, QL_NOT_RESULT, NULL, "of codes in the cache of keys, in blocks along the last axis"},
	{"vspec", QL_ATTR_SPEC, QL_NOT_RESULT, NULL, "of codes in that of values"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

extern const struct ql_op ql_op_cachedattention;
const struct ql_op ql_op_cachedattention = {
	.doc = {.name = "cachedattention",
		.usage =
			"nn.cachedattention(q, k, v, kcache, vcache, starts, {heads=, rope=, window=, softcap=, kspec=, vspec=})",
		.text = "Attention to a cache, for generation: k and v (b, t, h * d) are written into the caches (b, h, n, d), in place, from position "
			"starts + 1 of each row on (starts: integers (b), how many positions of the row are there), and q (b, t, heads * d) attends to "
			"the cache up to its own position, as nn.attention does with causal; rope= turns q and k by their positions before. h divides "
			"heads. Caches are float32, float16, bfloat16, or codes whose blocks are along the last axis, so that a position has scales of "
			"its own: kspec and vspec say which, and only new positions are encoded. The result is (b, t, heads * d). There is no gradient. "
			"nn.Attention and m:generate use it.",
		.example =
			"k, v, start = tensor.zeros{1, 1, 8, 4}, tensor.zeros{1, 1, 8, 4}, tensor{0, dtype='int64'}\n"
			"x = tensor.ones(1, 2, 4)\nprint(nn.cachedattention(x, x, x, k, v, start):size())  --> 1 2 4\n"
			"print(k:sum():item())  --> 8.0",
		.attrs = attrs},
	.arity_min = 6,
	.arity_max = 8,
	.flags = QL_FUNCTION | QL_NATIVE,
	.infer = infer,
	.eval = eval,
	.writes = writes,
};
