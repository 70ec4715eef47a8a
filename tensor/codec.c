/* SPDX-License-Identifier: MIT
 * The only encoder and decoder. Elements are processed in pieces, and pieces in runs under one scale (rows, blocks) or
 * with a scale per element (columns, short blocks). Kernels convert affine codes of up to 16 bits (packed ones through a
 * buffer of bytes), the loops of tensor/grid.c codes of a grid, and the scheme's row functions all others.
 */
#include "tensor/grain.h"

#include <math.h>
#include <stdatomic.h>

#include "tensor/codec.h"
#include "tensor/codec_functions.h"
#include "tensor/codes.h"
#include "tensor/cpu.h"
#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/ragged.h"
#include "tensor/remote.h"
#include "tensor/rng.h"
#include "tensor/scratch.h"
#include "tensor/spread.h"
#include "tensor/stochastic.h"
#include "tensor/vmath/simd.h"

#define PIECE 4096 /* elements per piece */
#define BUFFER 512 /* elements of one conversion buffer on the stack */
#define SHORT_BLOCK 256

struct codec {
	struct ql_grain g;
	const struct ql_scheme *scheme;
	const struct ql_kernels *kernels;
	struct ql_codes codes;
	unsigned dtype;
	const float *scale;
	const float *shift;             /* NULL: all 0 */
	const int32_t *zero;            /* NULL: all 0 */
	const int32_t *lo, *hi;         /* encode: range of the codes of each scale; NULL: that of `codes` */
	bool stream;                    /* the result is larger than the caches */
	void *q;                        /* contiguous codes */
	const struct ql_ragged *ragged; /* decode: codes from element `first` on; NULL: they are in `q` */
	int64_t first;
	const float *in;                    /* encode */
	const struct ql_stochastic *random; /* encode: rounding; NULL: to nearest */
	float *out;                         /* decode */
	int64_t pieces;                     /* per row */
	_Atomic int64_t nan, inf;
};

/* Consecutive elements with one scale, or with a scale per element (affine.each). */
struct run {
	struct ql_affine affine;
	int64_t code, plain, n; /* index of the first element in the codes and in the floats; number of elements */
	const float *in;        /* encode: the values */
	const float *shift;     /* one, or one per element with `each`; NULL: 0 */
	const int32_t *lo, *hi; /* with `each`: a range per element, within affine's; NULL: affine's */
};

/* True if codes are converted by kernels or a grid, whose runs may have a scale per element. */
static bool has_kernel(const struct codec *c)
{
	return c->codes.grid || (c->scheme->affine && !ql_dtype_is_binary(c->dtype));
}

static bool any_non_finite(const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (x[i] - x[i] != 0)
			return true;
	return false;
}

static void count_non_finite(struct codec *c, const float *x, int64_t n)
{
	int64_t nan = 0, inf = 0;

	if (!any_non_finite(x, n))
		return;
	for (int64_t i = 0; i < n; i++) {
		nan += isnan(x[i]) != 0;
		inf += isinf(x[i]) != 0;
	}
	atomic_fetch_add(&c->nan, nan);
	atomic_fetch_add(&c->inf, inf);
}

/* ---- through the kernels ---- */

static struct ql_affine advanced(const struct ql_affine *p, int64_t i)
{
	struct ql_affine q = *p;

	if (p->each) {
		q.scale += i;
		q.zero = q.zero ? q.zero + i : NULL;
	}
	return q;
}

/* Clamps codes i..i+n-1 of the run from the range of the widest channel to their own ranges. */
static void narrow(const struct codec *c, const struct run *r, int64_t i, int64_t n, void *q)
{
	if (r->lo)
		ql_codes_narrow(c->dtype, q, n, r->lo + i, r->hi + i);
}

