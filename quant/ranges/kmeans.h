/* SPDX-License-Identifier: MIT
 * Optimal k-means of weighted numbers in one dimension, where clusters are runs of the sorted numbers.
 */
#ifndef QUOLL_QUANT_KMEANS_H
#define QUOLL_QUANT_KMEANS_H

#include "tensor/base.h"

/* Divides n > 0 ascending numbers with weights > 0 into at most k runs of least sum of weight * (value - mean of the
 * run)^2, by dynamic programming (H. Wang, M. Song: Ckmeans.1d.dp, The R Journal 3/2, 2011) in O(k n log n). Run i
 * begins at first[i]; returns the number of runs, or 0 if out of memory. */
int ql_kmeans(struct ql_ctx *ctx, const double *value, const double *weight, int n, int k, int *first);

#endif
