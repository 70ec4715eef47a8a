/* SPDX-License-Identifier: MIT
 * Recording. Nodes are numbered as they are made, so an operand's node is older than the result's. Nodes are freed
 * by a work list instead of recursion: a graph may be millions of nodes deep.
 */
#include "tensor/tape.h"

#include <string.h>

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

void ql_node_drop_grads(struct ql_ctx *ctx, struct ql_node *node)
{
	for (int i = 0; node->grad && i < node->n_out; i++) {
		ql_tensor_release(ctx, node->grad[i]);
		node->grad[i] = NULL;
	}
}

void ql_node_drop(struct ql_ctx *ctx, struct ql_node *node)
{
	for (int i = 0; node->edge && i < node->n_in; i++) {
		ql_tensor_release(ctx, node->edge[i].value);
		ql_node_release(ctx, node->edge[i].node);
	}
	for (int i = 0; node->result && i < node->n_out; i++)
		ql_tensor_release(ctx, node->result[i].value);
	ql_node_drop_grads(ctx, node);
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
		ql_node_drop(ctx, node);
		ql_tensor_release(ctx, node->sum);
		ql_free(ctx, node->grad);
		ql_free(ctx, node);
	}
	ctx->freeing = false;
}

/* ---- recording ---- */

static void *take_zeroed(struct ql_ctx *ctx, int n, size_t size, bool *ok)
{
	void *p = n ? ql_alloc_array_zeroed(ctx, n, size) : NULL;

	*ok = *ok && (p || !n);
	return p;
}

/* A node with space for its edges and gradients; NULL when out of memory. */
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
	t->node->result[0].device = t->storage->device;
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

enum ql_status ql_tape_check_write(
	struct ql_ctx *ctx, const char *what, const struct ql_tensor *t, const struct ql_tensor *from)
{
	if (ctx->nograd > 0 || !(t->node || (from && from->node)))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"%s: wanted a tensor that takes no part in gradients, got %s; use the form without underscore, or tensor.nograd",
		what,
		t->node ? t->node->op ? "a result that has one" : "one with requires_grad" : "a value that has one");
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
			v.ints.at = ql_alloc_array(ctx, v.ints.n, sizeof(*v.ints.at));
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

/* A literal is on the caller's stack: a tensor of the result's dtype is kept instead. */
static enum ql_status keep_value(
	struct ql_ctx *ctx, struct ql_edge *e, struct ql_tensor *t, bool literal, unsigned dtype)
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

/* contiguous() and the like may return the operand itself, which already has a node. */
static bool is_operand(const struct ql_call *call, const struct ql_tensor *t)
{
	for (int i = 0; i < call->n_in; i++)
		if (call->in[i] == t)
			return true;
	return false;
}

/* True for results that have a gradient. */
static bool is_differentiable(const struct ql_call *call, const struct ql_tensor *t)
{
	return ql_dtype_is_float(ql_operand_dtype(t)) && !is_operand(call, t);
}

static enum ql_status record_operands(
	struct ql_ctx *ctx, struct ql_node *node, const struct ql_call *call, uint32_t saves)
{
	enum ql_status status = QL_OK;

	for (int i = 0; i < call->n_in && !status; i++) {
		struct ql_edge *e = &node->edge[i];
		struct ql_tensor *t = call->in[i];
		bool literal = i < 32 && call->weak >> i & 1;

		e->is = shape_of(t);
		e->device = t->storage->device;
		if (t->node) {
			e->node = t->node;
			e->node->refs++;
			e->output = t->node_output;
		}
		if (saves >> (i < 31 ? i : 30) & 1)
			status = keep_value(ctx, e, t, literal, result_of(call, 0)->dtype);
	}
	return status;
}

static enum ql_status record_results(
	struct ql_ctx *ctx, struct ql_node *node, const struct ql_call *call, uint32_t saves)
{
	int outputs = call->list ? call->n_out : ql_call_outputs(call); /* the rest: for backward only */

	for (int i = 0; i < call->n_out; i++) {
		struct ql_tensor *t = result_of(call, i);
		enum ql_status status;

		node->result[i].is = shape_of(t);
		node->result[i].device = t->storage->device;
		if (!(saves & QL_SAVE_RESULT) && i < outputs)
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
	uint32_t saves = call->op->saves_for ? call->op->saves_for(call) : call->op->saves;
	struct ql_node *node;
	bool real = false;
	enum ql_status status;

	for (int i = 0; i < call->n_out; i++)
		real = real || is_differentiable(call, result_of(call, i));
	if (!real) /* positions, comparisons: no gradient */
		return QL_OK;
	node = node_new(ctx, call->op, call->n_in, call->n_out);
	if (!node)
		return QL_ERR_MEMORY;
	node->random = call->random;
	status = copy_attrs(ctx, node, call->attr);
	if (!status)
		status = record_operands(ctx, node, call, saves);
	if (!status)
		status = record_results(ctx, node, call, saves);
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
