/* SPDX-License-Identifier: MIT
 * sum, mean, max, min, argmax, argmin, any and all over any axes of any view, in the order of tensor/loops/reduce.h, so with its bits: a warp has the
 * lanes, element i of a run goes to lane i mod 32, lanes and parts are joined in order. Parts of QL_REDUCE_PART elements are
 * reduced by teams of one warp or of eight; results of several parts are joined by a second kernel.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define RUN 256 /* elements that lanes add in float32 */
#define BLOCK 1024
#define PART 65536
#define LONG 2048 /* from this many elements on eight warps share a part */
#define ALL 0xffffffffu

enum what { SUM, MEAN, MAX, MIN, ARGMAX, ARGMIN, ANY, EVERY, WHATS };
enum kind { SUM_F32, SUM_F64, SUM_I64, EXTREME_F, EXTREME_I, PLACE_F, PLACE_I, TRUTH };

static const char *const names[WHATS] = {"sum", "mean", "max", "min", "argmax", "argmin", "any", "all"};

/* Of some elements of one result: a float sum or extreme; an integer sum hi 2^32 + lo, or the extreme in lo; with its
 * position in hi. lo: whether an element is true, or for `all` false. */
struct part {
	double a;
	int64_t hi, lo;
};

struct reduction {
	ql_strided kept, along;
	const void *in;
	void *out;
	struct part *part; /* (results, parts); NULL: one part each */
	int64_t results, parts;
	int32_t from, to, what, kind;
};

/* One value per run of a part, of each lane; or per block. */
union room {
	float run[PART / RUN][32];
	double block[PART / BLOCK];
	struct part warp[WARPS];
};

/* ---- elements ---- */

QL_DEVICE int64_t place(const reduction &r, int64_t result)
{
	int64_t at[QL_STRIDED_MOST];

	ql_strided_at(r.kept, result, at);
	return at[0];
}

/* Offset of element i of a result. */
QL_DEVICE int64_t element(const reduction &r, int64_t i)
{
	int64_t at[QL_STRIDED_MOST];

	if (r.along.rank == 1)
		return i * r.along.stride[0][0];
	ql_strided_at(r.along, i, at);
	return at[0];
}

/* ---- the order of extremes: NaN wins, -0 is below 0 ---- */

QL_DEVICE double further(int32_t what, double v, double a)
{
	if (v == 0 && a == 0)
		return what == MAX ? v + a : -(-v - a);
	return v != v || (what == MAX ? v > a : v < a) ? v : a;
}
QL_DEVICE int64_t further(int32_t what, int64_t v, int64_t a)
{
	return (what == MAX ? v > a : v < a) ? v : a;
}

QL_DEVICE struct part nothing(const reduction &r)
{
	struct part p = {0, 0, 0};

	if (r.kind == EXTREME_F)
		p.a = r.what == MAX ? -INFINITY : INFINITY;
	if (r.kind == EXTREME_I)
		p.lo = r.what == MAX ? INT64_MIN : INT64_MAX;
	if (r.kind == PLACE_F || r.kind == PLACE_I)
		p.hi = INT64_MAX;
	return p;
}

/* The first of equal elements, where NaN is beyond all others; a position of INT64_MAX is no element. */
QL_DEVICE bool goes_before(const reduction &r, const struct part &v, const struct part &p)
{
	bool most = r.what == ARGMAX, same, beyond;

	if (r.kind == PLACE_I) {
		same = v.lo == p.lo;
		beyond = most ? v.lo > p.lo : v.lo < p.lo;
	} else {
		same = v.a == p.a || (v.a != v.a && p.a != p.a);
		beyond = (v.a != v.a && p.a == p.a) || (most ? v.a > p.a : v.a < p.a);
	}
	if (v.hi == INT64_MAX || p.hi == INT64_MAX)
		return p.hi == INT64_MAX;
	return beyond || (same && (v.hi < p.hi) != QL_BUG(reduce_first));
}

QL_DEVICE void join(const reduction &r, struct part &into, const struct part &from)
{
	if (r.kind == EXTREME_F) {
		into.a = further(r.what, from.a, into.a);
	} else if (r.kind == EXTREME_I) {
		into.lo = further(r.what, from.lo, into.lo);
	} else if (r.kind == PLACE_F || r.kind == PLACE_I) {
		if (goes_before(r, from, into))
			into = from;
	} else if (r.kind == TRUTH) {
		into.lo |= from.lo;
	} else {
		into.a += from.a;
		into.hi += from.hi;
		into.lo += from.lo;
	}
}

