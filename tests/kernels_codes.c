/* SPDX-License-Identifier: MIT
 * Codes and elementwise loops: every entry of kernels.def that this CPU can run, against plain loops or
 * against the ref entry bit for bit: ties, NaN, infinities, denormals, ends of the codes. One line per
 * kernel.
 */
#include <float.h>
#include <math.h>

#include "tensor/loops/map.h"
#include "tensor/ops/ops.h"
#include "tests/tools/kernels.h"

/* ---- quantize ---- */

struct codes {
	int32_t lo, hi;
	int bytes;
};

static const struct codes ranges[] = {{-127, 127, 1}, {-128, 127, 1}, {0, 255, 1}, {-7, 7, 1}, {0, 15, 1},
	{-32767, 32767, 2}, {-32768, 32767, 2}, {0, 65535, 2}};
static const float scales[] = {1, 0.5f, 0.1f, 0.00214854861f, 3e-5f, 1e-38f, FLT_MIN, 1e-40f, 1e30f, FLT_MAX};
static const float specials[] = {0, -0.0f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f, 126.5f, 127.5f, -127.5f, -128.5f, 254.5f,
	255.5f, 32766.5f, 32767.5f, 65534.5f, 0.273939937f, FLT_MIN, -FLT_MIN, 1e-45f, -1e-45f, FLT_MAX, -FLT_MAX,
	1e-40f, 1e9f, -1e9f, 0x1p31f, -0x1p31f, 0x1p40f};

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
	return (float)((double)r->lo + ((double)r->hi - (double)r->lo) * (double)draw() / 0x1p31) * 1.2f * scale;
}

struct quantize_case {
	const struct codes *r;
	int64_t n;
	int shift; /* bytes by which the output is off a 64-byte line */
	bool each, zero, stream, bad;
	int log; /* blocks; 0: none */
	float scale;
};

static bool run_quantize(const struct ql_quantize *k, const struct quantize_case *q, const struct ql_affine *p,
	const float *x, void *out)
{
	if (q->r->bytes == 1)
		return k->to_8(p, x, q->n, out);
	return k->to_16(p, x, q->n, out);
}

static void check_quantize(const struct ql_quantize *k, const struct ql_quantize *ref, const struct quantize_case *q)
{
	size_t n = (size_t)q->n, used = n * (size_t)q->r->bytes;
	float *x = take(n * 4 + 4), *scale = take(n * 4 + 4);
	int32_t *zero = take(n * 4 + 4);
	char *mine = take(used + 256), *theirs = take(used + 256);
	struct ql_affine p = {.scale = scale,
		.zero = q->zero ? zero : NULL,
		.each = q->each,
		.log_block = q->log,
		.stream = q->stream,
		.lo = q->r->lo,
		.hi = q->r->hi};
	bool bad = false, a, b;

	for (size_t i = 0; i < n + 1; i++) {
		scale[i] = (q->each || q->log) && i ? scales[draw() % (sizeof(scales) / sizeof(scales[0]))] : q->scale;
		zero[i] = q->r->lo + (int32_t)(draw() % (uint32_t)(q->r->hi - q->r->lo + 1));
		x[i] = value(q->r, scale[q->each ? i : q->log ? i >> q->log : 0], q->bad);
		bad |= i < n && !isfinite(x[i]);
	}
	a = run_quantize(k, q, &p, x, mine + q->shift);
	b = run_quantize(ref, q, &p, x, theirs + q->shift);
	CHECK(!memcmp(mine, theirs, used + 192),
		"%s: n %lld, codes %d..%d, scale %g, each %d, blocks %d, zero %d, stream %d, shift %d", k->name,
		(long long)q->n, q->r->lo, q->r->hi, (double)q->scale, q->each, q->log, q->zero, q->stream, q->shift);
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
		CHECK(got == (int32_t)code, "%s: x %a, scale %a, zero %d: wanted %g, got %d", k->name, (double)x,
			(double)scale, zero, code, got);
	}
}

extern const struct ql_quantize quantize_ref;
extern const struct ql_dequantize dequantize_ref;

