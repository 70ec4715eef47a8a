/* SPDX-License-Identifier: MIT
 * attention_back, by the formulas of nn/attention_f32.c: with P the probabilities and dP = g vᵀ,
 *   dS = scale P (dP - rowsum(P dP)):  dq = dS k,  dk = dSᵀ q,  dv = Pᵀ g.
 * One kernel has the queries: it finds the largest score, the sum of exponentials and rowsum(P dP) of each, keeps them in the
 * workspace and adds dq. The other has the keys: it adds dk and dv over the queries of all heads that share them, in order.
 */
#include "gpu/kernels/attend.h"

template <int N> struct places {
	float *q, *g, *k, *v, *p,
		*ds; /* of queries: bands q and g, tiles k and v; of keys: the other way; ds: of keys */
};

template <int N> QL_DEVICE places<N> places_in(float *room, const attended &a, bool of_queries)
{
	int warp = (int)threadIdx.x / 32;
	float *bands = room + BAND * (a.d + a.e);
	places<N> s;

	s.q = of_queries ? room : bands;
	s.g = of_queries ? s.q + BAND * a.d : s.q + TILE * PITCH<N>;
	s.k = of_queries ? bands : room;
	s.v = of_queries ? s.k + TILE * PITCH<N> : s.k + BAND * a.d;
	s.p = bands + 2 * TILE * PITCH<N> + warp * TILE * ROWS;
	s.ds = s.p + WARPS * TILE * ROWS;
	return s;
}

/* Row r of a result, which is float32. */
template <int N> QL_DEVICE void store_f32(const operand &h, int64_t base, int64_t row, int n, const float o[N])
{
	float *to = static_cast<float *>(h.at) + base + row * h.row;

	QL_UNROLL
	for (int j = 0; j < N; j++)
		if (32 * j + (int)(threadIdx.x & 31) < n)
			to[(32 * j + (int)(threadIdx.x & 31)) * h.column] = o[j];
}

/* ---- queries ---- */

struct query {
	float largest, by, less;
	row_sum sum;
	int64_t seen, columns;
};

/* The band of this block. */
template <int N> struct band_of {
	places<N> s;
	const float *q, *g;        /* of the warp */
	int64_t keys, values, end; /* where the keys and values of the head begin; keys to look at */
};

/* Scores and dP of the warp's queries with the tile at `first`; the tile stays until the next barrier. */
template <bool ORDERED, int N>
QL_DEVICE void look(const attended &a, const band_of<N> &b, int64_t first, float x[ROWS], float dp[ROWS])
{
	stage_tile<N>(b.s.k, a.k, b.keys, first, a.keys, a.d);
	stage_tile<N>(b.s.v, a.v, b.values, first, a.keys, a.e);
	__syncthreads();
	dots<ORDERED, true>(x, b.q, b.s.k + (threadIdx.x & 31) * PITCH<N>, a.d, a.scale);
	dots<ORDERED, false>(dp, b.g, b.s.v + (threadIdx.x & 31) * PITCH<N>, a.e, 1);
}

/* In order: three times through the keys. */
template <int N> QL_DEVICE void sum_up_ordered(const attended &a, const band_of<N> &b, query w[ROWS])
{
	for (int pass = 0; pass < 3; pass++) {
		for (int64_t first = 0; first < b.end; first += TILE) {
			int64_t key = first + (threadIdx.x & 31);
			float x[ROWS], dp[ROWS];

			look<true, N>(a, b, first, x, dp);
			QL_UNROLL
			for (int r = 0; r < ROWS; r++) {
				if (pass == 0)
					w[r].largest = key < w[r].seen && x[r] > w[r].largest ? x[r] : w[r].largest;
				x[r] = key < w[r].seen ? exp_below(x[r], w[r].largest) : 0;
				if (pass == 1)
					sum_add(w[r].sum, x[r], first / TILE);
				if (pass == 2 && key < w[r].columns)
					w[r].less += x[r] * w[r].by * dp[r];
			}
			__syncthreads();
		}
		QL_UNROLL
		for (int r = 0; r < ROWS; r++) {
			if (pass == 0)
				w[r].largest = warp_largest(w[r].largest);
			if (pass == 1)
				w[r].by = (float)(1 / sum_end(w[r].sum));
			if (pass == 2)
				w[r].less = add_lanes(w[r].less);
		}
	}
}

/* Once, with a running maximum. */
template <int N> QL_DEVICE void sum_up(const attended &a, const band_of<N> &b, query w[ROWS])
{
	for (int64_t first = 0; first < b.end; first += TILE) {
		int64_t key = first + (threadIdx.x & 31);
		float x[ROWS], dp[ROWS];

		look<false, N>(a, b, first, x, dp);
		QL_UNROLL
		for (int r = 0; r < ROWS; r++) {
			bool live = key < w[r].seen;
			float most = warp_largest(live && x[r] > w[r].largest ? x[r] : w[r].largest);
			float factor = w[r].largest < most ? ql_exp(w[r].largest - most) : 1;
			float p = live ? exp_below(x[r], most > -INFINITY ? most : 0) : 0;

			w[r].largest = most;
			w[r].sum.run = w[r].sum.run * factor + p;
			w[r].less = fmaf(p, dp[r], w[r].less * factor);
		}
		__syncthreads();
	}
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		w[r].by = w[r].largest > -INFINITY ? 1 / warp_sum(w[r].sum.run) : NAN;
		w[r].less = warp_sum(w[r].less) * w[r].by;
	}
}

