/* SPDX-License-Identifier: MIT
 * The sums of a tile for gpu/kernels/conv_f32.cu: a tile of results stays in registers while the products go by in two stages
 * of shared memory, of which one is filled from registers that were loaded during the multiplication of the other; the
 * padding is 0 there.
 */
#ifndef QUOLL_GPU_KERNELS_CONV_TILES_H
#define QUOLL_GPU_KERNELS_CONV_TILES_H

#include "gpu/kernels/conv.h"
#include "gpu/kernels/conv_parts.h"
#include "gpu/kernels/scales.h"

#define THREADS 256
#define BOUNDS(M, N) THREADS, (M) * (N) > 64 * 128 ? 1 : 2 /* blocks of a multiprocessor, at least */
#define DEEP 16                                            /* products in a stage */

struct job {
	ql_conv_shape s;
	ql_scales scales; /* of a weight of codes */
	bool codes, per_line;
	bool fused; /* products with their additions */
	const void *bias;
	int32_t bias_type, act;
	/* of the weight's gradient: the gradient of y; columns of a group, pixels of all images, where parts begin */
	ql_images g;
	int64_t columns;
	ql_conv_parts parts;
	float *sums;     /* of each part: (groups, rows, columns), or the target; NULL: results are finished */
	int64_t results; /* of all groups */
	int64_t each;    /* products of a part of a result's sum; 0: all */
};

/* ---- stages ---- */

template <int M, int N> struct stage {
	float a[DEEP][M + 4], b[DEEP][N + 4];
};
template <int M, int N> struct tiles {
	union {
		stage<M, N> stages[2];
		float sum[M][N + 4]; /* afterwards */
	};
	ql_tap tap[2][DEEP]; /* of the products of a stage */
	ql_pixel pixel[N];   /* of the columns; WEIGHT: their channels and taps */
};

/* Elements of a stage on their way. */
template <int M, int N> struct on_the_way {
	float a[M / 16], b[N / 16];
};

QL_DEVICE float load(const ql_images &t, int64_t at)
{
	return ql_load_small(t.type, t.at, at);
}

QL_DEVICE float load_f32(const ql_images &t, int64_t at)
{
	return static_cast<const float *>(t.at)[at];
}

/* to[i] = from(i). All are loaded at once if `is_f32`, which from_f32 takes for granted; else one after the other, which is
 * a fraction of the code. */
template <int N, typename F32, typename ANY> QL_DEVICE void load_all(float to[N], bool is_f32, F32 from_f32, ANY from)
{
	if (is_f32) {
		QL_UNROLL
		for (int i = 0; i < N; i++)
			to[i] = from_f32(i);
		return;
	}
	QL_ROLLED
	for (int i = 0; i < N; i++) {
		float x = from(i);

		QL_UNROLL
		for (int j = 0; j < N; j++) /* registers have no index */
			to[j] = j == i ? x : to[j];
	}
}

/* A number of the weight, of the line `line` of all groups. */
QL_DEVICE float load_weight(const job &w, int64_t at, int64_t line)
{
	int64_t scale = w.per_line ? line : 0;

	if (!w.codes)
		return ql_load_small(w.s.weight.type, w.s.weight.at, at);
	return (float)(ql_load_code(w.s.weight.type, w.s.weight.at, at) - ql_zero_at(w.scales, scale)) *
	       ql_scale_at(w.scales, scale);
}

