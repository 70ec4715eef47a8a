/* SPDX-License-Identifier: MIT
 * Synthetic images. Each is a function on the plane, sampled through a random affine map with 2 x 2 points per
 * pixel, plus noise.
 *
 * Digits: bitmaps of 5 x 7, interpolated linearly, white on black like MNIST's. Shapes: disc, ring, square, frame,
 * triangle, plus, cross, horizontal bars, vertical bars, checkerboard; one random colour on another, so that only
 * the shape identifies the class. Rotations come from the rational parametrization of the circle, not from libm's
 * sine, whose last bit depends on the machine.
 */
#include <string.h>

#include "nn/synth.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/rng.h"

#define CLASSES 10
#define WORDS 16            /* random words of an image, before its noise */
#define IMAGE_COUNTERS 4096 /* Philox counters reserved per image */
#define DIGIT_SIDE 28
#define SHAPE_SIDE 32
#define MOST_VALUES (3 * SHAPE_SIDE * SHAPE_SIDE)

struct job {
	uint64_t seed;
	int variant, side, channels;
	void (*draw)(const struct job *j, int class, const uint32_t *words, float *image);
	uint8_t *x;
	int64_t *y;
};

/* Maps a point of the image to the figure's square, -1 to 1. */
struct affine {
	float xx, xy, yx, yy, x0, y0;
};

static float uniform(uint32_t word, float lo, float hi)
{
	return lo + (hi - lo) * ((float)(word >> 8) * 0x1p-24f);
}

/* Rotation by 2 atan(t), scales, a shear and a shift; `much`, 0 to 1, scales all ranges. */
static struct affine random_affine(const uint32_t *w, float much)
{
	float t = uniform(w[0], -0.16f, 0.16f) * much, c = (1 - t * t) / (1 + t * t), s = 2 * t / (1 + t * t);
	float sx = 1 / uniform(w[1], 1 - 0.25f * much, 1 + 0.15f * much);
	float sy = 1 / uniform(w[2], 1 - 0.2f * much, 1 + 0.15f * much), shear = uniform(w[3], -0.3f, 0.3f) * much;
	struct affine a = {.x0 = uniform(w[4], -0.2f, 0.2f) * much, .y0 = uniform(w[5], -0.2f, 0.2f) * much};

	a.xx = sx * (c + shear * s);
	a.xy = sx * (shear * c - s);
	a.yx = sy * s;
	a.yy = sy * c;
	return a;
}

/* ---- digits ---- */

/* Rows of five pixels, the leftmost in the highest of five bits. */
static const uint8_t font[CLASSES][7] = {{14, 17, 19, 21, 25, 17, 14}, {4, 12, 4, 4, 4, 4, 14},
	{14, 17, 1, 6, 8, 16, 31}, {14, 17, 1, 6, 1, 17, 14}, {2, 6, 10, 18, 31, 2, 2}, {31, 16, 30, 1, 1, 17, 14},
	{6, 8, 16, 30, 17, 17, 14}, {31, 1, 2, 4, 8, 8, 8}, {14, 17, 17, 14, 17, 17, 14}, {14, 17, 17, 15, 1, 2, 12}};

static float pixel(const uint8_t *rows, int x, int y)
{
	return x >= 0 && x < 5 && y >= 0 && y < 7 && (rows[y] >> (4 - x) & 1) ? 1.0f : 0.0f;
}

/* The bitmap fills 0.6 of the width and 0.8 of the height of the square. */
static float digit_at(int class, float u, float v)
{
	float x = u * (2.5f / 0.6f) + 2, y = v * (3.5f / 0.8f) + 3, fx, fy;
	const uint8_t *rows = font[class];
	int ix = (int)(x + 16) - 16, iy = (int)(y + 16) - 16; /* floors: both are above -16 */

	if (x < -1 || x > 5 || y < -1 || y > 7)
		return 0;
	fx = x - (float)ix;
	fy = y - (float)iy;
	return (pixel(rows, ix, iy) * (1 - fx) + pixel(rows, ix + 1, iy) * fx) * (1 - fy) +
	       (pixel(rows, ix, iy + 1) * (1 - fx) + pixel(rows, ix + 1, iy + 1) * fx) * fy;
}

/* ---- shapes ---- */

static float absolute(float x)
{
	return x < 0 ? -x : x;
}

static float larger(float a, float b)
{
	return a > b ? a : b;
}

/* True in the even stripes of width 0.32 of a figure that ends at 0.8. */
static bool stripe(float x)
{
	return ((int)((x + 0.8f) * (1 / 0.32f)) & 1) == 0;
}

static bool inside(int class, float u, float v)
{
	float r = u * u + v * v, square = larger(absolute(u), absolute(v)), a = absolute(u + v), b = absolute(u - v);

	switch (class) {
	case 0: return r < 0.64f;
	case 1: return r < 0.64f && r > 0.2f;
	case 2: return square < 0.7f;
	case 3: return square < 0.75f && square > 0.45f;
	case 4: return v < 0.7f && v > -0.8f && absolute(u) < (v + 0.8f) * 0.55f;
	case 5: return square < 0.8f && (absolute(u) < 0.22f || absolute(v) < 0.22f);
	case 6: return square < 0.8f && (a < 0.34f || b < 0.34f);
	case 7: return square < 0.8f && stripe(v);
	case 8: return square < 0.8f && stripe(u);
	default: return square < 0.8f && stripe(u) != stripe(v);
	}
}

