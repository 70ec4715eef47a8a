/* SPDX-License-Identifier: MIT
 * Counter-based random numbers: element i depends only on the seed and its position, so the bits do not depend on
 * the number of threads or the instruction set. Philox4x32-10: Salmon, Moraes, Dror, Shaw, "Parallel random
 * numbers: as easy as 1, 2, 3", SC 2011.
 */
#ifndef QUOLL_TENSOR_RNG_H
#define QUOLL_TENSOR_RNG_H

#include "tensor/base.h"

/* Four 32-bit words for each counter first, first + 1, … */
void ql_rng_words(int variant, uint64_t seed, uint64_t first, int64_t counters, uint32_t *out);
/* 64 more bits for the element at `position` when rejection sampling discards the first; attempt 1, 2, … */
uint64_t ql_rng_again(uint64_t seed, uint64_t position, uint32_t attempt);
/* Reserves the counters that n words need and returns the first of them. */
uint64_t ql_rng_take(struct ql_ctx *ctx, int64_t words);
/* Uniform in [0, 1), 24 bits. */
void ql_rng_uniform(int variant, const uint32_t *words, int64_t n, float *out);
/* Normal with mean 0 and variance 1 by inversion: Wichura, algorithm AS 241 (PPND7), Applied Statistics 37, 1988. */
void ql_rng_normal(int variant, const uint32_t *words, int64_t n, float *out);

#endif
