/* SPDX-License-Identifier: MIT
 * crossentropy and its gradient, with the formulas and the order of nn/ops/crossentropy.c: rows of logits by a warp or by the
 * eight warps of a block (gpu/kernels/line.h); the losses of the rows are doubles, which one block adds in order. A class
 * out of range is noted and clamped.
 */
#include "gpu/kernels/fault.h"
#include "gpu/kernels/line.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"
#include "gpu/kernels/vmath.h"

#define BLOCK 1024 /* of ql_sum_f64 */
#define WARPS (QL_LINE_THREADS / 32)

struct work {
	ql_strided from, classes, to; /* rows: first elements of the logits, classes, first elements of the gradient */
	ql_line_at x, dx;
	const void *target;
	int32_t class_type, some; /* some: positions of class `ignore` do not count */
	int64_t rows, c, ignore;
	double smoothing;
	double *loss;     /* (rows) */
	long long *count; /* of the positions that count; NULL: all do */
	const void *g;    /* the gradient of the loss; NULL: it is g_number */
	double g_number;
	int32_t g_type, to_type; /* to_type: of the loss */
	void *out;
	struct ql_gpu_record *record;
	uint64_t serial;
};

union room {
	struct ql_line_room<float, 1> line;
	struct {
		double block[WARPS];
		long long count[WARPS];
	} sum;
};

/* The class of a row, 1 to c, or 0: ignored. Only the thread that `notes` says so. */
QL_DEVICE int64_t class_of(const work &k, int64_t row, bool notes)
{
	int64_t at[QL_STRIDED_MOST], value;

	ql_strided_at(k.classes, row, at);
	value = ql_load_i64(k.class_type, k.target, at[0]);
	if (k.some && value == k.ignore)
		return 0;
	if ((value < 1 || value > k.c) && notes)
		ql_note(k.record, k.serial, QL_GPU_FAULT_CLASS, row, value, k.c);
	return ql_clamp_i64(value, 1, k.c);
}

QL_DEVICE ql_line_at row_at(const ql_line_at &first, const ql_strided &rows, int64_t row)
{
	ql_line_at line = first;
	int64_t at[QL_STRIDED_MOST];

	ql_strided_at(rows, row, at);
	line.at = static_cast<const char *>(first.at) + at[0] * (first.element == QL_E_float32 ? 4 : 2);
	return line;
}

template <int W, int R> QL_DEVICE float largest(const work &k, union room &room, ql_line<R> &x)
{
	float most = -INFINITY;

	ql_line_pass<W, R>(
		k.c, [&](int64_t run) { x.fetch(run, k.c); },
		[&](int64_t, int j, int s) { most = x.get(j, s) > most ? x.get(j, s) : most; });
	return ql_line_largest<W>(room.line, most);
}

template <int W, int R>
QL_DEVICE double loss_of(const work &k, union room &room, const ql_line_at &line, int64_t class_)
{
	ql_line<R> x;
	double sum[1], loss;
	float most;
	auto fetch = [&](int64_t run) { x.fetch(run, k.c); };

	x.template start<W>(line, k.c);
	most = largest<W, R>(k, room, x);
	ql_line_sum<W, R, 1>(
		room.line, k.c, QL_LINE_PIECE, fetch,
		[&](int64_t, int j, int s, float *lane) { lane[0] += ql_exp_below(x.get(j, s), most); }, sum);
	loss = (double)most + ql_log_f64(ldexp(sum[0], -QL_EXP_SCALE)) -
	       (1 - k.smoothing) * (double)ql_line_load(line.element, line.at, (class_ - 1) * line.stride);
	if (k.smoothing == 0) /* 0 times infinity is not 0 */
		return loss;
	ql_line_sum<W, R, 1>(
		room.line, k.c, QL_LINE_PART, fetch,
		[&](int64_t, int j, int s, float *lane) { lane[0] += x.get(j, s); }, sum);
	return loss - k.smoothing * sum[0] / (double)k.c;
}

template <int W, int R> QL_KERNEL(QL_LINE_THREADS) losses(work k)
{
	QL_SHARED(union room, room);
	bool first = (threadIdx.x & (W == 1 ? 31 : QL_LINE_THREADS - 1)) == 0;

	for (int64_t i = ql_line_first<W>(); i < k.rows; i += ql_line_teams<W>()) {
		int64_t class_ = class_of(k, i, first);
		double loss = class_ ? loss_of<W, R>(k, room, row_at(k.x, k.from, i), class_) : 0;

		if (first)
			k.loss[i] = loss;
	}
}

