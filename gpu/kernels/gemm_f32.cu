/* SPDX-License-Identifier: MIT
 * linear and matmul of numbers, or of numbers and affine codes that are decoded on the way: every product of floats, and of
 * integers of at most 16 bits. A tile of results stays in registers while k goes by in two stages of shared memory, of which
 * one is filled from registers that were loaded during the multiplication of the other.
 *
 * Ordered products (QL_GPU_ORDERED), float64 and integers: one sum per element, in order of k from 0, each product rounded,
 * then added, as tensor/kernels/gemm_f32_ref.c and tensor/ops/matmul.c. Zeros beyond the end of k change no bit: a sum that
 * begins at +0 never becomes -0. Else products are fused with their additions, and where the tiles are too few for a device
 * k is cut into parts whose sums are added in order by a second kernel.
 */
#include "gpu/kernels/float_product.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define BOUNDS THREADS, 2 /* blocks of a multiprocessor, at least */
#define DEEP 16           /* of k in a stage */
#ifdef QL_EMULATION
#define WANTED 8 /* so that small tests run all sizes */
#else
#define WANTED 128 /* blocks that occupy a device */
#endif
#define PARTS 64 /* of k, at most */
#define PART 256 /* of k, at least */

/* float32 of which 16 bytes are read at once: along k, a along k and b along its lines, both along their lines; or any
 * elements. */
enum how { ANY, ALONG_K, DOWN_B, DOWN_BOTH };

/* A part of a product. */
struct job {
	ql_float_product x;
	int64_t part; /* length of k; a multiple of DEEP */
	int32_t parts;
	void *sums; /* (parts, batches, m, n) of float32; NULL: results are finished */
	enum how how;
	bool fused;
	bool down_a, down_b; /* neighbours in memory are in different lines */
};

/* ---- stages ---- */

/* Results of a tile: M x N, of which a thread has R x S in groups of V, that of columns N / (S / V) apart. */
template <typename T, int M, int N> struct stage {
	T a[DEEP][M + 4], b[DEEP][N + 4];
};
template <typename T, int M, int N> struct tiles {
	union {
		stage<T, M, N> stages[2];
		T sum[M][N + 4]; /* afterwards; nothing then stays in registers, which activations need */
	};
};

#define QUADS(lines) (((lines)*DEEP / 4 + THREADS - 1) / THREADS)
/* Elements of L lines of a stage on their way: four at a time, neighbours along k or along the lines. */
template <typename T, int L> struct on_the_way {
	const T *at[QUADS(L)];
	uint4 v[QUADS(L)];
};

template <int L, bool DOWN> QL_DEVICE void place_of(int q, int *line, int *k)
{
	*line = DOWN ? q % (L / 4) * 4 : q / (DEEP / 4);
	*k = DOWN ? q / (L / 4) : q % (DEEP / 4) * 4;
}

/* Where this thread begins to read float32 of which four neighbours are aligned, and exist all or none. */
template <typename T, int L, bool DOWN>
QL_DEVICE void begin_at(const ql_float_lines &l, const ql_float_batch &from, int64_t first, int64_t lines,
	int64_t begin, on_the_way<T, L> &to)
{
	int line, k;

	QL_UNROLL
	for (int i = 0; i < QUADS(L); i++) {
		int q = (int)threadIdx.x + i * THREADS;

		place_of<L, DOWN>(q, &line, &k);
		to.at[i] = q < L * DEEP / 4 && first + line < lines
				   ? static_cast<const T *>(l.at) + from.at + (first + line) * l.line +
					     (begin + k) * l.step
				   : nullptr;
	}
}

/* Reads elements whose k is below `left` of a stage, and goes on by `step` elements. */
template <typename T, int L, bool DOWN> QL_DEVICE void fetch(int left, int64_t step, on_the_way<T, L> &to)
{
	int line, k;

	QL_UNROLL
	for (int i = 0; i < QUADS(L); i++) {
		place_of<L, DOWN>((int)threadIdx.x + i * THREADS, &line, &k);
		to.v[i] = {0, 0, 0, 0};
		if (to.at[i] && k < left) {
			to.v[i] = ql_load_16(to.at[i]);
			to.at[i] += step;
		}
	}
}

template <typename T, int L, bool DOWN> QL_DEVICE void put(T (*to)[L + 4], const on_the_way<T, L> &from)
{
	int line, k;

	QL_UNROLL
	for (int i = 0; i < QUADS(L); i++) {
		int q = (int)threadIdx.x + i * THREADS;

		if (L * DEEP / 4 % THREADS && q >= L * DEEP / 4)
			break;
		place_of<L, DOWN>(q, &line, &k);
		to[k][line] = (T)ql_float_of(from.v[i].x);
		to[DOWN ? k : k + 1][DOWN ? line + 1 : line] = (T)ql_float_of(from.v[i].y);
		to[DOWN ? k : k + 2][DOWN ? line + 2 : line] = (T)ql_float_of(from.v[i].z);
		to[DOWN ? k : k + 3][DOWN ? line + 3 : line] = (T)ql_float_of(from.v[i].w);
	}
}

