/* SPDX-License-Identifier: MIT
 * The tape: what made a tensor, kept so that gradients can flow back. ql_op_apply records a node when an operand
 * wants a gradient; ql_backward walks the nodes from the newest to the oldest and calls each op's backward.
 *
 * A result keeps its node, a node keeps the nodes of its operands and the values that backward will read, never the
 * reverse: there are no cycles. A node that was walked gives up what it kept: a graph serves one backward.
 */
#ifndef QUOLL_TENSOR_TAPE_H
#define QUOLL_TENSOR_TAPE_H

#include "tensor/op.h"

/* What a node knows of one operand. */
struct ql_edge {
	struct ql_node *node;    /* kept; NULL: this operand wants no gradient */
	int output;              /* which result of that node the operand was */
	struct ql_tensor *value; /* kept when op->saves has QL_SAVE(i), else NULL */
	uint64_t version;        /* of value's storage when it was recorded */
	struct ql_result is;     /* dtype (float32 when quantized) and shape */
};

struct ql_node {
	int refs;
	const struct ql_op *op; /* NULL: a leaf */
	uint64_t number;        /* grows with time: operands have smaller numbers than results */
	int n_in, n_out;
	struct ql_edge *edge;   /* n_in */
	struct ql_value *attr;  /* as given, one per op->doc.attrs, without specs; NULL: none */
	struct ql_edge *result; /* n_out; value: an alias, kept when op->saves has QL_SAVE_RESULT */
	struct ql_tensor **grad; /* n_out: what has arrived in the running backward */
	struct ql_tensor *sum;   /* of a leaf: the gradient, summed over all backwards; NULL: none yet */
	bool queued, used;
	struct ql_node *next; /* in the list of nodes that are being freed */
};

/* Makes t a leaf that collects a gradient. Errors: not a float dtype, quantized, or the result of an op. */
enum ql_status ql_tape_leaf(struct ql_ctx *ctx, struct ql_tensor *t);
/* t forgets what made it, and its gradient. */
void ql_tape_detach(struct ql_ctx *ctx, struct ql_tensor *t);
/* Some operand wants a gradient and recording is on. */
bool ql_tape_wanted(const struct ql_ctx *ctx, const struct ql_call *call);
/* Attaches a node to the results of a call that has run. */
enum ql_status ql_tape_record(struct ql_ctx *ctx, struct ql_call *call);
/* A tensor that takes part in gradients must not be written to: fails naming `what`. */
enum ql_status ql_tape_check_write(struct ql_ctx *ctx, const char *what, const struct ql_tensor *t,
	const struct ql_tensor *from);
void ql_node_release(struct ql_ctx *ctx, struct ql_node *node);
/* Lets go of what the node keeps, but for its leaf sum; of the gradients that have arrived. */
void ql_node_drop(struct ql_ctx *ctx, struct ql_node *node);
void ql_node_drop_grads(struct ql_ctx *ctx, struct ql_node *node);

/* Adds the gradient of `root` (by `seed`, same shape; NULL: 1 for a root of one element) to the sums of all leaves
 * that it depends on. When it fails no sum has changed, and the graph is used up. */
enum ql_status ql_backward(struct ql_ctx *ctx, struct ql_tensor *root, struct ql_tensor *seed);

#endif
