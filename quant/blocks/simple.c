/* SPDX-License-Identifier: MIT
 * q8_0, q4_0, q5_0, q4_1, q5_1 of GGUF: blocks of 32 with a float16 scale, which may be negative (the largest |x|
 * becomes the lowest code), or with a float16 scale and minimum. Codes are computed before the scale is rounded. If
 * importance is given, a search finds the scale and minimum of least weighted squared error.
 */
#include "quant/blocks/search.h"

#define BLOCK 32

/* Weights of the searches: importance * sqrt(mean of x * x over the row + x * x). */
QL_INLINE void weigh(const struct ql_block_tile *t, f8 *x, f8 *w)
{
	float row[QL_TILE];

	for (int i = 0; i < QL_TILE; i++)
		row[i] = t->weight[i] * sqrtf(t->square + t->x[i] * t->x[i]);
	ql_lanes_load(t->x, BLOCK, x);
	ql_lanes_load(row, BLOCK, w);
}

QL_INLINE float inverse_of(float scale)
{
	return scale != 0 ? 1 / scale : 0;
}

/* ---- q8_0 ---- */

QL_INLINE float largest(const float *x)
{
	float most[LANES] = {0}, m = 0;

	for (int i = 0; i < BLOCK; i += LANES)
		for (int l = 0; l < LANES; l++)
			most[l] = fabsf(x[i + l]) > most[l] ? fabsf(x[i + l]) : most[l];
	for (int l = 0; l < LANES; l++)
		m = most[l] > m ? most[l] : m;
	return m;
}

/* Rounds half away from zero. */
QL_SIMD(void, fit_bytes, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	for (int g = 0; g < t->n / BLOCK; g++) {
		const float *x = t->x + g * BLOCK;
		float d = largest(x) / (float)kind->top;
		float id = inverse_of(d);

		for (int i = 0; i < BLOCK; i++) {
			float v = x[i] * id;
			float a = fabsf(v) < 255 ? fabsf(v) : 0; /* the inverse of a subnormal scale overflows */
			int whole = (int)a;

			whole += a - (float)whole >= 0.5f;
			t->code[g * BLOCK + i] = (uint8_t)(v < 0 ? -whole : whole);
		}
		t->scale[g] = ql_half(d);
	}
})

/* ---- q4_0, q5_0 ---- */

/* The first element with the largest |x|. */
QL_INLINE float extreme(const float *x)
{
	float most = largest(x);
	int i = 0;

	while (i < BLOCK - 1 && fabsf(x[i]) != most)
		i++;
	return x[i];
}

QL_INLINE void search_signed(const struct ql_block_kind *kind, struct ql_block_tile *t)
{
	f8 x[BLOCK], w[BLOCK], scale;
	i8 code[BLOCK];

	weigh(t, x, w);
	ql_search_signed(BLOCK, kind->top, x, w, code, &scale);
	for (int i = 0; i < BLOCK; i++)
		code[i] -= kind->top;
	ql_lanes_store(code, BLOCK, t->code);
	for (int g = 0; g < LANES; g++)
		t->scale[g] = ql_half(scale[g]);
}

QL_SIMD(void, fit_signed, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	int top = kind->top;

	if (t->weighted) {
		search_signed(kind, t);
		return;
	}
	for (int g = 0; g < t->n / BLOCK; g++) {
		const float *x = t->x + g * BLOCK;
		float d = extreme(x) / (float)-top;
		float id = inverse_of(d);

		for (int i = 0; i < BLOCK; i++) {
			float v = x[i] * id + ((float)top + 0.5f);
			int code = v > 0 && v < 255 ? (int)v : 0;

			t->code[g * BLOCK + i] = (uint8_t)((code < 2 * top ? code : 2 * top - 1) - top);
		}
		t->scale[g] = ql_half(d);
	}
})

/* ---- q4_1, q5_1 ---- */

QL_INLINE void ends_of(const float *x, float *least, float *most)
{
	float low[LANES];
	float high[LANES];

	memcpy(low, x, sizeof(low));
	memcpy(high, x, sizeof(high));
	for (int i = LANES; i < BLOCK; i += LANES)
		for (int l = 0; l < LANES; l++) {
			low[l] = x[i + l] < low[l] ? x[i + l] : low[l];
			high[l] = x[i + l] > high[l] ? x[i + l] : high[l];
		}
	*least = low[0];
	*most = high[0];
	for (int l = 1; l < LANES; l++) {
		*least = low[l] < *least ? low[l] : *least;
		*most = high[l] > *most ? high[l] : *most;
	}
}

QL_INLINE void search_minimum(const struct ql_block_kind *kind, struct ql_block_tile *t)
{
	static const struct ql_search_grid grid = {-0.9f, 0.05f, 36, false};
	f8 x[BLOCK], w[BLOCK], scale, minimum;
	i8 code[BLOCK];

	weigh(t, x, w);
	ql_search_minimum(BLOCK, kind->top, &grid, x, w, code, &scale, &minimum);
	ql_lanes_store(code, BLOCK, t->code);
	for (int g = 0; g < LANES; g++) {
		t->scale[g] = ql_half(scale[g]);
		t->shift[g] = ql_half(-minimum[g]);
	}
}

QL_SIMD(void, fit_minimum, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	int top = kind->top;

	if (t->weighted) {
		search_minimum(kind, t);
		return;
	}
	for (int g = 0; g < t->n / BLOCK; g++) {
		const float *x = t->x + g * BLOCK;
		float least;
		float most;

		ends_of(x, &least, &most);
		float d = (most - least) / (float)top;
		float id = inverse_of(d);

		for (int i = 0; i < BLOCK; i++) {
			float v = (x[i] - least) * id + 0.5f;
			int code = v > 0 && v < 255 ? (int)v : 0;

			t->code[g * BLOCK + i] = (uint8_t)(code < top ? code : top);
		}
		t->scale[g] = ql_half(d);
		t->shift[g] = ql_half(least);
	}
})

#define KIND(name, ...) \
	extern const struct ql_block_kind ql_block_kind_##name; \
	const struct ql_block_kind ql_block_kind_##name = { \
		.block = BLOCK, .whole = BLOCK, .scale = QL_float16, __VA_ARGS__}

KIND(q8_0, .top = 127, .fit = fit_bytes);
KIND(q4_0, .top = 8, .importance = true, .row_square = true, .fit = fit_signed);
KIND(q5_0, .top = 16, .importance = true, .row_square = true, .fit = fit_signed);
KIND(q4_1, .top = 15, .shift = QL_float16, .importance = true, .row_square = true, .fit = fit_minimum);
KIND(q5_1, .top = 31, .shift = QL_float16, .importance = true, .row_square = true, .fit = fit_minimum);
