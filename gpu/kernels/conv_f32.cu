/* SPDX-License-Identifier: MIT
 * conv2d, conv2d_input and conv2d_weight in float32, and of 16-bit floats through it; weights may be affine codes, which are
 * decoded on the way.
 *
 * Ordered (QL_GPU_ORDERED): one sum per element from 0, each product rounded, then added, in order of (channel, tap), as
 * tensor/conv/conv.c adds them; sums of the weight's gradient in order of (image, pixel) within the parts of
 * tensor/conv/weight.c, which are then added in order. Else products are fused with their additions, and the parts are as
 * many as occupy a device; sums of results and of the input's gradient are cut into parts, too, where their tiles are few.
 */
#include "gpu/kernels/act.h"
#include "gpu/kernels/conv_tiles.h"

#ifdef QL_EMULATION
#define WANTED 8 /* so that small tests run all sizes */
#else
#define WANTED 264 /* blocks that occupy a device */
#endif
#define FEWEST (4 * DEEP) /* products of a part of a sum */

/* ---- results ---- */

QL_DEVICE float finished(const job &w, int64_t row, float sum)
{
	if (w.bias)
		sum += ql_load_float(w.bias_type, w.bias, row);
	return ql_activate(w.act, sum);
}

/* Where the sum of a line and a column of a group goes; the weight's gradient is dense. */
QL_DEVICE void store(const job &w, int64_t at, int64_t row, float sum)
{
	if (w.s.target.type == QL_E_float32)
		static_cast<float *>(w.s.target.at)[at] = finished(w, row, sum);
	else
		ql_store_small(w.s.target.type, w.s.target.at, at, finished(w, row, sum));
}

QL_DEVICE void store_part(const job &w, int64_t part, int64_t at, int64_t row, float sum)
{
	if (w.sums)
		w.sums[part * w.results + at] = sum;
	else
		store(w, at, row, sum);
}

template <int M, int N> QL_DEVICE void keep(float (*to)[N + 4], const float (*sum)[N / 16])
{
	int row = (int)threadIdx.x / 16, column = (int)threadIdx.x % 16;

	QL_UNROLL
	for (int i = 0; i < M / 16; i++) {
		QL_UNROLL
		for (int j = 0; j < N / 16; j++)
			to[mine<M>(row, i)][mine<N>(column, j)] = sum[i][j];
	}
}

/* One tile of a grid of pixels. */
template <int M, int N>
QL_DEVICE void result_tile(
	tiles<M, N> &t, const job &w, const ql_phase &phase, int64_t group, int64_t i0, int64_t j0, int64_t part)
{
	int64_t plane = w.s.target.h * w.s.target.w, k = w.s.channels * phase.taps[0].count * phase.taps[1].count;
	int64_t begin = part * w.each, end = w.each && begin + w.each < k ? begin + w.each : k;
	float sum[M / 16][N / 16] = {};

	for (int j = (int)threadIdx.x; j < N; j += THREADS)
		t.pixel[j] = ql_pixel_of(w.s, phase, j0 + j);
	sums_of<M, N>(t, w, phase, group, i0, begin, end, sum);
	keep<M, N>(t.sum, sum);
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < M * N; e += THREADS) {
		int64_t row = group * w.s.rows + i0 + e / N, to = t.pixel[e % N].to;

		if (i0 + e / N < w.s.rows && to >= 0)
			store_part(w, part, to + row * plane, row, t.sum[e / N][e % N]);
	}
	__syncthreads(); /* before the next tile is written */
}

template <int M, int N> QL_KERNEL(BOUNDS(M, N)) conv_sums(job w)
{
	typedef tiles<M, N> shared;
	QL_SHARED(shared, t);
	int64_t down = (w.s.rows + M - 1) / M, across = (w.s.pixels + N - 1) / N,
		all = down * across * w.s.groups * w.s.phases;

	for (int64_t i = blockIdx.x; i < all * w.parts.count; i += gridDim.x) {
		int64_t tile = i % all, j0 = tile / down % across * N, rest = tile / (down * across);
		ql_phase phase = ql_phase_of(w.s, rest / w.s.groups);

		if (j0 < phase.pixels)
			result_tile<M, N>(t, w, phase, rest % w.s.groups, tile % down * M, j0, i / all);
	}
}

/* The column of the weight's gradient: where its channel and tap are from a pixel's place. */
QL_DEVICE ql_pixel column_of(const job &w, int64_t j)
{
	ql_phase whole;
	ql_tap tap;

	for (int d = 0; d < 2; d++)
		whole.taps[d] = ql_taps_of(w.s, d, 0);
	tap = ql_tap_of(w.s, whole, j < w.columns ? j : 0);
	return {tap.source, j < w.columns ? 0 : -1, tap.y, tap.x};
}

