// SPDX-License-Identifier: MIT
// The calls of the runtime on the CPU: one device whose memory is the heap, poisoned when it is given. Streams are queues
// that advance only when somebody waits or asks. QUOLL_EMU_FAIL=n:code lets the n-th call fail with that code.
#include "gpu/emu/cuda.h"
#include "gpu/emu/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

struct CUgraph_st {
	std::vector<std::function<void()>> calls;
};
struct CUgraphExec_st {
	std::vector<std::function<void()>> calls;
};
struct CUstream_st {
	std::deque<std::function<void()>> queue;
	std::unique_ptr<CUgraph_st> captured;
	bool broken = false; // a call cannot be captured
};
struct CUevent_st {
	bool recorded = false, done = true;
	double at = 0;
	cudaStream_t stream = nullptr;
};
struct CUmemPoolHandle_st {
	uint64_t now = 0, peak = 0;
};

namespace
{
constexpr size_t TOTAL = (size_t)4 << 30;
constexpr size_t QUEUE = 64; // calls; beyond it the oldest run

struct range {
	size_t bytes;
	bool freed; // the call that frees it is in a queue
};

struct {
	std::map<const char *, range> device, host;
	CUmemPoolHandle_st pool;
	cudaError_t last = cudaSuccess, stays = cudaSuccess;
	char why[240];
	long calls = 0;
} state;

cudaError_t note(cudaError_t error)
{
	if (error)
		state.last = error;
	return error;
}

// Every call begins here.
cudaError_t entered()
{
	const char *fail = getenv("QUOLL_EMU_FAIL");
	char *rest;

	state.calls++;
	if (fail && strtol(fail, &rest, 10) == state.calls)
		return note(static_cast<cudaError_t>(atoi(rest + 1)));
	return state.stays;
}

#define ENTER() \
	do { \
		cudaError_t before = entered(); \
		if (before) \
			return before; \
	} while (0)

// Allocation that holds all of at .. at + bytes - 1.
range *find(std::map<const char *, range> &from, const void *at, size_t bytes)
{
	const char *p = static_cast<const char *>(at);
	auto i = from.upper_bound(p);

	if (i == from.begin())
		return nullptr;
	--i;
	return !i->second.freed && bytes <= i->second.bytes && p - i->first <= (ptrdiff_t)(i->second.bytes - bytes)
		       ? &i->second
		       : nullptr;
}

double seconds()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void step(cudaStream_t s)
{
	std::function<void()> call = std::move(s->queue.front());

	s->queue.pop_front();
	call();
}

cudaError_t drain(cudaStream_t s)
{
	while (!s->queue.empty())
		step(s);
	return note(state.stays);
}

void add(cudaStream_t s, std::function<void()> call)
{
	if (s->captured) {
		s->captured->calls.push_back(std::move(call));
		return;
	}
	s->queue.push_back(std::move(call));
	while (s->queue.size() > QUEUE)
		step(s);
}
// Of calls that wait, and of memory, whose nodes in graphs are left out here.
#define ENTER_UNCAPTURED(stream) \
	do { \
		ENTER(); \
		if ((stream)->captured) { \
			(stream)->broken = true; \
			return note(cudaErrorStreamCaptureUnsupported); \
		} \
	} while (0)
} // namespace

