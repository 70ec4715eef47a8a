/* SPDX-License-Identifier: MIT
 * OpenMP with claimed chunks and passive waiting. Static partitions with spinning barriers made a 0.13 ms
 * product take 8 ms when another program used one of the cores; claimed chunks with passive waits stayed below
 * 2.5 times the quiet time.
 */
#include "tensor/parallel.h"

#include <omp.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Before libgomp reads its environment (its own constructor has the default priority). */
__attribute__((constructor(101))) static void wait_passively(void)
{
	setenv("OMP_WAIT_POLICY", "passive", 0);
}

static bool stopped(const struct ql_ctx *ctx)
{
	return ctx->interrupted && !ctx->finishing;
}

static bool run_here(struct ql_ctx *ctx, int64_t n, int64_t grain, ql_parallel_fn *body, void *arg)
{
	for (int64_t begin = 0; begin < n; begin += grain) {
		if (stopped(ctx))
			return false;
		body(arg, begin, ql_min64(begin + grain, n));
	}
	return true;
}

enum ql_status ql_parallel_for(struct ql_ctx *ctx, int64_t n, int64_t grain, int64_t work_ns, ql_parallel_fn *body,
	void *arg)
{
	int64_t chunks = ql_ceil_div(n, grain);
	int threads = (int)ql_min64(ctx->threads, chunks);
	_Atomic int64_t next = 0;

	if (threads <= 1 || work_ns < QL_PARALLEL_MIN_NS) {
		if (!run_here(ctx, n, grain, body, arg))
			return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
		return QL_OK;
	}
#pragma omp parallel num_threads(threads)
	{
		int64_t chunk;

		while (!stopped(ctx) && (chunk = atomic_fetch_add(&next, 1)) < chunks)
			body(arg, chunk * grain, ql_min64((chunk + 1) * grain, n));
	}
	if (stopped(ctx))
		return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
	return QL_OK;
}
