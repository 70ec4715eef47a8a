/* SPDX-License-Identifier: MIT
 * Convolutions of codes: every entry of conv_i8 and depth_i8 that this CPU can run, against plain loops with 64-bit sums: all
 * tiles, windows of several segments, extreme codes, sums that saturate, second operands of both signs.
 */
#include <math.h>

#include "tests/tools/kernels.h"

enum fill { RANDOM, HIGH, LOW, MIXED, FILLS };

static uint8_t code_8(enum fill fill, uint8_t lo, uint8_t hi)
{
	switch (fill) {
	case HIGH: return hi;
	case LOW: return lo;
	case MIXED: return draw() & 1 ? hi : lo;
	default: return (uint8_t)draw();
	}
}

struct sample {
	int rows, columns, panels;
	struct ql_conv_i8_lines l; /* of conv_i8 */
	struct ql_conv_i8_sums s;
	struct ql_conv_i8_codes c;
	int64_t at[8], reach;
	uint8_t *x, *other, *to;
	int8_t *w;
	int32_t *bias, *multiplier, *right;
	float *factor;
};

/* A window of `segments` runs, anywhere in 5 * quads bytes a segment. */
static void fill_windows(struct sample *m, enum fill fx, enum fill fw)
{
	int64_t weights;

	for (int k = 0; k < m->s.segments; k++)
		m->at[k] = (int64_t)(draw() % (uint32_t)(m->s.quads + 1)) + k * 5 * m->s.quads;
	m->s.at = m->at;
	m->s.panel = m->s.segments * m->s.quads * 4 * QL_CONV_PANEL;
	weights = m->s.panel * m->panels;
	m->reach = m->l.apart * (m->l.lines - 1) + m->s.step * (m->rows - 1) + (5 * m->s.segments + 1) * m->s.quads +
		   4 * m->s.quads;
	m->x = take((size_t)m->reach);
	m->w = take((size_t)weights);
	for (int64_t i = 0; i < m->reach; i++)
		m->x[i] = code_8(fx, 0, 255);
	for (int64_t i = 0; i < weights; i++)
		m->w[i] = (int8_t)code_8(fw, 128, 127);
}

/* Multipliers of 31 bits, and shifts that leave large and small numbers. */
static void fill_fixed(struct sample *m, int n)
{
	m->multiplier = take((size_t)n * sizeof(*m->multiplier));
	m->right = take((size_t)n * sizeof(*m->right));
	for (int o = 0; o < n; o++) {
		m->multiplier[o] = o % 7 == 3 ? 0 : o % 7 == 4 ? INT32_MAX : (int32_t)(1u << 30 | draw() >> 2);
		m->right[o] = o % 5 == 2 ? (int32_t)(draw() % 32) : (int32_t)(8 + draw() % 12);
	}
}

/* how: bits, signed codes, relu, a second operand, fixed point */
static void fill_codes(struct sample *m, unsigned how)
{
	bool is_signed = how & 1, relu = how & 2, other = how & 4;
	int n = m->panels * QL_CONV_PANEL;
	int64_t bytes;
	int zero = is_signed ? (int)(draw() % 40) - 20 : (int)(draw() % 256), lo = is_signed ? -128 : 0;
	float big = 4.0f / (float)(m->s.segments * (m->s.quads + 1) * 255);

	m->bias = take((size_t)n * sizeof(*m->bias));
	m->factor = take((size_t)n * sizeof(*m->factor));
	for (int o = 0; o < n; o++) {
		m->bias[o] = (int32_t)(draw() % 200000) - 100000;
		m->factor[o] = o % 7 == 3 ? 0 : (float)(draw() % 1000) * 1e-3f * (o % 5 == 2 ? 1e30f : big);
	}
	m->c = (struct ql_conv_i8_codes){.bias = m->bias,
		.factor = m->factor,
		.least = relu ? 0 : INT32_MIN,
		.zero = zero,
		.lo = (float)(lo - zero),
		.hi = (float)(lo + 255 - zero),
		.pitch = m->columns + 5,
		.by = {0.7f, is_signed ? 1.3f : -0.9f},
		.sum_lo = (float)(relu ? 0 : lo + 3),
		.sum_hi = (float)(lo + 252),
		.other_zero = 131,
		.sum_zero = relu ? lo : 3,
		.flip = is_signed ? 0x80 : 0};
	if (how & 8) {
		fill_fixed(m, n);
		m->c.multiplier = m->multiplier;
		m->c.right = m->right;
	}
	m->l.to_apart = m->c.pitch * m->rows + 3;
	m->l.fold_apart = m->l.to_apart * m->l.lines + 7;
	bytes = m->l.fold_apart * (m->l.fold - 1) + m->l.to_apart * (m->l.lines - 1) + m->c.pitch * m->rows;
	m->to = take((size_t)bytes);
	m->other = other ? take((size_t)bytes) : NULL;
	for (int64_t i = 0; other && i < bytes; i++)
		m->other[i] = (uint8_t)draw();
}

