/* SPDX-License-Identifier: MIT
 * Requantization in fixed point: a published vector, others from TensorFlow Lite's functions written down with Python's
 * unbounded integers, multipliers of chosen factors, and the ends.
 */
#include "quant/integer/fixed.h"

#include <math.h>

#include "tensor/kernels/kernels.h"
#include "tests/check.h"

static const struct {
	int32_t sum, multiplier, shift, single, twice;
	int64_t sum64, wide;
} vectors[] = {
	{12186262, 2093022104, -1, 5938605, 5938606, 0, 0}, /* the difference that the two roundings are known by */
	{791905, 1262619602, -1, 232801, 232802, -80415988461863, -23640356959629},
	{-813446, 1191545421, -2, -112836, -112837, -79101603467955, -10972788652453},
	{-218002328, 1129764263, -4, -7168018, -7168019, 8366718031656, 275104240699},
	{57, 1677111244, -1, 22, 23, 95195061971234, 37172498030180},
	{119865, 1613422013, -4, 5628, 5629, 26228992715446, 1231635230373},
	{-205, 1388229421, -1, -66, -67, -27487861463652, -8884817037728},
	{609411, 2141054758, -1, 303793, 303794, -119232962281937, -59438184780134},
	{-201, 1216412668, -2, -28, -29, -31820961681058, -4506140668961},
	{-1015313, 1998243551, -20, -1, -1, -125253296569782, -111150388},
	{-4, 1561954442, -8, 0, 0, -112470030146083, -319553696931},
	{155, 1980460713, -2, 36, 36, 87513030299886, 20176363087709},
	{197, 1518366066, -7, 1, 1, -128913229369353, -712075638301},
	{-796874, 1334206564, 0, -495089, -495089, 16973999378165, 10545552958395},
	{-771892, 1481448014, -14, -33, -33, -9029238473592, -380176931},
	{-1241294018, 1250122816, -20, -689, -689, -65913296643382, -36592134},
	{-992640, 1110996515, -12, -125, -125, -133101424976513, -16811008425},
	{100000, 1073741824, 5, 1600000, 1600000, -140737488355328, -2251799813685248},
};

static void products(void)
{
	CASE("products");
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		struct ql_fixed m = {.multiplier = vectors[i].multiplier, .shift = vectors[i].shift};
		int64_t single = ql_fixed_times(QL_REQUANT_SINGLE, false, vectors[i].sum, m);
		int64_t twice = ql_fixed_times(QL_REQUANT_DOUBLE, false, vectors[i].sum, m);

		CHECK(single == vectors[i].single, "%zu: %lld", i, (long long)single);
		CHECK(twice == vectors[i].twice, "%zu: %lld", i, (long long)twice);
		for (int rule = QL_REQUANT_SINGLE; rule <= QL_REQUANT_DOUBLE; rule++) {
			int64_t wide = ql_fixed_times((enum ql_requant)rule, true, vectors[i].sum64, m);

			CHECK(wide == vectors[i].wide, "%zu: %lld", i, (long long)wide);
		}
	}
}

/* Single rounding of a product without it: the nearest whole number, in exact arithmetic. */
static void nearest(void)
{
	uint64_t state = 7;

	CASE("single rounding is the nearest whole number to sum * m");
	for (int i = 0; i < 20000; i++) {
		int32_t sum, shift = -(int)(state >> 60);
		struct ql_fixed m;
		__int128 exact, got;

		state = state * 6364136223846793005u + 1442695040888963407u;
		sum = (int32_t)(state >> 33) - (1 << 30);
		m = (struct ql_fixed){
			.multiplier = (int32_t)((1u << 30) + ((state >> 20) & ((1u << 30) - 1))), .shift = shift};
		got = ql_fixed_times(QL_REQUANT_SINGLE, false, sum, m);
		exact = (__int128)sum * m.multiplier; /* in units of 2^(shift - 31) */
		got = got * ((__int128)1 << (31 - shift)) - exact;
		CHECK(got <= (__int128)1 << (30 - shift) && got > -((__int128)1 << (30 - shift)), "%d", i);
	}
}

