/* SPDX-License-Identifier: MIT
 * Products of numbers, for the kernels gemm_f32 and gemv_f32: what linear and matmul ask for as matrices, of which one may
 * be affine codes that are decoded as they are read, and what becomes of a sum: bias and activation as tensor/ops/linear.c
 * applies them, each step rounded.
 */
#ifndef QUOLL_GPU_KERNELS_FLOAT_PRODUCT_H
#define QUOLL_GPU_KERNELS_FLOAT_PRODUCT_H

#include "gpu/kernels/launch.h"
#include "gpu/kernels/product.h"

/* Scales along an axis: one per `block` elements, `step` apart; shift: of a block of 2^shift elements, else -1. */
struct ql_scale_axis {
	int64_t step;
	uint32_t block;
	int32_t shift;
};

/* Lines of k numbers or codes: rows of a, columns of b. Strides in elements. */
struct ql_float_lines {
	const void *at;
	int32_t element;
	int64_t line, step; /* between lines, and between the elements of a line */
	ql_strided batch;   /* operand 0: elements before batch i, operand 1: scales before it */
	bool codes;
	ql_scales scales;
	ql_scale_axis scale_line, scale_step;
};

struct ql_float_product {
	int64_t m, n, k, batches;
	ql_float_lines a, b;
	const void *bias; /* (n); NULL: none */
	int32_t bias_type, act;
	int64_t bias_step;
	void *out; /* (batches, m, n) */
	int32_t to;
};

/* ---- codes (host) ---- */

/* A parameter of blocks has the axes of t, of any strides; else it is a number or dense. */
static inline bool ql_parameter_fits(const struct ql_gpu_tensor *p, const struct ql_gpu_codes *c, bool is_float)
{
	int element = p ? ql_element_of(p->dtype) : -1;

	if (!p)
		return true;
	if (!ql_element_whole(element) || ql_element_float(element) != is_float || p->codes)
		return false;
	for (int d = 0; d < p->rank; d++)
		if (p->rank != c->scale->rank || (p->shape[d] != 1 && p->stride[d] != c->scale->stride[d]))
			return false;
	return !(p->flags & QL_GPU_NUMBER);
}

static inline bool ql_decodable(const struct ql_gpu_tensor *t, struct ql_gpu_plan *plan)
{
	const struct ql_gpu_codes *c = t->codes;

	if (!ql_is_codes(ql_element_of(t->dtype)))
		return ql_refuse(plan, "codes that are no integers of at most 16 bits");
	if (!(c->flags & QL_GPU_AFFINE) || c->grid)
		return ql_refuse(plan, "codes of this scheme are not multiples of a scale");
	if (c->each_bits)
		return ql_refuse(plan, "channels that differ in bits");
	if (!c->scale || !ql_parameter_fits(c->scale, c, true) || !ql_parameter_fits(c->shift, c, true) ||
		!ql_parameter_fits(c->zero_point, c, false))
		return ql_refuse(plan, "scales that are codes themselves");
	return c->scale->rank == (c->block ? t->rank : c->axis >= 0) || ql_refuse(plan, "scales of another shape");
}

/* The scales of the codes t along its axis d. */
static inline ql_scale_axis ql_scale_axis_of(const struct ql_gpu_tensor *t, int d)
{
	const struct ql_gpu_codes *c = t->codes;
	ql_scale_axis s = {0, 1, 0};

	if (!c || d < 0)
		return s;
	if (!c->block) {
		s.step = d == c->axis ? c->scale->stride[0] : 0;
		return s;
	}
	s.step = c->scale->shape[d] == 1 ? 0 : c->scale->stride[d];
	if (d != c->block_axis)
		return s;
	s.block = (uint32_t)c->block;
	s.shift = -1;
	for (int i = 0; i < 31; i++)
		if (s.block == 1u << i)
			s.shift = i;
	return s;
}

/* ---- from a call (host) ---- */

