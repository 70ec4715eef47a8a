/* SPDX-License-Identifier: MIT
 * maxpool2d and avgpool2d of floats and of codes, in the order of taps of tensor/conv/planes.c and by the formulas of
 * quant/integer/pool_codes.c, so with their bits. A thread has one result, or two of the common 2 x 2 windows; the mean of
 * a whole plane has a warp, which adds in the order of tensor/loops/lanes.h.
 */
#include "gpu/kernels/fixed.h"
#include "gpu/kernels/launch.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/scales.h"
#include "gpu/kernels/window.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define ALL 0xffffffffu
#define FEW 256 /* numbers of a plane that are added in FEW_LANES float32 sums */
#define FEW_LANES 16
#define RUN \
	256 /* of more numbers: elements that lanes add in float32, or float64; parts, after which lanes are joined */
#define BLOCK 1024
#define PART 65536

enum kind { F32, SMALL, F64, CODES, KINDS };

struct pool {
	ql_gpu_window w;
	ql_images x;
	void *out;
	int64_t results;
	int32_t to, kind;
	bool mean, global;
	double n; /* numbers of a window */
	/* of codes */
	ql_scales scales, result;
	int32_t axis, rounding;
	bool rescaled; /* to `result`, else the result has the scales of x */
};

/* ---- numbers of a kind ---- */

template <int KIND> struct number_of {
	typedef float type;
};
template <> struct number_of<F64> {
	typedef double type;
};
template <> struct number_of<CODES> {
	typedef int64_t type;
};

template <int KIND> QL_DEVICE typename number_of<KIND>::type load(const ql_images &x, int64_t at)
{
	typedef typename number_of<KIND>::type number;

	if (KIND == F32)
		return (number) static_cast<const float *>(x.at)[at];
	if (KIND == F64)
		return (number) static_cast<const double *>(x.at)[at];
	return KIND == CODES ? (number)ql_load_code(x.type, x.at, at) : (number)ql_load_small(x.type, x.at, at);
}

template <int KIND> QL_DEVICE void store(const pool &p, int64_t i, typename number_of<KIND>::type v)
{
	if (KIND == F32)
		static_cast<float *>(p.out)[i] = v;
	else if (KIND == F64)
		static_cast<double *>(p.out)[i] = v;
	else if (KIND == CODES)
		ql_store_i64(p.to, p.out, i, (int64_t)v);
	else
		ql_store_small(p.to, p.out, i, v);
}

/* ---- one window ---- */

/* A result: its plane, and the first row and column of its window, which may be in the padding. */
struct place {
	int64_t n, c, row, column;
};

QL_DEVICE place place_of(const pool &p, int64_t i)
{
	int64_t column = i % p.w.out[1], line = i / p.w.out[1], plane = line / p.w.out[0];

	return {plane / p.x.c, plane % p.x.c, line % p.w.out[0] * p.w.stride[0] - p.w.before[0],
		column * p.w.stride[1] - p.w.before[1]};
}

QL_DEVICE int64_t lowest(int64_t at)
{
	return at < 0 ? -at : 0;
}
QL_DEVICE int64_t highest(int64_t at, int64_t kernel, int64_t size)
{
	return at + kernel > size ? size - at : kernel;
}

template <typename T> QL_DEVICE T larger(T x, T most)
{
	return x > most || x != x ? x : most;
}

template <int KIND> QL_DEVICE typename number_of<KIND>::type largest_of(const pool &p, place at)
{
	typedef typename number_of<KIND>::type number;
	int64_t bottom = highest(at.row, p.w.kernel[0], p.w.in[0]),
		right = highest(at.column, p.w.kernel[1], p.w.in[1]);
	number most = KIND == CODES ? (number)INT64_MIN : (number)-INFINITY;

	for (int64_t i = lowest(at.row); i < bottom; i++)
		for (int64_t j = lowest(at.column); j < right - QL_BUG(pool_column); j++)
			most = larger(load<KIND>(p.x, ql_images_at(p.x, at.n, at.c, at.row + i, at.column + j)), most);
	return most;
}

/* The order of the CPU for adjacent 2 x 2 windows of float32: it shows in -0 and 0, which are equal. */
template <int KIND> QL_DEVICE typename number_of<KIND>::type largest_of_four(const pool &p, place at)
{
	typename number_of<KIND>::type a[2];

	for (int j = 0; j < 2; j++) {
		int64_t first = ql_images_at(p.x, at.n, at.c, at.row, at.column + j);

		a[j] = larger(load<KIND>(p.x, first + p.x.stride[2]), load<KIND>(p.x, first));
	}
	return larger(a[1], a[0]);
}