/* `blocks` runs of n values against plain loops; `bad` in 8: the share of values that are not finite. */
static void check_ranges(const struct ql_quantize *k, int64_t n, int64_t blocks, uint32_t bad)
{
	static const float non_finite[] = {NAN, -NAN, INFINITY, -INFINITY};
	size_t count = (size_t)(n * blocks);
	float *x = take(count * 4 + 4), *lo = take((size_t)blocks * 4 + 64), *hi = take((size_t)blocks * 4 + 64);
	bool good = true;

	for (size_t i = 0; i < count; i++) {
		x[i] = value(&ranges[0], scales[draw() % 3], false);
		if (draw() % 8 < bad)
			x[i] = non_finite[draw() % 4];
	}
	k->ranges(x, n, blocks, lo, hi);
	for (int64_t b = 0; b < blocks; b++) {
		float low = INFINITY, high = -INFINITY;

		for (int64_t i = 0; i < n; i++)
			if (isfinite(x[b * n + i])) {
				low = fminf(low, x[b * n + i]);
				high = fmaxf(high, x[b * n + i]);
			}
		low += 0.0f;
		high += 0.0f;
		good &= !memcmp(&low, &lo[b], sizeof(low)) && !memcmp(&high, &hi[b], sizeof(high));
	}
	CHECK(good, "%s: ranges of %lld runs of %lld, %u in 8 not finite", k->name, (long long)blocks, (long long)n,
		bad);
	CHECK(guarded(lo, (size_t)blocks * 4, (size_t)blocks * 4 + 64), "%s: wrote outside", k->name);
	free(x);
	free(lo);
	free(hi);
}

static void check_signs(const struct ql_quantize *k, int64_t n)
{
	size_t bytes = (size_t)(n + 7) / 8;
	float *x = take((size_t)n * 4 + 4);
	uint8_t *out = take(bytes + 64);
	bool good = true;

	for (int64_t i = 0; i < n; i++)
		x[i] = value(&ranges[0], 1, true);
	k->to_signs(x, n, out);
	for (size_t i = 0; i < bytes * 8; i++)
		good &= (out[i / 8] >> i % 8 & 1) == (i < (size_t)n && !(x[i] < 0));
	CHECK(good, "%s: signs of %lld", k->name, (long long)n);
	CHECK(guarded(out, bytes, bytes + 64), "%s: wrote outside", k->name);
	free(x);
	free(out);
}

static void test_runs(const struct ql_quantize *k)
{
	static const int64_t lengths[] = {1, 2, 7, 8, 15, 16, 17, 31, 32, 33, 48, 64, 100, 128, 1000};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		for (int64_t blocks = 0; blocks < 40; blocks = blocks < 18 ? blocks + 1 : blocks + 7)
			for (uint32_t bad = 0; bad <= 8; bad += bad ? 7 : 1)
				check_ranges(k, lengths[i], blocks, bad);
	for (int64_t n = 0; n < 70; n++)
		check_signs(k, n);
	check_signs(k, 1003);
}

/* Quotients next to ties, under scales of any digits: one that is rounded to the wrong side is another code. */
static void check_ties(const struct ql_quantize *k, const struct codes *r)
{
	float x[1024], scale;
	uint16_t mine[1024] = {0}, theirs[1024] = {0};
	struct quantize_case q = {.r = r, .n = 1024};
	struct ql_affine p = {.scale = &scale, .lo = r->lo, .hi = r->hi};

	for (int s = 0; s < 200; s++) {
		scale = ldexpf(1.0f + (float)(draw() % (1u << 23)) / 0x1p23f, (int)(draw() % 126) - 63);
		for (int i = 0; i < 1024; i++) {
			x[i] = ((float)(r->lo + (int32_t)(draw() % (uint32_t)(r->hi - r->lo + 1))) + 0.5f) * scale;
			for (uint32_t away = draw() % 4; away; away--)
				x[i] = nextafterf(x[i], i % 2 ? INFINITY : -INFINITY);
		}
		run_quantize(k, &q, &p, x, mine);
		run_quantize(&quantize_ref, &q, &p, x, theirs);
		CHECK(!memcmp(mine, theirs, sizeof(mine)), "%s: ties of codes %d..%d, scale %a", k->name, r->lo, r->hi,
			(double)scale);
	}
}

