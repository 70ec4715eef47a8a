/* SPDX-License-Identifier: MIT
 * The only encoder and decoder. Elements are processed in pieces, and pieces in runs under one scale (rows, blocks) or
 * with a scale per element (columns, short blocks). Kernels convert affine codes of up to 16 bits (packed ones through a
 * buffer of bytes), the loops of tensor/grid.c codes of a grid, and the scheme's row functions all others.
 */
#include "tensor/grain.h"

#include "tensor/codec.h"
#include "tensor/codec_functions.h"
#include "tensor/codec_run.h"
#include "tensor/cpu.h"
#include "tensor/parallel.h"
#include "tensor/ragged.h"
#include "tensor/remote.h"
#include "tensor/rng.h"
#include "tensor/scratch.h"
#include "tensor/spread.h"
#include "tensor/stochastic.h"

#define PIECE 4096           /* elements per piece, at least, where scales are found piece by piece */
#define FIT_MOST (128 << 10) /* largest run that is in the cache when it is encoded: half of 1 MiB */
#define AHEAD_MOST (8 << 10) /* elements of a piece while which the next one is fetched: both stay in the cache */
#define STREAM_AHEAD 512     /* elements, in one pass over memory: a stream alone waits for it (1.2 times) */
#define SHORT_BLOCK 256

static struct ql_codec_run run_at(const struct ql_codec *c, int64_t row, int64_t column, int64_t n, int64_t scale)
{
	struct ql_codec_run r = {
		.code = row * c->g.pitch + column, .plain = row * c->g.row + column - c->origin, .n = n};

	r.in = c->in ? c->in + r.plain : NULL;
	r.shift = c->shift ? c->shift + scale : NULL;
	r.affine.scale = c->scale + scale;
	r.affine.zero = c->zero ? c->zero + scale : NULL;
	r.affine.each = c->g.kind >= QL_GRAIN_COLUMN;
	r.affine.lo = c->lo && !r.affine.each ? c->lo[scale] : c->codes.lo;
	r.affine.hi = c->hi && !r.affine.each ? c->hi[scale] : c->codes.hi;
	r.lo = c->lo && r.affine.each ? c->lo + scale : NULL;
	r.hi = c->hi && r.affine.each ? c->hi + scale : NULL;
	if (c->fit)
		r.affine.ahead =
			c->piece <= AHEAD_MOST && r.plain + c->piece + n <= c->g.rows * c->g.row ? c->piece : 0;
	else
		r.affine.ahead = c->stream && r.plain + STREAM_AHEAD + n <= c->g.rows * c->g.row ? STREAM_AHEAD : 0;
	r.affine.stream = c->stream && !r.lo && !(r.shift && c->out); /* else the result is read again soon */
	return r;
}

/* Columns begin..end-1 of a row of blocks, begin being the start of one. */
static void whole_blocks(struct ql_codec *c, int64_t row, int64_t begin, int64_t end)
{
	int64_t run;
	struct ql_codec_run r = run_at(c, row, begin, end - begin, ql_grain_scale(&c->g, row, begin, &run));

	r.affine.log_block = ql_codec_log_block(c);
	ql_codec_run(c, &r);
}

/* Expands the scales, shifts and zero points of n elements of a row, from column `at` on, to one per element. */
static void spread_scales(
	const struct ql_codec *c, int64_t row, int64_t at, int64_t n, float *scale, float *shift, int32_t *zero)
{
	int variant = c->kernels->simd->variant;
	int64_t run, s = ql_grain_scale(&c->g, row, at, &run);

	run = at % c->g.block ? run : c->g.block; /* the last block may be short */
	ql_spread_f32(variant, c->scale + s, run, c->g.block, n, scale);
	if (c->shift)
		ql_spread_f32(variant, c->shift + s, run, c->g.block, n, shift);
	if (c->zero)
		ql_spread_i32(variant, c->zero + s, run, c->g.block, n, zero);
}

/* Converts columns begin..end-1 of a row of short blocks, QL_CODEC_BUFFER at a time: calling a kernel for each block would take
 * longer than converting it. */
static void short_blocks(struct ql_codec *c, int64_t row, int64_t begin, int64_t end)
{
	_Alignas(64) float scale[QL_CODEC_BUFFER], shift[QL_CODEC_BUFFER];
	int32_t zero[QL_CODEC_BUFFER];

	for (int64_t at = begin; at < end; at += QL_CODEC_BUFFER) {
		struct ql_codec_run r = run_at(c, row, at, ql_min64(QL_CODEC_BUFFER, end - at), 0);

		spread_scales(c, row, at, r.n, scale, shift, zero);
		r.shift = c->shift ? shift : NULL;
		r.affine.scale = scale;
		r.affine.zero = c->zero ? zero : NULL;
		r.affine.each = true;
		ql_codec_run(c, &r);
	}
}

