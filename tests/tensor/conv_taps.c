/* SPDX-License-Identifier: MIT
 * Convolutions whose tiles read their source in place, or copies of it: ordered sums have the bits of plain loops over (channels, kernel),
 * fused ones those of one thread and one image, near to sums in double; under every level, for sizes around the widths
 * of tiles and blocks, one to many channels and rows, groups, kernels of 1 to 49 taps with any padding above and below, steps, any number of columns,
 * bias, a second operand and activation.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/conv/conv.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops.h"
#include "tests/check.h"

struct shape {
	int64_t images, groups, channels, rows, h, w, kernel[2], above, below; /* padded to keep the width, */
	int64_t step,
		columns; /* with steps, 0: 1, to w / step columns, or to so many if not 0, without padding on the left */
};

static float *new (int64_t n, uint32_t seed)
{
	float *x = malloc((size_t)n * sizeof(*x));

	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		x[i] = (float)(int32_t)seed * 0x1p-31f;
	}
	return x;
}

/* Pixel (y, x) of the result: the sum in order in float, and in double. */
static float plain(const struct ql_conv_sums *s, int64_t image, int64_t group, int64_t row, int64_t y, int64_t x,
	double *exact, double *size)
{
	const struct ql_unfold *u = &s->u;
	const float *a = s->a + (group * s->rows + row) * s->channels * u->taps;
	float sum = 0;

	*exact = *size = 0;
	for (int64_t c = 0; c < s->channels; c++)
		for (int64_t t = 0; t < u->taps; t++) {
			int64_t i = y * u->step[0] + u->y[t], j = x * u->step[1] + u->x[t];
			bool in = i >= 0 && i < u->h && j >= 0 && j < u->w;
			int64_t plane = image * u->planes + group * s->channels + c;
			float b = in ? u->from[(plane * u->h + i) * u->w + j] : 0, w = a[c * u->taps + t];

			sum += w * b;
			*exact += (double)w * (double)b;
			*size += fabs((double)w * (double)b);
		}
	return sum;
}

/* The sums of a shape, which every level, number of threads and end shares: its operands are always the same. */
struct sums {
	float *ordered;
	double *exact, *size;
};

static const struct sums *sums_of(const struct ql_conv_sums *s, struct sums *made)
{
	int64_t rows = s->groups * s->rows, pixels = s->th * s->tw, n = s->u.images * rows * pixels;

	if (made->ordered)
		return made;
	*made = (struct sums){check_alloc((size_t)n * sizeof(float)), check_alloc((size_t)n * sizeof(double)),
		check_alloc((size_t)n * sizeof(double))};
	for (int64_t i = 0; i < n; i++) {
		int64_t r = i / pixels % rows, p = i % pixels;

		made->ordered[i] = plain(s, i / pixels / rows, r / s->rows, r % s->rows, p / s->tw, p % s->tw,
			&made->exact[i], &made->size[i]);
	}
	return made;
}

static bool right(const struct ql_conv_sums *s, const struct sums *sums, bool ordered, const float *bias)
{
	bool good = true;

	for (int64_t n = 0; n < s->u.images; n++)
		for (int64_t r = 0; r < s->groups * s->rows; r++)
			for (int64_t p = 0; p < s->th * s->tw; p++) {
				int64_t i = (n * s->groups * s->rows + r) * s->th * s->tw + p;
				float got = s->target[i], sum = sums->ordered[i];
				double exact = sums->exact[i];

				if (bias) {
					sum = sum + bias[r];
					exact += (double)bias[r];
				}
				if (s->other) {
					sum = sum + s->other[i];
					exact += (double)s->other[i];
				}
				if (s->e.act) {
					sum = sum < 0 ? 0 : sum;
					exact = exact < 0 ? 0 : exact;
				}
				if (ordered)
					good &= got <= sum && got >= sum;
				good &= fabs((double)got - exact) <=
					(double)(s->channels * s->u.taps + 3) * 0x1p-24 * (sums->size[i] + 2);
			}
	return good;
}

