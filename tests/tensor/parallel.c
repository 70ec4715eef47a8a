/* SPDX-License-Identifier: MIT
 * ql_parallel_for: every item once for any number of threads, items and grain; a thread that is held up loses its
 * chunks to the others; interrupts.
 */
#include "tensor/parallel.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/check.h"

#define MOST 5000
#define MS 1000000L

static _Atomic int done[MOST], chunks[1024];

/* Threads are numbered by their first call. */
static int my_number(void)
{
	static _Atomic int threads;
	static _Thread_local int number;

	if (!number)
		number = ++threads;
	return number - 1;
}

static void count(void *arg, int64_t begin, int64_t end)
{
	int64_t grain = *(int64_t *)arg;

	CHECK(begin % grain == 0 && end - begin <= grain, "chunk %lld to %lld", (long long)begin, (long long)end);
	for (int64_t i = begin; i < end; i++)
		done[i]++;
	chunks[my_number()]++;
}

static void test_every_item(void)
{
	static const int threads[] = {1, 2, 3, 5, 63, 64, 65, 200};
	static const int64_t sizes[] = {0, 1, 2, 3, 7, 64, 65, 127, 999, MOST}, grains[] = {1, 2, 7, 64, MOST};

	for (size_t t = 0; t < sizeof(threads) / sizeof(threads[0]); t++) {
		struct ql_ctx *ctx = ql_ctx_new(threads[t]);

		CASE("%d threads", threads[t]);
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (size_t g = 0; g < sizeof(grains) / sizeof(grains[0]); g++) {
				int64_t n = sizes[s], grain = grains[g];

				memset((void *)done, 0, sizeof(done));
				CHECK(ql_parallel_for(ctx, n, grain, INT64_MAX, count, &grain) == QL_OK, "%s",
					ctx->err);
				for (int64_t i = 0; i < MOST; i++)
					CHECK(done[i] == (i < n), "n %lld, grain %lld: item %lld %d times",
						(long long)n, (long long)grain, (long long)i, done[i]);
			}
		ql_ctx_free(ctx);
	}
}

static _Atomic int held, afterwards; /* 1 + the thread that was held up, and the chunks it took then */

/* The first range's first chunk takes longer than all others together: the second thread must take the rest. */
static void slow_first(void *arg, int64_t begin, int64_t end)
{
	struct timespec pause = {.tv_nsec = begin == 0 ? 200 * MS : MS / 10};

	(void)end;
	if (arg)
		nanosleep(&pause, NULL);
	if (begin == 0)
		held = my_number() + 1;
	else if (held == my_number() + 1)
		afterwards++;
	chunks[my_number()]++;
}

static void test_claims(void)
{
	struct ql_ctx *ctx = ql_ctx_new(2);
	int sum = 0;

	CASE("a thread that is held up");
	memset((void *)chunks, 0, sizeof(chunks));
	CHECK(ql_parallel_for(ctx, 100, 1, INT64_MAX, slow_first, ctx) == QL_OK, "%s", ctx->err);
	for (int i = 0; i < 1024; i++)
		sum += chunks[i];
	CHECK(sum == 100 && chunks[held - 1] < 100 && afterwards < 10, "%d chunks, %d on the thread, %d of them late",
		sum, chunks[held - 1], afterwards);

	CASE("little work runs on the calling thread");
	memset((void *)chunks, 0, sizeof(chunks));
	CHECK(ql_parallel_for(ctx, 100, 1, QL_PARALLEL_MIN_NS - 1, slow_first, NULL) == QL_OK, "%s", ctx->err);
	CHECK(chunks[my_number()] == 100, "%d chunks", chunks[my_number()]);
	ql_ctx_free(ctx);
}

static void interrupt_at_5(void *arg, int64_t begin, int64_t end)
{
	struct ql_ctx *ctx = arg;

	(void)end;
	done[begin]++;
	if (begin % 500 == 5)
		ctx->interrupted = 1;
}

static void test_interrupt(void)
{
	for (int threads = 1; threads <= 2; threads++) {
		struct ql_ctx *ctx = ql_ctx_new(threads);
		int sum = 0;

		CASE("an interrupt, %d threads", threads);
		memset((void *)done, 0, sizeof(done));
		CHECK(ql_parallel_for(ctx, 1000, 1, INT64_MAX, interrupt_at_5, ctx) == QL_ERR_INTERRUPTED, "went on");
		for (int i = 0; i < MOST; i++)
			sum += done[i];
		CHECK(sum < 1000, "%d items", sum);
		ctx->finishing = true;
		memset((void *)done, 0, sizeof(done));
		CHECK(ql_parallel_for(ctx, 1000, 1, INT64_MAX, interrupt_at_5, ctx) == QL_OK, "%s", ctx->err);
		sum = 0;
		for (int i = 0; i < MOST; i++)
			sum += done[i];
		CHECK(sum == 1000, "%d items while a tensor is finished", sum);
		ctx->interrupted = 0;
		ql_ctx_free(ctx);
	}
}

int main(void)
{
	test_every_item();
	test_claims();
	test_interrupt();
	return check_end();
}
