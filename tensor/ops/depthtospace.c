/* SPDX-License-Identifier: MIT
 * depthtospace and spacetodepth: blocks of channels as squares of pixels, and back. Each is a view with more axes, permuted
 * and copied to the result's shape (ONNX, DepthToSpace; PyTorch's pixel_shuffle is mode crd).
 */
#include <string.h>

#include "tensor/autograd/scattered.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

static const struct ql_attr attrs[] = {
	{"block", QL_ATTR_INT, QL_POSITIONAL | QL_REQUIRED, NULL, "pixels of a square along each side"},
	{"mode", QL_ATTR_STRING, QL_POSITIONAL, "dcr crd",
		"order of the channels: position in the square before depth, or after it (default dcr)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

/* (…, c, h, w) with the leading axes as one: sizes of the six axes, their order in the result, and its sizes */
struct plan {
	int64_t six[6], shape[QL_MAX_RANK];
	int order[6];
};

static enum ql_status refuse(struct ql_ctx *ctx, const struct ql_call *call, const char *wanted)
{
	const struct ql_tensor *x = call->in[0];
	char text[QL_SHAPE_TEXT];

	return ql_fail(ctx, QL_ERR_SHAPE, "%s: wanted %s, got block %lld and %s", call->op->doc.name, wanted,
		(long long)ql_call_int(call, "block", 1), ql_shape_text(x->rank, x->shape, text));
}

static void set_order(struct plan *p, const int *order)
{
	memcpy(p->order, order, sizeof(p->order));
}

static enum ql_status plan_depth(struct ql_ctx *ctx, const struct ql_call *call, struct plan *p)
{
	const struct ql_tensor *x = call->in[0];
	int64_t b = ql_call_int(call, "block", 1), *s = p->shape + x->rank - 3, square = 0;
	bool crd = !strcmp(ql_call_string(call, "mode", "dcr"), "crd");

	if (x->rank < 3 || b < 1 || __builtin_mul_overflow(b, b, &square) || x->shape[x->rank - 3] % square)
		return refuse(ctx, call, "(…, c, h, w) with c a multiple of block * block");
	memcpy(p->shape, x->shape, sizeof(p->shape));
	p->six[0] = 1;
	for (int d = 0; d < x->rank - 3; d++)
		p->six[0] *= x->shape[d];
	p->six[crd ? 1 : 3] = s[0] / square;
	p->six[crd ? 2 : 1] = p->six[crd ? 3 : 2] = b;
	p->six[4] = s[1];
	p->six[5] = s[2];
	set_order(p, crd ? (const int[]){0, 1, 4, 2, 5, 3} : (const int[]){0, 3, 4, 1, 5, 2});
	s[0] /= square;
	s[1] = ql_mul64(s[1], b);
	s[2] = ql_mul64(s[2], b);
	return ql_shape_check(ctx, "depthtospace", x->rank, p->shape);
}

static enum ql_status plan_space(struct ql_ctx *ctx, const struct ql_call *call, struct plan *p)
{
	const struct ql_tensor *x = call->in[0];
	int64_t b = ql_call_int(call, "block", 1), *s = p->shape + x->rank - 3;
	bool crd = !strcmp(ql_call_string(call, "mode", "dcr"), "crd");

	if (x->rank < 3 || b < 1 || x->shape[x->rank - 1] % b || x->shape[x->rank - 2] % b)
		return refuse(ctx, call, "(…, c, h, w) with h and w multiples of block");
	memcpy(p->shape, x->shape, sizeof(p->shape));
	p->six[0] = 1;
	for (int d = 0; d < x->rank - 3; d++)
		p->six[0] *= x->shape[d];
	p->six[1] = s[0];
	p->six[2] = s[1] / b;
	p->six[4] = s[2] / b;
	p->six[3] = p->six[5] = b;
	set_order(p, crd ? (const int[]){0, 1, 3, 5, 2, 4} : (const int[]){0, 3, 5, 1, 2, 4});
	s[0] = ql_mul64(ql_mul64(s[0], b), b);
	s[1] /= b;
	s[2] /= b;
	return ql_shape_check(ctx, "spacetodepth", x->rank, p->shape);
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *x = NULL, *six = NULL, *moved = NULL;
	struct plan p;
	enum ql_status status = call->op == &ql_op_depthtospace ? plan_depth(ctx, call, &p) : plan_space(ctx, call, &p);

	if (!status)
		status = ql_tensor_alias(ctx, call->in[0], &x); /* without its place on the tape */
	if (!status)
		status = ql_places_reshape(ctx, x, 6, p.six, &six);
	if (!status)
		status = ql_view_permute(ctx, call->op->doc.name, six, p.order, &moved);
	if (!status)
		status = ql_places_reshape(ctx, moved, call->in[0]->rank, p.shape, &call->out[0]);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, six);
	ql_tensor_release(ctx, moved);
	return status;
}

/* Each op undoes the other one. */
static enum ql_status backward(struct ql_back *b)
{
	const struct ql_op *other = b->node->op == &ql_op_depthtospace ? &ql_op_spacetodepth : &ql_op_depthtospace;

	ql_back_give(b, 0, ql_back_again(b, other, ql_back_grad(b, 0), NULL));
	return b->status;
}

#define BLOCKS(op_name, op_usage, op_text, op_example) \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, .usage = op_usage, .text = op_text, .example = op_example, .attrs = attrs}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.flags = QL_VIEW | QL_BY_ROWS, \
		.infer = infer, \
		.backward = backward, \
	}

BLOCKS(depthtospace, "x:depthtospace(block)  x:depthtospace(block, 'crd')",
	"Images (…, c, h, w) to (…, c / block^2, h * block, w * block): block^2 channels become the pixels of a square. The channels "
	"are counted as (row, column, depth) with mode dcr, as (depth, row, column) with crd: PyTorch's pixel_shuffle.",
	"print(tensor.arange(1, 4):view(4, 1, 1):depthtospace(2)[1])  --> int64(2, 2)\n--> 1 2\n--> 3 4");
BLOCKS(spacetodepth, "x:spacetodepth(block)  x:spacetodepth(block, 'crd')",
	"Images (…, c, h, w) to (…, c * block^2, h / block, w / block): what depthtospace undoes. The pixels of a square become "
	"channels, counted as (row, column, depth) with mode dcr, as (depth, row, column) with crd: PyTorch's pixel_unshuffle.",
	"print(tensor.arange(1, 4):view(1, 2, 2):spacetodepth(2):view(4))  --> int64(4)  1 2 3 4");
