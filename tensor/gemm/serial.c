/* SPDX-License-Identifier: MIT
 * Small products of tiles.
 */
#include "tensor/gemm/serial.h"

#include <string.h>

#define PANEL 4096 /* numbers of B per column of tiles: half of the first-level cache */

static void rows_of_tiles(const struct ql_gemm_f32 *kernel, int64_t m, int columns, int64_t k, const float *a,
	int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc, bool add)
{
	for (int64_t i = 0; i < m; i += kernel->mr)
		kernel->tile(
			(int)ql_min64(kernel->mr, m - i), columns, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
}

void ql_gemm_serial(const struct ql_gemm_f32 *kernel, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	const float *b, int64_t ldb, float *c, int64_t ldc, bool add)
{
	int64_t depth = PANEL / ql_max64(1, ql_min64(n, kernel->nr));

	for (int64_t i = 0; k == 0 && !add && i < m; i++)
		memset(c + i * ldc, 0, (size_t)n * sizeof(*c));
	for (int64_t l = 0; l < k; l += depth)
		for (int64_t j = 0; j < n; j += kernel->nr)
			rows_of_tiles(kernel, m, (int)ql_min64(kernel->nr, n - j), ql_min64(depth, k - l), a + l, lda,
				b + l * ldb + j, ldb, c + j, ldc, add || l > 0);
}
