/* SPDX-License-Identifier: MIT
 * Ranges, scales and ticks. Steps are 1, 2, 2.5 or 5 times a power of ten; a logarithmic axis has ticks at
 * decades, or at 1, 2, 5 of each, or (below half a decade) at round numbers, whichever comes nearest to the
 * wanted number.
 */
#include "interp/plot/scale.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "interp/host/utf8.h"

/* Beyond this hi - lo would overflow. */
#define HUGEST 4e307

void ql_range_add(struct ql_range *r, double value)
{
	if (!isfinite(value))
		return;
	if (!r->any || value < r->lo)
		r->lo = value;
	if (!r->any || value > r->hi)
		r->hi = value;
	if (value > 0 && (!(r->positive > 0) || value < r->positive))
		r->positive = value;
	r->any = true;
}

static struct ql_scale log_scale(const struct ql_range *r, double pad)
{
	struct ql_scale s = {-1, 1, true, false};
	double free;

	if (!r->any || !(r->positive > 0))
		return s;
	/* powers of ten outside of these limits are not normal numbers any more */
	s.lo = fmin(fmax(log10(r->positive), -307), 307);
	s.hi = fmin(fmax(log10(r->hi), -307), 307);
	free = (s.hi - s.lo) * pad;
	if (s.hi - s.lo < 1e-9)
		free = 0.5;
	s.lo = fmax(s.lo - free, -307.5);
	s.hi = fmin(s.hi + free, 308);
	return s;
}

struct ql_scale ql_scale_of(const struct ql_range *r, double pad, bool zero, bool log)
{
	double lo = r->any ? fmin(fmax(r->lo, -HUGEST), HUGEST) : 0;
	double hi = r->any ? fmin(fmax(r->hi, -HUGEST), HUGEST) : 1;
	double size = fmax(fabs(lo), fabs(hi)), free;
	bool positive = lo >= 0, negative = hi <= 0;

	if (log)
		return log_scale(r, pad);
	if (zero && positive)
		lo = 0;
	else if (zero && negative)
		hi = 0;
	if (!(hi - lo > size * 1e-12) || hi - lo < 1e-290) {
		free = size < 1e-290 ? 1 : size * 0.1;
		positive = positive && zero;
		negative = negative && zero && !positive;
	} else {
		free = (hi - lo) * pad;
	}
	/* data on one side of 0 never gets an axis that crosses it */
	lo = positive ? fmax(lo - free, 0) : lo - free;
	hi = negative ? fmin(hi + free, 0) : hi + free;
	return (struct ql_scale){lo, hi, false, false};
}

bool ql_scale_fixed(double lo, double hi, bool log, struct ql_scale *out)
{
	if (!isfinite(lo) || !isfinite(hi) || lo == hi || (log && (lo <= 0 || hi <= 0)))
		return false;
	lo = fmin(fmax(lo, -HUGEST), HUGEST);
	hi = fmin(fmax(hi, -HUGEST), HUGEST);
	*out = (struct ql_scale){log ? log10(lo) : lo, log ? log10(hi) : hi, log, false};
	if (out->lo > out->hi) {
		double t = out->lo;

		out->lo = out->hi;
		out->hi = t;
		out->down = true;
	}
	return out->hi - out->lo > fmax(fabs(out->lo), fabs(out->hi)) * 1e-13;
}

double ql_scale_at(const struct ql_scale *s, double value)
{
	double t;

	if (!isfinite(value) || (s->log && value <= 0))
		return NAN;
	/* far outside is far enough: devices have no use for 1e300 */
	t = ((s->log ? log10(value) : value) - s->lo) / (s->hi - s->lo);
	t = fmin(fmax(t, -50), 50);
	return s->down ? 1 - t : t;
}

/* ---- labels ---- */

static int decade(double value)
{
	return (int)floor(log10(value) + 1e-9);
}

