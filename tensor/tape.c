/* SPDX-License-Identifier: MIT
 * Recording and walking. Nodes are numbered as they are made, and an operand's node is older than the result's: the walk
 * takes the node of the highest number from a heap, so that every gradient has arrived when its node's turn comes.
 * Chains of nodes are freed by a work list: a graph may be millions of nodes deep.
 */
#include "tensor/tape.h"

#include <string.h>

#include "tensor/back.h"
#include "tensor/ops/ops.h"
#include "tensor/scratch.h"

/* ---- freeing ---- */

static int attr_count(const struct ql_op *op)
{
	int n = 0;

	while (op->doc.attrs && op->doc.attrs[n].type != QL_ATTR_END)
		n++;
	return n;
}

static void free_attrs(struct ql_ctx *ctx, struct ql_node *node)
{
	int n = node->op ? attr_count(node->op) : 0;

	for (int i = 0; node->attr && i < n; i++) {
		if (!node->attr[i].set)
			continue;
		if (node->op->doc.attrs[i].type == QL_ATTR_INTS)
			ql_free(ctx, node->attr[i].ints.at);
		else if (node->op->doc.attrs[i].type == QL_ATTR_STRING)
			ql_free(ctx, (char *)(uintptr_t)node->attr[i].s);
		else if (node->op->doc.attrs[i].type == QL_ATTR_TENSOR)
			ql_tensor_release(ctx, node->attr[i].tensor);
	}
	ql_free(ctx, node->attr);
	node->attr = NULL;
}

static void drop_grads(struct ql_ctx *ctx, struct ql_node *node)
{
	for (int i = 0; node->grad && i < node->n_out; i++) {
		ql_tensor_release(ctx, node->grad[i]);
		node->grad[i] = NULL;
	}
}

/* Everything but the node itself and its leaf sum. */
static void drop_kept(struct ql_ctx *ctx, struct ql_node *node)
{
	for (int i = 0; node->edge && i < node->n_in; i++) {
		ql_tensor_release(ctx, node->edge[i].value);
		ql_node_release(ctx, node->edge[i].node);
	}
	for (int i = 0; node->result && i < node->n_out; i++)
		ql_tensor_release(ctx, node->result[i].value);
	drop_grads(ctx, node);
	free_attrs(ctx, node);
	ql_free(ctx, node->edge);
	ql_free(ctx, node->result);
	node->edge = node->result = NULL;
}

void ql_node_release(struct ql_ctx *ctx, struct ql_node *node)
{
	if (!node || --node->refs > 0)
		return;
	node->next = ctx->dying;
	ctx->dying = node;
	if (ctx->freeing)
		return;
	ctx->freeing = true;
	while ((node = ctx->dying)) {
		ctx->dying = node->next;
		drop_kept(ctx, node);
		ql_tensor_release(ctx, node->sum);
		ql_free(ctx, node->grad);
		ql_free(ctx, node);
	}
	ctx->freeing = false;
}

/* ---- recording ---- */

static void *take_zeroed(struct ql_ctx *ctx, int n, size_t size, bool *ok)
{
	void *p = n ? ql_alloc_zeroed(ctx, (size_t)n * size) : NULL;

	*ok = *ok && (p || !n);
	return p;
}

/* A node with room for its edges and gradients; NULL when there is no memory. */
static struct ql_node *node_new(struct ql_ctx *ctx, const struct ql_op *op, int n_in, int n_out)
{
	struct ql_node *node = ql_alloc_zeroed(ctx, sizeof(*node));
	bool ok = node;

	if (!node)
		return NULL;
	node->refs = 1;
	node->op = op;
	node->number = ++ctx->nodes;
	node->n_in = n_in;
	node->n_out = n_out;
	node->edge = take_zeroed(ctx, n_in, sizeof(*node->edge), &ok);
	node->result = take_zeroed(ctx, n_out, sizeof(*node->result), &ok);
	node->grad = take_zeroed(ctx, n_out, sizeof(*node->grad), &ok);
	if (ok)
		return node;
	ql_node_release(ctx, node);
	return NULL;
}

static struct ql_result shape_of(const struct ql_tensor *t)
{
	struct ql_result r = {.dtype = ql_operand_dtype(t), .rank = t->rank};

	memcpy(r.shape, t->shape, sizeof(r.shape));
	return r;
}

enum ql_status ql_tape_leaf(struct ql_ctx *ctx, struct ql_tensor *t)
{
	char text[QL_SHAPE_TEXT];

	if (t->node && !t->node->op)
		return QL_OK;
	if (t->node)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"requires_grad: wanted a tensor that was not made from others, got a result of '%s'; use :detach() first",
			t->node->op->doc.name);
	if (!ql_dtype_is_float(t->dtype) || t->q)
		return ql_fail(ctx, QL_ERR_DTYPE, "requires_grad: wanted a plain float tensor, got %s",
			ql_tensor_text(t, text));
	t->node = node_new(ctx, NULL, 0, 1);
	if (!t->node)
		return QL_ERR_MEMORY;
	t->node_output = 0;
	t->node->result[0].is = shape_of(t);
	return QL_OK;
}

