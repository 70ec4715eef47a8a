/* SPDX-License-Identifier: MIT
 * exp(-d * unit) of whole numbers d >= 0 in integers: the exponential of softmax on codes and on sums of their products.
 *
 *   t = (d * factor) >> shift         d * unit in octaves, with 24 bits behind the point
 *   e = 2^-t                          2^30 at t = 0: from a table of 2^(-i / 256), linear in between, then shifted; 2^24 at the end
 *
 * The relative error is below 2e-6 plus one step of 2^-24: half a code of 16 bits is 7.6e-6.
 */
#ifndef QUOLL_QUANT_DECAY_H
#define QUOLL_QUANT_DECAY_H

#include <stdint.h>

#define QL_DECAY_ONE (1 << 24) /* what stands for exp(0) */

struct ql_decay {
	uint64_t factor; /* 2^30 to 2^31, less for units below 4e-10 */
	int shift;
	int64_t limit; /* beyond it the result is 0 */
};

/* rint(2^(30 - i / 256)) */
extern const uint32_t ql_decay_table[257];

/* unit >= 0, finite. */
struct ql_decay ql_decay_of(double unit);

static inline int64_t ql_decay_at(const struct ql_decay *c, int64_t d)
{
	uint64_t t, i, e;

	if (d > c->limit)
		return 0;
	t = ((uint64_t)d * c->factor) >> c->shift;
	i = t >> 16 & 255;
	e = ql_decay_table[i] - (((ql_decay_table[i] - ql_decay_table[i + 1]) * (t & 65535)) >> 16);
	i = (t >> 24) + 6;
	return (int64_t)((e + ((uint64_t)1 << (i - 1))) >> i);
}

#endif