static void encode_kernel(struct codec *c, const struct run *r)
{
	const struct ql_quantize *k = c->kernels->quantize;
	const float *x = r->in;
	uint8_t buffer[BUFFER];
	bool bad = false;

	if (ql_dtypes[c->dtype].bits == 8) {
		bad = k->to_8(&r->affine, x, r->n, (uint8_t *)c->q + r->code);
		narrow(c, r, 0, r->n, (uint8_t *)c->q + r->code);
	} else if (ql_dtypes[c->dtype].bits == 16) {
		bad = k->to_16(&r->affine, x, r->n, (uint16_t *)c->q + r->code);
		narrow(c, r, 0, r->n, (uint16_t *)c->q + r->code);
	} else
		for (int64_t i = 0; i < r->n; i += BUFFER) {
			struct ql_affine p = advanced(&r->affine, i);
			int64_t m = ql_min64(BUFFER, r->n - i);

			p.stream = false;
			bad |= k->to_8(&p, x + i, m, buffer);
			narrow(c, r, i, m, buffer);
			ql_codes_put(c->dtype, c->q, r->code + i, m, buffer);
		}
	if (bad)
		count_non_finite(c, x, r->n);
}

static void decode_ragged(struct codec *c, const struct run *r)
{
	const struct ql_dequantize *k = c->kernels->dequantize;
	float *out = c->out + r->plain;
	uint16_t buffer[BUFFER];

	for (int64_t i = 0; i < r->n; i += BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(BUFFER, r->n - i);

		ql_ragged_get(c->ragged, c->first + r->code + i, m, buffer);
		switch (ql_dtype_whole(c->dtype)) {
		case QL_int8: k->from_i8(&p, (const int8_t *)buffer, m, out + i); break;
		case QL_uint8: k->from_u8(&p, (const uint8_t *)buffer, m, out + i); break;
		case QL_int16: k->from_i16(&p, (const int16_t *)buffer, m, out + i); break;
		default: k->from_u16(&p, buffer, m, out + i); break;
		}
	}
}

static void decode_kernel(struct codec *c, const struct run *r)
{
	const struct ql_dequantize *k = c->kernels->dequantize;
	float *out = c->out + r->plain;
	int8_t buffer[BUFFER];

	if (c->ragged) {
		decode_ragged(c, r);
		return;
	}
	switch (c->dtype) {
	case QL_int8: k->from_i8(&r->affine, (const int8_t *)c->q + r->code, r->n, out); return;
	case QL_uint8: k->from_u8(&r->affine, (const uint8_t *)c->q + r->code, r->n, out); return;
	case QL_int16: k->from_i16(&r->affine, (const int16_t *)c->q + r->code, r->n, out); return;
	case QL_uint16: k->from_u16(&r->affine, (const uint16_t *)c->q + r->code, r->n, out); return;
	default: break; /* packed */
	}
	for (int64_t i = 0; i < r->n; i += BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(BUFFER, r->n - i);

		ql_codes_get(c->dtype, c->q, r->code + i, m, buffer);
		k->from_i8(&p, buffer, m, out + i);
	}
}

/* ---- through a grid ---- */

static void encode_grid(struct codec *c, const struct run *r)
{
	int variant = c->kernels->simd->variant;
	uint8_t buffer[BUFFER];

	count_non_finite(c, r->in, r->n);
	for (int64_t i = 0; i < r->n; i += BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(BUFFER, r->n - i);
		bool whole = ql_dtypes[c->dtype].bits == 8;
		uint8_t *to = whole ? (uint8_t *)c->q + r->code + i : buffer;

		ql_grid_encode(c->codes.grid, variant, c->codes.overflow, r->in + i, p.scale, p.each, m, to);
		if (!whole)
			ql_codes_put(c->dtype, c->q, r->code + i, m, buffer);
	}
}

static void decode_grid(struct codec *c, const struct run *r)
{
	int variant = c->kernels->simd->variant;
	float *out = c->out + r->plain;
	int8_t buffer[BUFFER];

	for (int64_t i = 0; i < r->n; i += BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(BUFFER, r->n - i);
		bool whole = ql_dtypes[c->dtype].bits == 8;

		if (!whole)
			ql_codes_get(c->dtype, c->q, r->code + i, m, buffer);
		ql_grid_decode(c->codes.grid, variant, whole ? (uint8_t *)c->q + r->code + i : (uint8_t *)buffer,
			p.scale, p.each, m, out + i);
	}
}

/* ---- through the scheme ---- */

