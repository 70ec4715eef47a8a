/* SPDX-License-Identifier: MIT
 * internal.limit(name, seconds): what this machine does at most with the instructions in force, on the threads in force: the loops
 * of the kernel family `limit`, in registers or over memory, run in bursts. The best burst counts: whatever else ran can
 * only have made one slower.
 *
 * Every thread has a part of its own, and memory is read and written by the thread that touched it first. Blocks: 4 times the last
 * cache for memory; half of a core's L2; four times L2 for L3, at most half of the thread's share: a cache of 300 MiB is shared with
 * cores that this system may not see, and gave 51 GB/s of 16 MiB, 40 of 128.
 */
#include <string.h>
#include <time.h>

#include "interp/bind/call.h"
#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"

#define BURST 0.02 /* seconds at least, so that waking a thread is a small part */
#define LEAST ((size_t)128 << 20)
#define MOST ((size_t)1 << 30)
#define THREADS 256

enum what { FMA, INT8, READ, COPY, WRITE, QUANTIZE, L2, L3, KINDS };

static const char *const names[] = {"fma", "int8", "read", "copy", "write", "quantize", "l2", "l3", NULL};
/* Bytes that a byte of the pass's size stands for: those read and those written. */
static const int moved[KINDS] = {[READ] = 1, [COPY] = 2, [WRITE] = 1, [QUANTIZE] = 5, [L2] = 1, [L3] = 1};

struct burst {
	const struct ql_limit *kernel;
	enum what what;
	int threads;
	int64_t part, rounds; /* bytes of a thread; passes or steps */
	uint8_t *from, *to;
	double done[THREADS];
	uint32_t seen; /* keeps reads from being left out */
};

/* What a part reads is `wide` times what it writes. */
static int64_t wide(const struct burst *b)
{
	return b->what == QUANTIZE ? 4 : 1;
}

static double pass(const struct burst *b, int64_t i, uint32_t *seen)
{
	const uint8_t *from = b->from + i * b->part * wide(b);
	uint8_t *to = b->to + i * b->part;

	switch (b->what) {
	case COPY: b->kernel->copy(from, to, b->part); break;
	case WRITE: b->kernel->fill(to, b->part); break;
	case QUANTIZE: b->kernel->narrow(from, to, b->part); break;
	default: *seen |= b->kernel->read(from, b->part);
	}
	return (double)b->part * moved[b->what];
}

static void run_part(void *arg, int64_t begin, int64_t end)
{
	struct burst *b = arg;
	uint32_t seen = 0;

	for (int64_t i = begin; i < end; i++) {
		b->done[i] = 0;
		if (b->what == FMA)
			b->done[i] = b->kernel->floats(b->rounds);
		else if (b->what == INT8)
			b->done[i] = b->kernel->integers(b->rounds);
		for (int64_t r = 0; b->what > INT8 && r < b->rounds; r++)
			b->done[i] += pass(b, i, &seen);
	}
	__atomic_fetch_or(&b->seen, seen, __ATOMIC_RELAXED);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void touch(void *arg, int64_t begin, int64_t end)
{
	struct burst *b = arg;
	int64_t first = ql_mul64(begin, b->part), count = ql_mul64(end - begin, b->part);

	memset(b->from + first * wide(b), 1, ql_size_array(count, (size_t)wide(b)));
	if (b->to)
		memset(b->to + first, 1, (size_t)count);
}

/* Bytes of a thread; 0: there is no such cache, or it is not larger than the one before it. */
static int64_t part_of(enum what what, int threads)
{
	const struct ql_cpu *cpu = ql_cpu();
	size_t share = cpu->l3 / (size_t)threads, part;

	if (what == L2)
		part = cpu->l2 / 2;
	else if (what == L3)
		part = share / 2 > 2 * cpu->l2 ? (share / 2 < 4 * cpu->l2 ? share / 2 : 4 * cpu->l2) : 0;
	else if (cpu->l3 > MOST / 4)
		part = MOST / (size_t)threads;
	else
		part = cpu->l3 > LEAST / 4 ? ql_size_array(4, share) : LEAST / (size_t)threads;
	return (int64_t)((what == QUANTIZE ? part / 4 : part) / QL_LIMIT_STEP * QL_LIMIT_STEP);
}

/* The best rate, in operations or bytes a second. */
static enum ql_status measure(struct ql_ctx *ctx, struct burst *b, double seconds, double *best)
{
	double stop = now() + seconds, start, took, sum;
	enum ql_status status;

	*best = 0;
	b->rounds = b->what <= INT8 ? 100000 : 1;
	do {
		start = now();
		status = ql_parallel_for(ctx, b->threads, 1, (int64_t)1 << 40, run_part, b);
		if (status)
			return status;
		took = now() - start;
		sum = 0;
		for (int i = 0; i < b->threads; i++)
			sum += b->done[i];
		if (took >= BURST && sum / took > *best)
			*best = sum / took;
		if (took < BURST)
			b->rounds *= 2;
	} while (*best == 0 || now() < stop);
	return QL_OK;
}

static enum ql_status take_memory(struct ql_ctx *ctx, struct burst *b)
{
	int64_t written = ql_mul64(b->part, b->threads);

	if (b->what <= INT8)
		return QL_OK;
	b->from = ql_alloc_array(ctx, written, (size_t)wide(b));
	if (!b->from)
		return QL_ERR_MEMORY;
	if (b->what == COPY || b->what == WRITE || b->what == QUANTIZE) {
		b->to = ql_alloc(ctx, (size_t)written);
		if (!b->to)
			return QL_ERR_MEMORY;
	}
	return ql_parallel_for(ctx, b->threads, 1, (int64_t)1 << 40, touch, b);
}

/* internal.limit(name, seconds) -> 10^9 operations or bytes a second, and the kernel; nil where there is no such cache */
static int internal_limit(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	enum what what = (enum what)luaL_checkoption(L, 1, NULL, names);
	double seconds = luaL_checknumber(L, 2), best = 0;
	int threads = (int)ql_min64(ctx->threads, THREADS);
	struct burst b = {
		.kernel = ql_kernels_cpu()->limit, .what = what, .threads = threads, .part = part_of(what, threads)};
	enum ql_status status;

	if (!b.part)
		return lua_pushnil(L), 1;
	status = take_memory(ctx, &b);
	if (!status)
		status = measure(ctx, &b, seconds, &best);
	ql_free(ctx, b.from);
	ql_free(ctx, b.to);
	if (status)
		return ql_raise(L, status);
	lua_pushnumber(L, best / 1e9);
	lua_pushstring(L, what == INT8 ? b.kernel->dot : b.kernel->name);
	return 2;
}

static const luaL_Reg internal[] = {{"limit", internal_limit}, {NULL, NULL}};

int ql_open_limits(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, internal);
	lua_pop(L, 1);
	return 0;
}