/* t with lines along the axis `line` and k along `summed`, both numbered from the end; -1: one line. */
static inline bool ql_float_lines_of(
	const struct ql_gpu_tensor *t, int line, int summed, struct ql_float_lines *l, struct ql_gpu_plan *p)
{
	if (t->flags & QL_GPU_NUMBER)
		return ql_refuse(p, "an operand is a number of the host");
	l->at = t->at;
	l->element = ql_element_of(t->dtype);
	l->line = line < 0 ? 0 : ql_stride_at(t, line);
	l->step = ql_stride_at(t, summed);
	l->codes = t->codes != NULL;
	if (!l->codes)
		return (l->element >= 0 && ql_element_get(l->element).kind != QL_E_BINARY) ||
		       ql_refuse(p, "elements that the kernel does not read");
	if (!ql_decodable(t, p))
		return false;
	l->scales = ql_scales_of(t->codes);
	l->scale_line = ql_scale_axis_of(t, line < 0 ? -1 : t->rank - 1 - line);
	l->scale_step = ql_scale_axis_of(t, t->rank - 1 - summed);
	return true;
}

/* Axis `at` of the batches of t, its axis d (-1: it has none, or repeats). */
static inline void ql_batch_axis(const struct ql_gpu_tensor *t, int d, int at, int64_t size, struct ql_float_lines *l)
{
	ql_scale_axis s = ql_scale_axis_of(t, d);

	l->batch.shape[at] = size;
	l->batch.stride[0][at] = d < 0 ? 0 : t->stride[d];
	l->batch.stride[1][at] = s.step;
	if (s.block == 1)
		return;
	l->batch.cut = at;
	l->batch.block = s.block;
}

/* Axes before the last `matrix_a` of a and `matrix_b` of b, broadcast against each other. */
static inline bool ql_batches(const struct ql_gpu_tensor *a, int matrix_a, const struct ql_gpu_tensor *b, int matrix_b,
	struct ql_float_product *x, struct ql_gpu_plan *p)
{
	int na = a->rank - matrix_a, nb = b->rank - matrix_b, n = na > nb ? na : nb;

	x->a.batch.rank = x->b.batch.rank = n;
	x->a.batch.cut = x->b.batch.cut = -1;
	x->a.batch.block = x->b.batch.block = 1;
	x->batches = 1;
	for (int d = 0; d < n; d++) { /* from the last one */
		int64_t sa = d < na ? ql_size_at(a, d + matrix_a) : 1, sb = d < nb ? ql_size_at(b, d + matrix_b) : 1;
		int64_t size = sa == 1 ? sb : sa;

		if (sa != sb && sa != 1 && sb != 1)
			return ql_refuse(p, "shapes that do not broadcast");
		x->batches *= size;
		ql_batch_axis(a, sa == 1 ? -1 : na - 1 - d, n - 1 - d, size, &x->a);
		ql_batch_axis(b, sb == 1 ? -1 : nb - 1 - d, n - 1 - d, size, &x->b);
	}
	return true;
}

static inline bool ql_no_scales(const ql_scale_axis &s)
{
	return s.step == 0;
}

/* Leading axes of a that follow each other, while b stays, are rows. */
static inline void ql_join_rows(struct ql_float_product *x)
{
	ql_strided *a = &x->a.batch, *b = &x->b.batch;

	while (a->rank > 0 && ql_no_scales(x->a.scale_line)) {
		int last = a->rank - 1;
		bool follows = x->m == 1 || a->shape[last] == 1 || a->stride[0][last] == x->m * x->a.line;

		if (b->stride[0][last] || b->stride[1][last] || a->stride[1][last] || !follows)
			return;
		if (x->m == 1)
			x->a.line = a->stride[0][last];
		x->m *= a->shape[last];
		x->batches = a->shape[last] ? x->batches / a->shape[last] : 0;
		a->rank = b->rank = last;
	}
}

static inline bool ql_linear_lines(const struct ql_gpu_call *call, struct ql_float_product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *a = &call->in[0], *w = &call->in[1];

	if (a->rank < 1 || w->rank != 2)
		return ql_refuse(p, "wanted x (…, k) and w (n, k)");
	if (!ql_float_lines_of(a, a->rank > 1 ? 1 : -1, 0, &x->a, p) || !ql_float_lines_of(w, 1, 0, &x->b, p))
		return false;
	x->m = ql_size_at(a, 1);
	x->n = w->shape[0];
	x->k = ql_size_at(a, 0);
	if (x->k != w->shape[1])
		return ql_refuse(p, "shapes that do not fit");
	return ql_batches(a, a->rank > 1 ? 2 : 1, w, 2, x, p);
}

