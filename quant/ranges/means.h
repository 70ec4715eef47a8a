/* SPDX-License-Identifier: MIT
 * Means of magnitudes under each scale, from sums in double.
 */
#ifndef QUOLL_QUANT_MEANS_H
#define QUOLL_QUANT_MEANS_H

#include "tensor/grain.h"

/* Sets stats[s].meanabs to the mean |x| of the finite values of the contiguous x under scale s; stats[s].count is their
 * number. Bit-identical for every number of threads. */
enum ql_status ql_means(struct ql_ctx *ctx, const struct ql_grain *g, const float *x, struct ql_stats *stats);

#endif
