/* SPDX-License-Identifier: MIT
 * Quantizing by the smallest and the largest value under each scale in one pass over the values: the range, the scale and
 * the codes of a run of values are made while it is in the cache.
 */
#ifndef QUOLL_QUANT_RANGES_FIT_RUNS_H
#define QUOLL_QUANT_RANGES_FIT_RUNS_H

#include "quant/spec.h"

/* Whether scales under the spec depend on nothing but such a range, and the values of each scale of x are a run that fits in
 * the cache. x: contiguous float32; q: the layout of its params. */
bool ql_fit_runs_can(const struct ql_spec *spec, const struct ql_tensor *x, const struct ql_qparams *q);
/* Sets scale, zero_point and shift of codes->q, which has the layout only, and encodes x: what ql_scales_fit and ql_encode
 * give. */
enum ql_status ql_fit_runs(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, struct ql_tensor *codes);

#endif
