/* SPDX-License-Identifier: MIT
 * observe: adds the values of one tensor to the histogram of an observer that stays on the device. Cells, window and sums are those of
 * quant/ranges/histogram.c: pieces of 1024 values in 16 lanes of double, pieces in order within a part, parts in order, as
 * ql_count_parts cuts them. Counts are integers, so their order does not matter.
 *
 * Operands: the values, dense float32; counts, int64 (2 * cells), of positive, then negative values; moments, float64 (8): number of
 * finite values, of others, smallest, largest, sums of x, x² and |x|, the key of the first cell. The last two are
 * written.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#include "gpu/kernels/number.h"

#define THREADS 256
#define PIECE 1024
#define LANES 16
#define PARTS 8 /* QL_OBSERVE_SLOTS */
#define ALL 0xffffffffu
#define FIELDS 7

/* Sums over some values. Fields as in the operand. */
struct moments {
	double field[FIELDS];
};
enum { COUNT, NONFINITE, LO, HI, SUM, SUMSQ, SUMABS, LOW };

/* What kernels hand on. */
struct head {
	int32_t low;      /* the window of the batch */
	int32_t kept, by; /* cells that leave the window of the counts, of the batch */
};

struct work {
	const float *x;
	int64_t n, part; /* values in all and of a part */
	int64_t each; /* entries of a part: its pieces, and what is left of the last one behind a multiple of LANES */
	int32_t parts, shift, per_octave, octaves, cells;
	unsigned long long *counts, *merged;
	double *state;
	head *top;
	moments *entry;
	uint32_t *batch; /* counts of the batch */
};

/* ---- sums ---- */

QL_DEVICE double field_joined(int f, double a, double b)
{
	if (f == LO)
		return b < a ? b : a;
	if (f == HI)
		return b > a ? b : a;
	return a + b;
}

/* Field f of `to` with that of `from` added; the counts are those before. */
QL_DEVICE double field_added(int f, double to_count, double to, double from_count, double from)
{
	if (f == NONFINITE)
		return to + from;
	if (from_count == 0)
		return to;
	if (to_count == 0 && (f == LO || f == HI))
		return from;
	return field_joined(f, to, from);
}

/* 16 lanes for an entry. */
QL_KERNEL(THREADS) measure(work w)
{
	int lane = (int)threadIdx.x % LANES;
	int64_t entries = w.parts * w.each, step = (int64_t)gridDim.x * (THREADS / LANES);
	int64_t first = (int64_t)blockIdx.x * (THREADS / LANES) + threadIdx.x / LANES;

	for (int64_t e = first; e - threadIdx.x / LANES < entries; e += step) { /* a warp stays together */
		int64_t p = e / w.each, k = e % w.each, begin = p * w.part,
			n = w.n - begin < w.part ? w.n - begin : w.part;
		int64_t at = k * PIECE, end = at + PIECE < n ? at + PIECE : n;
		bool rest = k == w.each - 1;
		double sum = 0, sumsq = 0, sumabs = 0;
		float lo = INFINITY, hi = -INFINITY;
		int32_t bad = 0, all = 0;

		n = e < entries && n > 0 ? n : 0;
		if (rest) {
			at = n - n % LANES;
			end = n + QL_BUG(observe_rest);
		} else {
			end = end - end % LANES;
		}
		for (int64_t i = at + lane; i < end && n; i += LANES) {
			float v = w.x[begin + i];
			bool finite = v - v == 0;
			double wide = finite ? (double)v : 0.0;

			lo = finite && v < lo ? v : lo;
			hi = finite && v > hi ? v : hi;
			sum += wide;
			sumsq += wide * wide;
			sumabs += fabs(wide);
			bad += !finite;
			all++;
		}
		for (int d = LANES / 2; d; d /= 2) {
			float low = __shfl_down_sync(ALL, lo, d, LANES), high = __shfl_down_sync(ALL, hi, d, LANES);

			lo = low < lo ? low : lo;
			hi = high > hi ? high : hi;
			sum += __shfl_down_sync(ALL, sum, d, LANES);
			sumsq += __shfl_down_sync(ALL, sumsq, d, LANES);
			sumabs += __shfl_down_sync(ALL, sumabs, d, LANES);
			bad += __shfl_down_sync(ALL, bad, d, LANES);
			all += __shfl_down_sync(ALL, all, d, LANES);
		}
		if (lane == 0 && e < entries)
			w.entry[e] = {{(double)(all - bad), (double)bad, (double)lo, (double)hi, sum, sumsq, sumabs}};
	}
}

