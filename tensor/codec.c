/* SPDX-License-Identifier: MIT
 * The only encoder and the only decoder. Elements are walked in pieces; within a piece the scale is constant
 * (rows, blocks) or runs along with the elements (one scale per column). 8- and 16-bit affine codes go to the
 * kernels, everything else through the scheme's own row functions.
 */
#include "tensor/codec.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/simd.h"

#define PIECE 4096   /* elements per piece */
#define BUFFER 512   /* elements of one conversion buffer on the stack */

struct ql_grain ql_grain_of(int rank, const int64_t *shape, unsigned dtype, int axis, int block_axis, int64_t block)
{
	struct ql_grain g = {.kind = QL_GRAIN_ROW, .rows = 1, .repeat = 1, .period = 1, .block = block, .scales = 1};
	int of = block ? block_axis : axis, last = rank - 1, first;
	int per = ql_dtype_is_packed(dtype) ? 8 / ql_dtypes[dtype].bits : 1;
	bool padded = rank > 0 && shape[last] % per != 0;
	int64_t between = 1;

	/* axes behind the quantized one are one row when nothing pads them */
	first = of < 0 ? 0 : of == last ? last : of + 1;
	if (padded)
		first = last;
	g.row = 1;
	for (int d = first; d < rank; d++)
		g.row *= shape[d];
	g.pitch = rank ? ql_ceil_div(g.row, per) * per : 1;
	for (int d = 0; d < first; d++)
		g.rows *= shape[d];
	if (of < 0)
		return g;
	for (int d = of + 1; d < first; d++)
		between *= shape[d];
	if (!block) {
		g.scales = shape[of];
		if (of == last) {
			g.kind = QL_GRAIN_COLUMN;
			return g;
		}
		g.repeat = between;
		g.period = shape[of];
		return g;
	}
	if (of == last) {
		g.kind = QL_GRAIN_BLOCK;
		g.scales = g.rows * ql_ceil_div(g.row, block);
		return g;
	}
	g.kind = QL_GRAIN_ELEMENT;
	g.repeat = between;
	g.period = shape[of];
	g.scales = (g.period ? g.rows / g.period : 0) * ql_ceil_div(g.period, block) * g.row;
	return g;
}

int64_t ql_grain_scale(const struct ql_grain *g, int64_t r, int64_t column, int64_t *run)
{
	int64_t step, outer, inner;

	*run = g->row - column;
	switch (g->kind) {
	case QL_GRAIN_ROW:
		return r / g->repeat % g->period;
	case QL_GRAIN_BLOCK:
		*run = ql_min64(*run, g->block - column % g->block);
		return r * ql_ceil_div(g->row, g->block) + column / g->block;
	case QL_GRAIN_COLUMN:
		return column;
	case QL_GRAIN_ELEMENT:
		break;
	}
	inner = r % g->repeat;
	step = r / g->repeat % g->period;
	outer = r / g->repeat / g->period;
	return ((outer * ql_ceil_div(g->period, g->block) + step / g->block) * g->repeat + inner) * g->row + column;
}

int ql_grain_shape(int rank, const int64_t *shape, int axis, int block_axis, int64_t block, int64_t *out)
{
	if (!block) {
		if (axis < 0)
			return 0;
		out[0] = shape[axis];
		return 1;
	}
	for (int d = 0; d < rank; d++)
		out[d] = d == block_axis ? ql_ceil_div(shape[d], block) : shape[d];
	return rank;
}

/* ---- statistics ---- */

struct partial {
	float lo, hi;
	double sumabs;
	int64_t nan, inf, n;
};

#define LANES 16

/* Range and sum of magnitudes of finite values: 16 lanes, each summed in order, so every variant gives the same
 * bits. A non-finite value makes x - x != 0 and is left out. */
QL_SIMD(void, piece_stats, (const float *x, int64_t n, struct partial *p), {
	float lo[LANES], hi[LANES], sum[LANES];
	int32_t bad[LANES];
	int64_t i = 0;

	for (int l = 0; l < LANES; l++) {
		lo[l] = INFINITY;
		hi[l] = -INFINITY;
		sum[l] = 0;
		bad[l] = 0;
	}
	for (; i + LANES <= n; i += LANES)
		for (int l = 0; l < LANES; l++) {
			float v = x[i + l];
			int finite = v - v == 0;
			float low = finite ? v : INFINITY;
			float high = finite ? v : -INFINITY;

			lo[l] = low < lo[l] ? low : lo[l];
			hi[l] = high > hi[l] ? high : hi[l];
			sum[l] += finite ? fabsf(v) : 0;
			bad[l] += !finite;
		}
	for (int l = 0; i < n; i++, l++) {
		float v = x[i];
		int finite = v - v == 0;

		if (finite) {
			lo[l] = v < lo[l] ? v : lo[l];
			hi[l] = v > hi[l] ? v : hi[l];
			sum[l] += fabsf(v);
		}
		bad[l] += !finite;
	}
	*p = (struct partial){.lo = INFINITY, .hi = -INFINITY, .n = n};
	for (int l = 0; l < LANES; l++) {
		p->lo = lo[l] < p->lo ? lo[l] : p->lo;
		p->hi = hi[l] > p->hi ? hi[l] : p->hi;
		p->sumabs += (double)sum[l];
		p->inf += bad[l];
	}
})