/* Any elements, one at a time; neighbours by neighbouring threads. */
template <typename T, int L>
QL_DEVICE void fill(T (*to)[L + 4], const ql_float_lines &l, const ql_float_batch &from, bool down, int64_t first,
	int64_t lines, int64_t k0, int64_t end)
{
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < L * DEEP; e += THREADS) {
		int line = down ? e % L : e / DEEP, k = down ? e / L : e % DEEP;
		T v = 0;

		if (first + line < lines && k0 + k < end + QL_BUG(gemm_f32_tail))
			ql_line_value(l, from, first + line, k0 + k, &v);
		to[k][line] = v;
	}
}

/* ---- sums ---- */

template <bool FUSED> QL_DEVICE float plus_product(float sum, float a, float b)
{
	return FUSED ? __fmaf_rn(a, b, sum) : sum + a * b;
}
template <bool FUSED> QL_DEVICE double plus_product(double sum, double a, double b)
{
	return sum + a * b;
}
template <bool FUSED> QL_DEVICE int64_t plus_product(int64_t sum, int64_t a, int64_t b)
{
	return sum + a * b;
}

/* Row or column i of this thread, the thread being number `t` of N / R. */
template <int N, int R> QL_DEVICE int mine(int t, int i)
{
	const int v = R > 4 ? 4 : R;

	return i / v * (N / (R / v)) + t * v + i % v;
}

template <typename T, int M, int N, int R, int S, bool FUSED>
QL_DEVICE void multiply_as(const stage<T, M, N> &from, T (*sum)[S])
{
	int row = (int)threadIdx.x / (N / S), column = (int)threadIdx.x % (N / S);

	QL_ROLLED
	for (int k = 0; k < DEEP; k++) {
		T a[R], b[S];

		QL_UNROLL
		for (int i = 0; i < R; i++)
			a[i] = from.a[k][mine<M, R>(row, i)];
		QL_UNROLL
		for (int j = 0; j < S; j++)
			b[j] = from.b[k][mine<N, S>(column, j)];
		QL_UNROLL
		for (int i = 0; i < R; i++) {
			QL_UNROLL
			for (int j = 0; j < S; j++)
				sum[i][j] = plus_product<FUSED>(sum[i][j], a[i], b[j]);
		}
	}
}

/* Both in one kernel: a stage is long enough for a branch before it. */
template <typename T, int M, int N, int R, int S>
QL_DEVICE void multiply(const stage<T, M, N> &from, bool fused, T (*sum)[S])
{
	if (sizeof(T) == sizeof(float) && fused)
		multiply_as<T, M, N, R, S, true>(from, sum);
	else
		multiply_as<T, M, N, R, S, false>(from, sum);
}

/* The sums of a tile over begin <= k < end. */
template <typename T, int M, int N, int R, int S, int HOW>
QL_DEVICE void sums_of(tiles<T, M, N> &t, const job &w, int64_t number, int64_t i0, int64_t j0, int64_t begin,
	int64_t end, T (*sum)[S])
{
	const bool down_a = HOW == DOWN_BOTH, down_b = HOW != ALONG_K;
	const ql_float_product &x = w.x;
	on_the_way<T, M> next_a;
	on_the_way<T, N> next_b;
	int now = 0;

	begin_at<T, M, down_a>(x.a, ql_float_lines_at(x.a, number), i0, x.m, begin, next_a);
	begin_at<T, N, down_b>(x.b, ql_float_lines_at(x.b, number), j0, x.n, begin, next_b);
	for (int64_t k0 = begin - DEEP; k0 < end; k0 += DEEP, now ^= 1) {
		int left = end - k0 - DEEP < DEEP ? (int)(end - k0) - DEEP : DEEP;

		fetch<T, M, down_a>(left, DEEP * x.a.step, next_a);
		fetch<T, N, down_b>(left, DEEP * x.b.step, next_b);
		if (k0 >= begin)
			multiply<T, M, N, R, S>(t.stages[now ^ 1], w.fused, sum);
		put<T, M, down_a>(t.stages[now].a, next_a);
		put<T, N, down_b>(t.stages[now].b, next_b);
		/* The other stage, which is written next, is read by nobody any more when all are here. */
		if (!QL_BUG(gemm_f32_barrier))
			__syncthreads();
	}
}

