/* SPDX-License-Identifier: MIT
 * How kernels note a value that the op refuses, see enum ql_gpu_fault_kind. They clamp it and go on; the caller reports the
 * record at its next wait. A kernel that does so sets plan->faults.
 */
#ifndef QUOLL_GPU_KERNELS_FAULT_H
#define QUOLL_GPU_KERNELS_FAULT_H

#include "gpu/kernels/launch.h"

/* Of several threads the first one is kept: which one that is depends on the device. */
QL_DEVICE void ql_note(
	struct ql_gpu_record *record, uint64_t serial, int32_t kind, int64_t position, int64_t value, int64_t limit)
{
	if (atomicCAS(&record->taken, 0ull, 1ull))
		return;
	record->fault.serial = serial;
	record->fault.kind = kind;
	record->fault.position = position;
	record->fault.value = value;
	record->fault.limit = limit;
}

#endif
