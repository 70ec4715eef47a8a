/* SPDX-License-Identifier: MIT
 * What the kernels of recurrent layers share: the geometry of a call, tiles of the product of states and weights, the cells.
 *
 * A block computes ROWS sequences times UNITS hidden units of one step, all gates of a unit by the thread that then applies
 * the cell, so a step is one launch. Lines of both operands have k contiguous, in words: numbers, or four codes.
 * Ordered sums: a thread adds all products of an element, one rounded product after the other, in order of k. Otherwise
 * `S` threads each sum a part of k for S rows, by fused multiply-adds of floats, and their sums are added in order.
 */
#ifndef QUOLL_GPU_KERNELS_STEPS_H
#define QUOLL_GPU_KERNELS_STEPS_H

#include <float.h>

#include "gpu/kernels/act.h"
#include "gpu/kernels/inner.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/ptx.h"

#define ROWS 16
#define UNITS 16
#define THREADS 256
#define STAGE 32 /* words of k at a time */
#define PITCH (STAGE + 4)
#define QUADS (STAGE / 4)

/* ---- geometry (host) ---- */

enum cell { LSTM, GRU, TANH, RELU };

struct geometry {
	int cell, gates, width;                        /* width: saved values for each unit */
	bool two;                                      /* has a second state, c */
	bool split;                                    /* gradients of the sides of x and h differ */
	bool reverse;                                  /* steps go from the last to the first */
	int64_t batch, steps, hidden, rows, row, step; /* as struct ql_sequences of nn/recurrent_steps.h */
	int element;                                   /* of the computation */
};

/* x: (batch, steps, …), or (steps, batch, …) as the option batchfirst says; h: (batch, hidden) */
static inline struct geometry geometry_of(
	const struct ql_gpu_call *call, const struct ql_gpu_tensor *x, const struct ql_gpu_tensor *h)
{
	const struct ql_gpu_option *first = ql_option(call, "batchfirst"), *act = ql_option(call, "act");
	bool batch_first = !first || first->i;
	struct geometry g = {};

	g.two = !strncmp(call->op, "lstm", 4);
	g.split = !strncmp(call->op, "gru", 3);
	g.cell = g.two ? LSTM : g.split ? GRU : act && act->s && !strcmp(act->s, "relu") ? RELU : TANH;
	g.gates = g.two ? 4 : g.split ? 3 : 1;
	g.width = g.two ? 5 : g.split ? 4 : 1;
	g.reverse = ql_option_integer(call, "reverse", 0);
	g.batch = x->shape[batch_first ? 0 : 1];
	g.steps = x->shape[batch_first ? 1 : 0];
	g.hidden = h->shape[1];
	g.rows = g.batch * g.steps;
	g.row = batch_first ? g.steps : 1;
	g.step = batch_first ? 1 : g.batch;
	g.element = !x->codes && ql_element_of(x->dtype) == QL_E_float64 ? QL_E_float64 : QL_E_float32;
	return g;
}

__host__ __device__ static inline int64_t tiles_of(int64_t rows, int64_t units)
{
	return (rows + ROWS - 1) / ROWS * ((units + UNITS - 1) / UNITS);
}

/* ---- lines of words ---- */

/* Numbers. */
template <typename T> struct number_lines {
	const T *at;
	int64_t lines, pitch, k;
	bool wide; /* four at once */

	/* Words i to i + 3 of a line; 0 beyond its end, and in lines that there are not. */
	__device__ __forceinline__ void four(int64_t line, int64_t i, T to[4]) const
	{
		const T *from = at + line * pitch + i;

		QL_UNROLL
		for (int e = 0; e < 4; e++)
			to[e] = 0;
		if (line < 0 || line >= lines || i >= k)
			return;
		if (wide) {
			QL_UNROLL
			for (int e = 0; e < (int)sizeof(T) / 4; e++) {
				uint4 v = ql_load_16(reinterpret_cast<const char *>(from) + 16 * e);

				memcpy(reinterpret_cast<char *>(to) + 16 * e, &v, sizeof(v));
			}
			return;
		}
		QL_UNROLL
		for (int e = 0; e < 4; e++)
			if (i + e < k)
				to[e] = from[e];
	}
};

