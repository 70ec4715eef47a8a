/* SPDX-License-Identifier: MIT
 * One pass over a data set in batches; a thread prepares the next ones while the current one is used.
 *
 * The thread handles raw bytes only: it gathers rows into tensors that the calling thread allocates and returns.
 * The contents of a row depend on the seed of the pass and the number of the sample, so they are the same with and
 * without the thread and for any number of threads.
 */
#ifndef QUOLL_NN_LOADER_H
#define QUOLL_NN_LOADER_H

#include "tensor/tensor.h"

#define QL_LOADER_CHANNELS 64 /* maximum channels of normalized images */

enum ql_loader_order {
	QL_LOADER_SAMPLES, /* rows of x and y */
	QL_LOADER_WINDOWS, /* rows of `steps` tokens of x; targets are the next tokens */
	QL_LOADER_STREAMS  /* the same; row r of a batch continues row r of the previous one */
};

struct ql_loader_plan {
	struct ql_tensor *x; /* (n, …), contiguous, whole bytes; tokens: (n) */
	struct ql_tensor *y; /* (n, …), or NULL; NULL for tokens */
	enum ql_loader_order order;
	int64_t batch, steps;
	bool drop;     /* skip an incomplete last batch */
	bool shuffle;  /* samples: a permutation; windows: random starts */
	uint64_t seed; /* of this pass */
	/* images: uint8 (n, channels, height, width) */
	int64_t crop;   /* zeros added on each side before a random crop to the size; 0: none */
	int64_t cutout; /* side of the square that cutout blanks; 0: none */
	bool flip;      /* swap left and right with probability 1/2 */
	bool normalize; /* return float32 (value - mean) / deviation */
	float mean[QL_LOADER_CHANNELS], deviation[QL_LOADER_CHANNELS];
	int prefetch; /* 1: with the thread, 0: without, -1: if it pays */
};

struct ql_loader;

/* Checks the plan; *batches receives the number of batches of a pass. Errors name data.loader's options. */
enum ql_status ql_loader_check(struct ql_ctx *ctx, const struct ql_loader_plan *plan, int64_t *batches);
/* Gives a pass; keeps x and y. */
enum ql_status ql_loader_open(struct ql_ctx *ctx, const struct ql_loader_plan *plan, struct ql_loader **out);
/* Gives the next batch; *x is NULL at the end, *y is NULL without targets. Calling thread only. */
enum ql_status ql_loader_next(struct ql_loader *l, struct ql_tensor **x, struct ql_tensor **y);
bool ql_loader_prefetches(const struct ql_loader *l);
/* Stops the thread and waits for it. l may be NULL. */
void ql_loader_close(struct ql_loader *l);

#endif
