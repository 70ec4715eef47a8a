/* SPDX-License-Identifier: MIT
 * Scales of strips. A copy in the order of strips would be a tenth of a weight of 4 bits in blocks of 32, and more where scales are
 * codes themselves, so each product turns those that it needs: float16, float32 and bytes by squares of
 * vectors (the SSE2 of every x86-64 is enough), others after they were converted to float32, LINE numbers of each row at a time. Scales
 * that are codes under scales of their own are a matrix of codes, too: the kernels decode them as any strip.
 */
#include "tensor/gemm/strip_scales.h"

#include <math.h>
#include <string.h>

#include "tensor/dtype.h"
#include "tensor/gemm/strip_codes.h"
#include "tensor/gemm/turn.h"
#include "tensor/grid.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"
#include "tensor/storage.h"
#include "tensor/vmath/simd.h"

#define LINE 256
#define MOST (LINE / 8 + 1) /* blocks of 8 and more that as many numbers touch */

/* Scales that are codes. */
struct ql_scale_codes {
	struct ql_strip form;              /* without pointers, one zero point */
	const struct ql_minifloat *floats; /* of 8 bits; NULL: other codes */
	unsigned dtype;
	const void *rows;
	int64_t first, pitch; /* elements */
	struct ql_strip_scales scale, shift;
	const struct ql_gemm_coded *kernel;
};

/* ---- turning ---- */

static void turn_8_halves(const uint16_t *from, int64_t step, uint16_t *to)
{
	__m128i a[8], b[8];

	for (int i = 0; i < 8; i++)
		a[i] = ql_turn_load(from + i * step);
	for (int i = 0; i < 4; i++) {
		b[2 * i] = _mm_unpacklo_epi16(a[i], a[i + 4]);
		b[2 * i + 1] = _mm_unpackhi_epi16(a[i], a[i + 4]);
	}
	for (int i = 0; i < 4; i++) {
		a[2 * i] = _mm_unpacklo_epi16(b[i], b[i + 4]);
		a[2 * i + 1] = _mm_unpackhi_epi16(b[i], b[i + 4]);
	}
	for (int i = 0; i < 4; i++) {
		ql_turn_store(to + 2 * i * QL_STRIP, _mm_unpacklo_epi16(a[i], a[i + 4]));
		ql_turn_store(to + (2 * i + 1) * QL_STRIP, _mm_unpackhi_epi16(a[i], a[i + 4]));
	}
}

static void turn_16_bytes(const uint8_t *from, int64_t step, __m128i add, uint8_t *to)
{
	__m128i a[16], b[16];

	for (int i = 0; i < 16; i++)
		a[i] = _mm_add_epi8(ql_turn_load(from + i * step), add);
	for (int round = 0; round < 4; round++) { /* each interleaves row i with row i + 8 */
		for (int i = 0; i < 8; i++) {
			b[2 * i] = _mm_unpacklo_epi8(a[i], a[i + 8]);
			b[2 * i + 1] = _mm_unpackhi_epi8(a[i], a[i + 8]);
		}
		memcpy(a, b, sizeof(a));
	}
	for (int i = 0; i < 16; i++)
		ql_turn_store(to + i * QL_STRIP, a[i]);
}

/* `step` apart, to count times 16; whole squares of whole strips by vectors. */
static void turn_floats(const float *from, int64_t step, int rows, int64_t count, float *to)
{
	int64_t whole = rows == QL_STRIP ? count / 4 * 4 : 0;

	for (int64_t b = 0; b < whole; b += 4)
		for (int c = 0; c < QL_STRIP; c += 4)
			ql_turn_4(from + c * step + b, step * (int64_t)sizeof(float), _mm_setzero_si128(),
				to + b * QL_STRIP + c, QL_STRIP * sizeof(float));
	for (int64_t b = whole; b < count; b++)
		for (int c = 0; c < QL_STRIP; c++)
			to[b * QL_STRIP + c] = c < rows ? from[c * step + b] : 0;
}

static void turn_halves(const uint16_t *from, int64_t step, int rows, int64_t count, uint16_t *to)
{
	int64_t whole = rows == QL_STRIP ? count / 8 * 8 : 0;

	for (int64_t b = 0; b < whole; b += 8)
		for (int c = 0; c < QL_STRIP; c += 8)
			turn_8_halves(from + c * step + b, step, to + b * QL_STRIP + c);
	for (int64_t b = whole; b < count; b++)
		for (int c = 0; c < QL_STRIP; c++)
			to[b * QL_STRIP + c] = c < rows ? from[c * step + b] : 0;
}

