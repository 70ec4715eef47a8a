/* SPDX-License-Identifier: MIT
 * The parts of a spec that belong to formats, and explicit numbers, for quant/spec.c.
 */
#ifndef QUOLL_QUANT_SPEC_FORMAT_H
#define QUOLL_QUANT_SPEC_FORMAT_H

#include "quant/spec.h"

/* Fills dtype, bits, scheme, grid and scaling from s->format. Error: a given field that the format determines. */
enum ql_status ql_spec_make_format(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s);
/* Checks that outer= applies, i.e. that the scales can be quantized in blocks. */
enum ql_status ql_spec_check_outer(struct ql_ctx *ctx, const struct ql_spec_fields *f, const struct ql_spec *s);
/* Sets the bounds quant_min= and quant_max=. Errors: codes that are not affine; bounds outside of the dtype's range, or
 * with fewer than two codes. */
enum ql_status ql_spec_make_bounds(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s);
/* Sets scaling=, saturate= and importance=. Errors: a scheme or format that they do not apply to. */
enum ql_status ql_spec_make_scaling(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s);
/* Sets scale, zero point, minimum and octaves (spec_numbers.c). Errors: numbers that the scheme does not have or that are out of
 * range, lists of different lengths. */
enum ql_status ql_spec_make_numbers(struct ql_ctx *ctx, const struct ql_spec_fields *f, struct ql_spec *s);
/* Returns the unsigned integer dtype of the same number of bits; `dtype` itself if there is none. */
unsigned ql_spec_unsigned(unsigned dtype);

#endif
