/* SPDX-License-Identifier: MIT
 * The squared error of quantizing the values of a histogram with a range.
 *
 * In units of the scale, with n = the nearest code (clamped to the range of the codes), the integral of (u - n)^2
 * from 0 to u is n / 12 + (u - n)^3 / 3: every whole step adds 1/12, and n is constant beyond the last code. So the
 * error of a cell is a difference of two such values, exact for evenly spread values at any width of cells and
 * steps.
 */
#include "quant/ranges/range_error.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "quant/ranges/fit.h"
#include "tensor/codec_functions.h"
#include "tensor/grid.h"
#include "tensor/vmath/simd.h"

#define LANES 8
#define WITHIN (1 + 0x1p-20) /* tolerance at the ends of a table, because its scale was rounded */
#define POINT 0x1p-20        /* half the relative width of a cell of a single value */
#define EDGE 0.501 /* steps beyond the outer codes that are not clipped: a rounded scale may leave ends at 0.5 */

/* Cells of both signs, the minimum and maximum, and empty padding cells. */
static size_t room_for(const struct ql_ruler *r)
{
	return (size_t)r->cells * 2 + 2 + LANES;
}

size_t ql_range_error_bytes(const struct ql_ruler *r)
{
	return room_for(r) * 4 * sizeof(double);
}

static void push(struct ql_range_error *c, double lo, double hi, double weight)
{
	if (hi <= lo) { /* a single value: a narrow cell around it */
		double half = fabs(lo) * POINT;

		hi = lo + half + (lo == 0 ? DBL_MIN : 0);
		lo -= half;
	}
	c->lo[c->n] = lo;
	c->hi[c->n] = hi;
	c->weight[c->n] = weight;
	c->density[c->n++] = weight / (hi - lo);
	c->total += weight;
}

/* A cell of a histogram includes its end that is nearer to 0. */
static bool holds(double lo, double hi, double value)
{
	return lo < 0 || hi <= 0 ? lo < value && value <= hi : lo <= value && value < hi;
}

/* Adds a cell, limited to the observed values. Minimum and maximum are known exactly: in their cells one value is
 * placed exactly and only the others are spread. */
static void place(struct ql_range_error *c, double lo, double hi, double weight)
{
	bool first = holds(lo, hi, c->min), last = holds(lo, hi, c->max);
	double spread = weight - first - last;

	lo = lo > c->min ? lo : c->min;
	hi = hi < c->max ? hi : c->max;
	if (hi <= lo || spread < 0) {
		push(c, lo, hi, weight);
		return;
	}
	if (first)
		push(c, lo, lo, 1);
	if (spread > 0)
		push(c, lo, hi, spread);
	if (last)
		push(c, hi, hi, 1);
}

static void start(struct ql_range_error *c, const struct ql_ruler *r, const struct ql_moments *m, void *room)
{
	size_t n = room_for(r);

	*c = (struct ql_range_error){.lo = room, .min = m->count ? m->lo : 0, .max = m->count ? m->hi : 0};
	c->hi = c->lo + n;
	c->weight = c->hi + n;
	c->density = c->weight + n;
}

/* Appends empty cells of zero width, so that loops run over whole lanes. */
static void pad(struct ql_range_error *c)
{
	for (int i = c->n; i < c->n + LANES; i++)
		c->lo[i] = c->hi[i] = c->weight[i] = c->density[i] = 0;
}

/* Limits the range of a faded histogram to its cells. */
static void narrow(struct ql_range_error *c)
{
	if (c->n == 0)
		return;
	c->min = fmax(c->min, c->lo[0]);
	c->max = fmin(c->max, c->hi[c->n - 1]);
}

void ql_range_error_take(struct ql_range_error *c, const struct ql_histogram *h, double floor, void *room)
{
	const struct ql_ruler *r = &h->ruler;
	const double *positive = h->weight, *negative = h->weight + r->cells;

	start(c, r, &h->moments, room);
	for (int32_t i = r->cells - 1; i >= 0; i--)
		if (negative[i] > floor)
			place(c, -ql_ruler_edge(r, h->low, i + 1), -ql_ruler_edge(r, h->low, i), negative[i]);
	for (int32_t i = 0; i < r->cells; i++)
		if (positive[i] > floor)
			place(c, ql_ruler_edge(r, h->low, i), ql_ruler_edge(r, h->low, i + 1), positive[i]);
	pad(c);
	if (floor > 0)
		narrow(c);
}