extern "C" {
cudaError_t cudaGetDeviceCount(int *count)
{
	const char *none = getenv("QUOLL_EMU_NONE"); // as on a machine without a device or driver: 100, 35

	ENTER();
	*count = none ? 0 : 1;
	return note(none ? static_cast<cudaError_t>(atoi(none)) : cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	ENTER();
	if (device != 0)
		return note(cudaErrorInvalidDevice);
	memset(prop, 0, sizeof(*prop));
	snprintf(prop->name, sizeof(prop->name), "emulated on the CPU");
	prop->totalGlobalMem = TOTAL;
	prop->major = 9;
	prop->multiProcessorCount = 4;
	prop->sharedMemPerBlockOptin = QL_EMU_SHARED;
	return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
	*version = 0;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = 0;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	ENTER();
	return note(device ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int *device)
{
	ENTER();
	*device = 0;
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
	ENTER();
	*total = TOTAL;
	*free_bytes = TOTAL - state.pool.now;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
	ENTER();
	*pool = &state.pool;
	return note(device ? cudaErrorInvalidDevice : cudaSuccess);
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *)
{
	ENTER();
	if (attr == cudaMemPoolAttrUsedMemHigh)
		pool->peak = pool->now;
	return cudaSuccess;
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
	ENTER();
	*static_cast<uint64_t *>(value) = attr == cudaMemPoolAttrUsedMemHigh ? pool->peak : pool->now;
	return cudaSuccess;
}

// ---- memory ----

cudaError_t cudaMallocAsync(void **at, size_t bytes, cudaStream_t stream)
{
	const char *limit = getenv("QUOLL_EMU_MEMORY"); // bytes of the device
	size_t total = limit ? strtoull(limit, nullptr, 10) : TOTAL;

	ENTER_UNCAPTURED(stream);
	if (bytes == 0)
		return note(cudaErrorInvalidValue);
	if (bytes > total || state.pool.now > total - bytes || posix_memalign(at, 256, bytes))
		return note(cudaErrorMemoryAllocation);
	memset(*at, 0xCD, bytes);
	state.device[static_cast<char *>(*at)] = {bytes, false};
	state.pool.now += bytes;
	state.pool.peak = state.pool.now > state.pool.peak ? state.pool.now : state.pool.peak;
	return cudaSuccess;
}

cudaError_t cudaFreeAsync(void *at, cudaStream_t stream)
{
	auto i = state.device.find(static_cast<char *>(at));

	if (i == state.device.end() || i->second.freed)
		return note(cudaErrorInvalidValue);
	if (stream->captured) {
		stream->broken = true;
		return note(cudaErrorStreamCaptureUnsupported);
	}
	i->second.freed = true;
	state.pool.now -= i->second.bytes;
	add(stream, [at] {
		state.device.erase(static_cast<char *>(at));
		free(at);
	});
	return entered(); // a device that is lost gives its memory back
}

cudaError_t cudaMallocHost(void **at, size_t bytes)
{
	ENTER();
	if (posix_memalign(at, 4096, bytes ? bytes : 1))
		return note(cudaErrorMemoryAllocation);
	state.host[static_cast<char *>(*at)] = {bytes, false};
	return cudaSuccess;
}

cudaError_t cudaFreeHost(void *at)
{
	if (!state.host.erase(static_cast<char *>(at)))
		return note(cudaErrorInvalidValue);
	free(at);
	return cudaSuccess;
}

// Memory that is not pinned is read before the call returns, or written before it returns.
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
	bool down = kind == cudaMemcpyDeviceToHost, up = kind == cudaMemcpyHostToDevice;

	ENTER();
	if (bytes == 0)
		return cudaSuccess;
	if ((!down && !find(state.device, to, bytes)) || (!up && !find(state.device, from, bytes)))
		return note(cudaErrorInvalidValue);
	if (up && !find(state.host, from, bytes)) {
		const char *p = static_cast<const char *>(from);
		auto bytes_now = std::make_shared<std::vector<char>>(p, p + bytes);

		add(stream, [to, bytes_now, bytes] { memcpy(to, bytes_now->data(), bytes); });
		return cudaSuccess;
	}
	add(stream, [to, from, bytes] { memmove(to, from, bytes); });
	return down && !find(state.host, to, bytes) ? drain(stream) : cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
	ENTER();
	if (bytes && !find(state.device, at, bytes))
		return note(cudaErrorInvalidValue);
	add(stream, [at, value, bytes] { memset(at, value, bytes); });
	return cudaSuccess;
}

// ---- streams and events ----

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
	ENTER();
	*stream = new CUstream_st;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	cudaError_t error = drain(stream);

	delete stream;
	return error;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	ENTER_UNCAPTURED(stream);
	return drain(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	ENTER_UNCAPTURED(stream);
	if (!stream->queue.empty())
		step(stream);
	return state.stays ? note(state.stays) : stream->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
	ENTER();
	if (event->recorded && !event->done)
		add(stream, [event] {
			while (!event->done && !event->stream->queue.empty())
				step(event->stream);
		});
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
	ENTER();
	*event = new CUevent_st;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	if (event->recorded && !event->done)
		drain(event->stream);
	delete event;
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	ENTER_UNCAPTURED(stream);
	if (event->recorded && !event->done)
		drain(event->stream);
	event->recorded = true;
	event->done = false;
	event->stream = stream;
	add(stream, [event] {
		event->at = seconds();
		event->done = true;
	});
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	ENTER();
	while (!event->done && !event->stream->queue.empty())
		step(event->stream);
	return note(state.stays);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	ENTER();
	return event->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
	ENTER();
	if (!from->recorded || !to->recorded)
		return note(cudaErrorInvalidResourceHandle);
	if (!from->done || !to->done)
		return cudaErrorNotReady;
	*milliseconds = (float)((to->at - from->at) * 1e3);
	return cudaSuccess;
}

// ---- functions of the driver ----

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **at, unsigned version, unsigned long long,
	enum cudaDriverEntryPointQueryResult *found)
{
	ENTER();
	*at = strcmp(symbol, "cuTensorMapEncodeTiled") ? nullptr : reinterpret_cast<void *>(cuTensorMapEncodeTiled);
	*found = !*at              ? cudaDriverEntryPointSymbolNotFound
		 : version < 12000 ? cudaDriverEntryPointVersionNotSufficent
				   : cudaDriverEntryPointSuccess;
	return cudaSuccess;
}

// Refuses what the driver's documentation refuses, of what kernels ask for: bytes, three axes.
CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *at,
	const cuuint64_t *shape, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps,
	CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill)
{
	bool good = type == CU_TENSOR_MAP_DATA_TYPE_UINT8 && rank == 3 && (uintptr_t)at % 16 == 0 &&
		    (uintptr_t)map % 64 == 0 && interleave == CU_TENSOR_MAP_INTERLEAVE_NONE && box[0] % 16 == 0 &&
		    (swizzle != CU_TENSOR_MAP_SWIZZLE_128B || box[0] <= 128);

	*map = {};
	map->at = static_cast<const unsigned char *>(at);
	map->rank = rank;
	map->swizzle = swizzle;
	map->stride[0] = 1;
	for (int d = 0; d < 3 && good; d++) {
		good = shape[d] > 0 && shape[d] <= (uint64_t)1 << 32 && box[d] > 0 && box[d] <= 256 && steps[d] == 1;
		map->shape[d] = shape[d];
		map->box[d] = box[d];
	}
	for (int d = 0; d < 2 && good; d++) {
		good = strides[d] % 16 == 0 && strides[d] < (uint64_t)1 << 40;
		map->stride[d + 1] = strides[d];
	}
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- graphs ----

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode)
{
	ENTER();
	if (stream->captured)
		return note(cudaErrorIllegalState);
	stream->captured = std::make_unique<CUgraph_st>();
	stream->broken = false;
	return cudaSuccess;
}

