/* SPDX-License-Identifier: MIT
 * The same passes in portable C, and where the operands come from that the loops in registers multiply and those over memory write.
 */
#include <string.h>

#include "tensor/kernels/kernels.h"

#define CHAINS 16

#define EIGHT 1, 1, 1, 1, 1, 1, 1, 1

const uint8_t ql_limit_zeros[64];
const uint8_t ql_limit_ones[64] = {EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT, EIGHT};

static double floats(int64_t rounds)
{
	float sum[CHAINS] = {0}, a, b, all = 0;

	memcpy(&a, ql_limit_zeros, 4);
	b = a;
	for (int64_t r = 0; r < rounds; r++) {
		__asm__ volatile("" : "+x"(a), "+x"(b));
		for (int i = 0; i < CHAINS; i++)
			sum[i] += a * b;
	}
	for (int i = 0; i < CHAINS; i++)
		all += sum[i];
	return 2.0 * CHAINS * (double)rounds + (double)all;
}

static double integers(int64_t rounds)
{
	uint32_t sum[CHAINS] = {0}, a = ql_limit_zeros[0], all = 0;

	for (int64_t r = 0; r < rounds; r++) {
		__asm__ volatile("" : "+r"(a));
		for (int i = 0; i < CHAINS; i++)
			sum[i] += a * (a ^ (uint32_t)i);
	}
	for (int i = 0; i < CHAINS; i++)
		all |= sum[i];
	return 2.0 * CHAINS * (double)rounds + all;
}

static uint32_t read_all(const uint8_t *p, int64_t n)
{
	uint64_t all = 0, word;

	for (int64_t i = 0; i < n; i += 8) {
		memcpy(&word, p + i, 8);
		all |= word;
	}
	return (uint32_t)(all | all >> 32);
}

static void copy(const uint8_t *p, uint8_t *q, int64_t n)
{
	memcpy(q, p, (size_t)n);
}

static void fill(uint8_t *q, int64_t n)
{
	memset(q, 1, (size_t)n);
}

static void narrow(const uint8_t *p, uint8_t *q, int64_t n)
{
	int32_t x;

	for (int64_t i = 0; i < n; i++) {
		memcpy(&x, p + 4 * i, 4);
		q[i] = (uint8_t)(x < -128 ? -128 : x > 127 ? 127 : x);
	}
}

extern const struct ql_limit limit_ref;
const struct ql_limit limit_ref = {.name = "limit_ref",
	.dot = "imul",
	.floats = floats,
	.integers = integers,
	.read = read_all,
	.copy = copy,
	.fill = fill,
	.narrow = narrow};
