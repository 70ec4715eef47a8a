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
		.repeat = 1,
		.fold = 1};

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

void ql_conv_ends_at(const struct ql_conv_ends *e, int64_t o, struct ql_conv_i8_codes *codes)
{
	codes->bias = e->bias + o;
	codes->factor = e->factor + o;
	codes->multiplier = e->multiplier ? e->multiplier + o : NULL;
	codes->right = e->multiplier ? e->right + o : NULL;
}

QL_SIMD(void, copy_flipped, (int64_t n, const uint8_t *from, uint8_t flip, uint8_t *to), {
	QL_INDEPENDENT
	for (int64_t i = 0; i < n; i++)
		to[i] = from[i] ^ flip;
})

/* Copies n bytes a pixel, of pixels that are so many bytes apart. */
static void copy_each(const struct ql_conv_lines *j, int64_t pixels, int64_t n, const uint8_t *from, int64_t from_apart,
	uint8_t *to, int64_t to_apart)
{
	if (from_apart == n && to_apart == n)
		copy_flipped[j->c->variant](pixels * n, from, j->flip, to);
	else
		for (int64_t i = 0; i < pixels; i++)
			copy_flipped[j->c->variant](n, from + i * from_apart, j->flip, to + i * to_apart);
}

/* Puts the channels of n pixels, which are `plane` apart, side by side. */
static void gather(const struct ql_conv_lines *j, int64_t n, const uint8_t *from, int64_t plane, uint8_t *to)
{
	int64_t apart = j->fold * j->channels;

	ql_transpose_bytes(n, j->channels, from, plane, to, apart);
	if (j->flip)
		copy_each(j, n, j->channels, to, apart, to, apart);
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
	else
		copy_each(j, n, j->channels, from + y * width * c->c + first, c->c, to, j->fold * j->channels);
	if (j->repeat > 1)
		repeat(n * j->channels, j->repeat, to);
}

/* The zero point of x in n pixels. */
static void pad(const struct ql_conv_lines *j, int64_t n, uint8_t *to)
{
	int64_t pixel = j->channels * j->repeat;
	int zero = (uint8_t)(j->c->zero ^ j->flip);

	if (j->fold == 1)
		memset(to, zero, (size_t)(n * pixel));
	else
		for (int64_t i = 0; i < n; i++)
			memset(to + i * j->fold * pixel, zero, (size_t)pixel);
}

/* Line y of an image, which may be above or below it. */
static void copy_line(const struct ql_conv_lines *j, int64_t image, int64_t group, int64_t y, uint8_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t reach = ql_conv_reach_of(w), left = ql_min64(w->before[1], reach), n = ql_min64(w->in[1], reach - left),
		apart = j->channels * j->repeat * j->fold;

	if (y < 0 || y >= w->in[0]) {
		pad(j, reach, to);
		return;
	}
	pad(j, left, to);
	copy_pixels(j, image, group, y, n, to + left * apart);
	pad(j, reach - left - n, to + (left + n) * apart);
}

void ql_conv_lines_copy(
	const struct ql_conv_lines *j, int64_t image, int64_t group, int64_t row, int64_t rows, uint8_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t each = rows / j->fold, lines = ql_conv_lines_of(w, each);

	for (int64_t l = 0; l < lines; l++)
		for (int64_t f = 0; f < j->fold; f++)
			copy_line(j, image, group, (row + f * each) * w->stride[0] - w->before[0] + l,
				to + l * j->fold * j->pitch + f * j->channels * j->repeat);
	memset(to + lines * j->fold * j->pitch, 0, QL_CONV_SLACK); /* times weights of 0 */
}
