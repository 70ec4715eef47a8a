/* SPDX-License-Identifier: MIT
 * Every entry of kernels.def that this CPU can run, against plain loops with 64-bit sums (products) or
 * against the ref entry bit for bit (codes): small and odd sizes, strided operands, extreme codes, long sums,
 * ties, NaN, infinities, denormals. One line per kernel.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/map.h"
#include "tensor/ops/ops.h"
#include "tests/check.h"

#define GUARD 0x5a /* byte that must survive behind every output */

static uint64_t state = 1;

static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static void *take(size_t bytes)
{
	void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);

	if (!p)
		exit(1);
	memset(p, GUARD, (bytes + 127) / 64 * 64);
	return p;
}

static bool guarded(const void *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (((const unsigned char *)p)[i] != GUARD)
			return false;
	return true;
}

/* ---- gemm_i8 ---- */

enum fill { RANDOM, HIGH, LOW, MIXED, FILLS };

static uint8_t code_8(enum fill fill, uint8_t lo, uint8_t hi)
{
	switch (fill) {
	case HIGH:
		return hi;
	case LOW:
		return lo;
	case MIXED:
		return draw() & 1 ? hi : lo;
	default:
		return (uint8_t)draw();
	}
}

static void check_i8(const struct ql_gemm_i8 *k, int rows, int columns, int64_t k4, int64_t gap, enum fill fa,
	enum fill fb)
{
	int64_t lda = 4 * k4 + gap;
	uint8_t *a = take((size_t)(lda * rows));
	int8_t *b = take((size_t)(k4 * 4 * k->nr));
	size_t used = (size_t)(k->mr * k->nr) * sizeof(int32_t);
	int32_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = code_8(fa, 0, 255);
	for (int64_t i = 0; i < k4 * 4 * k->nr; i++)
		b[i] = (int8_t)code_8(fb, 128, 127);
	k->tile(rows, columns, k4, a, lda, b, c);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			int64_t sum = 0;

			for (int64_t l = 0; l < 4 * k4; l++)
				sum += (int64_t)a[i * lda + l] * b[(l / 4 * k->nr + j) * 4 + l % 4];
			good &= (uint32_t)c[i * k->nr + j] == (uint32_t)sum;
		}
	CHECK(good, "%s: rows %d, columns %d, k %lld, fill %d x %d", k->name, rows, columns,
		(long long)(4 * k4), fa, fb);
	CHECK(guarded(c, used, used + 64), "%s: wrote behind its tile", k->name);
	free(a);
	free(b);
	free(c);
}

static void check_dots(const struct ql_gemm_i8 *k, int rows, int64_t steps, int64_t gap, enum fill fa, enum fill fb)
{
	int64_t lda = steps + gap, ldb = steps + 3 * gap, ldc = QL_DOTS_LINES + gap % 5;
	uint8_t *a = take((size_t)(lda * (rows - 1) + steps));
	int8_t *b = take((size_t)(ldb * (QL_DOTS_LINES - 1) + steps));
	size_t used = (size_t)(ldc * (rows - 1) + QL_DOTS_LINES) * sizeof(int32_t);
	int32_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * (rows - 1) + steps; i++)
		a[i] = code_8(fa, 0, 255);
	for (int64_t i = 0; i < ldb * (QL_DOTS_LINES - 1) + steps; i++)
		b[i] = (int8_t)code_8(fb, 128, 127);
	k->dots(rows, steps, a, lda, b, ldb, c, ldc);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < QL_DOTS_LINES; j++) {
			int64_t sum = 0;

			for (int64_t l = 0; l < steps; l++)
				sum += (int64_t)a[i * lda + l] * b[j * ldb + l];
			good &= (uint32_t)c[i * ldc + j] == (uint32_t)sum;
		}
	CHECK(good, "%s: dots of %d rows, %lld bytes, fill %d x %d", k->name, rows, (long long)steps, fa, fb);
	CHECK(guarded(c, used, used + 64), "%s: dots wrote behind its sums", k->name);
	free(a);
	free(b);
	free(c);
}

