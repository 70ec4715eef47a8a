/* SPDX-License-Identifier: MIT
 * Copies of the planes of images, in which a tap reads the numbers of consecutive pixels in whole vectors: padding is there as zeros,
 * numbers that a step leaves out are not.
 */
#ifndef QUOLL_TENSOR_CONV_COPIES_H
#define QUOLL_TENSOR_CONV_COPIES_H

#include "tensor/conv/unfold.h"

#define QL_COPIES 16 /* of a plane, at most */

struct ql_copies {
	const struct ql_unfold *u;
	int64_t n; /* copies of a plane, one after the other; 0: there would be too many, or they are too large */
	int64_t rows, pitch;      /* of a copy; numbers of a row */
	int64_t row[QL_COPIES];   /* row r of copy c is row row[c] + (r + top) * step[0] of the plane, if it has one, */
	int64_t first[QL_COPIES]; /* from column first[c] on, every step[1]-th */
};

/* Where pixel p of the result is in what a tap reads, in copies for rows of the result from `top` on. */
static inline int64_t ql_copies_place(const struct ql_copies *c, int64_t top, int64_t p)
{
	return (p / c->u->gw - top) * c->pitch + p % c->u->gw;
}

/* Numbers of the copies of a plane. */
static inline int64_t ql_copies_numbers(const struct ql_copies *c)
{
	return ql_mul64(ql_mul64(c->rows, c->pitch), c->n);
}

/* The copies for so many rows of the result and vectors of so many numbers. at[t]: where tap t reads for the first pixel. */
struct ql_copies ql_copies_of(const struct ql_unfold *u, int64_t rows, int vector, int64_t *at);
/* Copies what rows of the result from `top` on read of some planes; their copies are `apart` numbers apart. */
void ql_copies_fill(
	const struct ql_copies *c, const float *from, int64_t planes, int64_t top, float *to, int64_t apart);

#endif
