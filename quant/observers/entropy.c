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
 *
 * No level makes D smaller (log sum inequality), so what the last level, which has the clipped weight, adds is a lower bound
 * of D. Candidates for which it is above the D of all bins or the smallest one so far cannot be the result.
 */
#include <math.h>

#include "quant/ranges/observer.h"

#define FIRST 128    /* bins of the shortest candidate */
#define ROUNDED 1e-9 /* more than the rounding errors of a divergence */
#define MOST 0.5     /* share that may be clipped: a single bin always equals itself */
#define EMPTY 8      /* bins counted together; divides their number */
#define LEAST 4      /* values per level: with fewer there is no meaningful distribution, and nothing is clipped */

/* Sums over the nonempty bins: most bins of a block of 32 values are empty, and adding 0 changes no bit. */
struct sums {
	const double *h;      /* bins */
	double *weight, *log; /* sums over the first nonempty bins */
	int32_t *at;          /* those bins */
	int32_t *held;        /* bins + 1: number of nonempty bins among the first ones */
	int32_t *group;       /* bins / EMPTY + 1 */
	int n_held;
};

static double xlogx(double x)
{
	return x > 0 ? x * log(x) : 0;
}

/* Counts and lists the nonempty bins. No branch depends on the bins, because none of them could be predicted: a group of
 * bins is counted as a whole, and gone through again if its number is listed, which it stays if it holds something. */
static void list_held(struct sums *s, int bins)
{
	int32_t *group = s->group, groups = 0, n = 0;

	s->held[0] = 0;
	for (int32_t i = 0; i < bins; i += EMPTY) {
		int32_t here = 0;

		for (int k = 0; k < EMPTY; k++)
			here += s->h[i + k] > 0;
		for (int k = 1; k <= EMPTY; k++)
			s->held[i + k] = n + here;
		group[groups] = i;
		groups += here > 0;
		n += here;
	}
	s->n_held = n;
	for (int32_t g = 0; g < groups; g++) {
		int32_t i = group[g];

		n = s->held[i];
		for (int k = 0; k < EMPTY; k++) {
			s->at[n] = i + k;
			n += s->h[i + k] > 0;
			s->held[i + k + 1] = n;
		}
	}
}

static void run_sums(struct sums *s, int bins)
{
	list_held(s, bins);
	s->weight[0] = s->log[0] = 0;
	for (int n = 0; n < s->n_held; n++) {
		double h = s->h[s->at[n]];

		s->weight[n + 1] = s->weight[n] + h;
		s->log[n + 1] = s->log[n] + xlogx(h);
	}
}

static double weight_before(const struct sums *s, int i)
{
	return s->weight[s->held[i]];
}

/* The next candidate from i on: one that ends in a nonempty bin, or that includes all bins. */
static int candidate(const struct sums *s, int i)
{
	double all = s->weight[s->n_held];

	if (s->h[i - 1] != 0 || all - weight_before(s, i) <= 1e-9 * all)
		return i;
	return s->at[s->held[i]] + 1;
}

/* A lower bound of the divergence: the other levels as if their bins were equal. */
static double least(const struct sums *s, int i, int shift)
{
	double all = s->weight[s->n_held], kept = weight_before(s, i), tail = all - kept, last = s->h[i - 1];
	int64_t levels = (int64_t)1 << shift;
	int first = s->held[((levels - 1) * i + levels - 1) >> shift], end = s->held[i];
	double weight = kept - s->weight[first];

	if (tail > MOST * all)
		return INFINITY;
	if (tail == 0 || weight <= 0 || last <= 0)
		return -INFINITY;
	return (s->log[end - 1] - s->log[first] + xlogx(last + tail) - (weight + tail) * log(weight / (end - first))) /
		       all +
	       log(kept / all);
}

/* Among 2^shift levels. */
static double divergence(const struct sums *s, int i, int shift)
{
	double all = s->weight[s->n_held], kept = weight_before(s, i), tail = all - kept, last = s->h[i - 1], cross = 0;
	int64_t levels = (int64_t)1 << shift;
	int from = 0;

	if (tail > MOST * all)
		return INFINITY;
	for (int64_t k = 1; k <= levels; k++) {
		int to = (int)((k * i + levels - 1) >> shift);
		double held = s->held[to] - s->held[from], weight = weight_before(s, to) - weight_before(s, from);

		if (weight > 0 && weight != held) /* the logarithm of 1 is 0 */
			cross += (weight + (to == i ? tail : 0)) * log(weight / held);
		from = to;
	}
	return (s->log[s->held[i]] - xlogx(last) + xlogx(last + tail) - cross) / all - log(all) + log(kept);
}

/* The codes' levels, as a power of two. */
static int levels_of(const struct ql_view *v)
{
	bool one_sign = v->cells.min >= 0 || v->cells.max <= 0;

	return v->rule->codes.bits - (v->rule->is_symmetric || !one_sign ? 1 : 0);
}

static void range(const struct ql_view *v, double *lo, double *hi)
{
	double most = fmax(fabs(v->cells.min), fabs(v->cells.max)), best = INFINITY, t = most, whole;
	int bins = v->rule->bins, shift = levels_of(v);
	double *weight = v->room + bins, *log_sum = weight + bins + 1;
	int32_t *at = (int32_t *)(void *)(log_sum + bins + 1);
	struct sums s = {v->room, weight, log_sum, at, at + bins, at + 2 * bins + 1, 0};

	*lo = v->cells.min;
	*hi = v->cells.max;
	if (most == 0 || v->cells.total < LEAST * fmin(1 << shift, FIRST))
		return;
	if (v->even)
		ql_even_bins(v->even, most, bins, v->room);
	else
		ql_range_error_even(&v->cells, 0, most, true, bins, v->room);
	v->room[0] = v->room[1];
	run_sums(&s, bins);
	whole = divergence(&s, bins, shift);
	for (int i = candidate(&s, FIRST); i <= bins; i = i < bins ? candidate(&s, i + 1) : i + 1) {
		double d;

		if (least(&s, i, shift) > fmin(best, whole) + ROUNDED)
			continue;
		d = i == bins ? whole : divergence(&s, i, shift);
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
