/* SPDX-License-Identifier: MIT
 * Runs kernels on the CPU: the threads of a block as fibers, blocks in sequence. A fiber runs until it waits; warps run
 * ahead of each other until they reach a barrier of the block. The order of blocks, warps and lanes is chosen by
 * QUOLL_EMU_ORDER (forward, backward, or a seed), since a single order hides missing barriers.
 */
#ifndef QUOLL_GPU_EMU_ENGINE_H
#define QUOLL_GPU_EMU_ENGINE_H

#include <functional>

#include "gpu/emu/cuda_runtime.h"

#define QL_EMU_SLOT 64 /* bytes that a lane shows to its warp */
#define QL_EMU_SHARED (227 * 1024)

/* Runs a kernel now. `alone`: its threads never wait, so they are calls of a plain loop. False: `why` says what it did
 * wrong. */
bool ql_emu_run(
	dim3 grid, dim3 block, size_t shared, bool alone, const std::function<void()> &body, char *why, size_t size);
/* Adds a kernel to a stream (runtime.cpp). */
cudaError_t ql_emu_launch(
	dim3 grid, dim3 block, size_t shared, bool alone, cudaStream_t stream, std::function<void()> body);

#endif
