/* SPDX-License-Identifier: MIT
 * Quantization with a learned scale and its gradients, by the formulas and the order of sums of quant/ops/lsq.c: pieces of a
 * row in lanes, or of columns row by row, then the pieces of each scale in order.
 *
 * lsq        operands: x, scale (, zero point)             result: x rounded
 * lsq_back   operands: the gradient, x, scale (, zero point)   results: the gradients of these
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define PIECE 4096
#define LANES 8
#define TEAMS (THREADS / LANES)
#define FLOOR 1e-8
#define ALL 0xffffffffu

struct numbers {
	const void *scale, *zero; /* zero: NULL: none */
	int32_t scale_type, zero_type;
	double lo, hi; /* of the codes */
};

struct job {
	ql_strided walk; /* forward: x and the number of its scale; backward: x and the gradient */
	struct numbers k;
	const void *x, *dy;
	void *out;
	int32_t x_type, dy_type, to;
	bool columns;              /* a scale for each element of a row */
	int64_t rows, row, period; /* without columns row r has scale r mod period */
	int64_t piece, pieces,
		sums;    /* of columns: rows of a piece, pieces; else elements of a piece, pieces of a row */
	double *ds, *dz; /* the sums of pieces */
	double *scale_gradient, *zero_gradient, factor;
};

template <typename R> struct step {
	R scale, lo, hi;
	bool rounded;
};

QL_DEVICE double scale_at(const numbers &k, int64_t i)
{
	double s = ql_load_f64(k.scale_type, k.scale, i);

	return s > FLOOR ? s : FLOOR;
}

template <typename R> QL_DEVICE step<R> step_at(const numbers &k, int64_t i)
{
	double z = k.zero ? rint(ql_load_f64(k.zero_type, k.zero, i)) : 0;

	z = z < k.lo ? k.lo : z > k.hi ? k.hi : z == z ? z : 0;
	return {(R)scale_at(k, i), (R)(k.lo - z), (R)(k.hi - z), k.zero != NULL};
}

QL_DEVICE float nearest(float v)
{
	return (v + 0x1.8p23f) - 0x1.8p23f;
}
QL_DEVICE double nearest(double v)
{
	return (v + 0x1.8p52) - 0x1.8p52;
}

/* v: x in steps, clamped so that it can be rounded; n: its integer; r: that within the codes */
template <typename R> struct code {
	R v, n, r;
};

template <typename R> QL_DEVICE code<R> code_of(R x, const step<R> &p)
{
	R u = x / p.scale, v = u < p.lo - 1 ? p.lo - 1 : u > p.hi + 1 ? p.hi + 1 : u == u ? u : 0, n = nearest(v);

	return {v, n, n < p.lo ? p.lo : n > p.hi ? p.hi : n};
}

QL_DEVICE void load(int32_t type, const void *at, int64_t i, float *x)
{
	*x = ql_load_f32(type, at, i);
}
QL_DEVICE void load(int32_t type, const void *at, int64_t i, double *x)
{
	*x = ql_load_f64(type, at, i);
}
QL_DEVICE void store(int32_t type, void *at, int64_t i, float x)
{
	ql_store_f32(type, at, i, x);
}
QL_DEVICE void store(int32_t type, void *at, int64_t i, double x)
{
	ql_store_f64(type, at, i, x);
}

/* ---- forward ---- */

template <typename R> QL_KERNEL(THREADS) forward(const job j)
{
	for (int64_t i = ql_thread(); i < j.walk.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST];
		step<R> p;
		R x;

		ql_strided_at(j.walk, i, at);
		p = step_at<R>(j.k, at[1]);
		load(j.x_type, j.x, at[0], &x);
		store(j.to, j.out, i, code_of(x, p).r * p.scale);
	}
}

/* ---- backward ---- */

/* Element i: writes dx and adds to both sums. */
template <typename R> QL_DEVICE void back_one(const job &j, int64_t i, const step<R> &p, double &ds, double &dz)
{
	int64_t at[QL_STRIDED_MOST];
	R x, g, inside, slope;
	code<R> c;
	bool low, high;

	ql_strided_at(j.walk, i, at);
	load(j.x_type, j.x, at[0], &x);
	load(j.dy_type, j.dy, at[1], &g);
	c = code_of(x, p);
	low = (p.rounded ? c.n : c.v) < p.lo;
	high = (p.rounded ? c.n : c.v) > p.hi;
	inside = low || high ? 0 : 1;
	slope = low ? p.lo : high ? p.hi : c.r - c.v;
	static_cast<R *>(j.out)[i] = inside * g;
	ds += (double)(slope * g);
	dz += (double)((1 - inside) * g);
}

