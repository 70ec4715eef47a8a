/* SPDX-License-Identifier: MIT
 * Quantized tensors from codes that are there already, as in checkpoints of other programs.
 */
#ifndef QUOLL_QUANT_RANGES_CODED_H
#define QUOLL_QUANT_RANGES_CODED_H

#include "quant/spec.h"

/* Gives a quantized tensor with the given codes, plain integers, under the explicit scale (and zero point) of the spec. Errors:
 * codes (those beyond the dtype of the spec saturate) or zero points out of range, scales that are no finite numbers > 0, of another shape, a spec without a scale. */
enum ql_status ql_coded(
	struct ql_ctx *ctx, const struct ql_tensor *codes, const struct ql_spec *spec, struct ql_tensor **out);

#endif
