/* SPDX-License-Identifier: MIT
 * From data to axes: the range of finite values, a scale (linear or logarithmic), round ticks and their
 * labels.
 */
#ifndef QUOLL_INTERP_PLOT_SCALE_H
#define QUOLL_INTERP_PLOT_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* Of the finite values added; `positive` is the smallest above 0, as a logarithmic axis needs it. */
struct ql_range {
	double lo, hi, positive;
	bool any;
};

struct ql_scale {
	double lo, hi;  /* in data units, or their decimal logarithms */
	bool log, down; /* down: from the far end */
};

#define QL_TICKS 64
#define QL_TICK_TEXT 32
struct ql_tick {
	double at; /* data units */
	char text[QL_TICK_TEXT];
};
struct ql_ticks {
	int n, n_minor;
	struct ql_tick tick[QL_TICKS];
	double minor[128]; /* between the ticks of a logarithmic scale */
};

void ql_range_add(struct ql_range *r, double value);
/* A scale for the range with `pad` of its length added at both ends; `zero` makes 0 one end of it (not on a
 * logarithmic scale). Constant and empty ranges get a sensible one. */
struct ql_scale ql_scale_of(const struct ql_range *r, double pad, bool zero, bool log);
/* Exactly lo..hi; false when a logarithmic scale cannot show it. */
bool ql_scale_fixed(double lo, double hi, bool log, struct ql_scale *out);
/* Position 0..1 along the axis (outside for values out of range); NaN for what cannot be shown. */
double ql_scale_at(const struct ql_scale *s, double value);
/* About `wanted` round ticks. */
void ql_scale_ticks(const struct ql_scale *s, int wanted, struct ql_ticks *out);
/* The same at whole numbers only. */
void ql_scale_whole_ticks(const struct ql_scale *s, int wanted, struct ql_ticks *out);
/* A number for a label: at most 4 significant digits, k M G T or a power of ten where that is shorter. */
void ql_number_text(double value, char text[QL_TICK_TEXT]);

#endif
