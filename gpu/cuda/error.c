/* SPDX-License-Identifier: MIT
 * Errors of the runtime as statuses. Some leave the device usable; after the others every call returns QL_GPU_LOST.
 */
#include "gpu/cuda/plugin.h"

#include <stdarg.h>
#include <stdio.h>

static char of_open[QL_ERROR_TEXT];

static void keep(struct ql_gpu_device *d, const char *format, va_list args)
{
	vsnprintf(d ? d->error : of_open, QL_ERROR_TEXT, format, args);
}

int32_t ql_device_fail(struct ql_gpu_device *d, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(d, format, args);
	va_end(args);
	return QL_GPU_FAILED;
}

/* True after errors of one call. */
static bool usable_after(cudaError_t error)
{
	return error == cudaErrorInvalidValue || error == cudaErrorMemoryAllocation ||
	       error == cudaErrorInvalidConfiguration || error == cudaErrorNotSupported ||
	       error == cudaErrorInvalidResourceHandle || error == cudaErrorStreamCaptureUnsupported ||
	       error == cudaErrorStreamCaptureInvalidated;
}

int32_t ql_device_status(struct ql_gpu_device *d, cudaError_t error, const char *what, const char *op)
{
	if (error == cudaSuccess)
		return QL_GPU_OK;
	cudaGetLastError(); /* or the next call reports it, too */
	ql_device_fail(d, "%s%s%s: %s", what, op ? ", at or before op " : "", op ? op : "", cudaGetErrorString(error));
	if (error == cudaErrorMemoryAllocation)
		return QL_GPU_MEMORY;
	if (usable_after(error))
		return QL_GPU_FAILED;
	if (d)
		d->lost = true;
	return QL_GPU_LOST;
}

int32_t ql_device_enter(struct ql_gpu_device *d)
{
	return d->lost ? QL_GPU_LOST : ql_device_status(d, cudaSetDevice(d->index), "choosing the device", NULL);
}

void ql_device_last_error(struct ql_gpu_device *d, char *text, size_t size)
{
	snprintf(text, size, "%s", d ? d->error : of_open);
}
