/* SPDX-License-Identifier: MIT
 * The observer for a user-defined function. The function is in the spec (choose), and interp/bind/observer.c calls it;
 * this file provides name and help.
 */
#include "quant/ranges/observer.h"

/* Minimum and maximum, used where the function cannot be called. */
static void range(const struct ql_view *v, double *lo, double *hi)
{
	*lo = v->cells.min;
	*hi = v->cells.max;
}

const struct ql_observer_kind ql_observer_function = {
	.doc = {.name = "function",
		.usage = "x:quantize{dtype='int8', observer=function(histogram, spec) return lo, hi end}",
		.text = "A user-defined function returns the range. Its arguments are a histogram (counts: a list over bins of equal width, "
			"edges: one more, lo, hi, count, mean, std) and the spec. It is called once per scale.",
		.example = "f = function(h, spec) return h.lo / 2, h.hi / 2 end\n"
			   "q = tensor{-2,4}:quantize{dtype='int8', observer=f}\n"
			   "print(('%.3f'):format(127 * q:qparams().scale:item()))  --> 2.000"},
	.range = range,
};
