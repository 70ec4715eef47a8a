/* SPDX-License-Identifier: MIT
 * Steps of optimizers and norms where the tensors are on a device: calls of ops over lists, some tensors each.
 */
#ifndef QUOLL_NN_OPTIMIZER_DEVICE_H
#define QUOLL_NN_OPTIMIZER_DEVICE_H

#include "nn/optimizer.h"
#include "tensor/op.h"

/* Whether the tensors are on a device. An error, which names `what`, if they are not all in one place. */
enum ql_status ql_optimizer_place(
	struct ql_ctx *ctx, const char *what, int n, const struct ql_trained *list, bool *remote);
/* Runs the op, which writes into its operands: value, gradient (once if they are the same tensor) and states of each tensor.
 * Its one attribute has `each` numbers for each tensor. */
enum ql_status ql_optimizer_step_on(
	struct ql_ctx *ctx, const struct ql_op *op, int n, struct ql_trained *list, const double *numbers, int each);
/* For a rule without a kernel: gives copies in the host's memory of the tensors that are on a device, in scratch memory, after
 * gpu.fallback. */
enum ql_status ql_optimizer_fetch(
	struct ql_ctx *ctx, const char *what, int n, const struct ql_trained *list, struct ql_trained **host);
/* Copies values and states back if `status` is QL_OK, and releases the copies; gives the first failure. */
enum ql_status ql_optimizer_return(
	struct ql_ctx *ctx, int n, const struct ql_trained *list, struct ql_trained *host, enum ql_status status);
/* Sums of squares of chunks of elements by the op `squares`, then `root` of all; waits for the 8 bytes of the result. */
enum ql_status ql_optimizer_norm_on(struct ql_ctx *ctx, const struct ql_op *squares, const struct ql_op *root, int n,
	struct ql_tensor *const *list, int64_t chunk, double *norm);

#endif