/* Splits the count of non-finite values into NaN and Inf; only called when there are some. */
static void count_bad(const float *x, int64_t n, struct partial *p)
{
	p->n -= p->inf;
	p->inf = 0;
	for (int64_t i = 0; i < n; i++) {
		p->nan += isnan(x[i]);
		p->inf += isinf(x[i]) != 0;
	}
}

static void add_partial(struct ql_stats *s, const struct partial *p, int64_t *nan, int64_t *inf)
{
	if (p->n > 0) {
		s->lo = s->count == 0 || (double)p->lo < s->lo ? (double)p->lo : s->lo;
		s->hi = s->count == 0 || (double)p->hi > s->hi ? (double)p->hi : s->hi;
		s->meanabs += p->sumabs; /* divided at the end */
		s->count += p->n;
	}
	*nan += p->nan;
	*inf += p->inf;
}

struct stats_job {
	const struct ql_grain *g;
	const float *x;
	struct partial *part;
	int variant;
	int64_t pieces; /* per row */
	int64_t piece;  /* elements */
};

static void stats_body(void *arg, int64_t begin, int64_t end)
{
	struct stats_job *j = arg;

	for (int64_t i = begin; i < end; i++) {
		int64_t column = i % j->pieces * j->piece, n = ql_min64(j->piece, j->g->row - column);
		const float *x = j->x + i / j->pieces * j->g->row + column;

		piece_stats[j->variant](x, n, &j->part[i]);
		if (j->part[i].inf)
			count_bad(x, n, &j->part[i]);
	}
}

static enum ql_status stats_of_runs(struct ql_ctx *ctx, const struct ql_grain *g, const float *x, struct ql_stats *stats,
	int64_t *nan, int64_t *inf)
{
	struct stats_job j = {.g = g, .x = x, .variant = ctx->kernels->simd->variant};
	int64_t n, run;
	enum ql_status status;

	j.piece = g->kind == QL_GRAIN_BLOCK ? g->block : PIECE;
	j.pieces = ql_ceil_div(g->row, j.piece);
	n = g->rows * j.pieces;
	j.part = ql_scratch_take(ctx, (size_t)n * sizeof(*j.part));
	if (!j.part)
		return QL_ERR_MEMORY;
	status = ql_parallel_for(ctx, n, ql_max64(1, 65536 / j.piece), g->rows * g->row / 4, stats_body, &j);
	for (int64_t i = 0; i < n && !status; i++)
		add_partial(&stats[ql_grain_scale(g, i / j.pieces, i % j.pieces * j.piece, &run)], &j.part[i], nan, inf);
	return status;
}

/* One scale per element of the row: rows are taken in order, the columns side by side. */
static enum ql_status stats_of_columns(struct ql_ctx *ctx, const struct ql_grain *g, const float *x,
	struct ql_stats *stats, int64_t *nan, int64_t *inf)
{
	for (int64_t r = 0; r < g->rows; r++) {
		int64_t run, at = ql_grain_scale(g, r, 0, &run);

		if (ctx->interrupted)
			return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
		for (int64_t c = 0; c < g->row; c++) {
			struct ql_stats *s = &stats[at + c];
			double v = (double)x[r * g->row + c];

			if (!isfinite(v)) {
				*nan += isnan(v) != 0;
				*inf += isinf(v) != 0;
				continue;
			}
			s->lo = s->count == 0 || v < s->lo ? v : s->lo;
			s->hi = s->count == 0 || v > s->hi ? v : s->hi;
			s->meanabs += fabs(v);
			s->count++;
		}
	}
	return QL_OK;
}

