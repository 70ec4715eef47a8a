/* SPDX-License-Identifier: MIT
 * Pooling of planes. A row of the result is computed tap by tap: one tap of the kernel reads a strided run of a row
 * for all columns, so the loops need no bounds checks and the order of the taps is fixed. The gradients use the
 * same rows and taps: the first element equal to the maximum gets the whole gradient (a nan counts as the maximum,
 * as in PyTorch).
 */
#include "tensor/conv/planes.h"

#include <math.h>
#include <string.h>

#include "tensor/kernels/kernels.h"
#include "tensor/loops/lanes.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"
#include "tensor/vmath/simd.h"

#define PIECE 256 /* columns of the result at a time */
#define HALF 64   /* columns of the result at once, for windows of 2 x 2 */
#define LANES 16
#define FEW 256         /* numbers of a plane that are summed in float32 */
#define CHUNK_NS 4000.0 /* at least */

/* ---- one tap of a row: column i of the result meets x[i * step] ---- */

#define STEPS(...) \
	if (step == 1) \
		for (int64_t i = 0, at = 0; i < n; i++, at++) { \
			__VA_ARGS__; \
		} \
	else if (step == 2) \
		for (int64_t i = 0; i < n; i++) { \
			int64_t at = 2 * i; \
			__VA_ARGS__; \
		} \
	else \
		for (int64_t i = 0; i < n; i++) { \
			int64_t at = i * step; \
			__VA_ARGS__; \
		}

/* take_max, add_up; give_max, where left[i] is the gradient not yet given; give_share; in both dtypes */
#define LOOPS(type, number) \
	QL_SIMD(void, take_max_##type, (int64_t n, int64_t step, const number *restrict x, number *restrict out), \
		{STEPS(out[i] = ((x[at] > out[i]) | (x[at] != x[at])) ? x[at] : out[i])}) \
	QL_SIMD(void, add_up_##type, (int64_t n, int64_t step, const number *restrict x, number *restrict out), \
		{STEPS(out[i] += x[at])}) \
	QL_SIMD(void, give_max_##type, \
		(int64_t n, int64_t step, const number *restrict x, number *restrict dx, const number *restrict y, \
			number *restrict left), \
		{ \
			STEPS(bool hit = (x[at] == y[i]) | ((x[at] != x[at]) & (y[i] != y[i])); \
				dx[at] += hit ? left[i] : 0; left[i] = hit ? 0 : left[i]) \
		}) \
	QL_SIMD(void, give_share_##type, (int64_t n, int64_t step, number *restrict dx, const number *restrict left), { \
		STEPS(dx[at] += left[i]) \
	})
LOOPS(f32, float)
LOOPS(f64, double)

/* ---- adjacent 2 x 2 windows, the common case: two rows x and z ---- */

QL_SIMD(void, max_2x2, (int64_t n, const float *restrict x, const float *restrict z, float *restrict out), {
	float larger[2 * HALF];

	for (int64_t first = 0; first < n; first += HALF) {
		int64_t some = n - first < HALF ? n - first : HALF;

		for (int64_t i = 0; i < 2 * some; i++) {
			float p = x[2 * first + i];
			float q = z[2 * first + i];

			larger[i] = ((q > p) | (q != q)) ? q : p;
		}
		for (int64_t i = 0; i < some; i++) {
			float p = larger[2 * i];
			float q = larger[2 * i + 1];

			out[first + i] = ((q > p) | (q != q)) ? q : p;
		}
	}
})
QL_SIMD(void, give_2x2,
	(int64_t n, const float *restrict x, const float *restrict z, const float *restrict y, const float *restrict g,
		float *restrict dx, float *restrict dz),
	{
		for (int64_t i = 0; i < n; i++) {
			float p = x[2 * i];
			float q = x[2 * i + 1];
			float r = z[2 * i];
			float m = y[i];
			float left = g[i];
			int nan = m != m;
			int a = (p == m) | ((p != p) & nan);
			int b = (q == m) | ((q != q) & nan);
			int c = (r == m) | ((r != r) & nan);

			dx[2 * i] = a ? left : 0;
			left = a ? 0 : left;
			dx[2 * i + 1] = b ? left : 0;
			left = b ? 0 : left;
			dz[2 * i] = c ? left : 0;
			dz[2 * i + 1] = c ? 0 : left;
		}
	})