template <int M, int N>
QL_DEVICE void weight_tile(tiles<M, N> &t, const job &w, int64_t part, int64_t group, int64_t i0, int64_t j0)
{
	float sum[M / 16][N / 16] = {};

	for (int j = (int)threadIdx.x; j < N; j += THREADS)
		t.pixel[j] = column_of(w, j0 + j);
	weight_sums<M, N>(t, w, group, i0, ql_part_pixel(w.parts, part), ql_part_pixel(w.parts, part + 1), sum);
	keep<M, N>(t.sum, sum);
	__syncthreads();
	QL_ROLLED
	for (int e = (int)threadIdx.x; e < M * N; e += THREADS) {
		int64_t row = i0 + e / N, column = j0 + e % N;

		if (row < w.s.rows && column < w.columns)
			store_part(w, part, (group * w.s.rows + row) * w.columns + column, 0, t.sum[e / N][e % N]);
	}
	__syncthreads(); /* before the next tile is written */
}

template <int M, int N> QL_KERNEL(BOUNDS(M, N)) conv_weight(job w)
{
	typedef tiles<M, N> shared;
	QL_SHARED(shared, t);
	int64_t down = (w.s.rows + M - 1) / M, across = (w.columns + N - 1) / N, all = down * across * w.s.groups;

	for (int64_t i = blockIdx.x; i < all * w.parts.count; i += gridDim.x)
		weight_tile<M, N>(t, w, i / all, i % all / (down * across), i % down * M, i / down % across * N);
}

/* The weight's gradient of groups of one or two outputs in the order of the CPU: for each image of a block the products of
 * 16 lanes of its columns, row by row; the lanes are joined in order. Half a warp has one element of one part. */
#define LANES 16
#define FEW_ROWS 2

QL_DEVICE float block_sum(const job &w, int64_t block, int64_t row, const ql_pixel &column, int64_t from, float total)
{
	const ql_conv_parts &p = w.parts;
	int lane = (int)threadIdx.x % LANES;
	int64_t first = ql_block_pixel(p, block), image = first / (p.grid[0] * p.grid[1]);
	int64_t y0 = first / p.grid[1] % p.grid[0], x0 = first % p.grid[1];
	int64_t images = image + p.images < p.all_images ? image + p.images : p.all_images;
	int64_t bottom = y0 + p.rows < p.grid[0] ? y0 + p.rows : p.grid[0];
	int64_t right = x0 + p.columns < p.grid[1] ? x0 + p.columns : p.grid[1];

	for (int64_t n = image; n < images; n++) {
		float sum = 0, joined = 0;

		for (int64_t y = y0; y < bottom; y++)
			for (int64_t x = x0 + lane; x < right; x += LANES) {
				int32_t h = (int32_t)(y * w.s.step[0]), c = (int32_t)(x * w.s.step[1]);
				bool in = ql_is_inside(w.s, h + column.y, c + column.x);
				float v = in ? load(w.s.source, ql_images_at(w.s.source, n, 0, h, c) + from) : 0;

				sum += v * load(w.g, ql_images_at(w.g, n, row, y, x));
			}
		for (int l = 0; l < LANES; l++)
			joined += __shfl_sync(0xffffffffu, sum, l, LANES);
		total += joined;
	}
	return total;
}

QL_KERNEL(THREADS) few_weights(job w)
{
	int64_t all = w.s.groups * w.s.rows * w.columns, items = all * w.parts.count;

	/* both halves of a warp go round equally often: shuffles need them */
	for (int64_t i = ql_thread() / LANES; i / 2 * 2 < items; i += ql_threads() / LANES) {
		int64_t at = (i < items ? i : 0) % all, part = (i < items ? i : 0) / all, row = at / w.columns;
		ql_pixel column = column_of(w, at % w.columns);
		int64_t from = column.from + row / w.s.rows * w.s.channels * w.s.source.stride[1];
		int64_t begin = ql_part_block(w.parts, part), end = ql_part_block(w.parts, part + 1);
		float sum = 0;

		for (int64_t b = begin; b < end; b++)
			sum = block_sum(w, b, row, column, from, sum);
		if (i < items && threadIdx.x % LANES == 0)
			store_part(w, part, at, 0, sum);
	}
}

/* Adds the parts of each sum in order. */
QL_KERNEL(THREADS) add_parts(job w)
{
	int64_t plane = w.s.target.h * w.s.target.w, rows = w.s.groups * w.s.rows;

	for (int64_t i = ql_thread(); i < w.results; i += ql_threads()) {
		float sum = w.sums[i];

		for (int p = 1; p < w.parts.count - QL_BUG(conv_parts); p++)
			sum += w.sums[p * w.results + i];
		store(w, i, w.columns ? 0 : i / plane % rows, sum);
	}
}

