/* SPDX-License-Identifier: MIT
 * Scales that a user-defined function finds (quant.scheme{fit=}).
 */
#ifndef QUOLL_QUANT_RANGES_FIT_FUNCTIONS_H
#define QUOLL_QUANT_RANGES_FIT_FUNCTIONS_H

#include "quant/spec.h"
#include "tensor/grain.h"

/* True if the spec's format has such a function. */
bool ql_fit_functions_has(const struct ql_spec *spec);
/* Gives g->scales scales from the contiguous float32 x and the spec's importance, whose columns are the indices of
 * `axis`. Errors: those of ql_importance and ql_codec_functions_fit. */
enum ql_status ql_fit_functions_data(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_grain *g,
	const struct ql_tensor *x, int axis, double *scale);
/* Gives n scales from n ranges: the function is called with an x of shape (n, 2), the ends of each range. */
enum ql_status ql_fit_functions_ranges(
	struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n, const struct ql_stats *stats, double *scale);

#endif