static inline bool ql_matmul_lines(const struct ql_gpu_call *call, struct ql_float_product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *a = &call->in[0], *b = &call->in[1];
	bool row = a->rank == 1, column = b->rank == 1;

	if (a->rank < 1 || b->rank < 1)
		return ql_refuse(p, "wanted operands with axes");
	if (!ql_float_lines_of(a, row ? -1 : 1, 0, &x->a, p) ||
		!ql_float_lines_of(b, column ? -1 : 0, column ? 0 : 1, &x->b, p))
		return false;
	x->m = row ? 1 : ql_size_at(a, 1);
	x->n = column ? 1 : ql_size_at(b, 0);
	x->k = ql_size_at(a, 0);
	if (x->k != ql_size_at(b, column ? 0 : 1))
		return ql_refuse(p, "shapes that do not fit");
	return ql_batches(a, row ? 1 : 2, b, column ? 1 : 2, x, p);
}

static inline bool ql_finish_of(const struct ql_gpu_call *call, struct ql_float_product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *bias = &call->in[2], *out = &call->out[0];

	x->out = out->at;
	x->to = ql_element_of(out->dtype);
	if (out->codes)
		return ql_refuse(p, "a result of codes from floats");
	if (!ql_dense(out) || ql_count(out) != x->batches * x->m * x->n || !ql_element_whole(x->to))
		return ql_refuse(p, "wanted a dense result");
	x->act = ql_act_of(ql_text_option(call, "act"));
	if (x->act < 0 || (x->to == QL_E_float64 && x->act > QL_ACT_relu6))
		return ql_refuse(p, "an activation that the kernel does not have");
	if (call->n_in < 3)
		return true;
	x->bias = bias->at;
	x->bias_type = ql_element_of(bias->dtype);
	if (bias->codes || (bias->flags & QL_GPU_NUMBER) || !ql_element_whole(x->bias_type) ||
		!ql_element_float(x->bias_type) || bias->rank != 1 || bias->shape[0] != x->n)
		return ql_refuse(p, "wanted a bias of floats");
	x->bias_step = bias->stride[0];
	return true;
}

/* Sets x; false: a kernel cannot run the call, p->why says why. */
static inline bool ql_float_product_of(
	const struct ql_gpu_call *call, struct ql_float_product *x, struct ql_gpu_plan *p)
{
	bool linear = !strcmp(call->op, "linear");

	*x = {};
	if (call->n_in < 2 || (call->in[0].codes && call->in[1].codes)) /* a kernel of codes has said why */
		return p->why[0] ? false : ql_refuse(p, "two operands of codes have no product of floats");
	if (!(linear ? ql_linear_lines(call, x, p) : ql_matmul_lines(call, x, p)))
		return false;
	if (x->m > INT32_MAX || x->n > INT32_MAX || x->k > INT32_MAX)
		return ql_refuse(p, "more than 2^31 lines");
	ql_join_rows(x);
	x->a.batch.count = x->b.batch.count = x->batches;
	ql_strided_join(&x->a.batch);
	ql_strided_join(&x->b.batch);
	if (x->m > INT32_MAX)
		return ql_refuse(p, "more than 2^31 lines");
	return ql_finish_of(call, x, p);
}

/* True if 16 bytes can be read at every fourth element (of float32) along k, or along the lines. */
static inline bool ql_reads_16(const struct ql_float_lines *l, int64_t along, int64_t across, int64_t elements)
{
	int64_t all = across;

	for (int d = 0; d < l->batch.rank; d++)
		all |= l->batch.shape[d] == 1 ? 0 : l->batch.stride[0][d];
	return along == 1 && all % elements == 0 && (uintptr_t)l->at % 16 == 0;
}

/* ---- in kernels ---- */