static float bounded(float v, float lo, float hi)
{
	return nearbyintf(v < lo ? lo : v > hi ? hi : v);
}

/* The doubled high half of the product, halves up, and its quotient, halves away from 0. */
static float in_fixed_point(const struct sample *m, int at, int64_t sum)
{
	long double high = floorl((long double)(sum * m->multiplier[at]) / 0x1p31L + 0.5L);
	long double v = roundl(high / (long double)((int64_t)1 << m->right[at]));

	return (float)(v < m->c.lo ? (long double)m->c.lo : v > m->c.hi ? (long double)m->c.hi : v);
}

/* The code of a sum; i: its place; at: of its bias and factor. */
static uint8_t code_of_sum(const struct sample *m, int64_t i, int at, int64_t sum)
{
	volatile float a, b; /* no fused sum */
	float v;

	sum = (int32_t)(uint32_t)(sum + m->bias[at]);
	sum = sum < m->c.least ? m->c.least : sum;
	v = m->multiplier ? in_fixed_point(m, at, sum) : bounded((float)sum * m->factor[at], m->c.lo, m->c.hi);
	if (!m->other)
		return (uint8_t)((int32_t)v + m->c.zero);
	a = v * m->c.by[0];
	b = (float)((m->other[i] ^ m->c.flip) - m->c.other_zero) * m->c.by[1];
	return (uint8_t)((int32_t)bounded(a + b, m->c.sum_lo, m->c.sum_hi) + m->c.sum_zero);
}

static uint8_t code_of(const struct sample *m, int64_t line, int row, int64_t at, int o)
{
	const uint8_t *x = m->x + line * m->l.apart + row * m->s.step;
	const int8_t *w = m->w + o / QL_CONV_PANEL * m->s.panel + o % QL_CONV_PANEL * 4;
	int64_t sum = 0;

	for (int k = 0; k < m->s.segments; k++)
		for (int64_t l = 0; l < 4 * m->s.quads; l++)
			sum += (int64_t)x[m->at[k] + l] * w[(k * m->s.quads + l / 4) * 4 * QL_CONV_PANEL + l % 4];
	return code_of_sum(m, at + o, o, sum);
}

