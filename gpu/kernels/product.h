/* SPDX-License-Identifier: MIT
 * Products of 8-bit codes, for the kernels gemm_i8_*: what linear and matmul ask for as matrices, and what becomes of an
 * exact sum, by the arithmetic of quant/paths/matmul_int.c and quant/integer/product_out.c.
 */
#ifndef QUOLL_GPU_KERNELS_PRODUCT_H
#define QUOLL_GPU_KERNELS_PRODUCT_H

#include "gpu/kernels/act.h"
#include "gpu/kernels/fixed.h"
#include "gpu/kernels/scales.h"

/* Lines of k codes: rows of a, columns of b. Strides in bytes. */
struct ql_code_matrix {
	const uint8_t *at;
	int64_t line, step;     /* between lines, and between codes of a line */
	bool is_unsigned, wide; /* wide: 16 bytes of a line can be read at once */
	int32_t bytes;          /* of a code */
	ql_scales scales;
	int64_t per_line; /* 1: a scale for each line; else 0 */
};

struct ql_code_product {
	int64_t m, n, k, batches;
	struct ql_code_matrix a, b;
	ql_strided offset, scale; /* of batch i: bytes of a and b; numbers of their first scales */
	const void *bias;         /* (n); NULL: none */
	int32_t bias_type, act;
	void *out; /* (batches, m, n) */
	int32_t to;
	bool codes;   /* of `result`, which has one scale; else float32, or that rounded once to 16 bits */
	bool divided; /* floats, divided by that scale; else sums are rescaled by the rule `rounding` */
	int32_t rounding;
	unsigned long long *counts; /* of NaN and infinite floats that are divided; NULL: not wanted */
	ql_scales result;
};

/* ---- from a call (host) ---- */

static inline const char *ql_text_option(const struct ql_gpu_call *call, const char *name)
{
	for (int i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, name))
			return call->options[i].s;
	return NULL;
}

/* The axis of t with this number from the end; of what t lacks: size 1, stride 0. */
static inline int64_t ql_size_at(const struct ql_gpu_tensor *t, int from_end)
{
	return from_end < t->rank ? t->shape[t->rank - 1 - from_end] : 1;
}
static inline int64_t ql_stride_at(const struct ql_gpu_tensor *t, int from_end)
{
	return from_end < t->rank && ql_size_at(t, from_end) != 1 ? t->stride[t->rank - 1 - from_end] : 0;
}

/* Codes of t with lines along the axis `line` and k along `summed`, both numbered from the end; -1: one line. */
static inline bool ql_matrix_of(
	const struct ql_gpu_tensor *t, int line, int summed, struct ql_code_matrix *l, struct ql_gpu_plan *p)
{
	const struct ql_gpu_codes *c = t->codes;
	int32_t bits;

	if (!ql_scales_fit(t, p))
		return false;
	bits = ql_element_get(ql_element_of(t->dtype)).bits;
	if (bits != 8 && bits != 8 * l->bytes)
		return ql_refuse(p, "codes of other than 8 bits");
	l->bytes = bits / 8;
	if (c->shift)
		return ql_refuse(p, "codes with a minimum");
	if (c->block)
		return ql_refuse(p, "scale varies in blocks");
	if (c->axis >= 0 && c->axis == t->rank - 1 - summed)
		return ql_refuse(p, "scale varies along the summed axis");
	l->at = static_cast<const uint8_t *>(t->at);
	l->line = line < 0 ? 0 : ql_stride_at(t, line) * l->bytes;
	l->step = ql_stride_at(t, summed) * l->bytes;
	l->is_unsigned = ql_element_get(ql_element_of(t->dtype)).kind == QL_E_UINT;
	l->scales = ql_scales_of(c);
	l->per_line = c->axis >= 0 && line >= 0 && c->axis == t->rank - 1 - line;
	return true;
}

