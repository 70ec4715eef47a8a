/* SPDX-License-Identifier: MIT
 * The gradient of a table of rows: each row is the sum of the gradients of the ids that name it, in order of the ids, as in
 * tensor/ops/embedding.c and so with its bits. Pairs of row and position are sorted by row, eight bits at a time and stable;
 * then a warp adds 32 columns of a row.
 */
#include "gpu/kernels/fault.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define BITS 8
#define DIGITS (1 << BITS) /* = THREADS: a thread for each digit */
#define TILE 2048          /* pairs that a block sorts */
#define ALL 0xffffffffu

typedef unsigned long long pair; /* row in the upper half, position in the lower */

/* ---- pairs ---- */

struct numbers {
	ql_strided ids;
	const void *number;
	pair *out;
	int64_t rows;
	int32_t type;
	uint64_t serial;
	ql_gpu_record *record;
};

QL_KERNEL(THREADS) pair_up(numbers p)
{
	for (int64_t i = ql_thread(); i < p.ids.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST], id;

		ql_strided_at(p.ids, i, at);
		id = ql_load_i64(p.type, p.number, at[0]);
		if (id < 1 || id > p.rows) {
			ql_note(p.record, p.serial, QL_GPU_FAULT_INDEX, i, id, p.rows);
			id = 1;
		}
		p.out[i] = (pair)(id - 1) << 32 | (pair)i;
	}
}

/* ---- a pass of the sort ---- */

struct pass {
	const pair *from;
	pair *to;
	uint32_t *count; /* (tiles, DIGITS): pairs of each digit, then the place of the first one */
	int64_t n, tiles;
	int32_t shift;
};

QL_DEVICE unsigned digit_of(const pass &s, pair p)
{
	return (unsigned)(p >> s.shift) & (DIGITS - 1);
}

/* One number for each digit. */
struct digits {
	uint32_t of[DIGITS];
};

QL_KERNEL(THREADS) count_digits(pass s)
{
	QL_SHARED(struct digits, count);
	int64_t begin = (int64_t)blockIdx.x * TILE, end = begin + TILE < s.n ? begin + TILE : s.n;

	count.of[threadIdx.x] = 0;
	__syncthreads();
	for (int64_t i = begin + threadIdx.x; i < end; i += THREADS)
		atomicAdd(&count.of[digit_of(s, s.from[i])], 1u);
	__syncthreads();
	s.count[(int64_t)blockIdx.x * DIGITS + threadIdx.x] = count.of[threadIdx.x];
}

/* By one block: places follow each other by digit, then by tile. */
QL_KERNEL(THREADS) place_digits(pass s)
{
	QL_SHARED(struct digits, sum);
	uint32_t own = 0, before;

	for (int64_t t = 0; t < s.tiles; t++)
		own += s.count[t * DIGITS + threadIdx.x];
	sum.of[threadIdx.x] = own;
	__syncthreads();
	for (unsigned d = 1; d < DIGITS; d *= 2) {
		before = threadIdx.x >= d ? sum.of[threadIdx.x - d] : 0;
		__syncthreads();
		sum.of[threadIdx.x] += before;
		__syncthreads();
	}
	before = sum.of[threadIdx.x] - own;
	for (int64_t t = 0; t < s.tiles; t++) {
		uint32_t n = s.count[t * DIGITS + threadIdx.x];

		s.count[t * DIGITS + threadIdx.x] = before;
		before += n;
	}
}

struct places {
	uint32_t next[DIGITS];
	uint32_t warp[WARPS][DIGITS]; /* pairs of each digit in a warp, then the place of its first one */
};

/* The lanes with the same digit, of those that have one. */
QL_DEVICE unsigned peers(bool live, unsigned digit)
{
	unsigned mask = __ballot_sync(ALL, live);

	for (int b = 0; b < BITS; b++) {
		unsigned set = __ballot_sync(ALL, digit >> b & 1);

		mask &= digit >> b & 1 ? set : ~set;
	}
	return mask;
}

