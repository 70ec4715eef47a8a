/* SPDX-License-Identifier: MIT
 * Convolutions as products, never unfolded in memory: geometry from the options of a call, taps in the order of
 * tensor/conv/unfold.h. The sums of the result and of the input's gradient have lines of the weight and columns of pixels
 * of a grid; for the gradient there is a grid for each pair of remainders of rows and columns modulo the stride, and the
 * taps that reach it.
 */
#ifndef QUOLL_GPU_KERNELS_CONV_H
#define QUOLL_GPU_KERNELS_CONV_H

#include "gpu/kernels/launch.h"
#include "gpu/kernels/window.h"

#define QL_CONV_REACH 65536 /* numbers of a plane from the first tap to the last, at most */

/* The taps of one direction that reach a remainder: tap first + a period reads the source at from - a by. */
struct ql_tap_line {
	int64_t first, from, by;
	int32_t count;
};

struct ql_conv_shape {
	ql_gpu_window w;
	int64_t groups, rows, channels; /* of a group: lines and summed channels */
	ql_images source, weight, target;
	int64_t line, channel; /* strides of the weight along lines and summed channels */
	int64_t apart;         /* between the first lines of groups */
	int64_t step[2], every[2], grid[2], period[2];
	int64_t phases, pixels; /* pairs of remainders; pixels of the largest grid */
	bool back;              /* the input's gradient */
};

static inline int64_t ql_common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

/* What conv2d and its gradients have in common: images x, the weight w, y or its gradient. */
static inline bool ql_conv_geometry(const struct ql_gpu_call *call, const struct ql_gpu_tensor *x,
	const struct ql_gpu_tensor *w, const struct ql_gpu_tensor *y, struct ql_gpu_window *v, int64_t *groups,
	struct ql_gpu_plan *p)
{
	*groups = ql_option_integer(call, "groups", 1);
	if (x->rank != 4 || w->rank != 4 || y->rank != 4)
		return ql_refuse(p, "wanted four axes");
	*v = ql_window_of(call, &x->shape[2], &w->shape[2], 1);
	for (int d = 0; d < 2; d++)
		if (v->out[d] != y->shape[2 + d])
			return ql_refuse(p, "shapes that do not fit");
	if (*groups < 1 || x->shape[1] != w->shape[1] * *groups || w->shape[0] % *groups ||
		y->shape[1] != w->shape[0] || x->shape[0] != y->shape[0])
		return ql_refuse(p, "shapes that do not fit");
	if ((v->dilation[0] * (v->kernel[0] - 1) + 1) > QL_CONV_REACH ||
		(v->dilation[1] * (v->kernel[1] - 1) + 1) > QL_CONV_REACH ||
		(v->dilation[0] * (v->kernel[0] - 1) + 1) * (v->dilation[1] * (v->kernel[1] - 1) + 1) > QL_CONV_REACH ||
		v->stride[0] > QL_CONV_REACH || v->stride[1] > QL_CONV_REACH)
		return ql_refuse(p, "taps that are far apart");
	return true;
}

/* The result (into y) or, `back`, the input's gradient (into x). */
static inline void ql_conv_sums_of(struct ql_conv_shape *s, bool back, const struct ql_gpu_tensor *x,
	const struct ql_gpu_tensor *w, const struct ql_gpu_tensor *y)
{
	int64_t outputs = w->shape[0] / s->groups;

	s->back = back;
	s->weight = ql_images_of(w);
	s->source = ql_images_of(back ? y : x);
	s->target = ql_images_of(back ? x : y);
	s->rows = back ? w->shape[1] : outputs;
	s->channels = back ? outputs : w->shape[1];
	s->line = w->stride[back ? 1 : 0];
	s->channel = w->stride[back ? 0 : 1];
	s->apart = outputs * w->stride[0];
	s->phases = 1;
	s->pixels = x->shape[0];
	for (int d = 0; d < 2; d++) {
		int64_t stride = s->w.stride[d], most = stride < s->w.in[d] ? stride : s->w.in[d]; /* remainders */

		s->step[d] = back ? 1 : stride;
		s->every[d] = back ? stride : 1;
		s->period[d] = back ? stride / ql_common_divisor(stride, s->w.dilation[d]) : 1;
		s->grid[d] = back ? (s->w.in[d] + stride - 1) / stride : s->w.out[d];
		s->phases *= back ? most : 1;
		s->pixels *= s->grid[d];
	}
}

