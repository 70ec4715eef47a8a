/* SPDX-License-Identifier: MIT
 * The tables of this folder.
 */
#ifndef QUOLL_NN_NN_H
#define QUOLL_NN_NN_H

#include "tensor/op.h"

/* NULL-terminated; each op becomes a function of the global `nn`. */
extern const struct ql_op *const ql_nn_ops[];

#endif
