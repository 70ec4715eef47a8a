/* SPDX-License-Identifier: MIT
 * Shared by op files.
 */
#ifndef QUOLL_TENSOR_OPS_OPS_H
#define QUOLL_TENSOR_OPS_OPS_H

#include "tensor/autograd/back.h"
#include "tensor/loops/map.h"
#include "tensor/op.h"
#include "tensor/ops.h"

/* Runs eval, on int8 copies if the result is packed, so that it may write elements in any order. */
enum ql_status ql_eval_in_bytes(struct ql_ctx *ctx, struct ql_call *call, ql_eval_fn *eval);

/* The elements that a call of pad adds before and after axis d; negative: removes. */
void ql_pad_sizes(const struct ql_call *call, int d, int64_t *before, int64_t *after);
/* Whether the border of a call of pad is a value. */
bool ql_pad_is_constant(const struct ql_call *call);
/* A header on t without the elements that the call removes. */
struct ql_tensor ql_pad_cropped(const struct ql_call *call, const struct ql_tensor *t);
/* Gives the slope of a call of prelu as a view that broadcasts to x. */
enum ql_status ql_prelu_slope(struct ql_ctx *ctx, const struct ql_call *call, struct ql_tensor **slope);
/* Sets every element to the value. */
enum ql_status ql_fill(struct ql_ctx *ctx, struct ql_tensor *t, double value);

/* The one option out=spec: a quantized result. */
extern const struct ql_attr ql_out_attrs[];
/* The gradient of layernorm without weight, for norms made of it. */
extern const struct ql_op ql_layernorm_back;

/* An operator in a few lines; further members of struct ql_op may follow: .backward = …, .saves = … */
#define QL_BINARY(op_name, ...) QL_BINARY_WITH(op_name, NULL, __VA_ARGS__)
#define QL_BINARY_WITH(op_name, op_attrs, op_usage, op_text, op_example, op_flags, op_map, ...) \
	const struct ql_op ql_op_##op_name = {.doc = {.name = #op_name, \
						      .usage = op_usage, \
						      .text = op_text, \
						      .example = op_example, \
						      .attrs = op_attrs}, \
		.arity_min = 2, \
		.arity_max = 2, \
		.flags = QL_NUMBERS | (op_flags), \
		.infer = ql_map_infer, \
		.eval = ql_map_eval, \
		.defer = ql_map_defer, \
		.may_overwrite = ql_map_may_overwrite, \
		.impl = &(op_map), \
		__VA_ARGS__}

/* With out=: for codes with one scale a table of all results (quant/paths/table_int.c). */
#define QL_UNARY(op_name, op_usage, op_text, op_example, op_flags, ...) \
	QL_UNARY_WITH(op_name, ql_out_attrs, op_usage, op_text, op_example, (op_flags) | QL_ELEMENTWISE, __VA_ARGS__)
#define QL_UNARY_WITH(op_name, op_attrs, op_usage, op_text, op_example, op_flags, op_map, ...) \
	const struct ql_op ql_op_##op_name = {.doc = {.name = #op_name, \
						      .usage = op_usage, \
						      .text = op_text, \
						      .example = op_example, \
						      .attrs = op_attrs}, \
		.arity_min = 1, \
		.arity_max = 1, \
		.flags = (op_flags), \
		.infer = ql_map_infer, \
		.eval = ql_map_eval, \
		.defer = ql_map_defer, \
		.may_overwrite = ql_map_may_overwrite, \
		.impl = &(op_map), \
		__VA_ARGS__}

/* The gradient of an elementwise op with one operand, as an op that is not in the table of ops: op_name_slope, of
 * the gradient a of the result and the saved value b. */
