/* SPDX-License-Identifier: MIT
 * The descriptor of a kernel and what its functions get. A file gpu/kernels/<name>.cu defines one,
 * `ql_gpu_kernel_<name>`, with a line in gpu/kernels.def.
 */
#ifndef QUOLL_GPU_KERNELS_KERNEL_H
#define QUOLL_GPU_KERNELS_KERNEL_H

#include <cuda_runtime.h>
#include <stdbool.h>

#include "gpu/abi.h"

/* The first fault that kernels found since it was cleared; on the device. */
struct ql_gpu_record {
	unsigned long long taken; /* 0: none */
	struct ql_gpu_fault fault;
};

/* Where a kernel runs. */
struct ql_gpu_place {
	cudaStream_t stream;
	struct ql_gpu_record *record;
	int32_t processors;
};

struct ql_gpu_kernel {
	const char *op; /* names of ops, separated by spaces */
	const char *name, *family;
	int32_t exact, cc;
	/* False: not for this call; plan->why says why. Fills plan->path and plan->workspace. Addresses are NULL. */
	bool (*plan)(const struct ql_gpu_call *call, struct ql_gpu_plan *plan);
	cudaError_t (*run)(const struct ql_gpu_place *place, const struct ql_gpu_call *call);
};

/* Another op as a part of a kernel's own call, on the same device (gpu/cuda/call.c). false: no kernel takes it, plan->why
 * says why. The memory of plan->workspace is a part of the own workspace. */
#ifdef __cplusplus
extern "C" {
#endif
bool ql_part_plan(const struct ql_gpu_call *call, struct ql_gpu_plan *plan);
cudaError_t ql_part_run(const struct ql_gpu_place *place, const struct ql_gpu_call *call);
#ifdef __cplusplus
}
#endif

#endif