static void test_dots(const struct ql_gemm_i8 *k)
{
	CHECK(k->dot_rows >= 1, "%s: dots of %d rows", k->name, k->dot_rows);
	for (int rows = 1; rows <= k->dot_rows; rows++)
		for (int64_t steps = QL_DOTS_STEP; steps <= 5 * QL_DOTS_STEP; steps += QL_DOTS_STEP)
			check_dots(k, rows, steps, steps % 3 * 7, RANDOM, RANDOM);
	for (int fa = 0; fa < FILLS; fa++)
		for (int fb = 0; fb < FILLS; fb++)
			check_dots(k, k->dot_rows, 1024, 0, (enum fill)fa, (enum fill)fb);
	check_dots(k, k->dot_rows, 139264, 0, HIGH, LOW); /* wraps */
}

static void test_gemm_i8(const void *kernel)
{
	static const int64_t depth[] = {0, 1, 2, 3, 4, 5, 16, 17, 33, 64};
	const struct ql_gemm_i8 *k = kernel;

	CHECK(k->nr % 16 == 0 && k->mr * k->nr <= QL_GEMM_TILE && k->rate > 0, "%s: tile %d x %d", k->name,
		k->mr, k->nr);
	for (int rows = 1; rows <= k->mr; rows++)
		for (int columns = 1; columns <= k->nr; columns++)
			check_i8(k, rows, columns, depth[(rows * k->nr + columns) % 10], columns % 3 * 7,
				RANDOM, RANDOM);
	for (size_t d = 0; d < sizeof(depth) / sizeof(depth[0]); d++)
		check_i8(k, k->mr, k->nr, depth[d], 5, RANDOM, RANDOM);
	for (int fa = 0; fa < FILLS; fa++)
		for (int fb = 0; fb < FILLS; fb++)
			check_i8(k, k->mr, k->nr, 257, 0, (enum fill)fa, (enum fill)fb);
	/* k = 70 000 stays within 32 bits only without the largest codes; k = 139 264 wraps, as it should */
	check_i8(k, k->mr, 17 < k->nr ? 17 : k->nr, 70000 / 4, 0, HIGH, HIGH);
	check_i8(k, 1, 3, 139264 / 4, 0, HIGH, LOW);
	check_i8(k, k->mr, 3, 139264 / 4, 0, MIXED, MIXED);
	test_dots(k);
}

/* ---- gemm_i16 ---- */

static int16_t code_16(enum fill fill)
{
	switch (fill) {
	case HIGH:
		return INT16_MAX;
	case LOW:
		return INT16_MIN;
	case MIXED:
		return draw() & 1 ? INT16_MAX : INT16_MIN;
	default:
		return (int16_t)draw();
	}
}

static void check_i16(const struct ql_gemm_i16 *k, int rows, int columns, int64_t k4, int64_t gap,
	enum fill fa, enum fill fb)
{
	int64_t lda = 4 * k4 + gap;
	int16_t *a = take((size_t)(lda * rows) * 2), *b = take((size_t)(k4 * 4 * k->nr) * 2);
	size_t used = (size_t)(k->mr * k->nr) * sizeof(int64_t);
	int64_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = code_16(fa);
	for (int64_t i = 0; i < k4 * 4 * k->nr; i++)
		b[i] = code_16(fb);
	k->tile(rows, columns, k4, a, lda, b, c);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			int64_t sum = 0;

			for (int64_t l = 0; l < 4 * k4; l++)
				sum += (int64_t)a[i * lda + l] * b[(l / 4 * k->nr + j) * 4 + l % 4];
			good &= c[i * k->nr + j] == sum;
		}
	CHECK(good, "%s: rows %d, columns %d, k %lld, fill %d x %d", k->name, rows, columns,
		(long long)(4 * k4), fa, fb);
	CHECK(guarded(c, used, used + 64), "%s: wrote behind its tile", k->name);
	free(a);
	free(b);
	free(c);
}

