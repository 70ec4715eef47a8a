/* SPDX-License-Identifier: MIT
 * Windows of codes whose channels lie together: the largest or the mean of each channel, one pixel of the result at a
 * time, with the channels as vectors. The rules are those of pool_codes.c: padding is no code for the maximum, and counts
 * as 0 for the mean.
 */
#include <string.h>

#include "quant/integer/pool_codes.h"
#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define TASK_NS 4000

struct job {
	const struct ql_ctx *ctx;
	const struct ql_pool_codes *p;
	bool even; /* each mean is of as many numbers as the kernel has */
	int variant;
	struct ql_slots slots;
};

/* The inside of a window: the first line and pixel of the image, and how many of them, `dilation` apart. */
struct reach {
	int64_t top, lines, from, pixels;
};

#define RAISE(name, type) \
	QL_SIMD(void, raise_##name, (int64_t n, const type *restrict x, type *restrict to), { \
		for (int64_t i = 0; i < n; i++) \
			to[i] = x[i] > to[i] ? x[i] : to[i]; \
	})
RAISE(u8, uint8_t)
RAISE(i8, int8_t)

#define ADD(name, type) \
	QL_SIMD(void, add_##name, (int64_t n, const type *restrict x, int32_t *restrict to), { \
		for (int64_t i = 0; i < n; i++) \
			to[i] += x[i]; \
	})
ADD(u8, uint8_t)
ADD(i8, int8_t)

QL_SIMD(void, divide, (int64_t n, int32_t *sum, double count, int32_t zero), {
	for (int64_t i = 0; i < n; i++)
		sum[i] = (int32_t)(((double)sum[i] / count + 0x1.8p52) - 0x1.8p52) + zero;
})

QL_SIMD(void, rescale, (int64_t n, int32_t *sum, float factor, const struct ql_rounding *r), {
	float lo = r->lo, hi = r->hi;
	int32_t zero = r->zero;

	for (int64_t i = 0; i < n; i++)
		sum[i] = ql_round((float)sum[i] * factor, lo, hi, zero);
})

QL_SIMD(void, narrow, (int64_t n, const int32_t *restrict code, uint8_t *restrict to), {
	for (int64_t i = 0; i < n; i++)
		to[i] = (uint8_t)code[i];
})

static struct reach reach_of(const struct ql_window *w, int64_t y, int64_t x)
{
	struct reach r;

	r.lines = ql_window_inside(w, 0, y, &r.top);
	r.pixels = ql_window_inside(w, 1, x, &r.from);
	return r;
}

/* At least 1: the mean of nothing is that of one 0. */
static int64_t counted(const struct ql_window *w, int64_t y, int64_t x)
{
	return ql_max64(1, ql_window_count(w, 0, y) * ql_window_count(w, 1, x));
}

static void largest(const struct job *j, const uint8_t *image, const struct reach *r, uint8_t *to)
{
	const struct ql_pool_codes *p = j->p;
	int64_t line = p->w.in[1] * p->channels;
	bool first = true;

	for (int64_t y = 0; y < r->lines; y++)
		for (int64_t x = 0; x < r->pixels; x++, first = false) {
			const uint8_t *from = image + (r->top + y * p->w.dilation[0]) * line +
					      (r->from + x * p->w.dilation[1]) * p->channels;

			if (first)
				memcpy(to, from, (size_t)p->channels);
			else if (p->dtype == QL_uint8)
				raise_u8[j->variant](p->channels, from, to);
			else
				raise_i8[j->variant](p->channels, (const int8_t *)from, (int8_t *)to);
		}
	if (first) /* padding alone, as in pool_codes.c */
		memset(to, p->dtype == QL_uint8 ? 0 : INT8_MIN, (size_t)p->channels);
}

/* count: the numbers that are part of the mean; 0: all of the kernel. */
static void mean(
	const struct job *j, const uint8_t *image, const struct reach *r, int64_t count, int32_t *sum, uint8_t *to)
{
	const struct ql_pool_codes *p = j->p;
	int64_t line = p->w.in[1] * p->channels, n = p->channels;
	int32_t zeros = (int32_t)(r->lines * r->pixels) * p->zero[0];

	for (int64_t i = 0; i < n; i++)
		sum[i] = -zeros;
	for (int64_t y = 0; y < r->lines; y++)
		for (int64_t x = 0; x < r->pixels; x++) {
			const uint8_t *from = image + (r->top + y) * line + (r->from + x) * n;

			if (p->dtype == QL_uint8)
				add_u8[j->variant](n, from, sum);
			else
				add_i8[j->variant](n, (const int8_t *)from, sum);
		}
	if (!count && p->quotient)
		count = p->w.kernel[0] * p->w.kernel[1];
	if (count)
		for (int64_t i = 0; i < n; i++)
			sum[i] = ql_pool_code(p, sum[i], count, 0);
	else if (p->factor && p->rule)
		for (int64_t i = 0; i < n; i++)
			sum[i] = ql_fixed_code(p->rule, false, sum[i], p->fixed[0], &p->r);
	else if (p->factor)
		rescale[j->variant](n, sum, p->factor[0], &p->r);
	else
		divide[j->variant](n, sum, (double)p->w.kernel[0] * (double)p->w.kernel[1], p->zero[0]);
	narrow[j->variant](n, sum, to);
}

static void body(void *arg, int64_t begin, int64_t end)
{
	struct job *j = arg;
	const struct ql_pool_codes *p = j->p;
	const struct ql_window *w = &p->w;
	int slot;
	int32_t *sum = ql_slots_enter(&j->slots, &slot);

	for (int64_t row = begin; row < end && !ql_stopped(j->ctx); row++) {
		const uint8_t *image = (const uint8_t *)p->x + row / w->out[0] * w->in[0] * w->in[1] * p->channels;
		uint8_t *to = (uint8_t *)p->out + row * w->out[1] * p->channels;

		for (int64_t x = 0; x < w->out[1]; x++, to += p->channels) {
			struct reach r = reach_of(w, row % w->out[0], x);

			if (p->mean)
				mean(j, image, &r, j->even ? 0 : counted(w, row % w->out[0], x), sum, to);
			else
				largest(j, image, &r, to);
		}
	}
	ql_slots_leave(&j->slots, slot);
}

bool ql_pool_last_fits(const struct ql_pool_codes *p)
{
	return ql_dtypes[p->dtype].bits == 8 && ql_dtypes[p->out_dtype].bits == 8 &&
	       (!p->mean || (p->zeros == 1 && p->w.kernel[0] <= INT32_MAX / 512 / p->w.kernel[1]));
}

enum ql_status ql_pool_last(struct ql_ctx *ctx, const struct ql_pool_codes *p)
{
	const struct ql_window *w = &p->w;
	struct job j = {.ctx = ctx, .p = p, .even = ql_window_even(w), .variant = ctx->kernels->simd->variant};
	int64_t rows = p->planes / p->channels * w->out[0];
	double ns = (double)w->out[1] *
		    (10 + (double)w->kernel[0] * (double)w->kernel[1] * (2 + 0.05 * (double)p->channels));
	enum ql_status status = ql_slots_take(ctx, ql_size_array(p->channels, sizeof(int32_t)), &j.slots);

	if (status)
		return status;
	return ql_parallel_for(ctx, rows, ql_max64(1, (int64_t)(TASK_NS / ns)),
		ns * (double)rows < 1e18 ? (int64_t)(ns * (double)rows) : INT64_MAX, body, &j);
}
