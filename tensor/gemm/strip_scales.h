/* SPDX-License-Identifier: MIT
 * The scales of a matrix of codes (n, k) as its strips need them: those of 16 rows, turned, read from where the tensor has them.
 */
#ifndef QUOLL_TENSOR_GEMM_STRIP_SCALES_H
#define QUOLL_TENSOR_GEMM_STRIP_SCALES_H

#include "tensor/kernels/kernels.h"
#include "tensor/qparams.h"

struct ql_scale_codes;

struct ql_strip_scales {
	enum { QL_SCALES_NONE, QL_SCALES_F32, QL_SCALES_F16, QL_SCALES_POWERS, QL_SCALES_FLOAT, QL_SCALES_CODES } kind;
	const char *data; /* NULL: CODES */
	unsigned dtype;   /* of data */
	int64_t first;    /* element of the first row */
	int64_t step;     /* numbers from a row to the next; 0: one row for all */
	const struct ql_scale_codes *codes;
};

/* Reads t, scales or minimums of q: numbers of `blocks` for each row if there are blocks. t may be NULL. Uses scratch memory. */
enum ql_status ql_strip_scales_open(struct ql_ctx *ctx, const struct ql_qparams *q, struct ql_tensor *t, int64_t blocks,
	struct ql_strip_scales *out);

/* Numbers block..block+count-1 of rows row..row+rows-1, at most 16, to `count` times 16 numbers; those of rows that are missing are
 * 0. half: as float16, if s->kind is F16. Neither fails nor allocates. */
void ql_strip_scales_read(const struct ql_strip_scales *s, int variant, bool half, int64_t row, int rows, int64_t block,
	int64_t count, void *out);
/* The same for numbers of one byte, `step` apart, each plus `add`. */
void ql_strip_bytes_read(
	const uint8_t *from, int64_t step, uint8_t add, int rows, int64_t block, int64_t count, uint8_t *out);

/* The place about which a table of 256 values is mirrored (struct ql_strip); 0: none. */
uint8_t ql_strip_mirror(const float *value);
/* Says that codes of 8 bits are finite numbers of the format. */
struct ql_minifloat;
void ql_strip_set_mini(struct ql_strip *form, const struct ql_minifloat *f);

#endif
