/* SPDX-License-Identifier: MIT
 * linear and matmul of 8-bit codes by wgmma (sm_90a): tiles of 128 x 256 results, 128 codes of k at a time. A thread of the
 * first warpgroup copies boxes of both operands into four stages; two warpgroups multiply, 64 x 256 results each, with one
 * group of products under way. Blocks stay and take tile after tile, so the copies for the next one go on while results are
 * written. Barriers `full` end when the bytes of a stage are there, barriers `empty` when all eight warps have read it.
 *
 * Sums of the codes of lines, which only zero points need, are found before, by a kernel of their own.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/tensor_map.h"

#define GROUP 128 /* threads of a warpgroup */
#define WORKERS (2 * GROUP)
#define THREADS (GROUP + WORKERS)
#define ROWS 128
#define COLUMNS 256
#define DEEP 128 /* codes of k in a stage */
#define STAGES 4
#define STAGE_BYTES ((ROWS + COLUMNS) * DEEP)
#define EACH 128 /* results of a thread */
#define PIECE 32 /* columns that a warp writes at a time */
#define PITCH (PIECE + 8)
#define BAND 16   /* rows of tiles that follow each other, so that neighbours in time share operands in the cache */
#define LINES 256 /* threads of the kernel of sums */
#define LEAST 64  /* smaller results leave too much of a tile empty */

struct stage {
	uint8_t a[ROWS][DEEP], b[COLUMNS][DEEP];
};
struct column {
	ql_code_line line;
	float bias;
};
struct room {
	struct stage stage[STAGES];
	struct column column[2][COLUMNS]; /* of this tile and the next */
	ql_code_line row[2][ROWS];
	int32_t piece[WORKERS / 32][16][PITCH];
	uint64_t full[STAGES], empty[STAGES];
};

/* Operands as maps; b_first: without batches of its own, operand b has one matrix. */
struct work {
	ql_code_product x;
	int32_t steps, a_moves, b_moves; /* moves: 1 if each batch has a matrix of its own */
	int64_t down, across, all;       /* tiles */
	const int32_t *sum_a, *sum_b;    /* of (batch, line); NULL: zero points do not need them */
};

struct tile {
	int64_t number, row, column; /* batch, and first row and column */
};

QL_DEVICE tile tile_at(const work &w, int64_t i)
{
	int64_t each = w.down * w.across, r = i % each, band = r / (BAND * w.across) * BAND;
	int64_t rows = w.down - band < BAND ? w.down - band : BAND;

	r %= BAND * w.across;
	return {i / each, (band + r % rows) * ROWS, r / rows * COLUMNS};
}

/* ---- copies ---- */

QL_DEVICE void fetch(room &m, const work &w, const CUtensorMap *a, const CUtensorMap *b)
{
	uint32_t count = 0;

	for (int64_t i = blockIdx.x; i < w.all; i += gridDim.x) {
		tile t = tile_at(w, i);

		for (int32_t s = 0; s < w.steps; s++, count++) {
			uint32_t at = count % STAGES, phase = count / STAGES & 1;

			ql_barrier_wait(&m.empty[at], phase ^ 1);
			ql_barrier_expect(&m.full[at], STAGE_BYTES);
			ql_tensor_copy(
				m.stage[at].a, a, s * DEEP, (int32_t)t.row, (int32_t)t.number * w.a_moves, &m.full[at]);
			ql_tensor_copy(m.stage[at].b, b, s * DEEP, (int32_t)t.column, (int32_t)t.number * w.b_moves,
				&m.full[at]);
		}
	}
}

/* ---- products ---- */