/* ---- the call ---- */

static bool is_number(const struct ql_gpu_tensor *t)
{
	int type = ql_element_of(t->dtype);

	return ql_images_float(t) && type != QL_E_float64;
}

/* A weight of affine codes with one scale, or one for each output, for conv2d. */
static bool codes_of(const struct ql_gpu_call *call, struct job *w, struct ql_gpu_plan *p)
{
	const struct ql_gpu_codes *c = call->in[1].codes;

	if (strcmp(call->op, "conv2d"))
		return ql_refuse(p, "a gradient of codes");
	if (!ql_scales_fit(&call->in[1], p))
		return false;
	if (c->block || c->axis > 0 || c->shift)
		return ql_refuse(p, "scale of a weight that varies along the summed axes");
	w->codes = true;
	w->per_line = c->axis == 0;
	w->scales = ql_scales_of(c);
	return true;
}

static bool epilogue_of(const struct ql_gpu_call *call, struct job *w, struct ql_gpu_plan *p)
{
	const struct ql_gpu_option *act = ql_option(call, "act");
	const struct ql_gpu_tensor *bias = call->n_in > 2 ? &call->in[2] : NULL;

	w->act = ql_act_of(act ? act->s : NULL);
	if (w->act < 0)
		return ql_refuse(p, "an activation that the kernel does not have");
	if (!bias)
		return true;
	w->bias = bias->at;
	w->bias_type = ql_element_of(bias->dtype);
	if (bias->codes || (bias->flags & QL_GPU_NUMBER) || !ql_element_whole(w->bias_type) ||
		!ql_element_float(w->bias_type) || w->bias_type == QL_E_float64 || bias->rank != 1 || !ql_dense(bias) ||
		bias->shape[0] != w->s.groups * w->s.rows)
		return ql_refuse(p, "wanted a dense bias of floats");
	return true;
}

enum size { SMALL, MEDIUM, LARGE };
static const int64_t SIDES[][2] = {{32, 64}, {64, 128}, {128, 128}};

static int64_t tiles_of(const struct job *w, int64_t columns, int size)
{
	return (w->s.rows + SIDES[size][0] - 1) / SIDES[size][0] * ((columns + SIDES[size][1] - 1) / SIDES[size][1]) *
	       w->s.groups * w->s.phases;
}

static int size_of(const struct job *w, int64_t columns)
{
	if (w->s.rows > 64 && tiles_of(w, columns, LARGE) * w->parts.count >= WANTED)
		return LARGE;
	return w->s.rows > 32 && tiles_of(w, columns, MEDIUM) * w->parts.count >= WANTED / 2 ? MEDIUM : SMALL;
}

static void parts_of(struct job *w, bool ordered)
{
	int64_t taps = w->s.w.kernel[0] * w->s.w.kernel[1], pixels = w->s.source.n * w->s.w.out[0] * w->s.w.out[1];
	int64_t tiles = tiles_of(w, w->columns, w->s.rows > 64 ? LARGE : SMALL), parts;
	double bytes = 4.0 * (double)w->s.groups * (double)w->s.rows * (double)w->columns;

	w->parts = ql_conv_blocks(w->s.source.n, w->s.w.out);
	if (ordered) {
		ql_conv_parts_ordered(&w->parts, w->s.groups, w->s.channels, taps, w->s.rows);
		return;
	}
	parts = ql_parts_ceil(2 * WANTED, ql_parts_max(1, tiles));
	parts = parts < pixels / 128 ? parts : ql_parts_max(1, pixels / 128);
	if ((double)parts * bytes > QL_CONV_PART_BYTES)
		parts = ql_parts_max(1, (int64_t)(QL_CONV_PART_BYTES / bytes));
	w->parts.each = ql_parts_ceil(ql_parts_ceil(ql_parts_max(1, pixels), parts), DEEP) * DEEP;
	w->parts.count = (int32_t)ql_parts_ceil(ql_parts_max(1, pixels), w->parts.each);
}

/* Cuts the sums of results that are too few to occupy a device: parts of at least FEWEST products. */
static void cut_sums(struct job *w)
{
	int64_t tiles = tiles_of(w, w->s.pixels, SMALL), k = w->s.channels, parts;

	for (int d = 0; d < 2; d++)
		k *= ql_parts_ceil(w->s.w.kernel[d], w->s.period[d]);
	parts = ql_parts_ceil(2 * WANTED, ql_parts_max(1, tiles));
	parts = parts < k / FEWEST ? parts : k / FEWEST;
	if (tiles >= WANTED || parts < 2)
		return;
	if ((double)parts * 4 * (double)w->results > QL_CONV_PART_BYTES)
		return;
	w->each = ql_parts_ceil(ql_parts_ceil(k, parts), DEEP) * DEEP;
	w->parts.count = (int32_t)ql_parts_ceil(k, w->each);
}

