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

#include "gpu/kernels/launch.h"
#include "gpu/kernels/act.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define ROWS 4              /* of a warp */
#define BAND (WARPS * ROWS) /* rows of a block */
#define TILE 32             /* lanes */
#define ALL 0xffffffffu
#define WIDEST 256 /* numbers of a head */
#define SCALED 24  /* QL_EXP_SCALE of tensor/loops/exponentials.h */

/* (batches, heads, rows, d or e) */
struct operand {
	void *at;
	int64_t batch, head, row, column; /* strides */
	int32_t type;
};

struct attended {
	operand q, k, v, o;         /* o: the result */
	operand g, dq, dk, dv;      /* backward: the gradient of o, and the results */
	float *largest, *by, *less; /* backward, of each query: the largest score, 1 / sum, sum of P dP */
	int64_t batches, queries, keys;
	int32_t heads, shared, d, e, block; /* block: queries of a block of nn/attention_f32.c */
	float scale;
	bool causal;
};

/* Keys that query i attends to. */
QL_NUMBER int64_t seen_by(const attended &a, int64_t i)
{
	i = i < a.queries ? i : a.queries - 1;
	return a.causal ? i + 1 + a.keys - a.queries : a.keys;
}

/* Keys with which query i is multiplied: the others of its block attend to them. */
QL_NUMBER int64_t columns_of(const attended &a, int64_t i)
{
	return a.causal ? seen_by(a, i / a.block * a.block + a.block - 1) : a.keys;
}

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
	QL_UNROLL
	for (int j = 0; j < N; j++) {
		int c = 32 * j + (int)(threadIdx.x & 31);

		if (c < n)
			ql_store_small(h.type, h.at, base + row * h.row + c * h.column, o[j] * by);
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

static inline operand heads_of(const struct ql_gpu_tensor *t, int64_t width)
{
	operand h = {};

	h.at = t->at;
	h.type = ql_element_of(t->dtype);
	h.batch = t->stride[0];
	h.column = t->stride[t->rank - 1];
	h.head = t->rank == 4 ? t->stride[1] : width * h.column;
	h.row = t->stride[t->rank - 2];
	return h;
}

/* Sizes of q, k and v, which the core has checked. */
static inline attended attended_of(const struct ql_gpu_call *call, const struct ql_gpu_tensor *in)
{
	const struct ql_gpu_tensor *q = &in[0], *k = &in[1], *v = &in[2];
	bool split = q->rank == 4;
	int64_t block;
	attended a = {};

	a.batches = q->shape[0];
	a.heads = (int32_t)(split ? q->shape[1] : ql_option_integer(call, "heads", 1));
	a.queries = q->shape[q->rank - 2];
	a.keys = k->shape[k->rank - 2];
	a.d = (int32_t)(split ? q->shape[3] : q->shape[2] / a.heads);
	a.shared = (int32_t)(split ? k->shape[1] : k->shape[2] / a.d);
	a.e = (int32_t)(split ? v->shape[3] : v->shape[2] / a.shared);
	a.causal = ql_option_integer(call, "causal", 0);
	a.scale = (float)ql_option_number(call, "scale", 1 / sqrt((double)a.d));
	block = a.keys ? 262144 / a.keys : 48; /* as in nn/attention_f32.c */
	a.block = (int32_t)(block > 48 ? 48 : block < 6 ? 6 : block);
	a.q = heads_of(q, a.d);
	a.k = heads_of(k, a.d);
	a.v = heads_of(v, a.e);
	return a;
}

/* True if the kernels take q, k and v, which are at `in`, and the other operands. */
static inline bool attended_fit(const struct ql_gpu_call *call, const struct ql_gpu_tensor *in, struct ql_gpu_plan *p)
{
	attended a;

	for (int i = 0; i < call->n_in + call->n_out; i++) {
		const struct ql_gpu_tensor *t = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
		int type = ql_element_of(t->dtype);

		if (t->codes) /* attention_codes has said why not */
			return p->why[0] ? false : ql_refuse(p, "attention of codes");
		if (t->flags & QL_GPU_NUMBER || !ql_element_float(type) || type == QL_E_float64)
			return ql_refuse(p, "wanted floats of at most 32 bits on the device");
		if (i >= call->n_in && !ql_dense(t))
			return ql_refuse(p, "the result is a view");
	}
	a = attended_of(call, in);
	if (a.d > WIDEST || a.e > WIDEST)
		return ql_refuse(p, "heads of more than 256 numbers");
	p->path = "float32";
	p->exact = call->flags & QL_GPU_ORDERED ? QL_GPU_BITS : QL_GPU_TOLERANCE;
	return true;
}

/* Columns of a lane, as a power of two. */
static inline int strips_of(const attended &a)
{
	int most = a.d > a.e ? a.d : a.e, n = 1;

	while (n * 32 < most)
		n *= 2;
	return n;
}

#endif
