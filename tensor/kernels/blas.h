/* SPDX-License-Identifier: MIT
 * The CBLAS that the environment variable QUOLL_BLAS names, if any.
 */
#ifndef QUOLL_TENSOR_KERNELS_BLAS_H
#define QUOLL_TENSOR_KERNELS_BLAS_H

#include <stdbool.h>

struct ql_blas {
	bool open;
	char library[256]; /* file of the opened library, or the name that was tried */
	char config[128];  /* version as an OpenBLAS tells it; "" otherwise */
	char error[256];   /* why it is not open */
};

/* Opens the library when nobody has yet. */
const struct ql_blas *ql_blas(void);

#endif
