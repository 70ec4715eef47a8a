// SPDX-License-Identifier: MIT
// Threads as fibers of Boost.Context. See engine.h.
#include "gpu/emu/engine.h"

#include <boost/context/fiber.hpp>
#include <sanitizer/asan_interface.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

dim3 ql_emu_thread, ql_emu_block, ql_emu_block_dim, ql_emu_grid_dim;
unsigned char *ql_emu_shared;
int ql_emu_bug;

namespace
{
namespace context = boost::context;

constexpr size_t PAGE = 4096, STACK = 32 * PAGE;

enum class waits { nothing, block, warp, some, memory, ended };

// A copy to shared memory that is not made yet.
struct copy {
	void *to;
	const void *from;
	int bytes, size;
};

struct lane {
	context::fiber fiber;
	dim3 index;
	waits state;
	const char *what; // of the exchange
	unsigned mask;
	unsigned char slot[QL_EMU_SLOT];
	std::vector<copy> fresh; // not in a group
	std::deque<std::vector<copy>> groups;
	bool (*ready)(const void *, unsigned); // of what it waits for in memory
	const void *ready_at;
	unsigned ready_value, barrier, barrier_threads;
	bool fenced; // since the last group of products
	std::vector<ql_emu_product> products;
	std::deque<std::vector<ql_emu_product>> product_groups;
};

// The stacks stay for the next launch; the lowest page of each is never mapped.
struct stacks {
	char *base = nullptr;
	size_t n = 0;

	bool grow(size_t wanted)
	{
		if (wanted <= n)
			return true;
		release();
		void *at = mmap(nullptr, wanted * (STACK + PAGE), PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (at == MAP_FAILED)
			return false;
		base = static_cast<char *>(at);
		n = wanted;
		for (size_t i = 0; i < n; i++)
			if (mprotect(bottom(i), STACK, PROT_READ | PROT_WRITE))
				return false;
		return true;
	}
	char *bottom(size_t i) const
	{
		return base + i * (STACK + PAGE) + PAGE;
	}
	// AddressSanitizer keeps the marks of frames that were left, and what is mapped there next would have them.
	void release()
	{
		if (base) {
			ASAN_UNPOISON_MEMORY_REGION(base, n * (STACK + PAGE));
			munmap(base, n * (STACK + PAGE));
		}
		base = nullptr;
		n = 0;
	}
	~stacks()
	{
		release();
	}
};

struct keep_stack {
	void deallocate(context::stack_context &)
	{
	}
};

struct fault {
};

struct engine {
	stacks room;
	std::vector<lane> lanes;
	std::vector<unsigned char> shown; // slots, by lane of the block
	context::fiber scheduler;
	const std::function<void()> *body = nullptr;
	unsigned threads = 0, now = 0;
	bool alone = false, failed = false, early = false; // early: asynchronous work is done at once
	std::deque<std::function<void()>> bulk;            // copies of the block that are not made yet
	std::mt19937_64 random;
	bool shuffled = false; // take any of them, not the oldest
	char why[200];

	void start(unsigned i);
	void wait(waits state);
	void resume(unsigned i);
	bool open_warp(unsigned first, unsigned n);
	bool run_warp(unsigned first, const std::vector<unsigned> &order);
	bool open_block();
	bool open_some();
	bool deliver();
	bool report_stuck(unsigned at);
	void run_block(const std::vector<unsigned> &warps, const std::vector<unsigned> &order);
	void run_alone(const std::vector<unsigned> &warps, const std::vector<unsigned> &order);
	void fail(const char *format, va_list args);
};

engine e;

void engine::fail(const char *format, va_list args)
{
	int n;

	if (failed)
		return;
	failed = true;
	n = snprintf(why, sizeof(why), "block (%u, %u, %u), thread (%u, %u, %u): ", ql_emu_block.x, ql_emu_block.y,
		ql_emu_block.z, ql_emu_thread.x, ql_emu_thread.y, ql_emu_thread.z);
	vsnprintf(why + n, sizeof(why) - (size_t)n, format, args);
}

void report(const char *format, ...) __attribute__((format(printf, 1, 2)));
void report(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	e.fail(format, args);
	va_end(args);
}

// ---- fibers ----

void engine::start(unsigned i)
{
	context::stack_context stack;

	stack.size = STACK;
	stack.sp = room.bottom(i) + STACK;
	lanes[i].state = waits::nothing;
	lanes[i].fresh.clear();
	lanes[i].groups.clear();
	lanes[i].products.clear();
	lanes[i].product_groups.clear();
	lanes[i].fenced = false;
	lanes[i].fiber = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack),
		keep_stack(), [this, i](context::fiber &&from) {
			scheduler = std::move(from);
			try {
				(*body)();
			} catch (const fault &) {
			}
			lanes[i].state = waits::ended;
			return std::move(scheduler);
		});
}