static void multipliers(void)
{
	struct ql_fixed m;

	CASE("multipliers");
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		m = ql_fixed_of(ldexp((double)vectors[i].multiplier, vectors[i].shift - 31));
		CHECK(m.multiplier == vectors[i].multiplier && m.shift == vectors[i].shift, "%zu", i);
	}
	m = ql_fixed_of(1 - 0x1p-40); /* rounds up to 2^31: halved */
	CHECK(m.multiplier == 1 << 30 && m.shift == 1, "%d %d", m.multiplier, m.shift);
	m = ql_fixed_of(0x1p-33);
	CHECK(m.multiplier == 0 && m.shift == 0, "%d %d", m.multiplier, m.shift);
	m = ql_fixed_of(0x1p40);
	CHECK(m.multiplier == INT32_MAX && m.shift == 30, "%d %d", m.multiplier, m.shift);
	m = ql_fixed_of(0);
	CHECK(m.multiplier == 0, "%d", m.multiplier);
}

static void ends(void)
{
	struct ql_rounding r = {-128, 127, 5};
	const int64_t sums[] = {INT64_MIN, INT32_MIN, -1, 0, 1, INT32_MAX, INT64_MAX};
	const double factors[] = {0, 0x1p-31, 0x1p-15, 1, 0x1p14, 0x1p15, 0x1p29, 0x1p40};

	CASE("sums and factors at their ends give the outer codes in order");
	for (int rule = QL_REQUANT_SINGLE; rule <= QL_REQUANT_DOUBLE; rule++)
		for (int wide = 0; wide < 2; wide++)
			for (size_t f = 0; f < sizeof(factors) / sizeof(factors[0]); f++)
				for (size_t i = 1; i < sizeof(sums) / sizeof(sums[0]); i++) {
					struct ql_fixed m = ql_fixed_of(factors[f]);
					int32_t a = ql_fixed_code((enum ql_requant)rule, wide, sums[i - 1], m, &r);
					int32_t b = ql_fixed_code((enum ql_requant)rule, wide, sums[i], m, &r);

					CHECK(a <= b && a >= -123 && b <= 132, "%d %d %zu %zu: %d %d", rule, wide, f, i,
						a, b);
					CHECK(factors[f] < 0x1p8 || i < 6 || b == 132, "%d %d %zu %zu: %d", rule, wide,
						f, i, b);
				}
}

/* Vectors of sums have the codes of single ones, on each level of vectors up to this CPU's. */
static void vectors_of_sums(int most)
{
	const int shifts[] = {3, 0, -1, -7, -16, -30, -31};
	int32_t sum[257];
	uint8_t out[257];
	uint64_t state = 3;

	CASE("vectors of sums");
	for (int round = 0; round < 7 * 4 * 3; round++) {
		struct ql_fixed m = {
			.multiplier = INT32_MAX - (int32_t)(state >> 36 & 0x3fffffff), .shift = shifts[round % 7]};
		int32_t bias = round % 4 == 1 ? INT32_MAX : round % 4 == 2 ? -70000 : 0;
		struct ql_sum_codes c = {.r = {-100, 155, 100},
			.bias = &bias,
			.fixed = &m,
			.rule = QL_REQUANT_DOUBLE,
			.least = round % 3 ? INT32_MIN : 0};

		for (int i = 0; i < 257; i++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			sum[i] = (int32_t)(state >> 32) >> (round % 5 * 6);
		}
		for (c.variant = 0; c.variant <= most; c.variant++) {
			ql_fixed_sums(&c, 0, 257, sum, out);
			for (int i = 0; i < 257; i++) {
				int64_t s = (int64_t)sum[i] + bias;
				int32_t code = ql_fixed_code(c.rule, false, s < c.least ? c.least : s, m, &c.r);

				CHECK(out[i] == (uint8_t)code, "%d, variant %d, %d: %d, wanted %d", round, c.variant,
					sum[i], out[i], code);
			}
		}
	}
}

int main(void)
{
	vectors_of_sums(ql_kernels_cpu()->simd->variant);
	products();
	nearest();
	multipliers();
	ends();
	return check_end();
}
