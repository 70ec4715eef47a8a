/* SPDX-License-Identifier: MIT
 * attention of 8-bit codes with a result of a given scale, by the formulas of quant/paths/attention_int.c: sums of codes, integer
 * exponentials (quant/integer/exp_int.h) and their sums are exact, and one multiplication in float32 gives the code. So any
 * order has the bits of the CPU.
 */
#include "gpu/kernels/attend_sizes.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/scales.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define ROWS 4              /* queries of a warp */
#define BAND (WARPS * ROWS) /* of a block */
#define TILE 32             /* keys: one for each lane */
#define ALL 0xffffffffu
#define WIDEST 256 /* numbers of a head */
#define MOST 65536 /* keys, as there */
#define ONE (1 << 24)
#define STEPS 257 /* entries of the table of powers */

struct side {
	const void *at;
	int64_t batch, head, row, column; /* strides */
	int32_t type;
	ql_scales scales; /* one of each */
};

struct attended : attended_sizes {
	side q, k, v;
	void *out;
	int64_t batch, head, row, column; /* strides of the result */
	int32_t to;
	double scale;
	ql_scales result;
};

/* exp(-i unit): struct ql_exp_int */
struct exponential {
	uint64_t factor;
	int32_t shift;
	int64_t limit;
};

/* ql_exp_int_of */
QL_DEVICE exponential exponential_of(double unit)
{
	double steps = unit * 0x1.71547652b82fep+24, limit; /* log2(e) 2^24 */
	exponential c = {(uint64_t)1 << 31, 0, 0};

	if (steps >= 0x1p31)
		return c;
	limit = 25 * (double)ONE / steps;
	c.limit = limit < 0x1p62 ? (int64_t)limit : (int64_t)1 << 62;
	for (; steps < 0x1p30 && c.shift < 34; c.shift++)
		steps *= 2;
	c.factor = (uint64_t)(steps + 0.5);
	return c;
}

/* ql_exp_int_at */
QL_DEVICE int32_t exponential_at(const exponential &c, const uint32_t *table, int64_t i)
{
	uint64_t t, at, e;

	if (i > c.limit)
		return 0;
	t = ((uint64_t)i * c.factor) >> c.shift;
	at = t >> 16 & 255;
	e = table[at] - (((table[at] - table[at + 1]) * (t & 65535)) >> 16);
	at = (t >> 24) + 6;
	return (int32_t)((e + ((uint64_t)1 << (at - 1))) >> at);
}

/* Queries of a band, four next to each other; keys and values of a tile, without zero points; exponentials of a warp. */
template <int N> struct room {
	uint32_t table[STEPS + 3];
	int32_t q[BAND * 32 * N], k[TILE][32 * N + 1], v[TILE][32 * N + 1];
	int32_t e[WARPS][TILE][ROWS];
};

QL_DEVICE int32_t code(const side &s, int64_t base, int64_t row, int64_t column)
{
	return ql_load_code(s.type, s.at, base + row * s.row + column * s.column) - ql_zero_at(s.scales, 0);
}

template <int N>
QL_DEVICE void stage(int32_t to[TILE][32 * N + 1], const side &s, int64_t base, int64_t first, int64_t rows, int n)
{
	for (int i = (int)threadIdx.x; i < TILE * 32 * N; i += THREADS) {
		int row = i / (32 * N), c = i % (32 * N);

		to[row][c] = first + row < rows && c < n ? code(s, base, first + row, c) : 0;
	}
}

template <int N> QL_DEVICE void stage_queries(int32_t *to, const attended &a, int64_t base, int64_t first)
{
	for (int i = (int)threadIdx.x; i < BAND * a.d; i += THREADS) {
		int row = i / a.d, c = i % a.d;

		to[(row / ROWS * 32 * N + c) * ROWS + row % ROWS] =
			first + row < a.queries ? code(a.q, base, first + row, c) : 0;
	}
}

/* Scores of the warp's queries with the lane's key; those that are to be small with a negative scale are turned. */
template <int N> QL_DEVICE void scores(int64_t s[ROWS], const room<N> &r, int d, bool turned)
{
	const int4 *q = reinterpret_cast<const int4 *>(r.q) + threadIdx.x / 32 * 32 * N;
	int32_t sum[ROWS] = {0, 0, 0, 0};

	for (int c = 0; c < d; c++) {
		int4 x = q[c];
		int32_t y = r.k[threadIdx.x & 31][c];

		sum[0] += x.x * y;
		sum[1] += x.y * y;
		sum[2] += x.z * y;
		sum[3] += x.w * y;
	}
	QL_UNROLL
	for (int i = 0; i < ROWS; i++)
		s[i] = turned ? -(int64_t)sum[i] : sum[i];
}