struct folding {
	moments chunk[PARTS][32], part[PARTS];
};

/* ql_moments_add of all entries of a part, a warp for a part: lane f has field f. */
QL_DEVICE void fold_part(const work &w, folding &s, int p, int lane)
{
	double to = 0, count = 0;

	for (int64_t first = 0; first < w.each; first += 32) {
		int64_t left = w.each - first < 32 ? w.each - first : 32;

		if (lane < left)
			s.chunk[p][lane] = w.entry[p * w.each + first + lane];
		__syncwarp();
		for (int i = 0; i < left && lane < FIELDS; i++) {
			const double *from = s.chunk[p][i].field;

			to = field_added(lane, count, to, from[COUNT], from[lane]);
			count += from[COUNT];
		}
		__syncwarp();
	}
	if (lane < FIELDS)
		s.part[p].field[lane] = to;
}

/* The window for magnitudes up to `most`. */
QL_DEVICE int32_t window_of(const work &w, double most)
{
	int32_t bits = (int32_t)(ql_bits_of((float)most) & 0x7fffffffu);
	int32_t octave = bits / (1 << w.shift) / w.per_octave - (w.octaves - 1);

	return octave < 0 ? 0 : octave * w.per_octave;
}

QL_DEVICE void add_moments(double *to, const double *from)
{
	double count = to[COUNT];

	for (int f = FIELDS - 1; f >= 0; f--) /* the count last */
		to[f] = field_added(f, count, to[f], from[COUNT], from[f]);
}

/* One block: the moments of the batch, the window, and both added to what was there. */
QL_KERNEL(PARTS * 32) fold(work w)
{
	QL_SHARED(struct folding, s);
	int p = (int)threadIdx.x / 32;
	double batch[FIELDS] = {};

	if (p < w.parts)
		fold_part(w, s, p, (int)threadIdx.x % 32);
	if (!QL_BUG(observe_fold))
		__syncthreads();
	if (threadIdx.x)
		return;
	for (int i = 0; i < w.parts; i++)
		add_moments(batch, s.part[i].field);
	int32_t low = batch[COUNT] > 0 ? window_of(w, fmax(fabs(batch[LO]), fabs(batch[HI]))) : 0;
	int32_t before = (int32_t)w.state[LOW], after = before > low ? before : low;

	*w.top = {low, after - before, after - low};
	add_moments(w.state, batch);
	w.state[LOW] = (double)after;
}

/* ---- counts ---- */

QL_KERNEL(THREADS) count(work w)
{
	int32_t low = w.top->low;

	for (int64_t i = ql_thread(); i < w.n; i += ql_threads()) {
		uint32_t bits = ql_bits_of(w.x[i]);
		int32_t size = (int32_t)(bits & 0x7fffffffu), cell = (size >> w.shift) - low + 1;

		cell = (cell < 0 ? 0 : cell) + (bits >> 31 ? w.cells : 0);
		if (size < 0x7f800000)
			atomicAdd(&w.batch[cell], 1u);
	}
}

QL_DEVICE void add_cell(const work &w, int32_t sign, int32_t c, int32_t by, unsigned long long n)
{
	if (n)
		atomicAdd(&w.merged[sign * w.cells + (c > by ? c - by : 0)], n);
}

/* Both under the window of both. */
QL_KERNEL(THREADS) merge(work w)
{
	head h = *w.top;

	for (int64_t i = ql_thread(); i < 2 * (int64_t)w.cells; i += ql_threads()) {
		int32_t sign = i >= w.cells, c = (int32_t)i - sign * w.cells;

		add_cell(w, sign, c, h.kept, w.counts[i]);
		add_cell(w, sign, c, h.by, w.batch[i]);
	}
}

