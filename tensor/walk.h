/* SPDX-License-Identifier: MIT
 * Walks several operands of one (broadcast) shape as rows: adjacent axes that can be merged in all operands are
 * merged; the innermost merged axis is the row.
 */
#ifndef QUOLL_TENSOR_WALK_H
#define QUOLL_TENSOR_WALK_H

#include "tensor/tensor.h"

#define QL_MAX_WALK 8 /* operands */

struct ql_walk {
	int rank, operands;
	int64_t rows, row; /* number of rows, elements per row; 0 rows if any size is 0 */
	int64_t shape[QL_MAX_RANK];
	int64_t stride[QL_MAX_WALK][QL_MAX_RANK];
	int64_t offset[QL_MAX_WALK];
};

void ql_walk_start(struct ql_walk *w, int rank, const int64_t *shape);
/* Adds an operand of lower or equal rank, aligned at the last axis; sizes of 1 broadcast. The caller has checked
 * the shapes. */
void ql_walk_add(struct ql_walk *w, const struct ql_tensor *t);
/* Merges axes; call once after the last operand. `keep_last` does not merge the last axis (packed types). */
void ql_walk_finish(struct ql_walk *w, bool keep_last);
/* If rows are shorter than `least` and another axis is longer, makes that axis the row. Call after ql_walk_finish,
 * only where the order of elements does not matter. */
void ql_walk_lengthen(struct ql_walk *w, int64_t least);
/* Element offsets of row r, one per operand. */
void ql_walk_row(const struct ql_walk *w, int64_t r, int64_t *offset);
static inline int64_t ql_walk_stride(const struct ql_walk *w, int operand)
{
	return w->rank ? w->stride[operand][w->rank - 1] : 1;
}

#endif
