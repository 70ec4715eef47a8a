/* SPDX-License-Identifier: MIT
 * linear of 8-bit codes x and codes w whose scales change in blocks along k, with or without minimums, by the arithmetic of
 * tensor/gemm/blocks.h: the exact sum of a block is scaled and added in float32, in the order of the blocks. Tiles of 64 x 64 results,
 * 32 codes of a block at a time, by dp4a. Scales and minimums that are codes or views are decoded first, into the workspace;
 * packed w is unpacked by gemm_packed.
 */
#include "gpu/kernels/inner.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define TILE 64
#define DEEP 32
#define SIDE 16 /* threads of a row of the block */
#define EACH (TILE / SIDE)
#define WORDS (DEEP / 4)
#define BLOCK_MOST 16384 /* QL_GEMM_BLOCKS_MOST */

#include "gpu/kernels/gemm_i8_lines.h"

static_assert(TILE * WORDS / 4 == THREADS / 2, "a half of the threads reads 16 codes each");

struct block_product {
	ql_code_product x;
	int64_t block, blocks;       /* codes of a block; blocks of a line of w */
	int64_t per_line, per_block; /* scales between lines and blocks of w */
};

struct tiles {
	uint32_t line[2][TILE][WORDS + 1]; /* of x and w */
	float result[TILE][TILE];
	int32_t sum[2][2][TILE]; /* of the codes of each line, in a block: of its pieces of 16 codes at even and odd places */
	uint32_t row_zero[TILE]; /* of x */
	/* of w, of a block and of the next one, which may be written while others still read */
	float scale[2][TILE], least[2][TILE];
	uint32_t zero[2][TILE];
};

/* The results of a thread. */
struct totals {
	float sum[EACH][EACH];
};

/* The lines that a thread reads: a half of the threads reads x, the other one w. Thread t of a half reads 16 codes of line t / 2. */
struct reader {
	ql_code_matrix l;
	const uint8_t *line; /* NULL: beyond the end */
	int32_t sum; /* of the codes of the block that it has read */
};

/* The zero point of codes as they are multiplied. */
QL_DEVICE uint32_t signed_zero(const ql_code_matrix &l, int64_t at)
{
	return (uint32_t)ql_zero_at(l.scales, at) - (l.is_unsigned ? 128 : 0);
}

/* Of lines beyond the end nothing is stored. */
QL_DEVICE int64_t line_of(int64_t line, int64_t lines)
{
	return line < lines ? line : lines - 1;
}

QL_DEVICE void read_rows(tiles &t, const block_product &p, const ql_batch &from, int64_t i0)
{
	int i = (int)threadIdx.x;

	if (i < TILE)
		t.row_zero[i] =
			signed_zero(p.x.a, from.scale_a + line_of(i0 + i, p.x.m) * p.x.a.per_line);
}

QL_DEVICE void read_block(tiles &t, const block_product &p, int64_t j0, int64_t b)
{
	const ql_scales &w = p.x.b.scales;
	int j = (int)threadIdx.x;
	int64_t at;

	if (j >= TILE)
		return;
	at = line_of(j0 + j, p.x.n) * p.per_line + b * p.per_block;
	t.scale[b % 2][j] = ql_scale_at(w, at);
	t.zero[b % 2][j] = signed_zero(p.x.b, at);
	t.least[b % 2][j] = w.shift ? ql_load_float(w.shift_type, w.shift, at) : 0;
}

QL_DEVICE reader reader_of(const ql_code_product &x, const ql_batch &from, int64_t i0, int64_t j0)
{
	bool w = threadIdx.x >= THREADS / 2;
	int64_t line = (w ? j0 : i0) + threadIdx.x % (THREADS / 2) / 2;
	reader r = {};

	r.l.step = w ? x.b.step : x.a.step;
	r.l.wide = w ? x.b.wide : x.a.wide;
	r.l.is_unsigned = w ? x.b.is_unsigned : x.a.is_unsigned;
	if (line < (w ? x.n : x.m))
		r.line = (w ? from.b : from.a) + line * (w ? x.b.line : x.a.line);
	return r;
}

QL_DEVICE void read_codes(tiles &t, reader &r, int64_t k0, int64_t k)
{
	int thread = (int)threadIdx.x % (THREADS / 2), piece = thread % 2;
	uint32_t *to = &t.line[threadIdx.x / (THREADS / 2)][thread / 2][piece * 4];

	put_16(to, r.l, r.line, k0 + piece * 16, r.line ? k : 0);
	for (int i = 0; i < 4; i++)
		r.sum = ql_dp4a<false, false>(to[i], 0x01010101u, r.sum);
}

QL_DEVICE void keep_sum(tiles &t, const reader &r)
{
	int thread = (int)threadIdx.x % (THREADS / 2);

	t.sum[threadIdx.x / (THREADS / 2)][thread % 2][thread / 2] = r.sum;
}

QL_DEVICE uint32_t line_sum(const tiles &t, int side, int line)
{
	return (uint32_t)t.sum[side][0][line] + (uint32_t)t.sum[side][1][line];
}

