/* SPDX-License-Identifier: MIT
 * What kernels find in values that the op refuses, such as an index beyond a table: noted on the device, reported at the next
 * wait with the words of the CPU.
 */
#ifndef QUOLL_GPU_FAULTS_H
#define QUOLL_GPU_FAULTS_H

#include "gpu/abi.h"
#include "tensor/op.h"

#define QL_GPU_FAULTS_KEPT 64

/* The last calls that may note a fault since the last wait. */
struct ql_gpu_faults {
	struct ql_gpu_suspect {
		uint64_t serial; /* 0: none */
		const struct ql_op *op;
		int rank, axis;
		int64_t shape[QL_MAX_RANK]; /* of the last operand, which has the indices or classes */
	} call[QL_GPU_FAULTS_KEPT];
	bool any; /* a call may have noted one since the last question */
};

/* Remembers a call that may note a fault. */
void ql_gpu_faults_add(struct ql_gpu_faults *f, const struct ql_call *call, uint64_t serial);
/* Fails with the message of the op for a fault that was found. */
enum ql_status ql_gpu_faults_fail(struct ql_ctx *ctx, const struct ql_gpu_faults *f, const struct ql_gpu_fault *fault);

#endif
