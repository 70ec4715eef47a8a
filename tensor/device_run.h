/* SPDX-License-Identifier: MIT
 * Ops whose operands are on a device other than the CPU.
 */
#ifndef QUOLL_TENSOR_DEVICE_RUN_H
#define QUOLL_TENSOR_DEVICE_RUN_H

#include "tensor/op.h"

/* Sets call->device: that of the operands, of which CPU tensors of rank 0 fit any, and tensors without values all; without operands that of the attribute
 * device, else of ctx->device. Errors: operands on different devices, an unknown name. */
enum ql_status ql_call_place(struct ql_ctx *ctx, struct ql_call *call);
/* ql_op_eval of a call with a remote device: by a kernel of the device, or on copies of the operands in the host's memory
 * (path "host", with the reason). */
enum ql_status ql_device_eval(struct ql_ctx *ctx, struct ql_call *call);
/* Allocates the results of an inferred call on its device; *reason is set if only eval can, because it finds the scales. */
enum ql_status ql_call_allocate(struct ql_ctx *ctx, struct ql_call *call, const char **reason);
/* Whether infer says all that the results need: not of ops with lists, results that may be operands, and constructors of codes. */
bool ql_call_has_results(const struct ql_call *call);
/* Warns or fails, as gpu.fallback says, because the op `name` runs on the host for the device. */
enum ql_status ql_device_fallback(
	struct ql_ctx *ctx, const char *name, const struct ql_device *device, const char *reason);

#endif
