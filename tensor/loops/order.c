/* SPDX-License-Identifier: MIT
 * Radix sort from the lowest byte, skipping bytes that are equal in all keys; radix selection from the highest
 * byte. Both are linear for any data and poll for an interrupt after every STEP elements. Short lines are sorted by
 * insertion.
 */
#include "tensor/loops/order.h"

#include <stddef.h>

#define INSERTION 48
#define STEP ((int64_t)1 << 20) /* about 10 ms */

/* Elements from .. to - 1 of a piece of at most STEP: for (struct piece p = …; piece_next(ctx, &p, n);) */
struct piece {
	int64_t from, to;
};

static bool piece_next(const struct ql_ctx *ctx, struct piece *p, int64_t n)
{
	if (p->to == n || ql_stopped(ctx))
		return false;
	p->from = p->to;
	p->to = ql_min64(p->to + STEP, n);
	return true;
}

static void insertion_sort(struct ql_order *a, int64_t n)
{
	for (int64_t i = 1; i < n; i++) {
		struct ql_order x = a[i];
		int64_t k = i;

		for (; k > 0 && a[k - 1].key > x.key; k--)
			a[k] = a[k - 1];
		a[k] = x;
	}
}

/* The bits in which some keys differ. */
static uint64_t varying(const struct ql_ctx *ctx, const struct ql_order *a, int64_t n)
{
	uint64_t bits = 0;

	for (struct piece p = {0}; piece_next(ctx, &p, n);)
		for (int64_t i = p.from; i < p.to; i++)
			bits |= a[i].key ^ a[0].key;
	return bits;
}

static void count_bytes(const struct ql_ctx *ctx, const struct ql_order *a, int64_t n, int shift, int64_t count[256])
{
	memset(count, 0, 256 * sizeof(count[0]));
	for (struct piece p = {0}; piece_next(ctx, &p, n);)
		for (int64_t i = p.from; i < p.to; i++)
			count[a[i].key >> shift & 255]++;
}

/* Moves every element to the bucket of its byte. */
static void distribute(const struct ql_ctx *ctx, const struct ql_order *from, int64_t n, int shift, struct ql_order *to)
{
	int64_t next[256], start = 0;

	count_bytes(ctx, from, n, shift, next);
	for (int i = 0; i < 256; i++) {
		int64_t count = next[i];

		next[i] = start;
		start += count;
	}
	for (struct piece p = {0}; piece_next(ctx, &p, n);)
		for (int64_t i = p.from; i < p.to; i++)
			to[next[from[i].key >> shift & 255]++] = from[i];
}

void ql_order_sort(const struct ql_ctx *ctx, struct ql_order *a, int64_t n, struct ql_order *spare)
{
	struct ql_order *from = a, *to = spare, *swap;
	uint64_t bits;

	if (n <= INSERTION) {
		insertion_sort(a, n);
		return;
	}
	bits = varying(ctx, a, n);
	for (int shift = 0; shift < 64; shift += 8) {
		if (!(bits >> shift & 255))
			continue;
		distribute(ctx, from, n, shift, to);
		if (ql_stopped(ctx)) /* the elements of `to` may be undefined */
			return;
		swap = from;
		from = to;
		to = swap;
	}
	if (from != a)
		memcpy(a, from, (size_t)n * sizeof(*a));
}

/* Moves elements whose byte is below `bound` to the front, then those equal to it, each in order; gives the
 * number of the former. */
static int64_t partition(
	const struct ql_ctx *ctx, struct ql_order *a, int64_t n, int shift, uint64_t bound, struct ql_order *spare)
{
	int64_t below = 0, equal = 0;

	for (struct piece p = {0}; piece_next(ctx, &p, n);)
		for (int64_t i = p.from; i < p.to; i++) {
			uint64_t byte = a[i].key >> shift & 255;

			if (byte < bound)
				a[below++] = a[i];
			else if (byte == bound)
				spare[equal++] = a[i];
		}
	memcpy(a + below, spare, (size_t)equal * sizeof(*a));
	return below;
}

void ql_order_select(const struct ql_ctx *ctx, struct ql_order *a, int64_t n, int64_t k, struct ql_order *spare)
{
	uint64_t bits = varying(ctx, a, n);

	/* invariant: chosen elements are in front of a; k of the n elements at a are still to be chosen */
	for (int shift = 56; shift >= 0 && k < n; shift -= 8) {
		int64_t count[256], below = 0;
		uint64_t byte = 0;

		if (!(bits >> shift & 255))
			continue;
		count_bytes(ctx, a, n, shift, count);
		while (byte < 255 && below + count[byte] < k)
			below += count[byte++];
		below = partition(ctx, a, n, shift, byte, spare);
		if (ql_stopped(ctx)) /* the counts may not match the elements */
			return;
		a += below;
		k -= below;
		n = count[byte];
	}
}
