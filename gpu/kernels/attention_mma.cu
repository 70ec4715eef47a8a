/* SPDX-License-Identifier: MIT
 * attention of float16 or bfloat16 by mma.sync m16n8k16 (compute capability 8.0): softmax(scale q kᵀ) v with a running maximum
 * (Dao, "FlashAttention-2", 2023). Each of four warps has 16 or 32 queries, whose results stay in registers; 64 keys and their values
 * are in shared memory at a time. While scores are computed, the values are on their way, and while values are added, the next keys.
 * Scores, exponentials and sums are float32; the weights are rounded to the type of the values, as products of it need.
 */
#include "gpu/kernels/attend_call.h"
#include "gpu/kernels/ptx.h"

#define THREADS 128
#define WARPS (THREADS / 32)
#define KEYS 64 /* of a tile */
#define ALL 0xffffffffu
#define LOG2_E 1.44269504f

/* Rows of D numbers are apart by 16 bytes more, so that the rows of ldmatrix lie in different banks. */
template <int D> constexpr int PITCH = D + 8;
template <int PARTS> constexpr int BAND = WARPS * 16 * PARTS; /* queries of a block; a warp has PARTS times 16 */

/* ---- shared memory ---- */

/* True if rows can be read 16 bytes at a time. */
QL_NUMBER bool wide(const operand &h)
{
	return h.column == 1 && ((h.batch | h.head | h.row) & 7) == 0 && ((uintptr_t)h.at & 15) == 0;
}

/* Rows first … first + LINES - 1 of `rows`, numbers 0 … D - 1 of `width`; zeros beyond both. */
template <int D, int LINES>
QL_DEVICE void fetch(uint16_t *to, const operand &h, int64_t base, int64_t first, int64_t rows, int width)
{
	const uint16_t *from = static_cast<const uint16_t *>(h.at) + base;
	bool by_16 = wide(h);

	QL_UNROLL_FEW
	for (int c = (int)threadIdx.x; by_16 && c < LINES * D / 8; c += THREADS) {
		int row = c / (D / 8), at = c % (D / 8) * 8, n = width - at;

		n = first + row >= rows || n < 0 ? 0 : n < 8 ? n : 8;
		ql_async_16(to + row * PITCH<D> + at, n ? from + (first + row) * h.row + at : h.at, 2 * n);
	}
	for (int c = (int)threadIdx.x; !by_16 && c < LINES * D; c += THREADS) {
		int row = c / D, at = c % D;

		to[row * PITCH<D> + at] = first + row < rows && at < width
						  ? from[(first + row) * h.row + at * h.column]
						  : (uint16_t)0;
	}
	ql_async_commit();
}

/* What has been fetched is there for all threads, and all have left what is fetched next. */
QL_DEVICE void arrived()
{
	ql_async_wait<0>();
	__syncthreads();
}

/* ---- a warp's queries ---- */

/* Lane l = 4 g + t has rows g (index 0) and g + 8 of each part: of results columns 8 j + 2 t and + 1, of sums those of its
 * own columns. */
template <int D, int PARTS> struct band_state {
	float o[PARTS][D / 8][4];
	float largest[PARTS][2], sum[PARTS][2];
};

/* Scores of the warp's queries and the keys of a tile. */
template <bool BF16, int D, int PARTS>
QL_DEVICE void multiply_keys(float s[PARTS][KEYS / 8][4], const uint16_t *q, const uint16_t *k)
{
	int lane = (int)threadIdx.x & 31;

	QL_UNROLL
	for (int d = 0; d < D; d += 16) {
		uint32_t a[PARTS][4];

		QL_UNROLL
		for (int m = 0; m < PARTS; m++)
			ql_load_matrices(a[m], q + (m * 16 + lane % 16) * PITCH<D> + d + lane / 16 * 8);
		QL_UNROLL
		for (int j = 0; j < KEYS / 16; j++) {
			uint32_t b[4];

			ql_load_matrices(
				b, k + (j * 16 + lane / 16 * 8 + lane % 8) * PITCH<D> + d + lane / 8 % 2 * 8);
			QL_UNROLL
			for (int m = 0; m < PARTS; m++) {
				ql_mma_16<BF16>(s[m][2 * j], a[m], b);
				ql_mma_16<BF16>(s[m][2 * j + 1], a[m], b + 2);
			}
		}
	}
}

/* Adds the values of a tile by the weights, which are where the scores were. */
template <bool BF16, int D, int PARTS>
QL_DEVICE void multiply_values(band_state<D, PARTS> &state, const float s[PARTS][KEYS / 8][4], const uint16_t *v)
{
	int lane = (int)threadIdx.x & 31;

	QL_UNROLL
	for (int k = 0; k < KEYS / 16; k++) {
		uint32_t a[PARTS][4];

		QL_UNROLL
		for (int m = 0; m < PARTS; m++) {
			QL_UNROLL
			for (int i = 0; i < 4; i++) {
				const float *pair = s[m][2 * k + i / 2] + i % 2 * 2;

				a[m][i] = ql_pair<BF16>(pair[0], pair[1]);
			}
		}
		QL_UNROLL
		for (int j = 0; j < D / 16; j++) {
			uint32_t b[4];

			ql_load_turned(b, v + (k * 16 + lane % 16) * PITCH<D> + j * 16 + lane / 16 * 8);
			QL_UNROLL
			for (int m = 0; m < PARTS; m++) {
				ql_mma_16<BF16>(state.o[m][2 * j], a[m], b);
				ql_mma_16<BF16>(state.o[m][2 * j + 1], a[m], b + 2);
			}
		}
	}
}

