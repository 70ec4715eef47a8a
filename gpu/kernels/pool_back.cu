/* SPDX-License-Identifier: MIT
 * Gradients of maxpool2d and avgpool2d, in the order of tensor/conv/planes.c, so with its bits. First each window of
 * maxpool2d notes the tap that gets its gradient, the first one equal to the maximum; then a thread adds, for one element of
 * x, what the windows over it give: rows of results in order, 256 columns of results at a time, in these the taps in order.
 * Adjacent windows of 2 x 2 need neither step.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/window.h"

#define THREADS 256
#define PIECE 256 /* columns of results that the CPU takes together */

struct back {
	ql_gpu_window w;
	ql_images g, x, y; /* x and y: of maxpool2d */
	void *dx;          /* dense */
	int64_t numbers, results;
	int32_t *tap; /* of each window; NULL: means */
	double share;
};

template <typename T> QL_DEVICE T load(const ql_images &t, int64_t n, int64_t c, int64_t h, int64_t w)
{
	int64_t at = ql_images_at(t, n, c, h, w);

	return sizeof(T) == sizeof(double) ? (T)ql_load_f64(t.type, t.at, at) : (T)ql_load_f32(t.type, t.at, at);
}

template <typename T> QL_DEVICE bool equals(T x, T y)
{
	return x == y || (x != x && y != y);
}

/* ---- adjacent 2 x 2 windows ---- */

/* Of a window's numbers a b over c d: what each gets. */
template <typename T> QL_DEVICE void give_four(T m, T left, const T x[4], T to[4])
{
	for (int i = 0; i < 4; i++) {
		bool hit = i == 3 || equals(x[i], m);

		to[i] = hit ? left : 0;
		left = hit ? 0 : left;
	}
}

template <typename T> QL_KERNEL(THREADS) any_four(back b)
{
	for (int64_t i = ql_thread(); i < b.results; i += ql_threads()) {
		int64_t column = i % b.w.out[1], line = i / b.w.out[1], plane = line / b.w.out[0], n = plane / b.g.c,
			c = plane % b.g.c, row = line % b.w.out[0];
		T *dx = static_cast<T *>(b.dx) + line * 2 * b.w.in[1] + 2 * column, x[4], to[4];

		for (int k = 0; k < 4; k++)
			x[k] = load<T>(b.x, n, c, 2 * row + k / 2, 2 * column + k % 2);
		give_four(load<T>(b.y, n, c, row, column), load<T>(b.g, n, c, row, column), x, to);
		for (int k = 0; k < 4; k++)
			dx[k / 2 * b.w.in[1] + k % 2] = to[k];
	}
}

/* Dense float32, two windows at a time; `pairs` of them in a row. */
QL_KERNEL(THREADS) dense_four(back b, int64_t pairs)
{
	const float *x = static_cast<const float *>(b.x.at);

	for (int64_t i = ql_thread(); 2 * i < b.results; i += ql_threads()) {
		int64_t at = i / pairs * 2 * b.w.in[1] + i % pairs * 4;
		uint4 p = ql_load_16(x + at), q = ql_load_16(x + at + b.w.in[1]);
		float2 m = static_cast<const float2 *>(b.y.at)[i], g = static_cast<const float2 *>(b.g.at)[i];
		float here[4] = {ql_float_of(p.x), ql_float_of(p.y), ql_float_of(q.x), ql_float_of(q.y)}, one[4];
		float next[4] = {ql_float_of(p.z), ql_float_of(p.w), ql_float_of(q.z), ql_float_of(q.w)}, two[4];
		float *dx = static_cast<float *>(b.dx) + at;

		give_four(m.x, g.x, here, one);
		give_four(m.y, g.y, next, two);
		ql_store_16(dx, uint4{ql_bits_of(one[0]), ql_bits_of(one[1]), ql_bits_of(two[0]), ql_bits_of(two[1])});
		ql_store_16(dx + b.w.in[1],
			uint4{ql_bits_of(one[2]), ql_bits_of(one[3]), ql_bits_of(two[2]), ql_bits_of(two[3])});
	}
}

