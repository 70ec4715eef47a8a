/* SPDX-License-Identifier: MIT
 * The language of kernels as far as ours use it: qualifiers, built-in variables, barriers, shuffles, votes, atomics
 * and functions of the device. The meaning of each is that of the CUDA C++ programming guide.
 */
#ifndef QUOLL_GPU_EMU_DEVICE_H
#define QUOLL_GPU_EMU_DEVICE_H

#include <math.h>
#include <string.h>

#include <functional>

#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(n) alignas(n)
#define __grid_constant__

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
	{
	}
};
struct alignas(8) int2 {
	int x, y;
};
struct alignas(16) int4 {
	int x, y, z, w;
};
struct alignas(8) uint2 {
	unsigned x, y;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
struct alignas(8) float2 {
	float x, y;
};
struct alignas(16) float4 {
	float x, y, z, w;
};

/* Of the thread that runs. */
extern dim3 ql_emu_thread, ql_emu_block, ql_emu_block_dim, ql_emu_grid_dim;
extern unsigned char *ql_emu_shared;
/* The fault that kernels show: a number of bugs.def, from QUOLL_EMU_BUG; 0: none. */
extern int ql_emu_bug;
#define threadIdx ql_emu_thread
#define blockIdx ql_emu_block
#define blockDim ql_emu_block_dim
#define gridDim ql_emu_grid_dim
#define warpSize 32

/* What the lanes of a warp have shown in their last exchange, by lane. */
struct ql_emu_slots {
	unsigned char (*lane)[64];
};
/* Waits until all lanes of the mask are here with the same `what`, then shows their values to each other. */
ql_emu_slots ql_emu_exchange(const char *what, unsigned mask, const void *value, size_t bytes);
void ql_emu_sync_block();
/* Ends the kernel with this message. */
void ql_emu_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned ql_emu_lane();

/* Ends the kernel if these bytes are not all in one allocation of the device. */
void ql_emu_global(const char *what, const void *at, size_t bytes);
/* cp.async of this thread: `bytes` of `size` bytes are read, the others are 0. In the order `backward` a copy is made at
 * once, else as late as a wait allows. */
void ql_emu_async(void *to, const void *from, int bytes, int size);
void ql_emu_async_commit();
void ql_emu_async_wait(int groups);

/* bar.sync: waits for `count` threads of the block at barrier `id`. */
void ql_emu_sync_some(unsigned id, unsigned count);
/* Waits until ready(at, value); when all threads wait in vain, the kernel ends with a message. */
void ql_emu_wait(const char *what, bool (*ready)(const void *, unsigned), const void *at, unsigned value);
/* Work of the block that goes on by itself: in the order `backward` it is done at once, else when all threads wait, by a
 * seed in any order. */
void ql_emu_bulk(std::function<void()> work);
/* A product of this thread that goes on by itself: done at once, or as late as a wait allows. */
struct ql_emu_product {
	void (*run)(const ql_emu_product &p);
	int32_t *d;
	uint64_t a, b;
	bool add;
};
void ql_emu_product_fence();
void ql_emu_product_add(const ql_emu_product &p);
void ql_emu_product_commit();
void ql_emu_product_wait(int groups);

static inline void __syncthreads()
{
	ql_emu_sync_block();
}
static inline void __syncwarp(unsigned mask = ~0u)
{
	ql_emu_exchange("__syncwarp", mask, nullptr, 0);
}

template <typename T> static inline T ql_emu_take(const char *what, unsigned mask, T value, unsigned from)
{
	ql_emu_slots slots = ql_emu_exchange(what, mask, &value, sizeof(value));

	if (!(mask >> from & 1))
		ql_emu_fault("%s reads lane %u, which does not take part", what, from);
	memcpy(&value, slots.lane[from], sizeof(value));
	return value;
}
template <typename T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32)
{
	unsigned lane = ql_emu_lane(), w = (unsigned)width;

	return ql_emu_take("__shfl_sync", mask, value, (lane & ~(w - 1)) | ((unsigned)from & (w - 1)));
}
template <typename T> static inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32)
{
	unsigned lane = ql_emu_lane(), from = lane ^ (unsigned)bits, w = (unsigned)width;

	return ql_emu_take("__shfl_xor_sync", mask, value, from / w > lane / w ? lane : from);
}
template <typename T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32)
{
	unsigned lane = ql_emu_lane(), w = (unsigned)width;

	return ql_emu_take("__shfl_down_sync", mask, value, lane % w + by < w ? lane + by : lane);
}
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
	ql_emu_slots slots = ql_emu_exchange("__ballot_sync", mask, &predicate, sizeof(predicate));
	unsigned votes = 0;

	for (unsigned l = 0; l < 32; l++) {
		int vote = 0;

		if (mask >> l & 1)
			memcpy(&vote, slots.lane[l], sizeof(vote));
		votes |= (unsigned)(vote != 0) << l;
	}
	return votes;
}
static inline int __any_sync(unsigned mask, int predicate)
{
	return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
	return __ballot_sync(mask, predicate) == mask;
}

template <typename T> static inline T min(T a, T b)
{
	return b < a ? b : a;
}
template <typename T> static inline T max(T a, T b)
{
	return a < b ? b : a;
}

/* One fiber runs at a time, so plain reads and writes are atomic. */
template <typename T> static inline T atomicAdd(T *at, T value)
{
	T old = *at;

	*at = (T)(old + value);
	return old;
}
template <typename T> static inline T atomicMax(T *at, T value)
{
	T old = *at;

	*at = value > old ? value : old;
	return old;
}
template <typename T> static inline T atomicMin(T *at, T value)
{
	T old = *at;

	*at = value < old ? value : old;
	return old;
}
template <typename T> static inline T atomicCAS(T *at, T wanted, T value)
{
	T old = *at;

	if (old == wanted)
		*at = value;
	return old;
}
static inline float __fmaf_rn(float a, float b, float c)
{
	return fmaf(a, b, c);
}
static inline void __threadfence()
{
}
static inline int __popc(unsigned x)
{
	return __builtin_popcount(x);
}

#endif