/* ---- lanes of a warp ---- */

/* Four chains of every fourth lane, as ql_join_lanes. */
QL_DEVICE double join_lanes(double x)
{
	int lane = (int)threadIdx.x & 31;
	double s = 0;

	for (int i = 0; i < 8; i++)
		s += __shfl_sync(ALL, x, (lane & 3) + 4 * i);
	return (__shfl_sync(ALL, s, 0) + __shfl_sync(ALL, s, 1)) + (__shfl_sync(ALL, s, 2) + __shfl_sync(ALL, s, 3));
}

/* For what has no order. */
QL_DEVICE struct part join_any(const reduction &r, struct part p)
{
	for (int d = 16; d; d >>= 1) {
		struct part other = p;

		other.a = __shfl_xor_sync(ALL, p.a, d);
		other.hi = __shfl_xor_sync(ALL, p.hi, d);
		other.lo = __shfl_xor_sync(ALL, p.lo, d);
		join(r, p, other);
	}
	return p;
}

/* ---- pieces: elements begin .. end - 1 of the result whose first element is at `at` ---- */

QL_DEVICE float run_f32(const reduction &r, int64_t at, int64_t begin, int64_t end)
{
	float sum = 0;

	if (r.from == QL_E_float32) {
		QL_UNROLL_FEW
		for (int64_t i = begin + (threadIdx.x & 31); i < end; i += 32)
			sum += static_cast<const float *>(r.in)[at + element(r, i)];
		return sum;
	}
	QL_ROLLED
	for (int64_t i = begin + (threadIdx.x & 31); i < end; i += 32)
		sum += ql_load_small(r.from, r.in, at + element(r, i));
	return sum;
}

QL_DEVICE double block_f64(const reduction &r, int64_t at, int64_t begin, int64_t end)
{
	double sum = 0;

	for (int64_t i = begin + (threadIdx.x & 31); i < end; i += 32)
		sum += static_cast<const double *>(r.in)[at + element(r, i)];
	return join_lanes(sum);
}

/* By `step` threads of which this is number `first`. */
QL_DEVICE struct part any_order(const reduction &r, int64_t at, int64_t begin, int64_t end, int64_t first, int64_t step)
{
	struct part p = nothing(r);

	QL_ROLLED
	for (int64_t i = begin + first; i < end; i += step) {
		int64_t o = at + element(r, i);

		if (r.kind == EXTREME_F) {
			p.a = further(r.what, ql_load_f64(r.from, r.in, o), p.a);
		} else if (r.kind == PLACE_F || r.kind == PLACE_I) {
			struct part v = {0, i, 0};

			if (r.kind == PLACE_F)
				v.a = ql_load_f64(r.from, r.in, o);
			else
				v.lo = ql_load_i64(r.from, r.in, o);
			join(r, p, v);
		} else if (r.kind == TRUTH) {
			bool is = ql_is_float(r.from) ? ql_load_f64(r.from, r.in, o) != 0
						      : ql_load_i64(r.from, r.in, o) != 0;

			p.lo |= is == (r.what == ANY);
		} else {
			int64_t v = ql_load_i64(r.from, r.in, o);

			if (r.kind == EXTREME_I) {
				p.lo = further(r.what, v, p.lo);
			} else {
				p.lo += v & 0xffffffff;
				p.hi += v >> 32;
			}
		}
	}
	return join_any(r, p);
}

/* ---- one part by one warp ---- */

template <int KIND> QL_DEVICE struct part part_of_warp(const reduction &r, int64_t at, int64_t begin, int64_t end)
{
	struct part p = {0, 0, 0};

	if (KIND == SUM_F32) {
		double wide = 0;

		for (int64_t i = begin; i < end; i += RUN)
			wide += (double)run_f32(r, at, i, i + RUN < end ? i + RUN : end);
		p.a = join_lanes(wide);
	} else if (KIND == SUM_F64) {
		for (int64_t i = begin; i < end; i += BLOCK)
			p.a += block_f64(r, at, i, i + BLOCK < end ? i + BLOCK : end);
	} else {
		p = any_order(r, at, begin, end, threadIdx.x & 31, 32);
	}
	return p;
}

