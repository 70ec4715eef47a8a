/* SPDX-License-Identifier: MIT
 * A device of a plug-in (gpu/abi.h) as a struct ql_device of the library.
 */
#ifndef QUOLL_GPU_DEVICE_H
#define QUOLL_GPU_DEVICE_H

#include "gpu/abi.h"
#include "tensor/device.h"

/* Bytes between the host's memory and the device's. */
struct ql_gpu_traffic {
	uint64_t read, written; /* from the device; to it */
};

/* Opens device `index` of the plug-in as `name`, which is copied, and adds it to ctx->devices. Errors: what the plug-in
 * says; out of memory. */
enum ql_status ql_gpu_open(struct ql_ctx *ctx, const struct ql_gpu_vtable *v, int32_t index, const char *name,
	const struct ql_device **out);
/* Memory of the device and what has been copied; with `reset` the peak and the counts begin again. An error of the
 * plug-in. */
enum ql_status ql_gpu_memory(
	const struct ql_device *d, bool reset, struct ql_gpu_memory *out, struct ql_gpu_traffic *traffic);
/* Lets the device use the kernels of ql_kernels_families only. An error of the plug-in. */
enum ql_status ql_gpu_force(const struct ql_device *d);
/* Whether d was opened by ql_gpu_open. */
bool ql_gpu_is(const struct ql_device *d);

#endif
