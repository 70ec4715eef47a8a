/* SPDX-License-Identifier: MIT
 * Strips of codes: every kernel of the family against `ref` and against plain loops: both widths, kinds of values and scales, blocks
 * and lengths of all remainders, extreme codes and activations, rows apart.
 */
#include <math.h>

#include "tests/tools/kernels.h"

extern const struct ql_gemm_coded gemm_coded_ref;

#define MOST_K 600
#define BLOCKS ((MOST_K + 15) / 8)
_Static_assert(2 + QL_STRIP_TILE <= QL_STRIPS, "check_dots takes strips from number 2 on");

enum kind { PLAIN, ZEROS, SHIFTS, HALF_SHIFTS, VALUES, MINI, SIXES, LOW_MIRROR, HIGH_MIRROR, KINDS };

struct data {
	struct ql_strip s[QL_STRIPS];
	float value[256];
	uint8_t *codes[QL_STRIPS], *zero[QL_STRIPS];
	float *scale[QL_STRIPS], *shift[QL_STRIPS];
};

static float number(void)
{
	return ((float)draw() - 0x1p30f) * 0x1p-30f;
}

/* float16 numbers of magnitudes up to 4, in pairs where floats would be */
static void fill_numbers(float *x, bool half)
{
	for (int i = 0; i < BLOCKS * QL_STRIP; i++)
		if (half)
			((uint16_t *)(void *)x)[i] = (uint16_t)(draw() & 0x8fff) | 0x3000;
		else
			x[i] = number();
}

/* fill 0: any codes; 1: the largest; 2: 0 */
static void fill_codes(struct data *d, int t, int fill, enum kind kind)
{
	for (int i = 0; i < MOST_K * QL_STRIP + 1024; i++)
		d->codes[t][i] = fill == 1 ? 255 : fill == 2 ? 0 : (uint8_t)draw();
	for (int i = 0; kind == MINI && i < MOST_K * QL_STRIP + 1024; i++) /* 127 is not finite */
		d->codes[t][i] = (uint8_t)((d->codes[t][i] & 127) == 127 ? 126 : d->codes[t][i]);
	for (int i = 0; kind == SIXES && i < MOST_K * QL_STRIP + 1024; i++)
		d->codes[t][i] &= 63;
}

static void make(struct data *d, int bits, enum kind kind, int64_t block, int fill)
{
	bool half = kind == HALF_SHIFTS || (kind == PLAIN && block == 32);

	for (int i = 0; i < 256; i++)
		d->value[i] = number();
	for (int t = 0; t < QL_STRIPS; t++) {
		d->codes[t] = take(MOST_K * QL_STRIP + 1024);
		d->zero[t] = take(BLOCKS * QL_STRIP);
		d->scale[t] = take(BLOCKS * QL_STRIP * sizeof(float));
		d->shift[t] = take(BLOCKS * QL_STRIP * sizeof(float));
		fill_codes(d, t, fill, kind);
		fill_numbers(d->scale[t], half);
		fill_numbers(d->shift[t], half);
		for (int i = 0; i < BLOCKS * QL_STRIP; i++)
			d->zero[t][i] = (uint8_t)draw();
		d->s[t] = (struct ql_strip){.codes = d->codes[t],
			.bits = bits,
			.half = half,
			.block = block,
			.scale = d->scale[t],
			.shift = kind == SHIFTS || kind == HALF_SHIFTS ? d->shift[t] : NULL,
			.zero = kind == ZEROS ? d->zero[t] : NULL,
			.middle = kind == PLAIN ? 1 << (bits - 1) : 0,
			.value = kind >= VALUES ? d->value : NULL,
			.mirror = (uint8_t)(kind >= LOW_MIRROR ? 127 + kind - LOW_MIRROR : 0),
			.mini = kind == MINI || kind == SIXES,
			.sign = kind == SIXES ? 5 : 7,
			.mantissa = kind == SIXES ? 2 : 3,
			.unit = kind == SIXES ? 0x1p124f : 0x1p120f};
	}
	for (int i = 1; kind >= LOW_MIRROR && i < 128; i++) { /* the number at the end of the other side stays */
		int middle = d->s[0].mirror;

		d->value[middle] = 0;
		d->value[middle + i] = fabsf(d->value[middle + i]);
		d->value[middle - i] = -d->value[middle + i];
	}
	for (int i = 0; kind == MINI && i < 256; i++) { /* E4M3 */
		int e = i >> 3 & 15, m = i & 7;

		d->value[i] = (i & 128 ? -1 : 1) * (e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9));
	}
	for (int i = 0; kind == SIXES && i < 64; i++) { /* E3M2 */
		int e = i >> 2 & 7, m = i & 3;

		d->value[i] = (i & 32 ? -1 : 1) * (e ? ldexpf((float)(4 + m), e - 5) : ldexpf((float)m, -4));
	}
}

