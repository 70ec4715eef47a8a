/* SPDX-License-Identifier: MIT
 * Elementwise operations: an op file provides only the row function; this engine handles broadcasting, views,
 * dtypes, blocking and threads.
 *
 * Domains: float32 (any float or quantized operand), float64 (when the result is float64, or where integers need a
 * float result exactly rounded), int64 (all operands plain integers or bool).
 */
#ifndef QUOLL_TENSOR_LOOPS_MAP_H
#define QUOLL_TENSOR_LOOPS_MAP_H

#include "tensor/loops/map_args.h"
#include "tensor/op.h"
#include "tensor/vmath/simd.h"

#define QL_MAP_MAX 3 /* operands */

typedef void ql_map_f32_fn(int64_t n, float *out, const float *const *in, const struct ql_map_args *args);
typedef void ql_map_f64_fn(int64_t n, double *out, const double *const *in, const struct ql_map_args *args);
/* Returns false for an invalid operand (division by 0); the engine then fails with map->trouble. */
typedef bool ql_map_i64_fn(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args);

enum ql_map_result {
	QL_MAP_PROMOTE, /* dtype of the promoted operands; bool counts as int64 */
	QL_MAP_FLOAT,   /* integers give float32, or the dtype that the op's own infer sets, computed in int64 */
	QL_MAP_BOOL     /* comparisons */
};

struct ql_map {
	enum ql_map_result result;
	ql_map_f32_fn *const *f32; /* QL_SIMD_VARIANTS of them */
	ql_map_f64_fn *f64;
	ql_map_i64_fn *i64;  /* NULL: integers are computed as floats */
	int ns_per_16;       /* nanoseconds per 16 float32 elements, to choose the number of threads */
	const char *trouble; /* message when i64 returns false */
	/* Fills args and checks the attributes; NULL: none. */
	enum ql_status (*prepare)(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args);
};

ql_infer_fn ql_map_infer;
ql_eval_fn ql_map_eval;
/* The op's `defer`: chain.c */
enum ql_status ql_map_defer(struct ql_ctx *ctx, struct ql_call *call, bool *deferred);
/* The rows of an op whose result 0 they are; NULL: it has none. */
const struct ql_map *ql_map_of(const struct ql_op *op);
/* What the rows of a call whose results are inferred work in ("float32", "float64" or "int64"), and their args; checks the
 * attributes. */
enum ql_status ql_map_describe(
	struct ql_ctx *ctx, const struct ql_call *call, const char **domain, struct ql_map_args *args);
/* True if, after infer, the result may overwrite call->into element by element. */
bool ql_map_may_overwrite(const struct ql_call *call);

/* Names are the op's with _f32, _f64, _i64: by them scripts/device_rows.lua finds the functions for devices.
 * Row functions of one or two operands from an expression in a (and b). F64 and I64 forms are separate because
 * their expressions usually call other functions. */
#define QL_MAP_F32_1(name, ...) \
	QL_SIMD(void, name, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), { \
		const float *restrict x = in[0]; \
		(void)args; \
		for (int64_t i = 0; i < n; i++) { \
			float a = x[i]; \
			out[i] = (float)(__VA_ARGS__); \
		} \
	})
#define QL_MAP_F32_2(name, ...) \
	QL_SIMD(void, name, (int64_t n, float *restrict out, const float *const *in, const struct ql_map_args *args), { \
		const float *x = in[0]; \
		const float *y = in[1]; \
		(void)args; \
		for (int64_t i = 0; i < n; i++) { \
			float a = x[i], b = y[i]; \
			out[i] = (float)(__VA_ARGS__); \
		} \
	})
#define QL_MAP_F64_1(name, ...) \
	QL_ROW void name(int64_t n, double *out, const double *const *in, const struct ql_map_args *args) \
	{ \
		(void)args; \
		for (int64_t i = 0; i < n; i++) { \
			double a = in[0][i]; \
			out[i] = (double)(__VA_ARGS__); \
		} \
	}
#define QL_MAP_F64_2(name, ...) \
	QL_ROW void name(int64_t n, double *out, const double *const *in, const struct ql_map_args *args) \
	{ \
		(void)args; \
		for (int64_t i = 0; i < n; i++) { \
			double a = in[0][i], b = in[1][i]; \
			out[i] = (double)(__VA_ARGS__); \
		} \
	}
#define QL_MAP_I64_1(name, ...) \
	QL_ROW bool name(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args) \
	{ \
		(void)args; \
		for (int64_t i = 0; i < n; i++) { \
			int64_t a = in[0][i]; \
			out[i] = (int64_t)(__VA_ARGS__); \
		} \
		return true; \
	}
#define QL_MAP_I64_2(name, ...) \
	QL_ROW bool name(int64_t n, int64_t *out, const int64_t *const *in, const struct ql_map_args *args) \
	{ \
		(void)args; \
		for (int64_t i = 0; i < n; i++) { \
			int64_t a = in[0][i], b = in[1][i]; \
			out[i] = (int64_t)(__VA_ARGS__); \
		} \
		return true; \
	}

#endif
