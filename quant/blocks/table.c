/* SPDX-License-Identifier: MIT
 * iq4_nl and mxfp4 of GGUF: blocks of 32 whose codes index a table. iq4_nl searches for its scale and computes codes
 * before it is rounded to float16. mxfp4 differs from OCP's: ties go toward zero, negative zero is not used, a block
 * of zeros has the smallest power of two, and the exponent is computed from log2 rounded to float32.
 */
#include "quant/blocks/search.h"

#define BLOCK 32
#define VALUES 16

/* ---- iq4_nl ---- */

static const int value[VALUES] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* The nearest value and its code; ties take the upper value. */
QL_INLINE void nearest(const f8 *v, i8 *code, f8 *out)
{
	i8 c = (i8)*v & 0, n = c + value[0];

	for (int k = 1; k < VALUES; k++) {
		i8 above = *v >= (float)(value[k - 1] + value[k]) / 2;

		c -= above;
		n += above & (value[k] - value[k - 1]);
	}
	*code = c;
	*out = FLOATS(n);
}

QL_INLINE void table_sums(const f8 *x, const f8 *w, const f8 *inverse, f8 *sum_xq, f8 *sum_qq)
{
	f8 is = *inverse, sx = FLOATS((i8)is & 0), sq = sx;

	for (int i = 0; i < BLOCK; i++) {
		f8 v = is * x[i], q;
		i8 code;

		nearest(&v, &code, &q);
		sx += (w[i] * q) * x[i];
		sq += (w[i] * q) * q;
	}
	*sum_xq = sx;
	*sum_qq = sq;
}

QL_INLINE void table_weights(const struct ql_block_tile *t, const f8 *x, f8 *w)
{
	f8 sum = FLOATS((i8)x[0] & 0);

	for (int i = 0; i < BLOCK; i++) {
		w[i] = x[i] * x[i];
		sum += w[i];
	}
	if (!t->weighted)
		return;
	sum *= 1.0f / 16;
	for (int i = 0; i < BLOCK; i++)
		for (int l = 0; l < LANES; l++)
			w[i][l] = t->weight[l * BLOCK + i] * sqrtf(sum[l] + w[i][l]);
}

QL_INLINE void fit_nonlinear(struct ql_block_tile *t)
{
	f8 x[BLOCK], w[BLOCK], most, extreme, d, inverse, best, sx, sq, q;
	i8 code[BLOCK], zero;

	ql_lanes_load(t->x, BLOCK, x);
	table_weights(t, x, w);
	ql_lanes_largest(x, BLOCK, &most, &extreme);
	zero = most < QL_SEARCH_ZERO;
	d = -extreme / (float)value[0];
	inverse = 1.0f / d;
	table_sums(x, w, &inverse, &sx, &sq);
	d = (f8)((sq > 0) & (i8)(sx / sq));
	best = d * sx;
	for (int k = -7; k <= 7; k++) {
		i8 better;

		inverse = (float)(k + value[0]) / extreme;
		table_sums(x, w, &inverse, &sx, &sq);
		better = (sq > 0) & (sx * sx > best * sq);
		d = PICK(better, sx / sq, d);
		best = PICK(better, d * sx, best);
	}
	d = (f8)(~zero & (i8)d);
	inverse = (f8)((d != 0) & (i8)(1.0f / d));
	for (int i = 0; i < BLOCK; i++) {
		f8 v = inverse * x[i];

		nearest(&v, &code[i], &q);
	}
	ql_lanes_store(code, BLOCK, t->code);
	for (int l = 0; l < LANES; l++)
		t->scale[l] = ql_half(d[l]);
}

QL_SIMD(void, fit_table, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	(void)kind;
	fit_nonlinear(t);
})

/* ---- mxfp4 ---- */

/* Exponent of the scale. log2 in float32 rounds numbers just below a power of two up to its exponent. */
static int exponent_of(float most)
{
	int e = most > 0 ? (int)floorf((float)log2((double)most)) - 2 : -127;

	return e < -127 ? -127 : e;
}

QL_SIMD(void, fit_e2m1, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	static const float edge[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};

	(void)kind;
	for (int g = 0; g < t->n / BLOCK; g++) {
		const float *x = t->x + g * BLOCK;
		float most = 0;

		for (int i = 0; i < BLOCK; i++)
			most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
		int e = exponent_of(most);
		float inverse = ldexpf(1, -e);

		for (int i = 0; i < BLOCK; i++) {
			float v = fabsf(x[i]) * inverse;
			int code = 0;

			for (int k = 0; k < 7; k++)
				code += v > edge[k];
			t->code[g * BLOCK + i] = (uint8_t)(code + (x[i] < 0 && code ? 8 : 0));
		}
		t->scale[g] = ldexpf(1, e);
	}
})

#define KIND(name, ...) \
	extern const struct ql_block_kind ql_block_kind_##name; \
	const struct ql_block_kind ql_block_kind_##name = {.block = BLOCK, .whole = BLOCK, __VA_ARGS__}

KIND(iq4_nl, .scale = QL_float16, .importance = true, .fit = fit_table);
KIND(gguf_mxfp4, .scale = QL_float8_e8m0, .wide = true, .fit = fit_e2m1);
