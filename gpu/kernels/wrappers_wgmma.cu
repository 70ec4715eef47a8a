/* SPDX-License-Identifier: MIT
 * As wrappers.cu, for the wrappers of ptx.h that exist on sm_90a only.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/tensor_map.h"
#include "gpu/kernels/wrapper.h"

#define GROUP 128
#define LINE 144  /* bytes of a line of the tensor */
#define LINES 300 /* of them, in each of two matrices */
#define STEPS 5

/* Matrices of 128-byte lines: 64 of a, 256 of b. */
struct pair {
	uint8_t a[64][128], b[256][128];
	uint64_t full, empty[2];
	uint32_t word[2];
};

/* ---- barriers ---- */

/* Thread 0 writes a word of two stages in turn, the others of its warpgroup wait for it and add it up: STEPS rounds. Result of
 * each thread: the sum of its weighted words. */
QL_KERNEL(GROUP) by_barrier(const uint32_t *in, uint32_t *out, CUtensorMap)
{
#if QL_SM90A
	QL_SHARED(struct pair, s);
	uint64_t *full = reinterpret_cast<uint64_t *>(s.a[0]);
	int thread = (int)threadIdx.x;
	uint32_t sum = 0;

	if (thread == 0) {
		for (int i = 0; i < 2; i++) {
			ql_barrier_init(&full[i], 1);
			ql_barrier_init(&s.empty[i], GROUP - 1);
		}
		ql_barrier_init_fence();
	}
	__syncthreads();
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t at = i % 2, phase = i / 2 & 1;

		if (thread == 0) {
			ql_barrier_wait(&s.empty[at], phase ^ 1);
			s.word[at] = in[i];
			ql_barrier_arrive(&full[at]);
		} else {
			ql_barrier_wait(&full[at], phase);
			sum += s.word[at] * (i + 1) * (uint32_t)thread;
			ql_barrier_arrive(&s.empty[at]);
		}
	}
	out[thread] = sum;
#endif
}

/* The second warp leaves at once; the others exchange words. Result: the word of the neighbour among 96 threads. */
QL_KERNEL(GROUP) by_sync_some(const uint32_t *in, uint32_t *out, CUtensorMap)
{
#if QL_SM90A
	QL_SHARED(struct pair, s);
	uint32_t *word = reinterpret_cast<uint32_t *>(s.a[0]);
	int thread = (int)threadIdx.x, at = thread < 32 ? thread : thread - 32;

	if (thread / 32 == 1)
		return;
	word[at] = in[at];
	ql_sync_some(3, 96);
	out[at] = word[(at + 1) % 96];
#endif
}

/* ---- copies ---- */

/* Result: the 64 lines of 128 bytes as they lie in shared memory. The box begins at byte 32 of line 270 of the second matrix: 16
 * bytes and 34 lines are beyond the ends. */
QL_KERNEL(GROUP) by_tensor_copy(const uint32_t *, uint32_t *out, const __grid_constant__ CUtensorMap map)
{
#if QL_SM90A
	QL_SHARED(struct pair, s);
	int thread = (int)threadIdx.x;

	if (thread == 0) {
		ql_barrier_init(&s.full, 1);
		ql_barrier_init_fence();
	}
	__syncthreads();
	if (thread == 0) {
		ql_barrier_expect(&s.full, sizeof(s.a));
		ql_tensor_copy(s.a, &map, 32, 270, 1, &s.full);
	}
	ql_barrier_wait(&s.full, 0);
	for (int i = thread; i < (int)sizeof(s.a) / 4; i += GROUP)
		out[i] = reinterpret_cast<const uint32_t *>(s.a)[i];
#endif
}

/* ---- products ---- */

/* Puts a word of a line of 32 where the swizzle has it. */
QL_DEVICE void place(uint8_t *matrix, int line, int word, uint32_t value)
{
	int chunk = (word / 4) ^ (line % 8);

	memcpy(matrix + line * 128 + chunk * 16 + word % 4 * 4, &value, sizeof(value));
}

/* a: 64 lines of 32 words, b: 256 lines. Result (64 x 256): the products of all 128 bytes by four instructions, of which the
 * first does not add and the last two are a group of their own. */
template <bool A, bool B> QL_KERNEL(GROUP) by_wgmma(const uint32_t *in, uint32_t *out, CUtensorMap)
{
#if QL_SM90A
	QL_SHARED(struct pair, s);
	int thread = (int)threadIdx.x, row = thread / 32 * 16 + thread % 32 / 4;
	int32_t d[128];

	for (int i = thread; i < 64 * 32; i += GROUP)
		place(s.a[0], i / 32, i % 32, in[i]);
	for (int i = thread; i < 256 * 32; i += GROUP)
		place(s.b[0], i / 32, i % 32, in[64 * 32 + i]);
	ql_proxy_fence();
	__syncthreads();
	uint64_t a = ql_wgmma_descriptor(s.a), b = ql_wgmma_descriptor(s.b);

	ql_wgmma_fence();
	ql_wgmma_i8<A, B>(d, a, b, false);
	ql_wgmma_i8<A, B>(d, a + 2, b + 2, true);
	ql_wgmma_commit();
	ql_wgmma_fence();
	ql_wgmma_i8<A, B>(d, a + 4, b + 4, true);
	ql_wgmma_i8<A, B>(d, a + 6, b + 6, true);
	ql_wgmma_commit();
	ql_wgmma_wait<1>();
	ql_wgmma_wait<0>();
	QL_UNROLL
	for (int j = 0; j < 32; j++) {
		QL_UNROLL
		for (int e = 0; e < 4; e++)
			out[(row + e / 2 * 8) * 256 + j * 8 + thread % 4 * 2 + e % 2] = (uint32_t)d[j * 4 + e];
	}
#endif
}

/* ---- the call ---- */

static const ql_wrapper<void(const uint32_t *, uint32_t *, CUtensorMap)> table[] = {{"barrier", by_barrier, STEPS, GROUP},
	{"sync_some", by_sync_some, 96, 96}, {"tensor_copy", by_tensor_copy, 2 * LINE * LINES / 4, 64 * 32},
	{"wgmma_s8s8", by_wgmma<false, false>, 320 * 32, 64 * 256},
	{"wgmma_u8s8", by_wgmma<true, false>, 320 * 32, 64 * 256},
	{"wgmma_s8u8", by_wgmma<false, true>, 320 * 32, 64 * 256},
	{"wgmma_u8u8", by_wgmma<true, true>, 320 * 32, 64 * 256}};

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	return ql_wrapper_plan(table, call, p);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	ql_byte_matrices matrices = {call->in[0].at, LINE, LINES, 2, LINE, LINE * LINES};
	CUtensorMap map;
	cudaError_t error = ql_tensor_map(matrices, 64, &map);

	if (error)
		return error;
	return ql_launch(ql_wrapper_find(table, call)->kernel, dim3(1), dim3(GROUP), sizeof(struct pair), place->stream,
		static_cast<const uint32_t *>(call->in[0].at), static_cast<uint32_t *>(call->out[0].at), map);
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_wrappers_wgmma;
const struct ql_gpu_kernel ql_gpu_kernel_wrappers_wgmma = {
	"wrapper", "wrappers_wgmma", "wgmma", QL_GPU_BITS, 90, plan, run};