void ql_tape_detach(struct ql_ctx *ctx, struct ql_tensor *t)
{
	ql_node_release(ctx, t->node);
	t->node = NULL;
}

bool ql_tape_wanted(const struct ql_ctx *ctx, const struct ql_call *call)
{
	if (ctx->nograd > 0)
		return false;
	for (int i = 0; i < call->n_in; i++)
		if (call->in[i]->node)
			return true;
	return false;
}

enum ql_status ql_tape_check_write(struct ql_ctx *ctx, const char *what, const struct ql_tensor *t,
	const struct ql_tensor *from)
{
	if (ctx->nograd > 0 || !(t->node || (from && from->node)))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"%s: wanted a tensor that takes no part in gradients, got %s; use the form without underscore, or tensor.nograd",
		what, t->node ? t->node->op ? "a result that has one" : "one with requires_grad" : "a value that has one");
}

static enum ql_status copy_attrs(struct ql_ctx *ctx, struct ql_node *node, const struct ql_value *attr)
{
	int n = attr_count(node->op);
	bool ok = true;

	if (!attr || n == 0)
		return QL_OK;
	node->attr = take_zeroed(ctx, n, sizeof(*attr), &ok);
	for (int i = 0; ok && i < n; i++) {
		struct ql_value v = attr[i];

		if (!v.set || node->op->doc.attrs[i].type == QL_ATTR_SPEC)
			continue;
		if (node->op->doc.attrs[i].type == QL_ATTR_INTS) {
			v.ints.at = ql_alloc(ctx, (size_t)v.ints.n * sizeof(*v.ints.at));
			ok = v.ints.at;
			if (ok)
				memcpy(v.ints.at, attr[i].ints.at, (size_t)v.ints.n * sizeof(*v.ints.at));
		} else if (node->op->doc.attrs[i].type == QL_ATTR_STRING) {
			v.s = ql_strdup(ctx, v.s);
			ok = v.s;
		} else if (node->op->doc.attrs[i].type == QL_ATTR_TENSOR) {
			ql_tensor_keep(v.tensor);
		}
		if (ok)
			node->attr[i] = v;
	}
	return ok ? QL_OK : QL_ERR_MEMORY;
}

/* A literal lives on the caller's stack: it is kept as a tensor of the result's dtype. */
static enum ql_status keep_value(struct ql_ctx *ctx, struct ql_edge *e, struct ql_tensor *t, bool literal, unsigned dtype)
{
	enum ql_status status = QL_OK;

	if (literal)
		status = ql_tensor_cast(ctx, t, dtype, &e->value);
	else
		e->value = ql_tensor_keep(t);
	if (!status)
		e->version = e->value->storage->version;
	return status;
}

static struct ql_tensor *result_of(const struct ql_call *call, int i)
{
	return call->list ? call->list[i] : call->out[i];
}

/* contiguous() and the like may give the operand itself, which has its node already. */
static bool is_operand(const struct ql_call *call, const struct ql_tensor *t)
{
	for (int i = 0; i < call->n_in; i++)
		if (call->in[i] == t)
			return true;
	return false;
}

/* Results through which a gradient flows. */
static bool is_differentiable(const struct ql_call *call, const struct ql_tensor *t)
{
	return ql_dtype_is_float(ql_operand_dtype(t)) && !is_operand(call, t);
}

static enum ql_status record_operands(struct ql_ctx *ctx, struct ql_node *node, const struct ql_call *call)
{
	enum ql_status status = QL_OK;

	for (int i = 0; i < call->n_in && !status; i++) {
		struct ql_edge *e = &node->edge[i];
		struct ql_tensor *t = call->in[i];
		bool literal = i < 32 && call->weak >> i & 1;

		e->is = shape_of(t);
		if (t->node) {
			e->node = t->node;
			e->node->refs++;
			e->output = t->node_output;
		}
		if (node->op->saves >> (i < 31 ? i : 30) & 1)
			status = keep_value(ctx, e, t, literal, result_of(call, 0)->dtype);
	}
	return status;
}

static enum ql_status record_results(struct ql_ctx *ctx, struct ql_node *node, const struct ql_call *call)
{
	for (int i = 0; i < call->n_out; i++) {
		struct ql_tensor *t = result_of(call, i);
		enum ql_status status;

		node->result[i].is = shape_of(t);
		if (!(node->op->saves & QL_SAVE_RESULT))
			continue;
		status = ql_tensor_alias(ctx, t, &node->result[i].value);
		if (status)
			return status;
		node->result[i].version = t->storage->version;
	}
	return QL_OK;
}

enum ql_status ql_tape_record(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_node *node;
	bool real = false;
	enum ql_status status;

	for (int i = 0; i < call->n_out; i++)
		real = real || is_differentiable(call, result_of(call, i));
	if (!real) /* positions, comparisons: nothing to flow */
		return QL_OK;
	node = node_new(ctx, call->op, call->n_in, call->n_out);
	if (!node)
		return QL_ERR_MEMORY;
	status = copy_attrs(ctx, node, call->attr);
	if (!status)
		status = record_operands(ctx, node, call);
	if (!status)
		status = record_results(ctx, node, call);
	for (int i = 0; i < call->n_out && !status; i++) {
		struct ql_tensor *t = result_of(call, i);

		if (!is_differentiable(call, t))
			continue;
		node->refs++;
		t->node = node;
		t->node_output = i;
	}
	ql_node_release(ctx, node);
	return status;
}

