/* SPDX-License-Identifier: MIT
 * The tape: the graph of ops that produced a tensor, for reverse-mode gradients. ql_op_apply records a node when an
 * operand requires a gradient; ql_backward visits the nodes from the newest to the oldest and calls each op's
 * backward.
 *
 * A result keeps its node; a node keeps the nodes of its operands and the values that backward reads. References
 * never point the other way, so there are no cycles. A visited node releases its values: a graph serves one
 * backward.
 */
#ifndef QUOLL_TENSOR_TAPE_H
#define QUOLL_TENSOR_TAPE_H

#include "tensor/op.h"

/* One operand or result of a node. */
struct ql_edge {
	struct ql_node *node;    /* kept; NULL: this operand requires no gradient */
	int output;              /* which result of that node the operand was */
	struct ql_tensor *value; /* kept when op->saves has QL_SAVE(i), else NULL */
	uint64_t version;        /* version of value's storage when recorded */
	struct ql_result is;     /* dtype (float32 when quantized) and shape */
	const struct ql_device *device;
};

struct ql_node {
	int refs;
	const struct ql_op *op; /* NULL: a leaf */
	uint64_t number;        /* increases: operands have smaller numbers than results */
	int n_in, n_out;
	struct ql_edge *edge;    /* n_in */
	struct ql_random random; /* of the call */
	struct ql_value *attr;   /* as given, one per op->doc.attrs, without specs; NULL: none */
	struct ql_edge *result;  /* n_out; value: an alias, kept when op->saves has QL_SAVE_RESULT */
	struct ql_tensor **grad; /* n_out: gradients accumulated by the running backward */
	struct ql_tensor *sum;   /* gradient of a leaf, summed over all backward passes; NULL: none yet */
	bool queued, used;
	struct ql_node *next; /* in the list of nodes that are being freed */
};

/* Makes t a leaf that collects a gradient. Errors: not a float dtype, quantized, or the result of an op. */
enum ql_status ql_tape_leaf(struct ql_ctx *ctx, struct ql_tensor *t);
/* Removes t's node and gradient. */
void ql_tape_detach(struct ql_ctx *ctx, struct ql_tensor *t);
/* True if some operand requires a gradient and recording is on. */
bool ql_tape_wanted(const struct ql_ctx *ctx, const struct ql_call *call);
/* Attaches a node to the results of a call that has run. */
enum ql_status ql_tape_record(struct ql_ctx *ctx, struct ql_call *call);
/* Fails, naming `what`, if t is part of a gradient graph and so must not be written to. */
enum ql_status ql_tape_check_write(
	struct ql_ctx *ctx, const char *what, const struct ql_tensor *t, const struct ql_tensor *from);
void ql_node_release(struct ql_ctx *ctx, struct ql_node *node);
/* Release what the node keeps, except a leaf's gradient sum; release its accumulated gradients. */
void ql_node_drop(struct ql_ctx *ctx, struct ql_node *node);
void ql_node_drop_grads(struct ql_ctx *ctx, struct ql_node *node);

/* Adds the gradient of `root`, weighted by `seed` (same shape; NULL: 1 for a root of one element), to the sums of
 * all leaves that root depends on. On failure no sum has changed, but the graph is used up. */
enum ql_status ql_backward(struct ql_ctx *ctx, struct ql_tensor *root, struct ql_tensor *seed);

#endif
