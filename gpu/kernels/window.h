/* SPDX-License-Identifier: MIT
 * Windows over the last two axes of (N, C, H, W), read from the options of convolutions and pooling by the rules of
 * tensor/conv/window.c, and images as operands. Index 0 is the vertical direction, 1 the horizontal one.
 */
#ifndef QUOLL_GPU_KERNELS_WINDOW_H
#define QUOLL_GPU_KERNELS_WINDOW_H

#include "gpu/kernels/options.h"
#include "gpu/kernels/strided.h"

struct ql_gpu_window {
	int64_t in[2], kernel[2], stride[2], dilation[2], before[2], after[2], out[2];
};

/* An operand or result with four axes. */
struct ql_images {
	void *at;
	int32_t type; /* enum ql_element */
	int64_t n, c, h, w, stride[4];
};

static inline struct ql_images ql_images_of(const struct ql_gpu_tensor *t)
{
	struct ql_images i = {};

	i.at = t->at;
	i.type = ql_element_of(t->dtype);
	i.n = t->shape[0];
	i.c = t->shape[1];
	i.h = t->shape[2];
	i.w = t->shape[3];
	for (int d = 0; d < 4; d++)
		i.stride[d] = t->stride[d];
	return i;
}

/* One or two numbers of the option; without it they stay. */
static inline void ql_window_pair(const struct ql_gpu_call *call, const char *name, int64_t pair[2])
{
	const struct ql_gpu_option *o = ql_option(call, name);

	for (int d = 0; d < 2 && o && o->n > 0; d++)
		pair[d] = o->ints[o->n == 2 ? d : 0];
}

/* Whether no option of a pooling op was given that only the host has; pads are at most half of the kernel. */
static inline bool ql_window_plain(const struct ql_gpu_call *call, const int64_t kernel[2])
{
	static const char *const others[] = {"autopad", "ceilmode", "countincludepad", "dilation", "indices"};
	const struct ql_gpu_option *pad = ql_option(call, "pad");

	for (int i = 0; i < 5; i++)
		if (ql_option(call, others[i]))
			return false;
	for (int i = 0; pad && i < pad->n; i++)
		if (2 * pad->ints[i] > kernel[pad->n == 1 ? (kernel[1] < kernel[0]) : pad->n == 2 ? i : i / 2])
			return false;
	return true;
}

/* Of this kernel over images of this size; without stride= it steps by `stride`, 0: by itself. */
static inline struct ql_gpu_window ql_window_of(
	const struct ql_gpu_call *call, const int64_t in[2], const int64_t kernel[2], int64_t stride)
{
	const struct ql_gpu_option *pad = ql_option(call, "pad");
	struct ql_gpu_window w = {};

	for (int d = 0; d < 2; d++) {
		w.in[d] = in[d];
		w.kernel[d] = kernel[d];
		w.stride[d] = stride ? stride : kernel[d];
		w.dilation[d] = 1;
	}
	ql_window_pair(call, "stride", w.stride);
	ql_window_pair(call, "dilation", w.dilation);
	ql_window_pair(call, "pad", w.before);
	for (int d = 0; d < 2; d++) {
		bool four = pad && pad->n == 4;

		w.before[d] = four ? pad->ints[2 * d] : w.before[d];
		w.after[d] = four ? pad->ints[2 * d + 1] : w.before[d];
		w.out[d] = (in[d] + w.before[d] + w.after[d] - w.dilation[d] * (kernel[d] - 1) - 1) / w.stride[d] + 1;
	}
	return w;
}

/* A plain operand of floats with four axes on the device. */
static inline bool ql_images_float(const struct ql_gpu_tensor *t)
{
	int type = ql_element_of(t->dtype);

	return t->rank == 4 && !t->codes && !(t->flags & QL_GPU_NUMBER) && ql_element_whole(type) &&
	       ql_element_float(type);
}

__device__ static __forceinline__ int64_t ql_images_at(const ql_images &i, int64_t n, int64_t c, int64_t h, int64_t w)
{
	return n * i.stride[0] + c * i.stride[1] + h * i.stride[2] + w * i.stride[3];
}

#endif
