/* SPDX-License-Identifier: MIT
 * Equality of specs, and the spec of a tensor.
 */
#include <string.h>

#include "quant/observer_kind.h"
#include "quant/spec.h"
#include "tensor/grid.h"

/* Compares numbers as float32, the dtype in which scales are stored. */
static bool same_list(const struct ql_tensor *a, const struct ql_tensor *b)
{
	int64_t n = a ? ql_tensor_nelem(a) : 0;

	if (!a || !b || !ql_tensor_same_shape(a, b))
		return a == b;
	for (int64_t i = 0; i < n; i++)
		if ((float)ql_tensor_at_f64(a, i) != (float)ql_tensor_at_f64(b, i))
			return false;
	return true;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Compares the fields of spec.def. Formats are compared by address, because quant.scheme may redefine a name. */
bool ql_spec_equal(const struct ql_spec *a, const struct ql_spec *b)
{
	struct ql_spec_fields f, g;

	ql_spec_fields_of(a, &f);
	ql_spec_fields_of(b, &g);
#define SAME_STRING(key) same_text(f.key, g.key)
#define SAME_NUMBER(key) (f.has_##key == g.has_##key && (!f.has_##key || f.key == g.key))
#define SAME_INT(key) SAME_NUMBER(key)
#define SAME_FLOAT(key) SAME_NUMBER(key)
#define SAME_BOOL(key) SAME_NUMBER(key)
#define SAME_TENSOR(key) same_list(f.key, g.key)
#define X(key, kind, place, words, text) &&SAME_##kind(key)
	return true
#include "quant/spec.def"
	       && a->format == b->format && a->grid == b->grid && f.with_minimum == g.with_minimum &&
	       f.choose == g.choose && f.choose_key == g.choose_key && same_list(f.each_bits, g.each_bits) &&
	       same_list(f.scale_tensor, g.scale_tensor) && same_list(f.zero_tensor, g.zero_tensor) &&
	       same_list(f.minimum_tensor, g.minimum_tensor);
#undef X
}

/* Sets the bounds of the codes that differ from those of the bits. */
static void take_bounds(const struct ql_qparams *q, unsigned dtype, struct ql_spec *spec)
{
	struct ql_codes narrow = q->codes, wide = q->codes;

	q->scheme->range(dtype, false, &narrow);
	q->scheme->range(dtype, true, &wide);
	spec->has_min = q->codes.lo != narrow.lo && q->codes.lo != wide.lo;
	spec->has_max = q->codes.hi != narrow.hi && q->codes.hi != wide.hi;
	spec->quant_min = spec->has_min ? q->codes.lo : 0;
	spec->quant_max = spec->has_max ? q->codes.hi : 0;
}

void ql_spec_of(const struct ql_tensor *t, struct ql_spec *spec)
{
	*spec = (struct ql_spec){.dtype = t->dtype, .bits = ql_dtypes[t->dtype].bits};
	if (!t->q)
		return;
	spec->bits = t->q->codes.bits;
	spec->each_bits = t->q->bits;
	spec->scheme = t->q->scheme;
	spec->format = t->q->format;
	spec->grid = t->q->values ? ql_quant_format_table(t->q->format) : t->q->codes.grid;
	spec->scaling = (enum ql_scaling)t->q->codes.scaling;
	spec->overflow = t->q->codes.overflow;
	take_bounds(t->q, t->dtype, spec);
	spec->observer = ql_observers[0];
	spec->p = QL_SPEC_P;
	spec->momentum = QL_SPEC_MOMENTUM;
	spec->bins = QL_SPEC_BINS;
	spec->octaves = (double)t->q->codes.octaves;
	spec->block = t->q->block;
	if (t->q->scale->q && !(spec->format && spec->format->fixed))
		spec->outer = t->q->scale->q->block;
	if (t->q->axis >= 0)
		spec->axis = t->q->axis + 1;
	else if (t->q->block && t->q->block_axis != t->rank - 1)
		spec->axis = t->q->block_axis + 1;
}