static void put_superscript(int n, char *text, size_t size)
{
	static const char *const digit[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
	char plain[16];

	snprintf(plain, sizeof(plain), "%d", n < 0 ? -n : n);
	snprintf(text, size, "%s", n < 0 ? "⁻" : "");
	for (const char *p = plain; *p; p++)
		strncat(text, digit[*p - '0'], size - strlen(text) - 1);
}

/* `text` with a real minus sign. */
static void put_minus(const char *plain, char text[QL_TICK_TEXT])
{
	snprintf(text, QL_TICK_TEXT, "%s%.28s", *plain == '-' ? "−" : "", *plain == '-' ? plain + 1 : plain);
}

/* How all labels of one axis are written. */
struct style {
	double unit; /* labels show value / unit */
	int decimals;
	char suffix[40]; /* "k", "×10⁻⁵" */
};

/* Digits after the point that tell multiples of `step` apart. */
static int decimals_of(double step)
{
	int n = 0;

	for (double power = 1; n < 12 && fabs(step - rint(step * power) / power) > 1e-6 * step; power *= 10)
		n++;
	return n;
}

static struct style style_of(double largest, double step)
{
	static const char *const suffixes[] = {"", "k", "M", "G", "T"};
	struct style st = {1, 0, ""};
	char power[16];
	int e = largest > 0 ? decade(largest) : 0;

	if (e >= 4 && e < 15) {
		st.unit = pow(10, e / 3 * 3);
		strcpy(st.suffix, suffixes[e / 3]);
	} else if (e >= 15 || e < -4) {
		st.unit = pow(10, e);
		put_superscript(e, power, sizeof(power));
		snprintf(st.suffix, sizeof(st.suffix), "×10%s", power);
	}
	st.decimals = decimals_of(step / st.unit);
	if (e < 9 && st.decimals > 3 && st.unit > 1) { /* 100000.25 rather than 100.00025k */
		st.unit = 1;
		st.decimals = decimals_of(step);
		*st.suffix = '\0';
	}
	return st;
}

static void label(double value, const struct style *st, char text[QL_TICK_TEXT])
{
	char plain[QL_TICK_TEXT + 48];

	if (value == 0)
		strcpy(plain, "0");
	else
		snprintf(plain, sizeof(plain), "%.*f%s", st->decimals, value / st->unit, st->suffix);
	put_minus(plain, text);
}

void ql_number_text(double value, char text[QL_TICK_TEXT])
{
	struct style st;
	char plain[64];
	int e;

	if (!isfinite(value)) {
		put_minus(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf", text);
		return;
	}
	e = value != 0 ? decade(fabs(value)) : 0;
	st = style_of(fabs(value), fabs(value));
	if (!*st.suffix) {
		snprintf(plain, sizeof(plain), "%.*g", e == 4 ? 5 : 4, value);
	} else {
		snprintf(plain, 24, "%.*g", e < 15 && e >= 0 ? 4 : 3, value / st.unit);
		strcat(plain, st.suffix);
	}
	put_minus(plain, text);
}

/* ---- ticks ---- */

static double nice_step(double rough)
{
	double unit = pow(10, floor(log10(rough))), f = rough / unit;

	return unit * (f < 1.2 ? 1 : f < 2.2 ? 2 : f < 2.8 ? 2.5 : f < 6 ? 5 : 10);
}

static void step_ticks(double lo, double hi, double step, struct ql_ticks *out)
{
	double eps = (hi - lo) * 1e-9;
	double largest = fmax(fabs(lo), fabs(hi));
	struct style st;
	double first = ceil((lo - eps) / step);

	st = style_of(largest >= step ? floor((largest + eps) / step) * step : step, step);
	for (int i = 0; i < QL_TICKS && (first + i) * step <= hi + eps; i++) {
		struct ql_tick *t = &out->tick[out->n++];

		t->at = first + i == 0 ? 0 : (first + i) * step;
		label(t->at, &st, t->text);
	}
}

static void linear_ticks(double lo, double hi, int wanted, struct ql_ticks *out)
{
	step_ticks(lo, hi, nice_step((hi - lo) / wanted), out);
}

static void log_label(int mantissa, int e, bool power, bool thousands, char text[QL_TICK_TEXT])
{
	char exponent[16];
	struct style st = {1, 0, ""};

	if (power) {
		put_superscript(e, exponent, sizeof(exponent));
		if (mantissa == 1)
			snprintf(text, QL_TICK_TEXT, "10%s", exponent);
		else
			snprintf(text, QL_TICK_TEXT, "%d×10%s", mantissa, exponent);
		return;
	}
	if (thousands && e >= 3)
		st = style_of(pow(10, e < 4 ? 4 : e), pow(10, e));
	st.unit = e == 3 && thousands ? 1e3 : st.unit;
	st.decimals = e < 0 ? -e : 0;
	label(mantissa * pow(10, e), &st, text);
}

/* Ticks at the mantissas of every `stride`-th decade; the rest of 1..9 become minor ones. */
static void decade_ticks(const struct ql_scale *s, const char *mantissas, int stride, struct ql_ticks *out)
{
	int lo = (int)floor(s->lo - 1e-9), hi = (int)ceil(s->hi + 1e-9);
	bool power = s->lo < -4.3 || s->hi > 15, thousands = s->hi >= 4;

	out->n = out->n_minor = 0;
	for (int e = lo; e <= hi; e++) {
		for (int m = 1; m <= 9; m++) {
			double at = e + log10(m);
			bool major = strchr(mantissas, '0' + m) && ((e % stride) + stride) % stride == 0;

			if (at < s->lo - 1e-9 || at > s->hi + 1e-9)
				continue;
			if (major && out->n < QL_TICKS) {
				out->tick[out->n].at = m * pow(10, e);
				log_label(m, e, power, thousands, out->tick[out->n++].text);
			} else if (!major && (stride == 1 || m == 1) && out->n_minor < 128) {
				out->minor[out->n_minor++] = m * pow(10, e);
			}
		}
	}
	if (hi - lo > 12)
		out->n_minor = 0;
}

static void log_ticks(const struct ql_scale *s, int wanted, struct ql_ticks *out)
{
	double decades = s->hi - s->lo;
	static const int strides[] = {1, 2, 3, 5, 10, 20, 50, 100, 200};
	int i = 0;

	if (decades < 0.5) {
		linear_ticks(pow(10, s->lo), pow(10, s->hi), wanted, out);
		return;
	}
	while (decades / strides[i] > wanted * 1.1 && strides[i] < 200)
		i++;
	decade_ticks(s,
		decades * 9 < wanted          ? "123456789"
		: decades * 3 <= wanted * 1.2 ? "125"
					      : "1",
		strides[i], out);
	while (out->n < 2 && i > 0)
		decade_ticks(s, "1", strides[--i], out);
	if (out->n < 2)
		decade_ticks(s, "125", 1, out);
}

static int sensible(int wanted)
{
	return wanted < 2 ? 2 : wanted > QL_TICKS / 2 ? QL_TICKS / 2 : wanted;
}

void ql_scale_whole_ticks(const struct ql_scale *s, int wanted, struct ql_ticks *out)
{
	double step = fmax(1, nice_step((s->hi - s->lo) / sensible(wanted)));

	out->n = out->n_minor = 0;
	step_ticks(s->lo, s->hi, step == 2.5 ? 2 : step, out);
}

void ql_scale_ticks(const struct ql_scale *s, int wanted, struct ql_ticks *out)
{
	out->n = out->n_minor = 0;
	wanted = sensible(wanted);
	if (s->log)
		log_ticks(s, wanted, out);
	else
		linear_ticks(s->lo, s->hi, wanted, out);
}
