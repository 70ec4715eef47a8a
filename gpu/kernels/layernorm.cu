/* SPDX-License-Identifier: MIT
 * layernorm and rmsnorm over the last axis and their gradients, with the formulas and the order of tensor/ops/layernorm.c: a
 * row by a warp or by the eight warps of a block (gpu/kernels/line.h). The gradients of weight and bias are sums over parts
 * of the rows, in float32 over 16 rows, then in double; a block has 32 columns of a part, whose warps take 16 rows in turn.
 */
#include "gpu/kernels/line.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define WARPS (QL_LINE_THREADS / 32)
#define PARTS 64     /* of the rows, at most */
#define PART_ROWS 16 /* at least */
#define FLUSH 16
#define EPSILON 1e-5

/* h = ((x - shift) + rest) * by, of x * unit if unit is above 0 */
struct centre {
	float shift, rest, by, unit;
};

struct work {
	ql_strided from, to; /* rows: first elements of x and of the gradient; of the result */
	ql_line_at x, g, w, b, out;
	int64_t rows, n, part, parts;
	double epsilon;
	bool centred;
	struct centre *centre; /* backward: (rows) */
	double *sums;          /* backward: (parts, 2, n): of weight and bias */
	ql_line_at dw, db;
};

typedef ql_line_room<float, 2> row_room;
union room {
	row_room two;
	ql_line_room<float, 1> one;
};
struct columns {
	float sum[2][WARPS][32];
};

QL_DEVICE ql_line_at row_at(const ql_line_at &first, int64_t offset)
{
	ql_line_at line = first;

	line.at = static_cast<const char *>(first.at) + offset * (first.element == QL_E_float32 ? 4 : 2);
	return line;
}

/* x times a power of two, rounded as a float32. */
QL_DEVICE float scaled(float x, float unit)
{
	return unit > 0 ? (float)((double)x * (double)unit) : x;
}

/* ---- one row: from its mean to h ---- */

template <int W, int R>
QL_DEVICE struct centre centre_of(const work &k, union room &room, ql_line<R> &x, float unit, double epsilon)
{
	struct centre c = {0, 0, 0, unit};
	double sum[2], mean = 0, rest = 0, variance, n = (double)k.n;
	auto fetch = [&](int64_t run) { x.fetch(run, k.n); };

	if (k.centred) {
		ql_line_sum<W, R, 1>(
			room.one, k.n, QL_LINE_PART, fetch,
			[&](int64_t, int j, int s, float *lane) { lane[0] += scaled(x.get(j, s), unit); }, sum);
		mean = sum[0] / n;
	}
	c.shift = (float)mean;
	ql_line_sum<W, R, 2>(
		room.two, k.n, QL_LINE_WHOLE, fetch,
		[&](int64_t, int j, int s, float *lane) {
			float d = scaled(x.get(j, s), unit) - c.shift;

			lane[0] += d;
			lane[1] += d * d;
		},
		sum);
	if (k.centred)
		rest = -sum[0] / n;
	variance = sum[1] / n - rest * rest;
	c.rest = (float)rest;
	c.by = (float)(1 / sqrt((variance < 0 ? 0 : variance) + epsilon));
	return c;
}

/* The power of two that brings all elements below 2; 0: they are not all finite. */
template <int W, int R> QL_DEVICE float unit_of(const work &k, union room &room, ql_line<R> &x)
{
	float most = 0, bad = 0;
	double unit = 1;

	ql_line_pass<W, R>(
		k.n, [&](int64_t run) { x.fetch(run, k.n); },
		[&](int64_t, int j, int s) {
			float size = fabsf(x.get(j, s));

			bad = isfinite(size) ? bad : 1;
			most = size > most ? size : most;
		});
	bad = ql_line_largest<W>(room.one, bad);
	most = ql_line_largest<W>(room.one, most);
	while ((double)most * unit >= 2)
		unit *= 0.5;
	return bad > 0 ? 0 : (float)unit;
}

