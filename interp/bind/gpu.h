/* SPDX-License-Identifier: MIT
 * The device plug-in, opened when first asked for.
 */
#ifndef QUOLL_INTERP_BIND_GPU_H
#define QUOLL_INTERP_BIND_GPU_H

#include <stdbool.h>

#include "gpu/abi.h"

#define QL_GPU_DEVICES 16
#define QL_GPU_WHY 512

struct ql_gpu {
	bool usable;
	char why[QL_GPU_WHY];               /* when not usable */
	char path[512];                     /* the plug-in that was opened or tried; "": there is none */
	const struct ql_gpu_vtable *plugin; /* NULL: none */
	int count;
	struct ql_gpu_info device[QL_GPU_DEVICES];
};

/* The first device that can be used, or NULL. */
const struct ql_gpu_info *ql_gpu_first(void);

#endif