static void test_quantize(const void *kernel)
{
	const struct ql_quantize *k = kernel;

	test_runs(k);
	for (size_t r = 0; r < sizeof(ranges) / sizeof(ranges[0]); r++) {
		check_ties(k, &ranges[r]);
		for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
			struct quantize_case q = {.r = &ranges[r], .scale = scales[s]};

			for (q.n = 0; q.n < 140; q.n++) {
				q.each = q.n % 2;
				q.log = q.n % 4 == 2 ? QL_LOG_BLOCK + (int)(q.n % 3) : 0;
				q.zero = q.n % 3;
				q.stream = q.n % 5 > 2;
				q.bad = q.n % 7 > 3;
				q.shift = (int)(q.n * 14) % 64;
				check_quantize(k, &quantize_ref, &q);
			}
			q.n = 1000;
			for (int flags = 0; flags < 32; flags++) {
				q.each = flags & 1;
				q.log = !q.each && flags & 16 ? QL_LOG_BLOCK + flags % 3 : 0;
				q.shift = flags & 16 ? 0 : (int)(q.n * 14) % 64;
				q.zero = flags & 2;
				q.stream = flags & 4;
				q.bad = flags & 8;
				check_quantize(k, &quantize_ref, &q);
			}
			if (k == &quantize_ref)
				check_quantize_ref(k, &ranges[r], scales[s]);
		}
	}
}

/* ---- dequantize ---- */

enum { FROM_I8, FROM_U8, FROM_I16, FROM_U16, FROMS };

static void run_dequantize(
	const struct ql_dequantize *k, int from, const struct ql_affine *p, const void *q, int64_t n, float *out)
{
	switch (from) {
	case FROM_I8: k->from_i8(p, q, n, out); break;
	case FROM_U8: k->from_u8(p, q, n, out); break;
	case FROM_I16: k->from_i16(p, q, n, out); break;
	default: k->from_u16(p, q, n, out);
	}
}

static int32_t code_at(int from, const void *q, int64_t i)
{
	switch (from) {
	case FROM_I8: return ((const int8_t *)q)[i];
	case FROM_U8: return ((const uint8_t *)q)[i];
	case FROM_I16: return ((const int16_t *)q)[i];
	default: return ((const uint16_t *)q)[i];
	}
}

static void check_dequantize(const struct ql_dequantize *k, int from, int64_t n, int shift, bool each, int log,
	bool has_zero, bool stream, float one)
{
	static const int32_t lo[] = {-128, 0, -32768, 0}, hi[] = {127, 255, 32767, 65535};
	size_t count = (size_t)n;
	uint8_t *q = take(2 * count + 2);
	float *scale = take(4 * count + 4), *out = take(4 * count + 256);
	int32_t *zero = take(4 * count + 4);
	struct ql_affine p = {
		.scale = scale, .zero = has_zero ? zero : NULL, .each = each, .log_block = log, .stream = stream};
	bool good = true;

	for (size_t i = 0; i < 2 * count; i++)
		q[i] = (uint8_t)(n > 60000 ? (i / 2) >> (i % 2 * 8) : draw());
	for (size_t i = 0; i <= count; i++) {
		scale[i] = (each || log) && i ? scales[draw() % (sizeof(scales) / sizeof(scales[0]))] : one;
		zero[i] = lo[from] + (int32_t)(draw() % (uint32_t)(hi[from] - lo[from] + 1));
	}
	run_dequantize(k, from, &p, q, n, out + shift);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = each ? i : log ? i >> log : 0;
		float wanted = (float)((double)(code_at(from, q, i) - (has_zero ? zero[at] : 0)) * (double)scale[at]);

		good &= !memcmp(&wanted, &out[shift + i], sizeof(wanted)); /* bits: zeros have signs */
	}
	CHECK(good, "%s: from %d, n %lld, shift %d, each %d, blocks %d, zero %d, stream %d, scale %g", k->name, from,
		(long long)n, shift, each, log, has_zero, stream, (double)one);
	CHECK(guarded(out, 0, (size_t)shift * 4) && guarded(out, ((size_t)shift + count) * 4, 4 * count + 192),
		"%s: wrote outside", k->name);
	free(q);
	free(scale);
	free(out);
	free(zero);
}

static void check_from_signs(const struct ql_dequantize *k, int64_t n, float scale)
{
	size_t bytes = (size_t)(n + 7) / 8, count = (size_t)n;
	uint8_t *q = take(bytes + 4);
	float *out = take(count * 4 + 64);
	bool good = true;

	for (size_t i = 0; i < bytes; i++)
		q[i] = (uint8_t)draw();
	k->from_signs(scale, q, n, out);
	for (size_t i = 0; i < count; i++) {
		float wanted = q[i / 8] >> i % 8 & 1 ? scale : -scale;

		good &= !memcmp(&wanted, &out[i], sizeof(wanted));
	}
	CHECK(good, "%s: signs of %lld, scale %g", k->name, (long long)n, (double)scale);
	CHECK(guarded(out, count * 4, count * 4 + 64), "%s: wrote outside", k->name);
	free(q);
	free(out);
}

