/* SPDX-License-Identifier: MIT
 * The range is the smallest and the largest finite value.
 */
#include "quant/ranges/observer.h"

static void range(const struct ql_view *v, double *lo, double *hi)
{
	*lo = v->cells.min;
	*hi = v->cells.max;
}

extern const struct ql_observer_kind ql_observer_minmax;
const struct ql_observer_kind ql_observer_minmax = {
	.doc = {.name = "minmax",
		.usage = "x:quantize 'int8@minmax'",
		.text = "The range is the smallest and the largest finite value (the default).",
		.example =
			"q = tensor{-1,2}:quantize 'int8@minmax'\nprint(('%.4f'):format(q:qparams().scale:item() * 127))  --> 2.0000"},
	.plain = true,
	.range = range,
};