static void drop(struct data *d)
{
	for (int t = 0; t < QL_STRIPS; t++) {
		free(d->codes[t]);
		free(d->zero[t]);
		free(d->scale[t]);
		free(d->shift[t]);
	}
}

static void check_floats(
	const struct ql_gemm_coded *k, struct data *d, int64_t l, int64_t depth, int64_t pitch, const char *what)
{
	size_t used = (size_t)((depth - 1) * pitch + QL_STRIP) * sizeof(float);
	float *mine = take(used + 64), *theirs = take(used + 64);

	k->floats(&d->s[1], l, depth, mine, pitch);
	gemm_coded_ref.floats(&d->s[1], l, depth, theirs, pitch);
	CHECK(!memcmp(mine, theirs, used + 64), "%s: floats of %s, %d from %d", k->name, what, (int)depth, (int)l);
	free(mine);
	free(theirs);
}

/* The fused sums: those of fma in order of k, in groups. */
static float fused(const struct ql_strip *s, int64_t k, const float *a, const float *b)
{
	float all = 0;

	(void)s;
	for (int64_t l = 0; l < k; l += QL_STRIP_DEPTH) {
		float sum = 0;

		for (int64_t i = l; i < k && i < l + QL_STRIP_DEPTH; i++)
			sum = fmaf(a[i], b[i * QL_STRIP], sum);
		all = l ? all + sum : sum;
	}
	return all;
}

static void check_row(const struct ql_gemm_coded *k, struct data *d, int64_t n, int strips, const char *what)
{
	size_t used = (size_t)(strips * QL_STRIP) * sizeof(float);
	float *a = take((size_t)n * sizeof(float)), *c = take(used + 64), *wanted = take(used + 64);
	float *b = take((size_t)n * QL_STRIP * sizeof(float));

	for (int64_t i = 0; i < n; i++)
		a[i] = number();
	k->row(strips, d->s, n, a, c, true);
	gemm_coded_ref.row(strips, d->s, n, a, wanted, true);
	CHECK(!memcmp(c, wanted, used + 64), "%s: ordered row of %s, k %d, %d strips", k->name, what, (int)n, strips);
	if (k != &gemm_coded_ref) {
		k->row(strips, d->s, n, a, c, false);
		for (int t = 0; t < strips; t++) {
			gemm_coded_ref.floats(&d->s[t], 0, n, b, QL_STRIP);
			for (int j = 0; j < QL_STRIP; j++)
				wanted[t * QL_STRIP + j] = fused(&d->s[t], n, a, b + j);
		}
		CHECK(!memcmp(c, wanted, used + 64), "%s: fused row of %s, k %d, %d strips", k->name, what, (int)n,
			strips);
	}
	free(a);
	free(b);
	free(c);
	free(wanted);
}

/* The codes of strip `from` of d for k = n: those behind k are 0. */
static uint8_t *codes_to(const struct data *d, int from, int64_t n)
{
	const struct ql_strip *s = &d->s[from];
	size_t bytes = (size_t)((n + 7) / 8 * QL_STRIP * s->bits);
	uint8_t *codes = take(bytes);

	memcpy(codes, s->codes, bytes);
	for (int64_t l = n; l < (n + 7) / 8 * 8; l++)
		for (int j = 0; j < QL_STRIP; j++)
			if (s->bits == 8)
				codes[l / 4 * 64 + j * 4 + l % 4] = 0;
			else
				codes[l / 8 * 64 + j * 4 + l % 4] &= l & 4 ? 15 : 240;
	return codes;
}