/* The lines i0 … of the weight and the columns of the tile, products k0 … k0 + DEEP - 1 below `end`. */
template <int M, int N>
QL_DEVICE void fetch(const tiles<M, N> &t, const job &w, const ql_tap *taps, int64_t group, int64_t i0, int64_t left,
	on_the_way<M, N> &to)
{
	const ql_conv_shape &s = w.s;
	int k = (int)threadIdx.x % DEEP, column = (int)threadIdx.x % N;
	const ql_pixel &p = t.pixel[column];
	int64_t from = p.from + group * s.channels * s.source.stride[1];

	auto weight = [&](int i, auto number) {
		int64_t line = i0 + (int)threadIdx.x / DEEP + i * 16;

		return line < s.rows && k < left
			       ? number(group * s.apart + line * s.line + taps[k].weight, group * s.rows + line)
			       : 0;
	};
	auto source = [&](int i, auto number) {
		int row = (int)threadIdx.x / N + i * (THREADS / N);
		const ql_tap &tap = taps[row];

		return row < left && p.to >= 0 && ql_is_inside(s, p.y + tap.y, p.x + tap.x) ? number(from + tap.source)
											    : 0;
	};

	load_all<M / 16>(
		to.a, !w.codes && s.weight.type == QL_E_float32,
		[&](int i) { return weight(i, [&](int64_t at, int64_t) { return load_f32(s.weight, at); }); },
		[&](int i) { return weight(i, [&](int64_t at, int64_t line) { return load_weight(w, at, line); }); });
	load_all<N / 16>(
		to.b, s.source.type == QL_E_float32,
		[&](int i) { return source(i, [&](int64_t at) { return load_f32(s.source, at); }); },
		[&](int i) { return source(i, [&](int64_t at) { return load(s.source, at); }); });
}

template <int M, int N> QL_DEVICE void put(stage<M, N> &to, const on_the_way<M, N> &from)
{
	int k = (int)threadIdx.x % DEEP, line = (int)threadIdx.x / DEEP, column = (int)threadIdx.x % N;

	QL_UNROLL
	for (int i = 0; i < M / 16; i++)
		to.a[k][line + i * 16] = from.a[i];
	QL_UNROLL
	for (int i = 0; i < N / 16; i++)
		to.b[(int)threadIdx.x / N + i * (THREADS / N)][column] = from.b[i];
}

/* The same for the weight's gradient: lines of g, and columns of unfolded x; a thread has one pixel. */
template <int M, int N>
QL_DEVICE void fetch_pixel(
	const tiles<M, N> &t, const job &w, int64_t group, int64_t i0, int64_t pixel, int64_t end, on_the_way<M, N> &to)
{
	const ql_conv_shape &s = w.s;
	int64_t line = pixel / s.w.out[1], x = pixel - line * s.w.out[1], n = line / s.w.out[0],
		y = line - n * s.w.out[0];
	int32_t h = (int32_t)(y * s.step[0]), c = (int32_t)(x * s.step[1]);
	int64_t g = ql_images_at(w.g, n, group * s.rows, y, x),
		from = ql_images_at(s.source, n, group * s.channels, h, c);
	bool in = pixel < end + QL_BUG(conv_part_end);

	auto gradient = [&](int i, auto number) {
		int64_t row = i0 + (int)threadIdx.x / DEEP + i * 16;

		return in && row < s.rows ? number(w.g, g + row * w.g.stride[1]) : 0;
	};
	auto source = [&](int i, auto number) {
		const ql_pixel &p = t.pixel[(int)threadIdx.x / DEEP + i * 16];

		return in && p.to >= 0 && ql_is_inside(s, h + p.y, c + p.x) ? number(s.source, from + p.from) : 0;
	};
	auto f32 = [](const ql_images &im, int64_t at) { return load_f32(im, at); };
	auto any = [](const ql_images &im, int64_t at) { return load(im, at); };

	load_all<M / 16>(
		to.a, w.g.type == QL_E_float32, [&](int i) { return gradient(i, f32); },
		[&](int i) { return gradient(i, any); });
	load_all<N / 16>(
		to.b, s.source.type == QL_E_float32, [&](int i) { return source(i, f32); },
		[&](int i) { return source(i, any); });
}

template <int M, int N> QL_DEVICE void put_pixel(stage<M, N> &to, const on_the_way<M, N> &from)
{
	int k = (int)threadIdx.x % DEEP, line = (int)threadIdx.x / DEEP;

	QL_UNROLL
	for (int i = 0; i < M / 16; i++)
		to.a[k][line + i * 16] = from.a[i];
	QL_UNROLL
	for (int i = 0; i < N / 16; i++)
		to.b[k][line + i * 16] = from.b[i];
}