static void test_shape(struct ql_ctx *ctx, struct ql_ctx *one, const struct shape *h, struct sums *sums, int end)
{
	bool finish = end & 1;
	int64_t taps = h->kernel[0] * h->kernel[1], y[64], x[64], all = h->groups * h->rows;
	int64_t step = h->step ? h->step : 1, gw = h->columns ? h->columns : ql_ceil_div(h->w, step);
	int64_t gh = (h->h + h->above + h->below - h->kernel[0]) / step + 1, size = all * gh * gw;
	float *from = new (h->images * h->groups * h->channels * h->h * h->w, 1);
	float *a = new (all * h->channels * taps, 2), *bias = new (all, 3);
	float *target = new (h->images * size + 1, 4), *again = new (h->images * size + 1, 4);
	float *other = new (h->images * size, 5);
	struct ql_conv_sums s = {.u = {.from = from,
					 .images = h->images,
					 .planes = h->groups * h->channels,
					 .h = h->h,
					 .w = h->w,
					 .gh = gh,
					 .gw = gw,
					 .step = {step, step},
					 .low = {INT64_MAX, INT64_MAX},
					 .high = {INT64_MIN, INT64_MIN},
					 .taps = taps,
					 .y = y,
					 .x = x,
					 .variant = ctx->kernels->simd->variant},
		.groups = h->groups,
		.channels = h->channels,
		.rows = h->rows,
		.a = a,
		.target = target,
		.th = gh,
		.tw = gw,
		.every = {1, 1}};

	for (int64_t t = 0; t < taps; t++) {
		y[t] = t / h->kernel[1] - h->above;
		x[t] = t % h->kernel[1] - (h->columns ? 0 : h->kernel[1] / 2);
		s.u.low[0] = ql_min64(s.u.low[0], y[t]);
		s.u.low[1] = ql_min64(s.u.low[1], x[t]);
		s.u.high[0] = ql_max64(s.u.high[0], y[t]);
		s.u.high[1] = ql_max64(s.u.high[1], x[t]);
	}
	s.other = end & 2 ? other : NULL;
	if (finish)
		s.e = (struct ql_epilogue){.bias = bias,
			.act = ql_op_by_name(ql_ops, "relu")->impl,
			.relu = end & 6, /* else by the activation's own function, after the tiles */
			.variant = s.u.variant};
	CHECK(ql_conv_is_taps(ctx, &s), "%d x %d: other path", (int)h->h, (int)h->w);
	CHECK(ql_conv_taps(ctx, &s) == QL_OK, "%s", ctx->err);
	CHECK(right(&s, sums_of(&s, sums), ctx->kernels->ordered, finish ? bias : NULL),
		"%s: %d images, %d groups, %d channels, %d rows, %d x %d, kernel %d x %d, end %d",
		ctx->kernels->tiles->name, (int)h->images, (int)h->groups, (int)h->channels, (int)h->rows, (int)h->h,
		(int)h->w, (int)h->kernel[0], (int)h->kernel[1], end);
	for (int64_t n = 0; n < h->images; n++) {
		struct ql_conv_sums image = s;

		image.u.images = 1;
		image.u.from = from + n * s.u.planes * h->h * h->w;
		image.target = again + n * size;
		image.other = s.other ? other + n * size : NULL;
		CHECK(ql_conv_taps(one, &image) == QL_OK, "%s", one->err);
	}
	CHECK(memcmp(target, again, (size_t)(h->images * size + 1) * sizeof(float)) == 0,
		"%s: %d images, %d x %d: other bits one by one", ctx->kernels->tiles->name, (int)h->images, (int)h->h,
		(int)h->w);
	free(from);
	free(a);
	free(bias);
	free(target);
	free(again);
	free(other);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "native"};
	static const struct shape shapes[] = {{1, 1, 1, 3, 5, 5, {3, 3}, 1, 1, 0, 0},
		{2, 1, 3, 7, 8, 8, {3, 3}, 1, 1, 0, 0}, {5, 1, 30, 13, 8, 8, {3, 3}, 1, 1, 0, 0},
		{3, 2, 5, 6, 7, 9, {3, 3}, 1, 1, 0, 0}, {1, 1, 4, 16, 32, 32, {3, 3}, 1, 1, 0, 0},
		{2, 1, 60, 5, 6, 16, {3, 3}, 1, 1, 0, 0}, {1, 3, 2, 4, 3, 63, {5, 3}, 2, 2, 0, 0},
		{1, 1, 2, 4, 3, 64, {1, 5}, 0, 0, 0, 0}, {1, 1, 2, 4, 5, 65, {3, 1}, 0, 0, 0, 0},
		{2, 1, 300, 4, 4, 15, {1, 1}, 0, 0, 0, 0}, {3, 1, 5, 20, 1, 24, {1, 1}, 0, 0, 0, 0},
		{1, 1, 3, 3, 9, 130, {7, 7}, 3, 3, 0, 0}, {1, 1, 3, 40, 2, 300, {3, 3}, 2, 0, 0, 0},
		{2, 1, 2, 3, 30, 1, {3, 3}, 1, 1, 0, 0}, {1, 1, 2, 3, 25, 2, {3, 7}, 0, 3, 0, 0},
		{9, 1, 2, 3, 5, 17, {3, 3}, 1, 1, 0, 0}, {1, 1, 3, 70, 16, 16, {3, 3}, 1, 1, 0, 0},
		{3, 1, 40, 29, 4, 4, {3, 3}, 1, 1, 0, 0}, {2, 1, 3, 13, 5, 2, {3, 3}, 1, 1, 0, 0},
		{1, 2, 30, 11, 3, 4, {1, 1}, 0, 0, 0, 0}, {3, 2, 33, 40, 7, 48, {3, 5}, 1, 1, 0, 0},
		{2, 1, 30, 33, 5, 32, {3, 3}, 2, 0, 0, 0}, {5, 1, 9, 32, 6, 64, {5, 3}, 0, 2, 0, 0},
		{9, 1, 2, 34, 9, 32, {1, 3}, 0, 0, 0, 0},
		/* steps: whole vectors and not, odd sizes, more taps than steps and fewer */
		{2, 1, 20, 13, 32, 32, {3, 3}, 1, 1, 2, 0}, {3, 2, 5, 7, 15, 15, {3, 3}, 1, 1, 2, 0},
		{2, 1, 9, 13, 16, 16, {1, 1}, 0, 0, 2, 0}, {2, 1, 3, 5, 13, 50, {5, 5}, 2, 2, 3, 0},
		{1, 1, 3, 9, 33, 64, {7, 7}, 3, 3, 2, 0}, {1, 1, 2, 9, 20, 20, {2, 2}, 0, 0, 4, 0},
		/* fewer columns than the source, and more */
		{3, 1, 4, 40, 12, 18, {3, 3}, 0, 0, 1, 16}, {2, 1, 4, 44, 9, 12, {5, 5}, 0, 0, 1, 8},
		{2, 1, 4, 40, 6, 9, {3, 3}, 1, 1, 1, 11}, {1, 1, 4, 40, 6, 9, {3, 3}, 4, 4, 1, 16},
		{2, 1, 5, 40, 9, 7, {3, 3}, 0, 0, 2, 3}};
	static struct sums sums[sizeof(shapes) / sizeof(shapes[0])];

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		for (int threads = 1; threads <= 3; threads += 2) {
			struct ql_ctx *ctx = ql_ctx_new(threads), *one = ql_ctx_new(1);

			CASE("level %s, %d threads", levels[i], threads);
			ql_kernels_force(levels[i]);
			for (int ordered = 0; ordered < 2; ordered++) {
				ctx->kernels = one->kernels = ordered ? ql_kernels_ordered() : ql_kernels_cpu();
				for (size_t k = 0; k < sizeof(shapes) / sizeof(shapes[0]); k++)
					for (int end = 0; end < 8; end++)
						if (!left_out((int64_t)k + end + threads, 5))
							test_shape(ctx, one, &shapes[k], &sums[k], end);
			}
			ql_ctx_free(ctx);
			ql_ctx_free(one);
		}
	return check_end();
}
