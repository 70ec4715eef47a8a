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

#include "quant/observers/entropy.h"

#define FIRST 128    /* bins of the shortest candidate */
#define ROUNDED 1e-9 /* more than the rounding errors of a divergence */
#define TIE 1e-12    /* divergences that differ by less are equal: the last one is taken */
#define WANTED 16    /* thresholds of mse, at most: beyond that the search decides */
#define MOST 0.5     /* share that may be clipped: a single bin always equals itself */
#define LEAST 4      /* values per level: with fewer there is no meaningful distribution, and nothing is clipped */

/* Sums over the nonempty bins: most bins of a block of 32 values are empty, and adding 0 changes no bit. */
struct sums {
	const double *h;      /* bins */
	double *weight, *log; /* sums over the first nonempty bins */
	int32_t *at;          /* those bins */
	uint64_t *held;       /* a bit for each bin that is not empty, and a word of zeros */
	int32_t *before;      /* number of nonempty bins before each word */
	int n_held;
};

#define WORD 64 /* bins of a word; divides their number */

static double xlogx(double x)
{
	return x > 0 && x != 1 ? x * log(x) : 0;
}

static int ones(uint64_t x)
{
	x -= x >> 1 & 0x5555555555555555;
	x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
	x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (int)(x * 0x0101010101010101 >> 56);
}

/* The number of nonempty bins among the first i. */
static int held_before(const struct sums *s, int i)
{
	return s->before[i / WORD] + ones(s->held[i / WORD] & (((uint64_t)1 << (i % WORD)) - 1));
}

/* Marks the nonempty bins. */
static void mark_held(struct sums *s, int bins)
{
	for (int w = 0; w < bins / WORD; w++) {
		uint64_t word = 0;

		for (int k = 0; k < WORD; k++)
			word |= (uint64_t)(s->h[w * WORD + k] > 0) << k;
		s->held[w] = word;
	}
}

/* Lists the nonempty bins among those that are marked. */
static void list_held(struct sums *s, int bins)
{
	int n = 0;

	for (int w = 0; w < bins / WORD; w++) {
		uint64_t word = s->held[w];

		s->before[w] = n;
		for (uint64_t left = word; left; left &= left - 1) {
			int i = w * WORD + __builtin_ctzll(left);
			bool holds = s->h[i] > 0;

			s->at[n] = i;
			n += holds;
			word ^= holds ? 0 : left & -left;
		}
		s->held[w] = word;
	}
	s->held[bins / WORD] = 0;
	s->before[bins / WORD] = n;
	s->n_held = n;
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
	return s->weight[held_before(s, i)];
}

/* The next candidate from i on: one that ends in a nonempty bin, or that includes all bins. */
static int candidate(const struct sums *s, int i)
{
	double all = s->weight[s->n_held];

	if (s->h[i - 1] != 0 || all - weight_before(s, i) <= 1e-9 * all)
		return i;
	return s->at[held_before(s, i)] + 1;
}

/* A lower bound of the divergence: the other levels as if their bins were equal. */
static double least(const struct sums *s, int i, int shift)
{
	double all = s->weight[s->n_held], kept = weight_before(s, i), tail = all - kept, last = s->h[i - 1];
	int64_t levels = (int64_t)1 << shift;
	int first = held_before(s, (int)(((levels - 1) * i + levels - 1) >> shift)), end = held_before(s, i);
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
	int from = 0; /* nonempty bins before the level */

	if (tail > MOST * all)
		return INFINITY;
	for (int64_t k = 1; k <= levels; k++) {
		int end = (int)((k * i + levels - 1) >> shift), to = held_before(s, end);
		double held = to - from, weight = s->weight[to] - s->weight[from];

		if (weight > 0 && weight != held) /* the logarithm of 1 is 0 */
			cross += (weight + (end == i ? tail : 0)) * log(weight / held);
		from = to;
	}
	return (s->log[held_before(s, i)] - xlogx(last) + xlogx(last + tail) - cross) / all - log(all) + log(kept);
}

/* The codes' levels, as a power of two. */
static int levels_of(const struct ql_view *v)
{
	bool one_sign = v->cells.min >= 0 || v->cells.max <= 0;

	return v->rule->codes.bits - (v->rule->is_symmetric || !one_sign ? 1 : 0);
}

/* What the search needs: the bins and sums of a view. */
struct bins {
	const struct ql_view *v;
	double most; /* largest |x| */
	int n, shift;
	struct sums sums;
	double whole; /* divergence of all bins */
};