/* Once more by a smaller unit if the squares of the row overflow, which makes by 0 or NaN though all elements are finite. */
template <int W, int R>
QL_DEVICE struct centre start_row(const work &k, union room &room, ql_line<R> &x, const ql_line_at &line)
{
	struct centre c;
	float unit = 0;
	double epsilon = k.epsilon;

	x.template start<W>(line, k.n);
	QL_ROLLED
	for (;;) {
		c = centre_of<W, R>(k, room, x, unit, epsilon);
		if (c.by > 0 || unit > 0)
			return c;
		unit = unit_of<W, R>(k, room, x);
		if (unit == 0)
			return c;
		epsilon = k.epsilon * (double)unit * (double)unit;
	}
}

QL_DEVICE float h_of(const struct centre &c, float x)
{
	return ((scaled(x, c.unit) - c.shift) + c.rest) * c.by;
}

/* ---- forward ---- */

template <int W, int R> QL_KERNEL(QL_LINE_THREADS) forward(work k)
{
	QL_SHARED(union room, room);

	for (int64_t i = ql_line_first<W>(); i < k.rows; i += ql_line_teams<W>()) {
		ql_line<R> x;
		ql_line<0> w, b;
		float y[QL_LINE_EACH];
		int64_t from[QL_STRIDED_MOST], to[QL_STRIDED_MOST];
		struct centre c;
		ql_line_at out;

		ql_strided_at(k.from, i, from);
		ql_strided_at(k.to, i, to);
		out = row_at(k.out, to[0]);
		c = start_row<W, R>(k, room, x, row_at(k.x, from[0]));
		w.line = k.w;
		b.line = k.b;
		ql_line_pass<W, R>(
			k.n,
			[&](int64_t run) {
				x.fetch(run, k.n);
				w.fetch(run, k.n);
				b.fetch(run, k.n);
			},
			[&](int64_t, int j, int s) { y[s] = h_of(c, x.get(j, s)) * w.get(0, s) + b.get(0, s); },
			[&](int64_t run) { ql_line_put(out, run, k.n, y); });
	}
}

/* ---- backward ---- */

/* Sums of g w and g w h of a scaled row: all in double, each lane one element after the other. Every warp makes them. */
QL_DEVICE void scaled_sums(
	const work &k, const ql_line_at &x, const ql_line_at &g, const struct centre &c, double sum[2])
{
	double first = 0, second = 0;

	for (int64_t i = ql_line_lane(); i < k.n; i += 32) {
		double w = k.w.at ? (double)ql_line_load(k.w.element, k.w.at, i * k.w.stride) : 1;
		double product = (double)ql_line_load(g.element, g.at, i * g.stride) * w;

		first += product;
		second += product * (double)h_of(c, ql_line_load(x.element, x.at, i * x.stride));
	}
	sum[0] = ql_line_join(first);
	sum[1] = ql_line_join(second);
}

/* One run a warp needs a few registers more than two blocks leave it. */
template <int W, int R> QL_KERNEL(QL_LINE_THREADS, R == 1 ? 1 : 2) backward(work k)
{
	QL_SHARED(union room, room);

	for (int64_t i = ql_line_first<W>(); i < k.rows; i += ql_line_teams<W>()) {
		ql_line<R> x;
		ql_line<0> g, w;
		float dx[QL_LINE_EACH], mean, slope;
		int64_t from[QL_STRIDED_MOST], to[QL_STRIDED_MOST];
		double sum[2];
		struct centre c;
		ql_line_at line, out;
		auto fetch = [&](int64_t run) {
			x.fetch(run, k.n);
			g.fetch(run, k.n);
			w.fetch(run, k.n);
		};

		ql_strided_at(k.from, i, from);
		ql_strided_at(k.to, i, to);
		line = row_at(k.x, from[0]);
		out = row_at(k.out, to[0]);
		c = start_row<W, R>(k, room, x, line);
		g.line = row_at(k.g, from[1]);
		w.line = k.w;
		if (c.unit > 0)
			scaled_sums(k, line, g.line, c, sum);
		else
			ql_line_sum<W, R, 2>(
				room.two, k.n, QL_LINE_WHOLE, fetch,
				[&](int64_t, int j, int s, float *lane) {
					float product = g.get(0, s) * w.get(0, s);

					lane[0] += product;
					lane[1] += product * h_of(c, x.get(j, s));
				},
				sum);
		mean = k.centred ? (float)(sum[0] / (double)k.n) : 0;
		slope = (float)(sum[1] / (double)k.n);
		ql_line_pass<W, R>(
			k.n, fetch,
			[&](int64_t, int j, int s) {
				float d = (g.get(0, s) * w.get(0, s) - mean - h_of(c, x.get(j, s)) * slope) * c.by;

				dx[s] = scaled(d, c.unit);
			},
			[&](int64_t run) { ql_line_put(out, run, k.n, dx); });
		if ((threadIdx.x & (W == 1 ? 31 : QL_LINE_THREADS - 1)) == 0)
			k.centre[i] = c;
	}
}

