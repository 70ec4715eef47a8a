/* SPDX-License-Identifier: MIT
 * The device plug-ins, each opened when it is first asked for.
 */
#ifndef QUOLL_INTERP_BIND_GPU_H
#define QUOLL_INTERP_BIND_GPU_H

#include <stdbool.h>

#include "gpu/device.h"

#define QL_GPU_DEVICES 16
#define QL_GPU_WHY 512

struct ql_gpu {
	const char *file; /* name beside the program */
	bool tried, usable;
	char why[QL_GPU_WHY];               /* when not usable */
	char path[512];                     /* the plug-in that was opened or tried; "": there is none */
	const struct ql_gpu_vtable *plugin; /* NULL: none */
	int count;
	struct ql_gpu_info device[QL_GPU_DEVICES];
};

/* The plug-in of CUDA, or that of QUOLL_GPU_PLUGIN. */
const struct ql_gpu *ql_gpu_main(void);
/* That one if it can be used, else the emulation if that can be. */
const struct ql_gpu *ql_gpu_usable(void);
/* For ctx->find_device: "cuda", "cuda:1", "cudaemu". */
enum ql_status ql_gpu_find(struct ql_ctx *ctx, const char *what, const char *name, const struct ql_device **out);
/* Calls f with each device that can be used; closed ones, too. */
void ql_gpu_each(void (*f)(void *arg, const char *name, const struct ql_gpu_info *info), void *arg);
/* The first device that can be used, or NULL. */
const struct ql_gpu_info *ql_gpu_first(void);

#endif