static void test_gemm_i16(const void *kernel)
{
	const struct ql_gemm_i16 *k = kernel;

	CHECK(k->mr * k->nr <= QL_GEMM_TILE && k->rate > 0, "%s: tile %d x %d", k->name, k->mr, k->nr);
	for (int rows = 1; rows <= k->mr; rows++)
		for (int columns = 1; columns <= k->nr; columns++)
			for (int64_t k4 = 0; k4 < 6; k4++)
				check_i16(k, rows, columns, k4, columns % 3, RANDOM, RANDOM);
	for (int fa = 0; fa < FILLS; fa++)
		for (int fb = 0; fb < FILLS; fb++)
			check_i16(k, k->mr, k->nr, 257, 0, (enum fill)fa, (enum fill)fb);
	check_i16(k, k->mr, 3, 70000 / 4, 0, LOW, LOW);
	check_i16(k, k->mr, 3, 139264 / 4, 0, LOW, MIXED);
}

/* ---- taps_i16 ---- */

/* Codes less zero points, or anything that fits. */
static int16_t tap_16(enum fill fill)
{
	return fill == MIXED ? (int16_t)(draw() & 1 ? 255 : -255) : fill == RANDOM ? (int16_t)(draw() % 511 - 255) : code_16(fill);
}

static void check_taps(
	const struct ql_taps_i16 *k, int64_t n, int step, int outputs, int64_t pairs, enum fill fx, enum fill fw)
{
	int64_t reach = 3 * pairs + step * n + QL_TAPS_SLACK + 2;
	int64_t pitch = n + QL_TAPS_SLACK + 16;
	int16_t *x = take((size_t)reach * sizeof(*x)), *w = take((size_t)(2 * outputs * pairs) * sizeof(*w));
	int64_t *at = take((size_t)pairs * sizeof(*at));
	int32_t *to = take((size_t)(outputs * pitch) * sizeof(*to));
	bool good = true;

	for (int64_t i = 0; i < reach; i++)
		x[i] = tap_16(fx);
	for (int64_t l = 0; l < 2 * outputs * pairs; l++)
		w[l] = tap_16(fw);
	for (int64_t l = 0; l < pairs; l++)
		at[l] = (int64_t)(draw() % (uint32_t)(3 * pairs));
	k->sums(n, step, outputs, pairs, x, at, w, to, pitch);
	for (int64_t i = 0; i < n * outputs; i++) {
		const int16_t *by = w + i / n * 2 * pairs;
		int64_t sum = 0;

		for (int64_t l = 0; l < pairs; l++)
			sum += (int64_t)x[at[l] + step * (i % n)] * by[2 * l] + (int64_t)x[at[l] + step * (i % n) + 1] * by[2 * l + 1];
		good &= (uint32_t)to[i / n * pitch + i % n] == (uint32_t)sum;
	}
	CHECK(good, "%s: n %lld, step %d, outputs %d, pairs %lld, fill %d x %d", k->name, (long long)n, step, outputs,
		(long long)pairs, fx, fw);
	for (int64_t o = 1; o <= outputs; o++)
		CHECK(guarded(to, (size_t)(o * pitch - 16) * sizeof(*to), (size_t)(o * pitch) * sizeof(*to)),
			"%s: wrote behind its slack", k->name);
	free(x);
	free(w);
	free(at);
	free(to);
}

static void test_taps_i16(const void *kernel)
{
	const struct ql_taps_i16 *k = kernel;

	CHECK(k->rate > 0, "%s: rate", k->name);
	for (int step = 1; step <= 2; step++) {
		for (int64_t n = 1; n <= 150; n++)
			check_taps(k, n, step, 1 + (int)n % QL_TAPS_OUTPUTS, 1 + n % 13, RANDOM, RANDOM);
		for (int outputs = 1; outputs <= QL_TAPS_OUTPUTS; outputs++)
			check_taps(k, 1000, step, outputs, 100, RANDOM, RANDOM);
		for (int fx = 0; fx < FILLS; fx++)
			for (int fw = 0; fw < FILLS; fw++)
				check_taps(k, 77, step, 4, 6, (enum fill)fx, (enum fill)fw);
	}
}

/* ---- gemm_b1 ---- */

static uint64_t word(enum fill fill)
{
	switch (fill) {
	case HIGH:
		return UINT64_MAX;
	case LOW:
		return 0;
	case MIXED:
		return draw() & 1 ? UINT64_MAX : 0;
	default:
		return (uint64_t)draw() << 40 ^ (uint64_t)draw() << 20 ^ draw();
	}
}