/* ---- any windows ---- */

template <typename T> QL_KERNEL(THREADS) find_taps(back b)
{
	for (int64_t i = ql_thread(); i < b.results; i += ql_threads()) {
		int64_t column = i % b.w.out[1], line = i / b.w.out[1], plane = line / b.w.out[0], n = plane / b.g.c,
			c = plane % b.g.c, row = line % b.w.out[0];
		T m = load<T>(b.y, n, c, row, column);
		int32_t found = -1;

		for (int64_t k = 0; k < b.w.kernel[0] && found < 0; k++)
			for (int64_t l = 0; l < b.w.kernel[1] && found < 0; l++) {
				int64_t h = row * b.w.stride[0] + k - b.w.before[0],
					w = column * b.w.stride[1] + l - b.w.before[1];

				if (h >= 0 && h < b.w.in[0] && w >= 0 && w < b.w.in[1] &&
					equals(load<T>(b.x, n, c, h, w), m))
					found = (int32_t)(k * b.w.kernel[1] + l);
			}
		b.tap[i] = found;
	}
}

/* The windows over row or column `at`: from .. to - 1. */
QL_DEVICE void windows_over(const ql_gpu_window &w, int d, int64_t at, int64_t *from, int64_t *to)
{
	int64_t behind = at + w.before[d] - w.kernel[d];

	*from = behind < 0 ? 0 : behind / w.stride[d] + 1;
	*to = (at + w.before[d]) / w.stride[d] + 1;
	*to = *to > w.out[d] ? w.out[d] : *to;
}

template <typename T> QL_DEVICE T given(const back &b, int64_t plane, int64_t h, int64_t w, int64_t i, int64_t j)
{
	int64_t tap = (h + b.w.before[0] - i * b.w.stride[0]) * b.w.kernel[1] + w + b.w.before[1] - j * b.w.stride[1];
	T g;

	if (b.tap && b.tap[(plane * b.w.out[0] + i) * b.w.out[1] + j] != tap)
		return 0;
	g = load<T>(b.g, plane / b.g.c, plane % b.g.c, i, j);
	return b.tap ? g : g * (T)b.share;
}

template <typename T> QL_KERNEL(THREADS) gather(back b)
{
	for (int64_t e = ql_thread(); e < b.numbers; e += ql_threads()) {
		int64_t w = e % b.w.in[1], line = e / b.w.in[1], h = line % b.w.in[0], plane = line / b.w.in[0];
		int64_t top, bottom, left, right;
		T sum = 0;

		windows_over(b.w, 0, h, &top, &bottom);
		windows_over(b.w, 1, w, &left, &right);
		for (int64_t i = top; i < bottom; i++)
			for (int64_t first = left, end; first < right - QL_BUG(pool_windows); first = end) {
				end = (first / PIECE + 1) * PIECE < right ? (first / PIECE + 1) * PIECE : right;
				for (int64_t j = end - 1; j >= first; j--)
					sum += given<T>(b, plane, h, w, i, j);
			}
		static_cast<T *>(b.dx)[e] = sum;
	}
}

/* ---- the call ---- */

