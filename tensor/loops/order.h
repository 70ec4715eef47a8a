/* SPDX-License-Identifier: MIT
 * Unsigned keys that compare like numbers, and sorting and selection by such keys. NaN is last in either direction;
 * -0 and 0 are equal.
 */
#ifndef QUOLL_TENSOR_LOOPS_ORDER_H
#define QUOLL_TENSOR_LOOPS_ORDER_H

#include <stdint.h>
#include <string.h>

#include "tensor/base.h"

struct ql_order {
	uint64_t key;
	int64_t at; /* original position of the element */
};

/* Stable, ascending. spare: room for n elements. Both functions return early, with any order, when ql_stopped(ctx). */
void ql_order_sort(const struct ql_ctx *ctx, struct ql_order *a, int64_t n, struct ql_order *spare);
/* Moves the k smallest (the first among equal ones) to the front, in no particular order; the rest is undefined.
 * 0 <= k <= n. */
void ql_order_select(const struct ql_ctx *ctx, struct ql_order *a, int64_t n, int64_t k, struct ql_order *spare);

/* Flips the sign bit of positive numbers and all bits of negative ones; x + 0 turns -0 into 0. */
static inline uint32_t ql_key_f32(float x, int descending)
{
	float y = x + 0.0f;
	uint32_t b;

	if (x != x)
		return UINT32_MAX;
	memcpy(&b, &y, sizeof(b));
	b ^= b >> 31 ? UINT32_MAX : (uint32_t)1 << 31;
	return descending ? ~b : b;
}

static inline uint64_t ql_key_f64(double x, int descending)
{
	double y = x + 0.0;
	uint64_t b;

	if (x != x)
		return UINT64_MAX;
	memcpy(&b, &y, sizeof(b));
	b ^= b >> 63 ? UINT64_MAX : (uint64_t)1 << 63;
	return descending ? ~b : b;
}

static inline uint64_t ql_key_i64(int64_t x, int descending)
{
	uint64_t b = (uint64_t)x ^ (uint64_t)1 << 63;

	return descending ? ~b : b;
}

/* Inverses, for ascending keys of numbers. */
static inline float ql_of_key_f32(uint32_t key)
{
	uint32_t b = key ^ (key >> 31 ? (uint32_t)1 << 31 : UINT32_MAX);
	float x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

static inline double ql_of_key_f64(uint64_t key)
{
	uint64_t b = key ^ (key >> 63 ? (uint64_t)1 << 63 : UINT64_MAX);
	double x;

	memcpy(&x, &b, sizeof(x));
	return x;
}

#endif