/* fill 0: any bytes; 1: the largest; 2: the least */
static void fill_rows(int8_t *a, int rows, int64_t lda, int64_t n, int fill)
{
	for (int64_t l = 0; l < rows * lda; l++)
		a[l] = (int8_t)(l % lda >= n ? 0 : fill == 1 ? 127 : fill == 2 ? -128 : (int)(draw() % 256) - 128);
}

static void fill_sums(
	const struct ql_strip *s, const struct ql_strip_rows *x, int rows, int64_t n, int32_t *sum, int32_t *start)
{
	for (int i = 0; i < rows; i++)
		for (int64_t b = 0; b * s->block < n; b++) {
			int32_t part = 0;

			for (int64_t l = b * s->block; l < n && l < (b + 1) * s->block; l++)
				part += x->a[i * x->lda + l] - (x->zero ? x->zero[i] : 0);
			sum[i * x->pitch + b] = part;
			start[i * x->pitch + b] = -s->middle * part;
			if (s->look && (b + 1) * s->block >= n && x->zero)
				start[i * x->pitch + b] += (int32_t)((n + 7) / 8 * 8 - n) * x->zero[i] * s->look[0];
		}
}

static void check_dots(const struct ql_gemm_coded *k, struct data *d, int64_t n, int strips, int rows, int fill,
	bool zeros, const uint8_t *look, const char *what)
{
	int64_t lda = (n + 7) / 8 * 8 + rows % 3 * 8, blocks = (n + d->s[0].block - 1) / d->s[0].block,
		pitch = blocks + rows % 2;
	int8_t *a = take((size_t)(lda * rows));
	int32_t *sum = take((size_t)(pitch * rows) * sizeof(int32_t)), zero[QL_STRIP_ROWS];
	int32_t *start = take((size_t)(pitch * rows) * sizeof(int32_t));
	size_t used = (size_t)(rows * strips * QL_STRIP) * sizeof(float);
	float *mine = take(used + 64), *theirs = take(used + 64);
	struct ql_strip_rows x = {a, lda, sum, start, pitch, zeros ? zero : NULL};
	struct ql_strip s[QL_STRIP_TILE];
	uint8_t *codes[QL_STRIP_TILE];

	for (int t = 0; t < strips; t++) {
		codes[t] = codes_to(d, t + 2, n);
		s[t] = d->s[t + 2];
		s[t].codes = codes[t];
		s[t].look = look;
		for (size_t l = 0; look && s[t].bits == 8 && l < (size_t)((n + 7) / 8 * QL_STRIP * 8); l++)
			codes[t][l] &= 63;
	}
	for (int i = 0; i < rows; i++)
		zero[i] = fill == 0           ? (int32_t)(draw() % 256) - 128
			  : fill == 1         ? -128
			  : d->s[0].bits == 4 ? 40000
					      : 127;
	fill_rows(a, rows, lda, n, fill);
	fill_sums(s, &x, rows, n, sum, start);
	k->dots(strips, rows, s, n, &x, mine);
	gemm_coded_ref.dots(strips, rows, s, n, &x, theirs);
	CHECK(!memcmp(mine, theirs, used + 64), "%s: dots of %s, k %d, %d strips, %d rows, fill %d", k->name, what,
		(int)n, strips, rows, fill);
	for (int t = 0; t < strips; t++)
		s[t].scale = NULL;
	if (rows == 1 && !s[0].shift) {
		k->dots(strips, 1, s, n, &x, mine);
		gemm_coded_ref.dots(strips, 1, s, n, &x, theirs);
		CHECK(!memcmp(mine, theirs, used + 64), "%s: sums of %s, k %d, %d strips", k->name, what, (int)n,
			strips);
	}
	for (int t = 0; t < strips; t++)
		free(codes[t]);
	free(a);
	free(sum);
	free(start);
	free(mine);
	free(theirs);
}

