/* SPDX-License-Identifier: MIT
 * The CBLAS named by the environment variable QUOLL_BLAS, if any.
 */
#ifndef QUOLL_TENSOR_KERNELS_BLAS_H
#define QUOLL_TENSOR_KERNELS_BLAS_H

#include <stdbool.h>

struct ql_blas {
	bool open;
	char library[256]; /* file of the opened library, or the name that was tried */
	char config[128];  /* version string of an OpenBLAS; else "" */
	char error[256];   /* why it could not be opened */
};

/* Opens the library at the first call. */
const struct ql_blas *ql_blas(void);

#endif
