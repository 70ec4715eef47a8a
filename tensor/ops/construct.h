/* SPDX-License-Identifier: MIT
 * Shared by constructors: sizes, dtype=, device=, quant=. They compute in float32, float64 or int64 and cast once.
 */
#ifndef QUOLL_TENSOR_OPS_CONSTRUCT_H
#define QUOLL_TENSOR_OPS_CONSTRUCT_H

#include "tensor/ops/ops.h"

#define QL_CONSTRUCT_OPTIONS_OF(dtype_text) \
	{"dtype", QL_ATTR_DTYPE, 0, NULL, dtype_text}, \
		{"device", QL_ATTR_STRING, 0, NULL, "where it is (default cpu, see --device)"}, \
	{ \
		"quant", QL_ATTR_SPEC, 0, NULL, "quantize the result by this spec" \
	}
#define QL_CONSTRUCT_OPTIONS QL_CONSTRUCT_OPTIONS_OF("element type (default float32)")
#define QL_CONSTRUCT_SIZE \
	{ \
		"size", QL_ATTR_INTS, QL_POSITIONAL, NULL, "sizes of the axes; none: a single number" \
	}
#define QL_CONSTRUCT_ATTRS QL_CONSTRUCT_SIZE, QL_CONSTRUCT_OPTIONS

extern const struct ql_attr ql_construct_attrs[]; /* QL_CONSTRUCT_ATTRS */

/* Reads size and dtype into result[0]. */
ql_infer_fn ql_construct_infer;
/* Gives an uninitialized tensor of result[0]'s shape in the dtype in which the op computes. */
enum ql_status ql_construct_base(struct ql_ctx *ctx, struct ql_call *call, unsigned dtype, struct ql_tensor **out);
/* Casts `t` to result[0]'s dtype into out[0] unless `status` is an error; releases t. */
enum ql_status ql_construct_finish(
	struct ql_ctx *ctx, struct ql_call *call, struct ql_tensor *t, enum ql_status status);

#endif
