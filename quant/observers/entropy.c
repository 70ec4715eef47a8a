/* SPDX-License-Identifier: MIT
 * The threshold whose codes lose the least information (TensorRT's algorithm: GTC 2017 s7310).
 *
 * Over a histogram of |x| with `bins` even bins: for every i from 128 to all, P is the first i bins with everything beyond
 * added to the last of them; Q is the first i bins without that, merged into the codes' levels (2^(b-1), or 2^b when all
 * values have one sign and the codes have none) and spread again over the bins that hold something. The last i with the
 * least divergence of Kullback and Leibler D(P || Q) is taken. Bin 0 counts like bin 1: zeros are free. With more levels than
 * bins each bin is a level of its own, and only what is cut off costs anything.
 *
 * A candidate that would cut off more than half of the values is none: where the values lie far from 0, the first bin that
 * holds something would be the best of all.
 *
 * D needs no walk over the bins: with running sums of h, of h log h and of bins that hold something, each level costs one
 * logarithm. Below, `all` is the weight of all bins and `kept` of the first i:
 *   D = (sum of p log p - sum over levels of their p log(mean of level)) / all - log all + log kept
 */
#include <math.h>

#include "quant/observer.h"

#define FIRST 128 /* bins of the shortest candidate */
#define MOST 0.5  /* share that may be cut off: one bin alone always looks like itself */
#define LEAST 4   /* values per level: of fewer there is no distribution to speak of, and all are kept */

struct sums {
	const double *h; /* bins */
	double *weight, *log, *held; /* bins + 1: sums over the bins before */
};

static double xlogx(double x)
{
	return x > 0 ? x * log(x) : 0;
}

static void run_sums(struct sums *s, int bins)
{
	s->weight[0] = s->log[0] = s->held[0] = 0;
	for (int i = 0; i < bins; i++) {
		s->weight[i + 1] = s->weight[i] + s->h[i];
		s->log[i + 1] = s->log[i] + xlogx(s->h[i]);
		s->held[i + 1] = s->held[i] + (s->h[i] > 0);
	}
}

static double divergence(const struct sums *s, int bins, int i, int levels)
{
	double all = s->weight[bins], kept = s->weight[i], tail = all - kept, last = s->h[i - 1], cross = 0;
	int from = 0;

	if (tail > MOST * all || (last == 0 && tail > 1e-9 * all))
		return INFINITY;
	for (int k = 0; k < levels; k++) {
		int to = (int)(((int64_t)(k + 1) * i + levels - 1) / levels);
		double held = s->held[to] - s->held[from], weight = s->weight[to] - s->weight[from];

		if (held > 0 && weight > 0)
			cross += (weight + (to == i ? tail : 0)) * log(weight / held);
		from = to;
	}
	return (s->log[i] - xlogx(last) + xlogx(last + tail) - cross) / all - log(all) + log(kept);
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
	struct sums s = {v->room, v->room + bins, v->room + 2 * bins + 1, v->room + 3 * bins + 2};

	*lo = v->cells.min;
	*hi = v->cells.max;
	if (most == 0 || v->cells.total < LEAST * fmin(levels, FIRST))
		return;
	if (v->even)
		ql_even_bins(v->even, most, bins, v->room);
	else
		ql_cells_even(&v->cells, 0, most, true, bins, v->room);
	v->room[0] = v->room[1];
	run_sums(&s, bins);
	for (int i = FIRST; i <= bins; i++) {
		double d = divergence(&s, bins, i, levels);

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
		.text = "The threshold t on |x| whose codes lose the least information: the one of TensorRT, which compares a histogram of "
			"2048 bins (bins=) with what 2^(bits-1) codes leave of it (2^bits where all values have one sign and the codes "
			"none) and takes the least divergence. The range is -t..t, or what of it holds values. Made for activations at 8 "
			"bits. Counts are exact for one tensor, and for batches of up to 262144 values together; of more, the bins are made of "
			"finer ones. With more codes than bins every value is kept, as minmax does.",
		.example = "x = tensor.linspace(-1, 1, 4096)\n"
			"print(('%.3f'):format(127 * x:quantize('int8@entropy'):qparams().scale:item()))  --> 1.000"},
	.even = true,
	.range = range,
};
