/* SPDX-License-Identifier: MIT
 * attention: softmax(scale q kᵀ) v, a block for BAND queries of a head. Ordered: once through the keys for the largest score of
 * each query, once for the sums. Else once, with a running maximum (Dao et al., "FlashAttention", 2022). No tensor of all
 * scores exists.
 */
#include "gpu/kernels/attend.h"

/* Queries, keys, values; the exponentials of a warp. */
template <int N> struct places {
	float *q, *k, *v, *p;
};

template <int N> QL_DEVICE places<N> places_in(float *room, const attended &a)
{
	places<N> s;

	s.q = room;
	s.k = s.q + BAND * a.d;
	s.v = s.k + TILE * PITCH<N>;
	s.p = s.v + TILE * PITCH<N> + threadIdx.x / 32 * TILE * ROWS;
	return s;
}

struct row_state {
	float largest;
	row_sum sum;
	int64_t seen, columns;
};

/* The exponential of a key's score, 0 for a key that is not seen. */
template <bool ORDERED, int N>
QL_DEVICE float exponential(row_state &state, float o[N], float s, int64_t key, int64_t tile)
{
	bool live = key < state.seen + QL_BUG(attention_seen);
	float most, factor;

	if (ORDERED) {
		s = live ? exp_below(s, state.largest) : 0;
		sum_add(state.sum, s, tile);
		return s;
	}
	most = warp_largest(live && s > state.largest ? s : state.largest);
	factor = state.largest < most ? ql_exp(state.largest - most) : 1;
	state.largest = most;
	s = live ? exp_below(s, most > -INFINITY ? most : 0) : 0;
	state.sum.run = state.sum.run * factor + s;
	QL_UNROLL
	for (int j = 0; j < N; j++)
		o[j] *= factor;
	return s;
}

template <bool ORDERED> QL_DEVICE float normalized(const row_state &state)
{
	float sum;

	if (ORDERED)
		return (float)(1 / sum_end(state.sum));
	sum = warp_sum(state.sum.run);
	return state.largest > -INFINITY ? 1 / sum : NAN;
}

/* The largest scores of the warp's queries. */
template <int N>
QL_DEVICE void find_largest(
	const attended &a, const places<N> &s, int64_t keys, int64_t end, row_state state[ROWS], const float *rows)
{
	for (int64_t first = 0; first < end; first += TILE) {
		int64_t key = first + (threadIdx.x & 31);
		float x[ROWS];

		stage_tile<N>(s.k, a.k, keys, first, a.keys, a.d);
		__syncthreads();
		dots<true, true>(x, rows, s.k + (threadIdx.x & 31) * PITCH<N>, a.d, a.scale);
		QL_UNROLL
		for (int r = 0; r < ROWS; r++)
			state[r].largest = key < state[r].seen && x[r] > state[r].largest ? x[r] : state[r].largest;
		__syncthreads();
	}
	QL_UNROLL
	for (int r = 0; r < ROWS; r++)
		state[r].largest = warp_largest(state[r].largest);
}

template <bool ORDERED, int N> QL_KERNEL(THREADS) attend(attended a)
{
	QL_SHARED(float, room);
	places<N> s = places_in<N>(&room, a);
	int64_t bands = (a.queries + BAND - 1) / BAND, band = bands - 1 - blockIdx.x % bands, item = blockIdx.x / bands;
	int64_t head = item % a.heads, batch = item / a.heads, shared = head / (a.heads / a.shared);
	int64_t keys = batch * a.k.batch + shared * a.k.head, values = batch * a.v.batch + shared * a.v.head;
	int64_t first_row = band * BAND + threadIdx.x / 32 * ROWS, last = band * BAND + BAND - 1;
	int64_t end = ORDERED ? columns_of(a, last) : seen_by(a, last);
	const float *rows = s.q + threadIdx.x / 32 * ROWS * a.d;
	row_state state[ROWS];
	float o[ROWS][N];

	stage_band(s.q, a.q, batch * a.q.batch + head * a.q.head, band * BAND, a.queries, a.d, 1);
	clear<N>(o);
	QL_UNROLL
	for (int r = 0; r < ROWS; r++)
		state[r] = row_state{-INFINITY, {0, 0, 0}, seen_by(a, first_row + r), columns_of(a, first_row + r)};
	if (ORDERED)
		find_largest<N>(a, s, keys, end, state, rows);
	for (int64_t first = 0; first < end; first += TILE) {
		int64_t key = first + (threadIdx.x & 31);
		unsigned with[ROWS];
		float x[ROWS];

		stage_tile<N>(s.k, a.k, keys, first, a.keys, a.d);
		stage_tile<N>(s.v, a.v, values, first, a.keys, a.e);
		__syncthreads();
		dots<ORDERED, true>(x, rows, s.k + (threadIdx.x & 31) * PITCH<N>, a.d, a.scale);
		QL_UNROLL
		for (int r = 0; r < ROWS; r++) {
			x[r] = exponential<ORDERED, N>(state[r], o[r], x[r], key, first / TILE);
			with[r] = ORDERED ? __ballot_sync(ALL, key < state[r].columns) : ALL;
		}
		share(s.p, x);
		__syncwarp();
		weigh<ORDERED, N>(o, s.p, s.v, with);
		if (!QL_BUG(attention_barrier))
			__syncthreads();
	}
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		float by = normalized<ORDERED>(state[r]);

		if (first_row + r < a.queries)
			store_row<N>(a.o, batch * a.o.batch + head * a.o.head, first_row + r, a.e, o[r], by);
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	return attended_fit(call, call->in, p);
}

template <bool ORDERED, int N> static cudaError_t launch(const struct ql_gpu_place *place, const attended &a)
{
	int64_t blocks = a.batches * a.heads * ((a.queries + BAND - 1) / BAND);
	size_t bytes = (size_t)(BAND * a.d + 2 * TILE * PITCH<N> + WARPS * TILE * ROWS) * sizeof(float);

	return ql_launch(attend<ORDERED, N>, dim3((unsigned)blocks), dim3(THREADS), bytes, place->stream, a);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	attended a = attended_of(call, call->in);

	a.o = heads_of(call->out, a.e);
	if (ql_count(call->out) == 0)
		return cudaSuccess;
	if (call->flags & QL_GPU_ORDERED) /* fewer forms for what is run to compare bits */
		return strips_of(a) <= 2 ? launch<true, 2>(place, a) : launch<true, 8>(place, a);
	switch (strips_of(a)) {
	case 1: return launch<false, 1>(place, a);
	case 2: return launch<false, 2>(place, a);
	case 4: return launch<false, 4>(place, a);
	default: return launch<false, 8>(place, a);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_attention;
const struct ql_gpu_kernel ql_gpu_kernel_attention = {
	"attention", "attention", "simt", QL_GPU_TOLERANCE, 80, plan, run};
