/* SPDX-License-Identifier: MIT
 * One pass over a data set in batches, the next ones prepared by a thread while the current one is used.
 *
 * The thread handles raw bytes only: it gathers rows into tensors that the calling thread made and will hand out. What
 * a row holds depends on the seed of the pass and the number of the sample, so it is the same with and without the
 * thread and for any number of threads.
 */
#ifndef QUOLL_NN_LOADER_H
#define QUOLL_NN_LOADER_H

#include "tensor/tensor.h"

#define QL_LOADER_CHANNELS 64 /* of images that are normalized */

enum ql_loader_order {
	QL_LOADER_SAMPLES, /* rows of x and y */
	QL_LOADER_WINDOWS, /* rows of `steps` tokens of x, and those that follow each */
	QL_LOADER_STREAMS  /* the same, and row r of a batch continues row r of the one before */
};

struct ql_loader_plan {
	struct ql_tensor *x; /* (n, …), contiguous, whole bytes; tokens: (n) */
	struct ql_tensor *y; /* (n, …), or NULL; NULL for tokens */
	enum ql_loader_order order;
	int64_t batch, steps;
	bool drop;     /* leave out a last batch that is not full */
	bool shuffle;  /* samples: a permutation; windows: random beginnings */
	uint64_t seed; /* of this pass */
	/* images: uint8 (n, channels, height, width) */
	int64_t crop;   /* zeros added on each side before a random crop to the size; 0: none */
	int64_t cutout; /* side of a square that is blanked; 0: none */
	bool flip;      /* left and right, every second image */
	bool normalize; /* give float32 (value - mean) / deviation */
	float mean[QL_LOADER_CHANNELS], deviation[QL_LOADER_CHANNELS];
	int prefetch; /* 1: with the thread, 0: without, -1: where it pays */
};

struct ql_loader;

/* Checks the plan; *batches is what a pass gives. Errors name data.loader's options. */
enum ql_status ql_loader_check(struct ql_ctx *ctx, const struct ql_loader_plan *plan, int64_t *batches);
/* gives a pass; keeps x and y. */
enum ql_status ql_loader_open(struct ql_ctx *ctx, const struct ql_loader_plan *plan, struct ql_loader **out);
/* gives the next batch; *x is NULL at the end, *y without targets. Calling thread only. */
enum ql_status ql_loader_next(struct ql_loader *l, struct ql_tensor **x, struct ql_tensor **y);
bool ql_loader_prefetches(const struct ql_loader *l);
/* Ends the thread and waits for it. NULL is fine. */
void ql_loader_close(struct ql_loader *l);

#endif