void ql_strip_bytes_read(
	const uint8_t *from, int64_t step, uint8_t add, int rows, int64_t block, int64_t count, uint8_t *out)
{
	int64_t whole = rows == QL_STRIP ? count / 16 * 16 : 0;

	from += block;
	for (int64_t b = 0; b < whole; b += 16)
		turn_16_bytes(from + b, step, _mm_set1_epi8((char)add), out + b * QL_STRIP);
	for (int64_t b = whole; b < count; b++)
		for (int c = 0; c < QL_STRIP; c++)
			out[b * QL_STRIP + c] = c < rows ? (uint8_t)(from[c * step + b] + add) : 0;
}

/* ---- reading ---- */

void ql_strip_set_mini(struct ql_strip *form, const struct ql_minifloat *f)
{
	form->mini = true;
	form->sign = (uint8_t)(f->exponent + f->mantissa);
	form->mantissa = f->mantissa;
	form->unit = ldexpf(1, 127 - f->bias);
}

uint8_t ql_strip_mirror(const float *value)
{
	for (int at = 127; at <= 128; at++) {
		int d = 1;

		while (d < 128 && value[at + d] == -value[at - d] && value[at + d] > 0)
			d++;
		if (d == 128 && !signbit(value[at]))
			return (uint8_t)at;
	}
	return 0;
}

/* Powers of two (float8_e8m0): the exponent of a float32; 0 is a subnormal number, 255 not a number. */
QL_SIMD(void, powers, (const uint8_t *restrict code, int64_t n, uint32_t *restrict out), {
	for (int64_t i = 0; i < n; i++)
		out[i] = code[i] == 0 ? 0x400000u : code[i] == 255 ? 0x7fc00000u : (uint32_t)code[i] << 23;
})

static void read_powers(const struct ql_strip_scales *s, int variant, int64_t at, int rows, int64_t count, float *out)
{
	const uint8_t *from = (const uint8_t *)s->data + at;
	_Alignas(64) uint8_t codes[QL_STRIP * LINE];

	for (int64_t b = 0; b < count; b += LINE) {
		int64_t some = ql_min64(LINE, count - b);

		ql_strip_bytes_read(from, s->step, 0, rows, b, some, codes);
		powers[variant](codes, some * QL_STRIP, (uint32_t *)(void *)(out + b * QL_STRIP));
	}
}

static void read_floats(const struct ql_strip_scales *s, int64_t at, int rows, int64_t count, float *out)
{
	_Alignas(64) float lines[QL_STRIP * LINE];

	for (int64_t b = 0; b < count; b += LINE) {
		int64_t some = ql_min64(LINE, count - b);

		for (int c = 0; c < rows; c++)
			ql_dtypes[s->dtype].to_f32(s->data, at + c * s->step + b, 1, some, lines + c * LINE);
		turn_floats(lines, LINE, rows, some, out + b * QL_STRIP);
	}
}

QL_SIMD(void, add_16, (float *restrict to, int64_t n, const float *restrict x), {
	for (int64_t i = 0; i < n; i++)
		for (int c = 0; c < QL_STRIP; c++)
			to[i * QL_STRIP + c] += x[c];
})

static __m128i load_some(const uint8_t *p, int64_t bytes)
{
	_Alignas(16) uint8_t all[16] = {0};

	memcpy(all, p, (size_t)bytes);
	return ql_turn_load(all);
}

/* 12 bytes, or, of the last 8 fields of a row, 6; in registers, as a load of what smaller stores have written waits for them */
QL_INLINE __m128i load_sixes(const uint8_t *p, const bool half)
{
	uint32_t first, second, third;
	uint16_t end;

	memcpy(&first, p, 4);
	if (half) {
		memcpy(&end, p + 4, 2);
		return _mm_set_epi64x(0, (int64_t)((uint64_t)end << 32 | first));
	}
	memcpy(&second, p + 4, 4);
	memcpy(&third, p + 8, 4);
	return _mm_set_epi64x((int64_t)third, (int64_t)((uint64_t)second << 32 | first));
}

/* Rows of fields of 6 bits; four of a row, 3 bytes, go to a lane of 4 bytes, whose last is any. */
QL_INLINE void turn_4_sixes(const __m128i *row, __m128i flip, const int lanes, uint8_t *to)
{
#define LANE(j) \
	if ((j) < lanes) { \
		__m128i low = _mm_unpacklo_epi32(_mm_srli_si128(row[0], 3 * (j)), _mm_srli_si128(row[1], 3 * (j))); \
		__m128i high = _mm_unpacklo_epi32(_mm_srli_si128(row[2], 3 * (j)), _mm_srli_si128(row[3], 3 * (j))); \
\
		ql_turn_store(to + (j)*64, _mm_xor_si128(_mm_unpacklo_epi64(low, high), flip)); \
	}
	LANE(0)
	LANE(1)
	LANE(2)
	LANE(3)
#undef LANE
}