/* Adds the sums s of block b, of n codes. Without wrapping they fit 32 bits: n * 255 * 255 at most. */
QL_DEVICE void add_block(const tiles &t, int64_t b, uint32_t n, bool minimums, const sums &s, totals &all)
{
	int row = (int)threadIdx.x / SIDE, column = (int)threadIdx.x % SIDE;

	QL_UNROLL
	for (int i = 0; i < EACH; i++) {
		uint32_t zero = t.row_zero[row + i * SIDE], a = line_sum(t, 0, row + i * SIDE) - n * zero;

		QL_UNROLL
		for (int j = 0; j < EACH; j++) {
			int c = column + j * SIDE;
			uint32_t sum = (uint32_t)s.product[i][j] - zero * line_sum(t, 1, c) - t.zero[b % 2][c] * a;

			all.sum[i][j] += (float)(int32_t)sum * t.scale[b % 2][c];
			if (minimums)
				all.sum[i][j] += (float)(int32_t)a * t.least[b % 2][c];
		}
	}
}

/* Puts the sums of this thread where all can read them. */
QL_DEVICE void keep(tiles &t, const totals &sum)
{
	int row = (int)threadIdx.x / SIDE, column = (int)threadIdx.x % SIDE;

	QL_UNROLL
	for (int i = 0; i < EACH; i++) {
		QL_UNROLL
		for (int j = 0; j < EACH; j++)
			t.result[row + i * SIDE][column + j * SIDE] = sum.sum[i][j];
	}
}

QL_DEVICE void store(
	const tiles &t, const block_product &p, int64_t number, const ql_batch &from, int64_t i0, int64_t j0)
{
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < TILE * TILE; e += THREADS) {
		int64_t row = i0 + e / TILE, column = j0 + e % TILE;

		if (row < p.x.m && column < p.x.n)
			ql_product_give(p.x, (number * p.x.m + row) * p.x.n + column,
				t.result[e / TILE][e % TILE] *
					ql_scale_at(p.x.a.scales, from.scale_a + row * p.x.a.per_line),
				ql_bias_at(p.x, column));
	}
}

QL_DEVICE void tile(tiles &t, const block_product &p, int64_t number, int64_t i0, int64_t j0)
{
	const ql_code_product &x = p.x;
	ql_batch from = ql_batch_at(x, number);
	reader r = reader_of(x, from, i0, j0);
	totals sum = {};

	read_rows(t, p, from, i0);
	for (int64_t b = 0; b < p.blocks; b++) {
		int64_t first = b * p.block, last = first + p.block < x.k ? first + p.block : x.k;
		sums s = {};

		r.sum = 0;
		read_block(t, p, j0, b);
		for (int64_t k0 = first; k0 < last; k0 += DEEP) {
			read_codes(t, r, k0, last + QL_BUG(blocks_end));
			__syncthreads();
			multiply(t.line, false, s);
			keep_sum(t, r); /* not earlier: others may still add the block before */
			if (!QL_BUG(blocks_barrier))
				__syncthreads(); /* before the lines are written again */
		}
		add_block(t, b, (uint32_t)(last - first), x.b.scales.shift != NULL, s, sum);
	}
	keep(t, sum);
	__syncthreads();
	store(t, p, number, from, i0, j0);
}

QL_KERNEL(THREADS, 2) gemm(block_product p)
{
	QL_SHARED(struct tiles, t);
	int64_t down = (p.x.m + TILE - 1) / TILE, across = (p.x.n + TILE - 1) / TILE, all = down * across * p.x.batches;

	for (int64_t i = blockIdx.x; i < all; i += gridDim.x)
		tile(t, p, i / (down * across), i % down * TILE, i / down % across * TILE);
}

/* ---- the call ---- */

/* What the description of w points at while parameters are decoded. */
struct levels {
	struct ql_gpu_codes codes;
	struct ql_gpu_tensor scale, shift;
};

/* A parameter that kernels read where it is, or its numbers in the workspace. */
static const struct ql_gpu_tensor *direct(
	struct ql_inner *inner, const struct ql_gpu_tensor *t, struct ql_gpu_tensor *dense)
{
	if (!t || ql_plain_parameter(t, true))
		return t;
	if (t->flags & QL_GPU_NUMBER) {
		inner->refused = true;
		ql_refuse(inner->plan, "scales in the host's memory");
		return t;
	}
	*dense = ql_dense_tensor(ql_inner_plain(inner, t, QL_E_float32), QL_E_float32, t->rank, t->shape);
	return dense;
}

/* Whether a parameter has more levels of scales than form_of of tensor/gemm/strips.c takes. */
static bool is_deep(const struct ql_gpu_tensor *t)
{
	return t && t->codes && (t->codes->shift || t->codes->zero_point || t->codes->scale->codes);
}