/* THREADS pairs at a time, in order. */
QL_KERNEL(THREADS) scatter(pass s)
{
	QL_SHARED(struct places, p);
	int64_t begin = (int64_t)blockIdx.x * TILE, end = begin + TILE < s.n ? begin + TILE : s.n;
	unsigned warp = threadIdx.x / 32, lane = threadIdx.x & 31;

	p.next[threadIdx.x] = s.count[(int64_t)blockIdx.x * DIGITS + threadIdx.x];
	for (int64_t i = begin; i < end; i += THREADS) {
		bool live = i + threadIdx.x < end;
		pair own = live ? s.from[i + threadIdx.x] : 0;
		unsigned digit = digit_of(s, own), same = peers(live, digit), count = (unsigned)__popc(same);
		unsigned rank = (unsigned)__popc(same & ((1u << lane) - 1));

		for (int w = 0; w < WARPS; w++)
			p.warp[w][threadIdx.x] = 0;
		__syncthreads();
		if (live && rank == 0)
			p.warp[warp][digit] = count;
		__syncthreads();
		for (int w = 0; w < WARPS; w++) {
			uint32_t n = p.warp[w][threadIdx.x];

			p.warp[w][threadIdx.x] = p.next[threadIdx.x];
			p.next[threadIdx.x] += n;
		}
		__syncthreads();
		if (live)
			s.to[p.warp[warp][digit] + (QL_BUG(embedding_rank) ? count - 1 - rank : rank)] = own;
		if (!QL_BUG(embedding_barrier))
			__syncthreads();
	}
}

/* ---- sums ---- */

struct ends {
	uint32_t *first, *last; /* of each row: its pairs are first .. last - 1 */
};

/* Of rows that are named; those of the others are equal before. */
QL_KERNEL(THREADS) find_ends(ends e, const pair *sorted, int64_t n)
{
	for (int64_t i = ql_thread(); i < n; i += ql_threads()) {
		int64_t row = (int64_t)(sorted[i] >> 32);

		if (i == 0 || (int64_t)(sorted[i - 1] >> 32) != row)
			e.first[row] = (uint32_t)i;
		if (i == n - 1 || (int64_t)(sorted[i + 1] >> 32) != row)
			e.last[row] = (uint32_t)i + 1;
	}
}

struct sums {
	ql_strided along; /* the rows of the gradient */
	ends e;
	const pair *sorted;
	const void *g;
	void *out;
	int64_t rows, d, column, strips; /* column: stride; strips: of 32 columns */
	int32_t from;
};

QL_DEVICE int64_t offset_of(const sums &s, int64_t i)
{
	int64_t at[QL_STRIDED_MOST];

	ql_strided_at(s.along, (int64_t)(s.sorted[i] & 0xffffffffu), at);
	return at[0];
}

QL_DEVICE void add(float &sum, const sums &s, int64_t at)
{
	sum += ql_load_small(s.from, s.g, at);
}
QL_DEVICE void add(double &sum, const sums &s, int64_t at)
{
	sum += static_cast<const double *>(s.g)[at];
}

template <typename T> QL_KERNEL(THREADS) sum_rows(sums s)
{
	for (int64_t item = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; item < s.rows * s.strips;
		item += (int64_t)gridDim.x * WARPS) {
		int64_t row = item / s.strips, c = item % s.strips * 32 + (threadIdx.x & 31);
		T sum = 0;

		if (c >= s.d)
			continue;
		for (int64_t i = s.e.first[row]; i < (int64_t)s.e.last[row]; i++)
			add(sum, s, offset_of(s, i) + c * s.column);
		static_cast<T *>(s.out)[row * s.d + c] = sum;
	}
}

/* ---- the call ---- */

static int64_t tiles_of(int64_t n)
{
	return (n + TILE - 1) / TILE;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *g = &call->in[0], *ids = &call->in[1], *out = call->out;
	int from = ql_element_of(g->dtype), to = ql_element_of(out->dtype);
	int64_t n = ql_count(ids);

	if (g->codes || out->codes || ((g->flags | ids->flags) & QL_GPU_NUMBER) ||
		!ql_element_whole(ql_element_of(ids->dtype)))
		return ql_refuse(p, "wanted plain numbers of whole bytes on the device");
	if (!ql_element_float(from) || to != (from == QL_E_float64 ? QL_E_float64 : QL_E_float32) || !ql_dense(out))
		return ql_refuse(p, "wanted a dense result of float32, of float64 for a gradient of it");
	if (n > INT32_MAX || out->shape[0] > INT32_MAX)
		return ql_refuse(p, "more than 2^31 ids or rows");
	p->path = ql_element_get(to).name;
	p->workspace = (uint64_t)n * 2 * sizeof(pair) +
		       ((uint64_t)tiles_of(n) * DIGITS + (uint64_t)out->shape[0] * 2) * sizeof(uint32_t);
	p->faults = 1;
	return true;
}