/* Where a batch begins. */
struct ql_float_batch {
	int64_t at, scale;
};

QL_NUMBER ql_float_batch ql_float_lines_at(const ql_float_lines &l, int64_t number)
{
	int64_t at[QL_STRIDED_MOST];

	ql_strided_at(l.batch, number, at);
	return {at[0], at[1]};
}

QL_NUMBER int64_t ql_scale_step(const ql_scale_axis &s, uint32_t i)
{
	return (int64_t)(s.shift >= 0 ? i >> s.shift : i / s.block) * s.step;
}

/* Four neighbours from element i of aligned float32, or (HALVES) of bfloat16 or float16. */
template <bool HALVES> QL_NUMBER void ql_load_quad(const void *at, int64_t i, bool brain, float v[4])
{
	if (!HALVES) {
		float4 x = *reinterpret_cast<const float4 *>(static_cast<const float *>(at) + i);

		v[0] = x.x;
		v[1] = x.y;
		v[2] = x.z;
		v[3] = x.w;
	} else {
		uint2 x = *reinterpret_cast<const uint2 *>(static_cast<const uint16_t *>(at) + i);
		uint32_t half[4] = {x.x & 0xffffu, x.x >> 16, x.y & 0xffffu, x.y >> 16};

		for (int j = 0; j < 4; j++)
			v[j] = brain ? ql_from_bf16((uint16_t)half[j]) : ql_from_f16((uint16_t)half[j]);
	}
}

/* Element k of a line, decoded. */
QL_NUMBER float ql_line_decode(const ql_float_lines &l, const ql_float_batch &from, int64_t line, int64_t k)
{
	int64_t s = from.scale + ql_scale_step(l.scale_line, (uint32_t)line) + ql_scale_step(l.scale_step, (uint32_t)k);
	int32_t q = ql_load_code(l.element, l.at, from.at + line * l.line + k * l.step);
	float v = (float)(q - ql_zero_at(l.scales, s)) * ql_scale_at(l.scales, s);

	return l.scales.shift ? v + ql_load_float(l.scales.shift_type, l.scales.shift, s) : v;
}

QL_NUMBER void ql_line_value(const ql_float_lines &l, const ql_float_batch &from, int64_t line, int64_t k, float *v)
{
	*v = l.codes ? ql_line_decode(l, from, line, k)
		     : ql_load_f32(l.element, l.at, from.at + line * l.line + k * l.step);
}
QL_NUMBER void ql_line_value(const ql_float_lines &l, const ql_float_batch &from, int64_t line, int64_t k, double *v)
{
	*v = l.codes ? (double)ql_line_decode(l, from, line, k)
		     : ql_load_f64(l.element, l.at, from.at + line * l.line + k * l.step);
}
QL_NUMBER void ql_line_value(const ql_float_lines &l, const ql_float_batch &from, int64_t line, int64_t k, int64_t *v)
{
	*v = ql_load_i64(l.element, l.at, from.at + line * l.line + k * l.step);
}

/* Writes the result of column j, element `at` of the result, from the sum of products. */
QL_NUMBER void ql_float_store(const ql_float_product &x, int64_t at, int64_t j, float y)
{
	if (x.bias)
		y += ql_load_float(x.bias_type, x.bias, j * x.bias_step);
	y = ql_activate(x.act, y);
	if (x.to == QL_E_float32)
		static_cast<float *>(x.out)[at] = y;
	else
		ql_store_small(x.to, x.out, at, y);
}
QL_NUMBER void ql_float_store(const ql_float_product &x, int64_t at, int64_t j, double y)
{
	if (x.bias)
		y += ql_load_f64(x.bias_type, x.bias, j * x.bias_step);
	if (x.act != QL_ACT_none && y < 0)
		y = 0;
	if (x.act == QL_ACT_relu6 && y > 6)
		y = 6;
	static_cast<double *>(x.out)[at] = y;
}
QL_NUMBER void ql_float_store(const ql_float_product &x, int64_t at, int64_t, int64_t sum)
{
	ql_store_i64(x.to, x.out, at, sum);
}

#endif