/* Codes of `held` bits of n k, in groups, to chunks: bit by bit as strip_codes.h says. */
static uint8_t *to_chunks(const struct ql_strip *s, int held, int64_t n)
{
	int64_t chunks = (n + 31) / 32;
	uint8_t *to = take((size_t)(chunks * held * 64));

	memset(to, 0, (size_t)(chunks * held * 64));
	for (int64_t l = 0; l < (n + 7) / 8 * 8; l++)
		for (int j = 0; j < QL_STRIP; j++) {
			uint8_t *line = to + l / 32 * held * 64 + j * 4 + l % 4;
			int code = s->bits == 8 ? s->codes[l / 4 * 64 + j * 4 + l % 4]
						: s->codes[l / 8 * 64 + j * 4 + l % 4] >> (l & 4) & 15;
			int g = (int)(l / 8 % 4), half = (int)(l & 4);

			if (held > 4) {
				line[g * 64] |= (uint8_t)((code & 15) << half);
				line += 256;
				code >>= 4;
			}
			if (held & 2)
				line[g / 2 * 64] |= (uint8_t)((code & 3) << (2 * (g & 1) + half));
			if (held & 1)
				line[(held & 2) * 64] |= (uint8_t)((code >> (held & 2) & 1) << (g + half));
		}
	return to;
}

/* One row times codes in chunks is the row times the same codes in groups. */
static void check_held(const struct ql_gemm_coded *k, struct data *d, int held, int64_t n, int strips, bool zeros,
	const uint8_t *look, const char *what)
{
	int64_t lda = (n + 7) / 8 * 8;
	int8_t *a = take((size_t)lda);
	int32_t sum[BLOCKS], start[BLOCKS], zero = 77;
	struct ql_strip_rows x = {a, lda, sum, start, BLOCKS, zeros ? &zero : NULL};
	size_t used = (size_t)(strips * QL_STRIP) * sizeof(float);
	float *mine = take(used + 64), *theirs = take(used + 64);
	uint8_t *codes[QL_STRIP_TILE], *chunks[QL_STRIP_TILE];
	struct ql_strip s[QL_STRIP_TILE];

	for (int t = 0; t < strips; t++) {
		codes[t] = codes_to(d, t, n);
		for (int64_t l = 0; l < (n + 7) / 8 * QL_STRIP * d->s[t].bits; l++)
			codes[t][l] &= (uint8_t)(((1 << held) - 1) * (held > 4 ? 1 : 17));
		s[t] = d->s[t];
		s[t].codes = codes[t];
		s[t].look = look;
		chunks[t] = to_chunks(&s[t], held, n);
	}
	fill_rows(a, 1, lda, n, 0);
	fill_sums(s, &x, 1, n, sum, start);
	for (int sums = 0; sums < 2 - (s[0].shift != NULL); sums++) {
		for (int t = 0; t < strips; t++) {
			s[t].scale = sums ? NULL : s[t].scale;
			s[t].codes = codes[t];
			s[t].held = 0;
		}
		gemm_coded_ref.dots(strips, 1, s, n, &x, theirs);
		for (int t = 0; t < strips; t++) {
			s[t].codes = chunks[t];
			s[t].held = held;
		}
		k->dots(strips, 1, s, n, &x, mine);
		CHECK(!memcmp(mine, theirs, used + 64),
			"%s: dots of %d held bits of %s, k %d, %d strips, look %d, sums %d", k->name, held, what,
			(int)n, strips, look != NULL, sums);
	}
	for (int t = 0; t < strips; t++) {
		free(codes[t]);
		free(chunks[t]);
	}
	free(a);
	free(mine);
	free(theirs);
}