/* A team of LANES threads for a piece of a row. All teams of a warp go round together. */
template <typename R> QL_KERNEL(THREADS) back_rows(const job j)
{
	int lane = (int)threadIdx.x % LANES;
	int64_t first = (int64_t)blockIdx.x * TEAMS + threadIdx.x / 32 * (32 / LANES);

	for (int64_t base = first; base < j.sums; base += (int64_t)gridDim.x * TEAMS) {
		int64_t k = base + threadIdx.x % 32 / LANES, row = k / j.pieces, begin = k % j.pieces * j.piece;
		int64_t n = k < j.sums ? min(j.piece, j.row - begin) : 0;
		double ds = 0, dz = 0;

		if (n > 0) {
			step<R> p = step_at<R>(j.k, row % j.period);

			for (int64_t i = lane; i < n - QL_BUG(lsq_tail); i += LANES)
				back_one(j, row * j.row + begin + i, p, ds, dz);
		}
		QL_UNROLL
		for (int w = LANES / 2; w > 0; w /= 2) {
			ds += __shfl_xor_sync(ALL, ds, w);
			dz += __shfl_xor_sync(ALL, dz, w);
		}
		if (lane == 0 && k < j.sums) {
			j.ds[k] = 0 + ds;
			j.dz[k] = 0 + dz;
		}
	}
}

/* A thread for a column of a piece. */
template <typename R> QL_KERNEL(THREADS) back_columns(const job j)
{
	for (int64_t k = ql_thread(); k < j.sums; k += ql_threads()) {
		int64_t column = k % j.row, begin = k / j.row * j.piece, end = min(begin + j.piece, j.rows);
		step<R> p = step_at<R>(j.k, column);
		double ds = 0, dz = 0;

		for (int64_t r = begin; r < end; r++)
			back_one(j, r * j.row + column, p, ds, dz);
		j.ds[k] = ds;
		j.dz[k] = dz;
	}
}

/* A thread for a scale adds the sums of its pieces in order. */
QL_KERNEL(THREADS) join(const job j)
{
	for (int64_t s = ql_thread(); s < j.period; s += ql_threads()) {
		double ds = 0, dz = 0;

		if (j.columns)
			for (int64_t k = s; k < j.sums; k += j.row) {
				ds += j.ds[k];
				dz += j.dz[k];
			}
		for (int64_t r = s; r < j.rows && !j.columns; r += j.period)
			for (int64_t k = r * j.pieces; k < (r + 1) * j.pieces; k++) {
				ds += j.ds[k];
				dz += j.dz[k];
			}
		j.scale_gradient[s] = ds * j.factor;
		if (j.zero_gradient)
			j.zero_gradient[s] = dz * j.factor * -scale_at(j.k, s);
	}
}

/* ---- the call ---- */

static bool is_back(const struct ql_gpu_call *call)
{
	return !strcmp(call->op, "lsq_back");
}

static bool plain_float(const struct ql_gpu_tensor *t)
{
	int element = ql_element_of(t->dtype);

	return !t->codes && !(t->flags & QL_GPU_NUMBER) && ql_element_whole(element) && ql_element_float(element);
}

/* How elements belong to scales and pieces. */
static void fill_grain(const struct ql_gpu_call *call, struct job *j)
{
	const struct ql_gpu_tensor *x = &call->in[is_back(call)];
	int64_t axis = ql_option_integer(call, "axis", -1), n = ql_count(x);

	j->columns = axis >= 0 && axis == x->rank - 1;
	j->period = axis < 0 ? 1 : x->shape[axis];
	j->rows = 1;
	for (int64_t d = 0; d < axis + !j->columns; d++)
		j->rows *= axis < 0 ? 1 : x->shape[d];
	j->row = j->columns ? x->shape[axis] : 1;
	for (int64_t d = axis + 1; d < x->rank && !j->columns; d++)
		j->row *= x->shape[d];
	j->piece = PIECE;
	if (j->columns)
		j->piece = PIECE / (j->row ? j->row : 1) > 16 ? PIECE / (j->row ? j->row : 1) : 16;
	j->pieces = ((j->columns ? j->rows : j->row) + j->piece - 1) / j->piece;
	j->sums = n == 0 ? 0 : j->pieces * (j->columns ? j->row : j->rows);
}