/* Axes before the last `matrix_a` of a and `matrix_b` of b, broadcast against each other. */
static inline bool ql_batches_of(const struct ql_gpu_tensor *a, int matrix_a, const struct ql_gpu_tensor *b,
	int matrix_b, struct ql_code_product *x, struct ql_gpu_plan *p)
{
	int na = a->rank - matrix_a, nb = b->rank - matrix_b, n = na > nb ? na : nb;

	x->offset.rank = x->scale.rank = n;
	x->offset.cut = x->scale.cut = -1;
	x->batches = 1;
	for (int d = 0; d < n; d++) { /* from the last one */
		int at = n - 1 - d;
		int64_t sa = d < na ? ql_size_at(a, d + matrix_a) : 1, sb = d < nb ? ql_size_at(b, d + matrix_b) : 1;

		if (sa != sb && sa != 1 && sb != 1)
			return ql_refuse(p, "shapes that do not broadcast");
		x->offset.shape[at] = x->scale.shape[at] = sa == 1 ? sb : sa;
		x->batches *= x->offset.shape[at];
		x->offset.stride[0][at] = d < na ? ql_stride_at(a, d + matrix_a) * x->a.bytes : 0;
		x->offset.stride[1][at] = d < nb ? ql_stride_at(b, d + matrix_b) * x->b.bytes : 0;
		x->scale.stride[0][at] = d < na && sa != 1 && a->codes->axis == na - 1 - d;
		x->scale.stride[1][at] = d < nb && sb != 1 && b->codes->axis == nb - 1 - d;
	}
	return true;
}

/* Leading axes of a that follow each other are rows. */
static inline void ql_more_rows(struct ql_code_product *x)
{
	int last = x->offset.rank - 1;

	while (last >= 0 && x->offset.stride[1][last] == 0 && x->scale.stride[0][last] == 0 &&
		x->scale.stride[1][last] == 0 && !x->a.per_line &&
		(x->m == 1 || x->offset.shape[last] == 1 || x->offset.stride[0][last] == x->m * x->a.line)) {
		if (x->m == 1)
			x->a.line = x->offset.stride[0][last];
		x->m *= x->offset.shape[last];
		x->batches = x->offset.shape[last] ? x->batches / x->offset.shape[last] : 0;
		x->offset.rank = x->scale.rank = last--;
	}
}

static inline bool ql_linear_of(const struct ql_gpu_call *call, struct ql_code_product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *a = &call->in[0], *w = &call->in[1];

	if (a->rank < 1 || w->rank != 2 || !ql_matrix_of(a, a->rank > 1 ? 1 : -1, 0, &x->a, p) ||
		!ql_matrix_of(w, 1, 0, &x->b, p))
		return p->why[0] ? false : ql_refuse(p, "wanted x (…, k) and w (n, k)");
	if (a->rank > 2 && a->codes->axis >= 0)
		return ql_refuse(p, "scale varies along one of several leading axes");
	x->m = ql_size_at(a, 1);
	x->n = w->shape[0];
	x->k = ql_size_at(a, 0);
	if (x->k != w->shape[1])
		return ql_refuse(p, "shapes that do not fit");
	return ql_batches_of(a, a->rank > 1 ? 2 : 1, w, 2, x, p);
}

static inline bool ql_matmul_of(const struct ql_gpu_call *call, struct ql_code_product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *a = &call->in[0], *b = &call->in[1];
	bool row = a->rank == 1, column = b->rank == 1;

	if (a->rank < 1 || b->rank < 1 || !ql_matrix_of(a, row ? -1 : 1, 0, &x->a, p) ||
		!ql_matrix_of(b, column ? -1 : 0, column ? 0 : 1, &x->b, p))
		return p->why[0] ? false : ql_refuse(p, "wanted operands with axes");
	x->m = row ? 1 : ql_size_at(a, 1);
	x->n = column ? 1 : ql_size_at(b, 0);
	x->k = ql_size_at(a, 0);
	if (x->k != ql_size_at(b, column ? 0 : 1))
		return ql_refuse(p, "shapes that do not fit");
	return ql_batches_of(a, row ? 1 : 2, b, column ? 1 : 2, x, p);
}

static inline bool ql_bias_of(const struct ql_gpu_call *call, struct ql_code_product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *bias = &call->in[2];
	const char *act = ql_text_option(call, "act");

	x->act = ql_act_of(act);
	if (x->act < 0)
		return ql_refuse(p, "an activation that the kernel does not have");
	if (call->n_in < 3)
		return true;
	x->bias = bias->at;
	x->bias_type = ql_element_of(bias->dtype);
	if (bias->codes || (bias->flags & QL_GPU_NUMBER) || !ql_element_whole(x->bias_type) ||
		!ql_element_float(x->bias_type) || bias->rank != 1 || bias->shape[0] != x->n || !ql_dense(bias))
		return ql_refuse(p, "wanted a dense bias of floats");
	return true;
}