/* The rows `half` * 64 to + 63 of a tile; count: of stages that were read before. */
template <bool A, bool B> QL_DEVICE void multiply(room &m, const work &w, int half, uint32_t count, int32_t sum[EACH])
{
	bool first = threadIdx.x % 32 == 0;

	for (int32_t s = 0; s < w.steps; s++) {
		uint32_t at = (count + (uint32_t)s) % STAGES, phase = (count + (uint32_t)s) / STAGES & 1;
		uint64_t a = ql_wgmma_descriptor(m.stage[at].a[half * 64]), b = ql_wgmma_descriptor(m.stage[at].b);

		if (QL_BUG(wgmma_stride))
			b -= (uint64_t)(512 >> 4) << 32;
		ql_barrier_wait(&m.full[at], phase ^ QL_BUG(wgmma_phase));
		ql_wgmma_fence();
		QL_UNROLL
		for (int k = 0; k < DEEP / 32; k++)
			ql_wgmma_i8<A, B>(sum, a + k * 2, b + k * (QL_BUG(wgmma_advance) ? 4 : 2), s > 0 || k > 0);
		ql_wgmma_commit();
		if (QL_BUG(wgmma_release) && first)
			ql_barrier_arrive(&m.empty[at]);
		ql_wgmma_wait<1>(); /* the stage before has been read */
		if (s > 0 && first && !QL_BUG(wgmma_release))
			ql_barrier_arrive(&m.empty[(at + STAGES - 1) % STAGES]);
	}
	ql_wgmma_wait<0>();
	if (first && !QL_BUG(wgmma_release))
		ql_barrier_arrive(&m.empty[(count + (uint32_t)w.steps - 1) % STAGES]);
}

/* ---- results ---- */

/* What results need of the lines of a tile; thread `worker` of WORKERS. */
QL_DEVICE void load_lines(room &m, const work &w, const tile &t, const ql_batch &from, int turn, int worker)
{
	const ql_code_product &x = w.x;
	int64_t i = t.row + worker, j = t.column + worker;

	if (worker < ROWS && i < x.m)
		m.row[turn][worker] = ql_code_line_of(x.a, from.scale_a, i, w.sum_a ? w.sum_a[t.number * x.m + i] : 0);
	if (j < x.n) {
		int32_t sum = w.sum_b ? w.sum_b[t.number * x.n + j] : 0;

		m.column[turn][worker] = {ql_code_line_of(x.b, from.scale_b, j, sum), ql_bias_at(x, j)};
	}
}

/* Results of 16 rows and PIECE columns, a column by a lane. plain: floats of at most 32 bits without zero points and
 * activation. */
QL_DEVICE void put_piece(const work &w, const int32_t piece[16][PITCH], const ql_code_line *row, const column &c,
	int64_t at, int rows, bool plain)
{
	const ql_code_product &x = w.x;
	int lane = (int)threadIdx.x % 32;
	bool wide = x.to == QL_E_float32;

	if (!plain) {
		QL_ROLLED
		for (int r = 0; r < rows; r++, at += x.n)
			ql_product_put(x, at, row[r], c.line, c.bias, piece[r][lane]);
		return;
	}
	for (int r = 0; r < rows; r++, at += x.n) {
		float y = (float)piece[r][lane] * (row[r].scale * c.line.scale);

		y = x.bias ? y + c.bias : y;
		if (wide)
			static_cast<float *>(x.out)[at] = y;
		else
			static_cast<uint16_t *>(x.out)[at] = x.to == QL_E_float16 ? ql_to_f16(y) : ql_to_bf16(y);
	}
}

/* The registers of a warp go through its own piece of memory, so that lanes write neighbouring results. */
QL_DEVICE void put(room &m, const work &w, const tile &t, int turn, int worker, const int32_t sum[EACH])
{
	const ql_code_product &x = w.x;
	int warp = worker / 32, lane = worker % 32, row = warp * 16, g = lane / 4 * !QL_BUG(wgmma_rows),
	    c = lane % 4 * 2;
	bool plain = !x.codes && x.act == QL_ACT_none && !x.a.scales.zero && !x.b.scales.zero &&
		     (x.to == QL_E_float32 || x.to == QL_E_float16 || x.to == QL_E_bfloat16);
	int64_t left = x.m - t.row - row, first = (t.number * x.m + t.row + row) * x.n + t.column;
	int rows = left < 0 ? 0 : left < 16 ? (int)left : 16;

	QL_ROLLED
	for (int p = 0; p < COLUMNS / PIECE; p++) {
		QL_UNROLL
		for (int j = 0; j < COLUMNS / 8;
			j++) { /* all are written out, as registers have no index; those of p run */
			if (j / (PIECE / 8) != p)
				continue;
			QL_UNROLL
			for (int e = 0; e < 4; e++)
				m.piece[warp][g + e / 2 * 8][j * 8 % PIECE + c + e % 2] = sum[j * 4 + e];
		}
		__syncwarp();
		if (t.column + p * PIECE + lane < x.n)
			put_piece(w, m.piece[warp], m.row[turn] + row, m.column[turn][p * PIECE + lane],
				first + p * PIECE + lane, rows, plain);
		__syncwarp(); /* before the piece is written again */
	}
}

