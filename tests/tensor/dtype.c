/* SPDX-License-Identifier: MIT
 * Row converters of every dtype: floats to integers round half to even and saturate (against libm and comparisons),
 * integers to integers wrap, halves are rounded to the nearest, ties to even, and all of them come back as they were;
 * strided rows as dense ones; packed neighbours stay.
 */
#include <math.h>
#include <string.h>

#include "tensor/dtype.h"
#include "tests/check.h"

static uint64_t state = 1;

static uint64_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 20;
}

static double draw_real(int i)
{
	static const double special[] = {0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 126.5, 127.5, 128.5, 254.5, 255.5, -128.5,
		-129.5, 32767.5, 65534.5, 65535.5, 2147483646.5, 2147483647.5, -2147483648.5, -2147483649.5,
		0x1p51 + 0.5, 0x1p52 - 0.5, 0x1p52 + 1, 0x1p53, 0x1p62, 0x1p63, -0x1p63, 0x1p64, 1e300, -1e300,
		INFINITY, -INFINITY, NAN, 1e-310, 0.49999999999999994, 7.5, 6.5, -8.5};
	const int n = sizeof(special) / sizeof(special[0]);

	if (i < n)
		return special[i];
	return ((double)(int64_t)(draw() % 2001) - 1000) / 4 * ldexp(1, (int)(draw() % 60) - 4);
}

/* What a cast to the integer dtype must give. */
static int64_t expected(const struct ql_dtype_info *d, double x)
{
	if (d->kind == QL_KIND_BOOL)
		return x != 0;
	if (d->kind == QL_KIND_BINARY)
		return x >= 0 ? 1 : -1;
	if (isnan(x))
		return 0;
	x = nearbyint(x);
	return x <= (double)d->lo ? d->lo : x >= (double)d->hi ? d->hi : (int64_t)x;
}

static void check_integer(const struct ql_dtype_info *d)
{
	enum { N = 4000, STEP = 8 };
	static uint64_t dense[N], strided[N * STEP];
	static double x[N];
	static float f[N];
	static int64_t got[N], spread[N];

	for (int i = 0; i < N; i++) {
		x[i] = draw_real(i);
		f[i] = (float)x[i];
	}
	d->from_f64(dense, 0, 1, N, x);
	d->to_i64(dense, 0, 1, N, got);
	memset(strided, 0xff, sizeof(strided));
	d->from_f64(strided, 0, STEP, N, x);
	d->to_i64(strided, 0, STEP, N, spread);
	for (int i = 0; i < N; i++) {
		int64_t neighbour, untouched = -1;

		CHECK(got[i] == expected(d, x[i]), "%.17g: %lld, not %lld", x[i], (long long)got[i],
			(long long)expected(d, x[i]));
		CHECK(spread[i] == got[i], "%.17g: %lld with a stride", x[i], (long long)spread[i]);
		d->to_i64(strided, i * STEP + 1, 1, 1, &neighbour);
		d->from_i64(dense, i, 1, 1, &untouched);
		if (d->bits >= 8 && d->kind == QL_KIND_INT)
			CHECK(neighbour == -1, "the neighbour of item %d changed", i);
	}
	d->from_f32(dense, 0, 1, N, f);
	d->to_i64(dense, 0, 1, N, got);
	for (int i = 0; i < N; i++)
		CHECK(got[i] == expected(d, (double)f[i]), "float %.9g: %lld, not %lld", (double)f[i],
			(long long)got[i], (long long)expected(d, (double)f[i]));
}

static void check_wrap(const struct ql_dtype_info *d)
{
	for (int i = 0; i < 2000; i++) {
		int64_t v = (int64_t)(draw() << 22 ^ draw()), got, want;
		uint64_t code[4] = {0}, mask = d->bits == 64 ? UINT64_MAX : ((uint64_t)1 << d->bits) - 1;

		d->from_i64(code, 3, 1, 1, &v);
		d->to_i64(code, 3, 1, 1, &got);
		want = (int64_t)((uint64_t)v & mask);
		if (d->kind == QL_KIND_INT && d->bits < 64 && want > d->hi)
			want -= (int64_t)mask + 1;
		if (d->bits < 64)
			CHECK(got == want, "%lld: %lld, not %lld", (long long)v, (long long)got, (long long)want);
	}
}

/* The half beside `h` in the direction of x; the result must not be farther from x than it is. */
static void check_nearest(double x, uint16_t h, float (*back)(uint16_t), double largest)
{
	double v = (double)back(h), below = (double)back((uint16_t)(h - 1)), above = (double)back((uint16_t)(h + 1));
	double error = fabs(v - x);

	if (isinf(v)) {
		CHECK(fabs(x) >= largest, "%a rounded to infinity", x);
		return;
	}
	if (isfinite(below) && (h & 0x7fff) != 0)
		CHECK(error < fabs(below - x) || (error == fabs(below - x) && !(h & 1)), "%a: %a, %a is as near", x, v,
			below);
	if (isfinite(above))
		CHECK(error < fabs(above - x) || (error == fabs(above - x) && !(h & 1)), "%a: %a, %a is as near", x, v,
			above);
}

static void check_half(
	unsigned dtype, float (*back)(uint16_t), uint16_t (*forth)(float), double largest, uint32_t exponent)
{
	const struct ql_dtype_info *d = &ql_dtypes[dtype];

	for (uint32_t h = 0; h < 65536; h++) {
		float x = back((uint16_t)h);
		bool nan = (h & 0x7fff) > exponent;

		CHECK(nan ? isnan(x) && isnan(back(forth(x))) : forth(x) == h, "%04x comes back as %04x", h, forth(x));
	}
	for (int i = 0; i < 200000; i++) {
		double x = ldexp((double)(int64_t)(draw() << 20) / 0x1p63, (int)(draw() % 44) - 28);
		uint16_t h;

		d->from_f64(&h, 0, 1, 1, &x);
		check_nearest(x, h, back, largest);
		x = (double)(float)x;
		check_nearest(x, forth((float)x), back, largest);
	}
}

int main(void)
{
	for (unsigned i = 0; i < QL_DTYPE_COUNT; i++) {
		const struct ql_dtype_info *d = &ql_dtypes[i];

		if (d->kind == QL_KIND_FLOAT)
			continue;
		CASE("floats to %s", d->name);
		check_integer(d);
		if (d->kind == QL_KIND_BOOL || d->kind == QL_KIND_BINARY)
			continue;
		CASE("integers to %s", d->name);
		check_wrap(d);
	}
	CASE("float16");
	check_half(QL_float16, ql_f16_to_f32, ql_f32_to_f16, 65520, 0x7c00);
	CASE("bfloat16");
	check_half(QL_bfloat16, ql_bf16_to_f32, ql_f32_to_bf16, 0x1.ffp127, 0x7f80);
	return check_end();
}