/* ---- sums ---- */

/* Line or column i of the thread number t of 16: groups of up to four neighbours. */
template <int N> QL_DEVICE int mine(int t, int i)
{
	const int v = N / 16 > 4 ? 4 : N / 16;

	return i / v * (16 * v) + t * v + i % v;
}

template <bool FUSED> QL_DEVICE float plus_product(float sum, float a, float b)
{
	return FUSED ? __fmaf_rn(a, b, sum) : sum + a * b;
}

template <int M, int N, bool FUSED> QL_DEVICE void multiply_as(const stage<M, N> &from, float (*sum)[N / 16])
{
	int row = (int)threadIdx.x / 16, column = (int)threadIdx.x % 16;

	QL_ROLLED
	for (int k = 0; k < DEEP; k++) {
		float a[M / 16], b[N / 16];

		QL_UNROLL
		for (int i = 0; i < M / 16; i++)
			a[i] = from.a[k][mine<M>(row, i)];
		QL_UNROLL
		for (int j = 0; j < N / 16; j++)
			b[j] = from.b[k][mine<N>(column, j)];
		QL_UNROLL
		for (int i = 0; i < M / 16; i++) {
			QL_UNROLL
			for (int j = 0; j < N / 16; j++)
				sum[i][j] = plus_product<FUSED>(sum[i][j], a[i], b[j]);
		}
	}
}

/* Both in one kernel: a stage is long enough for a branch before it. */
template <int M, int N> QL_DEVICE void multiply(const stage<M, N> &from, bool fused, float (*sum)[N / 16])
{
	if (fused)
		multiply_as<M, N, true>(from, sum);
	else
		multiply_as<M, N, false>(from, sum);
}

template <int M, int N>
QL_DEVICE void list_taps(tiles<M, N> &t, const job &w, const ql_phase &phase, int64_t k0, int64_t k, int now)
{
	if ((int)threadIdx.x < DEEP && k0 + (int)threadIdx.x < k)
		t.tap[now][threadIdx.x] = ql_tap_of(w.s, phase, k0 + (int)threadIdx.x);
}

/* Over products begin .. end - 1, of a multiple of DEEP on. */
template <int M, int N>
QL_DEVICE void sums_of(tiles<M, N> &t, const job &w, const ql_phase &phase, int64_t group, int64_t i0, int64_t begin,
	int64_t end, float (*sum)[N / 16])
{
	on_the_way<M, N> next;
	int now = 0;

	list_taps(t, w, phase, begin, end, 0);
	__syncthreads(); /* the pixels are there, too */
	for (int64_t k0 = begin - DEEP; k0 < end; k0 += DEEP, now ^= 1) {
		fetch<M, N>(t, w, t.tap[now], group, i0, end - k0 - DEEP, next);
		if (k0 >= begin)
			multiply(t.stages[now ^ 1], w.fused, sum);
		put(t.stages[now], next);
		list_taps(t, w, phase, k0 + 2 * DEEP, end, now ^ 1);
		if (!QL_BUG(conv_barrier))
			__syncthreads();
	}
}

template <int M, int N>
QL_DEVICE void weight_sums(
	tiles<M, N> &t, const job &w, int64_t group, int64_t i0, int64_t begin, int64_t end, float (*sum)[N / 16])
{
	on_the_way<M, N> next;
	int now = 0;

	__syncthreads(); /* the columns are there */
	for (int64_t k0 = begin - DEEP; k0 < end; k0 += DEEP, now ^= 1) {
		fetch_pixel<M, N>(t, w, group, i0, k0 + DEEP + (int)threadIdx.x % DEEP, end, next);
		if (k0 >= begin)
			multiply(t.stages[now ^ 1], w.fused, sum);
		put_pixel(t.stages[now], next);
		__syncthreads();
	}
}

#endif