template <int KIND> QL_KERNEL(THREADS) largest(pool p, bool four)
{
	for (int64_t i = ql_thread(); i < p.results; i += ql_threads()) {
		place at = place_of(p, i);

		store<KIND>(p, i, four ? largest_of_four<KIND>(p, at) : largest_of<KIND>(p, at));
	}
}

QL_DEVICE float largest_here(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return larger(larger(ql_float_of(d), ql_float_of(b)), larger(ql_float_of(c), ql_float_of(a)));
}

/* Dense float32 in adjacent 2 x 2 windows, two at a time; `pairs` of them in a row. */
QL_KERNEL(THREADS) largest_dense(pool p, int64_t pairs)
{
	const float *x = static_cast<const float *>(p.x.at);

	for (int64_t i = ql_thread(); 2 * i < p.results; i += ql_threads()) {
		const float *from = x + i / pairs * 2 * p.w.in[1] + i % pairs * 4;
		uint4 a = ql_load_16(from), b = ql_load_16(from + p.w.in[1]);
		float2 most = {largest_here(a.x, a.y, b.x, b.y), largest_here(a.z, a.w, b.z, b.w)};

		static_cast<float2 *>(p.out)[i] = most;
	}
}

/* ---- means of windows ---- */

/* The number of the scale of a plane. */
QL_DEVICE int64_t scale_of(const pool &p, int64_t n, int64_t c)
{
	return p.axis == 0 ? n : p.axis == 1 ? c : 0;
}

/* Whether the rule is the quotient of quant/integer/pool_codes.c. */
QL_DEVICE bool is_quotient(const pool &p, int64_t scale)
{
	return p.rounding == QL_ROUNDING_DOUBLE && p.axis < 0 && ql_scale_at(p.scales, scale) == ql_scale_at(p.result, 0) &&
	       ql_zero_at(p.scales, scale) == ql_zero_at(p.result, 0);
}

/* The code of a sum of codes without their zero point. */
QL_DEVICE int64_t code_of(const pool &p, int64_t sum, int64_t scale)
{
	int32_t zero = ql_zero_at(p.result, 0), lo = p.result.lo, hi = p.result.hi;
	double m;
	float units;

	if (!p.rescaled)
		return (int64_t)rint((double)sum / p.n) + ql_zero_at(p.scales, scale);
	if (is_quotient(p, scale)) {
		int64_t n = (int64_t)p.n, whole = sum + n * zero;

		return ql_clamp_i64((whole > 0 ? whole + n / 2 : whole - n / 2) / n, lo, hi);
	}
	m = (double)ql_scale_at(p.scales, scale) / (p.n * (double)ql_scale_at(p.result, 0));
	if (p.rounding != QL_ROUNDING_FLOAT)
		return ql_clamp_i64(ql_fixed_product(p.rounding, sum, m), lo - zero, hi - zero) + zero;
	units = (float)sum * (float)m;
	units = units == units ? units : 0;
	return (int64_t)rintf(fminf(fmaxf(units, (float)(lo - zero)), (float)(hi - zero))) + zero;
}

template <int KIND> QL_DEVICE typename number_of<KIND>::type mean_of(const pool &p, place at)
{
	typedef typename number_of<KIND>::type number;
	int64_t bottom = highest(at.row, p.w.kernel[0], p.w.in[0]),
		right = highest(at.column, p.w.kernel[1], p.w.in[1]);
	int64_t scale = scale_of(p, at.n, at.c), zero = KIND == CODES ? ql_zero_at(p.scales, scale) : 0;
	number sum = 0;

	for (int64_t i = lowest(at.row); i < bottom; i++)
		for (int64_t j = lowest(at.column); j < right; j++)
			sum += load<KIND>(p.x, ql_images_at(p.x, at.n, at.c, at.row + i, at.column + j)) - (number)zero;
	return KIND == CODES ? (number)code_of(p, (int64_t)sum, scale) : sum * (number)(1 / p.n);
}

template <int KIND> QL_KERNEL(THREADS) means(pool p)
{
	for (int64_t i = ql_thread(); i < p.results; i += ql_threads())
		store<KIND>(p, i, mean_of<KIND>(p, place_of(p, i)));
}

/* ---- means of whole planes, by warps ---- */

