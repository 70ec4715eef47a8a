/* SPDX-License-Identifier: MIT
 * Traversal of the tape. A heap yields the node with the highest number, so a node is visited only after all of its
 * gradients have been added.
 */
#include <string.h>

#include "tensor/autograd/back.h"
#include "tensor/ops.h"
#include "tensor/remote.h"
#include "tensor/scratch.h"

/* Nodes with a gradient, the newest first; `seen` lists all of them, for cleaning up. */
struct walk {
	struct ql_node **heap, **leaf;
	int n, room, leaves, leaf_room;
};

static enum ql_status grow(struct ql_ctx *ctx, struct ql_node ***list, int *room, int n)
{
	struct ql_node **more;

	if (n < *room)
		return QL_OK;
	more = ql_realloc_array(ctx, *list, *room ? ql_mul64(2, *room) : 64, sizeof(*more));
	if (!more)
		return QL_ERR_MEMORY;
	*list = more;
	*room = *room ? 2 * *room : 64;
	return QL_OK;
}

/* Adds a node, keeping a reference. */
static enum ql_status push(struct ql_ctx *ctx, struct walk *w, struct ql_node *node)
{
	enum ql_status status;
	int i;

	if (node->queued)
		return QL_OK;
	if (!node->op) {
		status = grow(ctx, &w->leaf, &w->leaf_room, w->leaves);
		if (status)
			return status;
		w->leaf[w->leaves++] = node;
	} else {
		status = grow(ctx, &w->heap, &w->room, w->n);
		if (status)
			return status;
		for (i = w->n++; i > 0 && w->heap[(i - 1) / 2]->number < node->number; i = (i - 1) / 2)
			w->heap[i] = w->heap[(i - 1) / 2];
		w->heap[i] = node;
	}
	node->queued = true;
	node->refs++;
	return QL_OK;
}

static struct ql_node *pop(struct walk *w)
{
	struct ql_node *top = w->heap[0], *last = w->heap[--w->n];
	int i = 0, child;

	while ((child = 2 * i + 1) < w->n) {
		if (child + 1 < w->n && w->heap[child + 1]->number > w->heap[child]->number)
			child++;
		if (w->heap[child]->number < last->number)
			break;
		w->heap[i] = w->heap[child];
		i = child;
	}
	w->heap[i] = last;
	top->queued = false;
	return top;
}

/* True if only this gradient uses the bytes, so that they may be overwritten. */
static bool is_own(const struct ql_tensor *t)
{
	return t->refs == 1 && t->storage->refs == 1 && !ql_tensor_overlaps_itself(t);
}

/* Adds t, which is kept, to *sum. */
static enum ql_status accumulate(struct ql_ctx *ctx, struct ql_tensor **sum, struct ql_tensor *t)
{
	struct ql_tensor *in[2] = {*sum, t};
	struct ql_call call = {.op = &ql_op_add, .in = in, .n_in = 2};
	enum ql_status status;

	if (!*sum) {
		*sum = ql_tensor_keep(t);
		return QL_OK;
	}
	if (is_own(*sum))
		call.into = *sum;
	status = ql_op_apply(ctx, &call);
	if (!status) {
		ql_tensor_release(ctx, *sum);
		*sum = call.out[0];
	}
	return status;
}

static enum ql_status check_versions(struct ql_ctx *ctx, const struct ql_node *node)
{
	for (int i = 0; i < node->n_in; i++)
		if (node->edge[i].value && node->edge[i].value->storage->version != node->edge[i].version)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"backward: %s: wanted operand %d as it was, got one that was written to after it was used",
				node->op->doc.name, i + 1);
	for (int i = 0; i < node->n_out; i++)
		if (node->result[i].value && node->result[i].value->storage->version != node->result[i].version)
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"backward: %s: wanted the result as it was, got one that was written to afterwards",
				node->op->doc.name);
	return QL_OK;
}

