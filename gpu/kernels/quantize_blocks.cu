/* SPDX-License-Identifier: MIT
 * quantize of dense rows in blocks of 16 to 256 elements with a scale each that is found from its range: lanes of eight elements, 2 to
 * 32 of them for a block, which stay in registers between the search and the codes, so that each is read once and each code written
 * once. Codes of 8 or 4 bits of float16, bfloat16 and float32; the scales by range_fit.h, the quotients by
 * nearest.h. What it leaves, quantize.cu takes.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/nearest.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/range_fit.h"

#define THREADS 256
#define EACH 8 /* elements of a lane */
#define ALL 0xffffffffu

struct blocks {
	int64_t lanes; /* elements / EACH */
	int32_t team;  /* lanes of a block, a power of two */
	const void *in;
	uint8_t *out;
	unsigned long long *counts; /* of NaN and infinite elements; NULL: not wanted */
	ql_scales scales;
	ql_fit_rule rule;
};

template <int ELEMENT> QL_DEVICE void load(const void *in, int64_t lane, float x[EACH])
{
	const uint8_t *at = static_cast<const uint8_t *>(in) + lane * EACH * (ELEMENT == QL_E_float32 ? 4 : 2);
	uint4 a = ql_load_16(at);

	if (ELEMENT == QL_E_float32) {
		uint4 b = ql_load_16(at + 16);
		const uint32_t word[EACH] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};

		QL_UNROLL
		for (int k = 0; k < EACH; k++)
			x[k] = ql_float_of(word[k]);
		return;
	}
	const uint32_t word[4] = {a.x, a.y, a.z, a.w};

	QL_UNROLL
	for (int k = 0; k < EACH; k++) {
		uint32_t half = k % 2 ? word[k / 2] >> 16 : word[k / 2] & 0xffffu;

		x[k] = ELEMENT == QL_E_bfloat16 ? ql_float_of(half << 16) : ql_widen_f16(half);
	}
}

/* The scale and zero point of the team's block, which its first lane writes. */
QL_DEVICE ql_divisor find_scale(const blocks &b, const float x[EACH], int64_t lane, bool here)
{
	float lo = INFINITY, hi = -INFINITY, scale;
	int32_t zero;

	QL_UNROLL
	for (int k = 0; k < EACH; k++) {
		bool finite = here && fabsf(x[k]) < INFINITY;

		lo = finite && x[k] < lo ? x[k] : lo;
		hi = finite && x[k] > hi ? x[k] : hi;
	}
	for (int d = b.team / 2; d > QL_BUG(quantize_blocks_team); d /= 2) {
		lo = fminf(lo, __shfl_xor_sync(ALL, lo, d));
		hi = fmaxf(hi, __shfl_xor_sync(ALL, hi, d));
	}
	bool any = lo <= hi;

	lo = any ? lo : 0;
	hi = any ? hi : 0;
	scale = ql_fit_scale(b.rule, b.scales.scale_type, (double)lo, (double)hi);
	zero = b.scales.zero ? ql_fit_zero(b.rule, (double)lo, scale) : 0;
	if (here && lane % b.team == 0) {
		ql_store_f32(b.scales.scale_type, b.scales.scale, lane / b.team, scale);
		if (b.scales.zero)
			ql_store_i64(b.scales.zero_type, b.scales.zero, lane / b.team, zero);
	}
	return ql_divisor_of(scale, zero, b.scales.lo, b.scales.hi);
}

template <int BITS> QL_DEVICE void store(const blocks &b, const ql_divisor &d, const float x[EACH], int64_t lane)
{
	int32_t code[EACH];

	ql_nearest<EACH>(d, x, code);
	if (BITS == 4) {
		uint32_t word = 0;

		QL_UNROLL
		for (int k = 0; k < EACH; k++)
			word |= ((uint32_t)code[k] & 15u) << 4 * k;
		reinterpret_cast<uint32_t *>(b.out)[lane] = word;
		return;
	}
	uint32_t word[2] = {};

	QL_UNROLL
	for (int k = 0; k < EACH; k++)
		word[k / 4] |= ((uint32_t)code[k] & 255u) << 8 * (k % 4);
	reinterpret_cast<uint2 *>(b.out)[lane] = {word[0], word[1]};
}

