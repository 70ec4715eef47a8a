/* SPDX-License-Identifier: MIT
 * exp(-d * unit) of integers d >= 0 in integer arithmetic, for softmax of codes and of sums of products of codes.
 *
 *   t = (d * factor) >> shift         d * unit in octaves, with 24 fraction bits
 *   e = 2^-t                          a table of 2^(-i / 256) times 2^30, interpolated linearly, shifted to 2^24
 *
 * The relative error is below 2e-6 plus one step of 2^-24; half a 16-bit code is 7.6e-6.
 */
#ifndef QUOLL_QUANT_INTEGER_EXP_INT_H
#define QUOLL_QUANT_INTEGER_EXP_INT_H

#include <stdint.h>

#define QL_EXP_INT_ONE (1 << 24) /* the result for d = 0 */

struct ql_exp_int {
	uint64_t factor; /* 2^30 to 2^31, less for units below 4e-10 */
	int shift;
	int64_t limit; /* largest d with a result that may not be 0 */
};

/* rint(2^(30 - i / 256)) */
extern const uint32_t ql_exp_int_table[257];

/* unit: >= 0, finite. */
struct ql_exp_int ql_exp_int_of(double unit);

static inline int64_t ql_exp_int_at(const struct ql_exp_int *c, int64_t d)
{
	uint64_t t, i, e;

	if (d > c->limit)
		return 0;
	t = ((uint64_t)d * c->factor) >> c->shift;
	i = t >> 16 & 255;
	e = ql_exp_int_table[i] - (((ql_exp_int_table[i] - ql_exp_int_table[i + 1]) * (t & 65535)) >> 16);
	i = (t >> 24) + 6;
	return (int64_t)((e + ((uint64_t)1 << (i - 1))) >> i);
}

#endif
