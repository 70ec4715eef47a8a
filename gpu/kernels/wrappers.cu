/* SPDX-License-Identifier: MIT
 * Runs each wrapper of ptx.h by itself, for tests: the op `wrapper` with the option name=. On a GPU it shows whether the
 * instruction means what the emulation says. Operand and result are dense words (uint32 in int32 tensors), laid out as the
 * comments say.
 */
#include "gpu/kernels/launch.h"
#include "gpu/kernels/ptx.h"
#include "gpu/kernels/wrapper.h"

#define LANES 32

/* Word groups of 4 are copied. */
QL_KERNEL(LANES) by_load(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread() * 4; i + 4 <= words; i += ql_threads() * 4) {
		uint4 v = ql_load_16(in + i);

		out[i] = v.x;
		out[i + 1] = v.y;
		out[i + 2] = v.z;
		out[i + 3] = v.w;
	}
}

QL_KERNEL(LANES) by_store(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread() * 4; i + 4 <= words; i += ql_threads() * 4) {
		uint4 v = {in[i], in[i + 1], in[i + 2], in[i + 3]};

		ql_store_16(out + i, v);
	}
}

/* 32 groups of 16 bytes, of group i the first i mod 17 are read; twice, as two groups of copies. */
struct rows {
	uint32_t word[2][LANES][4];
};

QL_KERNEL(LANES) by_async(const uint32_t *in, uint32_t *out, int64_t words)
{
	QL_SHARED(struct rows, s);
	int lane = (int)threadIdx.x;

	for (int g = 0; g < 2; g++) {
		ql_async_16(s.word[g][lane], in + g * LANES * 4 + lane * 4, lane % 17);
		ql_async_commit();
	}
	ql_async_wait<1>();
	__syncthreads();
	for (int i = 0; i < 4; i++)
		out[lane * 4 + i] = s.word[0][(lane + 1) % LANES][i];
	ql_async_wait<0>();
	__syncthreads();
	for (int i = 0; i < 4 && words; i++)
		out[LANES * 4 + lane * 4 + i] = s.word[1][(lane + 1) % LANES][i];
}

/* The floats of the low halves of the words. */
QL_KERNEL(LANES) by_widen(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread(); i < words; i += ql_threads())
		out[i] = ql_bits_of(ql_widen_f16(in[i]));
}

/* Words as numbers within -128 .. 128. */
QL_KERNEL(LANES) by_exp2(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread(); i < words; i += ql_threads())
		out[i] = ql_bits_of(ql_exp2_near((float)(int32_t)in[i] * 0x1p-24f));
}

/* Triples a, b, c, one for every fourth word; results by the signs of a and b: both signed, a unsigned, b unsigned, both. */
QL_KERNEL(LANES) by_dp4a(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread(); i < words / 4; i += ql_threads()) {
		uint32_t a = in[3 * i], b = in[3 * i + 1];
		int32_t c = (int32_t)in[3 * i + 2];

		out[4 * i] = (uint32_t)ql_dp4a<false, false>(a, b, c);
		out[4 * i + 1] = (uint32_t)ql_dp4a<true, false>(a, b, c);
		out[4 * i + 2] = (uint32_t)ql_dp4a<false, true>(a, b, c);
		out[4 * i + 3] = (uint32_t)ql_dp4a<true, true>(a, b, c);
	}
}

/* 32 rows of 16 bytes; results: the four words of each lane. TURNED: of the matrices' transposed forms. */
template <bool TURNED> QL_KERNEL(LANES) by_matrices(const uint32_t *in, uint32_t *out, int64_t words)
{
	QL_SHARED(struct rows, s);
	int lane = (int)threadIdx.x;
	uint32_t got[4];

	for (int i = 0; i < 4 && words; i++)
		s.word[0][lane][i] = in[lane * 4 + i];
	__syncthreads();
	if (TURNED)
		ql_load_turned(got, s.word[0][lane]);
	else
		ql_load_matrices(got, s.word[0][lane]);
	for (int i = 0; i < 4; i++)
		out[lane * 4 + i] = got[i];
}

/* Pairs of float32; results: both rounded to 16 bits. */
template <bool BF16> QL_KERNEL(LANES) by_pair(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread(); i < words / 2; i += ql_threads())
		out[i] = ql_pair<BF16>(ql_float_of(in[2 * i]), ql_float_of(in[2 * i + 1]));
}

/* Triples a, b, c of pairs of floats of 16 bits. */
template <bool BF16> QL_KERNEL(LANES) by_fma_pair(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread(); i < words / 3; i += ql_threads())
		out[i] = ql_fma_pair<BF16>(in[3 * i], in[3 * i + 1], in[3 * i + 2]);
}

