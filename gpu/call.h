/* SPDX-License-Identifier: MIT
 * Calls of the library as calls of a plug-in: operands, formats, options.
 */
#ifndef QUOLL_GPU_CALL_H
#define QUOLL_GPU_CALL_H

#include "gpu/abi.h"
#include "tensor/loops/map_args.h"
#include "tensor/op.h"

#define QL_GPU_OPERANDS QL_DEVICE_OPERANDS /* operands and results */
#define QL_GPU_OPTIONS 24

/* Room for everything that a struct ql_gpu_call refers to. */
struct ql_gpu_packed {
	struct ql_gpu_call call;
	struct ql_gpu_tensor operand[QL_GPU_OPERANDS]; /* then the results */
	struct ql_gpu_option option[QL_GPU_OPTIONS];
	struct ql_map_args args; /* of an elementwise op */
};

/* Fills *out; its parts are in scratch memory of the context. Returns NULL, or why a plug-in cannot be asked. Results that
 * are not allocated have the inferred dtype and shape, and no address. */
const char *ql_gpu_pack(struct ql_ctx *ctx, const struct ql_call *call, struct ql_gpu_packed *out);

#endif