static void encode_scheme(struct codec *c, const struct run *r)
{
	float scale = *r->affine.scale;
	int32_t zero = r->affine.zero ? *r->affine.zero : 0;
	int64_t wide[BUFFER];
	int32_t code[BUFFER];

	count_non_finite(c, r->in, r->n);
	for (int64_t i = 0; i < r->n; i += BUFFER) {
		int64_t m = ql_min64(BUFFER, r->n - i);

		c->scheme->encode(r->in + i, m, scale, zero, &c->codes, code);
		for (int64_t j = 0; j < m; j++)
			wide[j] = code[j];
		ql_dtypes[c->dtype].from_i64(c->q, r->code + i, 1, m, wide);
	}
}

static void decode_scheme(struct codec *c, const struct run *r)
{
	float scale = *r->affine.scale;
	int32_t zero = r->affine.zero ? *r->affine.zero : 0;
	int64_t wide[BUFFER];
	int32_t code[BUFFER];

	for (int64_t i = 0; i < r->n; i += BUFFER) {
		int64_t m = ql_min64(BUFFER, r->n - i);

		ql_dtypes[c->dtype].to_i64(c->q, r->code + i, 1, m, wide);
		for (int64_t j = 0; j < m; j++)
			code[j] = (int32_t)wide[j];
		c->scheme->decode(code, m, scale, zero, &c->codes, c->out + r->plain + i);
	}
}

/* ---- shifts ---- */

QL_SIMD(void, subtract,
	(const float *restrict x, const float *restrict shift, bool each, int64_t n, float *restrict out), {
		if (each)
			for (int64_t i = 0; i < n; i++)
				out[i] = x[i] - shift[i];
		else
			for (int64_t i = 0; i < n; i++)
				out[i] = x[i] - *shift;
	})

QL_SIMD(void, add, (const float *restrict shift, bool each, int64_t n, float *restrict out), {
	if (each)
		for (int64_t i = 0; i < n; i++)
			out[i] += shift[i];
	else
		for (int64_t i = 0; i < n; i++)
			out[i] += *shift;
})

/* ---- pieces ---- */

static void scheme_run(struct codec *c, const struct run *r)
{
	int64_t step = r->affine.each ? 1 : r->n;

	for (int64_t i = 0; i < r->n; i += step) {
		struct run one = {
			.affine = advanced(&r->affine, i), .code = r->code + i, .plain = r->plain + i, .n = step};

		one.in = r->in ? r->in + i : NULL;
		if (c->out)
			decode_scheme(c, &one);
		else
			encode_scheme(c, &one);
	}
}

static void encode_random(struct codec *c, const struct run *r)
{
	int64_t code[BUFFER];

	count_non_finite(c, r->in, r->n);
	for (int64_t i = 0; i < r->n; i += BUFFER) {
		struct ql_affine p = advanced(&r->affine, i);
		int64_t m = ql_min64(BUFFER, r->n - i);

		ql_stochastic_encode(c->random, &p, c->codes.grid, r->lo ? r->lo + i : NULL, r->hi ? r->hi + i : NULL,
			r->plain + i, m, r->in + i, code);
		ql_dtypes[c->dtype].from_i64(c->q, r->code + i, 1, m, code);
	}
}

static void plain_run(struct codec *c, const struct run *r)
{
	if (c->random) {
		encode_random(c, r);
		return;
	}
	if (!has_kernel(c))
		scheme_run(c, r);
	else if (c->codes.grid)
		(c->out ? decode_grid : encode_grid)(c, r);
	else
		(c->out ? decode_kernel : encode_kernel)(c, r);
}

static void codec_run(struct codec *c, const struct run *r)
{
	int variant = c->kernels->simd->variant;
	float moved[BUFFER];

	if (!r->shift || c->out)
		plain_run(c, r);
	if (r->shift && c->out)
		add[variant](r->shift, r->affine.each, r->n, c->out + r->plain);
	for (int64_t i = 0; i < r->n && r->shift && !c->out; i += BUFFER) {
		struct run part = *r;

		part.affine = advanced(&r->affine, i);
		part.n = ql_min64(BUFFER, r->n - i);
		part.code += i;
		part.plain += i;
		part.in = moved;
		part.lo = r->lo ? r->lo + i : NULL;
		part.hi = r->hi ? r->hi + i : NULL;
		subtract[variant](r->in + i, r->shift + (r->affine.each ? i : 0), r->affine.each, part.n, moved);
		plain_run(c, &part);
	}
}

