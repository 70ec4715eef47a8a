/* SPDX-License-Identifier: MIT
 * quantize of dense rows with a scale each that is found from their range: a block for a row, whose elements stay in registers
 * between the search and the codes, so that each is read once and each code written once. Codes of 8 bits of float16, bfloat16 and
 * float32; the scales by range_fit.h, the quotients by nearest.h. What it leaves, quantize.cu takes.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/nearest.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/range_fit.h"

#define THREADS 256
#define WARPS (THREADS / 32)
#define VECTORS 8                                         /* of 16 bytes, in a thread */
#define EACH(element) ((element) == QL_E_float32 ? 4 : 8) /* elements of a vector */
#define LANES 0xffffffffu

struct rows {
	int64_t count, length;
	const uint8_t *in;
	uint8_t *out;
	unsigned long long *counts; /* of NaN and infinite elements; NULL: not wanted */
	ql_scales scales;
	ql_fit_rule rule;
};

struct ends {
	float lo[WARPS], hi[WARPS];
	float scale;
	int32_t zero;
};

/* Number i of a vector of 16 bytes. */
template <int ELEMENT> QL_DEVICE float number(const uint4 &v, int i)
{
	const uint32_t word[4] = {v.x, v.y, v.z, v.w};

	if (ELEMENT == QL_E_float32)
		return ql_float_of(word[i]);
	if (ELEMENT == QL_E_bfloat16)
		return ql_float_of(i % 2 ? word[i / 2] & 0xffff0000u : word[i / 2] << 16);
	return ql_widen_f16(i % 2 ? word[i / 2] >> 16 : word[i / 2]);
}

/* The smallest and largest of all threads' finite values. */
QL_DEVICE void join_ends(ends &e, float lo, float hi)
{
	for (int d = 16; d; d >>= 1) {
		lo = fminf(lo, __shfl_xor_sync(LANES, lo, d));
		hi = fmaxf(hi, __shfl_xor_sync(LANES, hi, d));
	}
	if (threadIdx.x % 32 == 0) {
		e.lo[threadIdx.x / 32] = lo;
		e.hi[threadIdx.x / 32] = hi;
	}
	__syncthreads();
}

/* Thread 0 finds and writes the scale of a row. */
QL_DEVICE void find_scale(ends &e, const rows &r, int64_t row)
{
	float lo = e.lo[0], hi = e.hi[0];

	for (int i = 1; i < WARPS; i++) {
		lo = fminf(lo, e.lo[i]);
		hi = fmaxf(hi, e.hi[i]);
	}
	lo = lo <= hi ? lo : 0; /* nothing is finite */
	hi = lo <= hi ? hi : 0;
	e.scale = ql_fit_scale(r.rule, r.scales.scale_type, (double)lo, (double)hi);
	e.zero = r.scales.zero ? ql_fit_zero(r.rule, (double)lo, e.scale) : 0;
	ql_store_f32(r.scales.scale_type, r.scales.scale, row, e.scale);
	if (r.scales.zero)
		ql_store_i64(r.scales.zero_type, r.scales.zero, row, e.zero);
}

/* Codes of a vector. */
template <int ELEMENT> QL_DEVICE void write_codes(const ql_divisor &d, const uint4 &v, uint8_t *to)
{
	uint32_t word[EACH(ELEMENT) / 4] = {};
	float x[EACH(ELEMENT)];
	int32_t code[EACH(ELEMENT)];

	QL_UNROLL
	for (int i = 0; i < EACH(ELEMENT); i++)
		x[i] = number<ELEMENT>(v, i);
	ql_nearest<EACH(ELEMENT)>(d, x, code);
	QL_UNROLL
	for (int i = 0; i < EACH(ELEMENT); i++)
		word[i / 4] |= ((uint32_t)code[i] & 0xffu) << 8 * (i % 4);
	memcpy(__builtin_assume_aligned(to, EACH(ELEMENT)), word, sizeof(word));
}