static inline bool ql_result_of(const struct ql_gpu_call *call, struct ql_code_product *x, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *out = &call->out[0];

	x->out = out->at;
	x->to = ql_element_of(out->dtype);
	x->codes = out->codes != NULL;
	if (!ql_dense(out) || ql_count(out) != x->batches * x->m * x->n)
		return ql_refuse(p, "wanted a dense result");
	if (!x->codes)
		return x->to == QL_E_float32 || x->to == QL_E_float16 || x->to == QL_E_bfloat16 ||
		       ql_refuse(p, "wanted a result of float32 or 16-bit floats");
	if (!ql_scales_fit(out, p))
		return false;
	if (!ql_element_whole(x->to))
		return ql_refuse(p, "a result of packed codes");
	if (out->codes->flags & QL_GPU_FIND)
		return ql_refuse(p, "the range of the result is not known before");
	if (out->codes->axis >= 0 || out->codes->block || out->codes->shift)
		return ql_refuse(p, "wanted one scale for the result");
	x->divided = x->act != QL_ACT_none && x->act != QL_ACT_relu;
	x->rounding = out->codes->rounding;
	x->counts = reinterpret_cast<unsigned long long *>(out->codes->counts);
	if (x->divided && x->rounding)
		return ql_refuse(p, "rounding: wanted integer results, got an activation of floats");
	x->result = ql_scales_of(out->codes);
	return true;
}

/* The largest |code|. */
static inline int64_t ql_most_of(const struct ql_code_matrix *l)
{
	return l->is_unsigned ? 255 : 128;
}

static inline bool ql_is_wide(const struct ql_code_matrix *l, const ql_strided &offset, int operand)
{
	int64_t all = (int64_t)(uintptr_t)l->at | l->line;

	for (int d = 0; d < offset.rank; d++)
		all |= offset.stride[operand][d];
	return l->step == 1 && all % 16 == 0;
}

/* Sets x; false: a kernel cannot run the call, p->why says why. bytes: of codes, at most. */
static inline bool ql_product_of(
	const struct ql_gpu_call *call, struct ql_code_product *x, struct ql_gpu_plan *p, int32_t bytes = 1)
{
	bool linear = !strcmp(call->op, "linear");

	*x = {};
	x->a.bytes = x->b.bytes = bytes;
	if (call->n_in < 2 || !(linear ? ql_linear_of(call, x, p) : ql_matmul_of(call, x, p)))
		return p->why[0] ? false : ql_refuse(p, "wanted two operands");
	ql_more_rows(x);
	ql_strided_join(&x->offset);
	ql_strided_join(&x->scale);
	if (bytes == 1 && x->k >= ((int64_t)1 << 31) / (ql_most_of(&x->a) * ql_most_of(&x->b)))
		return ql_refuse(p, "sums of more than 32 bits");
	if (x->m > INT32_MAX || x->n > INT32_MAX)
		return ql_refuse(p, "more than 2^31 lines");
	if (!ql_bias_of(call, x, p) || !ql_result_of(call, x, p))
		return false;
	x->a.wide = ql_is_wide(&x->a, x->offset, 0);
	x->b.wide = ql_is_wide(&x->b, x->offset, 1);
	p->path = x->rounding == QL_ROUNDING_SINGLE ? "int8 single" : x->rounding ? "int8 double" : "int8";
	return true;
}

/* ---- in kernels ---- */

/* Where batch i begins. */
struct ql_batch {
	const uint8_t *a, *b;
	int64_t scale_a, scale_b;
};

QL_NUMBER ql_batch ql_batch_at(const ql_code_product &x, int64_t i)
{
	int64_t at[QL_STRIDED_MOST], scale[QL_STRIDED_MOST];

	ql_strided_at(x.offset, i, at);
	ql_strided_at(x.scale, i, scale);
	return {x.a.at + at[0], x.b.at + at[1], scale[0], scale[1]};
}

/* A bias in units of the scale of the sums; NaN makes them the zero point: *none. */
QL_NUMBER int64_t ql_bias_units(float bias, float scale, bool *none)
{
	double units = rint((double)bias / (double)scale);

	*none = isnan(units);
	return *none ? 0 : (int64_t)fmin(fmax(units, -0x1p61), 0x1p61);
}

