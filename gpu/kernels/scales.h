/* SPDX-License-Identifier: MIT
 * The scale, zero point and shift of each element of a tensor of affine codes, in the layout of tensor/qparams.h.
 */
#ifndef QUOLL_GPU_KERNELS_SCALES_H
#define QUOLL_GPU_KERNELS_SCALES_H

#include "gpu/kernels/number.h"
#include "gpu/kernels/strided.h"

/* What device code reads; the tensors are dense, NULL where there is none. */
struct ql_scales {
	void *scale, *zero, *shift;
	int32_t scale_type, zero_type, shift_type; /* enum ql_element */
	int32_t lo, hi;
};

/* Integer codes up to 16 bits; packed ones can only be read. */
static inline bool ql_is_codes(int element)
{
	struct ql_element_info e;

	if (element < 0)
		return false;
	e = ql_element_get(element);
	return (e.kind == QL_E_INT || e.kind == QL_E_UINT) && e.bits <= 16;
}

static inline bool ql_plain_parameter(const struct ql_gpu_tensor *t, bool is_float)
{
	int element = t ? ql_element_of(t->dtype) : -1;

	return !t || (ql_element_whole(element) && ql_element_float(element) == is_float && !t->codes &&
			     !(t->flags & QL_GPU_NUMBER) && ql_dense(t));
}

/* True if kernels convert these codes; else says why not. */
static inline bool ql_scales_fit(const struct ql_gpu_tensor *t, struct ql_gpu_plan *plan)
{
	const struct ql_gpu_codes *c = t->codes;

	if (!c)
		return ql_refuse(plan, "an operand is not quantized");
	if (!ql_is_codes(ql_element_of(t->dtype)))
		return ql_refuse(plan, "codes that are no integers of at most 16 bits");
	if (!(c->flags & QL_GPU_AFFINE) || c->grid)
		return ql_refuse(plan, "codes of this scheme are not multiples of a scale");
	if (c->each_bits)
		return ql_refuse(plan, "channels that differ in bits");
	if (!c->scale || !ql_plain_parameter(c->scale, true) || !ql_plain_parameter(c->shift, true) ||
		!ql_plain_parameter(c->zero_point, false))
		return ql_refuse(plan, "scales that are codes or views");
	return true;
}

static inline struct ql_scales ql_scales_of(const struct ql_gpu_codes *c)
{
	struct ql_scales s = {};

	s.scale = c->scale->at;
	s.scale_type = ql_element_of(c->scale->dtype);
	s.zero = c->zero_point ? c->zero_point->at : NULL;
	s.zero_type = c->zero_point ? ql_element_of(c->zero_point->dtype) : 0;
	s.shift = c->shift ? c->shift->at : NULL;
	s.shift_type = c->shift ? ql_element_of(c->shift->dtype) : 0;
	s.lo = c->lo;
	s.hi = c->hi;
	return s;
}

/* The elements of t, whose codes c are, with all axes: operand 0 is t's memory, operand 1 the number of the scale. */
static inline struct ql_strided ql_scales_axes(const struct ql_gpu_tensor *t, const struct ql_gpu_codes *c)
{
	struct ql_strided s = {};
	int64_t next = 1;

	s.rank = t->rank;
	s.count = ql_count(t);
	s.cut = c->block ? c->block_axis : -1;
	s.block = c->block ? c->block : 1;
	for (int d = t->rank - 1; d >= 0; d--) {
		s.shape[d] = t->shape[d];
		s.stride[0][d] = t->stride[d];
		if (c->block) {
			s.stride[1][d] = next;
			next *= d == s.cut ? (t->shape[d] + c->block - 1) / c->block : t->shape[d];
		} else {
			s.stride[1][d] = d == c->axis;
		}
	}
	return s;
}

/* The same with joined axes. */
static inline struct ql_strided ql_scales_walk(const struct ql_gpu_tensor *t, const struct ql_gpu_codes *c)
{
	struct ql_strided s = ql_scales_axes(t, c);

	ql_strided_join(&s);
	return s;
}

QL_NUMBER float ql_scale_at(const ql_scales &s, int64_t i)
{
	return ql_load_float(s.scale_type, s.scale, i);
}
QL_NUMBER int32_t ql_zero_at(const ql_scales &s, int64_t i)
{
	return s.zero ? (int32_t)ql_load_whole(s.zero_type, s.zero, i) : 0;
}

#endif
