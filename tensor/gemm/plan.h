/* SPDX-License-Identifier: MIT
 * Divides an integer product into tasks.
 */
#ifndef QUOLL_TENSOR_GEMM_PLAN_H
#define QUOLL_TENSOR_GEMM_PLAN_H

#include "tensor/gemm/gemm.h"

/* A task is one panel of nr columns times one block of rows; task t is panel t % panels of block t / panels,
 * so that threads which claim neighbouring tasks share the block. */
struct ql_gemm_plan {
	int64_t row_block; /* a multiple of mr */
	int64_t blocks, panels;
	int64_t grain; /* tasks per chunk of ql_parallel_for */
	int64_t work_ns;
};

/* The properties of a kernel that the plan depends on. */
struct ql_gemm_shape {
	int mr, nr;
	int rate;          /* products per ns */
	int64_t row_bytes; /* of one packed row of A */
	int few;           /* tiles of rows for a thread; with fewer, the panels are divided (ql_gemm_split_of) */
};

/* m, n > 0 */
struct ql_gemm_plan ql_gemm_plan_of(
	const struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_shape *shape);

/* Divides an 8-bit product: a task is a block of rows times a run of panels, task t run t % parts of block t / parts. */
struct ql_gemm_split {
	int64_t block, blocks; /* rows at most, and the number; ql_gemm_split_row has the first row of each */
	int64_t tiles, mr;     /* of mr rows */
	int64_t run, parts;    /* panels; the number of runs */
	bool packs;            /* each panel is used by one task, which packs it */
	int64_t grain, work_ns;
};

/* The first row of a block, a multiple of mr: blocks differ by one tile at most. */
static inline int64_t ql_gemm_split_row(const struct ql_gemm_split *s, int64_t block)
{
	return (s->tiles / s->blocks * block + s->tiles % s->blocks * block / s->blocks) * s->mr;
}

/* m, n > 0; `packed`: the panels exist. */
struct ql_gemm_split ql_gemm_split_of(
	const struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k, const struct ql_gemm_shape *shape, bool packed);

/* count * size bytes of scratch, checked; NULL with a message. */
void *ql_gemm_take(struct ql_ctx *ctx, int64_t count, uint64_t size);

#endif