void ql_range_error_take_tally(struct ql_range_error *c, const struct ql_ruler *r, const struct ql_tally *t, void *room)
{
	const uint32_t *positive = t->count, *negative = t->count + r->cells;

	start(c, r, &t->moments, room);
	for (int32_t i = r->cells - 1; i >= 0; i--)
		if (negative[i])
			place(c, -ql_ruler_edge(r, t->low, i + 1), -ql_ruler_edge(r, t->low, i), negative[i]);
	for (int32_t i = 0; i < r->cells; i++)
		if (positive[i])
			place(c, ql_ruler_edge(r, t->low, i), ql_ruler_edge(r, t->low, i + 1), positive[i]);
	pad(c);
}

/* The rank of a cell in the order of values: negative ones count down. */
static int32_t rank_of(const struct ql_ruler *r, int32_t slot)
{
	return slot < r->cells ? slot : r->cells - 1 - slot;
}

#define FEW 64

/* Sorts by counting what is smaller: for a block of 32 values faster than any sort with branches. */
QL_SIMD(void, sort_few, (int32_t * x, int n), {
	int32_t from[FEW];

	memcpy(from, x, (size_t)n * sizeof(*x));
	for (int i = 0; i < n; i++) {
		int32_t at = 0;

		for (int k = 0; k < n; k++)
			at += (from[k] < from[i]) | ((from[k] == from[i]) & (k < i));
		x[at] = from[i];
	}
})

/* Shell sort: no function calls. */
static void sort(int variant, int32_t *x, int n)
{
	static const int gaps[] = {132, 57, 23, 10, 4, 1};

	if (n <= FEW) {
		sort_few[variant](x, n);
		return;
	}
	for (size_t g = 0; g < sizeof(gaps) / sizeof(*gaps); g++)
		for (int i = gaps[g]; i < n; i++) {
			int32_t v = x[i];
			int k = i;

			for (; k >= gaps[g] && x[k - gaps[g]] > v; k -= gaps[g])
				x[k] = x[k - gaps[g]];
			x[k] = v;
		}
}

void ql_range_error_take_few(struct ql_range_error *c, const struct ql_ruler *r, int variant, const struct ql_tally *t,
	int32_t *slot, int n, void *room)
{
	int finite = 0, count;

	start(c, r, &t->moments, room);
	for (int i = 0; i < n; i++)
		if (slot[i] < 2 * r->cells)
			slot[finite++] = rank_of(r, slot[i]);
	sort(variant, slot, finite);
	for (int i = 0; i < finite; i += count) {
		int32_t at = slot[i] < 0 ? -1 - slot[i] : slot[i];
		double near = ql_ruler_edge(r, t->low, at), far = ql_ruler_edge(r, t->low, at + 1);

		for (count = 1; i + count < finite && slot[i + count] == slot[i]; count++)
			;
		place(c, slot[i] < 0 ? -far : near, slot[i] < 0 ? -near : far, count);
	}
	pad(c);
}

/* ---- the error of a range ---- */

/* The float32 scale and zero point of the range lo..hi. */
static float rule_fit(const struct ql_rule *rule, double lo, double hi, int32_t *zero)
{
	struct ql_stats stats = {.lo = lo, .hi = hi, .meanabs = (fabs(lo) + fabs(hi)) / 2, .count = 1};

	return ql_fit(rule->scheme, &stats, &rule->codes, QL_SCALE_FLOAT, zero);
}

/* The same. By QL_FIT_LARGEST, away from the ends of float32, without the calls, which take longer than a short sum. */
static float rule_scale(const struct ql_rule *rule, double lo, double hi, int32_t *zero)
{
	double most = fabs(lo) > fabs(hi) ? fabs(lo) : fabs(hi);
	float s = rule->steps > 0 ? (float)(most / rule->steps) : 0;

	if (!(s >= FLT_MIN && s <= FLT_MAX / 0x1p17f))
		return rule_fit(rule, lo, hi, zero);
	*zero = rule->middle;
	return s;
}

void ql_rule_reach(const struct ql_rule *rule, double lo, double hi, double *from, double *to)
{
	int32_t zero;
	double scale = (double)rule_fit(rule, lo, hi, &zero);

	if (rule->scheme->affine) {
		double first = rule->scheme->shift ? lo : 0;

		*from = first + (rule->codes.lo - zero - EDGE) * scale;
		*to = first + (rule->codes.hi - zero + EDGE) * scale;
	} else if (rule->codes.host) {
		*to = (double)rule->codes.host->unit * fabs(scale) * WITHIN;
		*from = -*to;
	} else if (rule->codes.grid) {
		*from = (double)rule->codes.grid->least * scale * WITHIN;
		*to = (double)ql_grid_most(rule->codes.grid) * scale * WITHIN;
	} else {
		*from = rule->codes.lo < 0 ? -scale : 0;
		*to = scale;
	}
}

