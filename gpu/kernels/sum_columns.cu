/* SPDX-License-Identifier: MIT
 * sum and mean over outer axes, where neighbouring results have neighbouring elements: threads of a warp have neighbouring results, so
 * each row of 32 of them is read at once. The order is that of tensor/loops/reduce.h, as in reduce.cu: of a float32 sum, element i of
 * a run goes to lane i mod 32, runs of 256 are added to float64 lanes, these are joined after 65536; of a float64 sum, lanes are joined
 * after 1024. A warp has four of the lanes; short sums are added by one thread each. Where the results are too few for the device,
 * sums of runs go to memory and a second kernel adds them.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define ACROSS 32 /* results of a block */
#define LANES 32
#define OWN (LANES / WARPS) /* lanes of a thread */
#define RUN 256             /* elements that lanes add in float32 */
#define BLOCK 1024          /* elements after which lanes of float64 are joined */
#define PART 65536
#define FEWEST 16 /* neighbours for which this pays */
#define SHORT 64    /* elements that one thread adds in any case */
#define MANY 262144 /* results from which it adds a run */
#define LEAST 512   /* blocks that keep any device busy */

struct columns {
	ql_strided kept;
	const void *in;
	void *out;
	void *some;                                     /* (runs, lanes, results) float, or (blocks, results) double */
	double *part;                                   /* (parts, results); NULL: one part */
	int64_t results, count, step, tiles, parts, each; /* step: between elements of a result; each: of a slice */
	int32_t from, to;
	bool mean;
};

struct room {
	double lane[LANES][ACROSS], chain[4][ACROSS];
};

QL_DEVICE int64_t result_at(const columns &k)
{
	return (int64_t)(blockIdx.x % k.tiles) * ACROSS + (threadIdx.x & 31);
}
/* The lane number j of this thread. */
QL_DEVICE int lane_of(int j)
{
	return (int)threadIdx.x / 32 + WARPS * j;
}

template <int TYPE> QL_DEVICE float load(const columns &k, int64_t i)
{
	return ql_load_small(TYPE < 0 ? k.from : TYPE, k.in, i);
}

QL_DEVICE void store(const columns &k, int64_t result, double sum)
{
	sum = k.mean ? sum / (double)k.count : sum;
	ql_store_f64(k.to, k.out, result, isnan(sum) ? NAN : sum);
}

/* The sum of the lanes: four chains of every fourth one. Threads 0 … 31 get that of their result. */
QL_DEVICE double join(room &r, const double lane[OWN])
{
	int column = (int)threadIdx.x & 31, chain = (int)threadIdx.x / 32;
	double sum = 0;

	QL_UNROLL
	for (int j = 0; j < OWN; j++)
		r.lane[lane_of(j)][column] = lane[j];
	if (!QL_BUG(sum_columns_barrier))
		__syncthreads();
	if (chain < 4) {
		for (int i = 0; i < LANES / 4; i++)
			sum += r.lane[chain + 4 * i][column];
		r.chain[chain][column] = sum;
	}
	__syncthreads();
	return (r.chain[0][column] + r.chain[1][column]) + (r.chain[2][column] + r.chain[3][column]);
}

/* ---- float32 ---- */

/* Sums of the thread's lanes over the run from element p on. */
template <int TYPE> QL_DEVICE void add_run(const columns &k, float run[OWN], int64_t at, int64_t p, int64_t end)
{
	float x[OWN][RUN / LANES];

	QL_UNROLL
	for (int j = 0; j < OWN; j++) {
		QL_UNROLL
		for (int i = 0; i < RUN / LANES; i++) {
			int64_t element = p + lane_of(j) + LANES * i;

			x[j][i] = element < end + QL_BUG(sum_columns_bound) ? load<TYPE>(k, at + element * k.step) : 0;
		}
	}
	QL_UNROLL
	for (int j = 0; j < OWN; j++) {
		run[j] = 0;
		QL_UNROLL
		for (int i = 0; i < RUN / LANES; i++)
			run[j] += x[j][i];
	}
}

/* The slice of a tile of results: a part, or some runs whose sums are kept. */
template <int TYPE> QL_KERNEL(THREADS) add_columns(columns k)
{
	QL_SHARED(struct room, room);
	int64_t result = result_at(k), slice = blockIdx.x / k.tiles, at[QL_STRIDED_MOST];
	int64_t begin = slice * k.each, end = begin + k.each < k.count ? begin + k.each : k.count;
	bool there = result < k.results;
	double wide[OWN] = {}, sum;

	ql_strided_at(k.kept, there ? result : 0, at);
	for (int64_t p = begin; p < end; p += RUN) {
		float run[OWN];

		add_run<TYPE>(k, run, at[0], p, end);
		QL_UNROLL
		for (int j = 0; j < OWN; j++) {
			if (k.some && there)
				static_cast<float *>(k.some)[(p / RUN * LANES + lane_of(j)) * k.results + result] =
					run[j];
			wide[j] += (double)run[j];
		}
	}
	if (k.some)
		return;
	sum = join(room, wide);
	if (!there || threadIdx.x >= ACROSS)
		return;
	if (k.part)
		k.part[slice * k.results + result] = sum;
	else
		store(k, result, sum);
}

