/* SPDX-License-Identifier: MIT
 * Small products of tiles.
 */
#include "tensor/gemm_serial.h"

#include "tensor/gemm_pack.h"

#include <string.h>

#include "tensor/cpu.h"

#define PANEL 4096 /* numbers of B that a column of tiles runs over: half of the first-level cache */

const struct ql_gemm_f32 *ql_gemm_tiles(const struct ql_ctx *ctx)
{
	const struct ql_gemm_f32 *kernel = ctx->kernels->gemm_f32;

	for (int i = 0; !kernel->tile && i < ql_kernel_count; i++) {
		const struct ql_kernel_entry *e = &ql_kernel_entries[i];
		const struct ql_gemm_f32 *other = e->kernel;

		if (!strcmp(e->family, "gemm_f32") && other->tile && !(e->needs & ~ql_cpu()->features))
			kernel = other;
	}
	return kernel;
}

int64_t ql_gemm_panels_length(const struct ql_gemm_f32 *kernel, int64_t n, int64_t k)
{
	return ql_ceil_div(n, kernel->nr) * kernel->nr * k;
}

void ql_gemm_panels(const struct ql_gemm_f32 *kernel, const float *b, int64_t row, int64_t column, int64_t k, int64_t n,
	float *panels)
{
	for (int64_t j = 0; j < n; j += kernel->nr)
		ql_gemm_panel_f32(
			b + j * column, row, column, k, (int)ql_min64(kernel->nr, n - j), kernel->nr, panels + j * k);
}

static void rows_of_tiles(const struct ql_gemm_f32 *kernel, int64_t m, int columns, int64_t k, const float *a,
	int64_t lda, const float *b, int64_t ldb, float *c, int64_t ldc, bool add)
{
	for (int64_t i = 0; i < m; i += kernel->mr)
		kernel->tile(
			(int)ql_min64(kernel->mr, m - i), columns, k, a + i * lda, lda, b, ldb, c + i * ldc, ldc, add);
}

void ql_gemm_by_panels(const struct ql_gemm_f32 *kernel, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
	const float *panels, float *c, int64_t ldc)
{
	for (int64_t j = 0; j < n; j += kernel->nr)
		rows_of_tiles(kernel, m, (int)ql_min64(kernel->nr, n - j), k, a, lda, panels + j * k, kernel->nr, c + j,
			ldc, false);
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
