/* SPDX-License-Identifier: MIT
 * Decodes codes of 4 bits to float32 in one pass.
 */
#ifndef QUOLL_TENSOR_NIBBLES_H
#define QUOLL_TENSOR_NIBBLES_H

#include <stdbool.h>
#include <stdint.h>

/* value[code] * scale or, without `value`, (float)(code - zero) * scale; a scale, and a zero point, for each `block` codes. */
struct ql_nibbles {
	const float *value; /* 16; NULL: codes are integers */
	bool is_signed;     /* of integers */
	int64_t block;      /* even */
	const float *scale;
	const int32_t *zero; /* NULL: 0 */
};

/* Decodes n codes from the low half of q[0] on. variant: of the loops of tensor/vmath/simd.h. */
void ql_nibbles_decode(int variant, const struct ql_nibbles *as, const uint8_t *q, int64_t n, float *out);

#endif
