/* SPDX-License-Identifier: MIT
 * Lines of n elements by teams of W warps: loading, and sums in the order of tensor/loops/lanes.h, so with its bits. A run is
 * 256 elements, of which lane l has the elements l + 32 s, s < 8; the runs go to the warps in turn. R > 0: the line is at most
 * W R runs, which stay in registers; R = 0: it has any length, and each pass of several warps reads it again.
 *   ql_line_pass<W, R>(n, [&](int64_t run) { x.fetch(run, n); }, [&](int64_t i, int j, int s) { … x.get(j, s) … });
 * calls the second function for each element i of this thread; the first one comes before each run, a third one behind it.
 */
#ifndef QUOLL_GPU_KERNELS_LINE_H
#define QUOLL_GPU_KERNELS_LINE_H

#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"

#define QL_LINE_RUN 256
#define QL_LINE_PART 256                 /* runs after which ql_sum_f32 joins its lanes */
#define QL_LINE_PIECE 4                  /* those of ql_row_logsum */
#define QL_LINE_WHOLE ((int64_t)1 << 40) /* none: once, at the end */
#define QL_LINE_CHUNK 32                 /* runs between two barriers of a team */
#define QL_LINE_EACH (QL_LINE_RUN / 32)  /* elements of a lane in a run */
#define QL_LINE_SLOTS(R) ((R) ? (R)*QL_LINE_EACH : QL_LINE_EACH)
#define QL_LINE_ALL 0xffffffffu

/* What the warps of a team show each other; a team of one warp needs none. N sums at a time. */
template <typename T, int N> struct ql_line_room {
	T run[N][QL_LINE_CHUNK][32];
	T most[32];
};

/* Where a line is; `at` NULL: all its elements are `otherwise`. */
struct ql_line_at {
	const void *at;
	int64_t stride;
	int32_t element;
	float otherwise;
};

QL_DEVICE int ql_line_lane()
{
	return (int)threadIdx.x & 31;
}
template <int W> QL_DEVICE int ql_line_warp()
{
	return W == 1 ? 0 : (int)threadIdx.x / 32;
}
/* Element s of this lane in a run. */
QL_DEVICE int64_t ql_line_element(int64_t run, int s)
{
	return run * QL_LINE_RUN + s * 32 + ql_line_lane();
}

/* The element types that these functions take. */
static inline bool ql_line_type(int element)
{
	return element == QL_E_float32 || element == QL_E_float16 || element == QL_E_bfloat16;
}

QL_DEVICE float ql_line_load(int element, const void *at, int64_t i)
{
	uint16_t half;

	if (element == QL_E_float32)
		return static_cast<const float *>(at)[i];
	half = static_cast<const uint16_t *>(at)[i];
	return element == QL_E_float16 ? ql_from_f16(half) : ql_from_bf16(half);
}

/* The loads of a run, of one width each, so that they are all under way together. */
QL_DEVICE void ql_line_run_32(const ql_line_at &line, int64_t run, int64_t n, float x[QL_LINE_EACH])
{
	QL_UNROLL
	for (int s = 0; s < QL_LINE_EACH; s++) {
		int64_t i = ql_line_element(run, s);

		x[s] = i < n ? static_cast<const float *>(line.at)[i * line.stride] : 0;
	}
}
QL_DEVICE void ql_line_run_16(const ql_line_at &line, int64_t run, int64_t n, float x[QL_LINE_EACH])
{
	uint16_t half[QL_LINE_EACH];

	QL_UNROLL
	for (int s = 0; s < QL_LINE_EACH; s++) {
		int64_t i = ql_line_element(run, s);

		half[s] = i < n ? static_cast<const uint16_t *>(line.at)[i * line.stride] : 0;
	}
	QL_UNROLL
	for (int s = 0; s < QL_LINE_EACH; s++)
		x[s] = line.element == QL_E_float16 ? ql_from_f16(half[s]) : ql_from_bf16(half[s]);
}
QL_DEVICE void ql_line_run(const ql_line_at &line, int64_t run, int64_t n, float x[QL_LINE_EACH])
{
	if (!line.at) {
		QL_UNROLL
		for (int s = 0; s < QL_LINE_EACH; s++)
			x[s] = line.otherwise;
	} else if (line.element == QL_E_float32) {
		ql_line_run_32(line, run, n, x);
	} else {
		ql_line_run_16(line, run, n, x);
	}
}