template <typename T> static inline number_lines<T> lines_of(const T *at, int64_t lines, int64_t pitch, int64_t k)
{
	return {at, lines, pitch, k, k % 4 == 0 && ((uintptr_t)at | (uintptr_t)(pitch * (int64_t)sizeof(T))) % 16 == 0};
}

/* int8 codes, n of a line. */
struct code_lines {
	const int8_t *at;
	int64_t lines, pitch, n;
	bool wide;

	__device__ __forceinline__ void four(int64_t line, int64_t i, int32_t to[4]) const
	{
		const int8_t *from = at + line * pitch + 4 * i;

		QL_UNROLL
		for (int e = 0; e < 4; e++)
			to[e] = 0;
		if (line < 0 || line >= lines || 4 * i >= n)
			return;
		if (wide) {
			uint4 v = ql_load_16(from);

			memcpy(to, &v, sizeof(v));
			return;
		}
		QL_UNROLL
		for (int e = 0; e < 16; e++)
			if (4 * i + e < n)
				to[e / 4] |= (int32_t)((uint32_t)(uint8_t)from[e] << e % 4 * 8);
	}
};

/* The same of states h (batch, n): float32 by the scale of their row in the tile. */
struct state_lines {
	number_lines<float> h;
	int64_t first; /* row of the tile */
	const float *scale;

	__device__ __forceinline__ void four(int64_t line, int64_t i, int32_t to[4]) const
	{
		QL_UNROLL
		for (int w = 0; w < 4; w++) {
			float x[4];

			to[w] = 0;
			h.four(line, 4 * (i + w), x);
			QL_UNROLL
			for (int e = 0; e < 4; e++) {
				float v = rintf(x[e] / scale[line - first]);

				v = v == v ? v : 0;
				v = v < -127 ? -127 : v > 127 ? 127 : v;
				to[w] |= (int32_t)((uint32_t)((int32_t)v & 255) << 8 * e);
			}
		}
	}
};

/* ---- tiles ---- */

template <typename W> struct alignas(16) four_words {
	W of[4];
};

template <typename W, int G, int S> struct tile_memory {
	union {
		struct {
			four_words<W> a[ROWS][PITCH / 4], b[G * UNITS][PITCH / 4];
		} stage;
		W sums[S][ROWS][G][UNITS];
	};
	float scale[ROWS]; /* of rows of codes */
};

template <bool ORDERED> QL_DEVICE float add_product(float sum, float a, float b)
{
	return ORDERED ? sum + a * b : fmaf(a, b, sum);
}
template <bool ORDERED> QL_DEVICE double add_product(double sum, double a, double b)
{
	return sum + a * b;
}
template <bool ORDERED> QL_DEVICE int32_t add_product(int32_t sum, int32_t a, int32_t b)
{
	return ql_dp4a<false, false>((uint32_t)a, (uint32_t)b, sum);
}

/* Where a thread works: unit u of the tile, rows from `row` on, part s of k. */
struct position {
	int u, row, s;
};
template <int S> QL_DEVICE position position_of()
{
	int rest = (int)threadIdx.x / UNITS;

	return {(int)threadIdx.x % UNITS, rest % (ROWS / S) * S, rest / (ROWS / S)};
}

/* Words `k` on of the tile, on the way to shared memory. */
template <typename W, int G> struct staged {
	four_words<W> a, b[(G + 1) / 2];
};

template <typename W, int G, typename A, typename B>
QL_DEVICE void fetch(staged<W, G> &r, const A &a, const B &b, int64_t row, int64_t unit, int64_t units, int64_t k)
{
	int64_t i = threadIdx.x % QUADS * 4;

	if (threadIdx.x < ROWS * QUADS)
		a.four(row + threadIdx.x / QUADS, k + i, r.a.of);
	QL_UNROLL
	for (int l = 0; l < (G + 1) / 2; l++) {
		int line = (int)(threadIdx.x + l * THREADS) / QUADS;
		int64_t u = unit + line % UNITS;

		if (line < G * UNITS)
			b.four(u < units ? line / UNITS * units + u : -1, k + i, r.b[l].of);
	}
}