// Whatever it returns, the capture has ended.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	std::unique_ptr<CUgraph_st> captured = std::move(stream->captured);

	*graph = nullptr;
	ENTER();
	if (!captured)
		return note(cudaErrorIllegalState);
	if (stream->broken)
		return note(cudaErrorStreamCaptureInvalidated);
	*graph = captured.release();
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
	ENTER();
	*exec = new CUgraphExec_st{graph->calls};
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	ENTER();
	for (const auto &call : exec->calls)
		add(stream, call);
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	delete graph;
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	delete exec;
	return cudaSuccess;
}

// ---- errors ----

cudaError_t cudaGetLastError(void)
{
	cudaError_t error = state.last;

	state.last = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return state.last;
}

const char *cudaGetErrorName(cudaError_t error)
{
	switch (error) {
	case cudaSuccess: return "cudaSuccess";
	case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
	case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
	case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
	case cudaErrorInsufficientDriver: return "cudaErrorInsufficientDriver";
	case cudaErrorNoDevice: return "cudaErrorNoDevice";
	case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
	case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
	case cudaErrorNotReady: return "cudaErrorNotReady";
	case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
	case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
	case cudaErrorIllegalState: return "cudaErrorIllegalState";
	case cudaErrorStreamCaptureUnsupported: return "cudaErrorStreamCaptureUnsupported";
	case cudaErrorStreamCaptureInvalidated: return "cudaErrorStreamCaptureInvalidated";
	case cudaErrorNotSupported: return "cudaErrorNotSupported";
	default: return "cudaErrorUnknown";
	}
}

const char *cudaGetErrorString(cudaError_t error)
{
	return error == cudaErrorLaunchFailure && state.why[0] ? state.why : cudaGetErrorName(error);
}
} // extern "C"

void ql_emu_global(const char *what, const void *at, size_t bytes)
{
	const char *p = static_cast<const char *>(at);
	auto i = state.device.upper_bound(p);

	if (bytes == 0)
		return;
	if (i != state.device.begin()) {
		--i;
		if (bytes <= i->second.bytes && p - i->first <= (ptrdiff_t)(i->second.bytes - bytes))
			return;
	}
	ql_emu_fault("%s of %d bytes beyond the ends of an allocation", what, (int)bytes);
}

cudaError_t ql_emu_launch(
	dim3 grid, dim3 block, size_t shared, bool alone, cudaStream_t stream, std::function<void()> body)
{
	uint64_t threads = (uint64_t)block.x * block.y * block.z;

	ENTER();
	if (threads == 0 || threads > 1024 || block.z > 64 || grid.x == 0 || grid.x > INT32_MAX || grid.y == 0 ||
		grid.y > 65535 || grid.z == 0 || grid.z > 65535 || shared > QL_EMU_SHARED)
		return note(cudaErrorInvalidConfiguration);
	add(stream, [=] {
		if (!state.stays && !ql_emu_run(grid, block, shared, alone, body, state.why, sizeof(state.why)))
			state.stays = state.last = cudaErrorLaunchFailure;
	});
	return cudaSuccess;
}
