/* SPDX-License-Identifier: MIT
 * Differing bits by the compiler's population count.
 */
#include "tensor/kernels/kernels.h"

static void differing(const uint64_t *a, const uint64_t *b, int64_t ldb, int64_t rows, int64_t words, int32_t *out)
{
	for (int64_t j = 0; j < rows; j++) {
		int32_t n = 0;

		for (int64_t w = 0; w < words; w++)
			n += __builtin_popcountll(a[w] ^ b[j * ldb + w]);
		out[j] = n;
	}
}

extern const struct ql_gemm_b1 gemm_b1_ref;
const struct ql_gemm_b1 gemm_b1_ref = {.name = "gemm_b1_ref", .differing = differing};
