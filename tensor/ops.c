/* SPDX-License-Identifier: MIT
 * The table of the ops of this folder.
 */
#include "tensor/ops.h"

const struct ql_op *const ql_ops[] = {
#define X(name) &ql_op_##name,
#include "tensor/ops.def"
#undef X
	NULL,
};