/* Sets x; false: p->why says why not. */
static bool back_of(const struct ql_gpu_call *call, struct back *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *out = call->out, *g = call->in;
	bool mean = !strcmp(call->op, "avgpool2d_back");
	int to = ql_element_of(out->dtype);
	int64_t kernel[2] = {out->shape[2], out->shape[3]};

	*x = {};
	if (call->n_in != (mean ? 1 : 3) || out->rank != 4 || out->codes || !ql_dense(out) ||
		(to != QL_E_float32 && to != QL_E_float64))
		return ql_refuse(p, "wanted a dense float32 or float64 gradient");
	for (int i = 0; i < call->n_in; i++)
		if (!ql_images_float(&call->in[i]) ||
			(ql_element_of(call->in[i].dtype) == QL_E_float64 && to != QL_E_float64))
			return ql_refuse(p, "wanted floats on the device, no wider than the gradient");
	ql_window_pair(call, "k", kernel);
	if (!ql_window_plain(call, kernel))
		return ql_refuse(p, "an option that only the host has");
	x->w = ql_window_of(call, &out->shape[2], kernel, 0);
	for (int i = 0; i < call->n_in; i++)
		for (int d = 0; d < 4; d++)
			if (call->in[i].shape[d] != (i == 1 || d < 2 ? out->shape[d] : x->w.out[d - 2]))
				return ql_refuse(p, "shapes that do not fit");
	if (kernel[0] > INT32_MAX / kernel[1])
		return ql_refuse(p, "a window of more than 2^31 numbers");
	x->g = ql_images_of(g);
	x->x = mean ? x->g : ql_images_of(&call->in[1]);
	x->y = mean ? x->g : ql_images_of(&call->in[2]);
	x->dx = out->at;
	x->numbers = ql_count(out);
	x->results = ql_count(g);
	x->share = 1 / ((double)kernel[0] * (double)kernel[1]);
	return true;
}

static bool is_four(const struct ql_gpu_call *call, const struct back *x)
{
	for (int d = 0; d < 2; d++)
		if (x->w.kernel[d] != 2 || x->w.stride[d] != 2 || x->w.before[d] || x->w.in[d] != 2 * x->w.out[d])
			return false;
	return call->n_in == 3 && ql_element_of(call->out->dtype) == QL_E_float32;
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	struct back x;

	if (!back_of(call, &x, p))
		return false;
	p->path = call->out->dtype;
	if (call->n_in == 3 && !is_four(call, &x))
		p->workspace = (uint64_t)x.results * sizeof(int32_t);
	return true;
}

template <typename T> static cudaError_t launch(const struct ql_gpu_place *place, const struct back *x)
{
	cudaError_t error = cudaSuccess;

	if (x->tap && x->results)
		error = ql_launch_free(find_taps<T>, ql_blocks(x->results, THREADS), dim3(THREADS), place->stream, *x);
	return error ? error
		     : ql_launch_free(gather<T>, ql_blocks(x->numbers, THREADS), dim3(THREADS), place->stream, *x);
}

static bool in_fours(const struct ql_gpu_call *call, const struct back *x)
{
	uintptr_t all = (uintptr_t)x->g.at | (uintptr_t)x->x.at | (uintptr_t)x->y.at | (uintptr_t)x->dx;

	for (int i = 0; i < 3; i++)
		if (ql_element_of(call->in[i].dtype) != QL_E_float32 || !ql_dense(&call->in[i]))
			return false;
	return all % 16 == 0 && x->w.in[1] % 4 == 0;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	struct ql_gpu_plan p = {};
	struct back x;

	if (!back_of(call, &x, &p))
		return cudaErrorInvalidValue;
	if (x.numbers == 0)
		return cudaSuccess;
	if (is_four(call, &x)) {
		if (in_fours(call, &x))
			return ql_launch_free(dense_four, ql_blocks(x.results, 2 * THREADS), dim3(THREADS),
				place->stream, x, x.w.out[1] / 2);
		return ql_launch_free(any_four<float>, ql_blocks(x.results, THREADS), dim3(THREADS), place->stream, x);
	}
	x.tap = call->n_in == 3 ? static_cast<int32_t *>(call->workspace) : NULL;
	return ql_element_of(call->out->dtype) == QL_E_float64 ? launch<double>(place, &x) : launch<float>(place, &x);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_pool_back;
const struct ql_gpu_kernel ql_gpu_kernel_pool_back = {
	"maxpool2d_back avgpool2d_back", "pool_back", "simt", QL_GPU_BITS, 80, plan, run};
