/* SPDX-License-Identifier: MIT
 * q3_k and q6_k of GGUF: superblocks of 256 in blocks of 16. x = d * sc * q, where the signed code sc of a block has
 * 6 or 8 bits and the superblock has a float16 d. A search finds the scale of each block; after it is rounded, the
 * codes are computed again.
 */
#include "quant/blocks/positive.h"
#include "quant/blocks/search.h"

#define BLOCK 16
#define BLOCKS 16
#define GROUPS 2 /* of 8 blocks */
#define ROUNDS 5 /* passes that improve single codes */

struct sums {
	f8 xq, qq;
};

/* Changes the code of one element in the lanes where the least-squares scale then has a smaller error. */
QL_INLINE void improve(int top, const f8 *x, i8 *code, struct sums *s, i8 *changed)
{
	f8 w = *x * *x, wx = w * *x, q = FLOATS(*code), x_rest = s->xq - wx * q, q_rest = s->qq - (w * q) * q;
	i8 better = ROUND((*x * q_rest) / x_rest), take;

	ql_lanes_clamp(&better, -top, top - 1);
	take = (x_rest > 0) & (better != *code);
	q = FLOATS(better);
	x_rest += wx * q;
	q_rest += (w * q) * q;
	take &= (q_rest > 0) & ((x_rest * x_rest) * s->qq > (s->xq * s->xq) * q_rest);
	*code = PICK_INT(take, better, *code);
	s->xq = PICK(take, x_rest, s->xq);
	s->qq = PICK(take, q_rest, s->qq);
	*changed |= take;
}

QL_INLINE bool any(const i8 *mask)
{
	int32_t all = 0;

	for (int l = 0; l < LANES; l++)
		all |= (*mask)[l];
	return all != 0;
}

/* Codes are q + top; 0 in blocks of zeros. Further passes do not affect lanes that no longer change. */
QL_INLINE void search_by_codes(int top, const f8 *x, i8 *code, f8 *scale)
{
	f8 most, value, none = FLOATS((i8)x[0] & 0);
	struct sums s = {none, none};
	i8 zero, changed;

	ql_lanes_largest(x, BLOCK, &most, &value);
	zero = most < QL_SEARCH_ZERO;
	for (int i = 0; i < BLOCK; i++) {
		f8 w = x[i] * x[i], q;

		code[i] = ROUND((-(float)top / value) * x[i]);
		ql_lanes_clamp(&code[i], -top, top - 1);
		q = FLOATS(code[i]);
		s.xq += (w * x[i]) * q;
		s.qq += (w * q) * q;
	}
	for (int round = 0; round < ROUNDS; round++) {
		changed = zero - zero;
		for (int i = 0; i < BLOCK; i++)
			improve(top, &x[i], &code[i], &s, &changed);
		changed &= ~zero;
		if (!any(&changed))
			break;
	}
	for (int i = 0; i < BLOCK; i++)
		code[i] = ~zero & (code[i] + top);
	*scale = (f8)(~zero & (s.qq > 0) & (i8)(s.xq / s.qq));
}

static float extreme(const float *v)
{
	float most = 0, value = 0;

	for (int g = 0; g < BLOCKS; g++)
		if (fabsf(v[g]) > most) {
			most = fabsf(v[g]);
			value = v[g];
		}
	return value;
}

/* ---- q3_k ---- */

/* Encodes the scales if importance is given, by the search for elements, in one lane. */
QL_INLINE float search_scales(const float *scale, const float *sum_w, uint8_t *out)
{
	f8 v[BLOCKS] = {0}, w[BLOCKS] = {0}, d;
	i8 code[BLOCKS];

	for (int g = 0; g < BLOCKS; g++) {
		v[g][0] = scale[g];
		w[g][0] = sum_w[g];
	}
	ql_search_signed(BLOCKS, 32, v, w, code, &d);
	for (int g = 0; g < BLOCKS; g++)
		out[g] = (uint8_t)(code[g][0] - 32);
	return d[0];
}