/* Values of fields of 4 or 6 bits are those of the same codes in groups. */
static void check_fields(const struct ql_gemm_coded *k, const struct data *d, int bits, int64_t n, const char *what)
{
	size_t used = (size_t)(n * QL_STRIP) * sizeof(float), bytes = (size_t)((n + 7) / 8 * 128);
	float *mine = take(used + 64), *theirs = take(used + 64);
	uint8_t *groups = take(bytes), *fields = take(bytes);
	int each = bits == 4 ? 8 : 4;
	struct ql_strip s = d->s[0];

	memset(groups, 0, bytes);
	memset(fields, 0, bytes);
	for (int64_t l = 0; l < n; l++)
		for (int j = 0; j < QL_STRIP; j++) {
			uint32_t code = s.codes[bits == 4 ? l / 8 * 64 + j * 4 + l % 4 : l / 4 * 64 + j * 4 + l % 4],
				 lane;
			uint8_t *at = fields + l / each * 64 + j * 4;

			code = bits == 4 ? code >> (l & 4) & 15 : code & 63;
			if (bits == 4)
				groups[l / 8 * 64 + j * 4 + l % 4] |= (uint8_t)(code << (l & 4));
			else
				groups[l / 4 * 64 + j * 4 + l % 4] = (uint8_t)code;
			memcpy(&lane, at, 4);
			lane |= code << bits * (l % each) | (bits == 6 ? 0xff000000u : 0);
			memcpy(at, &lane, 4);
		}
	s.codes = groups;
	gemm_coded_ref.floats(&s, 0, n, theirs, QL_STRIP);
	s.codes = fields;
	s.fields = bits;
	k->floats(&s, 0, n, mine, QL_STRIP);
	CHECK(!memcmp(mine, theirs, used + 64), "%s: floats of fields of %d bits, %s, k %d", k->name, bits, what,
		(int)n);
	free(groups);
	free(fields);
	free(mine);
	free(theirs);
}

static void check_form(const struct ql_gemm_coded *k, int bits, enum kind kind, int64_t block)
{
	static const int64_t lengths[] = {1, 3, 4, 5, 8, 9, 15, 31, 33, 64, 100, 255, 256, 257, 264, 513, MOST_K};
	struct data d;
	char what[64];
	uint8_t look[64];

	for (int i = 0; i < 64; i++)
		look[i] = (uint8_t)(i == 15 || i == 63 ? 255 : draw());
	snprintf(what, sizeof(what), "%d bits, kind %d, blocks of %d", bits, (int)kind, (int)block);
	make(&d, bits, kind, block, 0);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		int64_t n = lengths[i];

		if (left_out((int64_t)i + block / 8 + (int64_t)kind, 4))
			continue;
		check_floats(k, &d, 0, n, 16 + (int64_t)i, what);
		if (n < MOST_K)
			check_floats(k, &d, n / 8 * 8, MOST_K - n / 8 * 8, 64, what);
		for (int strips = 1; strips <= QL_STRIPS; strips++)
			check_row(k, &d, n, strips, what);
		for (int rows = 0; rows < QL_STRIP_ROWS * QL_STRIP_TILE * 2 && kind < VALUES; rows++)
			check_dots(k, &d, n, 1 + rows % QL_STRIP_TILE, 1 + rows / QL_STRIP_TILE % QL_STRIP_ROWS, 0,
				(rows / QL_STRIP_TILE + (int)i) % 2, rows < QL_STRIP_ROWS * QL_STRIP_TILE ? NULL : look,
				what);
		if (kind <= ZEROS)
			check_fields(k, &d, bits == 4 ? 4 : 6, n, what);
		for (int held = bits - 3; held < bits && kind < VALUES; held++)
			for (int way = 0; way < 8 && held < 7; way++)
				if (way < 4 || held == 6)
					check_held(
						k, &d, held, n, 1 + way % 2, way / 2 % 2, way < 4 ? NULL : look, what);
	}
	drop(&d);
	for (int fill = 0; fill < 9 && kind < VALUES; fill++) {
		make(&d, bits, kind, block, fill % 3);
		check_dots(k, &d, MOST_K, QL_STRIP_TILE, QL_STRIP_ROWS, fill / 3, fill % 2, NULL, what);
		check_dots(k, &d, MOST_K - 3, QL_STRIP_TILE, QL_STRIP_ROWS, fill / 3, fill % 2, look, what);
		drop(&d);
	}
}

static void test_gemm_coded(const void *kernel)
{
	static const int64_t blocks[] = {8, 16, 24, 32, 40, 128, 256, 320, 608};

	for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
		for (int kind = 0; kind < KINDS; kind++)
			for (int bits = 4; bits <= 8; bits += 4)
				if (bits == 8 || kind < MINI)
					check_form(kernel, bits, (enum kind)kind, blocks[b]);
}

int main(void)
{
	static const struct family families[] = {{"gemm_coded", test_gemm_coded}};

	test_kernels(families, 1);
	return check_end();
}