/* ---- one part by all warps of the block; thread 0 has the result ---- */

template <int KIND>
QL_DEVICE struct part part_of_block(const reduction &r, union room &room, int64_t at, int64_t begin, int64_t end)
{
	int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
	int64_t n = end - begin, step = KIND == SUM_F32 ? RUN : BLOCK, pieces = (n + step - 1) / step;
	struct part p = {0, 0, 0};

	for (int64_t k = warp; (KIND == SUM_F32 || KIND == SUM_F64) && k < pieces; k += WARPS) {
		int64_t from = begin + k * step, to = from + step < end ? from + step : end;

		if (KIND == SUM_F32)
			room.run[k][lane] = run_f32(r, at, from, to);
		else
			room.block[k] = block_f64(r, at, from, to);
	}
	if (KIND != SUM_F32 && KIND != SUM_F64)
		room.warp[warp] = any_order(r, at, begin, end, threadIdx.x, THREADS);
	if (QL_BUG(reduce_divergence) && warp == 3)
		return p;
	if (!QL_BUG(reduce_barrier))
		__syncthreads();
	if (KIND == SUM_F32 && warp == 0) {
		double wide = 0;

		for (int64_t k = 0; k < pieces; k++)
			wide += (double)room.run[k][lane];
		p.a = join_lanes(wide);
	}
	if (KIND == SUM_F64)
		for (int64_t k = 0; k < pieces; k++)
			p.a += room.block[k];
	if (KIND != SUM_F32 && KIND != SUM_F64) {
		p = room.warp[0];
		for (int k = 1; k < WARPS; k++)
			join(r, p, room.warp[k]);
	}
	__syncthreads();
	return p;
}

/* ---- results ---- */

/* The 128-bit sum as a double, rounded once. */
QL_DEVICE double wide_sum(const struct part &p)
{
	return (double)((__int128)p.hi * ((int64_t)1 << 32) + p.lo);
}

QL_DEVICE void store(const reduction &r, int64_t i, const struct part &p)
{
	double n = (double)r.along.count, value = p.a;

	if (r.kind == PLACE_F || r.kind == PLACE_I || r.kind == TRUTH) {
		ql_store_i64(r.to, r.out, i, r.kind == TRUTH ? (p.lo != 0) == (r.what == ANY) : p.hi + 1);
		return;
	}
	if (r.kind == EXTREME_I || (r.kind == SUM_I64 && r.what == SUM)) {
		uint64_t sum = r.kind == EXTREME_I ? (uint64_t)p.lo : ((uint64_t)p.hi << 32) + (uint64_t)p.lo;

		ql_store_i64(r.to, r.out, i, (int64_t)sum);
		return;
	}
	if (r.what == MEAN)
		value = n == 0 ? NAN : (r.kind == SUM_I64 ? wide_sum(p) : p.a) / n;
	ql_store_f64(r.to, r.out, i, isnan(value) ? NAN : value);
}

template <int KIND, int TEAM> QL_KERNEL(THREADS) reduce(reduction r)
{
	QL_SHARED(union room, room);
	int64_t each = WARPS / TEAM, first = TEAM == 1 ? threadIdx.x / 32 : 0, lead = TEAM == 1 ? 31 : THREADS - 1;

	for (int64_t item = (int64_t)blockIdx.x * each + first; item < r.results * r.parts;
		item += (int64_t)gridDim.x * each) {
		int64_t result = item / r.parts, begin = item % r.parts * PART;
		int64_t end = begin + PART < r.along.count ? begin + PART : r.along.count, at = place(r, result);
		struct part p = TEAM == 1 ? part_of_warp<KIND>(r, at, begin, end)
					  : part_of_block<KIND>(r, room, at, begin, end);

		if (((int64_t)threadIdx.x & lead) != 0)
			continue;
		if (r.part)
			r.part[item] = p;
		else
			store(r, result, p);
	}
}

/* Joins the parts of each result in order; none is the result of nothing. */
QL_KERNEL(THREADS) join_parts(reduction r)
{
	for (int64_t i = ql_thread(); i < r.results; i += ql_threads()) {
		struct part p = nothing(r);

		if (r.parts > 0)
			p = r.part[i * r.parts];
		for (int64_t k = 1; k < r.parts; k++)
			join(r, p, r.part[i * r.parts + k]);
		store(r, i, p);
	}
}

