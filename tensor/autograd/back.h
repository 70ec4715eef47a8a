/* SPDX-License-Identifier: MIT
 * Functions for writing an op's backward. Gradients are computed by other ops; the struct ql_back owns every
 * intermediate tensor until the backward returns. After a failure each function returns NULL and accepts NULL, so a
 * backward needs no check per line:
 *
 *   static enum ql_status mul_backward(struct ql_back *b)
 *   {
 *           ql_back_give(b, 0, ql_back_run(b, &ql_op_mul, ql_back_grad(b, 0), ql_back_in(b, 1)));
 *           ql_back_give(b, 1, ql_back_run(b, &ql_op_mul, ql_back_grad(b, 0), ql_back_in(b, 0)));
 *           return b->status;
 *   }
 */
#ifndef QUOLL_TENSOR_AUTOGRAD_BACK_H
#define QUOLL_TENSOR_AUTOGRAD_BACK_H

#include "tensor/tape.h"

#define QL_BACK_MAX 64 /* intermediate tensors of one backward */

struct ql_back {
	struct ql_ctx *ctx;
	const struct ql_node *node;
	/* Op, attributes and results' sizes as recorded, for ql_call_int(&b->call, …), ql_call_axis and the like; the
	 * operands in it have dtype and shape only, no elements. */
	struct ql_call call;
	struct ql_tensor **give; /* n_in: gradients of the operands */
	struct ql_tensor *pool[QL_BACK_MAX];
	int n_pool;
	enum ql_status status;
};

/* An attribute by name, for ql_back_with. */
struct ql_named {
	const char *name;
	struct ql_value value;
};

/* True if operand i requires a gradient; test it before computing an expensive one. */
bool ql_back_wants(const struct ql_back *b, int i);
/* The gradient of result i; zeros if there is none. */
struct ql_tensor *ql_back_grad(struct ql_back *b, int i);
/* The value of operand i; op->saves must have QL_SAVE(i). */
struct ql_tensor *ql_back_in(struct ql_back *b, int i);
/* The value of result i; op->saves must have QL_SAVE_RESULT. */
struct ql_tensor *ql_back_out(struct ql_back *b, int i);
/* The values of quantized t; t itself if it is not. For gradients by ops that have no version for codes. */
struct ql_tensor *ql_back_real(struct ql_back *b, struct ql_tensor *t);
/* The sizes of operand i, saved or not. */
const struct ql_result *ql_back_shape(const struct ql_back *b, int i);

/* The first result of an op with one to three operands; c and d may be NULL when the op takes fewer. */
struct ql_tensor *ql_back_run(struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c);
struct ql_tensor *ql_back_run3(
	struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c, struct ql_tensor *d);
/* The same with attributes; the list ends with a NULL name. */
struct ql_tensor *ql_back_with(struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c,
	const struct ql_named *attrs);
struct ql_tensor *ql_back_many(
	struct ql_back *b, const struct ql_op *op, struct ql_tensor **in, int n_in, const struct ql_named *attrs);
/* The same with the attributes of the recorded call, as far as `op` has them. */
struct ql_tensor *ql_back_again(struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, struct ql_tensor *c);
/* All results of an op. Its attributes are those of the recorded call that it has under the same name and, after them,
 * `attrs` (NULL: none). out (QL_MAX_OUT; may be NULL if only the first is wanted) receives the results, NULL where there
 * is none. Returns the first. */
struct ql_tensor *ql_back_all(struct ql_back *b, const struct ql_op *op, struct ql_tensor **in, int n_in,
	const struct ql_named *attrs, struct ql_tensor **out);
/* Result `which` of an op with one operand. */
struct ql_tensor *ql_back_nth(
	struct ql_back *b, const struct ql_op *op, struct ql_tensor *a, const struct ql_named *attrs, int which);
