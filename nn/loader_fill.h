/* SPDX-License-Identifier: MIT
 * The rows of a batch as bytes: gathered, augmented, normalized.
 */
#ifndef QUOLL_NN_LOADER_FILL_H
#define QUOLL_NN_LOADER_FILL_H

#include "nn/loader.h"

/* The data for filling batches, without tensors. */
struct ql_filler {
	struct ql_loader_plan plan; /* its tensors are not used */
	const uint8_t *x, *y;       /* first elements; tokens: y is NULL */
	int64_t n;                  /* samples or tokens */
	int64_t x_bytes, y_bytes;   /* per sample; x_bytes per token */
	int64_t channels, height, width;
	int64_t batches;
	const int64_t *order;              /* permutation of the samples, or NULL */
	const float *table;                /* (channels, 256): code to normalized value, or NULL */
	uint8_t zero;                      /* code of the value 0 */
	uint8_t blank[QL_LOADER_CHANNELS]; /* code that cutout writes */
	int variant;                       /* of ql_rng_words */
};

/* Writes `rows` rows of x and y, from row `begin` of the batch. y may be NULL. */
void ql_filler_rows(const struct ql_filler *f, int64_t batch, int64_t begin, int64_t end, uint8_t *x, uint8_t *y);
/* The number of rows of a batch and, for tokens, of steps per row. */
int64_t ql_filler_height(const struct ql_filler *f, int64_t batch);
int64_t ql_filler_steps(const struct ql_filler *f, int64_t batch);
/* A random permutation of 0..n-1 from the seed. */
void ql_filler_shuffle(int variant, uint64_t seed, int64_t n, int64_t *order);
/* Fills (channels, 256) values normalized by the plan's mean and deviation; a code represents code * scale - zero *
 * scale. */
void ql_filler_table(const struct ql_loader_plan *plan, int64_t channels, float scale, int32_t zero, float *table);

#endif