/* ---- the call ---- */

static uint32_t axes_of(const struct ql_gpu_call *call)
{
	for (int i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, "axis"))
			return (uint32_t)call->options[i].i;
	return ~0u;
}

static enum what what_of(const char *op)
{
	int i = 0;

	while (strcmp(names[i], op))
		i++;
	return (enum what)i;
}

static int64_t parts_of(const struct ql_gpu_call *call)
{
	struct ql_strided along = ql_strided_of(&call->in[0], NULL, axes_of(call));

	return (along.count + PART - 1) / PART;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	int from = ql_element_of(in->dtype);
	enum what what = what_of(call->op);
	int64_t parts = parts_of(call);

	if (in->codes || out->codes || (in->flags & QL_GPU_NUMBER))
		return ql_refuse(p, "wanted plain numbers on the device");
	if (!ql_element_whole(from) || !ql_element_whole(ql_element_of(out->dtype)))
		return ql_refuse(p, "elements of less than a byte");
	if (!ql_dense(out))
		return ql_refuse(p, "the result is a view");
	if (ql_option_integer(call, "last", 0))
		return ql_refuse(p, "the last of equal elements");
	if (parts > INT32_MAX / PART || (parts == 0 && what >= MAX && what <= ARGMIN))
		return ql_refuse(p, parts ? "a result of more than 2^31 elements" : "no elements");
	p->path = !ql_element_float(from) ? "int64" : ql_element_get(from).bits == 64 ? "float64" : "float32";
	p->workspace = parts > 1 ? (uint64_t)(ql_count(out) * parts) * sizeof(struct part) : 0;
	return true;
}

template <int KIND> static cudaError_t launch(const struct ql_gpu_place *place, const reduction &r)
{
	int64_t items = r.results * r.parts;

	if (r.along.count >= LONG)
		return ql_launch(
			reduce<KIND, WARPS>, ql_blocks(items, 1), dim3(THREADS), sizeof(union room), place->stream, r);
	return ql_launch(reduce<KIND, 1>, ql_blocks(items, WARPS), dim3(THREADS), 0, place->stream, r);
}

static cudaError_t launch_kind(const struct ql_gpu_place *place, const reduction &r)
{
	switch (r.kind) {
	case SUM_F32: return launch<SUM_F32>(place, r);
	case SUM_F64: return launch<SUM_F64>(place, r);
	default: return launch<SUM_I64>(place, r); /* and what else has no order; any_order asks for the kind */
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	uint32_t axes = axes_of(call);
	reduction r = {};
	cudaError_t error = cudaSuccess;

	r.kept = ql_strided_of(&call->in[0], NULL, ~axes);
	r.along = ql_strided_of(&call->in[0], NULL, axes);
	r.in = call->in[0].at;
	r.out = call->out[0].at;
	r.results = r.kept.count;
	r.parts = (r.along.count + PART - 1) / PART;
	r.part = r.parts > 1 ? static_cast<struct part *>(call->workspace) : NULL;
	r.from = ql_element_of(call->in[0].dtype);
	r.to = ql_element_of(call->out[0].dtype);
	r.what = what_of(call->op);
	if (r.what == SUM || r.what == MEAN)
		r.kind = !ql_element_float(r.from) ? SUM_I64 : ql_element_get(r.from).bits == 64 ? SUM_F64 : SUM_F32;
	else if (r.what == MAX || r.what == MIN)
		r.kind = ql_element_float(r.from) ? EXTREME_F : EXTREME_I;
	else if (r.what == ARGMAX || r.what == ARGMIN)
		r.kind = ql_element_float(r.from) ? PLACE_F : PLACE_I;
	else
		r.kind = TRUTH;
	if (r.results == 0)
		return cudaSuccess;
	if (r.parts > 0)
		error = launch_kind(place, r);
	if (error || r.parts == 1)
		return error;
	return ql_launch_free(join_parts, ql_blocks(r.results, THREADS), dim3(THREADS), place->stream, r);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_reduce;
const struct ql_gpu_kernel ql_gpu_kernel_reduce = {
	"sum mean max min argmax argmin any all", "reduce", "simt", QL_GPU_BITS, 80, plan, run};