/* The sums of the runs of a part, in order. */
QL_KERNEL(THREADS) add_runs(columns k)
{
	QL_SHARED(struct room, room);
	int64_t result = result_at(k), part = blockIdx.x / k.tiles, runs = (k.count + RUN - 1) / RUN;
	int64_t first = part * (PART / RUN), end = first + PART / RUN < runs ? first + PART / RUN : runs;
	const float *from = static_cast<const float *>(k.some) + (result < k.results ? result : 0);
	double wide[OWN] = {}, sum;

	QL_UNROLL_FEW
	for (int64_t run = first; run < end; run++) {
		QL_UNROLL
		for (int j = 0; j < OWN; j++)
			wide[j] += (double)from[(run * LANES + lane_of(j)) * k.results];
	}
	sum = join(room, wide);
	if (result >= k.results || threadIdx.x >= ACROSS)
		return;
	if (k.part)
		k.part[part * k.results + result] = sum;
	else
		store(k, result, sum);
}

/* Short sums, one run: a thread for each result. Lane l of the order adds elements l, l + 32 …, four lanes at a time, which go to
 * the four chains. */
template <int TYPE> QL_KERNEL(THREADS) add_short(columns k)
{
	for (int64_t result = ql_thread(); result < k.results; result += ql_threads()) {
		double chain[4] = {0, 0, 0, 0};
		int64_t at[QL_STRIDED_MOST];

		ql_strided_at(k.kept, result, at);
		for (int64_t l = 0; l < LANES && l < k.count; l += 4) {
			float lane[4] = {0, 0, 0, 0};

			QL_UNROLL_FEW
			for (int64_t i = l; i < k.count; i += LANES) {
				QL_UNROLL
				for (int c = 0; c < 4; c++)
					if (i + c < k.count)
						lane[c] += load<TYPE>(k, at[0] + (i + c) * k.step);
			}
			QL_UNROLL
			for (int c = 0; c < 4 - QL_BUG(sum_columns_chain); c++)
				chain[c] += (double)lane[c];
		}
		store(k, result, (chain[0] + chain[1]) + (chain[2] + chain[3]));
	}
}

/* ---- float64 ---- */

QL_KERNEL(THREADS) add_doubles(columns k)
{
	QL_SHARED(struct room, room);
	int64_t result = result_at(k), block = blockIdx.x / k.tiles, at[QL_STRIDED_MOST];
	int64_t begin = block * BLOCK, end = begin + BLOCK < k.count ? begin + BLOCK : k.count;
	double lane[OWN], sum;

	ql_strided_at(k.kept, result < k.results ? result : 0, at);
	QL_UNROLL
	for (int j = 0; j < OWN; j++) {
		lane[j] = 0;
		QL_UNROLL_FEW
		for (int64_t i = begin + lane_of(j); i < end; i += LANES)
			lane[j] += static_cast<const double *>(k.in)[at[0] + i * k.step];
	}
	sum = join(room, lane);
	if (result < k.results && threadIdx.x < ACROSS)
		static_cast<double *>(k.some)[block * k.results + result] = sum;
}

/* Sums of blocks to parts. */
QL_KERNEL(THREADS) add_blocks(columns k)
{
	int64_t blocks = (k.count + BLOCK - 1) / BLOCK, each = PART / BLOCK;

	for (int64_t i = ql_thread(); i < k.results * k.parts; i += ql_threads()) {
		int64_t result = i % k.results, first = i / k.results * each;
		double sum = 0;

		for (int64_t b = first; b < first + each && b < blocks; b++)
			sum += static_cast<const double *>(k.some)[b * k.results + result];
		if (k.part)
			k.part[i] = sum;
		else
			store(k, result, sum);
	}
}

/* ---- parts ---- */

QL_KERNEL(THREADS) join_columns(columns k)
{
	for (int64_t i = ql_thread(); i < k.results; i += ql_threads()) {
		double sum = k.part[i];

		for (int64_t p = 1; p < k.parts; p++)
			sum += k.part[p * k.results + i];
		store(k, i, sum);
	}
}

/* ---- the call ---- */