/* Stores a run. */
QL_DEVICE void ql_line_put(const ql_line_at &line, int64_t run, int64_t n, const float x[QL_LINE_EACH])
{
	void *at = const_cast<void *>(line.at);

	QL_UNROLL
	for (int s = 0; s < QL_LINE_EACH; s++) {
		int64_t i = ql_line_element(run, s);

		if (i >= n)
			continue;
		if (line.element == QL_E_float32)
			static_cast<float *>(at)[i * line.stride] = x[s];
		else
			static_cast<uint16_t *>(at)[i * line.stride] =
				line.element == QL_E_float16 ? ql_to_f16(x[s]) : ql_to_bf16(x[s]);
	}
}

/* The elements of this thread: all of them (R > 0), or those of the run that was fetched. */
template <int R> struct ql_line {
	float x[QL_LINE_SLOTS(R)];
	ql_line_at line;

	__device__ __forceinline__ float &get(int j, int s)
	{
		return x[(R ? j : 0) * QL_LINE_EACH + s];
	}
	__device__ __forceinline__ void fetch(int64_t run, int64_t n)
	{
		if (R == 0)
			ql_line_run(line, run, n, x);
	}
	template <int W> __device__ __forceinline__ void start(const ql_line_at &from, int64_t n)
	{
		line = from;
		QL_UNROLL
		for (int j = 0; j < R; j++)
			ql_line_run(line, ql_line_warp<W>() + (int64_t)j * W, n, x + j * QL_LINE_EACH);
	}
};

template <int W, int R, typename FETCH, typename STEP, typename DONE>
QL_DEVICE void ql_line_pass(int64_t n, FETCH fetch, STEP step, DONE done)
{
	int64_t runs = (n + QL_LINE_RUN - 1) / QL_LINE_RUN;
	auto one = [&](int64_t run, int j) {
		fetch(run);
		QL_UNROLL
		for (int s = 0; s < QL_LINE_EACH; s++)
			if (ql_line_element(run, s) < n)
				step(ql_line_element(run, s), j, s);
		done(run);
	};

	QL_UNROLL
	for (int j = 0; j < R; j++) {
		int64_t run = ql_line_warp<W>() + (int64_t)j * W;

		if (run < runs)
			one(run, j);
	}
	for (int64_t run = ql_line_warp<W>(); R == 0 && run < runs; run += W)
		one(run, 0);
}
template <int W, int R, typename FETCH, typename STEP> QL_DEVICE void ql_line_pass(int64_t n, FETCH fetch, STEP step)
{
	ql_line_pass<W, R>(n, fetch, step, [](int64_t) {});
}

/* ---- joining ---- */

/* Four chains of every fourth lane, as ql_join_lanes. */
QL_DEVICE double ql_line_join(double x)
{
	double s = 0;

	for (int i = 0; i < 8; i++)
		s += __shfl_sync(QL_LINE_ALL, x, (ql_line_lane() & 3) + 4 * i);
	return (__shfl_sync(QL_LINE_ALL, s, 0) + __shfl_sync(QL_LINE_ALL, s, 1)) +
	       (__shfl_sync(QL_LINE_ALL, s, 2) + __shfl_sync(QL_LINE_ALL, s, 3));
}

/* The largest x of the team, ignoring NaN; all threads get it. */
template <int W, typename T, typename ROOM> QL_DEVICE T ql_line_largest(ROOM &room, T x)
{
	for (int d = 16; d; d >>= 1) {
		T other = __shfl_xor_sync(QL_LINE_ALL, x, d);

		x = other > x ? other : x;
	}
	if (W == 1)
		return x;
	if (ql_line_lane() == 0)
		room.most[ql_line_warp<W>()] = x;
	__syncthreads();
	for (int w = 0; w < W; w++)
		x = room.most[w] > x ? room.most[w] : x;
	__syncthreads();
	return x;
}

/* Adds the sums that the lanes have of one run after the other to `wide`, in order of the runs. A team meets here after
 * each chunk of runs, each warp with those of its own. */