QL_INLINE void code_scales_3(struct ql_block_tile *t, const float *scale, const float *sum_w)
{
	float value = extreme(scale), inverse = -32 / value;

	if (t->weighted) {
		t->scale[0] = ql_half(search_scales(scale, sum_w, t->scale_code));
		return;
	}
	t->scale[0] = value != 0 ? ql_half(1 / inverse) : 0;
	for (int g = 0; g < BLOCKS; g++) {
		int c = value != 0 ? (int8_t)(ql_positive_round(inverse * scale[g]) & 255) : -32;

		t->scale_code[g] = (uint8_t)(c < -32 ? -32 : c > 31 ? 31 : c);
	}
}

/* ---- q6_k ---- */

/* Returns false for a superblock of zeros. */
QL_INLINE bool code_scales_6(struct ql_block_tile *t, const float *scale)
{
	float value = extreme(scale), inverse = -128 / value;

	if (fabsf(value) < QL_SEARCH_ZERO)
		return false;
	t->scale[0] = ql_half(1 / inverse);
	for (int g = 0; g < BLOCKS; g++) {
		int c = ql_positive_round(inverse * scale[g]);

		t->scale_code[g] = (uint8_t)(c < 127 ? c : 127);
	}
	return true;
}

/* ---- both ---- */

/* Encodes 8 blocks, from block g on, with their rounded scales; if a scale is 0, the codes of the search remain. */
QL_INLINE void code_elements(int top, struct ql_block_tile *t, int g, const f8 *x, i8 *code)
{
	f8 d;
	i8 zero;

	for (int l = 0; l < LANES; l++)
		d[l] = t->scale[0] * (float)(int8_t)t->scale_code[g + l];
	zero = d == 0;
	for (int i = 0; i < BLOCK; i++) {
		i8 q = ROUND(x[i] / d);

		ql_lanes_clamp(&q, -top, top - 1);
		code[i] = PICK_INT(zero, code[i] - top, q);
	}
	ql_lanes_store(code, BLOCK, t->code + g * BLOCK);
}

QL_INLINE void search_blocks(int top, const struct ql_block_tile *t, int at, const f8 *x, f8 *w, i8 *code, f8 *scale)
{
	if (t->weighted)
		ql_lanes_load(t->weight + at, BLOCK, w);
	for (int i = 0; i < BLOCK && !t->weighted; i++)
		w[i] = x[i] * x[i];
	if (top == 4 && !t->weighted)
		search_by_codes(top, x, code, scale);
	else
		ql_search_signed(BLOCK, top, x, w, code, scale);
}

QL_INLINE void fit_blocks(int top, struct ql_block_tile *t)
{
	f8 x[GROUPS][BLOCK], w[BLOCK], d;
	i8 code[GROUPS][BLOCK];
	float scale[BLOCKS], sum_w[BLOCKS] = {0};
	bool zeros = false;

	if (t->weighted && top == 4)
		ql_positive_weights(t, 2);
	for (int k = 0; k < GROUPS; k++) {
		int at = k * LANES * BLOCK;

		ql_lanes_load(t->x + at, BLOCK, x[k]);
		search_blocks(top, t, at, x[k], w, code[k], &d);
		memcpy(scale + k * LANES, &d, sizeof(d));
		for (int i = 0; i < BLOCK; i++)
			for (int l = 0; l < LANES; l++)
				sum_w[k * LANES + l] += w[i][l];
	}
	if (top == 4)
		code_scales_3(t, scale, sum_w);
	else
		zeros = !code_scales_6(t, scale);
	for (int k = 0; k < GROUPS && !zeros; k++)
		code_elements(top, t, k * LANES, x[k], code[k]);
	if (!zeros)
		return;
	t->scale[0] = 0;
	memset(t->scale_code, 0, sizeof(t->scale_code));
	memset(t->code, -top & 255, sizeof(t->code));
}

QL_SIMD(void, fit_3, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	(void)kind;
	fit_blocks(4, t);
})

QL_SIMD(void, fit_6, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	(void)kind;
	fit_blocks(32, t);
})

#define KIND(name, ...) \
	extern const struct ql_block_kind ql_block_kind_##name; \
	const struct ql_block_kind ql_block_kind_##name = { \
		.block = BLOCK, .whole = QL_TILE, .importance = true, __VA_ARGS__}

KIND(q3_k, .scale = QL_int6, .top = 4, .fit = fit_3);
KIND(q6_k, .scale = QL_int8, .top = 32, .fit = fit_6);
