/* SPDX-License-Identifier: MIT
 * Reductions over any axes of any view: an op file provides step functions and a descriptor; this engine handles
 * geometry, dtypes, blocking and threads.
 *
 * Order of a sum: the reduced elements of one result, in row-major order, are divided into parts of a fixed size
 * and these into blocks; element i of a block goes to lane i mod QL_REDUCE_LANES. float32 lanes are added to
 * float64 lanes after 8 elements each; lanes are joined at the end, parts in order. So the bits do not depend on
 * the instruction set, strides or number of threads.
 *
 * Domains: float32, float64 (float64 operands, and where an op has no float32 steps), int64.
 */
#ifndef QUOLL_TENSOR_LOOPS_REDUCE_H
#define QUOLL_TENSOR_LOOPS_REDUCE_H

#include "tensor/op.h"
#include "tensor/vmath/simd.h"

#define QL_REDUCE_LANES 32
#define QL_REDUCE_BLOCK 1024
#define QL_REDUCE_PART (64 * QL_REDUCE_BLOCK)

/* acc[k] = step(acc[k], x[r * stride + k]) for all rows r, columns k */
typedef void ql_fold_f32_fn(
	float *restrict acc, const float *restrict x, int64_t stride, int64_t rows, int64_t columns);
/* the same for two folds */
typedef void ql_fold_both_f32_fn(float *restrict acc, float *restrict other, const float *restrict x, int64_t stride,
	int64_t rows, int64_t columns);
typedef void ql_fold_f64_fn(
	double *restrict acc, const double *restrict x, int64_t stride, int64_t rows, int64_t columns);
typedef void ql_fold_i64_fn(
	int64_t *restrict acc, const int64_t *restrict x, int64_t stride, int64_t rows, int64_t columns);

__extension__ typedef __int128 ql_int128;

/* The partial result of some elements of one result. */
struct ql_part {
	int64_t n;      /* elements */
	double a, b, c; /* float domains: sums, or the extreme in a */
	ql_int128 i;    /* int64 domain: exact sum, or the extreme */
	int64_t at;     /* 0-based position of the extreme */
	int64_t other;  /* int64 domain: the extreme of the second fold */
};

#define QL_PENDING (-1) /* part.at: the engine must locate the extreme */

/* The lanes of one block, before they are joined. */
struct ql_block {
	bool integer;                  /* int64 domain: i is filled, else f */
	int64_t n;                     /* elements */
	int64_t lanes;                 /* lanes with elements: min(n, QL_REDUCE_LANES) */
	double f[2][QL_REDUCE_LANES];  /* float domains: per fold */
	int64_t i[2][QL_REDUCE_LANES]; /* int64 domain */
	double shift;                  /* subtracted from every element */
};

enum ql_reduce_result {
	QL_REDUCE_SAME,  /* dtype of the operand */
	QL_REDUCE_SUM,   /* integers and bool give int64 */
	QL_REDUCE_FLOAT, /* integers and bool give float32 */
	QL_REDUCE_INDEX, /* int64 */
	QL_REDUCE_BOOL
};

struct ql_reduce {
	enum ql_reduce_result result;
	ql_fold_f32_fn *const
		*f32[2];        /* QL_SIMD_VARIANTS of them; NULL: computed in float64. The second may be NULL, */
	ql_fold_f64_fn *f64[2]; /* here, too */
	ql_fold_both_f32_fn *const *both_f32; /* both folds of f32 at once; NULL: one by one */
	ql_fold_i64_fn *i64[2];               /* NULL: integers are computed in float64 */
	double start[2];                      /* initial value of the lanes, per fold */
	int64_t start_i[2];
	/* Float64 domain: applied to the elements before folding; NULL: none. */
	void (*map)(double *x, int64_t n, double p);
	bool widen; /* float32 domain: the steps are sums, accumulated in float64 lanes; no close */
	bool shift; /* float64 domain: subtract the first element of its block from each element */
	bool whole; /* the order does not matter: lanes go on over a whole part, and are closed once; no map, no shift */
	bool nonempty; /* a result without elements is an error */
	bool locate;   /* part.at = QL_PENDING requests the first position of the extreme */
	void (*close)(const struct ql_block *block, struct ql_part *part); /* fills all but n */
	/* Joins a later part; both have elements. The engine adds n afterwards. */
	void (*merge)(struct ql_part *into, const struct ql_part *from);
	/* The result; `integer` is used when the domain is int64 or `real` is NULL. */
	double (*real)(const struct ql_part *part, double p);
	int64_t (*integer)(const struct ql_part *part);
	/* The second result, of the same dtype; NULL: there is none. */
	double (*real_other)(const struct ql_part *part, double p);
	int64_t (*integer_other)(const struct ql_part *part);
	int ns_per_16; /* nanoseconds per 16 float32 elements, to choose the number of threads */
};

