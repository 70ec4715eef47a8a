/* SPDX-License-Identifier: MIT
 * rand, randn and randint by the formulas of tensor/ops/random.c, so with their bits: element i gets the words of its
 * place, whichever thread makes it. A thread has the elements of one counter.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/number.h"
#include "gpu/kernels/options.h"
#include "gpu/kernels/rng.h"
#include "gpu/kernels/strided.h"

#define THREADS 256

struct draw {
	void *out;
	int64_t n, low;
	uint64_t seed, first;
	uint64_t span; /* of integers; 0: all 2^64 values */
	uint32_t keep; /* bits of each word used for a real number */
	int32_t to;
	bool normal, vectors;
};

/* Elements 4c to 4c + 3. */
QL_KERNEL(THREADS) real_numbers(draw d)
{
	for (int64_t c = ql_thread(); 4 * c < d.n; c += ql_threads()) {
		uint32_t words[4];
		float x[4];

		ql_random_words(d.seed, d.first + (uint64_t)c, words);
		QL_UNROLL
		for (int j = 0; j < 4; j++) {
			uint32_t word = words[j] & d.keep;

			x[j] = d.normal ? ql_normal_of(word) : (float)(int32_t)(word >> 8) * 0x1p-24f;
		}
		if (d.vectors && 4 * c + 4 <= d.n) {
			static_cast<uint4 *>(d.out)[c] =
				uint4{ql_bits_of(x[0]), ql_bits_of(x[1]), ql_bits_of(x[2]), ql_bits_of(x[3])};
			continue;
		}
		QL_UNROLL
		for (int j = 0; j < 4; j++)
			if (4 * c + j < d.n - QL_BUG(random_tail))
				ql_store_f32(d.to, d.out, 4 * c + j, x[j]);
	}
}

/* `below` of tensor/ops/random.c: the upper half of the product, unless it has one preimage too many. */
QL_DEVICE uint64_t below(const draw &d, uint64_t bits, uint64_t position)
{
	unsigned __int128 product = (unsigned __int128)bits * d.span;

	if ((uint64_t)product < d.span) {
		uint64_t least = (0 - d.span) % d.span;

		for (uint32_t attempt = 1; (uint64_t)product < least; attempt++)
			product = (unsigned __int128)ql_random_again(d.seed, position, attempt) * d.span;
	}
	return (uint64_t)(product >> 64);
}

/* Elements 2c and 2c + 1. */
QL_KERNEL(THREADS) integers(draw d)
{
	for (int64_t c = ql_thread(); 2 * c < d.n; c += ql_threads()) {
		uint32_t words[4];

		ql_random_words(d.seed, d.first + (uint64_t)c, words);
		QL_UNROLL
		for (int j = 0; j < 2; j++) {
			uint64_t bits = (uint64_t)words[2 * j] << 32 | words[2 * j + 1];
			uint64_t position = 2 * d.first + (uint64_t)(2 * c + j);
			uint64_t at = d.span ? below(d, bits, position) : bits;

			if (2 * c + j < d.n)
				ql_store_i64(d.to, d.out, 2 * c + j, (int64_t)((uint64_t)d.low + at));
		}
	}
}

/* ---- the call ---- */

/* As many bits as the dtype holds, so that rounding never gives 1. */
static uint32_t kept_bits(int to)
{
	int32_t digits = ql_element_get(to).digits;

	return digits > 0 && digits < 24 ? UINT32_MAX << (32 - digits) : UINT32_MAX; /* 0: of integers */
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	draw d = {};

	d.out = call->out->at;
	d.n = ql_count(call->out);
	d.seed = call->seed;
	d.first = call->first;
	d.to = ql_element_of(call->out->dtype);
	d.vectors = d.to == QL_E_float32 && reinterpret_cast<uintptr_t>(d.out) % sizeof(uint4) == 0;
	d.normal = !strcmp(call->op, "randn");
	d.keep = d.normal ? UINT32_MAX : kept_bits(d.to);
	d.low = ql_option_integer(call, "low", 0);
	d.span = (uint64_t)ql_option_integer(call, "high", 0) - (uint64_t)d.low + 1;
	if (d.n == 0)
		return cudaSuccess;
	if (!strcmp(call->op, "randint"))
		return ql_launch_free(integers, ql_blocks(d.n, 2 * THREADS), dim3(THREADS), place->stream, d);
	return ql_launch_free(real_numbers, ql_blocks(d.n, 4 * THREADS), dim3(THREADS), place->stream, d);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_random;
const struct ql_gpu_kernel ql_gpu_kernel_random = {
	"rand randn randint", "random", "simt", QL_GPU_BITS, 80, ql_plan_made, run};
