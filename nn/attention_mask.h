/* SPDX-License-Identifier: MIT
 * Rows of float32 scores of attention: which keys a mask hides, capped scores. `variant` as in tensor/vmath/simd.h.
 */
#ifndef QUOLL_NN_ATTENTION_MASK_H
#define QUOLL_NN_ATTENTION_MASK_H

#include "nn/attention.h"

/* The mask of n keys of a query; kind QL_MASK_NONE: there is none. */
struct ql_masked_row {
	enum ql_mask_kind kind;
	const float *added;
	const uint8_t *seen;
	int64_t step, n;
};

struct ql_masked_row ql_masked_row_of(
	const struct ql_attention *a, int64_t batch, int64_t head, int64_t i, int64_t from, int64_t n);
/* Adds the mask to scores, or makes those -inf that it hides. */
void ql_attention_mask(int variant, const struct ql_masked_row *m, float *score);
/* Makes the exponentials of hidden keys 0: ql_row_exp leaves a very small number. */
void ql_attention_hide(int variant, const struct ql_masked_row *m, float *p);
/* The largest score, 0 if all are hidden. */
float ql_attention_largest(int variant, const float *score, int64_t n);
/* score = cap tanh(score / cap); slope (NULL: not wanted): its derivative. */
void ql_attention_cap(int variant, int64_t n, float cap, float *score, float *slope);
/* x *= by */
void ql_attention_times(int variant, int64_t n, const float *by, float *x);

#endif
