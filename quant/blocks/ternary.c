/* SPDX-License-Identifier: MIT
 * tq1_0 and tq2_0 of GGUF: codes -1, 0, 1 with the largest |x| of 256 elements, in float16, as scale. Magnitudes of at
 * least half of it are encoded as 1 or -1. The formats differ only in files: five or four codes per byte.
 */
#include "quant/blocks/lanes.h"

QL_SIMD(void, fit, (const struct ql_block_kind *kind, struct ql_block_tile *t), {
	float lane[LANES] = {0};
	float most = 0;

	(void)kind;
	for (int i = 0; i < QL_TILE; i += LANES)
		for (int l = 0; l < LANES; l++)
			lane[l] = fabsf(t->x[i + l]) > lane[l] ? fabsf(t->x[i + l]) : lane[l];
	for (int l = 0; l < LANES; l++)
		most = lane[l] > most ? lane[l] : most;
	float inverse = most != 0 ? 1 / most : 0;

	for (int i = 0; i < QL_TILE; i++) {
		float v = t->x[i] * inverse;

		t->code[i] = (uint8_t)((v >= 0.5f) - (v <= -0.5f));
	}
	t->scale[0] = ql_half(most);
})

#define KIND(name) \
	extern const struct ql_block_kind ql_block_kind_##name; \
	const struct ql_block_kind ql_block_kind_##name = { \
		.block = QL_TILE, .whole = QL_TILE, .scale = QL_float16, .fit = fit}

KIND(tq1_0);
KIND(tq2_0);