/* Finds the scales of columns begin..end-1 of a row: of whole blocks, and of a short one at the row's end. */
static bool fit_piece(struct ql_codec *c, int64_t row, int64_t begin, int64_t end)
{
	int64_t each = c->g.kind == QL_GRAIN_BLOCK ? c->g.block : end - begin, run;

	for (int64_t at = begin; at < end && !atomic_load_explicit(&c->given_up, memory_order_relaxed);) {
		int64_t s = ql_grain_scale(&c->g, row, at, &run), n = ql_min64(each, end - at);
		struct ql_codec_runs runs = {
			.x = c->in + row * c->g.row + at, .n = n, .count = (end - at) / n, .first = s};

		runs.scale = (float *)c->scale + s;
		runs.shift = c->shift ? (float *)c->shift + s : NULL;
		runs.zero = c->zero ? (int32_t *)c->zero + s : NULL;
		if (!c->fit->runs(c->fit->arg, &runs))
			atomic_store(&c->given_up, true);
		at += n * runs.count;
	}
	return !c->given_up;
}

/* Columns begin..end-1 of a row. */
static void codec_span(struct ql_codec *c, int64_t row, int64_t begin, int64_t end)
{
	const struct ql_grain *g = &c->g;
	int64_t run;

	if (ql_codec_log_block(c) && begin % g->block == 0) {
		whole_blocks(c, row, begin, end);
		return;
	}
	if (g->kind == QL_GRAIN_BLOCK && g->block < SHORT_BLOCK && ql_codec_has_kernel(c)) {
		short_blocks(c, row, begin, end);
		return;
	}
	while (begin < end) {
		int64_t s = ql_grain_scale(g, row, begin, &run), n = ql_min64(run, end - begin);
		struct ql_codec_run one = run_at(c, row, begin, n, s);

		ql_codec_run(c, &one);
		begin += n;
	}
}

/* Pieces are a multiple of 8 long, so those of a packed row never share a byte. */
static void codec_piece(struct ql_codec *c, int64_t i)
{
	int64_t r = i / c->pieces, column = i % c->pieces * c->piece, end = ql_min64(column + c->piece, c->g.row);

	if (!c->fit || fit_piece(c, r, column, end))
		codec_span(c, r, column, end);
}

static void codec_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		codec_piece(arg, i);
}

/* Whole blocks, or the row. */
static int64_t fitted_piece(const struct ql_grain *g)
{
	int64_t n;

	if (g->kind != QL_GRAIN_BLOCK)
		return g->row;
	n = ql_ceil_div(PIECE, g->block) * g->block;
	return n % 8 ? 8 * n : n;
}

/* Reads the range of each channel's codes if channels differ in bits. */
static enum ql_status take_ranges(struct ql_ctx *ctx, struct ql_codec *c, const struct ql_qparams *q, int64_t n)
{
	int32_t *lo;

	if (!q->bits)
		return QL_OK;
	lo = ql_scratch_array(ctx, n, 2 * sizeof(*lo));
	if (!lo)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		struct ql_codes codes = ql_qparams_codes(q, c->dtype, i);

		lo[i] = codes.lo;
		lo[n + i] = codes.hi;
	}
	c->lo = lo;
	c->hi = lo + n;
	return QL_OK;
}

/* dtype: of the codes in memory */
static enum ql_status codec_start(
	struct ql_ctx *ctx, struct ql_codec *c, const struct ql_tensor *t, unsigned dtype, bool encoding)
{
	const struct ql_qparams *q = t->q;
	int64_t n = ql_tensor_nelem(q->scale);
	float *scale, *shift;
	int32_t *zero;
	enum ql_status status;
	uint64_t bytes = ql_size_array(ql_tensor_nelem(t), encoding ? ql_dtypes[dtype].bits / 8u : sizeof(float));