void engine::wait(waits state)
{
	lanes[now].state = state;
	scheduler = std::move(scheduler).resume();
}

void engine::resume(unsigned i)
{
	now = i;
	ql_emu_thread = lanes[i].index;
	lanes[i].fiber = std::move(lanes[i].fiber).resume();
}

// ---- warps ----

// Opens the exchanges of a warp whose lanes all wait or have ended; false when there is none.
bool engine::open_warp(unsigned first, unsigned n)
{
	unsigned waiting = 0, opened = 0;

	for (unsigned l = 0; l < n; l++)
		waiting |= (unsigned)(lanes[first + l].state == waits::warp) << l;
	for (unsigned l = 0; l < n && !failed; l++) {
		const lane &a = lanes[first + l];
		unsigned mask = a.mask & (n < 32 ? (1u << n) - 1 : ~0u), same = 0;

		if (!(waiting >> l & 1) || opened >> l & 1)
			continue;
		for (unsigned k = 0; k < n; k++)
			if (mask >> k & 1 && waiting >> k & 1 && !(opened >> k & 1) &&
				lanes[first + k].mask == a.mask && !strcmp(lanes[first + k].what, a.what))
				same |= 1u << k;
		ql_emu_thread = a.index;
		if (!(a.mask >> l & 1))
			report("%s without its own lane in the mask", a.what);
		else if (same != mask)
			report("%d of %d lanes reach %s", __builtin_popcount(same), __builtin_popcount(mask), a.what);
		opened |= same;
	}
	for (unsigned l = 0; l < n; l++)
		if (opened >> l & 1) {
			memcpy(&shown[(size_t)(first + l) * QL_EMU_SLOT], lanes[first + l].slot, QL_EMU_SLOT);
			lanes[first + l].state = waits::nothing;
		}
	return opened != 0 && !failed;
}

// Runs a warp until all its lanes wait for others or have ended; false when none could go on.
bool engine::run_warp(unsigned first, const std::vector<unsigned> &order)
{
	unsigned n = std::min(32u, threads - first);
	bool ran = false;

	for (unsigned l = 0; l < n; l++) {
		lane &a = lanes[first + l];

		if (a.state == waits::memory && a.ready(a.ready_at, a.ready_value))
			a.state = waits::nothing;
	}
	do {
		for (unsigned l : order)
			if (l < n && lanes[first + l].state == waits::nothing && !failed) {
				resume(first + l);
				ran = true;
			}
	} while (!failed && open_warp(first, n));
	return ran;
}

// ---- blocks ----

// Reports threads that nothing will wake; `at` of them are at __syncthreads.
bool engine::report_stuck(unsigned at)
{
	unsigned memory = 0, some = 0;
	const char *what = "";

	for (unsigned i = 0; i < threads; i++) {
		memory += lanes[i].state == waits::memory;
		some += lanes[i].state == waits::some;
		if (lanes[i].state == waits::memory || lanes[i].state == waits::some) {
			what = lanes[i].what;
			ql_emu_thread = lanes[i].index;
		}
	}
	if (memory || some)
		report("%s: %u threads wait in vain for memory, %u at a barrier of some threads, %u at __syncthreads",
			what, memory, some, at);
	else
		report("%u of %u threads reach __syncthreads, the others have ended", at, threads);
	return false;
}

// Opens the barrier of the block when every thread waits there; false when all have ended.
bool engine::open_block()
{
	unsigned at = 0, ended = 0;

	for (unsigned i = 0; i < threads; i++) {
		at += lanes[i].state == waits::block;
		ended += lanes[i].state == waits::ended;
	}
	if (ended == threads)
		return false;
	if (at != threads)
		return report_stuck(at);
	for (unsigned i = 0; i < threads; i++)
		lanes[i].state = waits::nothing;
	return true;
}

