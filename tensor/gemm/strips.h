/* SPDX-License-Identifier: MIT
 * A matrix of codes in the strips of struct ql_strip, made from its rows once; they take the place of the codes (tensor/closed.h) or are
 * kept with their storage. What kernels read otherwise than it is held (scales; codes of other widths than 4 and 8 bits) is brought
 * into their form for each use; one row of integers takes codes of every width as they are.
 */
#ifndef QUOLL_TENSOR_GEMM_STRIPS_H
#define QUOLL_TENSOR_GEMM_STRIPS_H

#include "tensor/gemm/strip_scales.h"
#include "tensor/kernels/kernels.h"

struct ql_strips {
	int64_t n, k; /* B is (k, n) */
	struct ql_strip
		form; /* of each strip, without pointers; form.block is at least k rounded up where there are no blocks */
	unsigned dtype; /* of the codes */
	int64_t bytes;  /* codes of a strip */
	int64_t blocks; /* of a strip */
	const uint8_t *codes;
	int nr; /* not 0: the codes are panels of so many columns (i8_stored.c) */
	struct ql_strip_scales scale, shift;
	const uint8_t *zero; /* of the first row, before zero_add; NULL: form.middle */
	int64_t zero_step;
	uint8_t zero_add;
	int variant; /* of loops */
};

/* Whether the quantized matrix t (n, k) can have strips, whose columns are its rows. */
bool ql_strips_take(const struct ql_tensor *t);
/* The strips of `lines`, which use scratch memory. out->codes is NULL if there are none: of a matrix that cannot have them, when out of
 * memory, and, unless they are wanted at once, at the first request. */
enum ql_status ql_strips_keep(struct ql_ctx *ctx, struct ql_tensor *lines, bool at_once, struct ql_strips *out);

/* The same without what is not codes, for the next function only. A weight whose codes take 8 bits has them only if strips hold it. */
enum ql_status ql_strips_keep_codes(struct ql_ctx *ctx, struct ql_tensor *lines, struct ql_strips *out);
/* Gives columns first..first+columns-1 as panels of nr columns, a multiple of 16 as is `first`, for ql_gemm_i8: codes as bytes xored
 * with flip, 0 where k or columns are missing. Neither fails nor allocates. */
void ql_strips_panels(const struct ql_strips *s, int64_t first, int64_t columns, int nr, uint8_t flip, uint8_t *panels);

/* Bytes that ql_strips_read needs for one strip: a multiple of 64. */
uint64_t ql_strips_work(const struct ql_strips *s);
/* Strip i for one row of `dots`. */
struct ql_strip ql_strips_read_held(const struct ql_strips *s, int64_t i, char *work);
/* Strip i, columns 16 i and up, for the rows l..end-1 of B; l is a multiple of QL_STRIP_DEPTH. *first: the row of B that is row 0 of
 * the result, at most l. `work`, aligned to 64 bytes, is used as long as the result. Neither fails nor allocates. */
struct ql_strip ql_strips_read(
	const struct ql_strips *s, int64_t i, int64_t l, int64_t end, char *work, int64_t *first);

#endif
