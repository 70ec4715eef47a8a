/* SPDX-License-Identifier: MIT
 * What kernels find in values that the op refuses, such as an index beyond a table: noted on the device, reported at the next
 * wait with the words of the CPU.
 */
#ifndef QUOLL_GPU_FAULTS_H
#define QUOLL_GPU_FAULTS_H

#include "gpu/abi.h"
#include "tensor/op.h"

#define QL_GPU_FAULTS_KEPT 64

/* A call that may note a fault. */
struct ql_gpu_suspect {
	uint64_t serial; /* 0: none */
	const struct ql_op *op;
	int rank, axis;
	int64_t shape[QL_MAX_RANK]; /* of the last operand, which has the indices or classes */
};

/* Those of a recording, which may run at any time. */
struct ql_gpu_suspects {
	struct ql_gpu_suspect *call;
	int n, room;
	struct ql_gpu_suspects *next;
};

struct ql_gpu_faults {
	struct ql_gpu_suspect call[QL_GPU_FAULTS_KEPT]; /* the last ones since the last wait */
	bool any;                                       /* a call may have noted one since the last question */
	struct ql_gpu_suspects *recorded;               /* a list */
	struct ql_gpu_suspects *recording;              /* of the recording that is being made, or NULL */
};

/* Remembers a call that may note a fault. Without memory a recording forgets its op. */
void ql_gpu_faults_add(struct ql_ctx *ctx, struct ql_gpu_faults *f, const struct ql_call *call, uint64_t serial);
/* Fails with the message of the op for a fault that was found. */
enum ql_status ql_gpu_faults_fail(struct ql_ctx *ctx, const struct ql_gpu_faults *f, const struct ql_gpu_fault *fault);

#endif
