/* SPDX-License-Identifier: MIT
 * Codes that no kernel stores: 4-bit fields, and ranges per element. Kernels clamp to the widest range, then these
 * functions to the range of each element, which gives the same as one clamp to the latter.
 */
#include "tensor/codes.h"

#include "tensor/dtype.h"

static void put4(uint8_t *q, int64_t at, uint8_t code)
{
	int shift = (int)(at & 1) * 4;

	q[at / 2] = (uint8_t)((q[at / 2] & (0xf0 >> shift)) | (code & 15) << shift);
}

void ql_codes_put4(uint8_t *restrict q, int64_t at, int64_t n, const uint8_t *restrict code)
{
	int64_t i = 0;

	if (at % 2 && n > 0)
		put4(q, at, code[i++]);
	q += (at + i) / 2;
	for (int64_t pair = 0; pair < (n - i) / 2; pair++)
		q[pair] = (uint8_t)((code[i + 2 * pair] & 15) | code[i + 2 * pair + 1] << 4);
	if ((n - i) % 2)
		put4(q + (n - i) / 2, 0, code[n - 1]);
}

void ql_codes_get4(const uint8_t *q, int64_t at, int64_t n, bool is_signed, int8_t *code)
{
	const int flip = is_signed ? 8 : 0;
	int64_t i = 0;

	if (at % 2 && n > 0)
		code[i++] = (int8_t)(((q[at / 2] >> 4) ^ flip) - flip);
	q += (at + i) / 2;
	for (int64_t pairs = (n - i) / 2; pairs > 0; pairs--, q++, i += 2) {
		code[i] = (int8_t)(((*q & 15) ^ flip) - flip);
		code[i + 1] = (int8_t)(((*q >> 4) ^ flip) - flip);
	}
	if (i < n)
		code[i] = (int8_t)(((*q & 15) ^ flip) - flip);
}

#define NARROW(name, type) \
	static void narrow_##name(type *restrict q, int64_t n, const int32_t *restrict lo, const int32_t *restrict hi) \
	{ \
		for (int64_t i = 0; i < n; i++) \
			q[i] = (type)(q[i] < lo[i] ? lo[i] : q[i] > hi[i] ? hi[i] : q[i]); \
	}
NARROW(i8, int8_t)
NARROW(u8, uint8_t)
NARROW(i16, int16_t)
NARROW(u16, uint16_t)

void ql_codes_narrow(unsigned dtype, void *q, int64_t n, const int32_t *lo, const int32_t *hi)
{
	bool is_signed = ql_dtypes[dtype].kind == QL_KIND_INT;

	if (ql_dtypes[dtype].bits == 16 && is_signed)
		narrow_i16(q, n, lo, hi);
	else if (ql_dtypes[dtype].bits == 16)
		narrow_u16(q, n, lo, hi);
	else if (is_signed)
		narrow_i8(q, n, lo, hi);
	else
		narrow_u8(q, n, lo, hi);
}