/* ---- walking ---- */

/* Nodes whose gradient has arrived, the newest first; `seen` all of them, for the end. */
struct walk {
	struct ql_node **heap, **leaf;
	int n, room, leaves, leaf_room;
};

static enum ql_status grow(struct ql_ctx *ctx, struct ql_node ***list, int *room, int n)
{
	struct ql_node **more;

	if (n < *room)
		return QL_OK;
	more = ql_realloc(ctx, *list, (size_t)(*room ? 2 * *room : 64) * sizeof(*more));
	if (!more)
		return QL_ERR_MEMORY;
	*list = more;
	*room = *room ? 2 * *room : 64;
	return QL_OK;
}

/* The walk keeps every node in its lists. */
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

/* Only this gradient uses the bytes: they may be written over. */
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

/* Hands the operands' gradients on and queues their nodes. */
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

/* The call as it was, with operands that have no elements. */
static bool sketch_call(struct ql_ctx *ctx, struct ql_back *b)
{
	int n = b->node->n_in;
	struct ql_tensor *header = ql_scratch_take(ctx, (size_t)n * sizeof(*header));

	b->call.in = ql_scratch_take(ctx, (size_t)n * sizeof(*b->call.in));
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
		return ql_fail(ctx, QL_ERR_ARGUMENT, "backward: wanted a graph that was not used yet, got '%s' of one that was; "
			"compute the value again", node->op->doc.name);
	if (!node->op->backward)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "backward: wanted ops that have a gradient, got '%s'; use :detach()",
			node->op->doc.name);
	status = check_versions(ctx, node);
	if (status)
		return status;
	b.give = ql_scratch_take(ctx, (size_t)node->n_in * sizeof(*b.give));
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

/* What was in the lists is let go; after a failure nothing that arrived is left. */
static void finish(struct ql_ctx *ctx, struct walk *w)
{
	for (int i = 0; i < w->n; i++) {
		w->heap[i]->queued = false;
		w->heap[i]->used = true;
		drop_kept(ctx, w->heap[i]);
		ql_node_release(ctx, w->heap[i]);
	}
	for (int i = 0; i < w->leaves; i++) {
		w->leaf[i]->queued = false;
		drop_grads(ctx, w->leaf[i]);
		ql_node_release(ctx, w->leaf[i]);
	}
	ql_free(ctx, w->heap);
	ql_free(ctx, w->leaf);
}

/* A gradient that others use too, or that is no dense tensor, is copied: the sum belongs to the leaf alone. */
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

/* All sums or none: begun, it is finished before an interrupt is answered. A sum that the user holds as well is
 * replaced, not written to. */
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

static enum ql_status walk(struct ql_ctx *ctx, struct walk *w, struct ql_tensor *root, struct ql_tensor *seed)
{
	enum ql_status status = accumulate(ctx, &root->node->grad[root->node_output], seed);

	if (!status)
		status = push(ctx, w, root->node);
	while (!status && w->n > 0) {
		struct ql_node *node = pop(w);

		status = step(ctx, w, node);
		node->used = true;
		drop_kept(ctx, node);
		ql_node_release(ctx, node);
	}
	return status ? status : add_to_leaves(ctx, w);
}

static enum ql_status ones_like(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_tensor **out)
{
	enum ql_status status = ql_tensor_new(ctx, ql_operand_dtype(t), t->rank, t->shape, out);
	double one = 1;

	if (!status)
		ql_dtypes[(*out)->dtype].from_f64((*out)->storage->data, 0, 1, 1, &one);
	return status;
}

enum ql_status ql_backward(struct ql_ctx *ctx, struct ql_tensor *root, struct ql_tensor *seed)
{
	struct walk w = {0};
	struct ql_tensor *first = NULL;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];
	enum ql_status status;

	if (!root->node)
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"backward: wanted a value that depends on a tensor with requires_grad, got %s without", ql_tensor_text(root, a));
	if (!seed && ql_tensor_nelem(root) != 1)
		return ql_fail(ctx, QL_ERR_SHAPE, "backward: wanted one element or a gradient to begin with, got %s",
			ql_tensor_text(root, a));
	if (seed && !ql_tensor_same_shape(root, seed))
		return ql_fail(ctx, QL_ERR_SHAPE, "backward: gradient: wanted shape %s, got %s",
			ql_shape_text(root->rank, root->shape, a), ql_shape_text(seed->rank, seed->shape, b));
	status = seed ? ql_tensor_cast(ctx, seed, ql_operand_dtype(root), &first) : ones_like(ctx, root, &first);
	if (status)
		return status;
	ctx->nograd++;
	status = walk(ctx, &w, root, first);
	finish(ctx, &w);
	ctx->nograd--;
	ql_tensor_release(ctx, first);
	return status;
}
