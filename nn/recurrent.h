/* SPDX-License-Identifier: MIT
 * A recurrent layer over a whole sequence as one op. A cell is two functions of one row (one sequence of the batch,
 * one step), forward and backward; products, layouts, dtypes, threads and the saved states are here, once.
 *
 * Operands: x, h, (c,) w_ih, w_hh (, b_ih, b_hh). Results: y, h (, c), and behind them, for backward only, what the
 * cell keeps of every step.
 */
#ifndef QUOLL_NN_RECURRENT_H
#define QUOLL_NN_RECURRENT_H

#include "tensor/back.h"
#include "tensor/op.h"
#include "tensor/simd.h"

/* One row of n hidden units; all pointers are of float or of double. The products may come from anywhere: float32
 * tiles, integers. */
struct ql_cell_row {
	int64_t n;
	const void *hidden;      /* (gates n): h before times w_hh */
	const void *bias_in, *bias_hidden; /* (gates n) each */
	const void *before;      /* (n): c before when the cell has one, else h before */
	void *kept;              /* (width n): x times w_ih in the first gates n; receives what backward reads */
	void *h;                 /* (n): receives h */
};

/* The same row on the way back. */
struct ql_cell_back {
	int64_t n;
	const void *kept, *before;
	const void *dy, *dh; /* (n) each: their sum is the gradient of h, but for `carry` */
	/* (n): with c, the gradient of c, replaced by that of c before. Else the part of the gradient of h that does
	 * not come through the product: read, and replaced by that of h before. */
	void *carry;
	void *din;     /* (gates n): receives the gradient of the sums of the side of x */
	void *dhidden; /* (gates n): of the side of h; the same memory as din unless the cell has `split` */
};

typedef void ql_cell_fn(const struct ql_cell_row *row);
typedef void ql_cell_back_fn(const struct ql_cell_back *row);

struct ql_recurrent_cell {
	int gates, width;
	bool c;     /* has a second state */
	bool split; /* the gradients of the sides of x and h differ */
	ql_cell_fn *const *f32; /* QL_SIMD_VARIANTS of them */
	ql_cell_fn *f64;
	ql_cell_back_fn *const *back_f32;
	ql_cell_back_fn *back_f64;
};

/* Part g, n long, of an array of the row. */
#define QL_PART(real, array, g) ((real *)(array) + (g) * n)

enum ql_status ql_recurrent_infer(struct ql_ctx *ctx, struct ql_call *call, const struct ql_recurrent_cell *cell);
enum ql_status ql_recurrent_eval(struct ql_ctx *ctx, struct ql_call *call, const struct ql_recurrent_cell *cell);
enum ql_status ql_recurrent_backward(struct ql_back *b, const struct ql_recurrent_cell *cell);

/* For attribute lists, and for the texts. */
/* clang-format off */
#define QL_RECURRENT_ATTRS \
	{"batchfirst", QL_ATTR_BOOL, 0, NULL, "x is (batch, steps, input) (default), else (steps, batch, input)"}, \
	{"states", QL_ATTR_STRING, 0, "int8", "'int8': quantize h of each sequence at each step (default: h stays float)"}
/* clang-format on */
#define QL_RECURRENT_TEXT \
	"x is (batch, steps, input), with batchfirst=false (steps, batch, input), and y has the same layout; neither costs a " \
	"copy. w_ih is (gates*hidden, input), w_hh (gates*hidden, hidden), the biases (gates*hidden), both or none; the layout " \
	"of PyTorch's weights. Computes in float32, in float64 when all operands are, and rounds the results to the dtype of x. Quantized x and w_ih are " \
	"multiplied as x:linear(w_ih) does. With states='int8' and w_hh in symmetric int8, by rows or as a whole, each row of h is " \
	"quantized by 'int8/1' at each step and multiplied in integers. Other quantized weights are decoded once a call. "

#endif