QL_NUMBER int32_t ql_round_code(float v, int32_t lo, int32_t hi, int32_t zero)
{
	v = v == v ? v : 0;
	v = v < (float)(lo - zero) ? (float)(lo - zero) : v;
	v = v > (float)(hi - zero) ? (float)(hi - zero) : v;
	return (int32_t)rintf(v) + zero;
}

/* The code of a sum in units of m times the scale of the result. */
QL_NUMBER int32_t ql_rescale(const ql_code_product &x, int64_t sum, double m)
{
	int32_t zero = ql_zero_at(x.result, 0), lo = x.result.lo, hi = x.result.hi;

	if (x.rounding == QL_ROUNDING_FLOAT)
		return ql_round_code((float)sum * (float)m, lo, hi, zero);
	return (int32_t)ql_clamp_i64(ql_fixed_product(x.rounding, sum, m), lo - zero, hi - zero) + zero;
}

/* As quantize. */
QL_NUMBER void ql_store_divided(const ql_code_product &x, int64_t at, float y)
{
	ql_store_i64(x.to, x.out, at,
		ql_round_code(rintf(y / ql_scale_at(x.result, 0)), x.result.lo, x.result.hi, ql_zero_at(x.result, 0)));
	if (x.counts && y - y != 0)
		atomicAdd(&x.counts[y == y], 1ull);
}

/* What a result needs of its row of a or its column of b; sum: of its codes, which only zero points of the other operand
 * need. */
struct ql_code_line {
	float scale;
	int32_t zero, sum;
};

QL_NUMBER ql_code_line ql_code_line_of(const ql_code_matrix &l, int64_t first_scale, int64_t i, int32_t sum)
{
	return {ql_scale_at(l.scales, first_scale + i * l.per_line), ql_zero_at(l.scales, first_scale + i * l.per_line),
		sum};
}

QL_NUMBER float ql_bias_at(const ql_code_product &x, int64_t j)
{
	return x.bias ? ql_load_float(x.bias_type, x.bias, j) : 0;
}

/* Writes result `at`, floats or codes divided by their scale, from a sum in real numbers. */
QL_NUMBER void ql_product_give(const ql_code_product &x, int64_t at, float y, float bias)
{
	if (x.bias)
		y += bias;
	y = ql_activate(x.act, y);
	if (!x.codes && x.to == QL_E_float32)
		static_cast<float *>(x.out)[at] = y;
	else if (!x.codes)
		ql_store_f32(x.to, x.out, at, y);
	else
		ql_store_divided(x, at, y);
}

/* Writes result `at` from the sum of products of codes less their zero points. */
QL_NUMBER void ql_product_finish(
	const ql_code_product &x, int64_t at, const ql_code_line &a, const ql_code_line &b, float bias, int64_t exact)
{
	bool none = false;

	if (!x.codes || x.divided) {
		ql_product_give(x, at, (float)exact * (a.scale * b.scale), bias);
		return;
	}
	if (x.bias)
		exact += ql_bias_units(bias, a.scale * b.scale, &none);
	if (none || (x.act == QL_ACT_relu && exact < 0))
		exact = 0;
	ql_store_i64(x.to, x.out, at,
		ql_rescale(x, exact, (double)a.scale * (double)b.scale / (double)ql_scale_at(x.result, 0)));
}

/* The same from the sum of products of codes, without zero points. */
QL_NUMBER void ql_product_put(
	const ql_code_product &x, int64_t at, const ql_code_line &a, const ql_code_line &b, float bias, int32_t sum)
{
	ql_product_finish(x, at, a, b, bias,
		(int64_t)sum - (int64_t)a.zero * b.sum - (int64_t)b.zero * a.sum + x.k * a.zero * b.zero);
}

/* The same of row i and column j of a batch, and the sums of codes of both lines. */
QL_NUMBER void ql_product_store(const ql_code_product &x, int64_t number, const ql_batch &batch, int64_t i, int64_t j,
	int32_t sum, int32_t sum_a, int32_t sum_b)
{
	ql_product_put(x, (number * x.m + i) * x.n + j, ql_code_line_of(x.a, batch.scale_a, i, sum_a),
		ql_code_line_of(x.b, batch.scale_b, j, sum_b), ql_bias_at(x, j), sum);
}

/* Before run. */
static inline cudaError_t ql_product_begin(const ql_code_product &x, cudaStream_t stream)
{
	return x.codes && x.counts ? cudaMemsetAsync(x.counts, 0, 2 * sizeof(*x.counts), stream) : cudaSuccess;
}

#endif