template <bool A, bool B> QL_DEVICE void compute(room &m, const work &w, int worker)
{
	uint32_t count = 0;
	int turn = 0;

	for (int64_t i = blockIdx.x; i < w.all;
		i += gridDim.x, turn ^= !QL_BUG(wgmma_turn), count += (uint32_t)w.steps) {
		tile t = tile_at(w, i);
		int32_t sum[EACH];

		load_lines(m, w, t, ql_batch_at(w.x, t.number), turn, worker);
		multiply<A, B>(m, w, worker / GROUP, count, sum);
		ql_sync_some(1, WORKERS); /* the lines are there; those of the tile before have been read */
		put(m, w, t, turn, worker, sum);
	}
}

template <bool A, bool B>
QL_KERNEL(THREADS)
gemm(work w, const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b)
{
#if QL_SM90A
	QL_SHARED(struct room, m);

	if (threadIdx.x == 0) {
		for (int i = 0; i < STAGES; i++) {
			ql_barrier_init(&m.full[i], 1);
			ql_barrier_init(&m.empty[i], WORKERS / 32);
		}
		ql_barrier_init_fence();
	}
	__syncthreads();
	if (threadIdx.x < GROUP) {
		ql_registers_less<40>();
		if (threadIdx.x == 0)
			fetch(m, w, &a, &b);
	} else {
		ql_registers_more<232>();
		compute<A, B>(m, w, (int)threadIdx.x - GROUP);
	}
#endif
}

/* ---- sums of lines ---- */

/* Lines of `k` codes of all batches; a warp for each line. */
template <bool UNSIGNED> QL_KERNEL(LINES) sum_lines(ql_code_product x, bool of_a, int64_t lines, int32_t *to)
{
	const ql_code_matrix &l = of_a ? x.a : x.b;
	int lane = (int)threadIdx.x % 32;

	for (int64_t i = ql_thread() / 32; i < lines * x.batches; i += ql_threads() / 32) {
		ql_batch from = ql_batch_at(x, i / lines);
		const uint8_t *line = (of_a ? from.a : from.b) + i % lines * l.line;
		int64_t even = x.k / 16 * 16;
		int32_t sum = 0;

		for (int64_t k = lane * 16; k < even; k += 512) {
			uint4 v = ql_load_16(line + k);

			sum = ql_dp4a<UNSIGNED, false>(v.x, 0x01010101u, sum);
			sum = ql_dp4a<UNSIGNED, false>(v.y, 0x01010101u, sum);
			sum = ql_dp4a<UNSIGNED, false>(v.z, 0x01010101u, sum);
			sum = ql_dp4a<UNSIGNED, false>(v.w, 0x01010101u, sum);
		}
		if (even + lane < x.k)
			sum += UNSIGNED ? line[even + lane] : (int8_t)line[even + lane];
		for (int d = 16; d; d >>= 1)
			sum += __shfl_xor_sync(~0u, sum, d);
		if (lane == 0)
			to[i] = sum;
	}
}

