/* SPDX-License-Identifier: MIT
 * Devices: what there is, opening one, its memory.
 */
#include "gpu/cuda/plugin.h"

#include <stdio.h>
#include <stdlib.h>

#define WHY 160
#define LEAST_CC 80

static int32_t no_device(cudaError_t error, char *why)
{
	cudaGetLastError();
	if (error == cudaErrorInsufficientDriver)
		snprintf(why, WHY, "there is no NVIDIA driver, or it is older than the plug-in's CUDA");
	else if (error == cudaErrorNoDevice)
		snprintf(why, WHY, "the driver finds no device");
	else
		snprintf(why, WHY, "%s", cudaGetErrorString(error));
	return -1;
}

static void describe(int index, struct ql_gpu_info *out)
{
	struct cudaDeviceProp prop;
	int driver = 0, runtime = 0;
	cudaError_t error = cudaGetDeviceProperties(&prop, index);

	*out = (struct ql_gpu_info){0};
	if (error) {
		cudaGetLastError();
		snprintf(out->name, sizeof(out->name), "device %d", index);
		snprintf(out->why, sizeof(out->why), "%s", cudaGetErrorString(error));
		return;
	}
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	snprintf(out->name, sizeof(out->name), "%.90s", prop.name);
	out->cc_major = prop.major;
	out->cc_minor = prop.minor;
	out->processors = prop.multiProcessorCount;
	out->driver = driver;
	out->runtime = runtime;
	out->memory = prop.totalGlobalMem;
	if (prop.major * 10 + prop.minor < LEAST_CC)
		snprintf(out->why, sizeof(out->why), "compute capability %d.%d: wanted %d.%d or higher", prop.major,
			prop.minor, LEAST_CC / 10, LEAST_CC % 10);
}

int32_t ql_device_probe(struct ql_gpu_info *out, int32_t room, char *why)
{
	int count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);

	if (error)
		return no_device(error, why);
	for (int i = 0; i < count && i < room; i++)
		describe(i, &out[i]);
	return count;
}

static int32_t start(struct ql_gpu_device *d)
{
	struct ql_gpu_info info;
	uint64_t all = UINT64_MAX;
	cudaError_t error;

	describe(d->index, &info);
	if (info.why[0])
		return ql_device_fail(NULL, "%s", info.why);
	d->cc = info.cc_major * 10 + info.cc_minor;
	d->processors = info.processors;
	error = cudaSetDevice(d->index);
	if (!error)
		error = cudaDeviceGetDefaultMemPool(&d->pool, d->index);
	if (!error) /* freed memory stays in the pool */
		error = cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrReleaseThreshold, &all);
	return ql_device_status(NULL, error, "opening the device", NULL);
}

int32_t ql_device_open(int32_t index, struct ql_gpu_device **out)
{
	struct ql_gpu_device *d = calloc(1, sizeof(*d));
	const char *sync = getenv("QUOLL_GPU_SYNC");
	int32_t status;

	*out = NULL;
	if (!d) {
		ql_device_fail(NULL, "out of host memory");
		return QL_GPU_MEMORY;
	}
	d->index = index;
	d->sync = sync && sync[0] && sync[0] != '0';
	status = start(d);
	if (status)
		free(d);
	else
		*out = d;
	return status;
}

void ql_device_close(struct ql_gpu_device *d)
{
	free(d);
}

int32_t ql_device_memory(struct ql_gpu_device *d, struct ql_gpu_memory *out)
{
	size_t unused = 0, total = 0;
	cudaError_t error;
	int32_t status = ql_device_enter(d);

	*out = (struct ql_gpu_memory){0};
	if (status)
		return status;
	error = cudaMemGetInfo(&unused, &total);
	if (!error)
		error = cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrUsedMemCurrent, &out->now);
	if (!error)
		error = cudaMemPoolGetAttribute(d->pool, cudaMemPoolAttrUsedMemHigh, &out->peak);
	out->free = unused;
	out->total = total;
	return ql_device_status(d, error, "asking for the memory", NULL);
}

int32_t ql_device_memory_reset(struct ql_gpu_device *d)
{
	uint64_t zero = 0;
	int32_t status = ql_device_enter(d);

	if (status)
		return status;
	return ql_device_status(
		d, cudaMemPoolSetAttribute(d->pool, cudaMemPoolAttrUsedMemHigh, &zero), "resetting the peak", NULL);
}