static void check_b1(
	const struct ql_gemm_b1 *k, int rows, int columns, int64_t words, enum fill fa, enum fill fb)
{
	int64_t lda = words + 3;
	uint64_t *a = take((size_t)(lda * rows) * 8), *b = take((size_t)(words * k->nr) * 8);
	size_t used = (size_t)(k->mr * k->nr) * sizeof(int32_t);
	int32_t *c = take(used + 64);
	bool good = true;

	for (int64_t i = 0; i < lda * rows; i++)
		a[i] = word(fa);
	for (int64_t i = 0; i < words * k->nr; i++)
		b[i] = word(fb);
	k->tile(rows, columns, words, a, lda, b, c);
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			int64_t n = 0;

			for (int64_t w = 0; w < words; w++)
				for (uint64_t x = a[i * lda + w] ^ b[w * k->nr + j]; x; x &= x - 1)
					n++;
			good &= c[i * k->nr + j] == n;
		}
	CHECK(good, "%s: rows %d, columns %d, words %lld, fill %d x %d", k->name, rows, columns,
		(long long)words, fa, fb);
	CHECK(guarded(c, used, used + 64), "%s: wrote behind its tile", k->name);
	free(a);
	free(b);
	free(c);
}

static void test_gemm_b1(const void *kernel)
{
	static const int64_t words[] = {0, 1, 2, 3, 30, 31, 32, 61, 62, 63, 200};
	const struct ql_gemm_b1 *k = kernel;

	CHECK(k->mr * k->nr <= QL_GEMM_TILE && k->rate > 0, "%s: tile %d x %d", k->name, k->mr, k->nr);
	for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
		for (int rows = 1; rows <= k->mr; rows++)
			check_b1(k, rows, 1 + (int)(draw() % (unsigned)k->nr), words[w], RANDOM, RANDOM);
		for (int fa = 0; fa < FILLS; fa++)
			for (int fb = 0; fb < FILLS; fb++)
				check_b1(k, k->mr, k->nr, words[w], (enum fill)fa, (enum fill)fb);
	}
	check_b1(k, 1, 2, 2176, HIGH, LOW);
}

/* ---- quantize ---- */

struct codes {
	int32_t lo, hi;
	int bytes;
};

static const struct codes ranges[] = {{-127, 127, 1}, {-128, 127, 1}, {0, 255, 1}, {-7, 7, 1}, {0, 15, 1},
	{-32767, 32767, 2}, {-32768, 32767, 2}, {0, 65535, 2}};
static const float scales[] = {1, 0.5f, 0.1f, 0.00214854861f, 3e-5f, 1e-38f, FLT_MIN, 1e-40f, 1e30f, FLT_MAX};
static const float specials[] = {0, -0.0f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 126.5f, 127.5f, -127.5f, -128.5f,
	254.5f, 255.5f, 32766.5f, 32767.5f, 65534.5f, 0.273939937f, FLT_MIN, -FLT_MIN, 1e-45f, -1e-45f,
	FLT_MAX, -FLT_MAX, 1e-40f, 1e9f, -1e9f, 0x1p31f, -0x1p31f, 0x1p40f};

/* Values around the codes' range, some of them special, and with `bad` also NaN and infinities. */
static float value(const struct codes *r, float scale, bool bad)
{
	static const float non_finite[] = {NAN, -NAN, INFINITY, -INFINITY};
	uint32_t kind = draw() % 8;

	if (bad && kind == 0)
		return non_finite[draw() % 4];
	if (kind < 3)
		return specials[draw() % (sizeof(specials) / sizeof(specials[0]))];
	if (kind < 5) /* near a tie */
		return ((float)(r->lo + (int32_t)(draw() % (uint32_t)(r->hi - r->lo + 1))) + 0.5f) * scale;
	return (float)((double)r->lo + ((double)r->hi - (double)r->lo) * (double)draw() / 0x1p31) * 1.2f *
	       scale;
}

struct quantize_case {
	const struct codes *r;
	int64_t n;
	int shift; /* bytes by which the output is off a 64-byte line */
	bool each, zero, stream, bad;
	float scale;
};

