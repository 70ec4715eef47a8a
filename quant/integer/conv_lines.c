/* SPDX-License-Identifier: MIT
 * What convolutions of codes with their channels last share: the lines of an image that some rows of the result read, copied with
 * the zero point of x around and unsigned, and the way from sums to codes.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "tensor/images.h"
#include "tensor/kernels/kernels.h"
#include "tensor/transpose.h"

int64_t ql_conv_lines_of(const struct ql_window *w, int64_t rows)
{
	return (rows - 1) * w->stride[0] + (w->kernel[0] - 1) * w->dilation[0] + 1;
}

int64_t ql_conv_reach_of(const struct ql_window *w)
{
	return (w->out[1] - 1) * w->stride[1] + (w->kernel[1] - 1) * w->dilation[1] + 1;
}

struct ql_conv_lines ql_conv_lines_from(const struct ql_conv_int *c, const struct ql_tensor *x, int64_t channels)
{
	struct ql_conv_lines j = {.c = c,
		.last = ql_images_last(x),
		.flip = c->dtype == QL_int8 ? 0x80 : 0,
		.channels = channels,
		.repeat = 1};

	j.x = j.last ? ql_images_data(x) : ql_tensor_data(x);
	j.pitch = ql_mul64(ql_conv_reach_of(&c->c.window), channels);
	return j;
}

struct ql_conv_i8_codes ql_conv_codes_of(
	const struct ql_conv_int *c, const struct ql_conv_params *p, const struct ql_conv_sum *sum)
{
	return (struct ql_conv_i8_codes){.least = p->relu ? 0 : INT32_MIN,
		.zero = p->r.zero,
		.lo = p->r.lo,
		.hi = p->r.hi,
		.pitch = c->c.o,
		.by = {sum->by[0], sum->by[1]},
		.sum_lo = sum->r.lo,
		.sum_hi = sum->r.hi,
		.sum_zero = sum->r.zero,
		.other_zero = sum->other_zero + (sum->dtype == QL_int8 ? 128 : 0),
		.flip = sum->dtype == QL_int8 ? 0x80 : 0};
}

QL_SIMD(void, copy_flipped, (int64_t n, const uint8_t *from, uint8_t flip, uint8_t *to), {
	QL_INDEPENDENT
	for (int64_t i = 0; i < n; i++)
		to[i] = from[i] ^ flip;
})

/* Puts the channels of n pixels, which are `plane` apart, side by side. */
static void gather(const struct ql_conv_lines *j, int64_t n, const uint8_t *from, int64_t plane, uint8_t *to)
{
	ql_transpose_bytes(n, j->channels, from, plane, to, j->channels);
	if (j->flip)
		copy_flipped[j->c->variant](n * j->channels, to, j->flip, to);
}

/* Repeats n bytes in their place. */
static void repeat(int64_t n, int64_t times, uint8_t *bytes)
{
	for (int64_t i = n - 1; i >= 0; i--)
		memset(bytes + i * times, bytes[i], (size_t)times);
}

/* Copies n pixels of line y of an image, from pixel 0 on. */
static void copy_pixels(const struct ql_conv_lines *j, int64_t image, int64_t group, int64_t y, int64_t n, uint8_t *to)
{
	const struct ql_conv *c = &j->c->c;
	int64_t width = c->window.in[1], plane = c->window.in[0] * width, first = group * j->channels;
	const uint8_t *from = j->x + image * c->c * plane;

	if (!j->last)
		gather(j, n, from + first * plane + y * width, plane, to);
	else if (j->channels == c->c)
		copy_flipped[j->c->variant](n * c->c, from + y * width * c->c, j->flip, to);
	else
		for (int64_t i = 0; i < n; i++)
			copy_flipped[j->c->variant](
				j->channels, from + (y * width + i) * c->c + first, j->flip, to + i * j->channels);
	if (j->repeat > 1)
		repeat(n * j->channels, j->repeat, to);
}

void ql_conv_lines_copy(
	const struct ql_conv_lines *j, int64_t image, int64_t group, int64_t row, int64_t rows, uint8_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t reach = ql_conv_reach_of(w), left = ql_min64(w->before[1], reach), n = ql_min64(w->in[1], reach - left),
		pixel = j->channels * j->repeat;
	int pad = (uint8_t)(j->c->zero ^ j->flip);

	for (int64_t l = 0; l < ql_conv_lines_of(w, rows); l++, to += j->pitch) {
		int64_t y = row * w->stride[0] - w->before[0] + l;

		if (y < 0 || y >= w->in[0]) {
			memset(to, pad, (size_t)j->pitch);
			continue;
		}
		memset(to, pad, (size_t)(left * pixel));
		copy_pixels(j, image, group, y, n, to + left * pixel);
		memset(to + (left + n) * pixel, pad, (size_t)((reach - left - n) * pixel));
	}
	memset(to, 0, QL_CONV_SLACK); /* times weights of 0 */
}
