/* SPDX-License-Identifier: MIT
 * The table of formats and the rules of their scales.
 */
#include "quant/format.h"

#include <math.h>
#include <string.h>

#include "quant/blocks/block.h"
#include "quant/user_format.h"
#include "tensor/grid.h"

#define X(name) extern const struct ql_scheme ql_scheme_##name;
#include "quant/schemes.def"
#undef X
#define X(id, label, storage, scheme_name, grid_name, ...) extern const struct ql_grid ql_grid_##grid_name;
#include "quant/formats.def"
#undef X

#define FREE(n)
#define FIXED(n)
#define BLOCKS(n, kind) extern const struct ql_block_kind ql_block_kind_##kind;
#define X(id, label, storage, scheme_name, grid_name, blocks, ...) blocks
#include "quant/formats.def"
#undef X
#undef FREE
#undef FIXED
#undef BLOCKS

const struct ql_grid ql_grid_none = {.n = 0};

#define FREE(n) .block = (n)
#define FIXED(n) .block = (n), .fixed = true
#define BLOCKS(n, kind) .block = (n), .fixed = true, .blocks = &ql_block_kind_##kind
#define X(id, label, storage, scheme_name, grid_name, block_of, scales, rule, about) \
	static const struct ql_quant_format format_##id = { \
		.doc = {.name = label, .usage = "x:quantize '" label "'", .text = about}, \
		.dtype = QL_##storage, \
		.scheme = &ql_scheme_##scheme_name, \
		.grid = &ql_grid_##grid_name, \
		block_of, \
		.scale = scales, \
		.scaling = QL_SCALING_##rule};
#include "quant/formats.def"
#undef X

const struct ql_quant_format *const ql_quant_formats[] = {
#define X(id, ...) &format_##id,
#include "quant/formats.def"
#undef X
	NULL,
};

#define X(id, ...) +1
_Static_assert(0
#include "quant/formats.def"
		       <= QL_GRID_STATIC,
	"more formats than tables of grids");
#undef X

const struct ql_quant_format *ql_quant_format_by_name(const struct ql_ctx *ctx, const char *name)
{
	for (int i = 0; ql_quant_formats[i]; i++)
		if (!strcmp(ql_quant_formats[i]->doc.name, name))
			return ql_quant_formats[i];
	for (const struct ql_user_format *u = ctx->formats; u; u = u->next)
		if (!strcmp(u->name, name) || !strcmp(u->stored, name))
			return &u->format;
	return NULL;
}

const struct ql_grid_table *ql_quant_format_table(const struct ql_quant_format *format)
{
	if (format->table || format->functions)
		return format->table;
	return format->grid && format->grid->n ? ql_grid_table(format->grid) : NULL;
}

/* ---- scales ---- */

const char ql_scaling_names[] = "exact floor even ceil pow2";
static const char *const names[] = {"exact", "floor", "even", "ceil", "pow2"};

const char *ql_scaling_name(enum ql_scaling scaling)
{
	return names[scaling];
}

bool ql_scaling_by_name(const char *name, enum ql_scaling *scaling)
{
	for (int i = 0; i < (int)(sizeof(names) / sizeof(*names)); i++)
		if (!strcmp(names[i], name)) {
			*scaling = (enum ql_scaling)i;
			return true;
		}
	return false;
}

/* The exponent of the largest power of two <= x; with `up` the smallest >= x. */
static int exponent_of(double x, bool up)
{
	int e;
	double fraction = frexp(x, &e); /* 0.5 <= fraction < 1 */

	return up && fraction > 0.5 ? e : e - 1;
}

double ql_scaling_of(enum ql_scaling scaling, double most, double unit, int mantissa)
{
	int e;

	if (scaling == QL_SCALING_EXACT || most == 0)
		return most / unit;
	if (scaling == QL_SCALING_POW2)
		return ldexp(1, exponent_of(most / unit, true));
	if (scaling == QL_SCALING_EVEN) /* binary 1.1…1 rounds up to the next power of two */
		most += ldexp(0.5, exponent_of(most, false) - mantissa);
	e = exponent_of(most, scaling == QL_SCALING_CEIL) - exponent_of(unit, false);
	return ldexp(1, e < -127 ? -127 : e > 127 ? 127 : e);
}