/* dS of the tile at `first` for the warp's queries. */
template <bool ORDERED, int N>
QL_DEVICE void slopes(const attended &a, const band_of<N> &b, int64_t first, const query w[ROWS], float ds[ROWS])
{
	int64_t key = first + (threadIdx.x & 31);
	float x[ROWS], dp[ROWS];

	look<ORDERED, N>(a, b, first, x, dp);
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		float p = probability<ORDERED>(key < w[r].seen, x[r], w[r].largest, w[r].by);

		ds[r] = p * (dp[r] - w[r].less) * a.scale;
	}
}

template <bool ORDERED, int N> QL_KERNEL(THREADS) back_queries(attended a)
{
	QL_SHARED(float, room);
	int64_t bands = (a.queries + BAND - 1) / BAND, band = bands - 1 - blockIdx.x % bands, item = blockIdx.x / bands;
	int64_t head = item % a.heads, batch = item / a.heads, shared = head / (a.heads / a.shared);
	int64_t first_row = band * BAND + threadIdx.x / 32 * ROWS, last = band * BAND + BAND - 1;
	band_of<N> b;
	query w[ROWS];
	float dq[ROWS][N];

	b.s = places_in<N>(&room, a, true);
	b.q = b.s.q + threadIdx.x / 32 * ROWS * a.d;
	b.g = b.s.g + threadIdx.x / 32 * ROWS * a.e;
	b.keys = batch * a.k.batch + shared * a.k.head;
	b.values = batch * a.v.batch + shared * a.v.head;
	b.end = ORDERED ? columns_of(a, last) : seen_by(a, last);
	stage_band(b.s.q, a.q, batch * a.q.batch + head * a.q.head, band * BAND, a.queries, a.d, 1);
	stage_band(b.s.g, a.g, batch * a.g.batch + head * a.g.head, band * BAND, a.queries, a.e, 1);
	QL_UNROLL
	for (int r = 0; r < ROWS; r++)
		w[r] = query{-INFINITY, 0, 0, {0, 0, 0}, seen_by(a, first_row + r), columns_of(a, first_row + r)};
	if (ORDERED)
		sum_up_ordered<N>(a, b, w);
	else
		sum_up<N>(a, b, w);
	clear<N>(dq);
	for (int64_t first = 0; first < b.end; first += TILE) {
		unsigned with[ROWS];
		float ds[ROWS];

		slopes<ORDERED, N>(a, b, first, w, ds);
		QL_UNROLL
		for (int r = 0; r < ROWS; r++)
			with[r] = ORDERED ? __ballot_sync(ALL, first + (threadIdx.x & 31) < w[r].columns) : ALL;
		share(b.s.p, ds);
		__syncwarp();
		weigh<ORDERED, N>(dq, b.s.p, b.s.k, with);
		__syncthreads();
	}
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		int64_t i = item * a.queries + first_row + r;

		if (first_row + r >= a.queries)
			continue;
		store_f32<N>(a.dq, batch * a.dq.batch + head * a.dq.head, first_row + r, a.d, dq[r]);
		if ((threadIdx.x & 31) == 0) {
			a.largest[i] = w[r].largest;
			a.by[i] = w[r].by;
			a.less[i] = w[r].less;
		}
	}
}

/* ---- keys ---- */

/* The query of this lane. */
struct other {
	float largest, by, less;
	int64_t seen, columns; /* 0: there is none */
};

QL_DEVICE other other_of(const attended &a, int64_t item, int64_t i)
{
	other o = {0, 0, 0, 0, 0};

	if (i < a.queries) {
		o.largest = a.largest[item * a.queries + i];
		o.by = a.by[item * a.queries + i];
		o.less = a.less[item * a.queries + i];
		o.seen = seen_by(a, i);
		o.columns = columns_of(a, i);
	}
	return o;
}

/* The sums of the warp's keys, of which `first_row` is the first one. */
template <bool ORDERED, int N>
QL_DEVICE void add_queries(
	const attended &a, const places<N> &s, int64_t first_row, const other &o, float dk[ROWS][N], float dv[ROWS][N])
{
	int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
	float x[ROWS], dp[ROWS], p[ROWS], ds[ROWS];
	unsigned with[ROWS];

	dots<ORDERED, false>(x, s.k + warp * ROWS * a.d, s.q + lane * PITCH<N>, a.d, 1);
	dots<ORDERED, false>(dp, s.v + warp * ROWS * a.e, s.g + lane * PITCH<N>, a.e, 1);
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		p[r] = probability<ORDERED>(first_row + r < o.seen, x[r], o.largest, o.by);
		ds[r] = p[r] * (dp[r] - o.less) * a.scale;
		with[r] = ORDERED ? __ballot_sync(ALL, first_row + r < o.columns) : ALL;
	}
	share(s.p, p);
	share(s.ds, ds);
	__syncwarp();
	weigh<ORDERED, N>(dk, s.ds, s.q, with);
	weigh<ORDERED, N>(dv, s.p, s.g, with);
}