/* Triples a, b and what is taken. */
QL_KERNEL(LANES) by_permute(const uint32_t *in, uint32_t *out, int64_t words)
{
	for (int64_t i = ql_thread(); i < words / 3; i += ql_threads())
		out[i] = ql_permute(in[3 * i], in[3 * i + 1], in[3 * i + 2] & 0x7777);
}

/* A pair of whole numbers from -8 to 7, whose sums of products are exact. */
template <bool BF16> QL_DEVICE uint32_t whole_pair(uint32_t word)
{
	return ql_pair<BF16>((float)(word & 15) - 8, (float)(word >> 16 & 15) - 8);
}

/* As the next one, of 16-bit floats: a: 16 rows of 8 words, b: 8 columns of 8 words, d: 16 rows of 8 words, all whole
 * numbers. */
template <bool BF16> QL_KERNEL(LANES) by_mma_16(const uint32_t *in, uint32_t *out, int64_t words)
{
	int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
	uint32_t a[4], b[2];
	float d[4];

	for (int i = 0; i < 4; i++) {
		a[i] = whole_pair<BF16>(in[(g + i % 2 * 8) * 8 + i / 2 * 4 + t]);
		d[i] = (float)(in[192 + (g + i / 2 * 8) * 8 + t * 2 + i % 2] & 255);
	}
	for (int i = 0; i < 2; i++)
		b[i] = whole_pair<BF16>(in[128 + g * 8 + i * 4 + t]);
	ql_mma_16<BF16>(d, a, b);
	for (int i = 0; i < 4 && words; i++)
		out[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = (uint32_t)(int32_t)d[i];
}

/* a: 16 rows of 8 words, b: 8 columns of 8 words, d: 16 rows of 8 words; result: d after the product. */
template <bool A, bool B> QL_KERNEL(LANES) by_mma(const uint32_t *in, uint32_t *out, int64_t words)
{
	int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
	const uint32_t *b_words = in + 128, *d_words = in + 192;
	uint32_t a[4] = {in[g * 8 + t], in[(g + 8) * 8 + t], in[g * 8 + 4 + t], in[(g + 8) * 8 + 4 + t]};
	uint32_t b[2] = {b_words[g * 8 + t], b_words[g * 8 + 4 + t]};
	int32_t d[4];

	for (int i = 0; i < 4; i++)
		d[i] = (int32_t)d_words[(g + i / 2 * 8) * 8 + t * 2 + i % 2];
	ql_mma_i8<A, B>(d, a, b);
	for (int i = 0; i < 4 && words; i++)
		out[(g + i / 2 * 8) * 8 + t * 2 + i % 2] = (uint32_t)d[i];
}

static const ql_wrapper<void(const uint32_t *, uint32_t *, int64_t)> table[] = {{"load_16", by_load, 4, 4},
	{"store_16", by_store, 4, 4}, {"async_16", by_async, 256, 256}, {"widen_f16", by_widen, 1, 1},
	{"exp2_near", by_exp2, 1, 1}, {"dp4a", by_dp4a, 3, 4}, {"load_matrices", by_matrices<false>, 128, 128},
	{"mma_s8s8", by_mma<false, false>, 320, 128}, {"mma_u8s8", by_mma<true, false>, 320, 128},
	{"mma_s8u8", by_mma<false, true>, 320, 128}, {"mma_u8u8", by_mma<true, true>, 320, 128},
	{"load_turned", by_matrices<true>, 128, 128}, {"pair_f16", by_pair<false>, 2, 1}, {"pair_bf16", by_pair<true>, 2, 1},
	{"fma_f16", by_fma_pair<false>, 3, 1}, {"fma_bf16", by_fma_pair<true>, 3, 1}, {"permute", by_permute, 3, 1},
	{"mma_f16", by_mma_16<false>, 320, 128}, {"mma_bf16", by_mma_16<true>, 320, 128}};

static bool plan(const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	return ql_wrapper_plan(table, call, p);
}

static cudaError_t run(const struct ql_gpu_place *place, const struct ql_gpu_call *call)
{
	return ql_launch(ql_wrapper_find(table, call)->kernel, dim3(1), dim3(LANES), sizeof(struct rows), place->stream,
		static_cast<const uint32_t *>(call->in[0].at), static_cast<uint32_t *>(call->out[0].at),
		ql_count(&call->in[0]));
}

extern "C" const struct ql_gpu_kernel ql_gpu_kernel_wrappers;
const struct ql_gpu_kernel ql_gpu_kernel_wrappers = {"wrapper", "wrappers", "simt", QL_GPU_BITS, 80, plan, run};