/* Attributes of every reduction; an op may add others before them. */
/* clang-format off */
#define QL_REDUCE_ATTRS \
	{"axis", QL_ATTR_INTS, QL_POSITIONAL, NULL, "an axis or a list of axes (default: all)"}, \
	{"keep", QL_ATTR_BOOL, 0, NULL, "keep reduced axes with size 1 (default false)"}, \
	{NULL, QL_ATTR_END, 0, NULL, NULL}
/* clang-format on */

extern const struct ql_attr ql_reduce_attrs[];

/* For ops whose impl is a struct ql_reduce. */
ql_infer_fn ql_reduce_infer;
ql_eval_fn ql_reduce_eval;
/* For ops with their own infer and eval: the result's shape with this dtype; a run with parameter p. */
enum ql_status ql_reduce_shape(struct ql_ctx *ctx, struct ql_call *call, unsigned dtype);
enum ql_status ql_reduce_run(struct ql_ctx *ctx, struct ql_call *call, const struct ql_reduce *r, double p);
/* Bit d is set when axis d of operand 0 is reduced. */
enum ql_status ql_reduce_axes(struct ql_ctx *ctx, const struct ql_call *call, unsigned *mask);

/* Steps and joins shared by several ops. */
ql_fold_f64_fn ql_fold_sum_f64;
void ql_close_sum(const struct ql_block *block, struct ql_part *part);
void ql_merge_sum(struct ql_part *into, const struct ql_part *from);

/* Defines a fold from an expression in the accumulator a and the element v. Full rows keep their lanes in registers.
 */
#define QL_FOLD_BODY(type, ...) \
	{ \
		if (columns == QL_REDUCE_LANES) { \
			type lane[QL_REDUCE_LANES]; \
			for (int k = 0; k < QL_REDUCE_LANES; k++) \
				lane[k] = acc[k]; \
			for (int64_t r = 0; r < rows; r++) \
				for (int k = 0; k < QL_REDUCE_LANES; k++) { \
					type a = lane[k], v = x[r * stride + k]; \
					lane[k] = (type)(__VA_ARGS__); \
				} \
			for (int k = 0; k < QL_REDUCE_LANES; k++) \
				acc[k] = lane[k]; \
			return; \
		} \
		for (int64_t r = 0; r < rows; r++) \
			for (int64_t k = 0; k < columns; k++) { \
				type a = acc[k], v = x[r * stride + k]; \
				acc[k] = (type)(__VA_ARGS__); \
			} \
	}
#define QL_FOLD_ARGS(type) (type *restrict acc, const type *restrict x, int64_t stride, int64_t rows, int64_t columns)
#define QL_FOLD_F32(name, ...) QL_SIMD(void, name, QL_FOLD_ARGS(float), QL_FOLD_BODY(float, __VA_ARGS__))
#define QL_FOLD_F64(name, ...) static void name QL_FOLD_ARGS(double) QL_FOLD_BODY(double, __VA_ARGS__)
#define QL_FOLD_I64(name, ...) static void name QL_FOLD_ARGS(int64_t) QL_FOLD_BODY(int64_t, __VA_ARGS__)

#endif