template <bool ORDERED, int N> QL_KERNEL(THREADS) back_keys(attended a)
{
	QL_SHARED(float, room);
	places<N> s = places_in<N>(&room, a, false);
	int64_t bands = (a.keys + BAND - 1) / BAND, band = blockIdx.x % bands, task = blockIdx.x / bands;
	int64_t shared = task % a.shared, batch = task / a.shared, users = a.heads / a.shared;
	int64_t first_row = band * BAND + threadIdx.x / 32 * ROWS;
	float dk[ROWS][N], dv[ROWS][N];

	stage_band(s.k, a.k, batch * a.k.batch + shared * a.k.head, band * BAND, a.keys, a.d, a.scale);
	stage_band(s.v, a.v, batch * a.v.batch + shared * a.v.head, band * BAND, a.keys, a.e, 1);
	clear<N>(dk);
	clear<N>(dv);
	for (int64_t head = shared * users; head < (shared + 1) * users; head++)
		for (int64_t first = 0; first < a.queries - QL_BUG(attention_last); first += TILE) {
			if (columns_of(a, first + TILE - 1) <= band * BAND) /* none of these queries has the keys */
				continue;
			stage_tile<N>(s.q, a.q, batch * a.q.batch + head * a.q.head, first, a.queries, a.d);
			stage_tile<N>(s.g, a.g, batch * a.g.batch + head * a.g.head, first, a.queries, a.e);
			__syncthreads();
			add_queries<ORDERED, N>(a, s, first_row,
				other_of(a, batch * a.heads + head, first + (threadIdx.x & 31)), dk, dv);
			if (!QL_BUG(attention_tile))
				__syncthreads();
		}
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		if (first_row + r >= a.keys)
			continue;
		store_f32<N>(a.dk, batch * a.dk.batch + shared * a.dk.head, first_row + r, a.d, dk[r]);
		store_f32<N>(a.dv, batch * a.dv.batch + shared * a.dv.head, first_row + r, a.e, dv[r]);
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	attended a;

	if (!attended_fit(call, call->in + 1, p))
		return false;
	for (int i = 0; i < call->n_out; i++)
		if (ql_element_of(call->out[i].dtype) != QL_E_float32)
			return ql_refuse(p, "wanted results of float32");
	a = attended_of(call, call->in + 1);
	p->workspace = (uint64_t)(a.batches * a.heads * a.queries) * 3 * sizeof(float);
	return true;
}

template <bool ORDERED, int N> static cudaError_t launch(const struct ql_gpu_place *place, const attended &a)
{
	int64_t of_queries = a.batches * a.heads * ((a.queries + BAND - 1) / BAND);
	int64_t of_keys = a.batches * a.shared * ((a.keys + BAND - 1) / BAND);
	size_t numbers = (size_t)(BAND * (a.d + a.e) + 2 * TILE * PITCH<N> + 2 * WARPS * TILE * ROWS);
	cudaError_t error = cudaSuccess;

	if (of_queries)
		error = ql_launch(back_queries<ORDERED, N>, dim3((unsigned)of_queries), dim3(THREADS),
			numbers * sizeof(float), place->stream, a);
	if (error || !of_keys)
		return error;
	return ql_launch(back_keys<ORDERED, N>, dim3((unsigned)of_keys), dim3(THREADS), numbers * sizeof(float),
		place->stream, a);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	attended a = attended_of(call, call->in + 1);
	int64_t rows = a.batches * a.heads * a.queries;

	a.g = heads_of(&call->in[0], a.e);
	a.dq = heads_of(&call->out[0], a.d);
	a.dk = heads_of(&call->out[1], a.d);
	a.dv = heads_of(&call->out[2], a.e);
	a.largest = static_cast<float *>(call->workspace);
	a.by = a.largest + rows;
	a.less = a.by + rows;
	if (call->flags & QL_GPU_ORDERED) /* fewer forms for what is run to compare bits */
		return strips_of(a) <= 2 ? launch<true, 2>(place, a) : launch<true, 8>(place, a);
	switch (strips_of(a)) {
	case 1: return launch<false, 1>(place, a);
	case 2: return launch<false, 2>(place, a);
	case 4: return launch<false, 4>(place, a);
	default: return launch<false, 8>(place, a);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_attention_back;
const struct ql_gpu_kernel ql_gpu_kernel_attention_back = {
	"attention_back", "attention_back", "simt", QL_GPU_TOLERANCE, 80, plan, run};