/* Scores of keys that a query does not attend to become -infinity. */
template <int PARTS>
QL_DEVICE void hide(float s[PARTS][KEYS / 8][4], const attended &a, int64_t first_row, int64_t first_key)
{
	int lane = (int)threadIdx.x & 31;

	QL_UNROLL
	for (int m = 0; m < PARTS; m++) {
		QL_UNROLL
		for (int h = 0; h < 2; h++) {
			int64_t seen = seen_by(a, first_row + m * 16 + lane / 4 + h * 8) + QL_BUG(attention_mma_seen);
			int left = (int)(seen - first_key < KEYS ? seen - first_key : KEYS);

			QL_UNROLL
			for (int j = 0; j < KEYS / 8; j++) {
				int key = j * 8 + lane % 4 * 2;

				s[m][j][2 * h] = key < left ? s[m][j][2 * h] : -INFINITY;
				s[m][j][2 * h + 1] = key + 1 < left ? s[m][j][2 * h + 1] : -INFINITY;
			}
		}
	}
}

/* The largest of the four lanes of a row. */
QL_DEVICE float row_largest(float x)
{
	QL_UNROLL
	for (int d = 1; d < 4; d *= 2)
		x = fmaxf(x, __shfl_xor_sync(ALL, x, d));
	return x;
}

/* The weights 2^(score - largest) of row h of part m; results and sum so far are brought under the new maximum. */
template <int D, int PARTS>
QL_DEVICE void weigh_row(band_state<D, PARTS> &state, float s[PARTS][KEYS / 8][4], int m, int h, float by)
{
	float most = state.largest[m][h], least, factor, sum = 0;

	QL_UNROLL
	for (int j = 0; j < KEYS / 8; j++) {
		QL_UNROLL
		for (int i = 2 * h; i < 2 * h + 2; i++) {
			s[m][j][i] *= by;
			most = fmaxf(most, s[m][j][i]); /* ignores NaN, which the sum shows */
		}
	}
	most = row_largest(most);
	least = most > -INFINITY ? most : 0; /* no key yet: no weight */
	factor = ql_exp2_near(state.largest[m][h] - least);
	QL_UNROLL
	for (int j = 0; j < KEYS / 8; j++) {
		QL_UNROLL
		for (int i = 2 * h; i < 2 * h + 2; i++) {
			s[m][j][i] = ql_exp2_near(s[m][j][i] - least);
			sum += s[m][j][i];
		}
	}
	state.sum[m][h] = state.sum[m][h] * factor + sum;
	if (__ballot_sync(ALL, most > state.largest[m][h])) {
		QL_UNROLL
		for (int j = 0; j < D / 8; j++) {
			state.o[m][j][2 * h] *= factor;
			state.o[m][j][2 * h + 1] *= factor;
		}
	}
	state.largest[m][h] = most;
}

/* ---- results ---- */

/* Rows of the warp go to its part of `room`, then out. */
template <bool BF16, int D, int PARTS>
QL_DEVICE void store_band(
	uint16_t *room, const band_state<D, PARTS> &state, const operand &h, int64_t base, int64_t rows, int width)
{
	int lane = (int)threadIdx.x & 31;
	bool by_16 = wide(h) && width % 8 == 0;

	QL_UNROLL
	for (int m = 0; m < PARTS; m++) {
		QL_UNROLL
		for (int r = 0; r < 2; r++) {
			float sum = state.sum[m][r], by;
			uint16_t *line = room + (m * 16 + r * 8 + lane / 4) * PITCH<D> + lane % 4 * 2;

			sum += __shfl_xor_sync(ALL, sum, 1);
			sum += __shfl_xor_sync(ALL, sum, 2);
			by = state.largest[m][r] > -INFINITY ? 1 / sum : NAN;
			QL_UNROLL
			for (int j = 0; j < D / 8; j++)
				*reinterpret_cast<uint32_t *>(line + j * 8) = ql_pair<BF16>(
					state.o[m][j][2 * r] * by, state.o[m][j][2 * r + 1] * by);
		}
	}
	__syncwarp();
	for (int c = lane; c < 16 * PARTS * D / 8; c += 32) {
		int row = c / (D / 8), at = c % (D / 8) * 8;
		const uint16_t *line = room + row * PITCH<D> + at;
		uint16_t *to = static_cast<uint16_t *>(h.at) + base + row * h.row + at;

		if (row >= rows || at >= width)
			continue;
		if (by_16)
			ql_store_16(to, *reinterpret_cast<const uint4 *>(line));
		for (int i = 0; !by_16 && i < 8 && at + i < width; i++)
			to[i] = line[i];
	}
}