static bool run_quantize(const struct ql_quantize *k, const struct quantize_case *q,
	const struct ql_affine *p, const float *x, void *out)
{
	if (q->r->bytes == 1)
		return k->to_8(p, x, q->n, out);
	return k->to_16(p, x, q->n, out);
}

static void check_quantize(
	const struct ql_quantize *k, const struct ql_quantize *ref, const struct quantize_case *q)
{
	size_t n = (size_t)q->n, used = n * (size_t)q->r->bytes;
	float *x = take(n * 4 + 4), *scale = take(n * 4 + 4);
	int32_t *zero = take(n * 4 + 4);
	char *mine = take(used + 256), *theirs = take(used + 256);
	struct ql_affine p = {.scale = scale,
		.zero = q->zero ? zero : NULL,
		.each = q->each,
		.stream = q->stream,
		.lo = q->r->lo,
		.hi = q->r->hi};
	bool bad = false, a, b;

	for (size_t i = 0; i < n + 1; i++) {
		scale[i] = q->each && i ? scales[draw() % (sizeof(scales) / sizeof(scales[0]))] : q->scale;
		zero[i] = q->r->lo + (int32_t)(draw() % (uint32_t)(q->r->hi - q->r->lo + 1));
		x[i] = value(q->r, scale[q->each ? i : 0], q->bad);
		bad |= i < n && !isfinite(x[i]);
	}
	a = run_quantize(k, q, &p, x, mine + q->shift);
	b = run_quantize(ref, q, &p, x, theirs + q->shift);
	CHECK(!memcmp(mine, theirs, used + 192),
		"%s: n %lld, codes %d..%d, scale %g, each %d, zero %d, stream %d, shift %d", k->name,
		(long long)q->n, q->r->lo, q->r->hi, (double)q->scale, q->each, q->zero, q->stream, q->shift);
	CHECK(a == bad && b == bad, "%s: says %d, there are non-finite values: %d", k->name, a, bad);
	CHECK(guarded(mine, 0, (size_t)q->shift) && guarded(mine, used + (size_t)q->shift, used + 192),
		"%s: wrote outside", k->name);
	free(x);
	free(scale);
	free(zero);
	free(mine);
	free(theirs);
}

/* The ref entry against the formula in double: the quotient of two floats rounded through double is exact. */
static void check_quantize_ref(const struct ql_quantize *k, const struct codes *r, float scale)
{
	struct ql_affine p = {.scale = &scale, .lo = r->lo, .hi = r->hi};

	for (int i = 0; i < 2000; i++) {
		float x = value(r, scale, true);
		int32_t zero = r->lo + (int32_t)(draw() % (uint32_t)(r->hi - r->lo + 1)), got;
		double code = nearbyint((double)(float)((double)x / (double)scale)) + zero;
		uint16_t wide;
		uint8_t narrow;

		p.zero = &zero;
		if (r->bytes == 1) {
			k->to_8(&p, &x, 1, &narrow);
			got = r->lo < 0 ? (int8_t)narrow : narrow;
		} else {
			k->to_16(&p, &x, 1, &wide);
			got = r->lo < 0 ? (int16_t)wide : wide;
		}
		code = isnan(x) ? zero : code < r->lo ? r->lo : code > r->hi ? r->hi : code;
		CHECK(got == (int32_t)code, "%s: x %a, scale %a, zero %d: wanted %g, got %d", k->name,
			(double)x, (double)scale, zero, code, got);
	}
}

extern const struct ql_quantize quantize_ref;
extern const struct ql_dequantize dequantize_ref;

static void test_quantize(const void *kernel)
{
	const struct ql_quantize *k = kernel;

	for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++)
		for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
			struct quantize_case q = {.r = &ranges[r], .scale = scales[s]};

			for (q.n = 0; q.n < 140; q.n++) {
				q.each = q.n % 2;
				q.zero = q.n % 3;
				q.stream = q.n % 5 > 2;
				q.bad = q.n % 7 > 3;
				q.shift = (int)(q.n * 14) % 64;
				check_quantize(k, &quantize_ref, &q);
			}
			q.n = 1000;
			for (int flags = 0; flags < 16; flags++) {
				q.each = flags & 1;
				q.zero = flags & 2;
				q.stream = flags & 4;
				q.bad = flags & 8;
				check_quantize(k, &quantize_ref, &q);
			}
			if (k == &quantize_ref)
				check_quantize_ref(k, &ranges[r], scales[s]);
		}
}