/* Adds the operands' gradients to their nodes and queues these. */
static enum ql_status hand_on(struct ql_ctx *ctx, struct walk *w, struct ql_back *b)
{
	enum ql_status status = b->status;

	for (int i = 0; i < b->node->n_in && !status; i++) {
		const struct ql_edge *e = &b->node->edge[i];

		if (!b->give[i])
			continue;
		status = accumulate(ctx, &e->node->grad[e->output], b->give[i]);
		if (!status)
			status = push(ctx, w, e->node);
	}
	return status;
}

/* Reconstructs the recorded call with operands without elements. */
static bool sketch_call(struct ql_ctx *ctx, struct ql_back *b)
{
	int n = b->node->n_in;
	struct ql_tensor *header = ql_scratch_array(ctx, n, sizeof(*header));

	b->call.in = ql_scratch_array(ctx, n, sizeof(*b->call.in));
	if (!header || !b->call.in)
		return false;
	for (int i = 0; i < n; i++) {
		const struct ql_result *is = &b->node->edge[i].is;

		header[i] = (struct ql_tensor){.refs = 1, .dtype = (uint8_t)is->dtype, .rank = (uint8_t)is->rank};
		memcpy(header[i].shape, is->shape, sizeof(is->shape));
		b->call.in[i] = &header[i];
	}
	b->call.n_in = n;
	b->call.n_out = b->node->n_out;
	for (int i = 0; i < b->call.n_out && i < QL_MAX_OUT; i++)
		b->call.result[i] = b->node->result[i].is;
	return true;
}

static enum ql_status step(struct ql_ctx *ctx, struct walk *w, struct ql_node *node)
{
	struct ql_back b = {.ctx = ctx, .node = node, .call = {.op = node->op, .attr = node->attr}};
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status;

	if (node->used)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"backward: wanted a graph that was not used yet, got '%s' of one that was; "
			"compute the value again",
			node->op->doc.name);
	if (!node->op->backward)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"backward: wanted ops that have a gradient, got '%s'; use :detach()", node->op->doc.name);
	status = check_versions(ctx, node);
	if (status)
		return status;
	b.give = ql_scratch_array(ctx, node->n_in, sizeof(*b.give));
	if (!b.give || !sketch_call(ctx, &b))
		return QL_ERR_MEMORY;
	memset(b.give, 0, (size_t)node->n_in * sizeof(*b.give));
	status = node->op->backward(&b);
	for (int i = 0; i < b.n_pool; i++)
		ql_tensor_release(ctx, b.pool[i]);
	b.status = b.status ? b.status : status;
	status = hand_on(ctx, w, &b);
	for (int i = 0; i < node->n_in; i++)
		ql_tensor_release(ctx, b.give[i]);
	ql_scratch_release(ctx, mark);
	return status;
}

/* Releases the lists and, after a failure, all accumulated gradients. */
static void finish(struct ql_ctx *ctx, struct walk *w)
{
	for (int i = 0; i < w->n; i++) {
		w->heap[i]->queued = false;
		w->heap[i]->used = true;
		ql_node_drop(ctx, w->heap[i]);
		ql_node_release(ctx, w->heap[i]);
	}
	for (int i = 0; i < w->leaves; i++) {
		w->leaf[i]->queued = false;
		ql_node_drop_grads(ctx, w->leaf[i]);
		ql_node_release(ctx, w->leaf[i]);
	}
	ql_free(ctx, w->heap);
	ql_free(ctx, w->leaf);
}

/* Copies a gradient that is shared or not dense: the sum belongs to the leaf only. */
static enum ql_status make_own(struct ql_ctx *ctx, struct ql_node *leaf)
{
	struct ql_tensor *copy;
	enum ql_status status;

	if (is_own(leaf->grad[0]) && ql_tensor_is_contiguous(leaf->grad[0]))
		return QL_OK;
	status = ql_tensor_clone(ctx, leaf->grad[0], &copy);
	if (status)
		return status;
	ql_tensor_release(ctx, leaf->grad[0]);
	leaf->grad[0] = copy;
	return QL_OK;
}

