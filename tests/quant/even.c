/* SPDX-License-Identifier: MIT
 * Even bins of magnitudes against a plain count; batches and merges in any order give the same bins.
 */
#include "quant/ranges/even.h"

#include <math.h>

#include "tests/check.h"

#define N 5000
#define BINS 2048

static float values[N];
static double fine_a[QL_EVEN_FINE], fine_b[QL_EVEN_FINE], fine_c[QL_EVEN_FINE], bins[BINS], wanted[BINS];

static void fill(void)
{
	uint32_t seed = 7;

	for (int i = 0; i < N; i++) {
		seed = seed * 1664525u + 1013904223u;
		values[i] = ldexpf((float)seed / 4294967296.0f - 0.5f, (int)(seed >> 7) % 6);
	}
	values[17] = NAN;
	values[18] = INFINITY;
	values[19] = 0;
}

static double most_of(const struct ql_strand *s)
{
	double most = 0;

	for (int64_t i = 0; i < s->n; i++) {
		double a = fabs((double)values[s->offset + i * s->stride]);

		most = isfinite(a) && a > most ? a : most;
	}
	return most;
}

/* The bin is the one whose edges, k * most / BINS in exact arithmetic, enclose the value. */
static void count_plainly(const struct ql_strand *s, double most)
{
	for (int k = 0; k < BINS; k++)
		wanted[k] = 0;
	for (int64_t i = 0; i < s->n; i++) {
		double a = fabs((double)values[s->offset + i * s->stride]);
		int k = 0;

		while (k < BINS - 1 && a * BINS >= (k + 1) * most)
			k++;
		wanted[k] += isfinite(a);
	}
}

static bool same(const double *a, const double *b, int n)
{
	for (int i = 0; i < n; i++)
		if (a[i] != b[i])
			return false;
	return true;
}

static void exact(void)
{
	struct ql_strand strands[] = {{1, 0, 0, 1, N}, {1, 3, 0, 7, 600}};
	struct ql_even e = {.bins = BINS, .count = bins};

	CASE("bins of all values");
	for (int i = 0; i < 2; i++) {
		double out[BINS];

		ql_even_take(&e, most_of(&strands[i]), values, &strands[i]);
		count_plainly(&strands[i], most_of(&strands[i]));
		CHECK(same(bins, wanted, BINS), "strand %d", i);
		ql_even_bins(&e, e.top, BINS, out);
		CHECK(same(out, wanted, BINS), "strand %d, given out", i);
	}
}

static void batches(void)
{
	struct ql_even a = {.bins = QL_EVEN_FINE, .count = fine_a}, b = {.bins = QL_EVEN_FINE, .count = fine_b},
		       c = {.bins = QL_EVEN_FINE, .count = fine_c};
	double sum = 0;

	CASE("batches in any order");
	for (int i = 0; i < 10; i++) {
		struct ql_strand forth = {1, i * N / 10, 0, 1, N / 10}, back = {1, (9 - i) * N / 10, 0, 1, N / 10};

		ql_even_update(&a, most_of(&forth), values, &forth);
		ql_even_update(i < 4 ? &b : &c, most_of(&back), values, &back);
	}
	ql_even_merge(&c, &b);
	CHECK(a.top == c.top && same(fine_a, fine_c, QL_EVEN_FINE), "order: tops %g and %g", a.top, c.top);
	ql_even_bins(&a, most_of(&(struct ql_strand){1, 0, 0, 1, N}), BINS, bins);
	for (int i = 0; i < BINS; i++)
		sum += bins[i];
	CHECK(fabs(sum - (N - 2)) < 1e-6, "counts are conserved, got %g", sum);
}

/* The same number of values in each fine bin: bins of the result that are 16.4 fine ones wide hold the same weight each. */
static void even_stays_even(void)
{
	struct ql_even e = {.bins = QL_EVEN_FINE, .top = 1, .count = fine_a};
	double most = 16.4 * BINS / QL_EVEN_FINE, least = INFINITY, largest = 0;

	CASE("evenly spread values stay even");
	for (int i = 0; i < QL_EVEN_FINE; i++)
		fine_a[i] = i < 16.4 * BINS - 1;
	ql_even_bins(&e, most, BINS, bins);
	for (int i = 0; i < BINS - 1; i++) {
		least = fmin(least, bins[i]);
		largest = fmax(largest, bins[i]);
	}
	CHECK(largest - least < 1e-9, "%g to %g in a bin", least, largest);
}

int main(void)
{
	fill();
	exact();
	batches();
	even_stays_even();
	return check_end();
}
