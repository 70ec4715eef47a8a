/* SPDX-License-Identifier: MIT
 * Axes: ranges of odd data, round ticks, labels.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "interp/plot/scale.h"
#include "tests/check.h"

static struct ql_scale scale_of(double lo, double hi, double pad, bool zero, bool log)
{
	struct ql_range r = {0};

	ql_range_add(&r, lo);
	ql_range_add(&r, hi);
	return ql_scale_of(&r, pad, zero, log);
}

static const char *ticks(double lo, double hi, bool log, int wanted)
{
	static char text[2048];
	struct ql_scale s = scale_of(lo, hi, 0.04, false, log);
	struct ql_ticks t;

	ql_scale_ticks(&s, wanted, &t);
	text[0] = '\0';
	for (int i = 0; i < t.n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, t.tick[i].text);
	}
	return text;
}

static void check_ticks(double lo, double hi, bool log, int wanted, const char *expected)
{
	const char *got = ticks(lo, hi, log, wanted);

	CHECK(!strcmp(got, expected), "%g..%g: %s", lo, hi, got);
}

static void test_labels(void)
{
	CASE("scale: ticks of linear axes");
	check_ticks(0, 1, false, 6, "0 0.2 0.4 0.6 0.8 1.0");
	check_ticks(-3.2, 4.7, false, 6, "−2 0 2 4");
	check_ticks(0, 10000, false, 6, "0 2k 4k 6k 8k 10k");
	check_ticks(0, 123456, false, 6, "0 20k 40k 60k 80k 100k 120k");
	check_ticks(256, 2048, false, 8, "250 500 750 1000 1250 1500 1750 2000");
	check_ticks(0, 3e-7, false, 4, "0 1×10⁻⁷ 2×10⁻⁷ 3×10⁻⁷");
	check_ticks(0, 0.00042, false, 5, "0 0.0001 0.0002 0.0003 0.0004");
	check_ticks(1000000, 1000001, false, 5, "1000000.0 1000000.2 1000000.4 1000000.6 1000000.8 1000001.0");
	check_ticks(2e9, 6e9, false, 5, "2G 3G 4G 5G 6G");
	check_ticks(1e16, 3e16, false, 3, "1×10¹⁶ 2×10¹⁶ 3×10¹⁶");
	CASE("scale: ticks of logarithmic axes");
	check_ticks(1, 100000, true, 6, "1 10 100 1k 10k 100k");
	check_ticks(0.01, 1, true, 4, "0.01 0.1 1");
	check_ticks(1e-9, 1e9, true, 6, "10⁻⁹ 10⁻⁶ 10⁻³ 10⁰ 10³ 10⁶ 10⁹");
	check_ticks(64, 2048, true, 6, "100 200 500 1000 2000");
	check_ticks(3, 7, true, 6, "3 4 5 6 7");
	check_ticks(1e-300, 1e300, true, 6, "10⁻³⁰⁰ 10⁻²⁰⁰ 10⁻¹⁰⁰ 10⁰ 10¹⁰⁰ 10²⁰⁰ 10³⁰⁰");
}

static void test_odd(void)
{
	const double values[] = {0, 1, -1, 5, 1e-310, 1e-300, -1e300, 1e308, -1.7e308, 1e-5, 123456789, NAN, INFINITY};
	int n = (int)(sizeof(values) / sizeof(values[0]));
	struct ql_ticks t;

	CASE("scale: any range has a finite scale, ticks inside it and positions within reach");
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			for (int mode = 0; mode < 4; mode++) {
				struct ql_scale s = scale_of(values[i], values[k], 0.05, mode & 1, mode & 2);
				bool good = isfinite(s.lo) && isfinite(s.hi) && s.lo < s.hi;

				CHECK(good, "%g %g mode %d: %g..%g", values[i], values[k], mode, s.lo, s.hi);
				ql_scale_ticks(&s, 6, &t);
				CHECK(t.n >= 1 && t.n <= QL_TICKS, "%g %g mode %d: %d ticks", values[i], values[k],
					mode, t.n);
				for (int j = 0; j < t.n; j++) {
					double at = ql_scale_at(&s, t.tick[j].at);

					CHECK(at > -1e-6 && at < 1 + 1e-6 && t.tick[j].text[0],
						"%g %g mode %d: tick %g at %g", values[i], values[k], mode,
						t.tick[j].at, at);
				}
				CHECK(!(fabs(ql_scale_at(&s, values[i])) > 51), "%g", ql_scale_at(&s, values[i]));
			}
	CASE("scale: constant data lies in the middle, data of one sign never crosses 0");
	CHECK(fabs(ql_scale_at(&(struct ql_scale){4.5, 5.5, false, false}, 5) - 0.5) < 1e-12, "%s", "");
	struct ql_scale s = scale_of(7, 7, 0.05, false, false);
	CHECK(fabs(ql_scale_at(&s, 7) - 0.5) < 1e-9, "%g..%g", s.lo, s.hi);
	s = scale_of(0.1, 10, 0.05, false, false);
	CHECK(s.lo == 0 && s.hi > 10, "%g..%g", s.lo, s.hi);
	s = scale_of(-10, -0.1, 0.05, false, false);
	CHECK(s.hi == 0 && s.lo < -10, "%g..%g", s.lo, s.hi);
	s = scale_of(5, 9, 0.05, true, false);
	CHECK(s.lo == 0 && s.hi > 9, "%g..%g", s.lo, s.hi);
}

static void test_fixed(void)
{
	struct ql_scale s;
	struct ql_ticks t;

	CASE("scale: limits that cannot be shown are refused, turned ones turn the axis");
	CHECK(!ql_scale_fixed(1, 1, false, &s) && !ql_scale_fixed(0, 1, true, &s) && !ql_scale_fixed(NAN, 1, false, &s),
		"%s", "");
	CHECK(!ql_scale_fixed(1, 1 + 1e-15, false, &s) && !ql_scale_fixed(1, INFINITY, false, &s), "%s", "");
	CHECK(ql_scale_fixed(10, 0, false, &s) && s.down && ql_scale_at(&s, 10) == 0, "%g", ql_scale_at(&s, 10));
	CHECK(ql_scale_fixed(1, 100, true, &s) && fabs(ql_scale_at(&s, 10) - 0.5) < 1e-12, "%g", ql_scale_at(&s, 10));
	CHECK(isnan(ql_scale_at(&s, 0)) && isnan(ql_scale_at(&s, -1)) && isnan(ql_scale_at(&s, NAN)), "%s", "");
	CASE("scale: whole ticks");
	ql_scale_fixed(0.5, 3.5, false, &s);
	ql_scale_whole_ticks(&s, 10, &t);
	CHECK(t.n == 3 && !strcmp(t.tick[0].text, "1") && !strcmp(t.tick[2].text, "3"), "%d: %s", t.n, t.tick[0].text);
	ql_scale_fixed(0, 12, false, &s);
	ql_scale_whole_ticks(&s, 5, &t);
	for (int i = 0; i < t.n; i++)
		CHECK(t.tick[i].at == rint(t.tick[i].at), "%g", t.tick[i].at);
}

static void test_numbers(void)
{
	static const struct {
		double value;
		const char *text;
	} wanted[] = {{0, "0"}, {1, "1"}, {-1, "−1"}, {3.14159, "3.142"}, {42.1, "42.1"}, {12345, "12.35k"},
		{1e6, "1M"}, {407050, "407.1k"}, {1.5e9, "1.5G"}, {1e20, "1×10²⁰"}, {0.00123, "0.00123"},
		{1e-5, "1×10⁻⁵"}, {-45678, "−45.68k"}, {99999, "100k"}, {NAN, "nan"}, {-INFINITY, "−inf"}};
	char text[QL_TICK_TEXT];

	CASE("scale: numbers beside bars and in cells");
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		ql_number_text(wanted[i].value, text);
		CHECK(!strcmp(text, wanted[i].text), "%g: %s, wanted %s", wanted[i].value, text, wanted[i].text);
	}
}

int main(void)
{
	test_labels();
	test_odd();
	test_fixed();
	test_numbers();
	return check_end();
}