#define QL_SLOPE_OP(op_name, cost, f32_of, f64_of) \
	QL_MAP_F32_2(op_name##_slope_f32, f32_of) \
	QL_MAP_F64_2(op_name##_slope_f64, f64_of) \
	static const struct ql_map op_name##_slope_map = { \
		.result = QL_MAP_FLOAT, .f32 = op_name##_slope_f32, .f64 = op_name##_slope_f64, .ns_per_16 = cost}; \
	static const struct ql_op op_name##_slope = {.doc = {.name = #op_name "_slope"}, \
		.arity_min = 2, \
		.arity_max = 2, \
		.infer = ql_map_infer, \
		.eval = ql_map_eval, \
		.defer = ql_map_defer, \
		.may_overwrite = ql_map_may_overwrite, \
		.impl = &op_name##_slope_map}
/* The same with op_name_backward; `saved` is in or out, for .saves = QL_SAVES_in or QL_SAVES_out. */
#define QL_SLOPE(op_name, saved, cost, f32_of, f64_of) \
	QL_SLOPE_OP(op_name, cost, f32_of, f64_of); \
	static enum ql_status op_name##_backward(struct ql_back *b) \
	{ \
		ql_back_give(b, 0, ql_back_run(b, &op_name##_slope, ql_back_grad(b, 0), ql_back_##saved(b, 0))); \
		return b->status; \
	}
#define QL_SAVES_in QL_SAVE(0)
#define QL_SAVES_out QL_SAVE_RESULT

/* An elementwise function of one tensor with numbers as options, and its gradient. QL_CURVE_ATTRS lists the options; out= comes
 * after them, and the gradient, which is not quantized, has none. In the formulas QL_P32(k) and QL_P64(k) are what op_prepare made
 * of option k; in those of the slope a is the gradient of the result and b the operand. */
#define QL_CURVE_ATTRS(op_name, ...) \
	static const struct ql_attr op_name##_attrs[] = {__VA_ARGS__, \
		{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result (default: float32)"}, \
		{NULL, QL_ATTR_END, 0, NULL, NULL}}; \
	static const struct ql_attr op_name##_slope_attrs[] = {__VA_ARGS__, {NULL, QL_ATTR_END, 0, NULL, NULL}}
#define QL_P32(k) ((float)args->p[k])
#define QL_P64(k) (args->p[k])
#define QL_CURVE(op_name, op_usage, op_text, op_example, cost, op_prepare, f32_of, f64_of, slope_f32_of, slope_f64_of) \
	QL_MAP_F32_2(op_name##_slope_f32, slope_f32_of) \
	QL_MAP_F64_2(op_name##_slope_f64, slope_f64_of) \
	static const struct ql_map op_name##_slope_map = {.result = QL_MAP_FLOAT, \
		.f32 = op_name##_slope_f32, \
		.f64 = op_name##_slope_f64, \
		.ns_per_16 = cost, \
		.prepare = op_prepare}; \
	static const struct ql_op op_name##_slope = { \
		.doc = {.name = #op_name "_slope", .attrs = op_name##_slope_attrs}, \
		.arity_min = 2, \
		.arity_max = 2, \
		.infer = ql_map_infer, \
		.eval = ql_map_eval, \
		.defer = ql_map_defer, \
		.may_overwrite = ql_map_may_overwrite, \
		.impl = &op_name##_slope_map}; \
	static enum ql_status op_name##_backward(struct ql_back *b) \
	{ \
		ql_back_give(b, 0, ql_back_again(b, &op_name##_slope, ql_back_grad(b, 0), ql_back_in(b, 0))); \
		return b->status; \
	} \
	QL_MAP_F32_1(op_name##_f32, f32_of) \
	QL_MAP_F64_1(op_name##_f64, f64_of) \
	static const struct ql_map op_name##_map = {.result = QL_MAP_FLOAT, \
		.f32 = op_name##_f32, \
		.f64 = op_name##_f64, \
		.ns_per_16 = cost, \
		.prepare = op_prepare}; \
	QL_UNARY_WITH(op_name, op_name##_attrs, op_usage, op_text, op_example, QL_INPLACE | QL_ELEMENTWISE, \
		op_name##_map, .backward = op_name##_backward, .saves = QL_SAVE(0))

/* Gives an option of a call that is a number; nan is an error. */
enum ql_status ql_option_number(
	struct ql_ctx *ctx, const struct ql_call *call, const char *name, double otherwise, double *out);

/* The op that computes the gradient of an activation built into another op, from the gradient and the result, or,
 * if *from_result is false, the input of the activation. `act` is an op's name. */
const struct ql_op *ql_activation_slope(const char *act, bool *from_result);

#endif
