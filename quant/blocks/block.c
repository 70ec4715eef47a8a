/* SPDX-License-Identifier: MIT
 * Applies the kinds of blocks to tensors: encodes tiles of rows in parallel, and stores scales and shifts, which may be
 * codes with an outer float16 scale per superblock.
 */
#include "quant/blocks/block.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "quant/importance.h"
#include "tensor/codes.h"
#include "tensor/grain.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/view.h"

/* Values are clipped here: the float16 scale of larger ones saturates anyway, and squares up to here are finite. */
#define LARGEST 1e10f
#define OUTER QL_float16 /* dtype of the scales of superblocks */

extern const struct ql_scheme ql_scheme_full;

static const struct ql_block_kind *kind_of(const struct ql_spec *spec)
{
	return spec->format ? spec->format->blocks : NULL;
}

bool ql_block_fits(const struct ql_spec *spec)
{
	return kind_of(spec) != NULL;
}

static bool is_coded(unsigned dtype)
{
	return !ql_dtype_is_float(dtype);
}

/* Blocks in a superblock. */
static int blocks_of(const struct ql_block_kind *kind)
{
	return kind->whole / kind->block;
}

uint64_t ql_block_bytes(const struct ql_spec *spec, uint64_t blocks)
{
	const struct ql_block_kind *kind = kind_of(spec);
	/* size: a block has 16 elements or more, and their number is below 2^64 */
	uint64_t bytes = blocks * ql_dtypes[kind->scale].bits / 8;

	bytes += is_coded(kind->scale) ? blocks / (uint64_t)blocks_of(kind) * 2 : 0;
	return kind->shift ? bytes * 2 : bytes;
}

enum ql_status ql_block_check(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n)
{
	if (n % kind_of(spec)->whole == 0)
		return QL_OK;
	return ql_fail(ctx, QL_ERR_SHAPE, "quantize: block: wanted K a multiple of %d for the format %s, got %lld",
		kind_of(spec)->whole, spec->format->doc.name, (long long)n);
}

/* ---- tensors of scales ---- */

/* A tensor of zeros of one scale per block; codes have an outer scale. */
static enum ql_status scales_new(struct ql_ctx *ctx, const struct ql_block_kind *kind, unsigned dtype, int rank,
	const int64_t *shape, int axis, struct ql_tensor **out)
{
	int64_t outer[QL_MAX_RANK];
	enum ql_status status = ql_tensor_zeros(ctx, dtype, rank, shape, out);
	struct ql_qparams *q;

	if (status || !is_coded(dtype))
		return status;
	q = ql_alloc_zeroed(ctx, sizeof(*q));
	if (!q)
		return QL_ERR_MEMORY;
	(*out)->q = q;
	q->refs = 1;
	q->scheme = &ql_scheme_full;
	q->from = QL_float32;
	q->axis = -1;
	q->block_axis = (int8_t)axis;
	q->block = blocks_of(kind);
	q->codes.bits = ql_dtypes[dtype].bits;
	q->scheme->range(dtype, false, &q->codes);
	memcpy(outer, shape, sizeof(outer));
	outer[axis] /= q->block;
	return ql_tensor_zeros(ctx, OUTER, rank, outer, &q->scale);
}

enum ql_status ql_block_zeros(
	struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape, struct ql_qparams *q)
{
	const struct ql_block_kind *kind = kind_of(spec);
	int64_t blocks[QL_MAX_RANK] = {0};
	int axis = q->block_axis;
	enum ql_status status = ql_block_check(ctx, spec, shape[axis]);

	ql_grain_shape(rank, shape, -1, axis, q->block, blocks);
	if (!status)
		status = scales_new(ctx, kind, kind->scale, rank, blocks, axis, &q->scale);
	if (!status && kind->shift)
		status = scales_new(ctx, kind, kind->shift, rank, blocks, axis, &q->shift);
	return status;
}

static enum ql_status params_new(struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *t)
{
	struct ql_qparams *q = ql_alloc_zeroed(ctx, sizeof(*q));

