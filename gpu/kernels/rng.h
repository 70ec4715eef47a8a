/* SPDX-License-Identifier: MIT
 * The random words of tensor/rng.c in device code: Philox4x32-10, four words for each counter.
 */
#ifndef QUOLL_GPU_KERNELS_RNG_H
#define QUOLL_GPU_KERNELS_RNG_H

#include "gpu/kernels/act.h"
#include "tensor/vmath/normal.h"

#define QL_RNG_ROUNDS 10

/* c: the counter, then the words. */
QL_INLINE void ql_philox(uint64_t seed, uint32_t c[4])
{
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

	QL_UNROLL
	for (int r = 0; r < QL_RNG_ROUNDS; r++) {
		uint64_t p0 = (uint64_t)c[0] * 0xD2511F53u, p1 = (uint64_t)c[2] * 0xCD9E8D57u;

		c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ k0;
		c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ k1;
		c[1] = (uint32_t)p1;
		c[3] = (uint32_t)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
}

/* The words of a counter. */
QL_INLINE void ql_random_words(uint64_t seed, uint64_t counter, uint32_t words[4])
{
	words[0] = (uint32_t)counter;
	words[1] = (uint32_t)(counter >> 32);
	words[2] = words[3] = 0;
	ql_philox(seed, words);
}

/* As ql_rng_again: 64 more bits for the element at `position`; attempt 1, 2, … */
QL_INLINE uint64_t ql_random_again(uint64_t seed, uint64_t position, uint32_t attempt)
{
	uint32_t words[4] = {(uint32_t)position, (uint32_t)(position >> 32), attempt, 0};

	ql_philox(seed, words);
	return (uint64_t)words[0] << 32 | words[1];
}

#endif