static bool is_2x2(const struct ql_window *w)
{
	for (int d = 0; d < 2; d++)
		if (w->kernel[d] != 2 || w->stride[d] != 2 || w->dilation[d] != 1 || w->before[d] ||
			w->in[d] != 2 * w->out[d])
			return false;
	return true;
}

/* ---- rows and planes ---- */

static struct ql_plane_run run_of(const struct ql_window *w, int64_t first, int64_t n, int64_t k)
{
	int64_t at = first * w->stride[1] + k * w->dilation[1] - w->before[1], stop;
	struct ql_plane_run r = {.skip = at < 0 ? ql_ceil_div(-at, w->stride[1]) : 0};

	stop = at >= w->in[1] ? 0 : (w->in[1] - 1 - at) / w->stride[1] + 1;
	r.from = at + r.skip * w->stride[1];
	r.n = ql_min64(n, stop) - r.skip;
	return r;
}

/* Runs the body for each tap of row i that is inside; `at` is its offset in the plane of x. */
#define EACH_TAP(...) \
	for (int64_t k = 0; k < w->kernel[0]; k++) { \
		int64_t row = i * w->stride[0] + k * w->dilation[0] - w->before[0]; \
		const struct ql_plane_run *r = j->runs + first / PIECE * w->kernel[1], *end = r + w->kernel[1]; \
		for (; row >= 0 && row < w->in[0] && r < end; r++) { \
			int64_t at = row * w->in[1] + r->from; \
			if (r->n > 0) { \
				__VA_ARGS__; \
			} \
		} \
	}

#define PLANES(type, number) \
	static void result_piece_##type( \
		const struct ql_planes *j, const number *x, number *out, int64_t i, int64_t first, int64_t n) \
	{ \
		const struct ql_window *w = &j->w; \
		for (int64_t c = 0; c < n; c++) \
			out[c] = j->mean ? 0 : (number)-INFINITY; \
		EACH_TAP((j->mean ? add_up_##type : take_max_##type)[j->variant]( \
			r->n, w->stride[1], x + at, out + r->skip)) \
		if (j->across) \
			for (int64_t c = 0, rows = ql_window_count(w, 0, i); c < n; c++) \
				out[c] = (number)(out[c] / (number)ql_max64(1, rows * j->across[first + c])); \
		else \
			for (int64_t c = 0; c < n && j->mean; c++) \
				out[c] = (number)(out[c] * (number)j->share); \
	} \
	static void result_plane_##type(const struct ql_planes *j, int64_t plane) \
	{ \
		const struct ql_window *w = &j->w; \
		const number *x = (const number *)j->x + plane * w->in[0] * w->in[1]; \
		number *y = (number *)j->out + plane * w->out[0] * w->out[1]; \
		for (int64_t i = 0; i < w->out[0]; i++) \
			for (int64_t first = 0; first < w->out[1]; first += PIECE) \
				result_piece_##type(j, x, y + i * w->out[1] + first, i, first, \
					ql_min64(PIECE, w->out[1] - first)); \
	} \
	static void gradient_piece_##type(const struct ql_planes *j, const number *x, number *dx, int64_t y, \
		int64_t i, int64_t first, int64_t n) \
	{ \
		const struct ql_window *w = &j->w; \
		const number *g = (const number *)j->g + y; \
		number left[PIECE]; \
		if (j->across) \
			for (int64_t c = 0, rows = ql_window_count(w, 0, i); c < n; c++) \
				left[c] = (number)(g[c] / (number)ql_max64(1, rows * j->across[first + c])); \
		else \
			for (int64_t c = 0; c < n; c++) \
				left[c] = j->mean ? (number)(g[c] * (number)j->share) : g[c]; \
		EACH_TAP(if (j->mean) give_share_##type[j->variant](r->n, w->stride[1], dx + at, left + r->skip); \
			 else give_max_##type[j->variant](r->n, w->stride[1], x + at, dx + at, \
				 (const number *)j->y + y + r->skip, left + r->skip)) \
	} \
	static void gradient_plane_##type(const struct ql_planes *j, int64_t plane) \
	{ \
		const struct ql_window *w = &j->w; \
		int64_t numbers = w->in[0] * w->in[1], y = plane * w->out[0] * w->out[1]; \
		const number *x = j->x ? (const number *)j->x + plane * numbers : NULL; \
		number *dx = (number *)j->out + plane * numbers; \
		for (int64_t i = 0; i < numbers; i++) \
			dx[i] = 0; \
		for (int64_t i = 0; i < w->out[0]; i++) \
			for (int64_t first = 0; first < w->out[1]; first += PIECE) \
				gradient_piece_##type(j, x, dx, y + i * w->out[1] + first, i, first, \
					ql_min64(PIECE, w->out[1] - first)); \
	}