/* ---- dequantize ---- */

enum { FROM_I8, FROM_U8, FROM_I16, FROM_U16, FROMS };

static void run_dequantize(const struct ql_dequantize *k, int from, const struct ql_affine *p, const void *q,
	int64_t n, float *out)
{
	switch (from) {
	case FROM_I8:
		k->from_i8(p, q, n, out);
		break;
	case FROM_U8:
		k->from_u8(p, q, n, out);
		break;
	case FROM_I16:
		k->from_i16(p, q, n, out);
		break;
	default:
		k->from_u16(p, q, n, out);
	}
}

static int32_t code_at(int from, const void *q, int64_t i)
{
	switch (from) {
	case FROM_I8:
		return ((const int8_t *)q)[i];
	case FROM_U8:
		return ((const uint8_t *)q)[i];
	case FROM_I16:
		return ((const int16_t *)q)[i];
	default:
		return ((const uint16_t *)q)[i];
	}
}

static void check_dequantize(const struct ql_dequantize *k, int from, int64_t n, int shift, bool each,
	bool has_zero, bool stream, float one)
{
	static const int32_t lo[] = {-128, 0, -32768, 0}, hi[] = {127, 255, 32767, 65535};
	size_t count = (size_t)n;
	uint8_t *q = take(2 * count + 2);
	float *scale = take(4 * count + 4), *out = take(4 * count + 256);
	int32_t *zero = take(4 * count + 4);
	struct ql_affine p = {.scale = scale, .zero = has_zero ? zero : NULL, .each = each, .stream = stream};
	bool good = true;

	for (size_t i = 0; i < 2 * count; i++)
		q[i] = (uint8_t)(n > 60000 ? (i / 2) >> (i % 2 * 8) : draw());
	for (size_t i = 0; i <= count; i++) {
		scale[i] = each && i ? scales[draw() % (sizeof(scales) / sizeof(scales[0]))] : one;
		zero[i] = lo[from] + (int32_t)(draw() % (uint32_t)(hi[from] - lo[from] + 1));
	}
	run_dequantize(k, from, &p, q, n, out + shift);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = each ? i : 0;
		float wanted = (float)((double)(code_at(from, q, i) - (has_zero ? zero[at] : 0)) *
				       (double)scale[at]);

		good &= !memcmp(&wanted, &out[shift + i], sizeof(wanted)); /* bits: zeros have signs */
	}
	CHECK(good, "%s: from %d, n %lld, shift %d, each %d, zero %d, stream %d, scale %g", k->name, from,
		(long long)n, shift, each, has_zero, stream, (double)one);
	CHECK(guarded(out, 0, (size_t)shift * 4) &&
			guarded(out, ((size_t)shift + count) * 4, 4 * count + 192),
		"%s: wrote outside", k->name);
	free(q);
	free(scale);
	free(out);
	free(zero);
}

static void test_dequantize(const void *kernel)
{
	for (int from = 0; from < FROMS; from++)
		for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
			for (int64_t n = 0; n < 70; n++)
				check_dequantize(kernel, from, n, (int)(n * 5 % 16), n % 2, n % 3 > 0,
					n % 5 > 2, scales[s]);
			for (int flags = 0; flags < 8; flags++)
				check_dequantize(kernel, from, 1000, flags, flags & 1, flags & 2, flags & 4,
					scales[s]);
			check_dequantize(kernel, from, 65536, 0, false, s % 2, false, scales[s]);
		}
}

/* ---- gemm_f32 ---- */

static void fill_f32(float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)draw() / 0x1p30f - 1;
}

/* c (m, n) against sums in double; `before` is what was added to. */
static bool close_f32(const float *c, int64_t ldc, int64_t m, int64_t n, int64_t depth, const float *a,
	int64_t a_row, int64_t a_col, const float *b, int64_t b_row, int64_t b_col, double before)
{
	bool good = true;

	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = before, size = fabs(before);

			for (int64_t l = 0; l < depth; l++) {
				double x =
					(double)a[i * a_row + l * a_col] * (double)b[l * b_row + j * b_col];

				sum += x;
				size += fabs(x);
			}
			good &= fabs((double)c[i * ldc + j] - sum) <= (double)(depth + 1) * 0x1p-24 * size;
		}
	return good;
}