template <int W, int N, typename T> struct ql_line_sums {
	ql_line_room<T, N> &room;
	double wide[N], total[N];
	int64_t part;

	__device__ __forceinline__ ql_line_sums(ql_line_room<T, N> &r, int64_t p) : room(r), part(p)
	{
		QL_UNROLL
		for (int k = 0; k < N; k++)
			wide[k] = total[k] = 0;
	}
	__device__ __forceinline__ void widen(const T lane[N])
	{
		QL_UNROLL
		for (int k = 0; k < N; k++)
			wide[k] += (double)lane[k];
	}
	__device__ __forceinline__ void join()
	{
		QL_UNROLL
		for (int k = 0; k < N; k++) {
			total[k] += ql_line_join(wide[k]);
			wide[k] = 0;
		}
	}
	/* The runs first … first + QL_LINE_CHUNK - 1, whose sums are in the room. */
	__device__ __forceinline__ void widen_chunk(int64_t first, int64_t runs)
	{
		int64_t end = first + QL_LINE_CHUNK < runs ? first + QL_LINE_CHUNK : runs, next;

		__syncthreads();
		for (int64_t begin = first; begin < end; begin = next) {
			next = begin + part < end ? begin + part : end;
			QL_UNROLL_FEW
			for (int i = (int)(begin - first); i < (int)(next - first); i++) {
				QL_UNROLL
				for (int k = 0; k < N; k++)
					wide[k] += (double)room.run[k][i][ql_line_lane()];
			}
			if (next % part == 0)
				join();
		}
		if (!QL_BUG(line_reuse))
			__syncthreads();
	}
	__device__ __forceinline__ void put(int64_t run, const T lane[N])
	{
		QL_UNROLL
		for (int k = 0; k < N; k++)
			room.run[k][run % QL_LINE_CHUNK][ql_line_lane()] = lane[k];
	}
};

/* N sums over the line in the computed type, T, per lane and run, then in double: step(i, j, s, lane) adds to lane[N]. All
 * threads get them. The lanes are joined after `part` runs, a power of two. */
template <int W, int R, int N, typename T, typename FETCH, typename STEP>
QL_DEVICE void ql_line_sum(ql_line_room<T, N> &room, int64_t n, int64_t part, FETCH fetch, STEP step, double sum[N])
{
	int64_t runs = (n + QL_LINE_RUN - 1) / QL_LINE_RUN;
	ql_line_sums<W, N, T> sums(room, part);
	auto one = [&](int64_t run, int j) {
		T lane[N];

		QL_UNROLL
		for (int k = 0; k < N; k++)
			lane[k] = 0;
		fetch(run);
		QL_UNROLL
		for (int s = 0; s < QL_LINE_EACH; s++)
			if (ql_line_element(run, s) < n)
				step(ql_line_element(run, s), j, s, lane);
		if (W == 1)
			sums.widen(lane);
		else
			sums.put(run, lane);
	};

	QL_UNROLL
	for (int j = 0; j < R; j++) {
		int64_t run = ql_line_warp<W>() + (int64_t)j * W;

		if (run < runs)
			one(run, j);
	}
	if (R && W > 1)
		sums.widen_chunk(0, runs);
	for (int64_t first = 0; R == 0 && first < runs; first += QL_LINE_CHUNK) {
		for (int64_t run = first + ql_line_warp<W>(); run < runs && run < first + QL_LINE_CHUNK; run += W)
			one(run, 0);
		sums.widen_chunk(first, runs);
	}
	if (W == 1 || runs % part)
		sums.join();
	QL_UNROLL
	for (int k = 0; k < N; k++)
		sum[k] = sums.total[k];
}

/* ---- launching ---- */

/* CALL(W, R) for a line of n elements. */
#define QL_LINE_DISPATCH(n, CALL) \
	((n) <= QL_LINE_RUN               ? CALL(1, 1) \
		: (n) <= 4 * QL_LINE_RUN  ? CALL(1, 4) \
		: (n) <= 16 * QL_LINE_RUN ? CALL(8, 2) \
					  : CALL(8, 0))
#define QL_LINE_THREADS 256
#define QL_LINE_BOUNDS 256, 2 /* threads, and blocks of a processor: 128 registers */

/* The line of this team among all, and the number of teams. */
template <int W> QL_DEVICE int64_t ql_line_first()
{
	return W == 1 ? (int64_t)blockIdx.x * (QL_LINE_THREADS / 32) + threadIdx.x / 32 : blockIdx.x;
}
template <int W> QL_DEVICE int64_t ql_line_teams()
{
	return W == 1 ? (int64_t)gridDim.x * (QL_LINE_THREADS / 32) : gridDim.x;
}
static inline dim3 ql_line_blocks(int64_t lines, int W)
{
	return ql_blocks(lines, W == 1 ? QL_LINE_THREADS / 32 : 1);
}

#endif