PLANES(f32, float)
PLANES(f64, double)

static void plane_2x2(const struct ql_planes *j, int64_t plane, bool backward)
{
	const struct ql_window *w = &j->w;
	int64_t at = plane * w->in[0] * w->in[1], to = plane * w->out[0] * w->out[1], n = w->out[1], row = w->in[1];
	const float *x = (const float *)j->x + at;

	for (int64_t i = 0; i < w->out[0]; i++, to += n, at += 2 * row, x += 2 * row)
		if (backward)
			give_2x2[j->variant](n, x, x + row, (const float *)j->y + to, (const float *)j->g + to,
				(float *)j->out + at, (float *)j->out + at + row);
		else
			max_2x2[j->variant](n, x, x + row, (float *)j->out + to);
}

/* True if one window covers the whole plane. */
static bool is_global(const struct ql_planes *j)
{
	const struct ql_window *w = &j->w;

	return j->mean && w->out[0] * w->out[1] == 1 && w->kernel[0] == w->in[0] && w->kernel[1] == w->in[1] &&
	       w->before[0] == 0 && w->before[1] == 0;
}

typedef float lanes_vector __attribute__((vector_size(4 * LANES)));

/* Planes of a few numbers: LANES sums, joined in order. */
QL_SIMD(float, sum_few, (int64_t n, const float *x), {
	lanes_vector sum = {0};
	lanes_vector v;
	float total = 0;

	for (int64_t i = 0; i + LANES <= n; i += LANES) {
		memcpy(&v, x + i, sizeof(v));
		sum += v;
	}
	for (int64_t i = n / LANES * LANES; i < n; i++)
		sum[i % LANES] += x[i];
	for (int i = 0; i < LANES; i++)
		total += sum[i];
	return total;
})

static void mean_of_plane(const struct ql_planes *j, int64_t plane)
{
	int64_t n = j->w.in[0] * j->w.in[1];

	if (j->wide)
		((double *)j->out)[plane] = ql_sum_f64((const double *)j->x + plane * n, n) / (double)n;
	else if (n <= FEW)
		((float *)j->out)[plane] = sum_few[j->variant](n, (const float *)j->x + plane * n) / (float)n;
	else
		((float *)j->out)[plane] =
			(float)(ql_sum_f32(j->variant, (const float *)j->x + plane * n, n) / (double)n);
}

static void result_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_planes *j = arg;

	for (int64_t plane = begin; plane < end; plane++)
		if (is_global(j))
			mean_of_plane(j, plane);
		else if (!j->wide && !j->mean && is_2x2(&j->w))
			plane_2x2(j, plane, false);
		else if (j->wide)
			result_plane_f64(j, plane);
		else
			result_plane_f32(j, plane);
}

static void gradient_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_planes *j = arg;

	for (int64_t plane = begin; plane < end; plane++)
		if (!j->wide && !j->mean && is_2x2(&j->w))
			plane_2x2(j, plane, true);
		else if (j->wide)
			gradient_plane_f64(j, plane);
		else
			gradient_plane_f32(j, plane);
}