/* ---- the call ---- */

static bool is_dense(const struct ql_gpu_tensor *t, int element)
{
	return !t->codes && !(t->flags & QL_GPU_NUMBER) && ql_element_of(t->dtype) == element && ql_dense(t);
}

static int64_t entries_of(int64_t n, int64_t parts)
{
	int64_t part = (n + parts - 1) / parts;

	return (part + PIECE - 1) / PIECE + 1;
}

/* Bytes of the workspace, in parts that are multiples of 8. */
static uint64_t bytes_of(int64_t n, int64_t parts, int64_t counts)
{
	return 16 + (uint64_t)(parts * entries_of(n, parts)) * sizeof(moments) + (uint64_t)counts * (8 + 4);
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	int64_t parts = ql_option_integer(call, "parts", 0);

	if (call->n_in != 3 || !is_dense(&call->in[0], QL_E_float32) || !is_dense(&call->in[1], QL_E_int64) ||
		!is_dense(&call->in[2], QL_E_float64) || ql_count(&call->in[2]) != FIELDS + 1)
		return ql_refuse(p, "wanted dense values, counts and moments");
	if (parts < 1 || parts > PARTS || ql_count(&call->in[1]) % 2 || ql_count(&call->in[0]) > UINT32_MAX)
		return ql_refuse(p, "wanted counts of two signs, 1 to 8 parts, and at most 2^32 values");
	p->path = "float32";
	p->workspace = bytes_of(ql_count(&call->in[0]), parts, ql_count(&call->in[1]));
	return true;
}

static void set_work(const struct ql_gpu_call *call, work *w)
{
	int64_t counts = ql_count(&call->in[1]);
	char *memory = static_cast<char *>(call->workspace);

	w->x = static_cast<const float *>(call->in[0].at);
	w->n = ql_count(&call->in[0]);
	w->parts = (int32_t)ql_option_integer(call, "parts", 1);
	w->part = (w->n + w->parts - 1) / w->parts;
	w->each = entries_of(w->n, w->parts);
	w->shift = (int32_t)ql_option_integer(call, "shift", 0);
	w->per_octave = (int32_t)ql_option_integer(call, "per_octave", 1);
	w->octaves = (int32_t)ql_option_integer(call, "octaves", 1);
	w->cells = (int32_t)(counts / 2);
	w->counts = static_cast<unsigned long long *>(call->in[1].at);
	w->state = static_cast<double *>(call->in[2].at);
	w->top = reinterpret_cast<head *>(memory);
	w->entry = reinterpret_cast<moments *>(memory + 16);
	w->merged = reinterpret_cast<unsigned long long *>(w->entry + w->parts * w->each);
	w->batch = reinterpret_cast<uint32_t *>(w->merged + counts);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	work w = {};
	dim3 threads(THREADS);
	size_t bytes;
	cudaError_t error;

	set_work(call, &w);
	if (w.n == 0)
		return cudaSuccess;
	bytes = (size_t)w.cells * 2 * sizeof(*w.counts);
	error = cudaMemsetAsync(w.merged, 0, bytes + bytes / 2, place->stream);
	if (!error)
		error = ql_launch(measure, ql_blocks(w.parts * w.each, THREADS / LANES), threads, 0, place->stream, w);
	if (!error)
		error = ql_launch(fold, dim3(1), dim3(PARTS * 32), sizeof(folding), place->stream, w);
	if (!error)
		error = ql_launch_free(count, ql_blocks(w.n, THREADS), threads, place->stream, w);
	if (!error)
		error = ql_launch_free(merge, ql_blocks(2 * (int64_t)w.cells, THREADS), threads, place->stream, w);
	return error ? error : cudaMemcpyAsync(w.counts, w.merged, bytes, cudaMemcpyDeviceToDevice, place->stream);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_observe;
const struct ql_gpu_kernel ql_gpu_kernel_observe = {"observe", "observe", "simt", QL_GPU_BITS, 80, plan, run};