// Opens barriers that as many threads have reached as they are for.
bool engine::open_some()
{
	unsigned at[16] = {}, wanted[16] = {};
	bool opened = false;

	for (unsigned i = 0; i < threads; i++)
		if (lanes[i].state == waits::some) {
			at[lanes[i].barrier]++;
			wanted[lanes[i].barrier] = lanes[i].barrier_threads;
		}
	for (unsigned i = 0; i < threads; i++)
		if (lanes[i].state == waits::some && at[lanes[i].barrier] == wanted[lanes[i].barrier]) {
			lanes[i].state = waits::nothing;
			opened = true;
		}
	return opened;
}

// Makes one of the copies that are under way.
bool engine::deliver()
{
	size_t i = 0;

	if (bulk.empty())
		return false;
	if (shuffled)
		i = random() % bulk.size();
	std::function<void()> work = std::move(bulk[i]);

	bulk.erase(bulk.begin() + (ptrdiff_t)i);
	try {
		work();
	} catch (const fault &) {
	}
	return true;
}

void engine::run_block(const std::vector<unsigned> &warps, const std::vector<unsigned> &order)
{
	bool ran;

	bulk.clear();
	for (unsigned i = 0; i < threads; i++)
		start(i);
	do {
		ran = false;
		for (unsigned w : warps)
			if (!failed)
				ran |= run_warp(w * 32, order);
	} while (!failed && (open_some() || ran || deliver() || open_block()));
	for (unsigned i = 0; failed && i < threads; i++)
		lanes[i].fiber = context::fiber(); // unwinds its stack
}

void engine::run_alone(const std::vector<unsigned> &warps, const std::vector<unsigned> &order)
{
	for (unsigned w : warps)
		for (unsigned l : order) {
			now = w * 32 + l;
			if (now >= threads || failed)
				continue;
			ql_emu_thread = lanes[now].index;
			try {
				(*body)();
			} catch (const fault &) {
			}
		}
}

// ---- orders ----

struct order {
	bool backward = false;
	uint64_t seed = 0; // 0: none

	order()
	{
		const char *text = getenv("QUOLL_EMU_ORDER");

		backward = text && !strcmp(text, "backward");
		seed = text && !backward ? strtoull(text, nullptr, 10) : 0;
	}
	std::vector<unsigned> of(unsigned n, uint64_t salt) const
	{
		std::vector<unsigned> list(n);

		std::iota(list.begin(), list.end(), 0u);
		if (backward)
			std::reverse(list.begin(), list.end());
		if (seed) {
			std::mt19937_64 random(seed + salt);

			std::shuffle(list.begin(), list.end(), random);
		}
		return list;
	}
	// Block number i of n: a walk by a step without a common divisor.
	uint64_t block(uint64_t i, uint64_t n) const
	{
		uint64_t step = seed ? 1 + seed * 7919 % n : 1;

		while (std::gcd(step, n) != 1)
			step++;
		return backward ? n - 1 - i : (i * step + seed) % n;
	}
};

bool prepare(dim3 block, bool alone)
{
	e.threads = block.x * block.y * block.z;
	if (!alone && !e.room.grow(e.threads))
		return false;
	if (e.lanes.size() < e.threads)
		e.lanes.resize(e.threads);
	e.shown.assign((size_t)(e.threads + 31) / 32 * 32 * QL_EMU_SLOT, 0xCD);
	for (unsigned i = 0; i < e.threads; i++)
		e.lanes[i].index = dim3(i % block.x, i / block.x % block.y, i / block.x / block.y);
	return true;
}
} // namespace

// ---- what kernels call ----

unsigned ql_emu_lane()
{
	return e.now & 31;
}

void ql_emu_fault(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	e.fail(format, args);
	va_end(args);
	throw fault();
}

void ql_emu_sync_block()
{
	if (e.alone)
		ql_emu_fault("__syncthreads in a kernel that was launched without barriers");
	e.wait(waits::block);
}

ql_emu_slots ql_emu_exchange(const char *what, unsigned mask, const void *value, size_t bytes)
{
	unsigned i = e.now;

	if (e.alone)
		ql_emu_fault("%s in a kernel that was launched without barriers", what);
	if (bytes)
		memcpy(e.lanes[i].slot, value, bytes);
	e.lanes[i].what = what;
	e.lanes[i].mask = mask;
	e.wait(waits::warp);
	return {reinterpret_cast<unsigned char(*)[QL_EMU_SLOT]>(&e.shown[(size_t)(i & ~31u) * QL_EMU_SLOT])};
}