#define NEAREST 0x1.8p52 /* adding and subtracting it rounds half to even */

/* density * integral of (u - n)^2, u = x * inverse; codes a..b. */
QL_INLINE double cell_error(double lo, double hi, double density, double inverse, double a, double b)
{
	double u = lo * inverse, v = hi * inverse, p = u < a ? a : u, q = v < a ? a : v;

	p = ((p > b ? b : p) + NEAREST) - NEAREST;
	q = ((q > b ? b : q) + NEAREST) - NEAREST;
	return density *
	       ((q - p) * (1.0 / 12) + ((v - q) * (v - q) * (v - q) - (u - p) * (u - p) * (u - p)) * (1.0 / 3));
}

/* Codes in steps from the zero point. */
struct codes_of_range {
	double inverse, a, b, error;
};

/* The sums of a single range, and of QL_RANGE_ERRORS ranges at once: for a block of 32 values the loop is too short to hide the
 * latency of one chain of additions. n is a multiple of LANES. */
QL_SIMD(void, affine_error, (const struct ql_range_error *c, int64_t n, struct codes_of_range *r), {
	double lane[LANES];

	for (int l = 0; l < LANES; l++)
		lane[l] = 0;
	for (int64_t i = 0; i < n; i += LANES)
		for (int l = 0; l < LANES; l++)
			lane[l] += cell_error(c->lo[i + l], c->hi[i + l], c->density[i + l], r->inverse, r->a, r->b);
	for (int w = LANES / 2; w > 0; w /= 2)
		for (int l = 0; l < w; l++)
			lane[l] += lane[l + w];
	r->error = lane[0];
})

QL_SIMD(void, affine_errors, (const struct ql_range_error *c, int64_t n, struct codes_of_range *r), {
	double lane[LANES];
	double lane1[LANES];
	double lane2[LANES];
	double lane3[LANES];

	for (int l = 0; l < LANES; l++)
		lane[l] = lane1[l] = lane2[l] = lane3[l] = 0;
	for (int64_t i = 0; i < n; i += LANES)
		for (int l = 0; l < LANES; l++) {
			double lo = c->lo[i + l];
			double hi = c->hi[i + l];
			double density = c->density[i + l];

			lane[l] += cell_error(lo, hi, density, r[0].inverse, r[0].a, r[0].b);
			lane1[l] += cell_error(lo, hi, density, r[1].inverse, r[1].a, r[1].b);
			lane2[l] += cell_error(lo, hi, density, r[2].inverse, r[2].a, r[2].b);
			lane3[l] += cell_error(lo, hi, density, r[3].inverse, r[3].a, r[3].b);
		}
	for (int w = LANES / 2; w > 0; w /= 2)
		for (int l = 0; l < w; l++) {
			lane[l] += lane[l + w];
			lane1[l] += lane1[l + w];
			lane2[l] += lane2[l + w];
			lane3[l] += lane3[l + w];
		}
	r[0].error = lane[0];
	r[1].error = lane1[0];
	r[2].error = lane2[0];
	r[3].error = lane3[0];
})

/* The error by the scheme's encoder and decoder, at the middle of each cell; `shift`: minimum of the values. */
static double scheme_error(
	const struct ql_range_error *c, const struct ql_rule *rule, float scale, int32_t zero, double shift)
{
	float x[256], y[256];
	int32_t code[256];
	double sum = 0;

	for (int i = 0; i < c->n; i += 256) {
		int m = c->n - i < 256 ? c->n - i : 256;

		for (int j = 0; j < m; j++)
			x[j] = (float)(0.5 * c->lo[i + j] + 0.5 * c->hi[i + j] - shift);
		rule->scheme->encode(x, m, scale, zero, &rule->codes, code);
		rule->scheme->decode(code, m, scale, zero, &rule->codes, y);
		for (int j = 0; j < m; j++)
			sum += c->weight[i + j] * ((double)x[j] - (double)y[j]) * ((double)x[j] - (double)y[j]);
	}
	return sum;
}

static void other_errors(const struct ql_range_error *c, const struct ql_rule *rule, int n, const double *lo,
	const double *hi, double *error)
{
	for (int i = 0; i < n; i++) {
		int32_t zero;
		float scale = rule_fit(rule, lo[i], hi[i], &zero);

		/* functions cannot be called here */
		error[i] = rule->scheme->host ? 0 : scheme_error(c, rule, scale, zero, rule->scheme->shift ? lo[i] : 0);
	}
}

