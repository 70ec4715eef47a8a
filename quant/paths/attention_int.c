/* SPDX-License-Identifier: MIT
 * nn.attention of codes with out=. For a query and its keys j, with exact sums:
 *   s_j = sum over d of (q - zq)(k_j - zk)          32 bits where they fit, else 64
 *   e_j = exp(-(max s - s_j) sq sk scale)            in integers (quant/integer/exp_int.h), 2^24 for the largest
 *   a = sum over j of e_j (v_j - zv), S = sum of e_j in 64 bits
 *   y = sat(rint((float)a * M) + zero), M = (float)(sv / ((double)S * s_out)).
 * A mask, lengths and a window hide keys, or add to s_j (quant/integer/key_mask.h); a query that sees none gives zeros.
 * Neither scores nor probabilities are rounded to codes in between, so they need no range. With a negative scale=
 * the smallest sum replaces the largest.
 */
#include <math.h>
#include <string.h>

#include "quant/integer/exp_int.h"
#include "quant/integer/key_mask.h"
#include "quant/integer/rescale.h"
#include "quant/integer/rounding.h"
#include "quant/spec.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define WIDEST 65536 /* keys: the sum of e_j (v - zv) stays below 2^63 */
#define NARROW 33025 /* products of 8-bit codes whose sum stays below 2^31 */
#define BLOCK 64     /* keys at a time */
#define SLOTS 16     /* maximum heads processed in parallel */

/* The codes of an operand: a row for each batch, head and position. */
struct heads {
	const void *data;
	unsigned dtype;
	int32_t zero;
	int64_t offset, batch, head, row; /* strides */
};

struct job {
	const struct ql_ctx *ctx;
	int64_t batches, heads, shared, queries, keys, d, e;
	bool turned; /* scale= is negative */
	struct ql_key_mask mask;
	struct heads q, k, v;
	struct ql_exp_int exp;
	double scale, out_scale; /* of v, of the result */
	struct ql_rounding r;
	struct ql_tensor *out;
	int64_t to_batch, to_head, to_row; /* strides of the result */
	int64_t pitch;                     /* keys, rounded up to whole blocks */
	int64_t slots, slot;               /* memory bytes per slot */
	char *memory;
	int variant;
	bool narrow; /* sums of codes fit 32 bits */
};

/* ---- sizes: infer has checked them ---- */

static int64_t width_of(const struct ql_tensor *t, int64_t heads)
{
	return t->rank == 4 ? t->shape[3] : t->shape[2] / heads;
}

static struct job sizes_of(const struct ql_call *call)
{
	const struct ql_tensor *q = call->in[0], *k = call->in[1], *v = call->in[2];
	bool split = q->rank == 4;
	struct job j = {.batches = q->shape[0], .heads = split ? q->shape[1] : ql_call_int(call, "heads", 1)};

	j.d = width_of(q, j.heads);
	j.shared = split ? k->shape[1] : k->shape[2] / j.d;
	j.queries = q->shape[split ? 2 : 1];
	j.keys = k->shape[split ? 2 : 1];
	j.e = width_of(v, j.shared);
	return j;
}

static bool match(struct ql_call *call, const char **reason)
{
	struct job j = sizes_of(call);
	int bits = 0;

	if (!ql_rescale_out_fits(call, reason))
		return false;
	*reason = "softcap";
	if (ql_call_attr(call, "softcap"))
		return false;
	*reason = "a mask to add to scores of scale 0";
	if (call->n_in > 3 && ql_call_float(call, "scale", 1) == 0)
		return false;
	for (int i = 0; i < 3; i++) {
		int own = ql_dtypes[call->in[i]->dtype].bits;

		if (!ql_rescale_one_scale(call->in[i], reason))
			return false;
		bits = own > bits ? own : bits;
	}
	*reason = "codes of 4 bits";
	for (int i = 0; i < 3; i++)
		if (ql_dtype_is_packed(call->in[i]->dtype))
			return false;
	*reason = "sums of more than 65536 keys may not fit 64 bits";
	return j.keys <= WIDEST;
}

/* ---- one query ---- */

/* Reads n codes of a row minus the zero point, storing them `step` apart. */
static void read_row(const struct heads *h, int64_t at, int64_t n, int64_t step, int32_t *to)
{
	int64_t wide[256];

	for (int64_t i = 0; i < n; i += 256) {
		int64_t count = ql_min64(256, n - i);

		ql_dtypes[h->dtype].to_i64(h->data, h->offset + at + i, 1, count, wide);
		for (int64_t l = 0; l < count; l++)
			to[(i + l) * step] = (int32_t)wide[l] - h->zero;
	}
}