static bool results_of(const struct ql_gpu_call *call, struct job *w, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	bool weight = !strcmp(call->op, "conv2d_weight"), back = !strcmp(call->op, "conv2d_input");
	const struct ql_gpu_tensor *x = back     ? out
					: weight ? &in[1]
						 : &in[0],
				   *k = weight ? out : &in[1], *y = back || weight ? &in[0] : out;

	if (!ql_conv_geometry(call, x, k, y, &w->s.w, &w->s.groups, p))
		return false;
	ql_conv_sums_of(&w->s, back, x, k, y);
	w->results = ql_count(out);
	if (!weight) {
		if (!(call->flags & QL_GPU_ORDERED))
			cut_sums(w);
		p->workspace = w->parts.count > 1 ? (uint64_t)(w->parts.count * w->results) * 4 : 0;
		w->sums = w->parts.count > 1 ? static_cast<float *>(call->workspace) : NULL;
		return true;
	}
	w->s.target = ql_images_of(out);
	w->g = ql_images_of(y);
	w->columns = w->s.channels * w->s.w.kernel[0] * w->s.w.kernel[1];
	parts_of(w, (call->flags & QL_GPU_ORDERED) != 0);
	p->workspace = w->parts.count > 1 ? (uint64_t)(w->parts.count * w->results) * 4 : 0;
	w->sums = w->parts.count > 1 ? static_cast<float *>(call->workspace) : NULL;
	return true;
}

/* Sets w; false: p->why says why not. */
static bool job_of(const struct ql_gpu_call *call, struct job *w, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *out = call->out;

	*w = {};
	w->parts.count = 1;
	if (call->n_in < 2 || out->codes || !ql_dense(out) || !is_number(out))
		return ql_refuse(p, "wanted a dense result of floats of at most 32 bits");
	if (!is_number(&call->in[0]) || !(call->in[1].codes ? codes_of(call, w, p) : is_number(&call->in[1])))
		return p->why[0] ? false : ql_refuse(p, "wanted floats of at most 32 bits");
	if (!results_of(call, w, p) || !epilogue_of(call, w, p))
		return false;
	w->fused = !(call->flags & QL_GPU_ORDERED);
	p->path = "float32";
	p->exact = call->flags & QL_GPU_ORDERED ? QL_GPU_BITS : QL_GPU_TOLERANCE;
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct job w;

	return job_of(call, &w, p);
}

template <int M, int N> static cudaError_t launch(const struct ql_gpu_place *place, const struct job *w, int size)
{
	int64_t blocks = tiles_of(w, w->columns ? w->columns : w->s.pixels, size) * w->parts.count;

	return ql_launch(w->columns ? conv_weight<M, N> : conv_sums<M, N>, ql_blocks(blocks, 1), dim3(THREADS),
		sizeof(tiles<M, N>), place->stream, *w);
}

static cudaError_t launch_size(const struct ql_gpu_place *place, const struct job *w)
{
	int size = size_of(w, w->columns ? w->columns : w->s.pixels);

	switch (size) {
	case LARGE: return launch<128, 128>(place, w, size);
	case MEDIUM: return launch<64, 128>(place, w, size);
	default: return launch<32, 64>(place, w, size);
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	bool ordered = call->flags & QL_GPU_ORDERED;
	struct ql_gpu_plan p = {};
	struct job w;
	cudaError_t error;

	if (!job_of(call, &w, &p))
		return cudaErrorInvalidValue;
	if (ql_count(call->out) == 0)
		return cudaSuccess;
	if (ordered && w.columns && w.s.rows <= FEW_ROWS)
		error = ql_launch(few_weights,
			ql_blocks(w.s.groups * w.s.rows * w.columns * w.parts.count, THREADS / LANES), dim3(THREADS), 0,
			place->stream, w);
	else
		error = launch_size(place, &w);
	if (!error && w.sums)
		error = ql_launch_free(add_parts, ql_blocks(w.results, THREADS), dim3(THREADS), place->stream, w);
	return error;
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_conv_f32;
const struct ql_gpu_kernel ql_gpu_kernel_conv_f32 = {
	"conv2d conv2d_input conv2d_weight", "conv_f32", "simt", QL_GPU_BITS, 80, plan, run};