/* ---- images ---- */

static float coverage(const struct job *j, int class, const struct affine *a, int px, int py)
{
	float sum = 0, step = 2.0f / (float)j->side;

	for (int k = 0; k < 4; k++) {
		float x = ((float)px + 0.25f + 0.5f * (float)(k & 1)) * step - 1;
		float y = ((float)py + 0.25f + 0.5f * (float)(k >> 1)) * step - 1, u, v;

		x -= a->x0;
		y -= a->y0;
		u = a->xx * x + a->xy * y;
		v = a->yx * x + a->yy * y;
		sum += j->channels == 1 ? digit_at(class, u, v) : inside(class, u, v) ? 1.0f : 0.0f;
	}
	return 0.25f * sum;
}

static void draw_mask(const struct job *j, int class, const struct affine *a, float *image)
{
	for (int i = 0; i < j->side * j->side; i++)
		image[i] = coverage(j, class, a, i % j->side, i / j->side);
}

/* A random ink from 1 to 2 makes strokes harder or softer. */
static void draw_digit(const struct job *j, int class, const uint32_t *w, float *image)
{
	struct affine a = random_affine(w, 1);
	float ink = uniform(w[6], 1, 2), light = uniform(w[7], 160, 255);

	draw_mask(j, class, &a, image);
	for (int i = 0; i < j->side * j->side; i++)
		image[i] = light * (image[i] * ink > 1 ? 1 : image[i] * ink);
}

/* Figure and ground differ by at least 80 of 255 in one channel. The first channel stores the mask and is coloured
 * last. */
static void draw_shape(const struct job *j, int class, const uint32_t *w, float *image)
{
	struct affine a = random_affine(w, 0.8f);
	int plane = j->side * j->side, far = (int)(w[13] % 3);

	draw_mask(j, class, &a, image);
	for (int c = 2; c >= 0; c--) {
		float ground = uniform(w[7 + c], 20, 235), figure = uniform(w[10 + c], 20, 235);

		if (c == far)
			figure = ground + (ground < 128 ? 1.0f : -1.0f) * uniform(w[10 + c], 80, 120);
		for (int i = 0; i < plane; i++)
			image[c * plane + i] = ground + (figure - ground) * image[i];
	}
}

/* Noise of about 12 of 255 standard deviation: the sum of the four bytes of a word. */
static float noise(uint32_t word)
{
	int sum = (int)(word & 255) + (int)(word >> 8 & 255) + (int)(word >> 16 & 255) + (int)(word >> 24);

	return ((float)sum - 510) * 0.08f;
}

static void body(void *arg, int64_t begin, int64_t end)
{
	const struct job *j = arg;
	int n = j->channels * j->side * j->side;
	float image[MOST_VALUES];
	uint32_t words[WORDS + MOST_VALUES];

	for (int64_t i = begin; i < end; i++) {
		int class;

		ql_rng_words(j->variant, j->seed, (uint64_t)i * IMAGE_COUNTERS, (WORDS + n) / 4, words);
		class = (int)((uint64_t)words[14] * CLASSES >> 32);
		j->draw(j, class, words, image);
		j->y[i] = class + 1;
		for (int k = 0; k < n; k++) {
			float value = image[k] + noise(words[WORDS + k]) + 0.5f;

			j->x[i * n + k] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
		}
	}
}

static enum ql_status images(struct ql_ctx *ctx, int64_t n, struct job *j, struct ql_tensor **x, struct ql_tensor **y)
{
	int64_t shape[4] = {n, j->channels, j->side, j->side};
	enum ql_status status;

	if (n < 1)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "synth: n: wanted 1 or more, got %lld", (long long)n);
	status = ql_tensor_new(ctx, QL_uint8, 4, shape, x);
	if (!status)
		status = ql_tensor_new(ctx, QL_int64, 1, &n, y);
	if (status)
		return status;
	j->variant = ctx->kernels->simd->variant;
	j->x = ql_tensor_data(*x);
	j->y = ql_tensor_data(*y);
	return ql_parallel_for(ctx, n, 16, n * 50000, body, j);
}

enum ql_status ql_synth_digits(struct ql_ctx *ctx, int64_t n, uint64_t seed, struct ql_tensor **x, struct ql_tensor **y)
{
	return images(ctx, n, &(struct job){.seed = seed, .side = DIGIT_SIDE, .channels = 1, .draw = draw_digit}, x, y);
}

enum ql_status ql_synth_shapes(struct ql_ctx *ctx, int64_t n, uint64_t seed, struct ql_tensor **x, struct ql_tensor **y)
{
	return images(ctx, n, &(struct job){.seed = seed, .side = SHAPE_SIDE, .channels = 3, .draw = draw_shape}, x, y);
}