	if (!q)
		return QL_ERR_MEMORY;
	t->q = q;
	q->refs = 1;
	q->scheme = spec->scheme;
	q->format = spec->format;
	q->from = QL_float32;
	q->codes = ql_spec_codes(spec, false, 0);
	q->axis = -1;
	q->block_axis = (int8_t)(t->rank - 1);
	q->block = (int32_t)spec->block;
	return ql_block_zeros(ctx, spec, t->rank, t->shape, q);
}

bool ql_block_has(const struct ql_qparams *q, const struct ql_tensor *t, bool shift)
{
	const struct ql_block_kind *kind = q->format->blocks;
	const struct ql_qparams *of = t->q;
	unsigned dtype = shift ? kind->shift : kind->scale;

	if (t->dtype != dtype || !of != !is_coded(dtype))
		return false;
	return !of || (of->scheme == &ql_scheme_full && of->block == blocks_of(kind) &&
			      of->block_axis == q->block_axis && !of->format && of->scale->dtype == OUTER &&
			      !of->scale->q && !of->shift && !of->bits && t->shape[q->block_axis] % of->block == 0);
}

/* ---- tiles ---- */

struct job {
	const struct ql_block_kind *kind;
	const float *x;
	const float *importance; /* of the columns; NULL: none */
	const float *square;     /* of the rows; NULL: not used */
	struct ql_tensor *t;
	int64_t row, tiles; /* elements, tiles of a row */
	int variant;
	_Atomic int64_t nan, inf;
};

/* Index of an element of a contiguous tensor whose packed rows are padded. */
static int64_t element(const struct ql_tensor *t, int64_t row, int64_t column)
{
	return row * ql_dtype_pitch(t->dtype, t->shape[t->rank - 1]) + column;
}

static void put_codes(struct ql_tensor *t, int64_t row, int64_t column, int n, const uint8_t *code)
{
	int64_t at = element(t, row, column);

	if (ql_dtype_is_packed(t->dtype))
		ql_codes_put(t->dtype, t->storage->data, at, n, code);
	else
		memcpy((uint8_t *)t->storage->data + at, code, (size_t)n);
}

static void put_scales(const struct job *j, struct ql_tensor *t, int64_t row, int64_t tile, int n, const float *scale,
	const uint8_t *code)
{
	int64_t first = tile * QL_TILE / j->kind->block;

	if (t->q) {
		put_codes(t, row, first, n, code);
		t = t->q->scale;
		first = tile;
		n = 1;
	}
	ql_dtypes[t->dtype].from_f32(t->storage->data, element(t, row, first), 1, n, scale);
}

/* NaN becomes 0, infinity the largest finite |x| of the tile. */
static void repair(struct job *j, struct ql_block_tile *t)
{
	int64_t nan = 0, inf = 0;
	float most = 0;

	for (int i = 0; i < t->n; i++)
		most = isfinite(t->x[i]) && fabsf(t->x[i]) > most ? fabsf(t->x[i]) : most;
	for (int i = 0; i < t->n; i++) {
		nan += isnan(t->x[i]) != 0;
		inf += isinf(t->x[i]) != 0;
		t->x[i] = isnan(t->x[i]) ? 0 : isinf(t->x[i]) ? copysignf(most, t->x[i]) : t->x[i];
	}
	atomic_fetch_add(&j->nan, nan);
	atomic_fetch_add(&j->inf, inf);
}

static void load(struct job *j, int64_t row, int64_t column, struct ql_block_tile *t)
{
	bool odd = false;

	t->n = (int)ql_min64(QL_TILE, j->row - column);
	memcpy(t->x, j->x + row * j->row + column, (size_t)t->n * sizeof(float));
	memset(t->x + t->n, 0, (size_t)(QL_TILE - t->n) * sizeof(float));
	for (int i = 0; i < t->n; i++)
		odd |= !(fabsf(t->x[i]) <= LARGEST);
	if (odd)
		repair(j, t);
	for (int i = 0; odd && !j->kind->wide && i < t->n; i++)
		t->x[i] = t->x[i] > LARGEST ? LARGEST : t->x[i] < -LARGEST ? -LARGEST : t->x[i];
	t->weighted = j->importance != NULL;
	if (!j->importance)
		return;
	memcpy(t->weight, j->importance + column, (size_t)t->n * sizeof(float));
	memset(t->weight + t->n, 0, (size_t)(QL_TILE - t->n) * sizeof(float));
	t->square = j->square ? j->square[row] : 0;
}

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	struct ql_tensor *t = j->t;
	struct ql_block_tile tile;

	for (int64_t i = begin; i < end; i++) {
		int64_t row = i / j->tiles, k = i % j->tiles;
		int n;

		load(j, row, k * QL_TILE, &tile);
		j->kind->fit[j->variant](j->kind, &tile);
		n = tile.n / j->kind->block;
		put_codes(t, row, k * QL_TILE, tile.n, tile.code);
		put_scales(j, t->q->scale, row, k, n, tile.scale, tile.scale_code);
		if (t->q->shift)
			put_scales(j, t->q->shift, row, k, n, tile.shift, tile.shift_code);
	}
}