/* The place of the first number of a window that equals y; 0: none. */
#define PLACE(type, number) \
	static int64_t place_##type(const struct ql_window *w, const number *x, number y, int64_t i, int64_t c) \
	{ \
		int64_t top, left, rows = ql_window_inside(w, 0, i, &top), columns = ql_window_inside(w, 1, c, &left); \
		for (int64_t p = 0; p < rows; p++) \
			for (int64_t q = 0; q < columns; q++) { \
				int64_t at = (top + p * w->dilation[0]) * w->in[1] + left + q * w->dilation[1]; \
				if (x[at] == y || (x[at] != x[at] && y != y)) \
					return at + 1; \
			} \
		return 0; \
	}
PLACE(f32, float)
PLACE(f64, double)

static void places_body(void *arg, int64_t begin, int64_t end)
{
	const struct ql_planes *j = arg;
	const struct ql_window *w = &j->w;

	for (int64_t r = begin; r < end; r++) {
		int64_t x = r / w->out[0] * w->in[0] * w->in[1], i = r % w->out[0],
			*out = (int64_t *)j->out + r * w->out[1];

		for (int64_t c = 0, y = r * w->out[1]; c < w->out[1]; c++, y++)
			out[c] = j->wide ? place_f64(w, (const double *)j->x + x, ((const double *)j->y)[y], i, c)
					 : place_f32(w, (const float *)j->x + x, ((const float *)j->y)[y], i, c);
	}
}

static enum ql_status take_runs(struct ql_ctx *ctx, struct ql_planes *j)
{
	const struct ql_window *w = &j->w;
	int64_t pieces = ql_ceil_div(w->out[1], PIECE);
	uint64_t n;

	if (!ql_size_mul((uint64_t)ql_mul64(pieces, w->kernel[1]), sizeof(*j->runs), &n))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "pool: the bytes of scratch do not fit in 64 bits");
	j->runs = ql_scratch_take(ctx, n);
	if (!j->runs)
		return QL_ERR_MEMORY;
	for (int64_t p = 0; p < pieces; p++)
		for (int64_t k = 0; k < w->kernel[1]; k++)
			j->runs[p * w->kernel[1] + k] = run_of(w, p * PIECE, ql_min64(PIECE, w->out[1] - p * PIECE), k);
	return QL_OK;
}

static enum ql_status take_across(struct ql_ctx *ctx, struct ql_planes *j)
{
	j->across = NULL;
	if (!j->mean || ql_window_even(&j->w))
		return QL_OK;
	j->across = ql_scratch_array(ctx, j->w.out[1], sizeof(*j->across));
	if (!j->across)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < j->w.out[1]; i++)
		j->across[i] = ql_window_count(&j->w, 1, i);
	return QL_OK;
}

static enum ql_status run(struct ql_ctx *ctx, int64_t planes, ql_parallel_fn *body, struct ql_planes *j)
{
	double ns = 1 + (double)(j->w.in[0] * j->w.in[1]) +
		    0.2 * (double)j->w.out[0] * (double)j->w.out[1] * (double)j->w.kernel[0] * (double)j->w.kernel[1];
	double all = ns * (double)planes;
	enum ql_status status = take_runs(ctx, j);

	if (!status)
		status = take_across(ctx, j);
	if (status)
		return status;
	j->variant = ctx->kernels->simd->variant;
	j->share = 1 / ((double)j->w.kernel[0] * (double)j->w.kernel[1]);
	return ql_parallel_for(ctx, planes, ns < CHUNK_NS ? (int64_t)(CHUNK_NS / ns) : 1,
		all < 1e18 ? (int64_t)all : INT64_MAX, body, j);
}

enum ql_status ql_planes_result(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j)
{
	return run(ctx, planes, result_body, j);
}

enum ql_status ql_planes_gradient(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j)
{
	return run(ctx, planes, gradient_body, j);
}

enum ql_status ql_planes_places(struct ql_ctx *ctx, int64_t planes, struct ql_planes *j)
{
	const struct ql_window *w = &j->w;
	double ns = 5 + (double)w->out[1] * (double)w->kernel[0] * (double)w->kernel[1],
	       all = ns * (double)planes * (double)w->out[0];

	return ql_parallel_for(ctx, ql_mul64(planes, w->out[0]), ns < CHUNK_NS ? (int64_t)(CHUNK_NS / ns) : 1,
		all < 1e18 ? (int64_t)all : INT64_MAX, places_body, j);
}