static void make(const copy &c)
{
	memcpy(c.to, c.from, (size_t)c.bytes);
	memset(static_cast<char *>(c.to) + c.bytes, 0, (size_t)(c.size - c.bytes));
}

void ql_emu_async(void *to, const void *from, int bytes, int size)
{
	copy c = {to, from, bytes, size};

	if (e.early)
		make(c);
	else
		e.lanes[e.now].fresh.push_back(c);
}

void ql_emu_async_commit()
{
	e.lanes[e.now].groups.push_back(std::move(e.lanes[e.now].fresh));
	e.lanes[e.now].fresh.clear();
}

void ql_emu_async_wait(int groups)
{
	std::deque<std::vector<copy>> &queue = e.lanes[e.now].groups;

	for (; queue.size() > (size_t)groups; queue.pop_front())
		for (const copy &c : queue.front())
			make(c);
}

void ql_emu_sync_some(unsigned id, unsigned count)
{
	lane &a = e.lanes[e.now];

	if (id > 15 || count == 0 || count % 32 || count > e.threads)
		ql_emu_fault("barrier %u of %u threads", id, count);
	a.what = "bar.sync";
	a.barrier = id;
	a.barrier_threads = count;
	e.wait(waits::some);
}

void ql_emu_wait(const char *what, bool (*ready)(const void *, unsigned), const void *at, unsigned value)
{
	lane &a = e.lanes[e.now];

	if (ready(at, value))
		return;
	a.what = what;
	a.ready = ready;
	a.ready_at = at;
	a.ready_value = value;
	e.wait(waits::memory);
}

void ql_emu_bulk(std::function<void()> work)
{
	if (e.early)
		work();
	else
		e.bulk.push_back(std::move(work));
}

void ql_emu_product_fence()
{
	e.lanes[e.now].fenced = true;
}

void ql_emu_product_add(const ql_emu_product &p)
{
	if (!e.lanes[e.now].fenced)
		ql_emu_fault("wgmma without a fence before it");
	if (e.early)
		p.run(p);
	else
		e.lanes[e.now].products.push_back(p);
}

void ql_emu_product_commit()
{
	lane &a = e.lanes[e.now];

	a.product_groups.push_back(std::move(a.products));
	a.products.clear();
	a.fenced = false;
}

void ql_emu_product_wait(int groups)
{
	std::deque<std::vector<ql_emu_product>> &queue = e.lanes[e.now].product_groups;

	for (; queue.size() > (size_t)groups; queue.pop_front())
		for (const ql_emu_product &p : queue.front())
			p.run(p);
}

// ---- launches ----

bool ql_emu_run(
	dim3 grid, dim3 block, size_t shared, bool alone, const std::function<void()> &body, char *why, size_t size)
{
	order how;
	const char *bug = getenv("QUOLL_EMU_BUG");
	uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
	void *at = nullptr;
	int failed = posix_memalign(
		&at, 1024, shared ? shared : 1); // not more than was asked for: the sanitizer sees the end
	std::unique_ptr<unsigned char, void (*)(void *)> memory(
		failed ? nullptr : static_cast<unsigned char *>(at), free);

	if (!memory || !prepare(block, alone)) {
		snprintf(why, size, "out of memory for the threads of a block");
		return false;
	}
	ql_emu_bug = bug ? atoi(bug) : 0;
	e.body = &body;
	e.alone = alone;
	e.early = how.backward;
	e.shuffled = how.seed != 0;
	e.random.seed(how.seed);
	e.failed = false;
	ql_emu_block_dim = block;
	ql_emu_grid_dim = grid;
	ql_emu_shared = memory.get();
	std::vector<unsigned> warps = how.of((e.threads + 31) / 32, 1), lanes = how.of(32, 2);
	for (uint64_t i = 0; i < blocks && !e.failed; i++) {
		uint64_t b = how.block(i, blocks);

		ql_emu_block =
			dim3((unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y));
		memset(memory.get(), 0xCD, shared);
		if (alone)
			e.run_alone(warps, lanes);
		else
			e.run_block(warps, lanes);
	}
	if (e.failed)
		snprintf(why, size, "%s", e.why);
	return !e.failed;
}