static bool plan_scales(const struct ql_gpu_call *call, int32_t from, int64_t scales, struct ql_gpu_plan *p)
{
	for (int32_t i = from; i < call->n_in; i++)
		if (!plain_float(&call->in[i]) || !ql_dense(&call->in[i]) || ql_count(&call->in[i]) != scales)
			return ql_refuse(p, "wanted a dense float for each scale");
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	bool back = is_back(call);
	int32_t from = 1 + back;
	struct job j = {};

	if (call->n_in < from + 1 || call->n_in > from + 2 || call->n_out != (back ? call->n_in - 1 : 1))
		return ql_refuse(p, "other operands");
	for (int32_t i = 0; i < from; i++)
		if (!plain_float(&call->in[i]))
			return ql_refuse(p, "wanted plain floats");
	for (int32_t i = 0; i < call->n_out; i++)
		if (!plain_float(&call->out[i]) || !ql_dense(&call->out[i]))
			return ql_refuse(p, "the result is a view");
	fill_grain(call, &j);
	if (!plan_scales(call, from, j.period, p))
		return false;
	if (back && ql_element_get(ql_element_of(call->out[0].dtype)).bits < 32)
		return ql_refuse(p, "a gradient of 16 bits");
	p->path = strcmp(call->out[0].dtype, "float64") ? "float32" : "float64";
	p->workspace = back ? (uint64_t)j.sums * 2 * sizeof(double) : 0;
	return true;
}

static void fill_numbers(const struct ql_gpu_call *call, int32_t from, struct numbers *k)
{
	int64_t bits = ql_option_integer(call, "bits", 8);
	bool is_signed = ql_option_integer(call, "signed", 1), zero = call->n_in > from + 1;
	double top = (double)(((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1);

	k->scale = call->in[from].at;
	k->scale_type = ql_element_of(call->in[from].dtype);
	k->zero = zero ? call->in[from + 1].at : NULL;
	k->zero_type = zero ? ql_element_of(call->in[from + 1].dtype) : 0;
	k->lo = is_signed ? bits <= 3 || zero ? -top - 1 : -top : 0;
	k->hi = top;
}

/* The walk of x with the numbers of the scales. */
static ql_strided walk_of(const struct ql_gpu_tensor *x, int64_t axis)
{
	ql_strided s = {};

	s.rank = x->rank;
	s.count = ql_count(x);
	s.cut = -1;
	for (int d = 0; d < x->rank; d++) {
		s.shape[d] = x->shape[d];
		s.stride[0][d] = x->stride[d];
		s.stride[1][d] = d == axis;
	}
	ql_strided_join(&s);
	return s;
}

template <typename R> static cudaError_t run_back(const struct ql_gpu_place *place, const job &j)
{
	cudaError_t error = cudaSuccess;

	if (j.sums && j.columns)
		error = ql_launch_free(back_columns<R>, ql_blocks(j.sums, THREADS), dim3(THREADS), place->stream, j);
	else if (j.sums)
		error = ql_launch(back_rows<R>, ql_blocks(j.sums, TEAMS), dim3(THREADS), 0, place->stream, j);
	if (error || j.period == 0)
		return error;
	return ql_launch_free(join, ql_blocks(j.period, THREADS), dim3(THREADS), place->stream, j);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	bool back = is_back(call);
	const struct ql_gpu_tensor *x = &call->in[back];
	int64_t n = ql_count(x);
	bool wide = !strcmp(call->out[0].dtype, "float64");
	struct job j = {};

	fill_grain(call, &j);
	fill_numbers(call, 1 + back, &j.k);
	j.x = x->at;
	j.x_type = ql_element_of(x->dtype);
	j.out = call->out[0].at;
	j.to = ql_element_of(call->out[0].dtype);
	if (!back) {
		j.walk = walk_of(x, ql_option_integer(call, "axis", -1));
		if (n == 0)
			return cudaSuccess;
		return ql_launch_free(wide ? forward<double> : forward<float>, ql_blocks(n, THREADS), dim3(THREADS),
			place->stream, j);
	}
	j.walk = ql_strided_of(x, &call->in[0], ~0u);
	j.dy = call->in[0].at;
	j.dy_type = ql_element_of(call->in[0].dtype);
	j.ds = static_cast<double *>(call->workspace);
	j.dz = j.ds + j.sums;
	j.scale_gradient = static_cast<double *>(call->out[1].at);
	j.zero_gradient = call->n_out > 2 ? static_cast<double *>(call->out[2].at) : NULL;
	j.factor = (double)ql_option_integer(call, "features", n / (j.period ? j.period : 1));
	j.factor = 1 / sqrt((j.factor > 1 ? j.factor : 1) * j.k.hi);
	return wide ? run_back<double>(place, j) : run_back<float>(place, j);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_lsq;
const struct ql_gpu_kernel ql_gpu_kernel_lsq = {"lsq lsq_back", "lsq", "simt", QL_GPU_BITS, 80, plan, run};