enum ql_status ql_grain_stats(struct ql_ctx *ctx, const struct ql_grain *g, const float *x, struct ql_stats *stats,
	int64_t *nan, int64_t *inf)
{
	enum ql_status status;

	memset(stats, 0, (size_t)g->scales * sizeof(*stats));
	*nan = *inf = 0;
	if (g->rows == 0 || g->row == 0)
		return QL_OK;
	status = g->kind >= QL_GRAIN_COLUMN ? stats_of_columns(ctx, g, x, stats, nan, inf) :
					       stats_of_runs(ctx, g, x, stats, nan, inf);
	for (int64_t i = 0; i < g->scales && !status; i++)
		if (stats[i].count)
			stats[i].meanabs /= (double)stats[i].count;
	return status;
}

/* ---- encode and decode ---- */

struct codec {
	struct ql_grain g;
	const struct ql_scheme *scheme;
	const struct ql_kernels *kernels;
	struct ql_codes codes;
	unsigned dtype;
	const float *scale;
	const int32_t *zero; /* NULL: all 0 */
	void *q;             /* contiguous codes */
	const float *in;     /* encode */
	float *out;          /* decode */
	int64_t pieces;      /* per row */
	_Atomic int64_t nan, inf;
};

static int32_t zero_at(const struct codec *c, int64_t i)
{
	return c->zero ? c->zero[i] : 0;
}

static bool has_kernel(const struct codec *c)
{
	return c->scheme->affine && (ql_dtypes[c->dtype].bits == 8 || ql_dtypes[c->dtype].bits == 16);
}

static void decode_run(const struct codec *c, int64_t at, int64_t n, float scale, int32_t zero, float *out)
{
	const struct ql_dequantize *k = c->kernels->dequantize;
	int64_t wide[BUFFER];
	int32_t code[BUFFER];

	if (has_kernel(c)) {
		if (c->dtype == QL_int8)
			k->from_i8((const int8_t *)c->q + at, n, scale, zero, out);
		else if (c->dtype == QL_uint8)
			k->from_u8((const uint8_t *)c->q + at, n, scale, zero, out);
		else if (c->dtype == QL_int16)
			k->from_i16((const int16_t *)c->q + at, n, scale, zero, out);
		else
			k->from_u16((const uint16_t *)c->q + at, n, scale, zero, out);
		return;
	}
	for (int64_t i = 0; i < n; i += BUFFER) {
		int64_t m = ql_min64(BUFFER, n - i);

		ql_dtypes[c->dtype].to_i64(c->q, at + i, 1, m, wide);
		for (int64_t j = 0; j < m; j++)
			code[j] = (int32_t)wide[j];
		c->scheme->decode(code, m, scale, zero, &c->codes, out + i);
	}
}

static void count_non_finite(struct codec *c, const float *x, int64_t n)
{
	int64_t nan = 0, inf = 0;

	for (int64_t i = 0; i < n; i++) {
		nan += isnan(x[i]) != 0;
		inf += isinf(x[i]) != 0;
	}
	atomic_fetch_add(&c->nan, nan);
	atomic_fetch_add(&c->inf, inf);
}

static bool any_non_finite(const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (x[i] - x[i] != 0)
			return true;
	return false;
}

static void encode_run(struct codec *c, int64_t at, int64_t n, float scale, int32_t zero, const float *x)
{
	const struct ql_quantize *k = c->kernels->quantize;
	int64_t wide[BUFFER];
	int32_t code[BUFFER];
	bool bad;

	if (has_kernel(c)) {
		if (ql_dtypes[c->dtype].bits == 8)
			bad = k->to_8(x, n, scale, zero, c->codes.lo, c->codes.hi, (uint8_t *)c->q + at);
		else
			bad = k->to_16(x, n, scale, zero, c->codes.lo, c->codes.hi, (uint16_t *)c->q + at);
		if (bad)
			count_non_finite(c, x, n);
		return;
	}
	if (any_non_finite(x, n))
		count_non_finite(c, x, n);
	for (int64_t i = 0; i < n; i += BUFFER) {
		int64_t m = ql_min64(BUFFER, n - i);

		c->scheme->encode(x + i, m, scale, zero, &c->codes, code);
		for (int64_t j = 0; j < m; j++)
			wide[j] = code[j];
		ql_dtypes[c->dtype].from_i64(c->q, at + i, 1, m, wide);
	}
}

/* PIECE is a multiple of 8, so pieces of a packed row never share a byte; blocks inside a piece run on one thread. */
static void codec_piece(struct codec *c, int64_t i)
{
	const struct ql_grain *g = &c->g;
	int64_t r = i / c->pieces, column = i % c->pieces * PIECE, end = ql_min64(column + PIECE, g->row), run;

	while (column < end) {
		int64_t s = ql_grain_scale(g, r, column, &run), n = ql_min64(run, end - column);
		bool each = g->kind >= QL_GRAIN_COLUMN; /* a scale of its own for each element */
		int64_t step = each ? 1 : n;

		for (int64_t j = 0; j < n; j += step) {
			int64_t at = r * g->pitch + column + j, plain = r * g->row + column + j;
			int64_t si = each ? s + j : s;

			if (c->out)
				decode_run(c, at, step, c->scale[si], zero_at(c, si), c->out + plain);
			else
				encode_run(c, at, step, c->scale[si], zero_at(c, si), c->in + plain);
		}
		column += n;
	}
}

