/* SPDX-License-Identifier: MIT
 * dequantize: (code - zero point) * scale [+ shift] of affine codes up to 16 bits, also packed, each step rounded to float32.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/scales.h"

#define THREADS 256

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *out = call->out;

	if (!ql_scales_fit(&call->in[0], p))
		return false;
	if (out->codes || !ql_element_whole(ql_element_of(out->dtype)) ||
		!ql_element_float(ql_element_of(out->dtype)) || !ql_dense(out))
		return ql_refuse(p, "wanted a dense float result");
	p->path = "float32";
	return true;
}

struct decoding {
	ql_strided walk;
	ql_scales scales;
	const void *in;
	void *out;
	int32_t from, to;
};

QL_KERNEL(THREADS) decode(decoding c)
{
	for (int64_t i = ql_thread(); i < c.walk.count; i += ql_threads()) {
		int64_t at[QL_STRIDED_MOST];
		float x;

		ql_strided_at(c.walk, i, at);
		x = (float)(ql_load_code(c.from, c.in, at[0]) - ql_zero_at(c.scales, at[1])) *
		    ql_scale_at(c.scales, at[1]);
		if (c.scales.shift)
			x += ql_load_float(c.scales.shift_type, c.scales.shift, at[1]);
		ql_store_f32(c.to, c.out, i, x);
	}
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	const struct ql_gpu_tensor *in = call->in;
	decoding c = {};

	c.walk = ql_scales_walk(in, in->codes);
	c.scales = ql_scales_of(in->codes);
	c.in = in->at;
	c.out = call->out->at;
	c.from = ql_element_of(in->dtype);
	c.to = ql_element_of(call->out->dtype);
	if (c.walk.count == 0)
		return cudaSuccess;
	return ql_launch_free(decode, ql_blocks(c.walk.count, THREADS), dim3(THREADS), place->stream, c);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_dequantize;
const struct ql_gpu_kernel ql_gpu_kernel_dequantize = {"dequantize", "dequantize", "simt", QL_GPU_BITS, 80, plan, run};
