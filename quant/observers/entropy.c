/* SPDX-License-Identifier: MIT
 * The threshold with the least loss of information (TensorRT's algorithm: GTC 2017 s7310).
 *
 * Uses a histogram of |x| with `bins` even bins. For every i from 128 to the number of bins, P is the first i bins
 * with the weight of all others added to the last one; Q is the first i bins without that weight, merged into the
 * codes' levels (2^(b-1), or 2^b for values of one sign and unsigned codes) and spread again over the nonempty bins.
 * The result is the last i with the smallest Kullback-Leibler divergence D(P || Q). Bin 0 is given the count of bin
 * 1, so zeros cost nothing. With more levels than bins each bin is a level, and only clipping has a cost.
 *
 * Candidates that clip more than half of the values are excluded: otherwise, for values far from 0, the first
 * nonempty bin would be the best.
 *
 * D needs no loop over the bins: with running sums of h, of h log h and of the number of nonempty bins, each level
 * costs one logarithm. `all` is the weight of all bins and `kept` that of the first i:
 *   D = (sum of p log p - sum over levels of their p log(mean of level)) / all - log all + log kept
 */
#include <math.h>

#include "quant/ranges/observer.h"

#define FIRST 128 /* bins of the shortest candidate */
#define MOST 0.5  /* share that may be clipped: a single bin always equals itself */
#define EMPTY 8   /* bins tested together; divides their number */
#define LEAST 4   /* values per level: with fewer there is no meaningful distribution, and nothing is clipped */

/* Sums over the nonempty bins: most bins of a block of 32 values are empty, and adding 0 changes no bit. */
struct sums {
	const double *h;      /* bins */
	double *weight, *log; /* sums over the first nonempty bins */
	double *at;           /* those bins */
	double *held;         /* bins + 1: number of nonempty bins among the first ones */
	int n_held;
};

static double xlogx(double x)
{
	return x > 0 ? x * log(x) : 0;
}

static bool is_empty(const double h[EMPTY])
{
	return ((h[0] + h[1]) + (h[2] + h[3])) + ((h[4] + h[5]) + (h[6] + h[7])) == 0;
}

static void run_sums(struct sums *s, int bins)
{
	int n = 0;

	s->weight[0] = s->log[0] = s->held[0] = 0;
	for (int i = 0; i < bins; i++) {
		if (i % EMPTY == 0 && is_empty(s->h + i)) {
			for (int k = 1; k <= EMPTY; k++)
				s->held[i + k] = n;
			i += EMPTY - 1;
			continue;
		}
		if (s->h[i] > 0) {
			s->at[n] = i;
			s->weight[n + 1] = s->weight[n] + s->h[i];
			s->log[n + 1] = s->log[n] + xlogx(s->h[i]);
			n++;
		}
		s->held[i + 1] = n;
	}
	s->n_held = n;
}

static double weight_before(const struct sums *s, int i)
{
	return s->weight[(int)s->held[i]];
}

/* The next candidate from i on: one that ends in a nonempty bin, or that includes all bins. */
static int candidate(const struct sums *s, int i)
{
	double all = s->weight[s->n_held];

	if (s->h[i - 1] != 0 || all - weight_before(s, i) <= 1e-9 * all)
		return i;
	return (int)s->at[(int)s->held[i]] + 1;
}

static double divergence(const struct sums *s, int i, int levels)
{
	double all = s->weight[s->n_held], kept = weight_before(s, i), tail = all - kept, last = s->h[i - 1], cross = 0;
	int from = 0;

	if (tail > MOST * all)
		return INFINITY;
	for (int k = 0; k < levels; k++) {
		int to = (int)(((int64_t)(k + 1) * i + levels - 1) / levels);
		double held = s->held[to] - s->held[from], weight = weight_before(s, to) - weight_before(s, from);

		if (weight > 0 && weight != held) /* the logarithm of 1 is 0 */
			cross += (weight + (to == i ? tail : 0)) * log(weight / held);
		from = to;
	}
	return (s->log[(int)s->held[i]] - xlogx(last) + xlogx(last + tail) - cross) / all - log(all) + log(kept);
}

static int levels_of(const struct ql_view *v)
{
	bool one_sign = v->cells.min >= 0 || v->cells.max <= 0;

	return 1 << (v->rule->codes.bits - (v->rule->is_symmetric || !one_sign ? 1 : 0));
}

static void range(const struct ql_view *v, double *lo, double *hi)
{
	double most = fmax(fabs(v->cells.min), fabs(v->cells.max)), best = INFINITY, t = most;
	int bins = v->rule->bins, levels = levels_of(v);
	struct sums s = {
		v->room, v->room + bins, v->room + 2 * bins + 1, v->room + 3 * bins + 2, v->room + 4 * bins + 2, 0};

	*lo = v->cells.min;
	*hi = v->cells.max;
	if (most == 0 || v->cells.total < LEAST * fmin(levels, FIRST))
		return;
	if (v->even)
		ql_even_bins(v->even, most, bins, v->room);
	else
		ql_range_error_even(&v->cells, 0, most, true, bins, v->room);
	v->room[0] = v->room[1];
	run_sums(&s, bins);
	for (int i = candidate(&s, FIRST); i <= bins; i = i < bins ? candidate(&s, i + 1) : i + 1) {
		double d = divergence(&s, i, levels);

		if (d <= best + 1e-12) {
			best = d < best ? d : best;
			t = i == bins ? most : most * i / bins;
		}
	}
	*lo = fmin(fmax(-t, v->cells.min), v->cells.max);
	*hi = fmax(fmin(t, v->cells.max), *lo);
}

extern const struct ql_observer_kind ql_observer_entropy;
const struct ql_observer_kind ql_observer_entropy = {
	.doc = {.name = "entropy",
		.usage = "x:quantize 'uint8@entropy'  x:quantize{dtype='int8', observer='entropy', bins=2048}",
		.text = "The threshold t on |x| that minimizes the loss of information, as in TensorRT's calibrator: compares a histogram of 2048 "
			"bins (bins=) with its quantization to 2^(bits-1) codes (2^bits if all values have the same sign and codes are "
			"unsigned) and takes the smallest Kullback-Leibler divergence. The range is -t..t, limited to that of the values. "
			"Intended for 8-bit activations. Counts are exact for one tensor, and for batches of up to 262144 values in total; "
			"beyond that the bins are derived from finer ones. With more codes than bins nothing is clipped, as in minmax. Two rules "
			"differ from TensorRT: nothing is clipped if there are fewer than four values per code (for 128 codes and more: fewer "
			"than 512 values), and thresholds that would clip more than half of the values are excluded (values far from 0, such as "
			"10 to 11, would all be clipped).",
		.example =
			"x = tensor.linspace(-1, 1, 4096)\n"
			"print(('%.3f'):format(127 * x:quantize('int8@entropy'):qparams().scale:item()))  --> 1.000"},
	.even = true,
	.range = range,
};