static void codec_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t i = begin; i < end; i++)
		codec_piece(arg, i);
}

static enum ql_status take_table(struct ql_ctx *ctx, struct codec *c)
{
	float *table;

	c->codes.table = NULL;
	if (!c->scheme->table_length)
		return QL_OK;
	table = ql_scratch_take(ctx, c->scheme->table_length(&c->codes) * sizeof(*table));
	if (!table)
		return QL_ERR_MEMORY;
	c->scheme->table_fill(&c->codes, table);
	c->codes.table = table;
	return QL_OK;
}

static enum ql_status codec_start(struct ql_ctx *ctx, struct codec *c, const struct ql_tensor *t)
{
	const struct ql_qparams *q = t->q;
	int64_t n = ql_tensor_nelem(q->scale);
	float *scale;
	int32_t *zero;

	c->g = ql_grain_of(t->rank, t->shape, t->dtype, q->axis, q->block_axis, q->block);
	c->scheme = q->scheme;
	c->kernels = ctx->kernels;
	c->codes = q->codes;
	c->dtype = t->dtype;
	c->pieces = ql_ceil_div(c->g.row, PIECE);
	scale = ql_scratch_take(ctx, (size_t)n * sizeof(*scale));
	zero = q->zero_point ? ql_scratch_take(ctx, (size_t)n * sizeof(*zero)) : NULL;
	if (!scale || (q->zero_point && !zero))
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		scale[i] = (float)ql_tensor_at_f64(q->scale, i);
		if (zero)
			zero[i] = (int32_t)ql_tensor_at_f64(q->zero_point, i);
	}
	c->scale = scale;
	c->zero = zero;
	return take_table(ctx, c);
}

static enum ql_status codec_run(struct ql_ctx *ctx, struct codec *c)
{
	int64_t n = c->g.rows * c->pieces;
	int64_t each = c->g.row < PIECE ? c->g.row : PIECE;

	if (n == 0 || c->g.row == 0)
		return QL_OK;
	return ql_parallel_for(ctx, n, ql_max64(1, 65536 / ql_max64(1, each)), c->g.rows * c->g.row / 2, codec_body, c);
}

enum ql_status ql_decode(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct codec c = {0};
	struct ql_tensor *dense = NULL;
	enum ql_status status;

	status = ql_tensor_new(ctx, QL_float32, t->rank, t->shape, out);
	if (!status && !ql_tensor_is_contiguous(t))
		status = ql_tensor_cast(ctx, t, t->dtype, &dense);
	if (!status)
		status = codec_start(ctx, &c, t);
	if (!status) {
		const struct ql_tensor *codes = dense ? dense : t;
		int64_t skip = codes->offset * ql_dtypes[t->dtype].bits / 8;

		c.q = (char *)codes->storage->data + skip;
		c.out = ql_tensor_data(*out);
		status = codec_run(ctx, &c);
	}
	ql_tensor_release(ctx, dense);
	ql_scratch_release(ctx, mark);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

/* gives x itself when it is contiguous float32, else such a copy */
static enum ql_status as_f32(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor **out)
{
	if (x->dtype == QL_float32 && ql_tensor_is_contiguous(x))
		return ql_tensor_alias(ctx, x, out);
	return ql_tensor_cast(ctx, x, QL_float32, out);
}

enum ql_status ql_encode(struct ql_ctx *ctx, const struct ql_tensor *x, struct ql_tensor *t, int64_t *nan, int64_t *inf)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct codec c = {0};
	struct ql_tensor *dense = NULL, *plain = NULL;
	bool direct = ql_tensor_is_contiguous(t);
	enum ql_status status;

	status = as_f32(ctx, x, &plain);
	if (!status && !direct)
		status = ql_tensor_new(ctx, t->dtype, t->rank, t->shape, &dense);
	if (!status)
		status = codec_start(ctx, &c, t);
	if (!status) {
		struct ql_tensor *codes = dense ? dense : t;

		c.q = (char *)codes->storage->data + codes->offset * ql_dtypes[t->dtype].bits / 8;
		c.in = ql_tensor_data(plain);
		status = codec_run(ctx, &c);
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
