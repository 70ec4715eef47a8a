/* SPDX-License-Identifier: MIT
 * attention of at most FEW queries to many keys, as with a cache: softmax(scale q kᵀ) v, bound by the bytes of keys and values. The
 * keys are cut into parts, a block each; of these each warp reads some keys, a few lanes one of them, eight numbers a lane, with a
 * running maximum of its own. The states of lanes, warps and parts are merged in a fixed order, so equal calls have equal bits.
 * Heads that share keys are rows of one block.
 */
#include "gpu/kernels/attend_call.h"
#include "gpu/kernels/ptx.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define ALL 0xffffffffu
#define LOG2_E 1.44269504f
#define FEW 4         /* queries */
#define EACH 8        /* numbers of a lane */
#define AHEAD 4       /* keys of a lane that are read together */
#define PART_KEYS 128 /* of a part at least */
#define BLOCKS 512    /* are enough for any device */

struct few {
	attended a;
	float *parts; /* of each row and part: largest score, sum, e sums of values */
	int64_t each; /* keys of a part */
	int32_t splits, rows, groups, lanes; /* rows of a shared head, in groups of a block; lanes of a key, a power of two */
};

enum kind { ANY, WIDE_F32, WIDE_F16, WIDE_BF16 };

/* ---- loads ---- */

/* Numbers c … c + 7 of a row; zeros from `width` on. */
template <int KIND>
QL_DEVICE void load_some(float x[EACH], const operand &h, int64_t at, int c, int width)
{
	if (KIND == ANY || c >= width) {
		QL_UNROLL
		for (int i = 0; i < EACH; i++)
			x[i] = KIND == ANY && c + i < width ? ql_load_small(h.type, h.at, at + (c + i) * h.column) : 0;
	} else if (KIND == WIDE_F32) {
		QL_UNROLL
		for (int i = 0; i < EACH; i += 4) {
			uint4 v = ql_load_16(static_cast<const float *>(h.at) + at + c + i);

			x[i] = ql_float_of(v.x);
			x[i + 1] = ql_float_of(v.y);
			x[i + 2] = ql_float_of(v.z);
			x[i + 3] = ql_float_of(v.w);
		}
	} else {
		uint4 v = ql_load_16(static_cast<const uint16_t *>(h.at) + at + c);
		uint32_t word[4] = {v.x, v.y, v.z, v.w};

		QL_UNROLL
		for (int i = 0; i < 4; i++) {
			x[2 * i] = KIND == WIDE_F16 ? ql_widen_f16(word[i]) : ql_float_of(word[i] << 16);
			x[2 * i + 1] =
				KIND == WIDE_F16 ? ql_widen_f16(word[i] >> 16) : ql_float_of(word[i] & 0xffff0000u);
		}
	}
}

/* ---- states ---- */

/* Of one row: the weights are exp(score - largest). */
struct state {
	float largest, sum, o[EACH];
};

/* exp(a - m), 0 where a is -infinity and nothing has been seen. */
QL_DEVICE float weight(float a, float m)
{
	return ql_exp2_near((a - (m > -INFINITY ? m : 0)) * LOG2_E);
}

QL_DEVICE void merge(float &largest, float &sum, float by[2], float other, float other_sum)
{
	float most = other > largest ? other : largest;

	by[0] = weight(largest, most);
	by[1] = weight(other, most);
	largest = most;
	sum = sum * by[0] + other_sum * by[1];
}

/* The lanes that have the same columns of other keys. */
QL_DEVICE void merge_lanes(state &s, int lanes)
{
	for (int d = lanes; d < 32; d *= 2) {
		float by[2], other = __shfl_xor_sync(ALL, s.largest, d), other_sum = __shfl_xor_sync(ALL, s.sum, d);

		merge(s.largest, s.sum, by, other, other_sum);
		QL_UNROLL
		for (int i = 0; i < EACH; i++)
			s.o[i] = s.o[i] * by[0] + __shfl_xor_sync(ALL, s.o[i], d) * by[1];
	}
}

/* ---- a part ---- */

template <int ROWS> struct part_room {
	float largest[ROWS][WARPS], sum[ROWS][WARPS], o[ROWS][WARPS][WIDEST];
};