/* Four chains of every fourth lane, as ql_join_lanes. */
QL_DEVICE double join_lanes(double x)
{
	int lane = (int)threadIdx.x & 31;
	double s = 0;

	for (int i = 0; i < 8; i++)
		s += __shfl_sync(ALL, x, (lane & 3) + 4 * i);
	return (__shfl_sync(ALL, s, 0) + __shfl_sync(ALL, s, 1)) + (__shfl_sync(ALL, s, 2) + __shfl_sync(ALL, s, 3));
}

/* Element i of the plane whose first element is at `at`. */
template <int KIND> QL_DEVICE typename number_of<KIND>::type element(const pool &p, int64_t at, int64_t i)
{
	return load<KIND>(p.x, at + i / p.x.w * p.x.stride[2] + i % p.x.w * p.x.stride[3]);
}

/* The sum of a lane over the elements begin + lane, begin + lane + step, …, before end. */
template <int KIND>
QL_DEVICE typename number_of<KIND>::type lane_sum(const pool &p, int64_t at, int64_t begin, int64_t end, int step)
{
	typename number_of<KIND>::type sum = 0;
	int lane = (int)threadIdx.x & 31;

	for (int64_t i = begin + lane; i < end && lane < step; i += step)
		sum += element<KIND>(p, at, i);
	return sum;
}

