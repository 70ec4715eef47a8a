/* SPDX-License-Identifier: MIT
 * Convolution in float64 by its definition, product by product: for gradient checks, and for windows whose taps are
 * too far apart for patches.
 */
#include "tensor/conv/conv.h"

#include "tensor/parallel.h"

struct wide {
	const struct ql_ctx *ctx;
	const struct ql_conv *c;
	const double *x, *w, *g;
	double *to;
};

/* The input row or column that tap k of output i reads, or -1. */
static int64_t reads(const struct ql_window *w, int d, int64_t i, int64_t k)
{
	int64_t at = i * w->stride[d] + k * w->dilation[d] - w->before[d];

	return at >= 0 && at < w->in[d] ? at : -1;
}

/* Visits all products of output (n, o, i, j) and calls `product` with the indices of x and w. */
#define EACH_PRODUCT(...) \
	do { \
		int64_t per = a->c->c / a->c->groups, base = o / (a->c->o / a->c->groups) * per; \
		for (int64_t c = 0; c < per; c++) \
			for (int64_t r = 0; r < v->kernel[0]; r++) \
				for (int64_t s = 0; s < v->kernel[1]; s++) { \
					int64_t y = reads(v, 0, i, r), x = reads(v, 1, j, s); \
					int64_t at_w = ((o * per + c) * v->kernel[0] + r) * v->kernel[1] + s; \
					int64_t at_x = ((n * a->c->c + base + c) * v->in[0] + y) * v->in[1] + x; \
					if (y >= 0 && x >= 0) { \
						__VA_ARGS__; \
					} \
				} \
	} while (0)

/* item: one plane of the result */
static void y_planes(void *arg, int64_t begin, int64_t end)
{
	const struct wide *a = arg;
	const struct ql_window *v = &a->c->window;

	for (int64_t plane = begin; plane < end; plane++) {
		int64_t n = plane / a->c->o, o = plane % a->c->o;

		for (int64_t i = 0; i < v->out[0] && !ql_stopped(a->ctx); i++)
			for (int64_t j = 0; j < v->out[1]; j++) {
				double sum = 0;

				EACH_PRODUCT(sum += a->x[at_x] * a->w[at_w]);
				a->to[(plane * v->out[0] + i) * v->out[1] + j] = sum;
			}
	}
}

/* item: one image of dx */
static void dx_images(void *arg, int64_t begin, int64_t end)
{
	const struct wide *a = arg;
	const struct ql_window *v = &a->c->window;
	int64_t image = a->c->c * v->in[0] * v->in[1];

	for (int64_t n = begin; n < end; n++) {
		for (int64_t i = 0; i < image; i++)
			a->to[n * image + i] = 0;
		for (int64_t o = 0; o < a->c->o; o++)
			for (int64_t i = 0; i < v->out[0] && !ql_stopped(a->ctx); i++)
				for (int64_t j = 0; j < v->out[1]; j++) {
					double g = a->g[((n * a->c->o + o) * v->out[0] + i) * v->out[1] + j];

					EACH_PRODUCT(a->to[at_x] += g * a->w[at_w]);
				}
	}
}

/* item: the weights of one output */
static void dw_outputs(void *arg, int64_t begin, int64_t end)
{
	const struct wide *a = arg;
	const struct ql_window *v = &a->c->window;
	int64_t row = a->c->c / a->c->groups * v->kernel[0] * v->kernel[1];

	for (int64_t o = begin; o < end; o++) {
		for (int64_t i = 0; i < row; i++)
			a->to[o * row + i] = 0;
		for (int64_t n = 0; n < a->c->n; n++)
			for (int64_t i = 0; i < v->out[0] && !ql_stopped(a->ctx); i++)
				for (int64_t j = 0; j < v->out[1]; j++) {
					double g = a->g[((n * a->c->o + o) * v->out[0] + i) * v->out[1] + j];

					EACH_PRODUCT(a->to[at_w] += g * a->x[at_x]);
				}
	}
}

static enum ql_status run(struct ql_ctx *ctx, int64_t items, ql_parallel_fn *loop, struct wide *a)
{
	const struct ql_window *v = &a->c->window;
	double work = 2.0 * (double)a->c->n * (double)a->c->o * (double)(a->c->c / a->c->groups) * (double)v->out[0] *
		      (double)v->out[1] * (double)v->kernel[0] * (double)v->kernel[1];

	a->ctx = ctx;
	return ql_parallel_for(ctx, items, 1, work < 1e18 ? (int64_t)work : INT64_MAX, loop, a);
}

enum ql_status ql_conv_wide_y(struct ql_ctx *ctx, const struct ql_conv *c, const double *x, const double *w, double *y)
{
	return run(ctx, c->n * c->o, y_planes, &(struct wide){.c = c, .x = x, .w = w, .to = y});
}

enum ql_status ql_conv_wide_dx(
	struct ql_ctx *ctx, const struct ql_conv *c, const double *g, const double *w, double *dx)
{
	return run(ctx, c->n, dx_images, &(struct wide){.c = c, .g = g, .w = w, .to = dx});
}

enum ql_status ql_conv_wide_dw(
	struct ql_ctx *ctx, const struct ql_conv *c, const double *g, const double *x, double *dw)
{
	return run(ctx, c->o, dw_outputs, &(struct wide){.c = c, .g = g, .x = x, .to = dw});
}