/* lines: 0: a tile; else a block, with `rows` pixels of each of `fold` rows in a line */
static void check_tile(const struct ql_conv_i8 *k, int lines, int fold, int rows, int columns, int segments,
	int64_t quads, int64_t step, enum fill fx, enum fill fw, unsigned how)
{
	struct sample m = {.rows = rows * fold,
		.columns = columns,
		.panels = (columns + QL_CONV_PANEL - 1) / QL_CONV_PANEL,
		.l = {.lines = lines ? lines : 1, .pixels = rows * fold, .apart = draw() % 50, .fold = fold},
		.s = {.step = step, .quads = quads, .segments = segments}};
	bool good = true, kept = true;

	fill_windows(&m, fx, fw);
	fill_codes(&m, how);
	if (lines)
		k->block(&m.l, columns, &m.s, &m.c, m.x, m.w, m.other, m.to);
	else
		k->codes(rows, columns, &m.s, &m.c, m.x, m.w, m.other, m.to);
	for (int64_t f = 0, end = 0; f < fold; f++)
		for (int64_t l = 0; l < m.l.lines; l++)
			for (int i = 0; i < rows; i++) {
				int64_t at = f * m.l.fold_apart + l * m.l.to_apart + i * m.c.pitch;

				kept &= guarded(m.to, (size_t)end, (size_t)at);
				for (int o = 0; o < columns; o++)
					good &= m.to[at + o] == code_of(&m, l, (int)(i * fold + f), at, o);
				end = at + columns;
				kept &= i < rows - 1 || guarded(m.to, (size_t)end, (size_t)(at + m.c.pitch));
			}
	CHECK(good, "%s: lines %d, fold %d, rows %d, columns %d, segments %d, quads %lld, step %lld, fill %d x %d, %u",
		k->name, lines, fold, rows, columns, segments, (long long)quads, (long long)step, fx, fw, how);
	CHECK(kept, "%s: wrote behind a pixel", k->name);
	free(m.x);
	free(m.w);
	free(m.bias);
	free(m.factor);
	free(m.multiplier);
	free(m.right);
	free(m.to);
	free(m.other);
}

/* Blocks of 1 to 7 lines, all lengths around the tiles, all depths of a step. */
static void test_blocks(const struct ql_conv_i8 *k)
{
	for (int pixels = 1; pixels <= 40; pixels++)
		for (int lines = 1; lines <= (pixels < 9 ? 9 : 3); lines++)
			check_tile(k, lines, 1, pixels, 1 + (pixels * 7 + lines * 5) % 70, 1 + pixels % 3, pixels % 34,
				1 + draw() % 70, RANDOM, RANDOM, draw() % 16);
	for (int fold = 2; fold <= QL_CONV_FOLD; fold++)
		for (int pixels = 1; pixels * fold <= QL_CONV_FOLD; pixels++)
			check_tile(k, 1 + pixels % 6, fold, pixels, 1 + (pixels * 7 + fold * 5) % 70, 3,
				16 - pixels % 2, 64, RANDOM, RANDOM, draw() % 16);
	for (int f = 0; f < FILLS * FILLS; f++)
		check_tile(k, 4, 1, 18, 2 * QL_CONV_PANEL + f, 3, 48, 64, (enum fill)(f / FILLS),
			(enum fill)(f % FILLS), (unsigned)f);
}

static void test_conv_i8(const void *kernel)
{
	const struct ql_conv_i8 *k = kernel;

	CHECK(k->rate > 0 && k->most[1] > 0, "%s: rate or tiles", k->name);
	for (int p = 1; p <= QL_CONV_PANELS; p++)
		for (int rows = 1; rows <= k->most[p]; rows++) {
			for (int columns = (p - 1) * QL_CONV_PANEL + 1; columns <= p * QL_CONV_PANEL; columns++)
				check_tile(k, 0, 1, rows, columns, 1 + columns % 4, columns % 5, 1 + columns % 9,
					RANDOM, RANDOM, draw() % 16);
			for (int f = 0; f < FILLS * FILLS; f++)
				check_tile(k, 0, 1, rows, p * QL_CONV_PANEL, 3, 16, 12, (enum fill)(f / FILLS),
					(enum fill)(f % FILLS), (unsigned)f);
		}
	for (unsigned how = 0; how < 16; how++)
		check_tile(k, 0, 1, k->most[1], 11, 8, 500, 100, HIGH, LOW, how); /* the longest sums */
	if (k->block)
		test_blocks(k);
}

/* ---- depth_i8 ---- */

static void fill_depth(struct sample *m, int64_t weights, enum fill fx, enum fill fw)
{
	m->x = take((size_t)m->reach);
	m->w = take((size_t)weights);
	for (int64_t i = 0; i < m->reach; i++)
		m->x[i] = code_8(fx, 0, 255);
	for (int64_t i = 0; i < weights; i++)
		m->w[i] = (int8_t)code_8(fw, 128, 127);
}