/* Sorts the pairs of `s` by the bits that rows have; gives where they are. */
static cudaError_t sort(cudaStream_t stream, pass s, int64_t rows, const pair **from)
{
	const pair *sorted;

	for (s.shift = 32; s.shift < 64 && (rows - 1) >> (s.shift - 32) > 0; s.shift += BITS) {
		dim3 blocks((unsigned)s.tiles), threads(THREADS);
		cudaError_t error = ql_launch(count_digits, blocks, threads, sizeof(struct digits), stream, s);

		if (!error)
			error = ql_launch(place_digits, dim3(1), threads, sizeof(struct digits), stream, s);
		if (!error)
			error = ql_launch(scatter, blocks, threads, sizeof(struct places), stream, s);
		if (error)
			return error;
		sorted = s.from;
		s.from = s.to;
		s.to = const_cast<pair *>(sorted);
	}
	*from = s.from;
	return cudaSuccess;
}

static numbers numbers_of(const struct ql_gpu_place *place, const struct ql_gpu_call *call, pair *out)
{
	const struct ql_gpu_tensor *ids = &call->in[1];
	numbers p = {};

	p.ids = ql_strided_of(ids, NULL, ~0u);
	p.number = ids->at;
	p.out = out;
	p.rows = call->out->shape[0];
	p.type = ql_element_of(ids->dtype);
	p.serial = call->serial;
	p.record = place->record;
	return p;
}

static cudaError_t add_up(cudaStream_t stream, const struct ql_gpu_call *call, const pair *sorted, ends e)
{
	const struct ql_gpu_tensor *g = &call->in[0], *out = call->out;
	dim3 blocks, threads(THREADS);
	sums s = {};

	s.along = ql_strided_of(g, NULL, ~(1u << (g->rank - 1)));
	s.e = e;
	s.sorted = sorted;
	s.g = g->at;
	s.out = out->at;
	s.rows = out->shape[0];
	s.d = out->shape[1];
	s.column = g->stride[g->rank - 1];
	s.strips = (s.d + 31) / 32;
	s.from = ql_element_of(g->dtype);
	blocks = ql_blocks(s.rows * s.strips, WARPS);
	return ql_element_of(out->dtype) == QL_E_float64 ? ql_launch_free(sum_rows<double>, blocks, threads, stream, s)
							 : ql_launch_free(sum_rows<float>, blocks, threads, stream, s);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *out = call->out;
	int64_t n = ql_count(&call->in[1]), rows = out->shape[0];
	pair *pairs = static_cast<pair *>(call->workspace);
	const pair *sorted = NULL;
	cudaError_t error = cudaSuccess;
	pass s = {};
	ends e;

	if (rows * out->shape[1] == 0)
		return cudaSuccess;
	s.from = pairs;
	s.to = pairs + n;
	s.count = reinterpret_cast<uint32_t *>(pairs + 2 * n);
	s.n = n;
	s.tiles = tiles_of(n);
	e.first = s.count + s.tiles * DIGITS;
	e.last = e.first + rows;
	error = cudaMemsetAsync(e.first, 0, (size_t)rows * 2 * sizeof(uint32_t), place->stream);
	if (!error && n)
		error = ql_launch_free(
			pair_up, ql_blocks(n, THREADS), dim3(THREADS), place->stream, numbers_of(place, call, pairs));
	if (!error && n)
		error = sort(place->stream, s, rows, &sorted);
	if (!error && n)
		error = ql_launch_free(find_ends, ql_blocks(n, THREADS), dim3(THREADS), place->stream, e, sorted, n);
	return error ? error : add_up(place->stream, call, sorted, e);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_embedding_back;
const struct ql_gpu_kernel ql_gpu_kernel_embedding_back = {
	"embedding_back", "embedding_back", "simt", QL_GPU_BITS, 80, plan, run};
