/* SPDX-License-Identifier: MIT
 * Calls of the op `wrapper`: the kernel that the option name= names, on dense words.
 */
#ifndef QUOLL_GPU_KERNELS_WRAPPER_H
#define QUOLL_GPU_KERNELS_WRAPPER_H

#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

/* KERNEL: the type of its function. */
template <typename KERNEL> struct ql_wrapper {
	const char *name;
	KERNEL *kernel;
	int32_t in, out; /* least number of words */
};

template <typename W, size_t N> static const W *ql_wrapper_find(const W (&all)[N], const struct ql_gpu_call *call)
{
	const struct ql_gpu_option *name = ql_option(call, "name");

	for (const W &w : all)
		if (name && !strcmp(name->s, w.name))
			return &w;
	return NULL;
}

template <typename W, size_t N>
static bool ql_wrapper_plan(const W (&all)[N], const struct ql_gpu_call *call, struct ql_gpu_plan *p)
{
	const W *w = ql_wrapper_find(all, call);

	if (!w)
		return ql_refuse(p, "no wrapper of that name");
	if (!ql_dense(&call->in[0]) || !ql_dense(&call->out[0]) || ql_count(&call->in[0]) < w->in ||
		ql_count(&call->out[0]) < w->out)
		return ql_refuse(p, "too few words");
	p->path = "ptx";
	return true;
}

#endif
