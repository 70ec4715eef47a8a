/* SPDX-License-Identifier: MIT
 * layernorm and rmsnorm of codes with out= of a given scale, by the integers of quant/paths/norm_int.c, which has the formula: exact sums
 * and squares of a row, one root, then one rounding an element. A warp takes a row; sums of integers have no order. If eps is so large
 * beside the scale that its integer does not fit, where the CPU decodes, the root is one of doubles.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/scales.h"
#include "gpu/kernels/vmath.h"
#include "quant/integer/inverse_root.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define ALL 0xffffffffu
#define LARGEST 0x1p61
#define MOST_BITS 32
#define EPSILON 1e-5

/* Weight or bias; `at` NULL: all are `otherwise`. */
struct vector {
	const void *at;
	int64_t stride;
	int32_t element;
	float otherwise;
};

struct work {
	const void *x;
	void *out;
	struct vector w, b;
	ql_strided rows; /* their first elements */
	ql_scales from, to;
	int64_t n, step; /* elements of a row, and between them */
	int32_t element, result, code_bits;
	bool centred;
	double eps;
};

/* eps n^2 / s^2 with p more bits, as an integer; p < 0: it does not fit. */
struct epsilon {
	double real;
	uint64_t units;
	int32_t p;
};

QL_DEVICE epsilon epsilon_of(const work &k)
{
	double n = (double)k.n / (double)ql_scale_at(k.from, 0);
	double most = (double)k.n * (double)((int64_t)1 << k.code_bits), larger;
	struct epsilon e = {k.eps * n * n, 0, MOST_BITS};

	larger = e.real > most * most ? e.real : most * most;
	while (e.p >= 0 && !(ldexp(larger, e.p) < LARGEST))
		e.p -= 2;
	if (e.p >= 0)
		e.units = (uint64_t)rint(ldexp(e.real, e.p));
	return e;
}

QL_DEVICE int64_t sum_of_warp(int64_t v)
{
	for (int d = 16; d; d >>= 1)
		v += __shfl_xor_sync(ALL, v, d);
	return v;
}

QL_DEVICE float part_of(const vector &v, int64_t i, double scale)
{
	float x = v.at ? ql_load_f32(v.element, v.at, i * v.stride) : v.otherwise;

	return (float)((double)x / scale);
}

/* ql_round of quant/integer/rounding.h */
QL_DEVICE int32_t code_of(float v, const ql_scales &s, int32_t zero)
{
	float lo = (float)(s.lo - zero), hi = (float)(s.hi - zero);

	v = v == v ? v : 0;
	v = v < lo ? lo : v;
	v = v > hi ? hi : v;
	return (int32_t)((v + 12582912.0f) - 12582912.0f) + zero;
}

QL_KERNEL(THREADS) norm(const work k)
{
	int lane = (int)threadIdx.x & 31;
	int32_t zero = ql_zero_at(k.from, 0), to_zero = ql_zero_at(k.to, 0);
	double scale = (double)ql_scale_at(k.to, 0);
	struct epsilon e = epsilon_of(k);

	for (int64_t row = (int64_t)blockIdx.x * WARPS + threadIdx.x / 32; row < k.rows.count;
		row += (int64_t)gridDim.x * WARPS) {
		int64_t at[QL_STRIDED_MOST], sum = 0, square = 0;
		uint64_t v;
		float factor;

		ql_strided_at(k.rows, row, at);
		for (int64_t i = lane; i < k.n - QL_BUG(norm_codes_tail); i += 32) {
			int64_t q = ql_load_code(k.element, k.x, at[0] + i * k.step) - zero;

			sum += q;
			square += q * q;
		}
		sum = k.centred ? sum_of_warp(sum) : 0;
		square = sum_of_warp(square);
		v = (uint64_t)(k.n * square - sum * sum);
		factor = e.p < 0 ? (float)(1 / sqrt((double)v + e.real)) : ql_inverse_root((v << e.p) + e.units, e.p);
		for (int64_t i = lane; i < k.n; i += 32) {
			int64_t q = ql_load_code(k.element, k.x, at[0] + i * k.step) - zero;
			float h = (float)(k.n * q - sum) * factor;

			ql_store_i64(k.result, k.out, row * k.n + i,
				code_of(h * part_of(k.w, i, scale) + part_of(k.b, i, scale), k.to, to_zero));
		}
	}
}

/* ---- the call ---- */

static bool plan_codes(const struct ql_gpu_tensor *t, struct ql_gpu_plan *p)
{
	if (!ql_scales_fit(t, p))
		return false;
	return (t->codes->axis < 0 && !t->codes->block && !t->codes->shift) ||
	       ql_refuse(p, "codes with several scales or a shift");
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *x = call->in, *out = call->out;
	double most;

	if (!x->codes || !out->codes)
		return ql_refuse(p, "wanted codes, and out= for codes");
	if (call->n_out != 1 || x->rank < 1 || !plan_codes(x, p) || !plan_codes(out, p))
		return p->why[0] ? false : ql_refuse(p, "a second result, for the gradient");
	if (ql_option_integer(call, "axes", 1) != 1)
		return ql_refuse(p, "rows of several axes");
	if (out->codes->flags & QL_GPU_FIND || out->codes->rounding)
		return ql_refuse(p, "the result has no given scale, or a rule in fixed point");
	if (!ql_dense(out) || !ql_element_whole(ql_element_of(out->dtype)))
		return ql_refuse(p, "the result is packed or a view");
	for (int i = 1; i < call->n_in; i++)
		if (call->in[i].codes || call->in[i].rank != 1 || (call->in[i].flags & QL_GPU_NUMBER) ||
			!ql_element_float(ql_element_of(call->in[i].dtype)))
			return ql_refuse(p, "weight or bias are no plain floats");
	most = (double)x->shape[x->rank - 1] * (double)(1 << ql_element_get(ql_element_of(x->dtype)).bits);
	if (!(most * most < LARGEST))
		return ql_refuse(p, "the squares of a row do not fit 64 bits");
	p->path = "integer";
	return true;
}

static struct vector vector_of(const struct ql_gpu_call *call, int i, float otherwise)
{
	struct vector v = {NULL, 0, 0, otherwise};

	if (i < call->n_in)
		v = {call->in[i].at, call->in[i].stride[0], ql_element_of(call->in[i].dtype), otherwise};
	return v;
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *x = call->in, *out = call->out;
	struct work k = {};

	k.x = x->at;
	k.out = out->at;
	k.w = vector_of(call, 1, 1);
	k.b = vector_of(call, 2, 0);
	k.rows = ql_strided_of(x, NULL, (1u << (x->rank - 1)) - 1);
	k.from = ql_scales_of(x->codes);
	k.to = ql_scales_of(out->codes);
	k.n = x->shape[x->rank - 1];
	k.step = x->stride[x->rank - 1];
	k.element = ql_element_of(x->dtype);
	k.result = ql_element_of(out->dtype);
	k.code_bits = ql_element_get(k.element).bits;
	k.centred = call->op[0] == 'l';
	k.eps = ql_option_number(call, "eps", EPSILON);
	if (k.rows.count == 0 || k.n == 0)
		return cudaSuccess;
	return ql_launch(norm, ql_blocks(k.rows.count, WARPS), dim3(THREADS), 0, place->stream, k);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_norm_codes;
const struct ql_gpu_kernel ql_gpu_kernel_norm_codes = {
	"layernorm rmsnorm", "norm_codes", "simt", QL_GPU_BITS, 80, plan, run};
