/* SPDX-License-Identifier: MIT
 * How kernels are written and launched, for nvcc and for the emulation. Shared memory is one struct, given by its size at
 * the launch.
 *   QL_KERNEL(256) name(arguments) { QL_SHARED(struct tile, tile); … }      a kernel of at most 256 threads a block
 *   QL_KERNEL(256, 2)       … of which two are to fit on a processor: at most 128 registers
 * Without the second number the compiler does not spill to let more blocks run at once.
 * QL_BUG(name) is false, but in the emulation when a test asks for that fault of gpu/emu/bugs.def.
 */
#ifndef QUOLL_GPU_KERNELS_LAUNCH_H
#define QUOLL_GPU_KERNELS_LAUNCH_H

#include "gpu/kernels/kernel.h"

#ifdef QL_EMULATION
#include <functional>
cudaError_t ql_emu_launch(
	dim3 grid, dim3 block, size_t shared, bool alone, cudaStream_t stream, std::function<void()> body);
#define QL_SHARED(type, name) type &name = *reinterpret_cast<type *>(ql_emu_shared)
#define QL_KERNEL(...) static void
#else
#define QL_BOUNDS(threads, blocks, ...) static __global__ void __launch_bounds__(threads, blocks)
#define QL_KERNEL(...) QL_BOUNDS(__VA_ARGS__, 1, 1)
extern __shared__ __align__(1024) unsigned char ql_shared[];
#define QL_SHARED(type, name) type &name = *reinterpret_cast<type *>(ql_shared)
#endif

/* A function of a kernel, always inlined: calls cost registers. */
#define QL_DEVICE __device__ static __forceinline__
/* Before a loop of a fixed number of rounds, whose arrays then stay in registers. */
#ifdef QL_EMULATION
#define QL_UNROLL
#define QL_UNROLL_FEW
#define QL_ROLLED
#else
#define QL_UNROLL _Pragma("unroll")
#define QL_UNROLL_FEW \
	_Pragma("unroll 4") /* of a loop of any number of rounds: loads of four rounds are under way together */
#define QL_ROLLED _Pragma("unroll 1") /* of a body that is long, or rare: copies of it cost registers and code */
#endif

#ifdef QL_EMULATION
enum ql_bug {
	QL_BUG_none,
#define X(name, test, text) QL_BUG_##name,
#include "gpu/emu/bugs.def"
#undef X
};
#define QL_BUG(name) (ql_emu_bug == QL_BUG_##name)
#else
#define QL_BUG(name) false
#endif

/* Adds kernel(args…) to the stream. */
template <typename... P, typename... A>
static inline cudaError_t ql_launch(
	void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream, A... args)
{
#ifdef QL_EMULATION
	return ql_emu_launch(grid, block, shared, false, stream, [=] { kernel(args...); });
#else
	if (shared > 48 * 1024) {
		cudaError_t error =
			cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);

		if (error)
			return error;
	}
	kernel<<<grid, block, shared, stream>>>(args...);
	return cudaGetLastError();
#endif
}

/* The same for a kernel without barriers, shuffles and shared memory; the emulation then runs a plain loop. */
template <typename... P, typename... A>
static inline cudaError_t ql_launch_free(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream, A... args)
{
#ifdef QL_EMULATION
	return ql_emu_launch(grid, block, 0, true, stream, [=] { kernel(args...); });
#else
	return ql_launch(kernel, grid, block, 0, stream, args...);
#endif
}

/* Blocks of `each` items for n of them, at most `most`: kernels walk on by the size of the grid. */
static inline dim3 ql_blocks(int64_t n, int64_t each, int64_t most = 1 << 20)
{
	int64_t blocks = (n + each - 1) / each;

	return dim3((unsigned)(blocks < 1 ? 1 : blocks > most ? most : blocks));
}

/* Position of this thread among all, and their number. */
QL_DEVICE int64_t ql_thread()
{
	return (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
}
QL_DEVICE int64_t ql_threads()
{
	return (int64_t)gridDim.x * blockDim.x;
}

#endif
