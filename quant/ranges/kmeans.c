/* SPDX-License-Identifier: MIT
 * k-means in one dimension. The least error of the first i + 1 numbers in j runs is a minimum over the start of run
 * j. The best start never decreases with i, so the starts of a layer are found by divide and conquer.
 */
#include "quant/ranges/kmeans.h"

#include <math.h>

#include "tensor/scratch.h"

/* Sums of the numbers before i: of weights, weighted values and weighted squares. */
struct sums {
	double weight, value, square;
};

struct layers {
	const struct sums *before;
	int n;
	double *last, *next; /* least error of the first i + 1 numbers in j - 1 and in j runs */
	int *begin;          /* start of the last of j runs */
};

/* The error of one run from..to. */
static double error_of(const struct sums *before, int from, int to)
{
	const struct sums *a = before + from, *b = before + to + 1;
	double w = b->weight - a->weight, v = b->value - a->value;

	return fmax(b->square - a->square - v * v / w, 0);
}

/* Finds the best start, in lo..hi, of the run that ends with number i. */
static void find_begin(struct layers *l, int i, int lo, int hi)
{
	double best = INFINITY;

	for (int from = lo; from <= hi; from++) {
		double error = (from ? l->last[from - 1] : 0) + error_of(l->before, from, i);

		if (error < best) {
			best = error;
			l->begin[i] = from;
		}
	}
	l->next[i] = best;
}

static void find_layer(struct layers *l)
{
	int step = 1;

	while (step * 2 <= l->n)
		step *= 2;
	for (; step > 0; step /= 2) /* the neighbours of i at distance step are known */
		for (int i = step - 1; i < l->n; i += 2 * step)
			find_begin(l, i, i >= step ? l->begin[i - step] : 0, i + step < l->n ? l->begin[i + step] : i);
}

static void first_layer(struct layers *l)
{
	for (int i = 0; i < l->n; i++) {
		l->next[i] = error_of(l->before, 0, i);
		l->begin[i] = 0;
	}
}

static void sum_up(const double *value, const double *weight, int n, struct sums *before)
{
	before[0] = (struct sums){0};
	for (int i = 0; i < n; i++)
		before[i + 1] = (struct sums){before[i].weight + weight[i], before[i].value + weight[i] * value[i],
			before[i].square + weight[i] * value[i] * value[i]};
}

int ql_kmeans(struct ql_ctx *ctx, const double *value, const double *weight, int n, int k, int *first)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	int runs = n < k ? n : k, end = n;
	struct sums *before = ql_scratch_array(ctx, n + 1, sizeof(*before));
	double *error = ql_scratch_array(ctx, n, 2 * sizeof(*error));
	int *begin = ql_scratch_array(ctx, n, (uint64_t)runs * sizeof(*begin)); /* size: runs is at most k, a few */
	struct layers l = {before, n, error, error + n, begin};

	if (!before || !error || !begin) {
		ql_scratch_release(ctx, mark);
		return 0;
	}
	sum_up(value, weight, n, before);
	first_layer(&l);
	for (int j = 1; j < runs; j++) {
		double *last = l.last;

		l = (struct layers){before, n, l.next, last, begin + (int64_t)j * n};
		find_layer(&l);
	}
	for (int j = runs - 1; j >= 0; j--) {
		first[j] = begin[(int64_t)j * n + end - 1];
		end = first[j];
	}
	ql_scratch_release(ctx, mark);
	return runs;
}
