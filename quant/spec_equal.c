/* SPDX-License-Identifier: MIT
 * Equality of specs, and the spec of a tensor.
 */
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

bool ql_spec_equal(const struct ql_spec *a, const struct ql_spec *b)
{
	return same_list(a->each_bits, b->each_bits) && a->dtype == b->dtype && a->bits == b->bits &&
	       a->scheme == b->scheme && a->format == b->format && a->grid == b->grid && a->scaling == b->scaling &&
	       a->overflow == b->overflow && a->axis == b->axis && a->block == b->block && a->outer == b->outer &&
	       a->has_min == b->has_min && a->has_max == b->has_max && a->quant_min == b->quant_min &&
	       a->quant_max == b->quant_max && a->observer == b->observer && a->p == b->p &&
	       a->momentum == b->momentum && a->bins == b->bins && a->choose == b->choose &&
	       a->choose_key == b->choose_key && a->octaves == b->octaves && a->has_scale == b->has_scale &&
	       (float)a->scale == (float)b->scale && a->has_zero == b->has_zero && a->zero == b->zero &&
	       same_list(a->scale_tensor, b->scale_tensor) && same_list(a->zero_tensor, b->zero_tensor) &&
	       same_list(a->importance, b->importance) && a->requant == b->requant && a->stochastic == b->stochastic;
}

/* Bounds of the codes that are not those of the bits. */
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
