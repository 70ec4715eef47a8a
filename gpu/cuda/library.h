/* SPDX-License-Identifier: MIT
 * Libraries of CUDA that are opened when an op needs them.
 */
#ifndef QUOLL_GPU_CUDA_LIBRARY_H
#define QUOLL_GPU_CUDA_LIBRARY_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library of that file name, such as "libcublasLt.so.13", which stays open; NULL: it is nowhere. */
void *ql_library_open(const char *file);

#define QL_LIBRARY_DEVICES 8 /* with a handle of their own */

/* A library whose functions take a handle of the device. */
struct ql_library {
	const char *file;              /* such as "libcublasLt.so.13" */
	const char *const *names;      /* of its functions, in the order of `functions`; NULL ends them */
	void *functions;               /* a struct of pointers to functions only, which ql_library_ready fills */
	bool (*create)(void **handle); /* makes a handle of the current device */
	bool tried, ready;
	int count;
	struct {
		int device;
		void *handle;
	} made[QL_LIBRARY_DEVICES];
};

/* Whether the library is there with all of its functions; opens it at the first call. */
bool ql_library_ready(struct ql_library *l);
/* The handle of the current device, which is kept; NULL: there is none. The library is ready. */
void *ql_library_handle(struct ql_library *l);

#ifdef __cplusplus
}
#endif

#endif
