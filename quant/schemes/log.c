/* SPDX-License-Identifier: MIT
 * Logarithmic: sign and magnitude. Code 0 is 0; code m in 1..M (M = 2^(b-1)-1, without a sign 2^b-1) is scale *
 * 2^(-(M-m)*r) with scale = max|x| and the step r = octaves / (M - 1); r = 1 is LogNet (arXiv 1603.01025). Rounding
 * is in the log domain, so every |x| in [max * 2^-octaves, max] has a relative error of at most 2^(r/2) - 1. Below
 * half of the smallest magnitude: 0.
 *
 * Unsigned codes represent no negative values: these become 0, and the scale is max(x).
 *
 * Encoding searches a table of boundaries, so it needs no logarithm whose last bit could differ between machines.
 * Table: M values (of m = 1..M), then M boundaries (the least |x| / scale that gives m).
 */
#include <math.h>

#include "tensor/qparams.h"

static int32_t magnitudes(const struct ql_codes *codes)
{
	return codes->hi;
}

static bool accepts(unsigned dtype)
{
	enum ql_dtype_kind kind = ql_dtypes[dtype].kind;

	return (kind == QL_KIND_INT || kind == QL_KIND_UINT) && ql_dtypes[dtype].bits <= 16;
}

static void range(unsigned dtype, bool wide, struct ql_codes *codes)
{
	bool is_signed = ql_dtypes[dtype].kind == QL_KIND_INT;

	(void)wide;
	codes->hi = (1 << (codes->bits - is_signed)) - 1;
	codes->lo = is_signed ? -codes->hi : 0;
}

static double fit(const struct ql_stats *stats, const struct ql_codes *codes)
{
	return codes->lo < 0 ? fmax(fabs(stats->lo), fabs(stats->hi)) : fmax(stats->hi, 0);
}

static size_t table_length(const struct ql_codes *codes)
{
	return 2 * (size_t)magnitudes(codes);
}

static void table_fill(const struct ql_codes *codes, float *table)
{
	int32_t top = magnitudes(codes);
	double r = top > 1 ? (double)codes->octaves / (top - 1) : 0;

	for (int32_t m = 1; m <= top; m++) {
		double value = exp2(-(top - m) * r);

		table[m - 1] = (float)value;
		table[top + m - 1] = (float)(m == 1 ? value / 2 : value * exp2(-r / 2));
	}
}

/* Number of boundaries <= t. */
static int32_t magnitude(const float *boundary, int32_t top, float t)
{
	int32_t lo = 0, hi = top;

	while (lo < hi) {
		int32_t middle = (lo + hi) / 2;

		if (boundary[middle] <= t)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

static void encode(const float *x, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, int32_t *out)
{
	int32_t top = magnitudes(codes);
	const float *boundary = codes->table + top;

	(void)zero;
	for (int64_t i = 0; i < n; i++) {
		int32_t m = isnan(x[i]) ? 0 : magnitude(boundary, top, fabsf(x[i]) / scale);

		out[i] = x[i] >= 0 ? m : codes->lo < 0 ? -m : 0;
	}
}

static void decode(const int32_t *q, int64_t n, float scale, int32_t zero, const struct ql_codes *codes, float *out)
{
	(void)zero;
	for (int64_t i = 0; i < n; i++) {
		int32_t m = q[i] < 0 ? -q[i] : q[i];
		float v;

		m = m > codes->hi ? codes->hi : m; /* -128 from another program */
		v = m ? codes->table[m - 1] * scale : 0;
		out[i] = q[i] < 0 ? -v : v;
	}
}

extern const struct ql_scheme ql_scheme_log;
const struct ql_scheme ql_scheme_log = {
	.doc = {.name = "log",
		.usage = "x:quantize{dtype='int8', scheme='log', octaves=16}",
		.text = "Sign and logarithm: codes are evenly spaced powers of 2 below max|x|, code 0 is 0. octaves= sets the range "
			"(16 at 8 bits, 6 at 4 bits). Unsigned codes have twice as many powers and no negative values, which become 0.",
		.example =
			"print(tensor{1,0.5,0.25}:quantize{dtype='int4', scheme='log'}:dequantize())  --> float32(3)  1.0000  0.5000  0.2500"},
	.monotone = true,
	.zero_code = true,
	.accepts = accepts,
	.range = range,
	.fit = fit,
	.encode = encode,
	.decode = decode,
	.table_length = table_length,
	.table_fill = table_fill,
};
