/* SPDX-License-Identifier: MIT
 * float32 product by a CBLAS of the user's choice, named in QUOLL_BLAS. A threaded OpenBLAS is set to one thread
 * and called for slabs of columns from all of our threads. Any other library is called from one thread only:
 * Debian's serial OpenBLAS 0.3.21 allocates its work buffers without a lock, and two concurrent threads in
 * cblas_sgemm got wrong products in 5 % of the calls.
 */
#include "tensor/kernels/kernels.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tensor/kernels/blas.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

typedef void sgemm_fn(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
	const float *b, int ldb, float beta, float *c, int ldc);

static sgemm_fn *sgemm;
static bool reentrant;

/* Finds the file of the library, and the version of an OpenBLAS. */
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

/* 0 for a serial build, which has no locks */
static bool has_locks(void *library)
{
	int (*parallel)(void);
	void (*threads)(int);

	*(void **)&parallel = dlsym(library, "openblas_get_parallel");
	*(void **)&threads = dlsym(library, "openblas_set_num_threads");
	if (!parallel || !threads || parallel() == 0)
		return false;
	threads(1);
	return true;
}

static void open_library(const char *name, struct ql_blas *blas)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	snprintf(blas->library, sizeof(blas->library), "%s", name);
	if (!library) {
		snprintf(blas->error, sizeof(blas->error), "%s", dlerror());
		return;
	}
	*(void **)&sgemm = dlsym(library, "cblas_sgemm");
	blas->open = sgemm != NULL;
	reentrant = blas->open && has_locks(library);
	if (blas->open)
		describe(library, blas);
	else
		snprintf(blas->error, sizeof(blas->error), "%s: no function cblas_sgemm", name);
}

const struct ql_blas *ql_blas(void)
{
	static struct ql_blas blas;
	static bool tried;
	const char *wanted = getenv("QUOLL_BLAS");

	if (!wanted || !*wanted) {
		snprintf(blas.error, sizeof(blas.error), "QUOLL_BLAS names none; not needed");
		return &blas;
	}
	if (tried)
		return &blas;
	tried = true;
	blas.error[0] = '\0';
	open_library(wanted, &blas);
	if (!blas.open)
		fprintf(stderr, "quoll: QUOLL_BLAS: wanted a CBLAS library, got %s\n", blas.error);
	return &blas;
}

static bool available(void)
{
	return ql_blas()->open;
}

static bool is_reentrant(void)
{
	return reentrant;
}

static void whole(int64_t m, int64_t n, int64_t k, const float *a, int64_t a_row, int64_t a_col, const float *b,
	int64_t b_row, int64_t b_col, float *c, int64_t ldc)
{
	/* a row-major matrix has column stride 1; one with row stride 1 is its transpose */
	bool ta = a_col != 1, tb = b_col != 1;

	sgemm(ROW_MAJOR, ta ? TRANS : NO_TRANS, tb ? TRANS : NO_TRANS, (int)m, (int)n, (int)k, 1.0f, a,
		(int)(ta ? a_col : a_row), b, (int)(tb ? b_col : b_row), 0.0f, c, (int)ldc);
}

extern const struct ql_gemm_f32 gemm_f32_blas;
const struct ql_gemm_f32 gemm_f32_blas = {.name = "gemm_f32_blas",
	.mr = 1,
	.nr = 1,
	.rate = 30,
	.whole = whole,
	.reentrant = is_reentrant,
	.available = available};
