/* SPDX-License-Identifier: MIT
 * Sums of a convolution as products of the weight (o, c kh kw) with the unfolded codes (c kh kw, pixels), some images
 * at a time. Each row of the unfolded matrix is a shifted image of codes, padded with the zero point of x, which adds
 * nothing. Results are rows of pixels, so they are written in place. Where each image is one window, and so a row already, the product is
 * that of linear.
 */
#include <string.h>

#include "quant/integer/conv_int.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define LANE 16
#define PIXELS 4096              /* columns of a product, enough for its threads */
#define BYTES ((int64_t)8 << 20) /* of the unfolded matrix */

struct job {
	const struct ql_conv_int *c;
	int64_t images, first; /* number of images processed together; the first one */
	int64_t group;
	uint8_t pad;    /* the byte of the zero point of x */
	uint8_t *patch; /* (k, images * pixels) */
};

/* With stride 1 and a result as wide as the image, the plane is the shifted image except for its edges. */
static void shift_plane(const struct job *j, const uint8_t *plane, int64_t up, int64_t left, uint8_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t top, bottom, from, end, width = w->out[1];

	ql_window_reach(w, 0, up, &top, &bottom);
	ql_window_reach(w, 1, left, &from, &end);
	if (top == bottom || from == end) {
		memset(to, j->pad, (size_t)(w->out[0] * width));
		return;
	}
	memset(to, j->pad, (size_t)(top * width));
	memcpy(to + top * width + from, plane + (top + up) * width + from + left,
		(size_t)((bottom - top - 1) * width + end - from));
	for (int64_t i = top; i < bottom; i++) {
		for (int64_t p = 0; p < from; p++)
			to[i * width + p] = j->pad;
		for (int64_t p = end; p < width; p++)
			to[i * width + p] = j->pad;
	}
	memset(to + bottom * width, j->pad, (size_t)((w->out[0] - bottom) * width));
}

static void fill(uint8_t *to, int64_t n, uint8_t byte)
{
	for (int64_t i = 0; i < n; i++)
		to[i] = byte;
}

/* Copies n bytes in whole vectors; reads and writes up to LANE - 1 bytes after them. */
static void copy_over(uint8_t *to, const uint8_t *from, int64_t n)
{
	for (int64_t i = 0; i < n; i += LANE)
		memcpy(to + i, from + i, LANE);
}

/* Unfolds one row of the result, whose columns from..end-1 are inside the image. Excess bytes of a copy are
 * overwritten by the padding and by later rows; without enough later rows (`more`) the copy is exact. */
static void unfold_row(const struct job *j, const uint8_t *row, int64_t from, int64_t end, bool more, uint8_t *out)
{
	const struct ql_window *w = &j->c->c.window;

	if (w->stride[1] != 1)
		for (int64_t p = from; p < end; p++)
			out[p] = row[p * w->stride[1]];
	else if (more)
		copy_over(out + from, row + from, end - from);
	else
		memcpy(out + from, row + from, (size_t)(end - from));
	fill(out, from, j->pad);
	fill(out + end, w->out[1] - end, j->pad);
}

/* One image of one row of the matrix: the plane as read by one tap. */
static void unfold_plane(const struct job *j, const uint8_t *plane, int64_t up, int64_t left, uint8_t *to)
{
	const struct ql_window *w = &j->c->c.window;
	int64_t top, bottom, from, end, apart = w->stride[0] * w->in[1], behind;

	if (w->stride[0] == 1 && w->stride[1] == 1 && w->out[1] == w->in[1]) {
		shift_plane(j, plane, up, left, to);
		return;
	}
	ql_window_reach(w, 0, up, &top, &bottom);
	ql_window_reach(w, 1, left, &from, &end);
	behind = ql_ceil_div(LANE, ql_min64(apart, w->out[1])); /* rows that a copy may overwrite */
	memset(to, j->pad, (size_t)(top * w->out[1]));
	for (int64_t i = top; i < bottom; i++)
		unfold_row(j, plane + i * apart + up * w->in[1] + left, from, end, i + behind < bottom,
			to + i * w->out[1]);
	memset(to + bottom * w->out[1], j->pad, (size_t)((w->out[0] - bottom) * w->out[1]));
}