/* softmax(x) by - less, less the share of the class; 0 in a row that is ignored */
template <int W, int R>
QL_DEVICE void slope(
	const work &k, union room &room, const ql_line_at &line, const ql_line_at &out, int64_t class_, double g)
{
	ql_line<R> x;
	double sum[1];
	float y[QL_LINE_EACH], most, by, less, share;
	auto fetch = [&](int64_t run) { x.fetch(run, k.c); };

	x.template start<W>(line, k.c);
	most = largest<W, R>(k, room, x);
	ql_line_sum<W, R, 1>(
		room.line, k.c, QL_LINE_PART, fetch,
		[&](int64_t, int j, int s, float *lane) {
			float e = ql_exp_below(x.get(j, s), most);

			if (R)
				x.get(j, s) = e;
			lane[0] += e;
		},
		sum);
	by = (float)(g / sum[0]);
	less = (float)(g * k.smoothing / (double)k.c);
	share = (float)(g * (1 - k.smoothing));
	ql_line_pass<W, R>(
		k.c, fetch,
		[&](int64_t i, int j, int s) {
			float d = (R ? x.get(j, s) : ql_exp_below(x.get(j, s), most)) * by - less;

			y[s] = class_ == 0 ? 0 : i == class_ - 1 ? d - share : d;
		},
		[&](int64_t run) { ql_line_put(out, run, k.c, y); });
}

template <int W, int R> QL_KERNEL(QL_LINE_BOUNDS) slopes(work k)
{
	QL_SHARED(union room, room);
	bool first = (threadIdx.x & (W == 1 ? 31 : QL_LINE_THREADS - 1)) == 0;
	double g = k.g ? ql_load_f64(k.g_type, k.g, 0) : k.g_number;

	g /= (double)(k.count ? *k.count : k.rows);
	for (int64_t i = ql_line_first<W>(); i < k.rows; i += ql_line_teams<W>())
		slope<W, R>(k, room, row_at(k.x, k.from, i), row_at(k.dx, k.to, i), class_of(k, i, first), g);
}

/* ---- one block over all positions ---- */

/* The number of positions that count; all threads get it. */
QL_DEVICE long long count_of(const work &k, union room &room)
{
	long long n = 0;

	for (int64_t i = threadIdx.x; i < k.rows; i += QL_LINE_THREADS)
		n += class_of(k, i, false) != 0;
	for (int d = 16; d; d >>= 1)
		n += __shfl_xor_sync(QL_LINE_ALL, n, d);
	if (ql_line_lane() == 0)
		room.sum.count[threadIdx.x / 32] = n;
	__syncthreads();
	n = 0;
	for (int w = 0; w < WARPS; w++)
		n += room.sum.count[w];
	__syncthreads();
	return n;
}

QL_KERNEL(QL_LINE_THREADS) count_positions(work k)
{
	QL_SHARED(union room, room);
	long long n = count_of(k, room);

	if (threadIdx.x == 0)
		*k.count = n;
}

/* The mean of the losses: blocks of 1024 by the warps in turn, added in order, as ql_sum_f64. */
QL_KERNEL(QL_LINE_THREADS) mean_loss(work k)
{
	QL_SHARED(union room, room);
	int64_t blocks = (k.rows + BLOCK - 1) / BLOCK;
	long long n = k.some ? count_of(k, room) : (long long)k.rows;
	double sum = 0;

	for (int64_t first = 0; first < blocks; first += WARPS) {
		int64_t block = first + threadIdx.x / 32,
			end = (block + 1) * BLOCK < k.rows ? (block + 1) * BLOCK : k.rows;
		double lane = 0;

		for (int64_t i = block * BLOCK + ql_line_lane(); i < end; i += 32)
			lane += k.loss[i];
		lane = ql_line_join(lane);
		if (ql_line_lane() == 0)
			room.sum.block[threadIdx.x / 32] = lane;
		if (!QL_BUG(crossentropy_barrier))
			__syncthreads();
		for (int w = 0; w < WARPS && first + w < blocks; w++)
			sum += room.sum.block[w];
		__syncthreads();
	}
	if (threadIdx.x == WARPS * 32 - 1) {
		sum /= (double)n;
		ql_store_f64(k.to_type, k.out, 0, isnan(sum) ? NAN : sum);
	}
}

/* ---- the call ---- */