/* Reads AHEAD keys and adds their values to the rows. */
template <int KIND, int ROWS>
QL_DEVICE void add_keys(state s[ROWS], const few &f, const float q[ROWS][EACH], const int64_t seen[ROWS],
	int64_t keys, int64_t values, int64_t first, int64_t step, int64_t end)
{
	int c = (int)threadIdx.x % f.lanes * EACH;
	float k[AHEAD][EACH], v[AHEAD][EACH];

	QL_UNROLL
	for (int u = 0; u < AHEAD; u++) {
		int64_t key = first + u * step;
		bool there = key < end;

		load_some<KIND>(k[u], f.a.k, keys + key * f.a.k.row, c, there ? f.a.d : 0);
		load_some<KIND>(v[u], f.a.v, values + key * f.a.v.row, c, there ? f.a.e : 0);
	}
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		float x[AHEAD], most = s[r].largest, by;

		QL_UNROLL
		for (int u = 0; u < AHEAD; u++) {
			int64_t key = first + u * step;

			x[u] = 0;
			QL_UNROLL
			for (int i = 0; i < EACH; i++)
				x[u] = fmaf(q[r][i], k[u][i], x[u]);
			for (int d = f.lanes / 2; d; d /= 2)
				x[u] += __shfl_xor_sync(ALL, x[u], d);
			x[u] = key < end && key < seen[r] ? x[u] * f.a.scale : -INFINITY;
			most = x[u] > most ? x[u] : most;
		}
		by = weight(s[r].largest, most);
		s[r].largest = most;
		s[r].sum *= by;
		QL_UNROLL
		for (int i = 0; i < EACH; i++)
			s[r].o[i] *= by;
		QL_UNROLL
		for (int u = 0; u < AHEAD; u++) {
			x[u] = weight(x[u], most);
			s[r].sum += x[u];
			QL_UNROLL
			for (int i = 0; i < EACH; i++)
				s[r].o[i] = fmaf(x[u], v[u][i], s[r].o[i]);
		}
	}
}

/* Row r of the block in the order of heads and queries. */
QL_DEVICE int64_t row_at(const few &f, const operand &h, int64_t batch, int64_t shared, int64_t row)
{
	int64_t head = shared * (f.a.heads / f.a.shared) + row / f.a.queries;

	return batch * h.batch + head * h.head + row % f.a.queries * h.row;
}

/* The warps' states of a row and column: the block's, to the result or the part. */
template <int ROWS>
QL_DEVICE void put_row(
	const few &f, const part_room<ROWS> &room, int r, int c, int64_t item, int64_t row, int64_t part, int64_t to)
{
	float largest = -INFINITY, sum = 0, o = 0, *at;

	for (int w = 0; w < WARPS; w++) {
		float by[2];

		merge(largest, sum, by, room.largest[r][w], room.sum[r][w]);
		o = o * by[0] + room.o[r][w][c] * by[1];
	}
	if (f.splits == 1) {
		ql_store_small(f.a.o.type, f.a.o.at, to + c * f.a.o.column, largest > -INFINITY ? o / sum : NAN);
		return;
	}
	at = f.parts + ((item * f.rows + row) * f.splits + part) * (f.a.e + 2);
	if (c == 0) {
		at[0] = largest;
		at[1] = sum;
	}
	at[2 + c] = o;
}

template <int KIND, int ROWS> QL_KERNEL(THREADS) attend_part(few f)
{
	QL_SHARED(struct part_room<ROWS>, room);
	const attended &a = f.a;
	int64_t part = blockIdx.x % f.splits, group = blockIdx.x / f.splits % f.groups;
	int64_t item = blockIdx.x / f.splits / f.groups, batch = item / a.shared, shared = item % a.shared;
	int64_t begin = part * f.each, end = begin + f.each < a.keys ? begin + f.each : a.keys, seen[ROWS];
	int lane = (int)threadIdx.x & 31, warp = (int)threadIdx.x / 32, each = 32 / f.lanes;
	state s[ROWS] = {};
	float q[ROWS][EACH];

	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		int64_t row = group * ROWS + r;

		s[r].largest = -INFINITY;
		seen[r] = row < f.rows ? seen_by(a, row % a.queries) + QL_BUG(attention_few_seen) : 0;
		load_some<ANY>(q[r], a.q, row < f.rows ? row_at(f, a.q, batch, shared, row) : 0, lane % f.lanes * EACH,
			row < f.rows ? a.d : 0);
	}
	for (int64_t first = begin; first < end; first += (int64_t)AHEAD * WARPS * each)
		add_keys<KIND, ROWS>(s, f, q, seen, batch * a.k.batch + shared * a.k.head,
			batch * a.v.batch + shared * a.v.head, first + warp * each + lane / f.lanes, WARPS * each, end);
	QL_UNROLL
	for (int r = 0; r < ROWS; r++) {
		merge_lanes(s[r], f.lanes);
		room.largest[r][warp] = s[r].largest;
		room.sum[r][warp] = s[r].sum;
		QL_UNROLL
		for (int i = 0; i < EACH; i++)
			if (lane < f.lanes)
				room.o[r][warp][lane * EACH + i] = s[r].o[i];
	}
	if (!QL_BUG(attention_few_barrier))
		__syncthreads();
	for (int i = (int)threadIdx.x; i < ROWS * a.e; i += THREADS) {
		int64_t row = group * ROWS + i / a.e;

		if (row < f.rows)
			put_row<ROWS>(f, room, i / a.e, i % a.e, item, row, part, row_at(f, a.o, batch, shared, row));
	}
}