static uint8_t depth_code_of(const struct sample *m, const struct ql_depth_i8_sums *s, int lanes, int row, int o)
{
	int place = o % 16 / 4 * 4 * lanes + o / 16 * 4 + o % 4;
	int64_t sum = 0;

	for (int64_t t = 0; t < 4 * s->quads; t++)
		sum += m->x[row * s->step + s->at[t] + o] * m->w[(t / 4 * 16 * lanes + place) * 4 + t % 4];
	return code_of_sum(m, row * m->c.pitch + o, place, sum);
}

static void check_depth(const struct ql_depth_i8 *k, int rows, int channels, int64_t quads, int64_t step, enum fill fx,
	enum fill fw, unsigned how)
{
	struct sample m = {.rows = rows,
		.columns = channels,
		.panels = k->lanes,
		.l = {.lines = 1, .fold = 1},
		.s = {.segments = 1, .quads = quads}};
	int64_t at[32], block = 16L * k->lanes;
	struct ql_depth_i8_sums s = {.step = step, .quads = quads, .at = at};
	bool good = true, kept = true;

	for (int64_t t = 0; t < 4 * quads; t++)
		at[t] = draw() % 300;
	m.reach = step * (rows - 1) + 300 + block;
	fill_depth(&m, 4 * quads * block, fx, fw);
	how &= k->fixed ? 15 : 7;
	fill_codes(&m, how);
	k->codes(rows, channels, &s, &m.c, m.x, m.w, m.other, m.to);
	for (int i = 0; i < rows; i++) {
		for (int o = 0; o < channels; o++)
			good &= m.to[i * m.c.pitch + o] == depth_code_of(&m, &s, k->lanes, i, o);
		kept &= guarded(m.to, (size_t)(i * m.c.pitch + channels), (size_t)((i + 1) * m.c.pitch));
	}
	CHECK(good, "%s: rows %d, channels %d, quads %lld, step %lld, fill %d x %d, %u", k->name, rows, channels,
		(long long)quads, (long long)step, fx, fw, how);
	CHECK(kept, "%s: wrote behind a pixel", k->name);
	free(m.x);
	free(m.w);
	free(m.bias);
	free(m.factor);
	free(m.multiplier);
	free(m.right);
	free(m.to);
	free(m.other);
}

static void test_depth_i8(const void *kernel)
{
	const struct ql_depth_i8 *k = kernel;

	CHECK(k->rate > 0 && k->most > 0 && k->lanes > 0 && 16 * k->lanes <= QL_DEPTH_BLOCK, "%s: tile", k->name);
	for (int rows = 1; rows <= k->most; rows++) {
		for (int channels = 1; channels <= 16 * k->lanes; channels++)
			check_depth(k, rows, channels, 1 + channels % 7, 1 + channels * 3 % 200, RANDOM, RANDOM,
				draw() % 16);
		for (int f = 0; f < FILLS * FILLS; f++)
			check_depth(k, rows, 16 * k->lanes - f % 2, 7, 12, (enum fill)(f / FILLS),
				(enum fill)(f % FILLS), (unsigned)f);
	}
	check_depth(k, k->most, 16 * k->lanes, 0, 1, RANDOM, RANDOM, 0);
}

/* tests/kernels.c, kernels_codes.c */
#define test_gemm_f32 NULL
#define test_gemm_bf16 NULL
#define test_gemm_coded NULL
#define test_gemm_i8 NULL
#define test_gemm_i16 NULL
#define test_taps_i16 NULL
#define test_gemm_b1 NULL
#define test_pack_i8 NULL
#define test_quantize NULL
#define test_dequantize NULL
#define test_simd NULL
#define test_limit NULL

extern const struct ql_conv_i8 conv_i8_amx_model;

int main(void)
{
#define F(name) {#name, test_##name},
	static const struct family families[] = {QL_KERNEL_FAMILIES(F)};
#undef F
	const struct family conv = {"conv_i8", test_conv_i8};

	test_kernels(families, sizeof(families) / sizeof(families[0]));
	test_kernel(&conv, "amx on a model of its instructions", &conv_i8_amx_model);
	return check_end();
}