/* All but addresses; false: not for these kernels. */
static bool columns_of(const struct ql_gpu_call *call, columns *k)
{
	const struct ql_gpu_option *axis = ql_option(call, "axis");
	uint32_t axes = axis ? (uint32_t)axis->i : ~0u;
	ql_strided along = ql_strided_of(call->in, NULL, axes);
	int last;

	k->kept = ql_strided_of(call->in, NULL, ~axes);
	last = k->kept.rank - 1;
	k->results = k->kept.count;
	k->count = along.count;
	k->step = along.stride[0][0];
	k->from = ql_element_of(call->in->dtype);
	k->to = ql_element_of(call->out->dtype);
	k->mean = !strcmp(call->op, "mean");
	k->tiles = (k->results + ACROSS - 1) / ACROSS;
	k->parts = (k->count + PART - 1) / PART;
	return along.rank == 1 && k->results && k->count > 1 && k->kept.stride[0][last] == 1 &&
	       k->kept.shape[last] >= FEWEST;
}

/* Whether a thread adds all of a float32 sum. */
static bool is_short(const columns &k)
{
	return k.from != QL_E_float64 && (k.count <= SHORT || (k.count <= RUN && k.results >= MANY));
}

/* Elements of a slice of a float32 sum: a part, or fewer where results are few. */
static int64_t slice_of(const columns &k)
{
	int64_t runs = (k.count + RUN - 1) / RUN, slices = LEAST / k.tiles;

	if (is_short(k) || k.tiles * k.parts >= LEAST / 2 || runs < 8)
		return PART;
	return (runs / slices > 1 ? (runs + slices - 1) / slices : 1) * RUN;
}

static uint64_t some_of(const columns &k)
{
	if (k.from == QL_E_float64)
		return (uint64_t)(k.results * ((k.count + BLOCK - 1) / BLOCK)) * sizeof(double);
	return slice_of(k) == PART ? 0 : (uint64_t)(k.results * ((k.count + RUN - 1) / RUN) * LANES) * sizeof(float);
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	columns k = {};

	if (in->codes || out->codes || (in->flags & QL_GPU_NUMBER) || !ql_element_float(ql_element_of(in->dtype)) ||
		!ql_element_whole(ql_element_of(in->dtype)) || !ql_dense(out))
		return ql_refuse(p, "wanted plain floats on the device");
	if (!columns_of(call, &k) || k.parts * k.tiles > INT32_MAX / (PART / RUN))
		return ql_refuse(p, "no sum of columns");
	p->path = k.from == QL_E_float64 ? "float64" : "float32";
	p->workspace = (some_of(k) + 7) / 8 * 8 + (k.parts > 1 ? (uint64_t)(k.parts * k.results) * sizeof(double) : 0);
	return true;
}

template <int TYPE> static cudaError_t launch_f32(const struct ql_gpu_place *place, const columns &k)
{
	dim3 grid((unsigned)(k.tiles * ((k.count + k.each - 1) / k.each))), block(THREADS);

	if (is_short(k))
		return ql_launch_free(add_short<TYPE>, ql_blocks(k.results, THREADS), block, place->stream, k);
	return ql_launch(add_columns<TYPE>, grid, block, sizeof(room), place->stream, k);
}

static cudaError_t launch_any(const struct ql_gpu_place *place, const columns &k)
{
	switch (k.from) {
	case QL_E_float32: return launch_f32<QL_E_float32>(place, k);
	case QL_E_float16: return launch_f32<QL_E_float16>(place, k);
	case QL_E_bfloat16: return launch_f32<QL_E_bfloat16>(place, k);
	default: return launch_f32<-1>(place, k);
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	columns k = {};
	uint64_t some;
	cudaError_t error;

	columns_of(call, &k);
	some = some_of(k);
	k.in = call->in->at;
	k.out = call->out->at;
	k.each = slice_of(k);
	k.some = some ? call->workspace : NULL;
	if (k.parts > 1)
		k.part = reinterpret_cast<double *>(static_cast<char *>(call->workspace) + (some + 7) / 8 * 8);
	if (k.from == QL_E_float64) {
		error = ql_launch(add_doubles, dim3((unsigned)(k.tiles * ((k.count + BLOCK - 1) / BLOCK))),
			dim3(THREADS), sizeof(room), place->stream, k);
		if (!error)
			error = ql_launch_free(add_blocks, ql_blocks(k.results * k.parts, THREADS), dim3(THREADS),
				place->stream, k);
	} else {
		error = launch_any(place, k);
		if (!error && some)
			error = ql_launch(add_runs, dim3((unsigned)(k.tiles * k.parts)), dim3(THREADS), sizeof(room),
				place->stream, k);
	}
	if (error || k.parts == 1)
		return error;
	return ql_launch_free(join_columns, ql_blocks(k.results, THREADS), dim3(THREADS), place->stream, k);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_sum_columns;
const struct ql_gpu_kernel ql_gpu_kernel_sum_columns = {
	"sum mean", "sum_columns", "simt", QL_GPU_BITS, 80, plan, run};
