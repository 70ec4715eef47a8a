/* SPDX-License-Identifier: MIT
 * What VDPBF16PS does, in plain C: of each pair the odd element is multiplied and added first, then the even one, each with one
 * rounding to nearest even; operands, sums and results that are not normal count as zeros of their sign, whatever the mode of the
 * processor. Intel's manual, volume 2, has it so; tests/kernels_bf16.c compares this file with the instruction.
 */
#include "tensor/kernels/gemm_bf16_ref.h"

#include "tensor/kernels/kernels.h"

#define MR 4
#define NR 16

static void tile(int rows, int columns, int64_t pairs, const uint16_t *a, int64_t lda, const uint32_t *panel, float *c,
	int64_t ldc, bool add)
{
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			float sum = 0, *to = c + i * ldc + j;

			for (int64_t l = 0; l < pairs; l++) {
				uint32_t x = bf16_pair(a + i * lda + 2 * l), y = panel[l * NR + j];

				sum = bf16_fma(bf16_high(x), bf16_high(y), sum);
				sum = bf16_fma(bf16_low(x), bf16_low(y), sum);
			}
			*to = add ? *to + sum : sum;
		}
}

extern const struct ql_gemm_bf16 gemm_bf16_ref;
const struct ql_gemm_bf16 gemm_bf16_ref = {.name = "gemm_bf16_ref", .mr = MR, .nr = NR, .rate = 1, .tile = tile};