template <int ELEMENT, int BITS> QL_KERNEL(THREADS) quantize_blocks(blocks b)
{
	for (int64_t first = (int64_t)blockIdx.x * THREADS; first < b.lanes; first += (int64_t)gridDim.x * THREADS) {
		int64_t lane = first + threadIdx.x;
		bool here = lane < b.lanes;
		float x[EACH] = {};
		uint32_t nans = 0, infinite = 0;

		if (here)
			load<ELEMENT>(b.in, lane, x);
		ql_divisor d = find_scale(b, x, lane, here);

		if (!here)
			continue; /* a team is here or not as a whole, and a loop ends for all of its warp */
		store<BITS>(b, d, x, lane);
		QL_UNROLL
		for (int k = 0; k < EACH; k++) {
			nans += x[k] != x[k];
			infinite += fabsf(x[k]) == INFINITY;
		}
		if (b.counts && nans)
			atomicAdd(&b.counts[0], (unsigned long long)nans);
		if (b.counts && infinite)
			atomicAdd(&b.counts[1], (unsigned long long)infinite);
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	const struct ql_gpu_codes *c = out->codes;
	int from = ql_element_of(in->dtype), to = ql_element_of(out->dtype);
	int64_t length = in->rank ? in->shape[in->rank - 1] : 1;

	if (!c || in->codes || in->flags & QL_GPU_NUMBER || !(c->flags & QL_GPU_FIND) || !c->block ||
		c->block_axis != in->rank - 1)
		return ql_refuse(p, "wanted numbers in blocks of their rows, whose scales are to be found");
	if (c->flags & QL_GPU_STOCHASTIC || c->rounding)
		return ql_refuse(p, "another rounding than to nearest");
	if (!ql_scales_fit(out, p) || !ql_fit_takes(c, p))
		return false;
	if (from != QL_E_float32 && from != QL_E_float16 && from != QL_E_bfloat16)
		return ql_refuse(p, "wanted float32, float16 or bfloat16");
	if (ql_element_get(to).bits != 8 && ql_element_get(to).bits != 4)
		return ql_refuse(p, "wanted codes of 8 or 4 bits");
	if (c->block < 16 || c->block > 256 || c->block & (c->block - 1) || length == 0 || length % c->block)
		return ql_refuse(p, "blocks of another size, or that do not fill the rows");
	/* rows of whole blocks have no padding */
	if (!ql_dense(in) || !ql_dense(out) || ql_count(in) == 0 || (uintptr_t)in->at % 16 || (uintptr_t)out->at % 8)
		return ql_refuse(p, "rows that do not follow each other, or are not aligned");
	p->path = ql_element_get(to).name;
	return true;
}

template <int ELEMENT, int BITS> static cudaError_t launch(const struct ql_gpu_place *place, const blocks &b)
{
	return ql_launch(quantize_blocks<ELEMENT, BITS>, ql_blocks(b.lanes, THREADS, place->processors * 32),
		dim3(THREADS), 0, place->stream, b);
}

template <int ELEMENT> static cudaError_t launch_from(const struct ql_gpu_place *place, const blocks &b, int bits)
{
	return bits == 4 ? launch<ELEMENT, 4>(place, b) : launch<ELEMENT, 8>(place, b);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_codes *c = call->out->codes;
	int bits = ql_element_get(ql_element_of(call->out->dtype)).bits;
	cudaError_t error = cudaSuccess;
	blocks b = {};

	b.lanes = ql_count(call->in) / EACH;
	b.team = (int32_t)(c->block / EACH);
	b.in = call->in->at;
	b.out = static_cast<uint8_t *>(call->out->at);
	b.counts = reinterpret_cast<unsigned long long *>(c->counts);
	b.scales = ql_scales_of(c);
	b.rule = ql_fit_rule_of(c);
	if (b.counts)
		error = cudaMemsetAsync(b.counts, 0, 2 * sizeof(*b.counts), place->stream);
	if (error)
		return error;
	switch (ql_element_of(call->in->dtype)) {
	case QL_E_float32: return launch_from<QL_E_float32>(place, b, bits);
	case QL_E_float16: return launch_from<QL_E_float16>(place, b, bits);
	default: return launch_from<QL_E_bfloat16>(place, b, bits);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_quantize_blocks;
const struct ql_gpu_kernel ql_gpu_kernel_quantize_blocks = {
	"quantize", "quantize_blocks", "simt", QL_GPU_BITS, 80, plan, run};
