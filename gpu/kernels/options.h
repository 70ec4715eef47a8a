/* SPDX-License-Identifier: MIT
 * The options of a call by name, on the host.
 */
#ifndef QUOLL_GPU_KERNELS_OPTIONS_H
#define QUOLL_GPU_KERNELS_OPTIONS_H

#include <string.h>

#include "gpu/abi.h"

/* NULL: it was not given. */
static inline const struct ql_gpu_option *ql_option(const struct ql_gpu_call *call, const char *name)
{
	for (int i = 0; i < call->n_options; i++)
		if (!strcmp(call->options[i].name, name))
			return &call->options[i];
	return NULL;
}

static inline int64_t ql_option_integer(const struct ql_gpu_call *call, const char *name, int64_t otherwise)
{
	const struct ql_gpu_option *o = ql_option(call, name);

	return o ? o->i : otherwise;
}

static inline double ql_option_number(const struct ql_gpu_call *call, const char *name, double otherwise)
{
	const struct ql_gpu_option *o = ql_option(call, name);

	return o ? o->f : otherwise;
}

#endif
