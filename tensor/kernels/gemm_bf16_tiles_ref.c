/* SPDX-License-Identifier: MIT
 * What TDPBF16PS does on whole tiles, in plain C: of QL_BF16_GROUP pairs the even products are summed apart from the odd ones, both in
 * order from 0 and with one rounding (to nearest even) a product; the two sums are added, then added to the element. Operands, sums
 * and results that are not normal count as zeros of their sign. A last group is filled up with zeros. Intel's manual, volume 2, has it
 * so, and a processor with AMX_BF16 (family 6, model 207) gave these bits for 4.6 million elements of random bits, of numbers that
 * are not normal, of overflowing sums, of infinities and nans; of nans the payload differs.
 *
 * VDPBF16PS (gemm_bf16_ref.c) adds both products of a pair to one sum, so no order of pairs makes the bits of the two equal: tiles are
 * a word of their own (bf16tiles).
 */
#include "tensor/kernels/gemm_bf16_ref.h"

#include "tensor/kernels/kernels.h"

#define MR 4
#define NR 16

static float element(int64_t pairs, const uint16_t *a, const uint32_t *column, float sum)
{
	for (int64_t l = 0; l < pairs; l += QL_BF16_GROUP) {
		float even = 0, odd = 0;

		for (int64_t p = l; p < l + QL_BF16_GROUP; p++) {
			uint32_t x = p < pairs ? bf16_pair(a + 2 * p) : 0, y = p < pairs ? column[p * NR] : 0;

			even = bf16_fma(bf16_low(x), bf16_low(y), even);
			odd = bf16_fma(bf16_high(x), bf16_high(y), odd);
		}
		sum = bf16_normal(bf16_normal(sum) + bf16_normal(even + odd));
	}
	return sum;
}

static void tile(int rows, int columns, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *panel, float *c,
	int64_t ldc, bool add)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			float *to = c + i * ldc + j;

			*to = element(pairs, a + i * lda, panel + j, add ? *to : 0);
		}
}

extern const struct ql_gemm_bf16 gemm_bf16_tiles_ref;
const struct ql_gemm_bf16 gemm_bf16_tiles_ref = {
	.name = "gemm_bf16_tiles_ref", .mr = MR, .nr = NR, .rate = 1, .tiles = true, .tile = tile};
