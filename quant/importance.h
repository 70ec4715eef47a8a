/* SPDX-License-Identifier: MIT
 * The option importance= of specs: weights of the squared errors of columns.
 */
#ifndef QUOLL_QUANT_IMPORTANCE_H
#define QUOLL_QUANT_IMPORTANCE_H

#include "quant/spec.h"

/* Gives spec->importance as n floats in scratch memory; NULL if the spec has none. Errors: a shape other than (n), or a
 * quantized tensor; numbers that are not in 0..1e10. */
enum ql_status ql_importance(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n, const float **out);
/* True if the spec's format uses importance. */
bool ql_importance_fits(const struct ql_spec *spec);

#endif
