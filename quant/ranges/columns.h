/* SPDX-License-Identifier: MIT
 * A matrix whose columns are rounded one after the other. Its scales are fitted to the whole matrix at once, or, where they belong to
 * blocks along its rows, to the columns of a block as they are when its turn comes.
 */
#ifndef QUOLL_QUANT_RANGES_COLUMNS_H
#define QUOLL_QUANT_RANGES_COLUMNS_H

#include "quant/spec.h"
#include "tensor/grain.h"

struct ql_columns {
	const struct ql_spec *spec;
	struct ql_tensor *codes; /* (rows, columns) with the params */
	struct ql_grain grain;
	struct ql_codes range; /* of the codes of every scale, unless lo is set */
	int64_t rows, columns;
	int64_t group;           /* columns that are fitted together; 0: all scales are fitted */
	float *scale, *shift;    /* of the grain; shift is NULL without */
	int32_t *zero, *lo, *hi; /* NULL: all 0; those of `range` */
};

/* Quantizes the contiguous float32 w, which fits all scales. dynamic: ql_columns_fit will fit them again; group stays 0 where scales
 * do not belong to blocks of columns alone. Memory is scratch, but codes, which the caller releases. Errors: those of x:quantize; a
 * format whose codec is a function of the host. */
enum ql_status ql_columns_open(
	struct ql_ctx *ctx, struct ql_columns *c, const struct ql_spec *spec, struct ql_tensor *w, bool dynamic);
/* Fits the scales of the columns first .. first + group - 1 (fewer at the end) to w, contiguous float32 (rows, number of these
 * columns). */
enum ql_status ql_columns_fit(struct ql_ctx *ctx, struct ql_columns *c, int64_t first, struct ql_tensor *w);
/* The value that x has after rounding as an element of this row and column. Threads may call it. */
float ql_columns_round(const struct ql_columns *c, int64_t row, int64_t column, float x);

#endif