static struct run run_at(const struct codec *c, int64_t row, int64_t column, int64_t n, int64_t scale)
{
	struct run r = {.code = row * c->g.pitch + column, .plain = row * c->g.row + column, .n = n};

	r.in = c->in ? c->in + r.plain : NULL;
	r.shift = c->shift ? c->shift + scale : NULL;
	r.affine.scale = c->scale + scale;
	r.affine.zero = c->zero ? c->zero + scale : NULL;
	r.affine.each = c->g.kind >= QL_GRAIN_COLUMN;
	r.affine.lo = c->lo && !r.affine.each ? c->lo[scale] : c->codes.lo;
	r.affine.hi = c->hi && !r.affine.each ? c->hi[scale] : c->codes.hi;
	r.lo = c->lo && r.affine.each ? c->lo + scale : NULL;
	r.hi = c->hi && r.affine.each ? c->hi + scale : NULL;
	r.affine.stream = c->stream && !r.lo && !(r.shift && c->out); /* else the result is read again soon */
	return r;
}

/* Expands the scales, shifts and zero points of n elements of a row, from column `at` on, to one per element. */
static void spread_scales(
	const struct codec *c, int64_t row, int64_t at, int64_t n, float *scale, float *shift, int32_t *zero)
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

/* Converts columns begin..end-1 of a row of short blocks, BUFFER at a time: calling a kernel for each block would take
 * longer than converting it. */
static void short_blocks(struct codec *c, int64_t row, int64_t begin, int64_t end)
{
	_Alignas(64) float scale[BUFFER], shift[BUFFER];
	int32_t zero[BUFFER];

	for (int64_t at = begin; at < end; at += BUFFER) {
		struct run r = run_at(c, row, at, ql_min64(BUFFER, end - at), 0);

		spread_scales(c, row, at, r.n, scale, shift, zero);
		r.shift = c->shift ? shift : NULL;
		r.affine.scale = scale;
		r.affine.zero = c->zero ? zero : NULL;
		r.affine.each = true;
		codec_run(c, &r);
	}
}

/* PIECE is a multiple of 8, so pieces of a packed row never share a byte. */
static void codec_piece(struct codec *c, int64_t i)
{
	const struct ql_grain *g = &c->g;
	int64_t r = i / c->pieces, column = i % c->pieces * PIECE, end = ql_min64(column + PIECE, g->row), run;

	if (g->kind == QL_GRAIN_BLOCK && g->block < SHORT_BLOCK && has_kernel(c)) {
		short_blocks(c, r, column, end);
		return;
	}
	while (column < end) {
		int64_t s = ql_grain_scale(g, r, column, &run), n = ql_min64(run, end - column);
		struct run one = run_at(c, r, column, n, s);

		codec_run(c, &one);
		column += n;
	}
}

static void codec_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		codec_piece(arg, i);
}

/* Reads the range of each channel's codes if channels differ in bits. */
static enum ql_status take_ranges(struct ql_ctx *ctx, struct codec *c, const struct ql_qparams *q, int64_t n)
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

static enum ql_status codec_start(struct ql_ctx *ctx, struct codec *c, const struct ql_tensor *t, bool encoding)
{
	const struct ql_qparams *q = t->q;
	int64_t n = ql_tensor_nelem(q->scale);
	float *scale, *shift;
	int32_t *zero;
	enum ql_status status;
	uint64_t bytes = ql_size_array(ql_tensor_nelem(t), encoding ? ql_dtypes[t->dtype].bits / 8u : sizeof(float));

