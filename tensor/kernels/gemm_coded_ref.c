/* SPDX-License-Identifier: MIT
 * Strips of codes in portable C: the meaning of the layout and of the sums.
 */
#include <string.h>

#include "tensor/base.h"
#include "tensor/dtype.h"
#include "tensor/kernels/kernels.h"

/* Byte i of line `line` of the chunk. */
static int line_at(const struct ql_strip *s, int64_t chunk, int64_t line, int i)
{
	return s->codes[(chunk * s->held + line) * 64 + i];
}

/* A code in chunks: bits of the half byte i of group g. */
static uint8_t held_at(const struct ql_strip *s, int64_t l, int column)
{
	int64_t chunk = l / 32, g = l / 8 % 4, part = s->held > 4 ? 4 : 0;
	int i = (int)(column * 4 + l % 4), half = (int)(l & 4), code = 0;

	if (s->held & 2)
		code = line_at(s, chunk, part + g / 2, i) >> (2 * (g & 1) + half) & 3;
	if (s->held & 1)
		code |= (line_at(s, chunk, part + (s->held & 2), i) >> (g + half) & 1) << (s->held & 2);
	return (uint8_t)(part ? code << 4 | (line_at(s, chunk, g, i) >> half & 15) : code);
}

static uint8_t code_at(const struct ql_strip *s, int64_t l, int column)
{
	if (s->held)
		return held_at(s, l, column);
	if (s->bits == 8)
		return s->codes[l / 4 * 64 + column * 4 + l % 4];
	return s->codes[l / 8 * 64 + column * 4 + l % 4] >> (l & 4) & 15;
}

/* A code of `floats`. */
static uint8_t field_at(const struct ql_strip *s, int64_t l, int column)
{
	int64_t each = s->fields == 4 ? 8 : 4, at = l % each * s->fields;
	const uint8_t *lane = s->codes + l / each * 64 + column * 4 + at / 8;
	int code = at % 8 + s->fields > 8 ? lane[0] | lane[1] << 8 : lane[0];

	return (uint8_t)(code >> at % 8 & ((1 << s->fields) - 1));
}

static float number(const struct ql_strip *s, const void *of, int64_t i)
{
	return s->half ? ql_f16_to_f32(((const uint16_t *)of)[i]) : ((const float *)of)[i];
}

static float value_at(const struct ql_strip *s, int64_t l, int column)
{
	int64_t i = l / s->block * QL_STRIP + column;
	int code = s->fields ? field_at(s, l, column) : code_at(s, l, column), zero = s->zero ? s->zero[i] : s->middle;
	float x = (s->value ? s->value[code] : (float)(code - zero)) * number(s, s->scale, i);

	return s->shift ? x + number(s, s->shift, i) : x;
}

static void floats(const struct ql_strip *s, int64_t l, int64_t depth, float *out, int64_t pitch)
{
	for (int64_t i = 0; i < depth; i++)
		for (int j = 0; j < QL_STRIP; j++)
			out[i * pitch + j] = value_at(s, l + i, j);
}

static void row(int strips, const struct ql_strip *s, int64_t k, const float *a, float *c, bool ordered)
{
	(void)ordered; /* as this is */
	for (int j = 0; j < strips * QL_STRIP; j++) {
		float sum = 0;

		for (int64_t l = 0; l < k; l++)
			sum += a[l] * value_at(&s[j / QL_STRIP], l, j % QL_STRIP);
		c[j] = sum;
	}
}

/* What is multiplied for a code. */
static int number_at(const struct ql_strip *s, int64_t l, int column)
{
	uint8_t code = code_at(s, l, column);

	return s->look ? s->look[code] : code;
}

/* Sums of blocks are mod 2^32, as those of vectors. */
static float as_float(uint32_t bits)
{
	float x;

	memcpy(&x, &bits, sizeof(x));
	return x;
}

static float dot(const struct ql_strip *s, int64_t k, const int8_t *a, const int32_t *sums, int32_t zero_a, int column)
{
	uint32_t all = 0;
	float y = 0;

	for (int64_t l = 0, b = 0; l < k; b++) {
		int64_t i = b * QL_STRIP + column, stop = ql_min64(l + s->block, k);
		int32_t zero = s->zero ? s->zero[i] : s->middle;
		uint32_t sum = 0;

		for (; l < stop; l++)
			sum += (uint32_t)((a[l] - zero_a) * (number_at(s, l, column) - zero));
		all += sum;
		if (!s->scale)
			continue;
		y = y + (float)(int32_t)sum * number(s, s->scale, i);
		if (s->shift)
			y = y + (float)sums[b] * number(s, s->shift, i);
	}
	return s->scale ? y : as_float(all);
}

static void dots(int strips, int rows, const struct ql_strip *s, int64_t k, const struct ql_strip_rows *a, float *c)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < strips * QL_STRIP; j++)
			*c++ = dot(&s[j / QL_STRIP], k, a->a + i * a->lda, a->sum + i * a->pitch,
				a->zero ? a->zero[i] : 0, j % QL_STRIP);
}

extern const struct ql_gemm_coded gemm_coded_ref;
const struct ql_gemm_coded gemm_coded_ref = {
	.name = "gemm_coded_ref", .rate = 1, .floats = floats, .row = row, .dots = dots};