/* ---- in kernels ---- */

/* One grid of pixels. */
struct ql_phase {
	int64_t at[2], grid[2], pixels;
	ql_tap_line taps[2];
};

QL_DEVICE ql_tap_line ql_taps_of(const ql_conv_shape &s, int d, int64_t remainder)
{
	const ql_gpu_window &w = s.w;
	int64_t tap = 0, stride = s.every[d];
	ql_tap_line t;

	if (!s.back)
		return {0, -w.before[d], -w.dilation[d], (int32_t)w.kernel[d]};
	while (tap < w.kernel[d] && tap < s.period[d] && (remainder + w.before[d] - tap * w.dilation[d]) % stride)
		tap++;
	t.first = tap;
	t.count = tap < w.kernel[d] && tap < s.period[d] ? (int32_t)((w.kernel[d] - tap - 1) / s.period[d] + 1) : 0;
	t.from = (remainder + w.before[d] - tap * w.dilation[d]) / stride;
	t.by = s.period[d] * w.dilation[d] / stride;
	return t;
}

QL_DEVICE ql_phase ql_phase_of(const ql_conv_shape &s, int64_t number)
{
	int64_t across = s.every[1] < s.w.in[1] ? s.every[1] : s.w.in[1];
	ql_phase p;

	p.at[0] = s.back ? number / across : 0;
	p.at[1] = s.back ? number % across : 0;
	p.pixels = s.source.n;
	for (int d = 0; d < 2; d++) {
		p.grid[d] = s.back ? (s.w.in[d] - p.at[d] + s.every[d] - 1) / s.every[d] : s.w.out[d];
		p.pixels *= p.grid[d];
		p.taps[d] = ql_taps_of(s, d, p.at[d]);
	}
	return p;
}

/* What product k of a sum multiplies: offsets in the source, from the pixel's place, and in the weight, from its line. */
struct ql_tap {
	int64_t source, weight;
	int32_t y, x; /* rows and columns from the pixel's place */
};

QL_DEVICE ql_tap ql_tap_of(const ql_conv_shape &s, const ql_phase &p, int64_t k)
{
	int64_t across = p.taps[1].count, taps = p.taps[0].count * across, channel = k / taps;
	int32_t tap = (int32_t)(k - channel * taps), a = tap / (int32_t)across, b = tap % (int32_t)across;
	int64_t y = p.taps[0].from - a * p.taps[0].by, x = p.taps[1].from - b * p.taps[1].by;

	return {channel * s.source.stride[1] + y * s.source.stride[2] + x * s.source.stride[3],
		channel * s.channel + (p.taps[0].first + a * s.period[0]) * s.weight.stride[2] +
			(p.taps[1].first + b * s.period[1]) * s.weight.stride[3],
		(int32_t)y, (int32_t)x};
}

/* Where the taps of a pixel of the grid begin in the source, and where its result is in a plane of the dense target;
 * beyond the last pixel `to` is -1. */
struct ql_pixel {
	int64_t from, to;
	int32_t y, x;
};

QL_DEVICE ql_pixel ql_pixel_of(const ql_conv_shape &s, const ql_phase &p, int64_t i)
{
	int64_t line = i / p.grid[1], x = i - line * p.grid[1], image = line / p.grid[0], y = line - image * p.grid[0];
	int64_t h = y * s.step[0], w = x * s.step[1];

	if (i >= p.pixels)
		return {0, -1, 0, 0};
	return {image * s.source.stride[0] + h * s.source.stride[2] + w * s.source.stride[3],
		(image * s.groups * s.rows * s.target.h + p.at[0] + y * s.every[0]) * s.target.w + p.at[1] +
			x * s.every[1],
		(int32_t)h, (int32_t)w};
}

/* Whether the tap of a pixel is in the source. */
QL_DEVICE bool ql_is_inside(const ql_conv_shape &s, int32_t y, int32_t x)
{
	return (uint32_t)y < (uint32_t)s.source.h && (uint32_t)x < (uint32_t)s.source.w;
}

#endif