/* For each column of the lane: += sum over the tile's keys of their exponentials times their values. */
template <int N> QL_DEVICE void weigh(int64_t o[ROWS][N], const room<N> &r)
{
	for (int i = 0; i < TILE; i++) {
		int4 e = *reinterpret_cast<const int4 *>(r.e[threadIdx.x / 32][i]);

		QL_UNROLL
		for (int j = 0; j < N; j++) {
			int32_t v = r.v[i][32 * j + (threadIdx.x & 31)];

			o[0][j] += (int64_t)e.x * v;
			o[1][j] += (int64_t)e.y * v;
			o[2][j] += (int64_t)e.z * v;
			o[3][j] += (int64_t)e.w * v;
		}
	}
}

QL_DEVICE int64_t seen_by(const attended &a, int64_t i)
{
	i = i < a.queries ? i : a.queries - 1;
	return a.causal ? i + 1 + a.keys - a.queries : a.keys;
}

template <typename T> QL_DEVICE T warp_sum(T x)
{
	for (int d = 16; d; d >>= 1)
		x += __shfl_xor_sync(ALL, x, d);
	return x;
}

QL_DEVICE int64_t warp_most(int64_t x)
{
	for (int d = 16; d; d >>= 1) {
		int64_t other = __shfl_xor_sync(ALL, x, d);

		x = other > x ? other : x;
	}
	return x;
}

template <int N> QL_DEVICE void store(const attended &a, int64_t at, const int64_t o[N], int64_t sum)
{
	float by = (float)((double)ql_scale_at(a.v.scales, 0) / ((double)sum * (double)ql_scale_at(a.result, 0)));
	int32_t zero = ql_zero_at(a.result, 0);
	float lo = (float)(a.result.lo - zero), hi = (float)(a.result.hi - zero);

	QL_UNROLL
	for (int j = 0; j < N; j++) {
		int64_t c = 32 * j + (threadIdx.x & 31);
		float y = (float)o[j] * by;

		y = y == y ? y : 0;
		y = y < lo ? lo : y > hi ? hi : y;
		if (c < a.e)
			ql_store_i64(a.to, a.out, at + c * a.column, (int64_t)rintf(y) + zero);
	}
}

template <int N> QL_KERNEL(THREADS) attend_codes(attended a)
{
	QL_SHARED(room<N>, r);
	int64_t bands = (a.queries + BAND - 1) / BAND, band = bands - 1 - blockIdx.x % bands, item = blockIdx.x / bands;
	int64_t head = item % a.heads, batch = item / a.heads, shared = head / (a.heads / a.shared);
	int64_t keys = batch * a.k.batch + shared * a.k.head, values = batch * a.v.batch + shared * a.v.head;
	int64_t first_row = band * BAND + threadIdx.x / 32 * ROWS, end = seen_by(a, band * BAND + BAND - 1);
	double unit = (double)ql_scale_at(a.q.scales, 0) * (double)ql_scale_at(a.k.scales, 0) * a.scale;
	exponential c = exponential_of(fabs(unit));
	int64_t most[ROWS], sum[ROWS] = {0, 0, 0, 0}, s[ROWS], o[ROWS][N];

	for (int i = (int)threadIdx.x; i < STEPS; i += THREADS)
		r.table[i] = (uint32_t)rint(exp2(30 - (double)i / 256));
	stage_queries<N>(r.q, a, batch * a.q.batch + head * a.q.head, band * BAND);
	QL_UNROLL
	for (int i = 0; i < ROWS; i++) {
		most[i] = INT64_MIN;
		QL_UNROLL
		for (int j = 0; j < N; j++)
			o[i][j] = 0;
	}
	for (int64_t first = 0; first < end; first += TILE) {
		stage<N>(r.k, a.k, keys, first, a.keys, a.d);
		__syncthreads();
		scores<N>(s, r, a.d, unit < 0);
		QL_UNROLL
		for (int i = 0; i < ROWS; i++)
			if (first + (threadIdx.x & 31) < seen_by(a, first_row + i) && s[i] > most[i])
				most[i] = s[i];
		__syncthreads();
	}
	QL_UNROLL
	for (int i = 0; i < ROWS; i++)
		most[i] = warp_most(most[i]);
	for (int64_t first = 0; first < end; first += TILE) {
		int32_t e[ROWS];

		stage<N>(r.k, a.k, keys, first, a.keys, a.d);
		stage<N>(r.v, a.v, values, first, a.keys, a.e);
		__syncthreads();
		scores<N>(s, r, a.d, unit < 0);
		QL_UNROLL
		for (int i = 0; i < ROWS; i++) {
			bool live = first + (threadIdx.x & 31) < seen_by(a, first_row + i) - QL_BUG(codes_seen);

			e[i] = live ? exponential_at(c, r.table, most[i] - s[i]) : 0;
			sum[i] += e[i];
		}
		*reinterpret_cast<int4 *>(r.e[threadIdx.x / 32][threadIdx.x & 31]) = int4{e[0], e[1], e[2], e[3]};
		__syncwarp();
		weigh<N>(o, r);
		__syncthreads();
	}
	QL_UNROLL
	for (int i = 0; i < ROWS; i++) {
		sum[i] = warp_sum(sum[i]);
		if (first_row + i < a.queries)
			store<N>(a, batch * a.batch + head * a.head + (first_row + i) * a.row, o[i], sum[i]);
	}
}

