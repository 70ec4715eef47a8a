/* SPDX-License-Identifier: MIT
 * Libraries of CUDA that are opened when an op needs them.
 */
#ifndef QUOLL_GPU_CUDA_LIBRARY_H
#define QUOLL_GPU_CUDA_LIBRARY_H

#ifdef __cplusplus
extern "C" {
#endif

/* The library of that file name, such as "libcublasLt.so.13", which stays open; NULL: it is nowhere. */
void *ql_library_open(const char *file);

#ifdef __cplusplus
}
#endif

#endif
