/* SPDX-License-Identifier: MIT
 * Operations on whole lines: all elements along one axis at a time (softmax, cumsum, sort, quantile). An op file
 * provides functions of one dense line; this engine handles axes, views, dtypes and threads.
 */
#ifndef QUOLL_TENSOR_LOOPS_LINES_H
#define QUOLL_TENSOR_LOOPS_LINES_H

#include "tensor/op.h"
#include "tensor/vmath/simd.h"

/* One line. Values are float, double or int64_t, by the function's domain. */
struct ql_line {
	int64_t n, m; /* elements in, results out */
	const void *in;
	void *out;        /* never overlaps in */
	const void *with; /* kind->pair: the line of the second operand, n elements */
	int64_t *index;   /* a second result of m positions; NULL when there is none */
	void *work;       /* kind->work(n, m) bytes */
	const void *args;
	int variant; /* for QL_SIMD tables */
	/* For work of more than 0.1 s on a line: return when ql_stopped(ctx). */
	const struct ql_ctx *ctx;
};

typedef void ql_line_fn(const struct ql_line *line);

struct ql_lines {
	ql_line_fn *f32;                      /* floats below float64, and small integers when i64 is NULL */
	ql_line_fn *f64;                      /* float64, and int32 and int64 when i64 is NULL */
	ql_line_fn *i64;                      /* all integers and bool; NULL: computed as floats */
	size_t (*work)(int64_t n, int64_t m); /* NULL: none */
	bool pair;                            /* the third tensor is a second operand of in's shape, not a result */
	int ns_per_element;
};

/* Runs kind over all lines. In every header the line is the last axis and the other axes are equal; see ql_line_axis.
 * index may be NULL; with kind->pair it is the second operand. Sets call->path and call->kernel. */
enum ql_status ql_lines_run(struct ql_ctx *ctx, struct ql_call *call, const struct ql_lines *kind,
	const struct ql_tensor *in, struct ql_tensor *out, struct ql_tensor *index, const void *args);

/* A borrowed header on t with `axis` moved to the end (a number counts as a line of one). */
struct ql_tensor ql_line_axis(const struct ql_tensor *t, int axis);

/* A borrowed header on t with the axes that are kept, then those of mask as one line: a view if the strides allow it, else a
 * copy, given in *copy. */
enum ql_status ql_lines_over(
	struct ql_ctx *ctx, const struct ql_tensor *t, unsigned mask, struct ql_tensor *lines, struct ql_tensor **copy);
/* A borrowed header on a contiguous result (m, kept axes), or without the m if it is 1, as the lines of m for such lines. */
struct ql_tensor ql_lines_results(const struct ql_tensor *out, const struct ql_tensor *in, int64_t m);

/* The axis of attribute "axis", by default the last; 0 for a number. */
enum ql_status ql_line_attr(struct ql_ctx *ctx, const struct ql_call *call, int *axis);

/* The attribute, for attribute lists. */
#define QL_LINE_ATTR \
	{ \
		"axis", QL_ATTR_AXIS, QL_POSITIONAL, NULL, "the axis (default: the last)" \
	}

#endif
