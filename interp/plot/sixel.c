/* SPDX-License-Identifier: MIT
 * A sixel is a column of six pixels of one colour; a band of six rows is written once per colour in it.
 * Colours are the most frequent ones of the picture at 5 bits a channel (a plot has few, and blends of them
 * at the edges); the others take the nearest. Runs of equal sixels are written as !count.
 */
#include "interp/plot/sixel.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BINS 32768

struct job {
	struct ql_ctx *ctx;
	int width, height, colours;
	uint8_t *pixel;   /* (height, width, 3) */
	uint8_t *index;   /* (height, width): number of its colour */
	uint32_t *count;  /* pixels per bin */
	int16_t *nearest; /* colour of a bin; -1: not known yet */
	uint32_t colour[256];
	struct ql_encoded out;
	size_t room;
	enum ql_status status;
};

static enum ql_status decode(struct job *j, const struct ql_encoded *png)
{
	png_image image = {.version = PNG_IMAGE_VERSION};
	size_t n;

	if (!png_image_begin_read_from_memory(&image, png->at, png->n))
		return ql_fail(j->ctx, QL_ERR_FORMAT, "plot: the picture could not be read back: %s", image.message);
	image.format = PNG_FORMAT_RGB;
	j->width = (int)image.width;
	j->height = (int)image.height;
	n = (size_t)j->width * (size_t)j->height;
	j->pixel = ql_alloc_array(j->ctx, (int64_t)n, 3);
	j->index = ql_alloc(j->ctx, n);
	j->count = ql_alloc_zeroed(j->ctx, BINS * sizeof(*j->count));
	j->nearest = ql_alloc(j->ctx, BINS * sizeof(*j->nearest));
	if (!j->pixel || !j->index || !j->count || !j->nearest) {
		png_image_free(&image);
		return QL_ERR_MEMORY;
	}
	if (!png_image_finish_read(&image, NULL, j->pixel, 0, NULL))
		return ql_fail(j->ctx, QL_ERR_FORMAT, "plot: the picture could not be read back: %s", image.message);
	return QL_OK;
}

static unsigned bin_of(const uint8_t *p)
{
	return (unsigned)(p[0] >> 3) << 10 | (unsigned)(p[1] >> 3) << 5 | (unsigned)(p[2] >> 3);
}

/* Middle of a bin, such that the extremes stay 0 and 255. */
static int channel(unsigned bin, int shift)
{
	return (int)((bin >> shift & 31) * 255 / 31);
}

static int distance(unsigned a, unsigned b)
{
	int sum = 0;

	for (int shift = 0; shift <= 10; shift += 5) {
		int d = channel(a, shift) - channel(b, shift);

		sum += d * d;
	}
	return sum;
}

/* The `colours` fullest bins. */
static void choose(struct job *j)
{
	int n = 0;

	for (size_t i = 0; i < (size_t)j->width * (size_t)j->height; i++)
		j->count[bin_of(j->pixel + 3 * i)]++;
	for (; n < j->colours; n++) {
		unsigned best = 0;

		for (unsigned b = 1; b < BINS; b++)
			if (j->count[b] > j->count[best])
				best = b;
		if (!j->count[best])
			break;
		j->colour[n] = best;
		j->count[best] = 0;
	}
	j->colours = n;
}

static void assign(struct job *j)
{
	memset(j->nearest, -1, BINS * sizeof(*j->nearest));
	for (size_t i = 0; i < (size_t)j->width * (size_t)j->height; i++) {
		unsigned bin = bin_of(j->pixel + 3 * i);

		if (j->nearest[bin] < 0) {
			int best = 0;

			for (int k = 1; k < j->colours; k++)
				if (distance(bin, j->colour[k]) < distance(bin, j->colour[best]))
					best = k;
			j->nearest[bin] = (int16_t)best;
		}
		j->index[i] = (uint8_t)j->nearest[bin];
	}
}

static void put(struct job *j, const char *bytes, size_t n)
{
	char *more;

	if (j->status)
		return;
	if (j->room - j->out.n < n) {
		j->room = j->room * 2 + n + 4096;
		more = ql_realloc(j->ctx, j->out.at, j->room);
		if (!more) {
			j->status = QL_ERR_MEMORY;
			return;
		}
		j->out.at = more;
	}
	memcpy(j->out.at + j->out.n, bytes, n);
	j->out.n += n;
}

static void put_run(struct job *j, int sixel, int n)
{
	char text[24], c = (char)(63 + sixel);

	if (n > 3) {
		put(j, text, (size_t)snprintf(text, sizeof(text), "!%d%c", n, c));
		return;
	}
	while (n-- > 0)
		put(j, &c, 1);
}

static int sixel_at(const struct job *j, int band, int x, int colour)
{
	int bits = 0;

	for (int i = 0; i < 6 && band + i < j->height; i++)
		bits |= (j->index[(size_t)(band + i) * (size_t)j->width + (size_t)x] == colour) << i;
	return bits;
}

/* One colour of a band; blanks at its end are left out. */
static void put_layer(struct job *j, int band, int colour)
{
	int last = 0, n = 0;

	for (int x = 0; x < j->width; x++) {
		int sixel = sixel_at(j, band, x, colour);

		if (n && sixel != last) {
			put_run(j, last, n);
			n = 0;
		}
		last = sixel;
		n++;
	}
	if (last)
		put_run(j, last, n);
}

static void put_band(struct job *j, int band)
{
	bool present[256] = {false};
	char text[16];
	int rows = j->height - band < 6 ? j->height - band : 6;

	for (size_t i = 0; i < (size_t)rows * (size_t)j->width; i++)
		present[j->index[(size_t)band * (size_t)j->width + i]] = true;
	for (int k = 0; k < j->colours; k++) {
		if (!present[k])
			continue;
		put(j, text, (size_t)snprintf(text, sizeof(text), "#%d", k));
		put_layer(j, band, k);
		put(j, "$", 1); /* back to the start of the band */
	}
	put(j, "-", 1);
}

static void put_picture(struct job *j)
{
	char text[64];

	put(j, text, (size_t)snprintf(text, sizeof(text), "\x1bP0;0;0q\"1;1;%d;%d", j->width, j->height));
	for (int k = 0; k < j->colours; k++)
		put(j, text, /* percent of red, green, blue */
			(size_t)snprintf(text, sizeof(text), "#%d;2;%d;%d;%d", k,
				(channel(j->colour[k], 10) * 100 + 127) / 255,
				(channel(j->colour[k], 5) * 100 + 127) / 255,
				(channel(j->colour[k], 0) * 100 + 127) / 255));
	for (int band = 0; band < j->height; band += 6)
		put_band(j, band);
	put(j, "\x1b\\\n", 3);
}

enum ql_status ql_sixel_encode(struct ql_ctx *ctx, const struct ql_encoded *png, int colours, struct ql_encoded *out)
{
	struct job *j = ql_alloc_zeroed(ctx, sizeof(*j));
	enum ql_status status;

	if (!j)
		return QL_ERR_MEMORY;
	j->ctx = ctx;
	j->colours = colours;
	status = decode(j, png);
	if (!status) {
		choose(j);
		assign(j);
		put_picture(j);
		status = j->status;
	}
	ql_free(ctx, j->pixel);
	ql_free(ctx, j->index);
	ql_free(ctx, j->count);
	ql_free(ctx, j->nearest);
	if (status)
		ql_free(ctx, j->out.at);
	else
		*out = j->out;
	ql_free(ctx, j);
	return status;
}