static bool is_back(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "crossentropy_back");
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = &call->in[is_back(call)], *target = x + 1, *g = call->in;
	const struct ql_gpu_option *reduction = ql_option(call, "reduction");
	int types[] = {ql_element_of(x->dtype), ql_element_of(target->dtype)};

	if (call->n_in > 2 + is_back(call))
		return ql_refuse(p, "weights of classes");
	if (reduction && strcmp(reduction->s, "mean") != 0)
		return ql_refuse(p, "a reduction other than the default");
	for (int i = 0; i < call->n_in; i++)
		if (call->in[i].codes || ((call->in[i].flags & QL_GPU_NUMBER) && !(is_back(call) && i == 0)))
			return ql_refuse(p, "wanted plain numbers on the device");
	if (types[0] == QL_E_float64)
		return ql_refuse(p, "float64, whose functions are those of the host's library");
	if (!ql_line_type(types[0]))
		return ql_refuse(p, "logits that are no floats of 16 or 32 bits");
	if (!ql_element_whole(types[1]) || (is_back(call) && !ql_element_whole(ql_element_of(g->dtype))))
		return ql_refuse(p, "elements of less than a byte");
	p->path = "float32";
	p->faults = 1;
	p->workspace = is_back(call) ? sizeof(long long) : (uint64_t)ql_count(target) * sizeof(double);
	return true;
}

static struct work work_of(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_option *axis = ql_option(call, "axis"), *ignore = ql_option(call, "ignore");
	const struct ql_gpu_tensor *g = call->in, *x = g + is_back(call), *target = x + 1;
	int at = x->rank - 1;
	struct work k = {};

	if (axis) /* counted from the end it was made for operand 0, which is the gradient in the second op */
		at = (int)(axis->i < 0 ? axis->i + x->rank - call->in[0].rank : axis->i);
	k.from = ql_strided_of(x, NULL, ~(1u << at));
	k.classes = ql_strided_of(target, NULL, ~0u);
	k.x = ql_line_at{x->at, x->stride[at], ql_element_of(x->dtype), 0};
	k.target = target->at;
	k.class_type = ql_element_of(target->dtype);
	k.some = ignore != NULL;
	k.ignore = ignore ? ignore->i : 0;
	k.smoothing = ql_option_number(call, "smoothing", 0);
	k.rows = k.classes.count;
	k.c = x->shape[at];
	k.record = place->record;
	k.serial = call->serial;
	k.to_type = ql_element_of(call->out->dtype);
	k.out = call->out->at;
	k.loss = static_cast<double *>(call->workspace);
	if (!is_back(call))
		return k;
	k.to = ql_strided_of(call->out, NULL, ~(1u << at));
	k.dx = ql_line_at{call->out->at, call->out->stride[at], k.to_type, 0};
	k.g = g->flags & QL_GPU_NUMBER ? NULL : g->at;
	k.g_number = g->flags & QL_GPU_INTEGER ? (double)g->i : g->f;
	k.g_type = ql_element_of(g->dtype);
	k.count = k.some ? static_cast<long long *>(call->workspace) : NULL;
	return k;
}

static cudaError_t launch_one(const struct ql_gpu_place *place, void (*kernel)(work), const work &k)
{
	return ql_launch(kernel, dim3(1), dim3(QL_LINE_THREADS), sizeof(union room), place->stream, k);
}

#define LAUNCH(kernel, W, R) \
	ql_launch(kernel<W, R>, ql_line_blocks(k.rows, W), dim3(QL_LINE_THREADS), sizeof(union room), place->stream, k)
#define LOSSES(W, R) LAUNCH(losses, W, R)
#define SLOPES(W, R) LAUNCH(slopes, W, R)

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct work k = work_of(place, call);
	cudaError_t error = cudaSuccess;

	if (k.rows == 0 || k.c == 0) /* infer refuses them */
		return cudaErrorInvalidValue;
	if (!is_back(call)) {
		error = QL_LINE_DISPATCH(k.c, LOSSES);
		return error ? error : launch_one(place, mean_loss, k);
	}
	if (k.count)
		error = launch_one(place, count_positions, k);
	return error ? error : (k.c <= QL_LINE_RUN ? SLOPES(1, 1) : SLOPES(8, 0));
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_crossentropy;
const struct ql_gpu_kernel ql_gpu_kernel_crossentropy = {
	"crossentropy crossentropy_back", "crossentropy", "simt", QL_GPU_BITS, 80, plan, run};