void ql_range_errors(const struct ql_range_error *c, const struct ql_rule *rule, int n, const double *lo,
	const double *hi, double *error)
{
	int64_t cells = ql_ceil_div(c->n, LANES) * LANES;
	struct codes_of_range r[QL_RANGE_ERRORS];
	double s[QL_RANGE_ERRORS];

	if (!rule->scheme->affine || rule->scheme->shift) {
		other_errors(c, rule, n, lo, hi, error);
		return;
	}
	for (int i = 0; i < QL_RANGE_ERRORS; i++) {
		int32_t zero;

		if (i > 0 && i >= n) {
			r[i] = r[0]; /* not read by the caller */
			continue;
		}
		s[i] = (double)rule_scale(rule, lo[i], hi[i], &zero);
		r[i] = (struct codes_of_range){1 / s[i], rule->codes.lo - zero, rule->codes.hi - zero, 0};
	}
	(n == 1 ? affine_error : affine_errors)[rule->variant](c, cells, r);
	for (int i = 0; i < n; i++)
		error[i] = s[i] * s[i] * s[i] * r[i].error;
}

double ql_range_error_of(const struct ql_range_error *c, const struct ql_rule *rule, double lo, double hi)
{
	double error;

	ql_range_errors(c, rule, 1, &lo, &hi, &error);
	return error;
}

/* ---- counting ---- */

/* Weight of cell i within lo..hi. */
static double inside(const struct ql_range_error *c, int i, double lo, double hi)
{
	double from = c->lo[i] > lo ? c->lo[i] : lo, to = c->hi[i] < hi ? c->hi[i] : hi;

	if (from == c->lo[i] && to == c->hi[i])
		return c->weight[i];
	return to > from ? c->density[i] * (to - from) : 0;
}

double ql_range_error_outside(const struct ql_range_error *c, double lo, double hi)
{
	double sum = 0;

	for (int i = 0; i < c->n; i++)
		sum += c->weight[i] - inside(c, i, lo, hi);
	return sum > 0 ? sum : 0;
}

double ql_range_error_quantile(const struct ql_range_error *c, double weight, bool reverse)
{
	double sum = 0;

	for (int k = 0; k < c->n; k++) {
		int i = reverse ? c->n - 1 - k : k;
		double share = (weight - sum) / c->weight[i];

		if (share <= 1) {
			share = share > 0 ? share : 0;
			return reverse ? c->hi[i] - share * (c->hi[i] - c->lo[i])
				       : c->lo[i] + share * (c->hi[i] - c->lo[i]);
		}
		sum += c->weight[i];
	}
	return reverse ? c->min : c->max;
}

static double within(double x, int bins)
{
	x = x > 0 ? x : 0;
	return x < bins ? x : bins;
}

int ql_bin_of(double x, int bins)
{
	x = within(x, bins);
	return x < bins - 1 ? (int)x : bins - 1;
}

/* Adds weight to the bins of first..last, and marks the bins that it reached: some of them may have got 0. */
static inline void add(double first, double last, double weight, int bins, double *out, uint64_t *held)
{
	int a = ql_bin_of(first, bins), b = ql_bin_of(last, bins);

	first = within(first, bins);
	last = within(last, bins);
	if (held)
		for (int i = a; i <= b; i++)
			held[i / 64] |= (uint64_t)1 << (i % 64);
	if (a == b) {
		out[a] += weight;
		return;
	}
	for (int i = a; i <= b; i++) {
		double l = first > i ? first : i, h = last < i + 1 ? last : i + 1;

		out[i] += weight * ((h - l) / (last - first));
	}
}

void ql_bins_add(double first, double last, double weight, int bins, double *out)
{
	add(first, last, weight, bins, out, NULL);
}

void ql_range_error_even(
	const struct ql_range_error *c, double lo, double hi, bool magnitude, int bins, double *out, uint64_t *held)
{
	double width = (hi - lo) / bins;

	memset(out, 0, (size_t)bins * sizeof(*out));
	if (held)
		memset(held, 0, (size_t)bins / 64 * sizeof(*held));
	if (!(width > 0))
		return;
	for (int i = 0; i < c->n; i++) {
		double from = c->lo[i], to = c->hi[i];

		if (magnitude && from < 0) {
			from = -c->hi[i] > 0 ? -c->hi[i] : 0;
			to = -c->lo[i];
		}
		add((from - lo) / width, (to - lo) / width, c->weight[i], bins, out, held);
	}
}