/* ---- tensors ---- */

/* Mean of x * x of every row, summed in order. */
static enum ql_status take_squares(struct ql_ctx *ctx, struct job *j, int64_t rows)
{
	float *square;

	if (!j->importance || !j->kind->row_square)
		return QL_OK;
	square = ql_scratch_array(ctx, rows, sizeof(*square));
	if (!square)
		return QL_ERR_MEMORY;
	for (int64_t r = 0; r < rows && !ql_stopped(ctx); r++) {
		float sum = 0;

		for (int64_t i = 0; i < j->row; i++) {
			float v = j->x[r * j->row + i];

			sum += v - v == 0 ? v * v : 0;
		}
		square[r] = fminf(sum / (float)j->row, FLT_MAX);
	}
	j->square = square;
	return QL_OK;
}

/* Blocks along the last axis. */
static enum ql_status quantize_rows(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_tensor *t)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	struct job j = {.kind = kind_of(spec), .x = ql_tensor_data(x), .t = t, .variant = ctx->kernels->simd->variant};
	int64_t rows;
	enum ql_status status;

	j.row = x->shape[x->rank - 1];
	j.tiles = ql_ceil_div(j.row, QL_TILE);
	rows = j.row ? ql_tensor_nelem(x) / j.row : 0;
	status = ql_importance(ctx, spec, j.row, &j.importance);
	if (!status)
		status = take_squares(ctx, &j, rows);
	if (!status)
		status = params_new(ctx, spec, t);
	if (!status && rows)
		status = ql_parallel_for(ctx, rows * j.tiles, 16, rows * j.row * 20, body, &j);
	if (!status) {
		t->q->nan_count = j.nan;
		t->q->inf_count = j.inf;
	}
	ql_scratch_release(ctx, mark);
	return status;
}

static enum ql_status quantize_last(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_new(ctx, spec->dtype, x->rank, x->shape, out);

	if (!status)
		status = quantize_rows(ctx, spec, x, *out);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

/* Moves the axis to the end, encodes, and moves it back. */
enum ql_status ql_block_quantize(
	struct ql_ctx *ctx, const struct ql_spec *spec, struct ql_tensor *x, int axis, struct ql_tensor **out)
{
	struct ql_tensor *turned = NULL, *dense = NULL, *codes = NULL, *back = NULL;
	int order[QL_MAX_RANK];
	enum ql_status status = ql_block_check(ctx, spec, x->shape[axis]);

	*out = NULL;
	if (status || axis == x->rank - 1)
		return status ? status : quantize_last(ctx, spec, x, out);
	for (int d = 0; d < x->rank; d++)
		order[d] = d;
	order[axis] = x->rank - 1;
	order[x->rank - 1] = axis;
	status = ql_view_permute(ctx, "quantize", x, order, &turned);
	if (!status)
		status = ql_tensor_contiguous(ctx, turned, &dense);
	if (!status)
		status = quantize_last(ctx, spec, dense, &codes);
	if (!status)
		status = ql_view_permute(ctx, "quantize", codes, order, &back);
	if (!status)
		status = ql_tensor_contiguous(ctx, back, out);
	if (!status) {
		(*out)->q->nan_count = codes->q->nan_count;
		(*out)->q->inf_count = codes->q->inf_count;
	}
	ql_tensor_release(ctx, turned);
	ql_tensor_release(ctx, dense);
	ql_tensor_release(ctx, codes);
	ql_tensor_release(ctx, back);
	return status;
}
