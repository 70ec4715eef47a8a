/* SPDX-License-Identifier: MIT
 * Bit operations on plain integers. bool operands count as 0 and 1 and give bool for and, or, exclusive or.
 */
#include "tensor/ops/ops.h"

/* Bit operations are not defined for floats and quantized tensors. */
static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	bool all_bool = true;
	enum ql_status status;
	char text[QL_SHAPE_TEXT];

	for (int i = 0; i < call->n_in; i++) {
		const struct ql_tensor *t = call->in[i];

		all_bool = all_bool && ql_dtype_is_bool(t->dtype);
		if (!ql_dtype_is_integer(ql_operand_dtype(t)))
			return ql_fail(ctx, QL_ERR_DTYPE, "%s: operand %d: wanted plain integers or bool, got %s",
				call->op->doc.name, i + 1, ql_tensor_text(t, text));
	}
	status = ql_map_infer(ctx, call);
	if (!status && all_bool && call->op->doc.name[1] != 'h' && call->op->doc.name[1] != 's')
		call->result[0].dtype = QL_bool;
	return status;
}

/* The complement of a bool is the other bool. */
static enum ql_status prepare(struct ql_ctx *ctx, const struct ql_call *call, struct ql_map_args *args)
{
	(void)ctx;
	args->p[0] = ql_dtype_is_bool(call->in[0]->dtype);
	return QL_OK;
}

#define BITS(op_name, op_usage, op_text, op_example, arity, ...) \
	QL_MAP_I64_##arity(op_name##_i64, __VA_ARGS__) static const struct ql_map op_name##_map = { \
		.result = QL_MAP_PROMOTE, .i64 = op_name##_i64, .prepare = prepare}; \
	const struct ql_op ql_op_##op_name = { \
		.doc = {.name = #op_name, .usage = op_usage, .text = op_text, .example = op_example}, \
		.arity_min = arity, \
		.arity_max = arity, \
		.flags = QL_NUMBERS | QL_INPLACE, \
		.infer = infer, \
		.eval = ql_map_eval, \
		.defer = ql_map_defer, \
		.may_overwrite = ql_map_may_overwrite, \
		.impl = &op_name##_map, \
	}

BITS(band, "x:band(y)  x & y", "Bitwise and of integers; logical and of bools.",
	"print(tensor({12,10, dtype='int32'}) & 6)  --> int32(2)  4  2", 2, a &b);
BITS(bor, "x:bor(y)  x | y", "Bitwise or of integers; logical or of bools.",
	"print(tensor({12,10, dtype='int32'}) | 1)  --> int32(2)  13  11", 2, a | b);
BITS(bxor, "x:bxor(y)  x ~ y", "Bitwise exclusive or of integers; of bools: true where they differ.",
	"print(tensor({12,10, dtype='int32'}) ~ 15)  --> int32(2)  3  5", 2, a ^ b);
BITS(bnot, "x:bnot()  ~x", "Bitwise complement of integers; logical not of bools.",
	"print(~tensor{true,false})  --> bool(2)  false   true", 1, args->p[0] != 0 ? !a : ~a);
BITS(shl, "x:shl(n)  x << n", "Bits shifted to the left by n; 64 or more give 0, a negative n shifts to the right.",
	"print(tensor({1,3, dtype='int32'}) << 2)  --> int32(2)   4  12", 2,
	b > 63    ? 0
	: b >= 0  ? (int64_t)((uint64_t)a << b)
	: b > -64 ? a >> -b
		  : a >> 63);
BITS(shr, "x:shr(n)  x >> n", "Bits shifted to the right by n, copying the sign; a negative n shifts to the left.",
	"print(tensor({8,-8, dtype='int32'}) >> 2)  --> int32(2)   2  -2", 2,
	b > 63    ? a >> 63
	: b >= 0  ? a >> b
	: b > -64 ? (int64_t)((uint64_t)a << -b)
		  : 0);
