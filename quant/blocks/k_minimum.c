/* SPDX-License-Identifier: MIT
 * q2_k, q4_k, q5_k of GGUF: superblocks of 256 in blocks of 16 or 32. x = d * sc * q - dmin * mc, where the codes sc
 * and mc of a block have 4 or 6 bits and the superblock has float16 d and dmin. A search finds the scale and minimum
 * of each block; after these are rounded, the codes are computed again.
 */
#include "quant/blocks/positive.h"
#include "quant/blocks/search.h"

#define GROUPS 2 /* of 8 blocks in a superblock of at most 16 */

static const struct ql_search_grid weighted_grid = {-0.9f, 0.05f, 36, false};

QL_INLINE void root_weights(int n, const f8 *x, f8 *w)
{
	f8 sum = x[0] - x[0];

	for (int i = 0; i < n; i++)
		sum += x[i] * x[i];
	sum /= (float)n;
	for (int l = 0; l < LANES; l++)
		sum[l] = sqrtf(sum[l]);
	for (int i = 0; i < n; i++)
		w[i] = sum + ABS(x[i]);
}

/* The weights of 8 blocks, and the trials of the search, if no importance is given. */
QL_INLINE void plain_weights(const struct ql_block_kind *kind, const f8 *x, f8 *w, struct ql_search_grid *grid)
{
	*grid = (struct ql_search_grid){-0.5f, 0.1f, 15, kind->top == 3};
	if (kind->top == 15)
		*grid = (struct ql_search_grid){-1, 0.1f, 20, false};
	if (kind->top != 3) {
		root_weights(kind->block, x, w);
		return;
	}
	for (int i = 0; i < kind->block; i++)
		w[i] = ABS(x[i]);
}

/* Encodes scales or minimums in units of the largest one / top; returns that unit. As in ggml, q2_k (top = 15)
 * saturates and the others wrap negative values around modulo 256. */
QL_INLINE float code_by_largest(int n, int top, const float *v, uint8_t *code)
{
	float most = 0;
	float inverse;

	for (int g = 0; g < n; g++)
		most = v[g] > most ? v[g] : most;
	inverse = most > 0 ? (float)top / most : 0;
	for (int g = 0; g < n; g++) {
		int c = ql_positive_round(inverse * v[g]);

		code[g] = (uint8_t)(top == 15 ? (c < 0 ? 0 : c > top ? top : c) : (c & 255) < top ? c & 255 : top);
	}
	return ql_half(most > 0 ? most / (float)top : 0);
}

QL_INLINE void code_scales(const struct ql_block_kind *kind, struct ql_block_tile *t, const float *scale,
	const float *minimum, const float *sum_w)
{
	int n = QL_TILE / kind->block, top = kind->top == 3 ? 15 : 63;

	if (t->weighted) {
		t->scale[0] = ql_half(ql_positive_search(n, top, scale, sum_w, t->scale_code));
		t->shift[0] = ql_half(ql_positive_search(n, top, minimum, sum_w, t->shift_code));
	} else {
		t->scale[0] = code_by_largest(n, top, scale, t->scale_code);
		t->shift[0] = code_by_largest(n, top, minimum, t->shift_code);
	}
}

/* Encodes 8 blocks, from block g on, with their rounded scales; if a scale is 0, the codes of the search remain. */
QL_INLINE void code_elements(const struct ql_block_kind *kind, struct ql_block_tile *t, int g, const f8 *x, i8 *code)
{
	f8 d, m;
	i8 zero;

	for (int l = 0; l < LANES; l++) {
		d[l] = t->scale[0] * (float)t->scale_code[g + l];
		m[l] = t->shift[0] * (float)t->shift_code[g + l];
	}
	zero = d == 0;
	for (int i = 0; i < kind->block; i++) {
		i8 q = ROUND((x[i] + m) / d);

		ql_lanes_clamp(&q, 0, kind->top);
		code[i] = PICK_INT(zero, code[i], q);
	}
	ql_lanes_store(code, kind->block, t->code + g * kind->block);
}

QL_INLINE void fit_blocks(const struct ql_block_kind *kind, struct ql_block_tile *t)
{
	f8 x[GROUPS][QL_SEARCH_MOST], w[QL_SEARCH_MOST], d, m;
	i8 code[GROUPS][QL_SEARCH_MOST];
	float scale[QL_TILE_BLOCKS], minimum[QL_TILE_BLOCKS], sum_w[QL_TILE_BLOCKS] = {0};
	int groups = QL_TILE / kind->block / LANES;
	struct ql_search_grid grid = weighted_grid;

	if (t->weighted)
		ql_positive_weights(t, kind->top == 3 ? 1 : 2);
	for (int k = 0; k < groups; k++) {
		int at = k * LANES * kind->block;

		ql_lanes_load(t->x + at, kind->block, x[k]);
		if (t->weighted)
			ql_lanes_load(t->weight + at, kind->block, w);
		else
			plain_weights(kind, x[k], w, &grid);
		ql_search_minimum(kind->block, kind->top, &grid, x[k], w, code[k], &d, &m);
		memcpy(scale + k * LANES, &d, sizeof(d));
		memcpy(minimum + k * LANES, &m, sizeof(m));
		for (int i = 0; i < kind->block; i++)
			for (int l = 0; l < LANES; l++)
				sum_w[k * LANES + l] += w[i][l];
	}
	code_scales(kind, t, scale, minimum, sum_w);
	for (int k = 0; k < groups; k++)
		code_elements(kind, t, k * LANES, x[k], code[k]);
	t->shift[0] = -t->shift[0];
}

QL_SIMD(void, fit, (const struct ql_block_kind *kind, struct ql_block_tile *t), { fit_blocks(kind, t); })

#define KIND(name, ...) \
	extern const struct ql_block_kind ql_block_kind_##name; \
	const struct ql_block_kind ql_block_kind_##name = { \
		.whole = QL_TILE, .importance = true, .fit = fit, __VA_ARGS__}

KIND(q2_k, .block = 16, .scale = QL_uint4, .shift = QL_uint4, .top = 3);
KIND(q4_k, .block = 32, .scale = QL_uint6, .shift = QL_uint6, .top = 15);
KIND(q5_k, .block = 32, .scale = QL_uint6, .shift = QL_uint6, .top = 31);