/* False: there is nothing to search, the range is that of all values. */
static bool start(struct bins *b, const struct ql_view *v)
{
	int n = v->rule->bins;
	double *weight = v->room + n, *log_sum = weight + n + 1;
	uint64_t *held = (uint64_t *)(void *)(log_sum + n + 1);
	int32_t *at = (int32_t *)(void *)(held + n / WORD + 1);

	*b = (struct bins){.v = v,
		.most = fmax(fabs(v->cells.min), fabs(v->cells.max)),
		.n = n,
		.shift = levels_of(v),
		.sums = {v->room, weight, log_sum, at, held, at + n, 0}};
	return b->most != 0 && v->cells.total >= LEAST * fmin(1 << b->shift, FIRST);
}

static void fill(struct bins *b)
{
	struct sums *s = &b->sums;
	double *h = b->v->room;

	if (b->v->even) {
		ql_even_bins(b->v->even, b->most, b->n, h);
		mark_held(s, b->n);
	} else {
		ql_range_error_even(&b->v->cells, 0, b->most, true, b->n, h, s->held);
	}
	h[0] = h[1];
	s->held[0] = (s->held[0] & ~(uint64_t)1) | (s->held[0] >> 1 & 1);
	run_sums(s, b->n);
	b->whole = divergence(s, b->n, b->shift);
}

/* The range of the first i bins. */
static void range_of(const struct bins *b, int i, double *lo, double *hi)
{
	const struct ql_range_error *c = &b->v->cells;
	double t = i == b->n ? b->most : b->most * i / b->n;

	*lo = fmin(fmax(-t, c->min), c->max);
	*hi = fmax(fmin(t, c->max), *lo);
}

static int search(const struct bins *b)
{
	const struct sums *s = &b->sums;
	double best = INFINITY;
	int found = b->n;

	for (int i = candidate(s, FIRST); i <= b->n; i = i < b->n ? candidate(s, i + 1) : i + 1) {
		double d;

		if (least(s, i, b->shift) > fmin(best, b->whole) + ROUNDED)
			continue;
		d = i == b->n ? b->whole : divergence(s, i, b->shift);
		if (d <= best + TIE) {
			best = d < best ? d : best;
			found = i;
		}
	}
	return found;
}

static void range(const struct ql_view *v, double *lo, double *hi)
{
	struct bins b;
	int found = v->rule->bins;

	if (start(&b, v)) {
		fill(&b);
		found = search(&b);
	}
	range_of(&b, found, lo, hi);
}

/* ---- for mse ---- */

/* The thresholds that mse wants. */
struct wanted {
	int n, end[WANTED];
};

/* Lists the ends of bins that hold something of a cell, where the range is wanted. False: there are too many. */
static bool list_wanted(const struct bins *b, int cell, double least, bool (*wanted)(void *arg, double lo, double hi),
	void *arg, struct wanted *w)
{
	const struct ql_range_error *c = &b->v->cells;
	double width = b->most / b->n, from = c->lo[cell], to = c->hi[cell], lo, hi;
	int last;

	if (from < 0) {
		from = -c->hi[cell] > 0 ? -c->hi[cell] : 0;
		to = -c->lo[cell];
	}
	if (to + 2 * width < least)
		return true;
	last = ql_bin_of(to / width, b->n) + 1;
	for (int i = ql_bin_of(from / width, b->n) + 1; i <= last; i++) {
		if (i < FIRST || i == b->n || b->most * i / b->n < least)
			continue;
		range_of(b, i, &lo, &hi);
		if (!wanted(arg, lo, hi))
			continue;
		if (w->n == WANTED)
			return false;
		w->end[w->n++] = i;
	}
	return true;
}

/* Whether all candidates are ends of bins that hold something, as long as the largest value has some weight (see candidate). */
static bool ends_at_values(const struct ql_range_error *c)
{
	double weight = -c->lo[0] > c->hi[c->n - 1] ? c->weight[0] : c->weight[c->n - 1];

	return weight >= 1e-6 * c->total;
}

/* Whether the search may end at one of these. */
static bool may_be(const struct bins *b, const struct wanted *w)
{
	const struct sums *s = &b->sums;

	for (int k = 0; k < w->n; k++)
		if (candidate(s, w->end[k]) == w->end[k] && divergence(s, w->end[k], b->shift) <= b->whole + ROUNDED)
			return true;
	return false;
}

bool ql_entropy_range(const struct ql_view *v, double least, bool (*wanted)(void *arg, double lo, double hi), void *arg,
	double *lo, double *hi)
{
	struct wanted w = {.n = 0};
	struct bins b;
	bool listed;

	if (!start(&b, v))
		return false;
	listed = ends_at_values(&v->cells);
	for (int i = 0; i < v->cells.n && listed; i++)
		listed = list_wanted(&b, i, least, wanted, arg, &w);
	if (listed && w.n == 0)
		return false;
	fill(&b);
	if (listed && !may_be(&b, &w))
		return false;
	range_of(&b, search(&b), lo, hi);
	return true;
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
