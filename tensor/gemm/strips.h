/* SPDX-License-Identifier: MIT
 * A matrix of codes in the strips of struct ql_strip, made from its rows once; they take the place of the codes (tensor/closed.h) or are
 * kept with their storage.
 */
#ifndef QUOLL_TENSOR_GEMM_STRIPS_H
#define QUOLL_TENSOR_GEMM_STRIPS_H

#include "tensor/kernels/kernels.h"
#include "tensor/qparams.h"

struct ql_strips {
	int64_t n, k;         /* B is (k, n) */
	struct ql_strip form; /* of each strip, without pointers */
	int64_t bytes;        /* codes of a strip */
	int64_t blocks;       /* of a strip */
	uint8_t *codes;
	char *scale, *shift; /* shift: NULL: 0 */
	uint8_t *zero;       /* NULL: form.middle */
};

/* Whether the quantized matrix t (n, k) can have strips, whose columns are its rows. */
bool ql_strips_take(const struct ql_tensor *t);
/* The strips of `lines`. out->codes is NULL if there are none: of a matrix that cannot have them, when out of memory, and, unless they
 * are wanted at once, at the first request. */
enum ql_status ql_strips_keep(struct ql_ctx *ctx, struct ql_tensor *lines, bool at_once, struct ql_strips *out);
/* Strip i, columns 16 i and up. */
struct ql_strip ql_strips_at(const struct ql_strips *s, int64_t i);

#endif