/* score = k (d, pitch) times q for all keys, BLOCK at a time; pitch is a multiple of it */
#define SCORES(name, type) \
	QL_SIMD(void, name, \
		(int64_t keys, int64_t pitch, int64_t d, const int32_t *restrict q, const int32_t *restrict k, int64_t *restrict score), { \
			for (int64_t n = 0; n < keys; n += BLOCK) { \
				type sum[BLOCK] = {0}; \
				for (int64_t l = 0; l < d; l++) \
					for (int64_t i = 0; i < BLOCK; i++) \
						sum[i] += (type)q[l] * (type)k[l * pitch + n + i]; \
				for (int64_t i = 0; i < BLOCK; i++) \
					score[n + i] = sum[i]; \
			} \
		})
SCORES(narrow_scores, int32_t)
SCORES(wide_scores, int64_t)

/* row = the sum of all v (keys, e), weighted by the shares */
QL_SIMD(void, add_shares,
	(int64_t keys, int64_t e, const int64_t *restrict share, const int32_t *restrict v, int64_t *restrict row), {
		for (int64_t l = 0; l < e; l++)
			row[l] = 0;
		for (int64_t n = 0; n < keys; n++) {
			int32_t by = (int32_t)share[n];

			for (int64_t l = 0; l < e; l++)
				row[l] += (int64_t)by * v[n * e + l];
		}
	})

static void write_row(const struct job *j, int64_t at, int64_t sum, int64_t *row)
{
	float factor = sum ? (float)(j->scale / ((double)sum * j->out_scale)) : 0;

	for (int64_t i = 0; i < j->e; i++)
		row[i] = ql_round((float)row[i] * factor, j->r.lo, j->r.hi, j->r.zero);
	ql_dtypes[j->out->dtype].from_i64(j->out->storage->data, at, 1, j->e, row);
}

/* The buffers of a head: k (d, pitch), v (keys, e), q (d), scores and shares (pitch), sums (e). */
struct memory {
	int32_t *k, *v, *q;
	int64_t *score, *row;
};

/* The scores of the keys in the range become exponentials, those before it 0; their sum. */
static int64_t shares_of(const struct job *j, struct ql_key_range range, int64_t *score)
{
	int64_t most = QL_KEY_HIDDEN, sum = 0;

	for (int64_t n = 0; n < range.first; n++)
		score[n] = 0;
	for (int64_t n = range.first; n < range.last; n++)
		most = ql_max64(most, score[n]);
	for (int64_t n = range.first; n < range.last; n++) {
		score[n] = score[n] == QL_KEY_HIDDEN ? 0 : ql_exp_int_at(&j->exp, most - score[n]);
		sum += score[n];
	}
	return sum;
}

static void run_query(const struct job *j, int64_t batch, int64_t head, int64_t i, const struct memory *m, int64_t at)
{
	struct ql_key_range range = ql_key_mask_range(&j->mask, batch, i);
	int64_t sum;

	(j->narrow ? narrow_scores : wide_scores)[j->variant](range.last, j->pitch, j->d, m->q, m->k, m->score);
	for (int64_t n = range.first; n < range.last && j->turned; n++)
		m->score[n] = -m->score[n];
	ql_key_mask_add(&j->mask, batch, head, i, range, m->score);
	sum = shares_of(j, range, m->score);
	add_shares[j->variant](range.last, j->e, m->score, m->v, m->row);
	write_row(j, at, sum, m->row);
}

static struct memory memory_of(const struct job *j, int64_t slot)
{
	struct memory m;

	m.score = (int64_t *)(void *)(j->memory + slot * j->slot);
	m.row = m.score + j->pitch;
	m.k = (int32_t *)(void *)(m.row + j->e);
	m.v = m.k + j->pitch * j->d;
	m.q = m.v + j->keys * j->e;
	return m;
}

static void run_head(const struct job *j, int64_t batch, int64_t head, const struct memory *m)
{
	int64_t with = head / (j->heads / j->shared);

	memset(m->k, 0, (size_t)(j->pitch * j->d) * sizeof(*m->k));
	for (int64_t n = 0; n < j->keys; n++) {
		read_row(&j->k, batch * j->k.batch + with * j->k.head + n * j->k.row, j->d, j->pitch, m->k + n);
		read_row(&j->v, batch * j->v.batch + with * j->v.head + n * j->v.row, j->e, 1, m->v + n * j->e);
	}
	for (int64_t i = 0; i < j->queries && !ql_stopped(j->ctx); i++) {
		read_row(&j->q, batch * j->q.batch + head * j->q.head + i * j->q.row, j->d, 1, m->q);
		run_query(j, batch, head, i, m, batch * j->to_batch + head * j->to_head + i * j->to_row);
	}
}

/* Every slot processes heads of its own, one after the other, in its own memory. */
static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;

	for (int64_t s = begin; s < end; s++) {
		struct memory m = memory_of(j, s);

		for (int64_t p = s; p < j->batches * j->heads; p += j->slots)
			run_head(j, p / j->heads, p % j->heads, &m);
	}
}