template <typename W, int G, int S> QL_DEVICE void stage(tile_memory<W, G, S> &t, const staged<W, G> &r)
{
	if (threadIdx.x < ROWS * QUADS)
		t.stage.a[threadIdx.x / QUADS][threadIdx.x % QUADS] = r.a;
	QL_UNROLL
	for (int l = 0; l < (G + 1) / 2; l++) {
		int line = (int)(threadIdx.x + l * THREADS) / QUADS;

		if (line < G * UNITS)
			t.stage.b[line][threadIdx.x % QUADS] = r.b[l];
	}
}

template <bool ORDERED, typename W, int G, int S>
QL_DEVICE void multiply(const tile_memory<W, G, S> &t, const position &p, W part[S][G])
{
	QL_UNROLL
	for (int q = 0; q < QUADS / S; q++) {
		int quad = q * S + p.s;
		four_words<W> w[G];

		QL_UNROLL
		for (int g = 0; g < G; g++)
			w[g] = t.stage.b[g * UNITS + p.u][quad];
		QL_UNROLL
		for (int r = 0; r < S; r++) {
			four_words<W> x = t.stage.a[p.row + r][quad];

			QL_UNROLL
			for (int e = 0; e < 4; e++)
				QL_UNROLL
			for (int g = 0; g < G; g++)
				part[r][g] = add_product<ORDERED>(part[r][g], x.of[e], w[g].of[e]);
		}
	}
}

/* Adds the parts of k; afterwards thread i has the sums of row i / UNITS. */
template <typename W, int G, int S>
QL_DEVICE void join_parts(tile_memory<W, G, S> &t, const position &p, const W part[S][G], W sum[G])
{
	__syncthreads();
	QL_UNROLL
	for (int r = 0; r < S; r++)
		QL_UNROLL
	for (int g = 0; g < G; g++)
		t.sums[p.s][p.row + r][g][p.u] = part[r][g];
	if (!QL_BUG(recurrent_join))
		__syncthreads();
	QL_UNROLL
	for (int g = 0; g < G; g++) {
		sum[g] = t.sums[0][threadIdx.x / UNITS][g][p.u];
		QL_UNROLL
		for (int s = 1; s < S; s++)
			sum[g] += t.sums[s][threadIdx.x / UNITS][g][p.u];
	}
}

/* The sums of row `row` + i / UNITS of a and unit `unit` + i % UNITS for thread i: of each gate g the product with line
 * g units + unit of b. k in words. */
template <bool ORDERED, typename W, int G, int S, typename A, typename B>
QL_DEVICE void tile_product(
	tile_memory<W, G, S> &t, const A &a, const B &b, int64_t row, int64_t unit, int64_t units, int64_t k, W sum[G])
{
	position p = position_of<S>();
	staged<W, G> next;
	W part[S][G];

	QL_UNROLL
	for (int r = 0; r < S; r++)
		QL_UNROLL
	for (int g = 0; g < G; g++)
		part[r][g] = 0;
	if (k > 0)
		fetch<W, G>(next, a, b, row, unit, units, 0);
	for (int64_t at = 0; at < k; at += STAGE) {
		if (!QL_BUG(recurrent_barrier))
			__syncthreads(); /* all have read the last stage */
		stage<W, G, S>(t, next);
		__syncthreads();
		if (at + STAGE < k)
			fetch<W, G>(next, a, b, row, unit, units, at + STAGE);
		multiply<ORDERED, W, G, S>(t, p, part);
	}
	if constexpr (S > 1)
		join_parts<W, G, S>(t, p, part, sum);
	else
		memcpy(sum, part, sizeof(part));
}

/* ---- functions of numbers ---- */

QL_DEVICE float squash(float x)
{
	return ql_sigmoid(x);
}
QL_DEVICE double squash(double x)
{
	return 1 / (1 + exp(-x));
}
QL_DEVICE float tangent(float x)
{
	return ql_tanh(x);
}
QL_DEVICE double tangent(double x)
{
	return tanh(x);
}

#endif