/* Sums of g h and g of column i over rows first … end - 1, in float32. */
QL_DEVICE void add_rows(const work &k, int64_t i, int64_t first, int64_t end, float *of_gh, float *of_g)
{
	QL_UNROLL_FEW
	for (int64_t r = first; r < end; r++) {
		int64_t at[QL_STRIDED_MOST];
		float x, g;

		ql_strided_at(k.from, r, at);
		x = ql_line_load(k.x.element, k.x.at, at[0] + i * k.x.stride);
		g = ql_line_load(k.g.element, k.g.at, at[1] + i * k.g.stride);
		*of_gh += g * h_of(k.centre[r], x);
		*of_g += g;
	}
}

/* A part of the rows: blockIdx.y. */
QL_KERNEL(QL_LINE_THREADS) add_columns(work k)
{
	QL_SHARED(struct columns, room);
	int64_t i = (int64_t)blockIdx.x * 32 + ql_line_lane(), begin = blockIdx.y * k.part;
	int64_t stop = begin + k.part < k.rows ? begin + k.part : k.rows;
	int warp = (int)threadIdx.x / 32;
	double wide[2] = {0, 0};

	for (int64_t first = begin; first < stop; first += WARPS * FLUSH) {
		int64_t from = first + warp * FLUSH, to = from + FLUSH < stop ? from + FLUSH : stop;
		float of_gh = 0, of_g = 0;

		if (i < k.n && from < stop)
			add_rows(k, i, from, to, &of_gh, &of_g);
		room.sum[0][warp][ql_line_lane()] = of_gh;
		room.sum[1][warp][ql_line_lane()] = of_g;
		__syncthreads();
		for (int w = 0; w < WARPS && first + w * FLUSH < stop; w++)
			for (int half = 0; half < 2; half++)
				wide[half] += (double)room.sum[half][w][ql_line_lane()];
		if (!QL_BUG(layernorm_reuse))
			__syncthreads();
	}
	if (warp == WARPS - 1 && i < k.n)
		for (int half = 0; half < 2; half++)
			k.sums[(2 * (int64_t)blockIdx.y + half) * k.n + i] = wide[half];
}

/* The parts in order. */
QL_KERNEL(QL_LINE_THREADS) join_parts(work k)
{
	for (int64_t i = ql_thread(); i < k.n; i += ql_threads())
		for (int half = 0; half < 2; half++) {
			const ql_line_at &to = half ? k.db : k.dw;
			double sum = 0;

			for (int64_t p = 0; p < k.parts; p++)
				sum += k.sums[(2 * p + half) * k.n + i];
			ql_store_f64(to.element, const_cast<void *>(to.at), i * to.stride, sum);
		}
}

/* ---- the call ---- */

