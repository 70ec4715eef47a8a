/* SPDX-License-Identifier: MIT
 * The 8-bit float dtypes against ml_dtypes: the values of all codes and the codes of all float16 numbers
 * (golden/float8.npz: per type `values`, float32, and `of_float16`, uint8). Beside every tie between two codes, float32,
 * float64 and int64 numbers go to the side of the exact value: there is one rounding only.
 */
#include "tensor/float8.h"

#include <math.h>

#include "tests/tensor/io/files.h"

static const struct {
	const char *name;
	unsigned dtype;
	unsigned last; /* largest finite code */
	unsigned over; /* code of what rounds above it */
} types[] = {
	{"e4m3", QL_float8_e4m3, 0x7e, 0x7f},
	{"e5m2", QL_float8_e5m2, 0x7b, 0x7c},
	{"e8m0", QL_float8_e8m0, 0xfe, 0xff},
};

static const struct ql_tensor *golden(const struct ql_named_list *list, const char *type, const char *what)
{
	char name[32];

	snprintf(name, sizeof(name), "%s_%s", type, what);
	for (int64_t i = 0; i < list->n; i++)
		if (!strcmp(list->at[i].name, name))
			return list->at[i].tensor;
	return NULL;
}

static bool same(double a, double b)
{
	return a == b ? !signbit(a) == !signbit(b) : isnan(a) && isnan(b);
}

static void check_golden(const struct ql_named_list *list, int type)
{
	const struct ql_dtype_info *d = &ql_dtypes[types[type].dtype];
	const struct ql_tensor *values = golden(list, types[type].name, "values");
	const struct ql_tensor *codes = golden(list, types[type].name, "of_float16");

	CASE("%s: all codes and all float16 numbers", types[type].name);
	if (!CHECK(values && codes, "golden/float8.npz"))
		return;
	for (unsigned c = 0; c < 256; c++) {
		uint8_t code = (uint8_t)c, back;
		float value;
		double wide, want = ql_tensor_at_f64(values, c);

		d->to_f32(&code, 0, 1, 1, &value);
		d->to_f64(&code, 0, 1, 1, &wide);
		CHECK(same((double)value, want) && same(wide, want), "%02x is %g, not %g", c, (double)value, want);
		d->from_f32(&back, 0, 1, 1, &value);
		CHECK(back == code || isnan(value), "%02x comes back as %02x", c, back);
	}
	for (unsigned h = 0; h < 65536; h++) {
		float x = ql_f16_to_f32((uint16_t)h);
		double wide = (double)x;
		uint8_t a, b, want = (uint8_t)ql_tensor_at_f64(codes, h);

		d->from_f32(&a, 0, 1, 1, &x);
		d->from_f64(&b, 0, 1, 1, &wide);
		CHECK(a == want && b == want, "%a: %02x and %02x, not %02x", wide, a, b, want);
	}
}

static void check_number(const struct ql_dtype_info *d, double x, unsigned want)
{
	uint8_t code;
	float narrow = (float)x;
	int64_t whole = fabs(x) < 0x1p62 ? (int64_t)x : 0;

	d->from_f64(&code, 0, 1, 1, &x);
	CHECK(code == want, "%s: float64 %a: %02x, not %02x", d->name, x, code, want);
	if ((double)narrow == x) {
		d->from_f32(&code, 0, 1, 1, &narrow);
		CHECK(code == want, "%s: float32 %a: %02x, not %02x", d->name, x, code, want);
	}
	if (whole && (double)whole == x) {
		d->from_i64(&code, 0, 1, 1, &whole);
		CHECK(code == want, "%s: int64 %a: %02x, not %02x", d->name, x, code, want);
	}
}

/* From below, at and above the middle of two neighbouring codes. */
static void check_middle(int type, unsigned lower, double middle)
{
	const struct ql_dtype_info *d = &ql_dtypes[types[type].dtype];
	bool powers = types[type].dtype == QL_float8_e8m0;
	unsigned upper = lower == types[type].last ? types[type].over : lower + 1;
	unsigned even = powers || lower % 2 ? upper : lower;

	for (unsigned sign = 0; sign <= (powers ? 0u : 0x80u); sign += 0x80u) {
		double s = sign ? -1 : 1;

		check_number(d, s * middle, even | sign);
		check_number(d, s * nextafter(middle, 0), lower | sign);
		check_number(d, s * nextafter(middle, INFINITY), upper | sign);
		check_number(d, s * (double)nextafterf((float)middle, 0), lower | sign);
		check_number(d, s * (double)nextafterf((float)middle, INFINITY), upper | sign);
	}
}

static void check_ties(int type)
{
	const struct ql_dtype_info *d = &ql_dtypes[types[type].dtype];

	CASE("%s: beside every tie", types[type].name);
	for (unsigned c = 0; c <= types[type].last; c++) {
		uint8_t code[2] = {(uint8_t)c, (uint8_t)(c + 1)};
		double v[2];

		d->to_f64(code, 0, 1, 2, v);
		if (c == types[type].last) /* the next value if the exponents went on */
			v[1] = types[type].dtype == QL_float8_e8m0 ? 2 * v[0]
								   : v[0] + ldexp(1, ilogb(v[0]) + 1 - d->digits);
		check_middle(type, c, (v[0] + v[1]) / 2);
	}
}

static void check_large_integers(void)
{
	const struct ql_dtype_info *d = &ql_dtypes[QL_float8_e8m0];
	const int64_t middle = 3LL << 61, given[] = {middle - 1, middle, middle + 1, INT64_MAX, INT64_MIN, 0, -1};
	const uint8_t want[] = {189, 190, 190, 190, 255, 255, 255};
	uint8_t code[7];

	CASE("e8m0: integers that are no double, zero and negative ones");
	d->from_i64(code, 0, 1, 7, given);
	for (int i = 0; i < 7; i++)
		CHECK(code[i] == want[i], "%lld: %d, not %d", (long long)given[i], code[i], want[i]);
}

int main(void)
{
	size_t before = start();
	struct ql_named_list list = load_path("tests/tensor/golden/float8.npz");

	for (int i = 0; i < 3; i++) {
		check_golden(&list, i);
		check_ties(i);
	}
	check_large_integers();
	ql_named_clear(ctx, &list);
	return finish(before);
}
