/* SPDX-License-Identifier: MIT
 * What a processor can do at most with one instruction set, for vectors of any length: multiply-adds that never leave the
 * registers, and passes over memory that do nothing with what they read.
 *
 * Twelve chains of sums hide the latency of two units (4 to 6 cycles each); operands and first sums come through an asm
 * statement, so that the compiler cannot know that all chains are equal. Memory is read by two streams, one from the middle, which keeps
 * more requests in flight than one (copy and narrow: 1.2 times on a Xeon of family 6, model 207), and written past the caches. The including file defines VECTOR (integers), FLOATS, BYTES (of both), LOAD(p),
 * STREAM(p, v), OR(a, b), ANY(v) (the or of its 32-bit lanes), FMA(sum, a, b), DOT(sum, a, b) with DOT_OPS operations (or
 * has `integers` itself), CAST(v) from
 * integers to floats and back CODES(v), and NARROW(p): BYTES bytes from 32-bit integers at p, saturated.
 */
#ifndef QUOLL_TENSOR_LIMIT_LOOPS_H
#define QUOLL_TENSOR_LIMIT_LOOPS_H

#include <stddef.h>

#include "tensor/kernels/kernels.h"
#include "tensor/vmath/simd.h"

#define CHAINS 12
#define HIDE(v) __asm__ volatile("" : "+v"(v))

static double floats(int64_t rounds)
{
	FLOATS sum[CHAINS], a = CAST(LOAD(ql_limit_zeros)), b = a;
	VECTOR all;

#pragma GCC unroll 12
	for (int i = 0; i < CHAINS; i++) {
		sum[i] = a;
		HIDE(sum[i]);
	}
	for (int64_t r = 0; r < rounds; r++) {
		HIDE(a);
		HIDE(b);
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			sum[i] = FMA(sum[i], a, b);
	}
	all = CODES(sum[0]);
#pragma GCC unroll 12
	for (int i = 1; i < CHAINS; i++)
		all = OR(all, CODES(sum[i]));
	return 2.0 * CHAINS * (BYTES / 4) * (double)rounds + ANY(all);
}

#ifdef DOT
static double integers(int64_t rounds)
{
	VECTOR sum[CHAINS], a = LOAD(ql_limit_zeros), b = a, all;

#pragma GCC unroll 12
	for (int i = 0; i < CHAINS; i++) {
		sum[i] = a;
		HIDE(sum[i]);
	}
	for (int64_t r = 0; r < rounds; r++) {
		HIDE(a);
		HIDE(b);
#pragma GCC unroll 12
		for (int i = 0; i < CHAINS; i++)
			sum[i] = DOT(sum[i], a, b);
	}
	all = sum[0];
#pragma GCC unroll 12
	for (int i = 1; i < CHAINS; i++)
		all = OR(all, sum[i]);
	return (double)CHAINS * DOT_OPS * (double)rounds + ANY(all);
}
#endif

static uint32_t read_all(const uint8_t *p, int64_t n)
{
	VECTOR v0 = LOAD(ql_limit_zeros), v1 = v0, v2 = v0, v3 = v0;
	const uint8_t *q = p + n / 2;

	for (int64_t i = 0; i < n / 2; i += 2 * BYTES) {
		v0 = OR(v0, LOAD(p + i));
		v1 = OR(v1, LOAD(p + i + BYTES));
		v2 = OR(v2, LOAD(q + i));
		v3 = OR(v3, LOAD(q + i + BYTES));
	}
	return (uint32_t)ANY(OR(OR(v0, v1), OR(v2, v3)));
}

static void copy(const uint8_t *p, uint8_t *q, int64_t n)
{
	int64_t half = n / 2;

	for (int64_t i = 0; i < half; i += BYTES) {
		STREAM(q + i, LOAD(p + i));
		STREAM(q + half + i, LOAD(p + half + i));
	}
	_mm_sfence();
}

static void fill(uint8_t *q, int64_t n)
{
	VECTOR v = LOAD(ql_limit_ones);

	for (int64_t i = 0; i < n; i += BYTES)
		STREAM(q + i, v);
	_mm_sfence();
}

static void narrow(const uint8_t *p, uint8_t *q, int64_t n)
{
	int64_t half = n / 2;

	for (int64_t i = 0; i < half; i += BYTES) {
		STREAM(q + i, NARROW(p + 4 * i));
		STREAM(q + half + i, NARROW(p + 4 * (half + i)));
	}
	_mm_sfence();
}

/* The loops of a descriptor. */
#define LOOPS .floats = floats, .integers = integers, .read = read_all, .copy = copy, .fill = fill, .narrow = narrow

#endif