/* `step` bytes from row to row; n is a multiple of 4 in memory. */
static void turn_sixes(const uint8_t *from, int64_t step, int rows, int64_t n, int flip, uint8_t *groups)
{
	__m128i flips = _mm_set1_epi32(flip), row[4];

	for (int c = 0; c < QL_STRIP; c += 4)
		for (int64_t l = 0; l < n; l += 16) {
			bool whole = n - l >= 16, half = n - l == 8;

			for (int i = 0; i < 4; i++) {
				const uint8_t *p = from + (c + i) * step + l / 4 * 3;

				row[i] = c + i >= rows ? _mm_setzero_si128()
					 : whole       ? load_sixes(p, false)
					 : half        ? load_sixes(p, true)
						       : load_some(p, ql_ceil_div(n - l, 4) * 3);
			}
			if (half)
				turn_4_sixes(row, flips, 2, groups + l * QL_STRIP + 4 * c);
			else
				turn_4_sixes(row, flips, 4, groups + l * QL_STRIP + 4 * c);
		}
}

/* Codes from element `at` on; fields of 4 and of 6 bits stay as they are. */
static void read_groups(
	const struct ql_scale_codes *s, int64_t at, int rows, int64_t n, struct ql_strip *strip, uint8_t *groups)
{
	int bits = ql_dtypes[s->dtype].bits;

	if (bits == 4 && !strip->value && at % 2 == 0 && s->pitch % 2 == 0) {
		strip->fields = 4;
		ql_strip_bytes_turn((const uint8_t *)s->rows + at / 2, s->pitch / 2, rows, ql_ceil_div(n, 2),
			(uint8_t)(17 * ql_strip_least(s->dtype)), groups);
	} else if (bits == 6 && !strip->value && at % 4 == 0 && s->pitch % 4 == 0) {
		strip->fields = 6;
		turn_sixes((const uint8_t *)s->rows + at / 4 * 3, s->pitch / 4 * 3, rows, n,
			ql_strip_least(s->dtype) ? 0x820820 : 0, groups);
	} else {
		ql_strip_groups(s->dtype, s->rows, at, s->pitch, rows, n, groups);
	}
}

/* Numbers from..end-1, at most LINE of them, which are in at most MOST blocks: `from` begins one, or all are in one. */
static void read_piece(
	const struct ql_scale_codes *s, int variant, int64_t row, int rows, int64_t from, int64_t end, float *out)
{
	_Alignas(64) float scale[MOST * QL_STRIP];
	_Alignas(64) float shift[MOST * QL_STRIP];
	_Alignas(64) uint8_t groups[LINE * QL_STRIP];
	int64_t block = from / s->form.block, blocks = (end - 1) / s->form.block + 1 - block;
	struct ql_strip strip = s->form;

	read_groups(s, s->first + row * s->pitch + from, rows, end - from, &strip, groups);
	strip.half = s->scale.kind == QL_SCALES_F16;
	ql_strip_scales_read(&s->scale, variant, strip.half, row, rows, block, blocks, scale);
	strip.codes = groups;
	strip.scale = scale;
	if (s->floats && ql_strip_all_finite(variant, s->floats, groups, ql_ceil_div(end - from, 8) * 8 * QL_STRIP))
		ql_strip_set_mini(&strip, s->floats);
	s->kernel->floats(&strip, 0, end - from, out, QL_STRIP);
	if (!s->shift.kind)
		return;
	ql_strip_scales_read(&s->shift, variant, false, row, rows, block, blocks, shift);
	for (int64_t b = 0, l = from, stop; l < end; b++, l = stop) {
		stop = ql_min64(end, (l / s->form.block + 1) * s->form.block);
		add_16[variant](out + (l - from) * QL_STRIP, stop - l, shift + b * QL_STRIP);
	}
}

static void read_codes(
	const struct ql_scale_codes *s, int variant, int64_t row, int rows, int64_t from, int64_t count, float *out)
{
	int64_t block = s->form.block, most = block < LINE ? LINE / block * block : block, stop;

	for (int64_t l = from; l < from + count; l = stop) {
		stop = ql_min64(ql_min64((l / most + 1) * most, l + LINE), from + count);
		if (l % block)
			stop = ql_min64(stop, (l / block + 1) * block);
		read_piece(s, variant, row, rows, l, stop, out + (l - from) * QL_STRIP);
	}
}