/* The same of any elements. */
template <typename T, int M, int N, int R, int S>
QL_DEVICE void sums_of_any(tiles<T, M, N> &t, const job &w, int64_t number, int64_t i0, int64_t j0, int64_t begin,
	int64_t end, T (*sum)[S])
{
	const ql_float_product &x = w.x;
	ql_float_batch a = ql_float_lines_at(x.a, number), b = ql_float_lines_at(x.b, number);
	int now = 0;

	for (int64_t k0 = begin; k0 < end; k0 += DEEP, now ^= 1) {
		fill<T, M>(t.stages[now].a, x.a, a, w.down_a, i0, x.m, k0, end);
		fill<T, N>(t.stages[now].b, x.b, b, w.down_b, j0, x.n, k0, end);
		if (!QL_BUG(gemm_f32_any_barrier))
			__syncthreads();
		multiply<T, M, N, R, S>(t.stages[now], w.fused, sum);
	}
}

/* ---- results ---- */

/* Puts the sums of this thread where all can read them. */
template <typename T, int M, int N, int R, int S> QL_DEVICE void keep(T (*to)[N + 4], const T (*sum)[S])
{
	int row = (int)threadIdx.x / (N / S), column = (int)threadIdx.x % (N / S);

	QL_UNROLL
	for (int i = 0; i < R; i++) {
		QL_UNROLL
		for (int j = 0; j < S; j++)
			to[mine<M, R>(row, i)][mine<N, S>(column, j)] = sum[i][j];
	}
}

template <typename T> QL_DEVICE void finish(const job &w, int part, int64_t at, int64_t j, T sum)
{
	if (w.sums)
		static_cast<T *>(w.sums)[part * w.x.batches * w.x.m * w.x.n + at] = sum;
	else
		ql_float_store(w.x, at, j, sum);
}

template <typename T, int M, int N, int R, int S, int HOW>
QL_DEVICE void tile(tiles<T, M, N> &t, const job &w, int part, int64_t number, int64_t i0, int64_t j0)
{
	int64_t begin = part * w.part, end = begin + w.part < w.x.k ? begin + w.part : w.x.k;
	T sum[R][S] = {};

	if (HOW == ANY)
		sums_of_any<T, M, N, R, S>(t, w, number, i0, j0, begin, end, sum);
	else
		sums_of<T, M, N, R, S, HOW>(t, w, number, i0, j0, begin, end, sum);
	__syncthreads(); /* before sums are put where stages are read */
	keep<T, M, N, R, S>(t.sum, sum);
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < M * N; e += THREADS) {
		int64_t i = i0 + e / N, j = j0 + e % N;

		if (i < w.x.m && j < w.x.n + QL_BUG(gemm_f32_column))
			finish(w, part, (number * w.x.m + i) * w.x.n + j, j, t.sum[e / N][e % N]);
	}
	__syncthreads(); /* before the next tile is written */
}

template <typename T, int M, int N, int R, int S, int HOW> QL_KERNEL(BOUNDS) gemm(job w)
{
	typedef tiles<T, M, N> shared;
	QL_SHARED(shared, t);
	int64_t down = (w.x.m + M - 1) / M, across = (w.x.n + N - 1) / N, all = down * across * w.x.batches;

	for (int64_t i = blockIdx.x; i < all * w.parts; i += gridDim.x)
		tile<T, M, N, R, S, HOW>(
			t, w, (int)(i / all), i % all / (down * across), i % down * M, i / down % across * N);
}

/* Adds the parts of each sum in order. */
QL_KERNEL(THREADS) add_parts(job w)
{
	int64_t count = w.x.batches * w.x.m * w.x.n;
	const float *from = static_cast<const float *>(w.sums);

	for (int64_t i = ql_thread(); i < count; i += ql_threads()) {
		float sum = from[i];

		for (int p = 1; p < w.parts; p++)
			sum += from[p * count + i];
		ql_float_store(w.x, i, i % w.x.n, sum);
	}
}

/* ---- the call ---- */

/* Whether sums of products of integers fit the result. */
static bool sums_fit(const ql_float_product &x, struct ql_gpu_plan *p)
{
	struct ql_element_info a = ql_element_get(x.a.element), b = ql_element_get(x.b.element),
			       to = ql_element_get(x.to);
	double most = (double)x.k * fmax(fabs((double)a.lo), fabs((double)a.hi)) *
		      fmax(fabs((double)b.lo), fabs((double)b.hi));

	if (a.kind == QL_E_FLOAT || b.kind == QL_E_FLOAT)
		return ql_refuse(p, "an integer result of floats");
	p->path = a.bits <= 8 && b.bits <= 8 ? "int8" : "int16";
	return most < (double)to.hi || ql_refuse(p, "sums that may not fit the integers of the result");
}

/* Tiles of M x N results. */
static int64_t tiles_of(const ql_float_product &x, int64_t m, int64_t n)
{
	return (x.m + m - 1) / m * ((x.n + n - 1) / n) * x.batches;
}

