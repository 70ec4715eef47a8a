/* SPDX-License-Identifier: MIT
 * Rows of batches. Augmentation works on the codes of images: a crop at a random position of the zero-padded image
 * (He et al., "Deep residual learning", 2015, section 4.2), a flip, and a blank square around a random pixel,
 * clipped at the border (DeVries and Taylor, "Cutout", 2017). The four random words of a sample depend on its
 * number, not on its position in the pass.
 */
#include "nn/loader_fill.h"

#include <string.h>

#include "tensor/rng.h"

#define PIECE 1024                       /* words drawn at a time */
#define SAMPLES_FROM ((uint64_t)1 << 40) /* smaller counters are for the permutation */

/* A random number below n (at most 2^32) from 32 bits. */
static int64_t below(uint32_t bits, int64_t n)
{
	return (int64_t)((uint64_t)bits * (uint64_t)n >> 32);
}

/* Fisher-Yates with 64 bits per step: the bias of the multiplication is below n / 2^64. */
void ql_filler_shuffle(int variant, uint64_t seed, int64_t n, int64_t *order)
{
	uint32_t words[PIECE];

	for (int64_t i = 0; i < n; i++)
		order[i] = i;
	for (int64_t i = 0; i < n; i++) {
		int64_t at = i % (PIECE / 2), j, k = n - 1 - i, other;
		uint64_t bits;

		if (at == 0)
			ql_rng_words(variant, seed, (uint64_t)(i / 2), PIECE / 4, words);
		bits = (uint64_t)words[2 * at] << 32 | words[2 * at + 1];
		j = (int64_t)((unsigned __int128)bits * (uint64_t)(k + 1) >> 64);
		other = order[j];
		order[j] = order[k];
		order[k] = other;
	}
}

/* The arithmetic of ((code - zero) * scale - mean) / deviation on float32 tensors. */
void ql_filler_table(const struct ql_loader_plan *plan, int64_t channels, float scale, int32_t zero, float *table)
{
	for (int64_t c = 0; c < channels; c++)
		for (int32_t code = 0; code < 256; code++)
			table[256 * c + code] = ((float)(code - zero) * scale - plan->mean[c]) / plan->deviation[c];
}

int64_t ql_filler_height(const struct ql_filler *f, int64_t batch)
{
	int64_t n = f->n;

	if (f->plan.order == QL_LOADER_STREAMS)
		return f->plan.batch;
	if (f->plan.order == QL_LOADER_WINDOWS)
		n = (f->n - 1) / f->plan.steps;
	return ql_min64(f->plan.batch, n - batch * f->plan.batch);
}

int64_t ql_filler_steps(const struct ql_filler *f, int64_t batch)
{
	if (f->plan.order == QL_LOADER_STREAMS)
		return ql_min64(f->plan.steps, f->n / f->plan.batch - 1 - batch * f->plan.steps);
	return f->plan.steps;
}

/* First token of a row. */
static int64_t token_of(const struct ql_filler *f, int64_t batch, int64_t row)
{
	int64_t window = batch * f->plan.batch + row;
	uint32_t words[4];

	if (f->plan.order == QL_LOADER_STREAMS)
		return row * (f->n / f->plan.batch) + batch * f->plan.steps;
	if (!f->plan.shuffle)
		return window * f->plan.steps;
	ql_rng_words(f->variant, f->plan.seed, SAMPLES_FROM + (uint64_t)window, 1, words);
	return (int64_t)((unsigned __int128)((uint64_t)words[0] << 32 | words[1]) * (uint64_t)(f->n - f->plan.steps) >>
			 64);
}

/* ---- images ---- */

/* Copies one row of pixels shifted by dx, with zeros outside the image. */
static void shift(const struct ql_filler *f, const uint8_t *from, int64_t dx, uint8_t *to)
{
	int64_t lo = ql_min64(f->width, ql_max64(0, -dx)), hi = ql_max64(lo, ql_min64(f->width, f->width - dx));

	memset(to, f->zero, (size_t)lo);
	memcpy(to + lo, from + lo + dx, (size_t)(hi - lo));
	memset(to + hi, f->zero, (size_t)(f->width - hi));
}

