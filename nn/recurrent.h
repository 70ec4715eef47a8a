/* SPDX-License-Identifier: MIT
 * A recurrent layer over a whole sequence as one op. A cell is two functions of one row (one sequence of the batch,
 * one step), forward and backward; the engine handles products, layouts, dtypes, threads and saved states.
 *
 * Operands: x, h, (c,) w_ih, w_hh (, b_ih, b_hh) (, lengths). Results: y, h (, c), then, for backward only, the values
 * that the cell saves of every step. Lengths are integers, by which they are known.
 */
#ifndef QUOLL_NN_RECURRENT_H
#define QUOLL_NN_RECURRENT_H

#include "tensor/autograd/back.h"
#include "tensor/op.h"
#include "tensor/vmath/simd.h"

/* One row of n hidden units; all pointers are of float or of double. The products may be computed by float32 tiles
 * or in integers. */
struct ql_cell_row {
	int64_t n;
	const void *hidden;                /* (gates n): the previous h times w_hh */
	const void *bias_in, *bias_hidden; /* (gates n) each */
	const void *before;                /* (n): the previous c if the cell has one, else the previous h */
	void *kept;  /* (width n): x times w_ih in the first gates n; receives the values for backward */
	void *h;     /* (n): receives h */
	void *reset; /* (n): receives, in the first stage of a cell with `early`, what the other products are of */
};

/* The same row in the backward pass. */
struct ql_cell_back {
	int64_t n;
	const void *kept, *before;
	const void *dy, *dh; /* (n) each: their sum is the gradient of h without `carry` */
	/* (n): with c, the gradient of c, replaced with that of the previous c. Else the part of the gradient of h
	 * that bypasses the product, replaced with that of the previous h. */
	void *carry;
	void *din;          /* (gates n): receives the gradient of the sums on the side of x */
	void *dhidden;      /* (gates n): on the side of h; the same memory as din unless the cell has `split` */
	const void *dreset; /* (n): the gradient of `reset`, in the second stage of a cell with `early` */
};

typedef void ql_cell_fn(const struct ql_cell_row *row);
typedef void ql_cell_back_fn(const struct ql_cell_back *row);

struct ql_recurrent_cell {
	int gates, width;
	bool c;     /* has a second state */
	bool split; /* the gradients of the sides of x and h differ */
	/* 0, or the gates whose products are of h: then `reset` computes them and a state of which the other products are,
	 * whose parts of din `back` gives; `reset_back` gives those of the first. The first saved value is the factor. */
	int early;
	ql_cell_fn *const *f32; /* QL_SIMD_VARIANTS of them */
	ql_cell_fn *f64;
	ql_cell_back_fn *const *back_f32;
	ql_cell_back_fn *back_f64;
	ql_cell_fn *const *reset_f32;
	ql_cell_fn *reset_f64;
	ql_cell_back_fn *const *reset_back_f32;
	ql_cell_back_fn *reset_back_f64;
};

/* Part g of n numbers of an array of the row. */
#define QL_PART(real, array, g) ((real *)(array) + (g)*n)

enum ql_status ql_recurrent_infer(struct ql_ctx *ctx, struct ql_call *call, const struct ql_recurrent_cell *cell);
enum ql_status ql_recurrent_eval(struct ql_ctx *ctx, struct ql_call *call, const struct ql_recurrent_cell *cell);
/* The bits of a quantized w_ih and w_hh, whose codes eval takes as they are stored. */
uint32_t ql_recurrent_decodes(const struct ql_call *call, const struct ql_recurrent_cell *cell);
/* `steps` is the op of the steps backward, QL_RECURRENT_BACK. */
enum ql_status ql_recurrent_backward(
	struct ql_back *b, const struct ql_recurrent_cell *cell, const struct ql_op *steps);
enum ql_status ql_recurrent_back_infer(struct ql_ctx *ctx, struct ql_call *call);
enum ql_status ql_recurrent_back_eval(struct ql_ctx *ctx, struct ql_call *call);

/* The steps backward as an op in no table. Operands: the gradients of y, h (, c), the saved values, w_hh, then c or,
 * for a cell without it, h and y; then lengths. Results: din, the gradient of h before the first step, then that of c or,
 * with `split`, dhidden; backwards with lengths also a column that is 1 where a sequence begins, else 0. */
#define QL_RECURRENT_BACK(variable, text, the_cell) \
	static const struct ql_op variable = {.doc = {.name = text, .attrs = attrs}, \
		.arity_min = 6, \
		.arity_max = 7, \
		.outputs = 4, \
		.flags = QL_NATIVE, \
		.infer = ql_recurrent_back_infer, \
		.eval = ql_recurrent_back_eval, \
		.allocates = true, \
		.impl = &(the_cell)}

/* For attribute lists and help texts. */
/* clang-format off */
#define QL_RECURRENT_ATTRS \
	{"batchfirst", QL_ATTR_BOOL, 0, NULL, "x is (batch, steps, input) (default), else (steps, batch, input)"}, \
	{"states", QL_ATTR_STRING, 0, "int8", "'int8': quantize h of each sequence at each step (default: h stays float)"}, \
	{"reverse", QL_ATTR_BOOL, 0, NULL, "from the last step to the first (default false)"}, \
	{"lengths", QL_ATTR_TENSOR, QL_OPERAND, "int", "integers (batch): steps of each sequence; y is 0 after them"}
/* clang-format on */
#define QL_RECURRENT_TEXT \
	"x is (batch, steps, input), with batchfirst=false (steps, batch, input), and y has the same layout; neither costs a " \
	"copy. w_ih is (gates*hidden, input), w_hh (gates*hidden, hidden), the biases (gates*hidden), both or none; the layout " \
	"of PyTorch's weights. Computes in float32, in float64 when all operands are, and rounds the results to the dtype of x. Quantized x and w_ih are " \
	"multiplied as x:linear(w_ih) does. With reverse the layer runs from the last step to the first; y has the order of x. With lengths " \
	"the states of a sequence stay after its last step, where y is 0, and reverse begins there, as with PyTorch's packed sequences. With states='int8' and w_hh in symmetric int8, by rows or as a whole, each row of h is " \
	"quantized by 'int8/1' at each step and multiplied in integers. Of other quantized weights w_ih is decoded in parts within its " \
	"product, so is w_hh if there is one step; with more it is decoded once a call. "

#endif
