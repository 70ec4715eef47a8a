/* SPDX-License-Identifier: MIT
 * float32 product by CBLAS: Debian's serial OpenBLAS, opened at the first product; the threads are ours. The
 * pthread build would burn a core for 100 ms after each call. Any CBLAS may be named in QUOLL_BLAS.
 */
#include "tensor/kernels/kernels.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
        const float *b, int ldb, float beta, float *c, int ldc);

static sgemm_fn *sgemm;

static bool available(void)
{
	static const char *const names[] = {
	        "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
	        "libopenblas.so.0",
	};
	static bool tried;
	const char *wanted = getenv("QUOLL_BLAS");
	void *library = NULL;

	if (tried)
		return sgemm != NULL;
	tried = true;
	setenv("OPENBLAS_NUM_THREADS", "1", 0);
	if (wanted)
		library = dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; !wanted && !library && i < sizeof(names) / sizeof(names[0]); i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (library)
		*(void **)&sgemm = dlsym(library, "cblas_sgemm");
	return sgemm != NULL;
}

static void run(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col, const float *b,
        int64_t b_row, int64_t b_col, float *c, int64_t ldc)
{
	/* a row-major matrix has column stride 1; one with row stride 1 is its transpose */
	bool ta = a_col != 1, tb = b_col != 1;
	int64_t lda = ta ? a_col : a_row, ldb = tb ? b_col : b_row;

	lda = ql_max64(lda, ta ? m : k);
	ldb = ql_max64(ldb, tb ? k : n);
	sgemm(ROW_MAJOR, ta ? TRANS : NO_TRANS, tb ? TRANS : NO_TRANS, (int)m, (int)n, (int)k, 1.0f, a,
	        (int)lda, b, (int)ldb, 0.0f, c, (int)ql_max64(ldc, n));
}

extern const struct ql_gemm_f32 gemm_f32_blas;
const struct ql_gemm_f32 gemm_f32_blas = {
        .name = "gemm_f32_blas", .largest = INT_MAX, .slice = 1000000000, .available = available, .run = run};