enum size { SMALL, MEDIUM, LARGE };

static enum size size_of(const ql_float_product &x)
{
	if (x.m > 64 && x.n > 64 && tiles_of(x, 128, 128) >= WANTED)
		return LARGE;
	return x.m > 16 && tiles_of(x, 64, 64) >= WANTED / 4 ? MEDIUM : SMALL;
}

/* Whether lines of k elements are fetched by fours. */
static bool fetches(const struct ql_float_lines &l, bool down, int64_t lines, int64_t k)
{
	return !l.codes && l.element == QL_E_float32 && (down ? lines : k) % 4 == 0 &&
	       ql_reads_16(&l, down ? l.line : l.step, down ? l.step : l.line, 4);
}

static bool job_of(const struct ql_gpu_call *call, struct job *w, struct ql_gpu_plan *p)
{
	ql_float_product &x = w->x;
	bool floats;
	int64_t most, wanted, blocks;

	if (!ql_float_product_of(call, &x, p))
		return false;
	floats = ql_element_float(x.to) && x.to != QL_E_float64;
	w->fused = floats && !(call->flags & QL_GPU_ORDERED);
	p->path = floats ? "float32" : "float64";
	p->exact = w->fused ? QL_GPU_TOLERANCE : QL_GPU_BITS;
	if (!ql_element_float(x.to) && !sums_fit(x, p))
		return false;
	w->down_a = x.a.step != 1;
	w->down_b = x.b.step != 1;
	if ((w->down_b || !w->down_a) && fetches(x.a, w->down_a, x.m, x.k) && fetches(x.b, w->down_b, x.n, x.k))
		w->how = w->down_a ? DOWN_BOTH : w->down_b ? DOWN_B : ALONG_K;
	blocks = size_of(x) == MEDIUM ? tiles_of(x, 64, 64) : tiles_of(x, 16, 64);
	most = size_of(x) == LARGE || !w->fused ? 1 : x.k / PART < PARTS ? x.k / PART : PARTS;
	wanted = blocks ? 2 * WANTED / blocks : 1;
	wanted = wanted > most ? most : wanted;
	w->part = wanted > 1 ? ((x.k + wanted - 1) / wanted + DEEP - 1) / DEEP * DEEP : x.k;
	w->parts = wanted > 1 ? (int32_t)((x.k + w->part - 1) / w->part) : 1;
	p->workspace = w->parts > 1 ? (uint64_t)(w->parts * x.batches * x.m * x.n) * sizeof(float) : 0;
	w->sums = w->parts > 1 ? call->workspace : NULL;
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct job w = {};

	return job_of(call, &w, p);
}

template <typename T, int M, int N, int R, int S, int HOW>
static cudaError_t launch(const struct ql_gpu_place *place, const job &w)
{
	return ql_launch(gemm<T, M, N, R, S, HOW>, ql_blocks(tiles_of(w.x, M, N) * w.parts, 1), dim3(THREADS),
		sizeof(tiles<T, M, N>), place->stream, w);
}

template <int HOW> static cudaError_t launch_sizes(const struct ql_gpu_place *place, const job &w)
{
	switch (size_of(w.x)) {
	case LARGE: return launch<float, 128, 128, 8, 8, HOW>(place, w);
	case MEDIUM: return launch<float, 64, 64, 4, 4, HOW>(place, w);
	default: return launch<float, 16, 64, 2, 2, HOW>(place, w);
	}
}

static cudaError_t launch_f32(const struct ql_gpu_place *place, const job &w)
{
	switch (w.how) {
	case ALONG_K: return launch_sizes<ALONG_K>(place, w);
	case DOWN_B: return launch_sizes<DOWN_B>(place, w);
	case DOWN_BOTH: return launch_sizes<DOWN_BOTH>(place, w);
	default: return launch_sizes<ANY>(place, w);
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct job w = {};
	cudaError_t error;

	if (!job_of(call, &w, &p))
		return cudaErrorInvalidValue;
	if (w.x.m * w.x.n * w.x.batches == 0)
		return cudaSuccess;
	if (w.x.to == QL_E_float64)
		return launch<double, 64, 64, 4, 4, ANY>(place, w);
	if (!ql_element_float(w.x.to))
		return launch<int64_t, 64, 64, 4, 4, ANY>(place, w);
	error = launch_f32(place, w);
	if (error || !w.sums)
		return error;
	return ql_launch_free(
		add_parts, ql_blocks(w.x.batches * w.x.m * w.x.n, THREADS), dim3(THREADS), place->stream, w);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_gemm_f32;
const struct ql_gpu_kernel ql_gpu_kernel_gemm_f32 = {"linear matmul", "gemm_f32", "simt", QL_GPU_BITS, 80, plan, run};