static cudaError_t sums(const struct ql_gpu_place *place, const ql_code_product &x, bool of_a, int32_t *to)
{
	int64_t lines = of_a ? x.m : x.n;
	dim3 blocks = ql_blocks(lines * x.batches, LINES / 32);

	if ((of_a ? x.a : x.b).is_unsigned)
		return ql_launch(sum_lines<true>, blocks, dim3(LINES), 0, place->stream, x, of_a, lines, to);
	return ql_launch(sum_lines<false>, blocks, dim3(LINES), 0, place->stream, x, of_a, lines, to);
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct ql_code_product x;

	if (!ql_product_of(call, &x, p))
		return false;
	if (!x.a.wide || !x.b.wide)
		return ql_refuse(p, "lines that do not begin at multiples of 16 bytes");
	if (x.m < LEAST || x.n < LEAST || x.k < DEEP)
		return ql_refuse(p, "too small for tiles of 128 x 256");
	if (x.batches > 1 && x.offset.rank > 1)
		return ql_refuse(p, "batches along more than one axis");
	if (x.batches > INT32_MAX)
		return ql_refuse(p, "more than 2^31 batches");
	if (x.a.scales.zero || x.b.scales.zero)
		p->workspace = (uint64_t)(x.batches * (x.m + x.n)) * sizeof(int32_t);
	return true;
}

/* An operand whose batches are `batch` bytes apart, 0: all the same. */
static cudaError_t map_of(const ql_code_product &x, const ql_code_matrix &l, int64_t lines, int64_t batch,
	uint32_t rows, CUtensorMap *map)
{
	ql_byte_matrices matrices = {l.at, x.k, lines, batch ? x.batches : 1, l.line, batch ? batch : l.line};

	return ql_tensor_map(matrices, rows, map);
}

template <bool A, bool B>
static cudaError_t launch(const struct ql_gpu_place *place, const work &w, const CUtensorMap &a, const CUtensorMap &b)
{
	return ql_launch(gemm<A, B>, ql_blocks(w.all, 1, place->processors), dim3(THREADS), sizeof(struct room),
		place->stream, w, a, b);
}

static work work_of(const struct ql_gpu_call *call, const ql_code_product &x)
{
	work w = {};

	w.x = x;
	w.steps = (int32_t)((x.k + DEEP - 1) / DEEP);
	w.down = (x.m + ROWS - 1) / ROWS;
	w.across = (x.n + COLUMNS - 1) / COLUMNS;
	w.all = w.down * w.across * x.batches;
	w.a_moves = x.batches > 1 && x.offset.stride[0][0] != 0;
	w.b_moves = x.batches > 1 && x.offset.stride[1][0] != 0;
	if (x.b.scales.zero)
		w.sum_a = static_cast<const int32_t *>(call->workspace);
	if (x.a.scales.zero)
		w.sum_b = static_cast<const int32_t *>(call->workspace) + x.batches * x.m;
	return w;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct ql_code_product x;
	CUtensorMap a, b;
	cudaError_t error;

	if (!ql_product_of(call, &x, &p))
		return cudaErrorInvalidValue;
	if (x.batches == 0)
		return cudaSuccess;
	work w = work_of(call, x);

	error = ql_product_begin(x, place->stream);
	if (!error)
		error = map_of(x, x.a, x.m, w.a_moves ? x.offset.stride[0][0] : 0, ROWS, &a);
	if (!error)
		error = map_of(x, x.b, x.n, w.b_moves ? x.offset.stride[1][0] : 0, COLUMNS, &b);
	if (!error && w.sum_a)
		error = sums(place, x, true, const_cast<int32_t *>(w.sum_a));
	if (!error && w.sum_b)
		error = sums(place, x, false, const_cast<int32_t *>(w.sum_b));
	if (error)
		return error;
	if (x.a.is_unsigned)
		return x.b.is_unsigned ? launch<true, true>(place, w, a, b) : launch<true, false>(place, w, a, b);
	return x.b.is_unsigned ? launch<false, true>(place, w, a, b) : launch<false, false>(place, w, a, b);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_wgmma;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_i8_wgmma = {
	"linear matmul", "gemm_i8_wgmma", "wgmma", QL_GPU_BITS, 90, plan, run};
