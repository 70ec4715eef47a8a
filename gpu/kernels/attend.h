/* SPDX-License-Identifier: MIT
 * What the kernels of attention share. A warp has ROWS rows (queries, or keys for their gradients) and 32 others (keys, or queries)
 * at a time, one for each lane; both are in shared memory, converted to float32. A product of a row and a lane is a sum over
 * d; sums over the lanes of a tile go to columns, 32 apart, in registers.
 *
 * The ordered form repeats nn/attention_f32.c with products of tensor/kernels/gemm_f32_ref.c: each product is rounded and
 * added in order of d, keys or queries, so the bits are those of the CPU. The other form fuses products with additions.
 */
#ifndef QUOLL_GPU_KERNELS_ATTEND_H
#define QUOLL_GPU_KERNELS_ATTEND_H

#include "gpu/kernels/act.h"
#include "gpu/kernels/attend_call.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define ROWS 4              /* of a warp */
#define BAND (WARPS * ROWS) /* rows of a block */
#define TILE 32             /* lanes */
#define ALL 0xffffffffu
#define SCALED 24 /* QL_EXP_SCALE of tensor/loops/exponentials.h */

/* ---- shared memory ---- */

/* Lines of a tile are padded with zeros to N * 32 columns. */
template <int N> constexpr int PITCH = 32 * N + 1;

QL_NUMBER float load(const operand &h, int64_t base, int64_t row, int64_t column)
{
	return ql_load_small(h.type, h.at, base + row * h.row + column * h.column);
}

/* Rows first .. first + BAND - 1 of n numbers times `by`, four next to each other; zeros from `rows` on. */
QL_DEVICE void stage_band(float *to, const operand &h, int64_t base, int64_t first, int64_t rows, int n, float by)
{
	for (int i = (int)threadIdx.x; i < BAND * n; i += THREADS) {
		int row = i / n, l = i % n;

		to[(row / ROWS * n + l) * ROWS + row % ROWS] =
			first + row < rows ? load(h, base, first + row, l) * by : 0;
	}
}

template <int N>
QL_DEVICE void stage_tile(float *to, const operand &h, int64_t base, int64_t first, int64_t rows, int n)
{
	for (int i = (int)threadIdx.x; i < TILE * 32 * N; i += THREADS) {
		int row = i / (32 * N), l = i % (32 * N);

		to[row * PITCH<N> + l] = first + row < rows && l < n ? load(h, base, first + row, l) : 0;
	}
}

/* ---- products ---- */

template <bool ORDERED> QL_DEVICE float step(float sum, float a, float b)
{
	return ORDERED ? sum + a * b : fmaf(a, b, sum);
}

/* s[r] = row r (of the warp's part of a band) times the lane's line, which is multiplied by `by` first */
template <bool ORDERED, bool SCALE>
QL_DEVICE void dots(float s[ROWS], const float *rows, const float *line, int n, float by)
{
	s[0] = s[1] = s[2] = s[3] = 0;
	for (int l = 0; l < n; l++) {
		float4 x = *reinterpret_cast<const float4 *>(rows + l * ROWS);
		float y = SCALE ? line[l] * by : line[l];

		s[0] = step<ORDERED>(s[0], x.x, y);
		s[1] = step<ORDERED>(s[1], x.y, y);
		s[2] = step<ORDERED>(s[2], x.z, y);
		s[3] = step<ORDERED>(s[3], x.w, y);
	}
}

/* Gives the warp's numbers of each lane and row to all its lanes. */
QL_DEVICE void share(float *to, const float p[ROWS])
{
	reinterpret_cast<float4 *>(to)[threadIdx.x & 31] = float4{p[0], p[1], p[2], p[3]};
}

/* o[r][j] += sum over the lines of a tile, in order, of p[line][r] tile[line][32 j + lane]. Ordered: without lines that row r
 * is not multiplied with, whose bit of `with` is not set. */
template <bool ORDERED, int N>
QL_DEVICE void weigh(float o[ROWS][N], const float *p, const float *tile, const unsigned with[ROWS])
{
	for (int i = 0; i < TILE; i++) {
		float4 w = reinterpret_cast<const float4 *>(p)[i];

		QL_UNROLL
		for (int j = 0; j < N; j++) {
			float x = tile[i * PITCH<N> + 32 * j + (threadIdx.x & 31)];

			o[0][j] = !ORDERED || with[0] >> i & 1 ? step<ORDERED>(o[0][j], w.x, x) : o[0][j];
			o[1][j] = !ORDERED || with[1] >> i & 1 ? step<ORDERED>(o[1][j], w.y, x) : o[1][j];
			o[2][j] = !ORDERED || with[2] >> i & 1 ? step<ORDERED>(o[2][j], w.z, x) : o[2][j];
			o[3][j] = !ORDERED || with[3] >> i & 1 ? step<ORDERED>(o[3][j], w.w, x) : o[3][j];
		}
	}
}

