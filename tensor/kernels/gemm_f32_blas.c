/* SPDX-License-Identifier: MIT
 * float32 product by CBLAS: Debian's serial OpenBLAS, opened at the first product; the threads are ours. The
 * pthread build would burn a core for 100 ms after each call. Any CBLAS may be named in QUOLL_BLAS.
 */
#include "tensor/kernels/kernels.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor/kernels/blas.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
        const float *b, int ldb, float beta, float *c, int ldc);

static sgemm_fn *sgemm;

/* The file behind a function, and its version where it is an OpenBLAS. */
static void describe(void *library, struct ql_blas *blas)
{
	Dl_info info;
	char *(*config)(void);

	*(void **)&config = dlsym(library, "openblas_get_config");
	if (config)
		snprintf(blas->config, sizeof(blas->config), "%s", config());
	if (dladdr(*(void **)&sgemm, &info) && info.dli_fname)
		snprintf(blas->library, sizeof(blas->library), "%s", info.dli_fname);
}

static bool open_library(const char *name, struct ql_blas *blas)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	snprintf(blas->library, sizeof(blas->library), "%s", name);
	if (!library) {
		snprintf(blas->error, sizeof(blas->error), "%s", dlerror());
		return false;
	}
	*(void **)&sgemm = dlsym(library, "cblas_sgemm");
	blas->open = sgemm != NULL;
	if (blas->open)
		describe(library, blas);
	else
		snprintf(blas->error, sizeof(blas->error), "%s: no function cblas_sgemm", name);
	return blas->open;
}

const struct ql_blas *ql_blas(void)
{
	static const char *const names[] = {
	        "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
	        "libopenblas.so.0",
	};
	static struct ql_blas blas;
	static bool tried;
	const char *wanted = getenv("QUOLL_BLAS");

	if (tried)
		return &blas;
	tried = true;
	setenv("OPENBLAS_NUM_THREADS", "1", 0);
	if (wanted)
		open_library(wanted, &blas);
	for (size_t i = 0; !wanted && !blas.open && i < sizeof(names) / sizeof(names[0]); i++)
		open_library(names[i], &blas);
	return &blas;
}

static bool available(void)
{
	return ql_blas()->open;
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