	c->g = ql_grain_of(t->rank, t->shape, dtype, q->axis, q->block_axis, q->block);
	c->scheme = q->scheme;
	c->kernels = ctx->kernels;
	c->codes = q->codes;
	c->dtype = dtype;
	c->piece = c->fit ? fitted_piece(&c->g) : PIECE;
	c->pieces = ql_ceil_div(c->g.row, c->piece);
	c->stream = bytes > ql_cpu_stream_above();
	scale = ql_scratch_array(ctx, n, sizeof(*scale));
	zero = q->zero_point ? ql_scratch_array(ctx, n, sizeof(*zero)) : NULL;
	shift = q->shift ? ql_scratch_array(ctx, n, sizeof(*shift)) : NULL;
	if (!scale || (q->zero_point && !zero) || (q->shift && !shift))
		return QL_ERR_MEMORY;
	status = c->fit ? QL_OK : ql_qparams_scales(ctx, q->scale, scale);
	if (!status && shift && !c->fit)
		status = ql_qparams_scales(ctx, q->shift, shift);
	if (status)
		return status;
	if (zero && !c->fit)
		ql_qparams_zeros(q->zero_point, zero);
	c->scale = scale;
	c->shift = shift;
	c->zero = zero;
	if (encoding && take_ranges(ctx, c, q, n))
		return QL_ERR_MEMORY;
	return ql_codes_table(ctx, c->scheme, &c->codes);
}

static enum ql_status codec_loop(struct ql_ctx *ctx, struct ql_codec *c)
{
	int64_t n = c->g.rows * c->pieces;
	int64_t each = c->g.row < c->piece ? c->g.row : c->piece;

	if (n == 0 || c->g.row == 0)
		return QL_OK;
	return ql_parallel_for(ctx, n, ql_max64(1, 65536 / ql_max64(1, each)), c->g.rows * c->g.row / 2, codec_body, c);
}

/* Converts everything, by functions of the host or in pieces. */
static enum ql_status codec_all(struct ql_ctx *ctx, struct ql_codec *c)
{
	struct ql_codec_rows rows = {c->codes.host, c->g, c->dtype, c->codes.lo, c->codes.hi, c->scale};
	int64_t nan = 0, inf = 0;
	enum ql_status status;

	if (!c->scheme->host)
		return codec_loop(ctx, c);
	status = c->out ? ql_codec_functions_decode(ctx, &rows, c->q, c->out)
			: ql_codec_functions_encode(ctx, &rows, c->in, c->q, &nan, &inf);
	c->nan = nan;
	c->inf = inf;
	return status;
}

/* Of such a copy: packed integers in another order become bytes, which all threads write. Signs have a kernel of their own. */
static unsigned dense_dtype(const struct ql_tensor *t)
{
	return ql_dtype_is_binary(t->dtype) || ql_tensor_is_contiguous(t) ? t->dtype : ql_dtype_whole(t->dtype);
}

/* Gives a contiguous copy of t's codes, if they cannot be read where they are. */
static enum ql_status dense_codes(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **dense)
{
	enum ql_status status = QL_OK;

	if (ql_is_closed(t) && t->storage->closed->kind->once) {
		status = ql_closed_open(ctx, t->storage);
		if (!status)
			ql_closed_close(ctx, t->storage); /* stays dense */
	}
	if (!status && (!ql_tensor_is_contiguous(t) || (ql_is_closed(t) && !ql_ragged_of(t->storage))))
		status = ql_tensor_cast(ctx, t, dense_dtype(t), dense);
	return status;
}

/* Makes c read the codes of t, which is contiguous, or of `dense`, its copy. */
static void read_codes(struct ql_codec *c, const struct ql_tensor *t, const struct ql_tensor *dense)
{
	const struct ql_tensor *codes = dense ? dense : t;
	int64_t skip = codes->offset * ql_dtypes[codes->dtype].bits / 8;

	c->ragged = ql_is_closed(codes) ? ql_ragged_of(codes->storage) : NULL;
	c->first = codes->offset;
	c->q = c->ragged ? NULL : (char *)codes->storage->data + skip;
}

enum ql_status ql_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_codec c = {0};
	struct ql_tensor *dense = NULL;
	enum ql_status status;

	if (ql_is_remote(t))
		return ql_remote_decode(ctx, t, out);
	status = ql_tensor_new(ctx, QL_float32, t->rank, t->shape, out);
	if (!status)
		status = dense_codes(ctx, t, &dense);
	if (!status)
		status = codec_start(ctx, &c, t, dense ? dense->dtype : t->dtype, false);
	if (!status) {
		read_codes(&c, t, dense);
		c.out = ql_tensor_data(*out);
		status = codec_all(ctx, &c);
	}
	ql_tensor_release(ctx, dense);
	ql_scratch_release(ctx, mark);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

/* ---- parts of rows ---- */

struct ql_decoder {
	struct ql_codec codec;
	struct ql_tensor *dense; /* contiguous codes; NULL: the tensor's own */
	int64_t row;             /* elements of a row of the tensor */
};