/* Each sum is that of a plain loop, bit for bit, from `before` on. */
static bool in_order_f32(const float *c, int64_t ldc, int rows, int columns, int64_t depth, const float *a, int64_t lda,
	const float *b, int64_t ldb, float before)
{
	bool good = true;

	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			float sum = before;

			for (int64_t l = 0; l < depth; l++)
				sum += a[i * lda + l] * b[l * ldb + j];
			good &= !memcmp(&sum, &c[i * ldc + j], sizeof(sum));
		}
	return good;
}

static void check_tile_f32(const struct ql_gemm_f32 *k, int rows, int columns, int64_t depth, bool add)
{
	int64_t lda = depth + 3, ldb = columns + 5, ldc = columns + 2;
	float *a = take((size_t)(lda * rows) * 4), *b = take((size_t)(ldb * depth) * 4);
	float *c = take((size_t)(ldc * rows) * 4);
	bool kept = true;

	/* nothing beyond the columns is read: it would show as NaN */
	for (int64_t i = 0; i < ldb * depth; i++)
		b[i] = NAN;
	for (int64_t l = 0; l < depth; l++)
		fill_f32(b + l * ldb, columns);
	fill_f32(a, lda * rows);
	for (int i = 0; i < rows; i++)
		for (int j = 0; add && j < columns; j++)
			c[i * ldc + j] = 0.375f;
	k->tile(rows, columns, depth, a, lda, b, ldb, c, ldc, add);
	CHECK(close_f32(c, ldc, rows, columns, depth, a, lda, 1, b, ldb, 1, add ? 0.375 : 0),
		"%s: %d x %d x %lld, add %d", k->name, rows, columns, (long long)depth, add);
	CHECK(!k->ordered || in_order_f32(c, ldc, rows, columns, depth, a, lda, b, ldb, add ? 0.375f : 0),
		"%s: %d x %d x %lld, add %d: other bits than a plain loop", k->name, rows, columns, (long long)depth, add);
	for (int i = 0; i < rows; i++)
		kept &= guarded(c + i * ldc + columns, 0, 8);
	CHECK(kept, "%s: %d x %d: wrote beyond the columns", k->name, rows, columns);
	free(a);
	free(b);
	free(c);
}

static void check_whole_f32(
	const struct ql_gemm_f32 *k, int64_t m, int64_t n, int64_t depth, bool ta, bool tb)
{
	int64_t lda = (ta ? m : depth) + 3, ldb = (tb ? depth : n) + 1, ldc = n + 2;
	float *a = take((size_t)(lda * (ta ? depth : m)) * 4),
	      *b = take((size_t)(ldb * (tb ? n : depth)) * 4);
	float *c = take((size_t)(ldc * m) * 4);

	fill_f32(a, lda * (ta ? depth : m));
	fill_f32(b, ldb * (tb ? n : depth));
	k->whole(m, n, depth, a, ta ? 1 : lda, ta ? lda : 1, b, tb ? 1 : ldb, tb ? ldb : 1, c, ldc);
	CHECK(close_f32(c, ldc, m, n, depth, a, ta ? 1 : lda, ta ? lda : 1, b, tb ? 1 : ldb, tb ? ldb : 1, 0),
		"%s: %lld x %lld x %lld, %d %d", k->name, (long long)m, (long long)n, (long long)depth, ta,
		tb);
	free(a);
	free(b);
	free(c);
}

static void test_gemm_f32(const void *kernel)
{
	static const int64_t size[] = {1, 2, 3, 16, 17, 63, 65, 127, 129};
	const struct ql_gemm_f32 *k = kernel;
	const int sizes = sizeof(size) / sizeof(size[0]);

	for (int i = 0; k->whole && i < sizes * sizes; i++)
		for (int t = 0; t < 4; t++)
			check_whole_f32(k, size[i % sizes], size[i / sizes],
				size[(i + 2 * (i / sizes)) % sizes], t & 1, t & 2);
	for (int rows = 1; k->tile && rows <= k->mr; rows++)
		for (int columns = 1; columns <= k->nr; columns++)
			for (int add = 0; add < 2; add++)
				check_tile_f32(k, rows, columns, size[(rows + columns) % sizes], add);
	if (k->tile) {
		CHECK(k->nr <= 64 && k->rate > 0, "%s: tile %d x %d", k->name, k->mr, k->nr);
		check_tile_f32(k, 1, 1, 20000, false);
	}
}

