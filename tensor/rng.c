/* SPDX-License-Identifier: MIT
 * Philox words, uniform and normal numbers.
 */
#include "tensor/rng.h"

#include <math.h>

#include "tensor/vmath/simd.h"
#include "tensor/vmath/normal.h"

#define ROUNDS 10
#define MULTIPLY_0 0xD2511F53u
#define MULTIPLY_1 0xCD9E8D57u
#define STEP_0 0x9E3779B9u
#define STEP_1 0xBB67AE85u
#define LANES 16 /* counters in parallel */

QL_SIMD(void, words, (uint64_t seed, uint64_t first, int64_t counters, uint32_t *out), {
	for (int64_t b = 0; b < counters; b += LANES) {
		uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
		uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

		for (int l = 0; l < LANES; l++) {
			uint64_t counter = first + (uint64_t)(b + l);

			c0[l] = (uint32_t)counter;
			c1[l] = (uint32_t)(counter >> 32);
			c2[l] = c3[l] = 0;
		}
		for (int r = 0; r < ROUNDS; r++) {
			for (int l = 0; l < LANES; l++) {
				uint64_t p0 = (uint64_t)c0[l] * MULTIPLY_0, p1 = (uint64_t)c2[l] * MULTIPLY_1;

				c0[l] = (uint32_t)(p1 >> 32) ^ c1[l] ^ k0;
				c2[l] = (uint32_t)(p0 >> 32) ^ c3[l] ^ k1;
				c1[l] = (uint32_t)p1;
				c3[l] = (uint32_t)p0;
			}
			k0 += STEP_0;
			k1 += STEP_1;
		}
		for (int l = 0; l < LANES && b + l < counters; l++) {
			out[4 * (b + l)] = c0[l];
			out[4 * (b + l) + 1] = c1[l];
			out[4 * (b + l) + 2] = c2[l];
			out[4 * (b + l) + 3] = c3[l];
		}
	}
})

void ql_rng_words(int variant, uint64_t seed, uint64_t first, int64_t counters, uint32_t *out)
{
	words[variant](seed, first, counters, out);
}

/* The third counter word is the attempt; it is 0 for the words above. */
uint64_t ql_rng_again(uint64_t seed, uint64_t position, uint32_t attempt)
{
	uint32_t c0 = (uint32_t)position, c1 = (uint32_t)(position >> 32), c2 = attempt, c3 = 0;
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

	for (int r = 0; r < ROUNDS; r++, k0 += STEP_0, k1 += STEP_1) {
		uint64_t p0 = (uint64_t)c0 * MULTIPLY_0, p1 = (uint64_t)c2 * MULTIPLY_1;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
	}
	return (uint64_t)c0 << 32 | c1;
}

uint64_t ql_rng_take(struct ql_ctx *ctx, int64_t n)
{
	uint64_t first = ctx->rng_position;

	ctx->rng_position += (uint64_t)ql_ceil_div(n, 4);
	return first;
}

QL_SIMD(void, uniform, (const uint32_t *w, int64_t n, float *out), {
	for (int64_t i = 0; i < n; i++)
		out[i] = (float)(int32_t)(w[i] >> 8) * 0x1p-24f;
})

void ql_rng_uniform(int variant, const uint32_t *w, int64_t n, float *out)
{
	uniform[variant](w, n, out);
}

QL_SIMD(void, normal, (const uint32_t *w, int64_t n, float *out), {
	for (int64_t i = 0; i < n; i++) {
		out[i] = ql_normal_of(w[i]);
	}
})

void ql_rng_normal(int variant, const uint32_t *w, int64_t n, float *out)
{
	normal[variant](w, n, out);
}