/* ---- the call ---- */

static bool is_one_scale(const struct ql_gpu_tensor *t, struct ql_gpu_plan *p)
{
	if (!ql_scales_fit(t, p))
		return false;
	if (t->codes->axis >= 0 || t->codes->block || t->codes->shift)
		return ql_refuse(p, "wanted codes of one scale");
	return ql_element_whole(ql_element_of(t->dtype)) || ql_refuse(p, "packed codes");
}

static side side_of(const struct ql_gpu_tensor *t, int64_t width)
{
	side s = {};

	s.at = t->at;
	s.type = ql_element_of(t->dtype);
	s.batch = t->stride[0];
	s.column = t->stride[t->rank - 1];
	s.head = t->rank == 4 ? t->stride[1] : width * s.column;
	s.row = t->stride[t->rank - 2];
	s.scales = ql_scales_of(t->codes);
	return s;
}

static attended attended_of(const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *out = call->out;
	attended a = {};

	attended_sizes_of(call, call->in, &a);
	a.scale = attended_scale_of(call, &a);
	a.out = out->at;
	a.to = ql_element_of(out->dtype);
	a.batch = out->stride[0];
	a.column = out->stride[out->rank - 1];
	a.head = out->rank == 4 ? out->stride[1] : a.e * a.column;
	a.row = out->stride[out->rank - 2];
	return a;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_codes *c = call->out->codes;
	attended a;

	if (ql_attended_more(call, call->in))
		return ql_refuse(p, "attention with a mask, lengths, window or softcap");
	for (int i = 0; i < 3; i++) {
		if (!is_one_scale(&call->in[i], p))
			return false;
		if (ql_element_get(ql_element_of(call->in[i].dtype)).bits != 8)
			return ql_refuse(p, "attention of codes that are not of 8 bits");
	}
	if (!c)
		return ql_refuse(p, "attention of codes without out=");
	if (!is_one_scale(call->out, p))
		return false;
	if (c->flags & QL_GPU_FIND || c->rounding || !ql_dense(call->out))
		return ql_refuse(p, "wanted a dense result of a given scale, rounded in float");
	a = attended_of(call);
	if (a.d > WIDEST || a.e > WIDEST || a.keys > MOST)
		return ql_refuse(p, "heads of more than 256 numbers or 65536 keys");
	p->path = "integer";
	return true;
}

template <int N> static cudaError_t launch(const struct ql_gpu_place *place, const attended &a)
{
	int64_t blocks = a.batches * a.heads * ((a.queries + BAND - 1) / BAND);

	return ql_launch(attend_codes<N>, dim3((unsigned)blocks), dim3(THREADS), sizeof(room<N>), place->stream, a);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	attended a = attended_of(call);
	int most = a.d > a.e ? a.d : a.e;
	cudaError_t error = cudaSuccess;

	a.q = side_of(&call->in[0], a.d);
	a.k = side_of(&call->in[1], a.d);
	a.v = side_of(&call->in[2], a.e);
	a.result = ql_scales_of(call->out->codes);
	if (call->out->codes->counts) /* sums of codes are finite */
		error = cudaMemsetAsync(call->out->codes->counts, 0, 2 * sizeof(int64_t), place->stream);
	if (error || ql_count(call->out) == 0)
		return error;
	return most <= 32    ? launch<1>(place, a)
	       : most <= 64  ? launch<2>(place, a)
	       : most <= 128 ? launch<4>(place, a)
			     : launch<8>(place, a);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_attention_codes;
const struct ql_gpu_kernel ql_gpu_kernel_attention_codes = {
	"attention", "attention_codes", "simt", QL_GPU_BITS, 80, plan, run};