void ql_strip_scales_read(const struct ql_strip_scales *s, int variant, bool half, int64_t row, int rows, int64_t block,
	int64_t count, void *out)
{
	int64_t at = s->first + row * s->step + block;

	if (s->kind == QL_SCALES_CODES)
		read_codes(s->codes, variant, row, rows, block, count, out);
	else if (half)
		turn_halves((const uint16_t *)(const void *)s->data + at, s->step, rows, count, out);
	else if (s->kind == QL_SCALES_F32)
		turn_floats((const float *)(const void *)s->data + at, s->step, rows, count, out);
	else if (s->kind == QL_SCALES_POWERS)
		read_powers(s, variant, at, rows, count, out);
	else
		read_floats(s, at, rows, count, out);
}

/* ---- opening ---- */

/* Few numbers, or such as can't be read by rows, are read at once. */
static enum ql_status read_all(struct ql_ctx *ctx, const struct ql_tensor *t, struct ql_strip_scales *s)
{
	float *all = ql_scratch_array(ctx, ql_tensor_nelem(t), sizeof(*all));

	if (!all)
		return QL_ERR_MEMORY;
	s->kind = QL_SCALES_F32;
	s->data = (const char *)all;
	return ql_qparams_scales(ctx, t, all);
}

/* Whether the kernels can decode scales t (n, blocks): codes without zero points, in blocks along a row or under one scale. */
static bool can_decode(const struct ql_tensor *t)
{
	const struct ql_qparams *q = t->q;

	return (q->scheme->affine || q->scheme->shift || q->codes.grid) && !q->scheme->host && !q->bits &&
	       !q->zero_point && t->rank == 2 && ql_dtypes[t->dtype].bits <= 8 && !ql_dtype_is_binary(t->dtype) &&
	       (q->block ? q->block_axis == 1 && q->block % 8 == 0 : q->axis < 1);
}

static enum ql_status open_codes(struct ql_ctx *ctx, struct ql_tensor *t, struct ql_strip_scales *out)
{
	const struct ql_qparams *q = t->q;
	struct ql_scale_codes *s = ql_scratch_take(ctx, sizeof(*s));
	int64_t k = t->shape[1], block = q->block && q->block < k ? q->block : ql_ceil_div(k, 8) * 8;
	enum ql_status status;

	if (!s)
		return QL_ERR_MEMORY;
	*s = (struct ql_scale_codes){.form = {.bits = ql_strip_form_bits(t->dtype),
					     .block = block,
					     .middle = ql_strip_least(t->dtype),
					     .value = q->codes.grid ? q->codes.grid->value : NULL},
		.floats = q->codes.grid && ql_strip_form_bits(t->dtype) == 8 ? q->codes.grid->minifloat : NULL,
		.dtype = t->dtype,
		.rows = t->storage->data,
		.first = t->offset,
		.pitch = ql_dtype_pitch(t->dtype, k),
		.kernel = ctx->kernels->gemm_coded};
	if (s->form.bits == 8 && s->form.value && !s->floats)
		s->form.mirror = ql_strip_mirror(s->form.value);
	out->kind = QL_SCALES_CODES;
	out->codes = s;
	status = ql_strip_scales_open(ctx, q, q->scale, ql_ceil_div(k, block), &s->scale);
	return status ? status : ql_strip_scales_open(ctx, q, q->shift, ql_ceil_div(k, block), &s->shift);
}

/* Floats that are turned as they are, and others. */
static int kind_of(unsigned dtype)
{
	static const struct {
		unsigned dtype;
		int kind;
	} as[] = {{QL_float32, QL_SCALES_F32}, {QL_float16, QL_SCALES_F16}, {QL_float8_e8m0, QL_SCALES_POWERS}};

	for (size_t k = 0; k < sizeof(as) / sizeof(*as); k++)
		if (as[k].dtype == dtype)
			return as[k].kind;
	return QL_SCALES_FLOAT;
}

enum ql_status ql_strip_scales_open(struct ql_ctx *ctx, const struct ql_qparams *q, struct ql_tensor *t, int64_t blocks,
	struct ql_strip_scales *out)
{
	bool here = t && t->storage->data && t->storage->device == &ql_device_cpu;

	*out = (struct ql_strip_scales){.step = q->block ? blocks : q->axis == 0};
	if (!t)
		return QL_OK;
	if (!q->block || !here || !ql_tensor_is_contiguous(t) || (t->q && !can_decode(t)))
		return read_all(ctx, t, out);
	if (t->q)
		return open_codes(ctx, t, out);
	out->kind = kind_of(t->dtype);
	out->dtype = t->dtype;
	out->first = t->offset;
	out->data = t->storage->data;
	return QL_OK;
}