/* ---- simd ---- */

static bool same(float a, float b)
{
	return !memcmp(&a, &b, sizeof(a)) || (isnan(a) && isnan(b));
}

/* The elementwise ops' loops: the variant against the portable one. */
static void test_simd(const void *kernel)
{
	const struct ql_simd *k = kernel;
	float in[QL_MAP_MAX][300], mine[300], theirs[300];
	const float *const operands[QL_MAP_MAX] = {in[0], in[1], in[2]};
	const struct ql_map_args args = {.p = {-0.5, 0.75, 1, 1}};
	const struct codes range = {-10, 10, 1};

	for (int i = 0; i < 300 * QL_MAP_MAX; i++)
		in[i / 300][i % 300] = value(&range, 1, true);
	for (int i = 0; ql_ops[i]; i++) {
		const struct ql_map *map = ql_ops[i]->impl;

		if (ql_ops[i]->eval != ql_map_eval || !map->f32)
			continue; /* bit operations have no float loop */
		for (int64_t n = 0; n < 300; n = n < 40 ? n + 1 : n + 37) {
			bool good = true;

			map->f32[k->variant](n, mine, operands, &args);
			map->f32[0](n, theirs, operands, &args);
			for (int64_t j = 0; j < n; j++)
				good &= same(mine[j], theirs[j]);
			CHECK(good, "%s: %s, n %lld", k->name, ql_ops[i]->doc.name, (long long)n);
		}
	}
}

/* ---- all ---- */

static void missing(const char *name, uint32_t needs)
{
	static const char *const feature[] = {"AVX2", "AVX-VNNI", "AVX-512", "AVX-512-VNNI",
		"AVX-512-VPOPCNTDQ", "AVX-512-BF16", "AMX-INT8"};
	char why[200] = "this CPU has no";

	for (int i = 0; i < (int)(sizeof(feature) / sizeof(feature[0])); i++)
		if (needs & ~ql_cpu()->features & 1u << i)
			snprintf(why + strlen(why), sizeof(why) - strlen(why), " %s", feature[i]);
	SKIP(name, why);
}

static void test_kernel(const char *family, const char *isa, const void *kernel)
{
#define F(name) {#name, test_##name},
	static const struct {
		const char *family;
		void (*test)(const void *kernel);
	} tests[] = {QL_KERNEL_FAMILIES(F)};
#undef F

	CASE("%s_%s", family, isa);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		if (!strcmp(tests[i].family, family))
			tests[i].test(kernel);
	printf("%s_%s: %s\n", family, isa, check.bad ? "failed" : "passed");
}

static bool can_run(const struct ql_gemm_f32 *k)
{
	return !k->available || k->available();
}

extern const struct ql_gemm_i8 gemm_i8_evex;

int main(void)
{
	uint32_t evex = QL_CPU_AVX512 | QL_CPU_AVX512VNNI;

	setenv("QUOLL_BLAS", "libblas.so.3", 0);
	for (int i = 0; i < ql_kernel_count; i++) {
		const struct ql_kernel_entry *e = &ql_kernel_entries[i];
		char name[64];

		snprintf(name, sizeof(name), "%s_%s", e->family, e->isa);
		if (e->needs & ~ql_cpu()->features)
			missing(name, e->needs);
		else if (!strcmp(e->family, "gemm_f32") && !can_run(e->kernel))
			SKIP(name, "no CBLAS is installed");
		else
			test_kernel(e->family, e->isa, e->kernel);
	}
	if (evex & ~ql_cpu()->features)
		missing("gemm_i8_avxvnni in AVX-512 encoding", evex);
	else
		test_kernel("gemm_i8", "avxvnni in AVX-512 encoding", &gemm_i8_evex);
	return check_end();
}