/* ---- a block ---- */

template <bool BF16, int D, int PARTS> QL_KERNEL(THREADS) attend_mma(attended a)
{
	QL_SHARED(uint16_t, room);
	uint16_t *k = &room + BAND<PARTS> * PITCH<D>, *v = k + KEYS * PITCH<D>;
	uint16_t *q = &room + threadIdx.x / 32 * 16 * PARTS * PITCH<D>; /* of this warp */
	int64_t bands = (a.queries + BAND<PARTS> - 1) / BAND<PARTS>, band = bands - 1 - blockIdx.x % bands;
	int64_t item = blockIdx.x / bands, head = item % a.heads, batch = item / a.heads;
	int64_t shared = head / (a.heads / a.shared), first_row = band * BAND<PARTS> + threadIdx.x / 32 * 16 * PARTS;
	int64_t keys = batch * a.k.batch + shared * a.k.head, values = batch * a.v.batch + shared * a.v.head;
	int64_t end = seen_by(a, (band + 1) * BAND<PARTS> - 1), all_see = seen_by(a, first_row);
	band_state<D, PARTS> state = {};

	QL_UNROLL
	for (int m = 0; m < PARTS; m++)
		state.largest[m][0] = state.largest[m][1] = -INFINITY;
	fetch<D, BAND<PARTS>>(
		&room, a.q, batch * a.q.batch + head * a.q.head, band * BAND<PARTS>, a.queries, a.d);
	fetch<D, KEYS>(k, a.k, keys, 0, a.keys, a.d);
	for (int64_t first = 0; first < end; first += KEYS) {
		float s[PARTS][KEYS / 8][4] = {};

		arrived();
		fetch<D, KEYS>(v, a.v, values, first, a.keys, a.e);
		multiply_keys<BF16, D, PARTS>(s, q, k);
		if (first + KEYS > all_see)
			hide<PARTS>(s, a, first_row, first);
		if (!QL_BUG(attention_mma_barrier))
			arrived();
		else
			ql_async_wait<0>();
		if (first + KEYS < end)
			fetch<D, KEYS>(k, a.k, keys, first + KEYS, a.keys, a.d);
		QL_UNROLL
		for (int m = 0; m < PARTS; m++) {
			weigh_row<D, PARTS>(state, s, m, 0, a.scale * LOG2_E);
			weigh_row<D, PARTS>(state, s, m, 1, a.scale * LOG2_E);
		}
		multiply_values<BF16, D, PARTS>(state, s, v);
	}
	arrived(); /* where there is no key the queries are still on their way */
	store_band<BF16, D, PARTS>(q, state, a.o, batch * a.o.batch + head * a.o.head + first_row * a.o.row,
		a.queries - first_row, a.e);
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	int type = ql_element_of(call->in[0].dtype);

	if (!attended_fit(call, call->in, p))
		return false;
	if (call->flags & QL_GPU_ORDERED)
		return ql_refuse(p, "products in order");
	if (type != QL_E_float16 && type != QL_E_bfloat16)
		return ql_refuse(p, "wanted float16 or bfloat16");
	for (int i = 1; i < 4; i++)
		if (ql_element_of((i < 3 ? &call->in[i] : call->out)->dtype) != type)
			return ql_refuse(p, "wanted operands and a result of one type");
	p->path = call->in[0].dtype;
	return true;
}

template <bool BF16, int D, int PARTS> static cudaError_t launch(const struct ql_gpu_place *place, const attended &a)
{
	int64_t blocks = a.batches * a.heads * ((a.queries + BAND<PARTS> - 1) / BAND<PARTS>);
	size_t bytes = (size_t)(BAND<PARTS> + 2 * KEYS) * PITCH<D> * sizeof(uint16_t);

	return ql_launch(attend_mma<BF16, D, PARTS>, dim3((unsigned)blocks), dim3(THREADS), bytes, place->stream, a);
}

template <bool BF16> static cudaError_t launch_any(const struct ql_gpu_place *place, const attended &a)
{
	int widest = a.d > a.e ? a.d : a.e;

	if (widest <= 64)
		return launch<BF16, 64, 2>(place, a);
	return widest <= 128 ? launch<BF16, 128, 2>(place, a) : launch<BF16, 256, 1>(place, a);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	attended a = attended_of(call, call->in);

	a.o = heads_of(call->out, a.e);
	if (ql_count(call->out) == 0)
		return cudaSuccess;
	return a.q.type == QL_E_bfloat16 ? launch_any<true>(place, a) : launch_any<false>(place, a);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_attention_mma;
const struct ql_gpu_kernel ql_gpu_kernel_attention_mma = {
	"attention", "attention_mma", "mma", QL_GPU_TOLERANCE, 80, plan, run};