enum ql_status ql_decoder_open(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_decoder **out)
{
	struct ql_decoder *d = ql_scratch_take(ctx, sizeof(*d));
	enum ql_status status = QL_OK;

	*out = d;
	if (!d)
		return QL_ERR_MEMORY;
	*d = (struct ql_decoder){.row = t->shape[t->rank - 1]};
	status = dense_codes(ctx, t, &d->dense);
	if (!status)
		status = codec_start(ctx, &d->codec, t, d->dense ? d->dense->dtype : t->dtype, false);
	if (!status)
		read_codes(&d->codec, t, d->dense);
	d->codec.stream = false;
	return status;
}

void ql_decoder_close(struct ql_ctx *ctx, struct ql_decoder *d)
{
	if (d)
		ql_tensor_release(ctx, d->dense);
}

void ql_decoder_read(const struct ql_decoder *d, int64_t row, int64_t column, int64_t n, float *out)
{
	int64_t at = row * d->row + column, wide = d->codec.g.row, end = at + n, next;
	struct ql_codec part = {.g = d->codec.g,
		.scheme = d->codec.scheme,
		.kernels = d->codec.kernels,
		.codes = d->codec.codes,
		.dtype = d->codec.dtype,
		.scale = d->codec.scale,
		.shift = d->codec.shift,
		.zero = d->codec.zero,
		.q = d->codec.q,
		.ragged = d->codec.ragged,
		.first = d->codec.first,
		.out = out,
		.origin = at};

	for (; at < end; at = next) {
		int64_t r = at / wide, begin = at % wide;

		next = ql_min64(end, (r + 1) * wide);
		codec_span(&part, r, begin, begin + next - at);
	}
}

/* ---- encoding ---- */

/* Gives x itself when it is contiguous float32, else a contiguous float32 copy. */
static enum ql_status as_f32(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor **out)
{
	if (x->dtype == QL_float32 && ql_tensor_is_contiguous(x))
		return ql_tensor_alias(ctx, x, out);
	return ql_tensor_cast(ctx, x, QL_float32, out);
}

static enum ql_status encode(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t,
	const struct ql_stochastic *random, const struct ql_codec_fit *fit, int64_t *nan, int64_t *inf)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct ql_codec c = {.random = random, .fit = fit};
	struct ql_tensor *dense = NULL, *plain = NULL;
	bool direct = ql_tensor_is_contiguous(t) && !ql_is_closed(t);
	enum ql_status status;

	status = as_f32(ctx, x, &plain);
	if (!status && !direct)
		status = ql_tensor_new(ctx, t->dtype, t->rank, t->shape, &dense);
	if (!status)
		status = codec_start(ctx, &c, t, t->dtype, true);
	if (!status) {
		struct ql_tensor *codes = dense ? dense : t;

		c.q = (char *)codes->storage->data + codes->offset * ql_dtypes[t->dtype].bits / 8;
		c.in = ql_tensor_data(plain);
		status = codec_all(ctx, &c);
		t->storage->version++;
	}
	if (!status && dense)
		status = ql_tensor_copy(ctx, t, dense);
	if (nan)
		*nan = c.nan;
	if (inf)
		*inf = c.inf;
	ql_tensor_release(ctx, dense);
	ql_tensor_release(ctx, plain);
	ql_scratch_release(ctx, mark);
	return status;
}

enum ql_status ql_encode(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf)
{
	if (ql_is_remote(x) || ql_is_remote(t))
		return ql_remote_encode(ctx, x, t, ql_encode, nan, inf);
	return encode(ctx, x, t, NULL, NULL, nan, inf);
}

bool ql_encode_fits(const struct ql_grain *g)
{
	if (g->kind == QL_GRAIN_BLOCK)
		return g->block <= FIT_MOST / 8;
	return g->kind == QL_GRAIN_ROW && g->scales == g->rows && g->row <= FIT_MOST;
}

enum ql_status ql_encode_fitted(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t,
	const struct ql_codec_fit *fit, int64_t *nan, int64_t *inf)
{
	return encode(ctx, x, t, NULL, fit, nan, inf);
}

enum ql_status ql_encode_stochastic(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf)
{
	struct ql_stochastic random = {.seed = ctx->seed, .variant = ctx->kernels->simd->variant};

	if (ql_is_remote(x) || ql_is_remote(t))
		return ql_remote_encode(ctx, x, t, ql_encode_stochastic, nan, inf);
	random.first = ql_rng_take(ctx, ql_tensor_nelem(x));
	return encode(ctx, x, t, &random, NULL, nan, inf);
}
