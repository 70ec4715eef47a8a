/* SPDX-License-Identifier: MIT
 * Rows of vectors in every variant against the row converters of each type: float32 of all exponents, with fractions at and beside
 * the ties of whole numbers and of small floats, infinities, NaN and signed zeros; all codes of a byte and more of wider ones; rows
 * of every length around those of vectors.
 */
#include "tensor/narrow.h"

#include "tensor/cpu.h"
#include "tensor/dtype.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

enum { FRACTIONS = 64, ALL = 512 * FRACTIONS, LONGEST = 70 };
static const unsigned types[] = {QL_int8, QL_uint8, QL_int16, QL_uint16, QL_int32, QL_float16, QL_bfloat16,
	QL_float8_e4m3, QL_float8_e5m2, QL_float8_e8m0};
static float numbers[ALL + 1];
static uint32_t got[ALL + 1], want[ALL + 1]; /* room for the widest codes */

static uint32_t fraction_of(uint32_t i)
{
	if (i < 24) /* a power of two, and beside it */
		return 1u << i;
	if (i < 47)
		return (1u << (i - 23)) - 1u;
	return i < 50 ? (i - 47) * 0x3fffffu : i * 2654435761u >> 9;
}

static void fill_numbers(void)
{
	for (uint32_t e = 0; e < 512; e++) /* sign and exponent */
		for (uint32_t i = 0; i < FRACTIONS; i++)
			numbers[e * FRACTIONS + i] = ql_of_bits(e << 23 | (fraction_of(i) & 0x7fffffu));
}

static void check_from(int variant, const struct ql_dtype_info *d, unsigned dtype)
{
	CHECK(ql_narrow_from_f32(variant, dtype, ALL, numbers, got), "%s has rows", d->name);
	d->from_f32(want, 0, 1, ALL, numbers);
	CHECK(!memcmp(got, want, (size_t)ALL * d->bits / 8), "float32 to %s, variant %d", d->name, variant);
	for (int64_t n = 0; n < LONGEST; n++) {
		memset(got, 0x5a, sizeof(got));
		memset(want, 0x5a, sizeof(want));
		ql_narrow_from_f32(variant, dtype, n, numbers + 130 * FRACTIONS + 1, (char *)got + d->bits / 8);
		d->from_f32(want, 1, 1, n, numbers + 130 * FRACTIONS + 1);
		CHECK(!memcmp(got, want, sizeof(got)), "%lld numbers to %s, variant %d", (long long)n, d->name,
			variant);
	}
}

static void check_to(int variant, const struct ql_dtype_info *d, unsigned dtype)
{
	uint32_t codes[LONGEST * 256];
	float *out = (float *)(void *)got, *right = (float *)(void *)want;
	int64_t n = (int64_t)(sizeof(codes) * 8 / d->bits) < ALL ? (int64_t)(sizeof(codes) * 8 / d->bits) : ALL;

	for (uint32_t i = 0; i < LONGEST * 256; i++)
		codes[i] = i < 128 ? 0x03020100u + i * 0x04040404u : i * 2654435761u;
	for (int64_t m = n; m >= 0; m = m > LONGEST ? LONGEST : m - 1) {
		memset(got, 0x5a, sizeof(got));
		memset(want, 0x5a, sizeof(want));
		CHECK(ql_narrow_to_f32(variant, dtype, m, codes, out), "%s has rows", d->name);
		d->to_f32(codes, 0, 1, m, right);
		CHECK(!memcmp(got, want, sizeof(got)), "%lld of %s to float32, variant %d", (long long)m, d->name,
			variant);
	}
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "avx512vnni"};

	fill_numbers();
	for (int l = 0; l < 3; l++) {
		CHECK(ql_kernels_force(levels[l]), "level %s", levels[l]);
		for (size_t t = 0; t < sizeof(types) / sizeof(*types); t++) {
			int variant = ql_kernels_cpu()->simd->variant;

			CASE("%s at %s", ql_dtypes[types[t]].name, levels[l]);
			check_from(variant, &ql_dtypes[types[t]], types[t]);
			check_to(variant, &ql_dtypes[types[t]], types[t]);
		}
	}
	CASE("types without rows");
	CHECK(!ql_narrow_from_f32(0, QL_int4, 1, numbers, got) && !ql_narrow_to_f32(0, QL_float64, 1, got, numbers),
		"refused");
	return check_end();
}
