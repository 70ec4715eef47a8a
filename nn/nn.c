/* SPDX-License-Identifier: MIT
 * The tables of this folder.
 */
#include "nn/nn.h"

#define X(name) extern const struct ql_op ql_op_##name;
#include "nn/ops.def"
#undef X

const struct ql_op *const ql_nn_ops[] = {
#define X(name) &ql_op_##name,
#include "nn/ops.def"
#undef X
	NULL,
};
