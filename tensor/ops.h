/* SPDX-License-Identifier: MIT
 * The descriptors of ops.def.
 */
#ifndef QUOLL_TENSOR_OPS_H
#define QUOLL_TENSOR_OPS_H

#include "tensor/op.h"

#define X(name) extern const struct ql_op ql_op_##name;
#include "tensor/ops.def"
#undef X

#endif
