/* SPDX-License-Identifier: MIT
 * The parts of a spec that belong to formats, for quant/spec.c.
 */
#ifndef QUOLL_QUANT_SPEC_FORMAT_H
#define QUOLL_QUANT_SPEC_FORMAT_H

#include "quant/spec.h"

/* Fills dtype, bits, scheme, grid and scaling from s->format. Error: a field beside the name that the format decides.
 */
enum ql_status ql_spec_make_format(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s);
/* Checks that scales can be quantized in blocks: outer=. */
enum ql_status ql_spec_check_outer(struct ql_ctx *ctx, const struct ql_spec_fields *f, const struct ql_spec *s);
/* Takes quant_min= and quant_max=. Errors: no affine codes, bounds that the dtype does not have or without room. */
enum ql_status ql_spec_make_bounds(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s);
/* Takes scaling=, saturate= and importance=. Errors: a scheme or format that they do not apply to. */
enum ql_status ql_spec_make_scaling(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s);
/* The unsigned integer dtype of as many bits; `dtype` itself if there is none. */
unsigned ql_spec_unsigned(unsigned dtype);

#endif
