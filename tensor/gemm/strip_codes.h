/* SPDX-License-Identifier: MIT
 * The codes of 16 rows in a strip (tensor/kernels/kernels.h), as they are held: of every width in the memory that their dtype needs.
 *
 * Codes are unsigned; those of a signed dtype have its least code subtracted, signs are 0 and 1. Those of 4 and of 8 bits are in the groups that kernels
 * read. Others are held in chunks of 32 k, which are 64 bytes for each bit: of codes of more than 4 bits first the low halves in 4
 * groups of 4 bits; then what is left, h = 1 to 3 bits, in the order of four such groups g: two bits of each half byte in 64 bytes for
 * two groups (those of g = 1 and 3 two bits higher than those of 0 and 2), the third or only bit in 64 bytes for all (g bits higher).
 */
#ifndef QUOLL_TENSOR_GEMM_STRIP_CODES_H
#define QUOLL_TENSOR_GEMM_STRIP_CODES_H

#include "tensor/base.h"

#define QL_STRIP_CHUNK 32 /* k that are held together at most */

/* Bits of the groups that kernels read: 4 or 8. */
int ql_strip_form_bits(unsigned dtype);
/* Whether codes are held in those groups. */
bool ql_strip_is_plain(unsigned dtype);
/* What an unsigned code has more than the code. */
int ql_strip_least(unsigned dtype);
/* Bytes of a strip of k codes a row. */
int64_t ql_strip_bytes(unsigned dtype, int64_t k);

/* n <= 256 codes of `columns` <= 16 rows, `pitch` elements apart from element `at` on, to the groups that kernels read. Columns that
 * are missing, and k to a multiple of 8, have the unsigned code 0. */
void ql_strip_groups(
	unsigned dtype, const void *rows, int64_t at, int64_t pitch, int columns, int64_t n, uint8_t *groups);
/* The same for n bytes of each row, `step` apart, each xored with flip. */
void ql_strip_bytes_turn(const uint8_t *rows, int64_t step, int columns, int64_t n, uint8_t flip, uint8_t *groups);
/* Packs codes of `columns` <= 16 rows, k codes each, as they are held. */
void ql_strip_pack(unsigned dtype, const void *rows, int64_t at, int64_t pitch, int columns, int64_t k, uint8_t *strip);
/* The way back. */
void ql_strip_unpack(
	unsigned dtype, const uint8_t *strip, int columns, int64_t k, void *rows, int64_t at, int64_t pitch);
/* One code. */
int ql_strip_code(unsigned dtype, const uint8_t *strip, int column, int64_t l);

/* Gives the groups of k from l, a multiple of QL_STRIP_CHUNK, to `end`, or some more; of codes that are not plain. Strips and
 * groups are aligned to 64 bytes. */
void ql_strip_expand(int variant, unsigned dtype, const uint8_t *strip, int64_t l, int64_t end, uint8_t *groups);

/* Whether codes in groups of 8 bits are all finite numbers of the format. */
struct ql_minifloat;
bool ql_strip_all_finite(int variant, const struct ql_minifloat *f, const uint8_t *groups, int64_t bytes);

/* Gives a strip's part of a panel of 8-bit products (pack.h): groups of 4 k for its 16 columns, `step` bytes apart, each code as a byte
 * xored with flip; k that are missing in the last group are 0. */
void ql_strip_panel(
	int variant, unsigned dtype, const uint8_t *strip, int64_t k, uint8_t flip, int64_t step, uint8_t *to);
/* The way back, of 8 bits: groups of k from l, a multiple of 4, to `end`. */
void ql_strip_from_panel(int variant, const uint8_t *from, int64_t step, int64_t l, int64_t end, uint8_t *groups);

#endif