static void mirror(uint8_t *row, int64_t n)
{
	for (int64_t i = 0; i < n / 2; i++) {
		uint8_t other = row[i];

		row[i] = row[n - 1 - i];
		row[n - 1 - i] = other;
	}
}

static void blank(const struct ql_filler *f, uint32_t word, uint8_t *image)
{
	int64_t side = f->plan.cutout, h = f->height, w = f->width;
	int64_t y = below(word & 0xffff0000u, h) - side / 2, x = below(word << 16, w) - side / 2;
	int64_t y0 = ql_max64(0, y), y1 = ql_min64(h, y + side), x0 = ql_max64(0, x), x1 = ql_min64(w, x + side);

	for (int64_t c = 0; c < f->channels; c++)
		for (int64_t i = y0; i < y1; i++)
			memset(image + (c * h + i) * w + x0, f->blank[c], (size_t)ql_max64(0, x1 - x0));
}

static void augment(const struct ql_filler *f, int64_t sample, const uint8_t *from, uint8_t *to)
{
	int64_t h = f->height, w = f->width, crop = f->plan.crop, dy, dx;
	uint32_t words[4];
	bool flip;

	ql_rng_words(f->variant, f->plan.seed, SAMPLES_FROM + (uint64_t)sample, 1, words);
	dy = below(words[0], 2 * crop + 1) - crop;
	dx = below(words[1], 2 * crop + 1) - crop;
	flip = f->plan.flip && words[2] >> 31;
	for (int64_t c = 0; c < f->channels; c++)
		for (int64_t i = 0; i < h; i++) {
			uint8_t *row = to + (c * h + i) * w;

			if (i + dy < 0 || i + dy >= h)
				memset(row, f->zero, (size_t)w);
			else
				shift(f, from + (c * h + i + dy) * w, dx, row);
			if (flip)
				mirror(row, w);
		}
	if (f->plan.cutout)
		blank(f, words[3], to);
}

/* The codes are in the last quarter of the memory of the floats: code i is read before float i, which ends at or
 * before it, is written. */
static void normalize(const struct ql_filler *f, uint8_t *place)
{
	int64_t plane = f->height * f->width, n = f->channels * plane;
	const uint8_t *codes = place + 3 * n;

	for (int64_t c = 0; c < f->channels; c++)
		for (int64_t i = c * plane; i < (c + 1) * plane; i++) {
			float value = f->table[256 * c + codes[i]];

			memcpy(place + 4 * i, &value, sizeof(value));
		}
}

static void sample_row(const struct ql_filler *f, int64_t sample, uint8_t *x)
{
	const uint8_t *from = f->x + sample * f->x_bytes;
	uint8_t *codes = f->table ? x + 3 * f->x_bytes : x;

	if (f->plan.crop || f->plan.flip || f->plan.cutout)
		augment(f, sample, from, codes);
	else
		memcpy(codes, from, (size_t)f->x_bytes);
	if (f->table)
		normalize(f, x);
}

void ql_filler_rows(const struct ql_filler *f, int64_t batch, int64_t begin, int64_t end, uint8_t *x, uint8_t *y)
{
	/* size: bounded by the allocated batch */
	int64_t size = f->plan.order == QL_LOADER_SAMPLES ? f->x_bytes * (f->table ? 4 : 1)
							  : ql_filler_steps(f, batch) * f->x_bytes;

	for (int64_t row = begin; row < end; row++) {
		int64_t at = batch * f->plan.batch + row;

		if (f->plan.order == QL_LOADER_SAMPLES) {
			at = f->order ? f->order[at] : at;
			sample_row(f, at, x + row * size);
			if (y)
				memcpy(y + row * f->y_bytes, f->y + at * f->y_bytes, (size_t)f->y_bytes);
		} else {
			at = token_of(f, batch, row);
			memcpy(x + row * size, f->x + at * f->x_bytes, (size_t)size);
			memcpy(y + row * size, f->x + (at + 1) * f->x_bytes, (size_t)size);
		}
	}
}