/* The CPU decodes what this refuses, and its result would differ. */
static bool weights_fit(const struct ql_gpu_tensor *w, struct ql_gpu_plan *p)
{
	const struct ql_gpu_codes *c = w->codes;

	if (!c || w->rank != 2 || !(c->block || c->shift))
		return p->why[0] ? false : ql_refuse(p, "wanted codes w (n, k) with scales in blocks along k");
	if (c->block ? c->block_axis != 1 || c->block % 8 || c->block > BLOCK_MOST : c->axis > 0)
		return ql_refuse(p, "wanted blocks along k of a multiple of 8 codes, at most 16384");
	if (is_deep(c->scale) || is_deep(c->shift))
		return ql_refuse(p, "scales of more than two levels");
	if (w->shape[0] == 0 || w->shape[1] == 0 || w->shape[1] > (c->block ? INT64_MAX : BLOCK_MOST))
		return ql_refuse(p, "wanted 1 to 16384 codes under a minimum");
	return ql_dense(w) || ql_refuse(p, "codes in blocks that are not contiguous");
}

static bool weights_of(struct ql_inner *inner, const struct ql_gpu_tensor *w, struct block_product *p, struct levels *l)
{
	const struct ql_gpu_codes *c = w->codes;
	struct ql_gpu_tensor plain = *w;
	struct ql_code_matrix *b = &p->x.b;

	if (!weights_fit(w, inner->plan))
		return false;
	l->codes = *c;
	l->codes.scale = direct(inner, c->scale, &l->scale);
	l->codes.shift = direct(inner, c->shift, &l->shift);
	plain.codes = &l->codes;
	if (!ql_inner_good(inner) || !ql_scales_fit(&plain, inner->plan))
		return false;
	if (ql_element_get(ql_element_of(w->dtype)).bits != 8)
		return ql_refuse(inner->plan, "codes of other than 8 bits");
	p->block = c->block ? c->block : w->shape[1];
	p->blocks = (w->shape[1] + p->block - 1) / p->block;
	p->per_line = c->block ? p->blocks : c->axis == 0;
	p->per_block = c->block != 0;
	b->at = static_cast<const uint8_t *>(w->at);
	b->line = ql_stride_at(w, 1);
	b->step = ql_stride_at(w, 0);
	b->is_unsigned = ql_element_get(ql_element_of(w->dtype)).kind == QL_E_UINT;
	b->scales = ql_scales_of(&l->codes);
	return true;
}

static bool product_of(
	struct ql_inner *inner, const struct ql_gpu_call *call, struct block_product *p, struct levels *l)
{
	const struct ql_gpu_tensor *a = &call->in[0], *w = &call->in[1];
	struct ql_gpu_plan *plan = inner->plan;
	struct ql_code_product *x = &p->x;

	*p = {};
	x->a.bytes = x->b.bytes = 1;
	if (call->n_in < 2 || a->rank < 1 || !weights_of(inner, w, p, l) ||
		!ql_matrix_of(a, a->rank > 1 ? 1 : -1, 0, &x->a, plan))
		return plan->why[0] ? false : ql_refuse(plan, "wanted x (…, k) and w (n, k)");
	if (a->rank > 2 && a->codes->axis >= 0)
		return ql_refuse(plan, "scale varies along one of several leading axes");
	x->m = ql_size_at(a, 1);
	x->n = w->shape[0];
	x->k = ql_size_at(a, 0);
	if (x->k != w->shape[1] || x->m > INT32_MAX || x->n > INT32_MAX)
		return ql_refuse(plan, "shapes that do not fit");
	if (!ql_batches_of(a, a->rank > 1 ? 2 : 1, w, 2, x, plan))
		return false;
	ql_more_rows(x);
	ql_strided_join(&x->offset);
	ql_strided_join(&x->scale);
	if (!ql_bias_of(call, x, plan) || !ql_result_of(call, x, plan))
		return false;
	if (x->codes && x->rounding)
		return ql_refuse(plan, "rounding: wanted integer results, got sums of floats");
	x->divided = x->codes;
	x->a.wide = p->block % 16 == 0 && ql_is_wide(&x->a, x->offset, 0);
	x->b.wide = p->block % 16 == 0 && ql_is_wide(&x->b, x->offset, 1);
	plan->path = "int8";
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_inner inner = {};
	struct block_product x;
	struct levels l;

	inner.plan = p;
	if (!product_of(&inner, call, &x, &l))
		return false;
	p->workspace = inner.used;
	return true;
}

static cudaError_t launch(const struct ql_gpu_place *place, const block_product &p)
{
	int64_t all = (p.x.m + TILE - 1) / TILE * ((p.x.n + TILE - 1) / TILE) * p.x.batches;

	return ql_launch(gemm, ql_blocks(all, 1), dim3(THREADS), sizeof(struct tiles), place->stream, p);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_inner inner = {};
	struct ql_gpu_plan plan = {};
	struct block_product p;
	struct levels l;
	cudaError_t error;

	inner.place = place;
	inner.workspace = static_cast<char *>(call->workspace);
	inner.plan = &plan;
	if (!product_of(&inner, call, &p, &l))
		return inner.error ? inner.error : cudaErrorInvalidValue;
	error = ql_product_begin(p.x, place->stream);
	if (error || p.x.m * p.x.n * p.x.batches == 0)
		return error;
	return launch(place, p);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_blocks;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_blocks = {"linear", "gemm_blocks", "dp4a", QL_GPU_BITS, 80, plan, run};