/* ---- the whole ---- */

/* The heads of t, (b, h, n, width) or (b, n, h * width). */
static struct heads heads_in(const struct ql_tensor *t, int64_t width)
{
	struct heads h = {.data = t->storage->data,
		.dtype = t->dtype,
		.offset = t->offset,
		.batch = t->stride[0],
		.head = t->rank == 4 ? t->stride[1] : width,
		.row = t->rank == 4 ? t->stride[2] : t->stride[1]};

	if (t->q->zero_point)
		h.zero = (int32_t)ql_tensor_at_f64(t->q->zero_point, 0);
	return h;
}

/* Gives t itself if its last axis is dense, else a copy. */
static enum ql_status as_rows(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_tensor **out)
{
	int last = t->rank - 1;

	if (t->stride[last] != 1 && t->shape[last] != 1)
		return ql_tensor_clone(ctx, t, out);
	*out = ql_tensor_keep(t);
	return QL_OK;
}

static enum ql_status take_memory(struct ql_ctx *ctx, struct job *j)
{
	uint64_t wide, narrow, bytes;

	j->slots = ql_min64(SLOTS, j->batches * j->heads);
	j->pitch = ql_ceil_div(j->keys, BLOCK) * BLOCK;
	if (!ql_size_add((uint64_t)j->pitch, (uint64_t)j->e, &wide) || !ql_size_mul(wide, 8, &wide) ||
		!ql_size_mul((uint64_t)j->pitch, (uint64_t)(j->d + j->e), &narrow) ||
		!ql_size_add(narrow, (uint64_t)j->d, &narrow) || !ql_size_mul(narrow, 4, &narrow) ||
		!ql_size_add(wide, narrow, &bytes) || !ql_size_align(bytes, 64, &bytes) || bytes > (uint64_t)1 << 56)
		return ql_fail(ctx, QL_ERR_OVERFLOW, "attention: wanted keys that fit in memory, got %lld",
			(long long)j->keys);
	j->slot = (int64_t)bytes;
	j->memory = ql_scratch_array(ctx, j->slots, bytes);
	return j->memory ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status run(struct ql_ctx *ctx, struct ql_call *call, struct job *j, struct ql_tensor *const *t)
{
	struct ql_tensor *out = call->out[0];
	double unit = ql_tensor_at_f64(t[0]->q->scale, 0) * ql_tensor_at_f64(t[1]->q->scale, 0);
	enum ql_status status = take_memory(ctx, j);

	if (status)
		return status;
	unit = unit * ql_call_float(call, "scale", 1 / sqrt((double)j->d));
	j->q = heads_in(t[0], j->d);
	j->k = heads_in(t[1], j->d);
	j->v = heads_in(t[2], j->e);
	j->turned = unit < 0;
	j->exp = ql_exp_int_of(fabs(unit));
	j->scale = ql_tensor_at_f64(t[2]->q->scale, 0);
	j->out_scale = ql_tensor_at_f64(out->q->scale, 0);
	j->r = ql_rounding_of(out);
	j->out = out;
	j->to_batch = out->stride[0];
	j->to_head = out->rank == 4 ? out->stride[1] : j->e;
	j->to_row = out->rank == 4 ? out->stride[2] : out->stride[1];
	status = ql_key_mask_start(ctx, call, j->queries, j->keys, fabs(unit), &j->mask);
	if (!status)
		status = ql_parallel_for(
			ctx, j->slots, 1, j->batches * j->heads * j->queries * j->keys * (j->d + j->e) / 2, body, j);
	ql_key_mask_release(ctx, &j->mask);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct job j = sizes_of(call);
	struct ql_tensor *t[3] = {NULL, NULL, NULL};
	enum ql_status status = ql_rescale_result(ctx, call);

	call->kernel = "attention_int";
	j.ctx = ctx;
	j.variant = ctx->kernels->simd->variant;
	j.narrow = ql_dtypes[call->in[0]->dtype].bits <= 8 && ql_dtypes[call->in[1]->dtype].bits <= 8 && j.d <= NARROW;
	for (int i = 0; i < 3 && !status; i++)
		status = as_rows(ctx, call->in[i], &t[i]);
	if (!status && ql_tensor_nelem(call->out[0]))
		status = run(ctx, call, &j, t);
	for (int i = 0; i < 3; i++)
		ql_tensor_release(ctx, t[i]);
	return status;
}

extern const struct ql_path ql_path_attention_int;
const struct ql_path ql_path_attention_int = {
	.op = "attention",
	.name = "integer",
	.codes = "8 16",
	.text = "with out= of a given scale: exact scores, exponentials in integers, one rounding",
	.match = match,
	.eval = eval,
};