template <int ELEMENT> QL_KERNEL(THREADS, 3) quantize(rows r)
{
	QL_SHARED(struct ends, e);
	constexpr int each = EACH(ELEMENT);

	for (int64_t row = blockIdx.x; row < r.count; row += gridDim.x) {
		const uint8_t *in = r.in + row * r.length * (16 / each);
		int64_t vectors = r.length / each;
		float lo = INFINITY, hi = -INFINITY;
		uint32_t nans = 0, infinite = 0;
		uint4 v[VECTORS];

		QL_UNROLL
		for (int k = 0; k < VECTORS; k++) {
			int64_t at = k * THREADS + (int)threadIdx.x;

			v[k] = at < vectors ? ql_load_16(in + at * 16) : uint4{0, 0, 0, 0};
		}
		QL_UNROLL
		for (int k = 0; k < VECTORS; k++) {
			bool here = k * THREADS + (int)threadIdx.x < vectors - QL_BUG(quantize_rows_end);

			QL_UNROLL
			for (int i = 0; i < each; i++) {
				float x = number<ELEMENT>(v[k], i);
				bool finite = fabsf(x) < INFINITY;

				lo = here && finite && x < lo ? x : lo;
				hi = here && finite && x > hi ? x : hi;
				nans += x != x;
				infinite += x == x && !finite;
			}
		}
		join_ends(e, lo, hi);
		if (threadIdx.x == 0)
			find_scale(e, r, row);
		if (!QL_BUG(quantize_rows_barrier))
			__syncthreads();
		ql_divisor d = ql_divisor_of(e.scale, e.zero, r.scales.lo, r.scales.hi);
		QL_UNROLL
		for (int k = 0; k < VECTORS; k++) {
			int64_t at = k * THREADS + (int)threadIdx.x;

			if (at < vectors)
				write_codes<ELEMENT>(d, v[k], r.out + row * r.length + at * each);
		}
		if (r.counts && nans)
			atomicAdd(&r.counts[0], (unsigned long long)nans);
		if (r.counts && infinite)
			atomicAdd(&r.counts[1], (unsigned long long)infinite);
	}
}

/* ---- the call ---- */

static int64_t most_of(int element)
{
	return (int64_t)THREADS * VECTORS * (element == QL_E_float32 ? 4 : 8);
}

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	const struct ql_gpu_codes *c = out->codes;
	int from = ql_element_of(in->dtype);
	int64_t before = 1, length;

	if (!c || in->codes || in->flags & QL_GPU_NUMBER || !(c->flags & QL_GPU_FIND) || c->block || c->axis < 0)
		return ql_refuse(p, "wanted numbers, and a scale for each row that is to be found");
	if (c->flags & QL_GPU_STOCHASTIC || c->rounding)
		return ql_refuse(p, "another rounding than to nearest");
	if (!ql_scales_fit(out, p) || !ql_fit_takes(c, p))
		return false;
	for (int d = 0; d < c->axis; d++)
		before *= in->shape[d];
	if (before != 1 || !ql_dense(in) || !ql_dense(out))
		return ql_refuse(p, "rows that do not follow each other");
	length = in->shape[c->axis] ? ql_count(in) / in->shape[c->axis] : 0;
	if (from != QL_E_float32 && from != QL_E_float16 && from != QL_E_bfloat16)
		return ql_refuse(p, "wanted float32, float16 or bfloat16");
	if (ql_element_get(ql_element_of(out->dtype)).bits != 8)
		return ql_refuse(p, "wanted codes of 8 bits");
	if (length == 0 || length % 8 || length > most_of(from) || (uintptr_t)in->at % 16 || (uintptr_t)out->at % 8)
		return ql_refuse(p, "rows that cannot be read 16 bytes at a time, or are too long");
	p->path = ql_element_get(ql_element_of(out->dtype)).name;
	return true;
}

template <int ELEMENT> static cudaError_t launch(const struct ql_gpu_place *place, const rows &r)
{
	return ql_launch(quantize<ELEMENT>, ql_blocks(r.count, 1, place->processors * 8), dim3(THREADS),
		sizeof(struct ends), place->stream, r);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_codes *c = call->out->codes;
	cudaError_t error = cudaSuccess;
	rows r = {};

	r.count = call->in->shape[c->axis];
	r.length = ql_count(call->in) / r.count;
	r.in = static_cast<const uint8_t *>(call->in->at);
	r.out = static_cast<uint8_t *>(call->out->at);
	r.counts = reinterpret_cast<unsigned long long *>(c->counts);
	r.scales = ql_scales_of(c);
	r.rule = ql_fit_rule_of(c);
	if (r.counts)
		error = cudaMemsetAsync(r.counts, 0, 2 * sizeof(*r.counts), place->stream);
	if (error)
		return error;
	switch (ql_element_of(call->in->dtype)) {
	case QL_E_float32: return launch<QL_E_float32>(place, r);
	case QL_E_float16: return launch<QL_E_float16>(place, r);
	default: return launch<QL_E_bfloat16>(place, r);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_quantize_rows;
const struct ql_gpu_kernel ql_gpu_kernel_quantize_rows = {
	"quantize", "quantize_rows", "simt", QL_GPU_BITS, 80, plan, run};