QL_DEVICE int64_t before(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

template <int KIND> QL_DEVICE float few_mean(const pool &p, int64_t at, int64_t n)
{
	float mine = (float)lane_sum<KIND>(p, at, 0, n, FEW_LANES), sum = 0;

	for (int l = 0; l < FEW_LANES; l++)
		sum += __shfl_sync(ALL, mine, l);
	return sum / (float)n;
}

template <int KIND> QL_DEVICE double many_sum(const pool &p, int64_t at, int64_t n)
{
	double total = 0;

	for (int64_t part = 0; part < n; part += PART) {
		int64_t end = before(part + PART, n);
		double wide = 0;

		if (KIND == F64) {
			for (int64_t i = part; i < end; i += BLOCK)
				wide += join_lanes((double)lane_sum<KIND>(p, at, i, before(i + BLOCK, end), 32));
			total += wide;
		} else {
			for (int64_t i = part; i < end; i += RUN)
				wide += (double)lane_sum<KIND>(p, at, i, before(i + RUN, end), 32);
			total += join_lanes(wide);
		}
	}
	return total;
}

QL_DEVICE int64_t code_sum(const pool &p, int64_t at, int64_t n, int64_t zero)
{
	int64_t sum = (int64_t)lane_sum<CODES>(p, at, 0, n, 32);

	for (int d = 16; d; d >>= 1)
		sum += __shfl_xor_sync(ALL, sum, d);
	return sum - n * zero;
}

template <int KIND> QL_KERNEL(THREADS) plane_means(pool p)
{
	int64_t n = p.x.h * p.x.w;

	for (int64_t i = ql_thread() / 32; i < p.results; i += ql_threads() / 32) {
		int64_t at = i / p.x.c * p.x.stride[0] + i % p.x.c * p.x.stride[1];
		int64_t scale = scale_of(p, i / p.x.c, i % p.x.c);
		typename number_of<KIND>::type mean;

		if (KIND == CODES)
			mean = code_of(p, code_sum(p, at, n, ql_zero_at(p.scales, scale)), scale);
		else if (KIND == F64 || n > FEW)
			mean = (typename number_of<KIND>::type)(many_sum<KIND>(p, at, n) / (double)n);
		else
			mean = few_mean<KIND>(p, at, n);
		if ((threadIdx.x & 31) == 0)
			store<KIND>(p, i, mean);
	}
}

/* ---- the call ---- */

static bool codes_of(const struct ql_gpu_call *call, struct pool *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	const struct ql_gpu_codes *c = in->codes;

	if (!c->scale || c->grid || (c->flags & QL_GPU_AFFINE) == 0)
		return ql_refuse(p, "codes of this scheme are not multiples of a scale");
	if (!ql_scales_fit(in, p))
		return false;
	if (!ql_element_whole(x->x.type))
		return ql_refuse(p, "packed codes");
	if (c->block || c->axis >= 2)
		return ql_refuse(p, "scale varies within a plane");
	if (!out->codes || (!x->mean && x->to != x->x.type))
		return ql_refuse(p, "wanted a result of codes");
	x->axis = c->axis;
	x->scales = ql_scales_of(c);
	x->rescaled = x->mean && ql_option(call, "out");
	if (!x->rescaled)
		return x->to == x->x.type || ql_refuse(p, "wanted a result with the codes of the operand");
	if (c->shift)
		return ql_refuse(p, "codes with a minimum");
	if (!ql_scales_fit(out, p))
		return false;
	if (!ql_element_whole(x->to) || ql_element_get(x->to).bits > 16)
		return ql_refuse(p, "a result of packed codes");
	if ((out->codes->flags & QL_GPU_FIND) || out->codes->axis >= 0 || out->codes->block || out->codes->shift)
		return ql_refuse(p, "wanted one given scale for the result");
	x->rounding = out->codes->rounding;
	if (x->rounding && ql_element_get(x->x.type).bits > 8)
		return ql_refuse(p, "rounding: codes of more than 8 bits");
	x->result = ql_scales_of(out->codes);
	return true;
}

/* Sets x; false: p->why says why not. */
static bool pool_of(const struct ql_gpu_call *call, struct pool *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	int64_t kernel[2];

	*x = {};
	if (in->rank != 4 || out->rank != 4 || (in->flags & QL_GPU_NUMBER) || !ql_dense(out))
		return ql_refuse(p, "wanted x (n, c, h, w) on the device");
	x->x = ql_images_of(in);
	x->out = out->at;
	x->to = ql_element_of(out->dtype);
	x->mean = !strcmp(call->op, "avgpool2d");
	kernel[0] = x->x.h;
	kernel[1] = x->x.w;
	ql_window_pair(call, "k", kernel);
	if (!ql_window_plain(call, kernel))
		return ql_refuse(p, "an option that only the host has");
	x->w = ql_window_of(call, &in->shape[2], kernel, 0);
	x->n = (double)kernel[0] * (double)kernel[1];
	x->results = ql_count(out);
	if (x->w.out[0] != out->shape[2] || x->w.out[1] != out->shape[3] || in->shape[0] != out->shape[0] ||
		in->shape[1] != out->shape[1])
		return ql_refuse(p, "shapes that do not fit");
	x->global = x->mean && x->w.out[0] * x->w.out[1] == 1 && kernel[0] == x->x.h && kernel[1] == x->x.w &&
		    x->w.before[0] == 0 && x->w.before[1] == 0;
	x->kind = in->codes ? CODES : x->x.type == QL_E_float64 ? F64 : x->x.type == QL_E_float32 ? F32 : SMALL;
	if (in->codes)
		return codes_of(call, x, p);
	if (!ql_images_float(in) || out->codes || x->to != x->x.type)
		return ql_refuse(p, "wanted floats and a result of their dtype");
	return true;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	static const char *const codes[] = {"integer", "integer single", "integer double"};
	struct pool x;

	if (!pool_of(call, &x, p))
		return false;
	p->path = x.kind == CODES ? codes[x.rounding] : x.kind == F64 ? "float64" : "float32";
	return true;
}

/* Adjacent windows of 2 x 2 that cover the planes. */
static bool is_four(const struct pool *x)
{
	for (int d = 0; d < 2; d++)
		if (x->w.kernel[d] != 2 || x->w.stride[d] != 2 || x->w.before[d] || x->w.in[d] != 2 * x->w.out[d])
			return false;
	return !x->mean && (x->kind == F32 || x->kind == SMALL);
}

template <int KIND> static cudaError_t launch(const struct ql_gpu_place *place, const struct pool *x, bool dense)
{
	bool four = is_four(x);

	if (x->global)
		return ql_launch(plane_means<KIND>, ql_blocks(x->results, WARPS), dim3(THREADS), 0, place->stream, *x);
	if (x->mean)
		return ql_launch_free(means<KIND>, ql_blocks(x->results, THREADS), dim3(THREADS), place->stream, *x);
	if (four && dense && KIND == F32 && x->w.in[1] % 4 == 0)
		return ql_launch_free(largest_dense, ql_blocks(x->results, 2 * THREADS), dim3(THREADS), place->stream,
			*x, x->w.out[1] / 2);
	return ql_launch_free(largest<KIND>, ql_blocks(x->results, THREADS), dim3(THREADS), place->stream, *x, four);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct pool x;
	bool dense;

	if (!pool_of(call, &x, &p))
		return cudaErrorInvalidValue;
	if (x.results == 0)
		return cudaSuccess;
	dense = ql_dense(call->in) && (uintptr_t)x.x.at % 16 == 0;
	switch (x.kind) {
	case F32: return launch<F32>(place, &x, dense);
	case SMALL: return launch<SMALL>(place, &x, dense);
	case F64: return launch<F64>(place, &x, dense);
	default: return launch<CODES>(place, &x, dense);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_pool;
const struct ql_gpu_kernel ql_gpu_kernel_pool = {"maxpool2d avgpool2d", "pool", "simt", QL_GPU_BITS, 80, plan, run};