template <int N> QL_DEVICE void clear(float o[ROWS][N])
{
	QL_UNROLL
	for (int r = 0; r < ROWS; r++)
		QL_UNROLL
	for (int j = 0; j < N; j++)
		o[r][j] = 0;
}

/* Row r of o times `by`, n columns. */
template <int N>
QL_DEVICE void store_row(const operand &h, int64_t base, int64_t row, int n, const float o[N], float by)
{
	if (h.type == QL_E_float32) {
		QL_UNROLL
		for (int j = 0; j < N; j++) {
			int c = 32 * j + (int)(threadIdx.x & 31);

			if (c < n)
				static_cast<float *>(h.at)[base + row * h.row + c * h.column] = o[j] * by;
		}
		return;
	}
	QL_ROLLED
	for (int j = 0; j < N; j++) {
		int c = 32 * j + (int)(threadIdx.x & 31);
		float x = o[0];

		QL_UNROLL
		for (int k = 1; k < N; k++) /* registers have no index */
			x = k == j ? o[k] : x;
		if (c < n)
			ql_store_small(h.type, h.at, base + row * h.row + c * h.column, x * by);
	}
}

/* ---- exponentials ---- */

/* exp(a - m) 2^SCALED, the formula EXP_BELOW of tensor/loops/exponentials.c */
QL_DEVICE float exp_below(float a, float m)
{
	float d = a - m, b = d - a, e = (a - (d - b)) - (m + b), r;
	uint32_t biased;

	e = d < -104 ? 0 : e;
	d = d < -104 ? -104 : d;
	r = ql_exp_reduce(d, &biased) + e;
	return (ql_exp_near(r) + 1) * ql_of_bits((biased - 256 + SCALED + 127) << 23);
}

QL_DEVICE float warp_largest(float m)
{
	for (int d = 16; d; d >>= 1) {
		float other = __shfl_xor_sync(ALL, m, d);

		m = other > m ? other : m;
	}
	return m;
}

QL_DEVICE float warp_sum(float x)
{
	for (int d = 16; d; d >>= 1)
		x += __shfl_xor_sync(ALL, x, d);
	return x;
}

/* Of double lanes: four chains of every fourth one, as ql_join_lanes. */
QL_DEVICE double join_lanes(double x)
{
	int lane = (int)threadIdx.x & 31;
	double s = 0;

	for (int i = 0; i < 8; i++)
		s += __shfl_sync(ALL, x, (lane & 3) + 4 * i);
	return (__shfl_sync(ALL, s, 0) + __shfl_sync(ALL, s, 1)) + (__shfl_sync(ALL, s, 2) + __shfl_sync(ALL, s, 3));
}

/* Of float lanes, one after the other. */
QL_DEVICE float add_lanes(float x)
{
	double s = 0;

	for (int i = 0; i < 32; i++)
		s += (double)__shfl_sync(ALL, x, i);
	return (float)s;
}

/* P of a score under a largest one; `live`: it is seen. Ordered: what is not seen is 0 times by, as on the CPU. */
template <bool ORDERED> QL_DEVICE float probability(bool live, float x, float largest, float by)
{
	return ORDERED || live ? (live ? exp_below(x, largest) : 0) * by : 0;
}

/* The sum of a row as ql_sum_f32 orders it, a lane's element of each tile after the other. */
struct row_sum {
	float run;
	double wide, total;
};
QL_DEVICE void sum_add(row_sum &s, float x, int64_t tile)
{
	s.run += x;
	if ((tile & 7) == 7) {
		s.wide += (double)s.run;
		s.run = 0;
	}
	if ((tile & 2047) == 2047) {
		s.total += join_lanes(s.wide);
		s.wide = 0;
	}
}
QL_DEVICE double sum_end(const row_sum &s)
{
	return s.total + join_lanes(s.wide + (double)s.run);
}

/* ---- the call, on the host ---- */

/* Columns of a lane, as a power of two. */
static inline int strips_of(const attended &a)
{
	int most = a.d > a.e ? a.d : a.e, n = 1;

	while (n * 32 < most)
		n *= 2;
	return n;
}

#endif