static void unfold_rows(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	const struct ql_window *w = &j->c->c.window;
	int64_t taps = w->kernel[0] * w->kernel[1], per = j->c->c.c / j->c->c.groups, plane = w->in[0] * w->in[1];

	for (int64_t r = begin; r < end; r++) {
		int64_t channel = j->group * per + r / taps, up = r % taps / w->kernel[1], left = r % w->kernel[1];

		for (int64_t i = 0; i < j->images; i++)
			unfold_plane(j, j->c->x + ((j->first + i) * j->c->c.c + channel) * plane,
				up * w->dilation[0] - w->before[0], left * w->dilation[1] - w->before[1],
				j->patch + (r * j->images + i) * j->c->pixels);
	}
}

/* Columns of the product are the pixels, image by image. */
static void store(void *arg, int64_t i, int64_t column, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	const struct job *j = arg;

	for (int64_t done = 0, part; done < n; done += part) {
		int64_t image = (column + done) / j->c->pixels, pixel = (column + done) % j->c->pixels;

		part = ql_min64(n - done, j->c->pixels - pixel);
		ql_conv_int_store(j->c, j->first + image, j->group * j->c->rows + i, pixel, part,
			sum32 ? sum32 + done : NULL, sum64 ? sum64 + done : NULL);
	}
}

static enum ql_status run_group(struct job *j)
{
	const struct ql_conv_int *c = j->c;
	int64_t columns = j->images * c->pixels;
	struct ql_matrix_int a = c->w;
	struct ql_matrix_int b = {
		.data = j->patch, .dtype = c->dtype, .row = columns, .column = 1, .zero = c->zero ? &c->zero : NULL};
	enum ql_status status =
		ql_parallel_for(c->ctx, c->k, ql_max64(1, 65536 / columns), c->k * columns / 8, unfold_rows, j);

	a.data = (const char *)c->w.data + j->group * c->rows * c->k;
	a.zero = c->w.zero ? c->w.zero + j->group * c->rows * c->w.zero_step : NULL;
	return status ? status : ql_gemm_i8(c->ctx, c->rows, columns, c->k, &a, &b, store, j);
}

/* Whether a result is one pixel, of all of its image. */
static bool is_row(const struct ql_conv_int *c)
{
	const struct ql_window *w = &c->c.window;
	bool whole = c->pixels == 1 && c->c.groups == 1;

	for (int d = 0; d < 2; d++)
		whole = whole && w->before[d] == 0 && w->in[d] == w->kernel[d] &&
			(w->dilation[d] == 1 || w->kernel[d] == 1);
	return whole;
}

static void store_row(void *arg, int64_t i, int64_t output, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	for (int64_t l = 0; l < n; l++)
		ql_conv_int_store(arg, i, output + l, 0, 1, sum32 ? sum32 + l : NULL, sum64 ? sum64 + l : NULL);
}

/* Images as rows, times the weight. */
static enum ql_status run_rows(const struct ql_conv_int *c)
{
	const float one = 1;
	struct ql_conv_int copy = *c;
	struct ql_matrix_int x = {
		.data = c->x, .dtype = c->dtype, .row = c->k, .column = 1, .zero = c->zero ? &c->zero : NULL};
	struct ql_matrix_int w = c->w;
	struct ql_gemm_i8_out out = {.store = store_row,
		.arg = &copy,
		.f32 = c->y,
		.ld = c->c.o,
		.row_scale = &one,
		.column_scale = c->scale,
		.column_step = 1,
		.end = &c->e};

	w.row = 1;
	w.column = c->k;
	return ql_gemm_i8_to(c->ctx, c->c.n, c->c.o, c->k, &x, &w, &out);
}

enum ql_status ql_conv_int_unfolded(const struct ql_conv_int *c)
{
	struct job j = {.c = c, .pad = (uint8_t)c->zero};
	int64_t wanted =
		ql_max64(1, ql_min64(ql_ceil_div(PIXELS, c->pixels), BYTES / ql_max64(1, ql_mul64(c->k, c->pixels))));
	enum ql_status status = QL_OK;

	if (is_row(c))
		return run_rows(c);
	wanted = ql_min64(wanted, c->c.n);
	j.patch = ql_scratch_array(c->ctx, ql_mul64(wanted, c->pixels), (size_t)c->k);
	if (!j.patch)
		return QL_ERR_MEMORY;
	for (j.first = 0; j.first < c->c.n && !status; j.first += j.images) {
		j.images = ql_min64(wanted, c->c.n - j.first);
		for (j.group = 0; j.group < c->c.groups && !status; j.group++)
			status = run_group(&j);
	}
	return status;
}