/* The parts of each row in order. */
QL_KERNEL(THREADS) merge_parts(few f)
{
	int64_t n = f.a.batches * f.a.shared * f.rows * f.a.e;

	for (int64_t i = ql_thread(); i < n; i += ql_threads()) {
		int64_t row = i / f.a.e, c = i % f.a.e, item = row / f.rows;
		const float *at = f.parts + row * f.splits * (f.a.e + 2);
		float largest = -INFINITY, sum = 0, o = 0;

		for (int p = 0; p < f.splits; p++, at += f.a.e + 2) {
			float by[2];

			merge(largest, sum, by, at[0], at[1]);
			o = o * by[0] + at[2 + c] * by[1];
		}
		ql_store_small(f.a.o.type, f.a.o.at,
			row_at(f, f.a.o, item / f.a.shared, item % f.a.shared, row % f.rows) + c * f.a.o.column,
			largest > -INFINITY ? o / sum : NAN);
	}
}

/* ---- the call ---- */

static few few_of(const struct ql_gpu_call *call)
{
	few f = {};
	int64_t items, most;

	f.a = attended_of(call, call->in);
	f.rows = (int32_t)(f.a.heads / f.a.shared * f.a.queries);
	f.groups = (f.rows + FEW - 1) / FEW;
	f.lanes = 1;
	while (f.lanes * EACH < (f.a.d > f.a.e ? f.a.d : f.a.e))
		f.lanes *= 2;
	items = f.a.batches * f.a.shared * f.groups;
	most = (f.a.keys + PART_KEYS - 1) / PART_KEYS;
	f.splits = (int32_t)(items >= BLOCKS || most <= 1 ? 1 : most < BLOCKS / items ? most : BLOCKS / items);
	f.each = (f.a.keys + f.splits - 1) / f.splits;
	return f;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	few f;

	if (!attended_fit(call, call->in, p))
		return false;
	f = few_of(call);
	if (call->flags & QL_GPU_ORDERED)
		return ql_refuse(p, "products in order");
	if (f.a.queries > FEW)
		return ql_refuse(p, "wanted at most 4 queries");
	if (f.splits > 1)
		p->workspace = (uint64_t)(f.a.batches * f.a.shared * f.rows * f.splits * (f.a.e + 2)) * sizeof(float);
	return true;
}

/* How rows of keys and values can be read. */
static int kind_of(const operand &h, int width)
{
	int64_t per = h.type == QL_E_float32 ? 4 : 8;

	if (h.column != 1 || width % EACH || (h.batch | h.head | h.row) % per || (uintptr_t)h.at % 16)
		return ANY;
	return h.type == QL_E_float32     ? WIDE_F32
	       : h.type == QL_E_float16   ? WIDE_F16
	       : h.type == QL_E_bfloat16 ? WIDE_BF16
					 : ANY;
}

template <int KIND> static cudaError_t launch(const struct ql_gpu_place *place, const few &f)
{
	dim3 blocks((unsigned)(f.a.batches * f.a.shared * f.groups * f.splits));

	if (f.rows == 1)
		return ql_launch(
			attend_part<KIND, 1>, blocks, dim3(THREADS), sizeof(struct part_room<1>), place->stream, f);
	return ql_launch(attend_part<KIND, FEW>, blocks, dim3(THREADS), sizeof(struct part_room<FEW>), place->stream, f);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	few f = few_of(call);
	int kind = kind_of(f.a.k, f.a.d);
	cudaError_t error;

	f.a.o = heads_of(call->out, f.a.e);
	f.parts = static_cast<float *>(call->workspace);
	if (ql_count(call->out) == 0)
		return cudaSuccess;
	switch (kind == kind_of(f.a.v, f.a.e) ? kind : ANY) {
	case WIDE_F32: error = launch<WIDE_F32>(place, f); break;
	case WIDE_F16: error = launch<WIDE_F16>(place, f); break;
	case WIDE_BF16: error = launch<WIDE_BF16>(place, f); break;
	default: error = launch<ANY>(place, f); break;
	}
	if (error || f.splits == 1)
		return error;
	return ql_launch_free(merge_parts, ql_blocks(ql_count(call->out), THREADS), dim3(THREADS), place->stream, f);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_attention_few;
const struct ql_gpu_kernel ql_gpu_kernel_attention_few = {
	"attention", "attention_few", "simt", QL_GPU_TOLERANCE, 80, plan, run};