	c->g = ql_grain_of(t->rank, t->shape, t->dtype, q->axis, q->block_axis, q->block);
	c->scheme = q->scheme;
	c->kernels = ctx->kernels;
	c->codes = q->codes;
	c->dtype = t->dtype;
	c->pieces = ql_ceil_div(c->g.row, PIECE);
	c->stream = bytes > ql_cpu_stream_above();
	scale = ql_scratch_array(ctx, n, sizeof(*scale));
	zero = q->zero_point ? ql_scratch_array(ctx, n, sizeof(*zero)) : NULL;
	shift = q->shift ? ql_scratch_array(ctx, n, sizeof(*shift)) : NULL;
	if (!scale || (q->zero_point && !zero) || (q->shift && !shift))
		return QL_ERR_MEMORY;
	status = ql_qparams_scales(ctx, q->scale, scale);
	if (!status && shift)
		status = ql_qparams_scales(ctx, q->shift, shift);
	if (status)
		return status;
	if (zero)
		ql_qparams_zeros(q->zero_point, zero);
	c->scale = scale;
	c->shift = shift;
	c->zero = zero;
	if (encoding && take_ranges(ctx, c, q, n))
		return QL_ERR_MEMORY;
	return ql_codes_table(ctx, c->scheme, &c->codes);
}

static enum ql_status codec_loop(struct ql_ctx *ctx, struct codec *c)
{
	int64_t n = c->g.rows * c->pieces;
	int64_t each = c->g.row < PIECE ? c->g.row : PIECE;

	if (n == 0 || c->g.row == 0)
		return QL_OK;
	return ql_parallel_for(ctx, n, ql_max64(1, 65536 / ql_max64(1, each)), c->g.rows * c->g.row / 2, codec_body, c);
}

/* Converts everything, by functions of the host or in pieces. */
static enum ql_status codec_all(struct ql_ctx *ctx, struct codec *c)
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

enum ql_status ql_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct codec c = {0};
	struct ql_tensor *dense = NULL;
	enum ql_status status;

	if (ql_is_remote(t))
		return ql_remote_decode(ctx, t, out);
	status = ql_tensor_new(ctx, QL_float32, t->rank, t->shape, out);
	if (!status && ql_ragged_closed(t) && t->storage->ragged->channels)
		status = ql_ragged_open(ctx, t->storage); /* for good */
	if (!status && !ql_tensor_is_contiguous(t))
		status = ql_tensor_cast(ctx, t, t->dtype, &dense);
	if (!status)
		status = codec_start(ctx, &c, t, false);
	if (!status) {
		const struct ql_tensor *codes = dense ? dense : t;
		int64_t skip = codes->offset * ql_dtypes[t->dtype].bits / 8;

		c.ragged = ql_ragged_closed(codes) ? codes->storage->ragged : NULL;
		c.first = codes->offset;
		c.q = c.ragged ? NULL : (char *)codes->storage->data + skip;
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

/* Gives x itself when it is contiguous float32, else a contiguous float32 copy. */
static enum ql_status as_f32(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor **out)
{
	if (x->dtype == QL_float32 && ql_tensor_is_contiguous(x))
		return ql_tensor_alias(ctx, x, out);
	return ql_tensor_cast(ctx, x, QL_float32, out);
}

static enum ql_status encode(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t,
	const struct ql_stochastic *random, int64_t *nan, int64_t *inf)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct codec c = {.random = random};
	struct ql_tensor *dense = NULL, *plain = NULL;
	bool direct = ql_tensor_is_contiguous(t) && !ql_ragged_closed(t);
	enum ql_status status;

	status = as_f32(ctx, x, &plain);
	if (!status && !direct)
		status = ql_tensor_new(ctx, t->dtype, t->rank, t->shape, &dense);
	if (!status)
		status = codec_start(ctx, &c, t, true);
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
	return encode(ctx, x, t, NULL, nan, inf);
}

enum ql_status ql_encode_stochastic(
	struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf)
{
	struct ql_stochastic random = {.seed = ctx->seed, .variant = ctx->kernels->simd->variant};

	if (ql_is_remote(x) || ql_is_remote(t))
		return ql_remote_encode(ctx, x, t, ql_encode_stochastic, nan, inf);
	random.first = ql_rng_take(ctx, ql_tensor_nelem(x));
	return encode(ctx, x, t, &random, nan, inf);
}