/* A number in the dtype of `like`. */
struct ql_tensor *ql_back_number(struct ql_back *b, double value, const struct ql_tensor *like);
/* a op number; the number itself is not rounded to a's dtype */
struct ql_tensor *ql_back_scaled(struct ql_back *b, struct ql_tensor *a, double by);
struct ql_tensor *ql_back_plus(struct ql_back *b, struct ql_tensor *a, double number);
struct ql_tensor *ql_back_reshape(struct ql_back *b, struct ql_tensor *a, int rank, const int64_t *shape);
struct ql_tensor *ql_back_expand(struct ql_back *b, struct ql_tensor *a, int rank, const int64_t *shape);
struct ql_tensor *ql_back_permute(struct ql_back *b, struct ql_tensor *a, const int *order);
struct ql_tensor *ql_back_transpose(struct ql_back *b, struct ql_tensor *a, int axis, int other);
/* Sum over the axes whose bit is set in `mask`; with keep they stay, of size 1. */
struct ql_tensor *ql_back_sum(struct ql_back *b, struct ql_tensor *a, unsigned mask, bool keep);
/* Zeros of this dtype and shape. */
struct ql_tensor *ql_back_zeros(struct ql_back *b, const struct ql_result *shape);
/* Copies t, cast, into `view`, a view of a tensor that the pool owns. */
void ql_back_put(struct ql_back *b, struct ql_tensor *view, struct ql_tensor *t);
struct ql_tensor *ql_back_narrow(struct ql_back *b, struct ql_tensor *a, int axis, int64_t start, int64_t length);
struct ql_tensor *ql_back_select(struct ql_back *b, struct ql_tensor *a, int axis, int64_t index);
/* For the backward of a reduction with the attributes axis and keep: its axes as a mask; */
unsigned ql_back_axes(struct ql_back *b);
/* a tensor of the result's shape broadcast along the reduced axes to the shape of operand 0; */
struct ql_tensor *ql_back_spread(struct ql_back *b, struct ql_tensor *t);
/* a tensor of operand 0's shape as (kept axes…, all reduced ones as one), and back; */
struct ql_tensor *ql_back_lines(struct ql_back *b, struct ql_tensor *t);
struct ql_tensor *ql_back_unlines(struct ql_back *b, struct ql_tensor *t);
/* a tensor of the result's shape as (kept axes…, 1). */
struct ql_tensor *ql_back_ends(struct ql_back *b, struct ql_tensor *t);
/* For gradients of products. Of the factors x: those that are 0 become 1; *zeros is 1 where they were 0, else 0. */
struct ql_tensor *ql_back_nonzero(struct ql_back *b, struct ql_tensor *x, struct ql_tensor **zeros);
/* The product of all factors but x itself, of the product of those that are not 0 and the number of those that are. */
struct ql_tensor *ql_back_others(
	struct ql_back *b, struct ql_tensor *x, struct ql_tensor *product, struct ql_tensor *zeros);
/* Releases all but the first n_pool tensors of the pool: for loops over many operands. */
void ql_back_forget(struct ql_back *b, int n_pool);
/* Adds t to the pool, which releases it at the end; NULL with b->status set if `status` is not QL_OK. */
struct ql_tensor *ql_back_own(struct ql_back *b, struct ql_tensor *t, enum ql_status status);

/* Adds t to the gradient of operand i, summed over the axes along which the operand was broadcast and cast to its
 * dtype. Does nothing if the operand requires no gradient. */
void ql_back_give(struct ql_back *b, int i, struct ql_tensor *t);

/* In the eval of the op of a gradient, whose operands are a gradient and then the operands of `op` (the last ones may be
 * left out): the call of `op`, to share functions with its eval. */
struct ql_call ql_back_forward(const struct ql_call *call, const struct ql_op *op);

/* For ops that are constant almost everywhere: the operands get no gradient. */
ql_backward_fn ql_backward_none;
/* For ops that pass the result's gradient to the operand unchanged: casts, copies, additions. */
ql_backward_fn ql_backward_same;
/* saves_for of products of two operands: each one is needed only for the other's gradient. */
ql_saves_fn ql_saves_other;

#endif