static void test_dequantize(const void *kernel)
{
	for (int from = 0; from < FROMS; from++)
		for (size_t s = 0; s < sizeof(scales) / sizeof(scales[0]); s++) {
			for (int64_t n = 0; n < 70; n++)
				check_dequantize(kernel, from, n, (int)(n * 5 % 16), n % 2, n % 4 ? 0 : QL_LOG_BLOCK,
					n % 3 > 0, n % 5 > 2, scales[s]);
			for (int flags = 0; flags < 8; flags++) {
				check_dequantize(
					kernel, from, 1000, flags, flags & 1, 0, flags & 2, flags & 4, scales[s]);
				check_dequantize(kernel, from, 1000, flags & 1, false, QL_LOG_BLOCK + flags % 3,
					flags & 2, flags & 4, scales[s]);
			}
			check_dequantize(kernel, from, 65536, 0, false, 0, s % 2, false, scales[s]);
		}
	for (int64_t n = 0; n < 70; n++)
		check_from_signs(kernel, n, scales[n % 10]);
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

/* ---- limit ---- */

static void check_passes(const struct ql_limit *k, int64_t n)
{
	size_t bytes = (size_t)n;
	uint8_t *p = take(4 * bytes), *q = take(bytes);
	uint32_t all = 0, word;
	int32_t x;
	bool copied, filled, narrowed = true;

	for (size_t i = 0; i < 4 * bytes; i++)
		p[i] = (uint8_t)(draw() & (n > 10000 ? 0x80 : 0xff)); /* else the or has all bits */
	for (int64_t i = 0; i < n; i += 4) {
		memcpy(&word, p + i, 4);
		all |= word;
	}
	CHECK(k->read(p, n) == all, "%s: read of %lld", k->name, (long long)n);
	k->copy(p, q, n);
	copied = !memcmp(p, q, bytes);
	k->fill(q, n);
	filled = true;
	for (int64_t i = 0; i < n; i++)
		filled &= q[i] == 1;
	for (int64_t i = 0; i < n; i++) { /* about a third saturates */
		x = (int32_t)(draw() % 400) - 200;
		memcpy(p + 4 * i, &x, 4);
	}
	k->narrow(p, q, n);
	for (int64_t i = 0; i < n; i++) {
		memcpy(&x, p + 4 * i, 4);
		narrowed &= (int8_t)q[i] == (x < -128 ? -128 : x > 127 ? 127 : x);
	}
	CHECK(copied && filled && narrowed && guarded(q, bytes, bytes + 64), "%s: passes over %lld: %d %d %d", k->name,
		(long long)n, copied, filled, narrowed);
	free(p);
	free(q);
}

static void test_limit(const void *kernel)
{
	const struct ql_limit *k = kernel;
	double floats = k->floats(1), integers = k->integers(1);

	for (int64_t n = QL_LIMIT_STEP; n <= 20 * QL_LIMIT_STEP; n += QL_LIMIT_STEP)
		check_passes(k, n);
	check_passes(k, 100 * QL_LIMIT_STEP);
	CHECK(floats >= 16 && integers >= 16 && k->floats(10) == 10 * floats && k->integers(10) == 10 * integers,
		"%s: %g and %g operations in a round", k->name, floats, integers);
	CHECK(*k->dot, "%s: no instruction", k->name);
}

/* ---- all ---- */

/* tests/kernels.c, kernels_conv.c */
#define test_gemm_f32 NULL
#define test_gemm_bf16 NULL
#define test_gemm_coded NULL
#define test_gemm_i8 NULL
#define test_gemm_i16 NULL
#define test_taps_i16 NULL
#define test_conv_i8 NULL
#define test_depth_i8 NULL
#define test_gemm_b1 NULL
#define test_pack_i8 NULL

int main(void)
{
#define F(name) {#name, test_##name},
	static const struct family families[] = {QL_KERNEL_FAMILIES(F)};
#undef F

	test_kernels(families, sizeof(families) / sizeof(families[0]));
	return check_end();
}
