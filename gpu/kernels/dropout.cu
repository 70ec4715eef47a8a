/* SPDX-License-Identifier: MIT
 * dropout and its gradient, the same function: element i, in row-major order, becomes 0 when its word is below p 2^32, else
 * it is multiplied by 1 / (1 - p) in float32 or float64 (nn/ops/dropout.c). A thread has the elements of one counter.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/rng.h"
#include "gpu/kernels/strided.h"

#define THREADS 256
#define HALF 0.5 /* default of p */

struct drop {
	ql_strided walk;
	const void *in;
	void *out;
	uint64_t seed, first;
	double by;
	uint32_t least; /* smaller words drop their element */
	int32_t type;
	bool vectors; /* dense and aligned to four elements of 16 or 32 bits */
};

/* Four elements of 16 or 32 bits. */
template <int TYPE> struct four {
	uint2 at;
};
template <> struct four<QL_E_float32> {
	uint4 at;
};

template <int TYPE> QL_KERNEL(THREADS) dense_dropout(drop d)
{
	float by = (float)d.by;

	for (int64_t c = ql_thread(); 4 * c < d.walk.count; c += ql_threads()) {
		four<TYPE> x = static_cast<const four<TYPE> *>(d.in)[c], y;
		uint32_t words[4];

		ql_random_words(d.seed, d.first + (uint64_t)c, words);
		QL_UNROLL
		for (int j = 0; j < 4; j++)
			ql_store_small(TYPE, &y, j, words[j] >= d.least ? ql_load_small(TYPE, &x, j) * by : 0);
		static_cast<four<TYPE> *>(d.out)[c] = y;
	}
}

QL_KERNEL(THREADS) any_dropout(drop d)
{
	for (int64_t c = ql_thread(); 4 * c < d.walk.count; c += ql_threads()) {
		uint32_t words[4];

		ql_random_words(d.seed, d.first + (uint64_t)c + QL_BUG(dropout_counter), words);
		QL_UNROLL
		for (int j = 0; j < 4; j++) {
			int64_t i = 4 * c + j, at[QL_STRIDED_MOST];

			if (i >= d.walk.count)
				break;
			ql_strided_at(d.walk, i, at);
			if (words[j] < d.least)
				ql_store_f32(d.type, d.out, i, 0);
			else if (d.type == QL_E_float64)
				ql_store_f64(d.type, d.out, i, static_cast<const double *>(d.in)[at[0]] * d.by);
			else
				ql_store_small(d.type, d.out, i, ql_load_small(d.type, d.in, at[0]) * (float)d.by);
		}
	}
}

/* ---- the call ---- */

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const struct ql_gpu_tensor *in = call->in, *out = call->out;
	int type = ql_element_of(in->dtype);

	if (!ql_option_integer(call, "training", 1))
		return ql_refuse(p, "nothing is dropped out of training");
	if (in->codes || (in->flags & QL_GPU_NUMBER) || !ql_element_float(type))
		return ql_refuse(p, "wanted plain floats on the device");
	if (out->codes || ql_element_of(out->dtype) != type || !ql_dense(out))
		return ql_refuse(p, "wanted a dense result of the operand's dtype");
	p->path = type == QL_E_float64 ? "float64" : "float32";
	return true;
}

static cudaError_t launch(void (*kernel)(drop), const struct ql_gpu_place *place, const drop &d)
{
	return ql_launch_free(kernel, ql_blocks(d.walk.count, 4 * THREADS), dim3(THREADS), place->stream, d);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	double p = ql_option_number(call, "p", HALF);
	drop d = {};

	d.walk = ql_strided_of(call->in, NULL, ~0u);
	d.in = call->in->at;
	d.out = call->out->at;
	d.seed = call->seed;
	d.first = call->first;
	d.by = 1 / (1 - p);
	d.least = (uint32_t)fmin(rint(p * 0x1p32), 0x1p32 - 1);
	d.type = ql_element_of(call->in->dtype);
	d.vectors = d.walk.rank == 1 && d.walk.stride[0][0] == 1 && d.walk.count % 4 == 0 &&
		    ((uintptr_t)d.in | (uintptr_t)d.out) % sizeof(uint4) == 0;
	if (d.walk.count == 0)
		return cudaSuccess;
	switch (d.vectors ? d.type : QL_E_float64) {
	case QL_E_float32: return launch(dense_dropout<QL_E_float32>, place, d);
	case QL_E_float16: return launch(dense_dropout<QL_E_float16>, place, d);
	case QL_E_bfloat16: return launch(dense_dropout<QL_E_bfloat16>, place, d);
	default: return launch(any_dropout, place, d);
	}
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_dropout;
const struct ql_gpu_kernel ql_gpu_kernel_dropout = {
	"dropout dropout_back", "dropout", "simt", QL_GPU_BITS, 80, plan, run};