static bool is_back(const struct ql_gpu_call *call)
{
	return strstr(call->op, "_back") != NULL;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Rows, elements and parts, as cut_rows of the op. */
static void measure(const struct ql_gpu_tensor *x, work *k)
{
	int64_t wanted;

	k->n = x->shape[x->rank - 1];
	k->rows = k->n ? ql_count(x) / k->n : 0;
	if (k->rows == 0)
		return;
	wanted = ceil_div(k->rows, PART_ROWS) < PARTS ? ceil_div(k->rows, PART_ROWS) : PARTS;
	k->part = ceil_div(k->rows, wanted);
	k->parts = ceil_div(k->rows, k->part);
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct work k = {};

	if (ql_option_integer(call, "axes", 1) != 1)
		return ql_refuse(p, "rows of several axes");
	for (int i = 0; i < call->n_in + call->n_out; i++) {
		const struct ql_gpu_tensor *t = i < call->n_in ? &call->in[i] : &call->out[i - call->n_in];
		int element = ql_element_of(t->dtype);

		if (t->codes || (t->flags & QL_GPU_NUMBER))
			return ql_refuse(p, "wanted plain numbers on the device");
		if (element == QL_E_float64)
			return ql_refuse(p, "float64");
		if (!ql_line_type(element))
			return ql_refuse(p, "elements that are no floats of 16 or 32 bits");
	}
	measure(&call->in[is_back(call)], &k);
	p->path = "float32";
	if (is_back(call))
		p->workspace = (uint64_t)k.parts * 2 * (uint64_t)k.n * sizeof(double) +
			       (uint64_t)k.rows * sizeof(struct centre);
	return true;
}

static ql_line_at line_of(const struct ql_gpu_tensor *t, float otherwise)
{
	return t ? ql_line_at{t->at, t->stride[t->rank - 1], ql_element_of(t->dtype), otherwise}
		 : ql_line_at{NULL, 0, QL_E_float32, otherwise};
}

static struct work work_of(const struct ql_gpu_call *call)
{
	bool back = is_back(call);
	const struct ql_gpu_tensor *x = &call->in[back], *w = call->n_in > 1 + back ? x + 1 : NULL;
	const struct ql_gpu_tensor *b = !back && call->n_in > 2 ? x + 2 : NULL;
	struct work k = {};

	measure(x, &k);
	k.from = ql_strided_of(x, back ? call->in : NULL, ~(1u << (x->rank - 1)));
	k.to = ql_strided_of(call->out, NULL, ~(1u << (x->rank - 1)));
	k.x = line_of(x, 0);
	k.g = line_of(back ? call->in : NULL, 0);
	k.w = line_of(w, 1);
	k.b = line_of(b, 0);
	k.out = line_of(call->out, 0);
	k.epsilon = ql_option_number(call, "eps", EPSILON);
	k.centred = !strncmp(call->op, "layernorm", strlen("layernorm"));
	if (!back)
		return k;
	k.dw = line_of(&call->out[1], 0);
	k.db = line_of(&call->out[2], 0);
	k.sums = static_cast<double *>(call->workspace);
	k.centre = reinterpret_cast<struct centre *>(k.sums + k.parts * 2 * k.n);
	return k;
}

#define LAUNCH(kernel, W, R) \
	ql_launch(kernel<W, R>, ql_line_blocks(k.rows, W), dim3(QL_LINE_THREADS), sizeof(union room), place->stream, k)
#define FORWARD(W, R) LAUNCH(forward, W, R)
#define BACKWARD(W, R) LAUNCH(backward, W, R)

static cudaError_t run_back(const struct ql_gpu_place *place, const work &k)
{
	cudaError_t error = cudaSuccess;

	if (k.rows)
		error = QL_LINE_DISPATCH(k.n, BACKWARD);
	if (!error && k.rows)
		error = ql_launch(add_columns, dim3((unsigned)ceil_div(k.n, 32), (unsigned)k.parts),
			dim3(QL_LINE_THREADS), sizeof(struct columns), place->stream, k);
	if (error)
		return error;
	return ql_launch_free(join_parts, ql_blocks(k.n, QL_LINE_THREADS), dim3(QL_LINE_THREADS), place->stream, k);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct work k = work_of(call);

	if (k.n == 0)
		return cudaSuccess;
	if (is_back(call))
		return run_back(place, k);
	return k.rows ? QL_LINE_DISPATCH(k.n, FORWARD) : cudaSuccess;
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_layernorm;
const struct ql_gpu_kernel ql_gpu_kernel_layernorm = {
	"layernorm rmsnorm layernorm_back rmsnorm_back", "layernorm", "simt", QL_GPU_BITS, 80, plan, run};