/* Updates all sums or none: once started, interrupts wait. A sum that the user also holds is replaced, not
 * overwritten. */
static enum ql_status add_to_leaves(struct ql_ctx *ctx, struct walk *w)
{
	enum ql_status status = QL_OK;

	for (int i = 0; i < w->leaves && !status; i++)
		status = make_own(ctx, w->leaf[i]);
	if (status)
		return status;
	ctx->finishing = true;
	for (int i = 0; i < w->leaves && !status; i++)
		status = accumulate(ctx, &w->leaf[i]->sum, w->leaf[i]->grad[0]);
	ctx->finishing = false;
	return status;
}

/* Takes over the root's gradient, so that a leaf need not copy it. */
static enum ql_status walk(struct ql_ctx *ctx, struct walk *w, struct ql_tensor *root, struct ql_tensor *first)
{
	enum ql_status status = accumulate(ctx, &root->node->grad[root->node_output], first);

	ql_tensor_release(ctx, first);
	if (!status)
		status = push(ctx, w, root->node);
	while (!status && w->n > 0) {
		struct ql_node *node = pop(w);

		status = step(ctx, w, node);
		node->used = true;
		ql_node_drop(ctx, node);
		ql_node_release(ctx, node);
		if (!status && ql_stopped(ctx)) /* views do not poll */
			status = ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
	}
	return status ? status : add_to_leaves(ctx, w);
}

static enum ql_status ones_like(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	struct ql_tensor *host;
	enum ql_status status = ql_tensor_new(ctx, ql_operand_dtype(t), t->rank, t->shape, &host);
	double one = 1;

	*out = NULL;
	if (status)
		return status;
	ql_dtypes[host->dtype].from_f64(host->storage->data, 0, 1, 1, &one);
	status = ql_tensor_new_on(ctx, t->storage->device, host->dtype, t->rank, t->shape, out);
	if (!status)
		status = ql_tensor_copy(ctx, *out, host); /* a number, which travels with the call */
	ql_tensor_release(ctx, host);
	if (status) {
		ql_tensor_release(ctx, *out);
		*out = NULL;
	}
	return status;
}

/* A gradient that the user also holds is never written to; see is_own. */
static enum ql_status start(
	struct ql_ctx *ctx, const struct ql_tensor *root, struct ql_tensor *seed, struct ql_tensor **first)
{
	if (!seed)
		return ones_like(ctx, root, first);
	if (seed->dtype != ql_operand_dtype(root))
		return ql_tensor_cast(ctx, seed, ql_operand_dtype(root), first);
	*first = ql_tensor_keep(seed);
	return QL_OK;
}

enum ql_status ql_backward(struct ql_ctx *ctx, struct ql_tensor *root, struct ql_tensor *seed)
{
	struct walk w = {0};
	struct ql_tensor *first = NULL;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	enum ql_status status;

	if (!root->node)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"backward: wanted a value that depends on a tensor with requires_grad, got %s without",
			ql_tensor_text(root, a));
	if (!seed && ql_tensor_nelem(root) != 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "backward: wanted one element or a gradient to begin with, got %s",
			ql_tensor_text(root, a));
	if (seed && !ql_tensor_same_shape(root, seed))
		return ql_fail(ctx, QL_ERR_SHAPE, "backward: gradient: wanted shape %s, got %s",
			ql_shape_text(root->rank, root->shape, a), ql_shape_text(seed->rank, seed->shape, b));
	if (seed && seed->q)
		return ql_fail(
			ctx, QL_ERR_DTYPE, "backward: gradient: wanted plain numbers, got %s", ql_tensor_text(seed, a));
	status = start(ctx, root, seed, &first);
	if (status)
		return ql_failed_in(ctx, "backward", status);
	ctx->nograd++;
	status = walk(ctx, &w, root, first);
	finish(ctx, &w);
	ctx->nograd--;
	return ql_failed_in(ctx, "backward", status);
}
