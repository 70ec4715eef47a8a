/* SPDX-License-Identifier: MIT
 * Stochastic rounding: a value between two neighbouring codes becomes the upper one with the probability of its
 * distance from the lower one, so that the mean of the codes is the value (Gupta et al., arXiv 1502.02551). Element i
 * takes random word i, so the bits depend neither on threads nor on the instruction set.
 */
#ifndef QUOLL_TENSOR_STOCHASTIC_H
#define QUOLL_TENSOR_STOCHASTIC_H

#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"

#define QL_STOCHASTIC_MOST 512 /* elements of a call */

struct ql_stochastic {
	uint64_t seed, first; /* counter of the words of elements 0 to 3, see rng.h */
	int variant;
};

/* The codes of n <= QL_STOCHASTIC_MOST values, which are elements `position`.. of a tensor; grid NULL: affine codes
 * within lo..hi of p, or (not NULL) lo[i]..hi[i]. NaN becomes the zero point or the grid's code of NaN. */
void ql_stochastic_encode(const struct ql_stochastic *s, const struct ql_affine *p, const struct ql_grid_table *grid,
	const int32_t *lo, const int32_t *hi, int64_t position, int64_t n, const float *x, int64_t *code);

#endif
