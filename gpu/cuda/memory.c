/* SPDX-License-Identifier: MIT
 * Memory in order of a stream, and copies. Bytes of the host pass through a ring of pinned buffers, so that the caller
 * may reuse its memory at once and the device need not wait for it.
 */
#include "gpu/cuda/plugin.h"

#include <string.h>

int32_t ql_stream_alloc(struct ql_gpu_stream *s, uint64_t bytes, void **at)
{
	int32_t status = ql_device_enter(s->device);

	*at = NULL;
	if (status)
		return status;
	if (bytes > SIZE_MAX) {
		ql_device_fail(s->device, "allocating: wanted a size of this machine, got a larger one");
		return QL_GPU_MEMORY;
	}
	if (s->recording)
		return ql_graph_alloc(s, bytes, at);
	return ql_device_status(
		s->device, cudaMallocAsync(at, bytes ? bytes : 1, s->stream), "allocating memory", s->op);
}

/* Also on a lost device, which the emulation could otherwise not tell from a leak. */
int32_t ql_stream_free(struct ql_gpu_stream *s, void *at)
{
	cudaError_t error = cudaSetDevice(s->device->index);
	int32_t status = QL_GPU_OK;

	if (at && ql_graph_free(s, at, &status))
		return status;
	if (at)
		error = cudaFreeAsync(at, s->stream);
	return s->device->lost ? QL_GPU_LOST : ql_device_status(s->device, error, "freeing memory", s->op);
}

int32_t ql_stream_copy(struct ql_gpu_stream *s, void *at, const void *from, uint64_t bytes)
{
	int32_t status = ql_device_enter(s->device);

	return status ? status
		      : ql_device_status(s->device,
				cudaMemcpyAsync(at, from, bytes, cudaMemcpyDeviceToDevice, s->stream), "copying",
				s->op);
}

int32_t ql_stream_fill(struct ql_gpu_stream *s, void *at, uint8_t value, uint64_t bytes)
{
	int32_t status = ql_device_enter(s->device);

	return status ? status
		      : ql_device_status(s->device, cudaMemsetAsync(at, value, bytes, s->stream), "filling", s->op);
}

/* ---- pinned buffers ---- */

/* The next buffer, made at its first use. What still uses it is waited for. */
static cudaError_t stage(struct ql_gpu_stream *s, struct ql_gpu_stage **out)
{
	struct ql_gpu_stage *g = &s->stage[s->next];
	cudaError_t error = cudaSuccess;

	s->next = (s->next + 1) % QL_STAGES;
	if (!g->done)
		error = cudaEventCreateWithFlags(&g->done, cudaEventDisableTiming);
	if (!error && !g->at)
		error = cudaMallocHost(&g->at, QL_STAGE_BYTES);
	if (!error && g->busy)
		error = cudaEventSynchronize(g->done);
	g->busy = false;
	*out = g;
	return error;
}

/* The status of copies by way of the buffers. After an error some may be under way, of which no event tells: they end before
 * a buffer is used again. */
static int32_t ended(struct ql_gpu_stream *s, cudaError_t error, const char *what)
{
	int32_t status = ql_device_status(s->device, error, what, s->op);

	if (error)
		cudaStreamSynchronize(s->stream);
	return status;
}

void ql_stages_close(struct ql_gpu_stream *s)
{
	for (int i = 0; i < QL_STAGES; i++) {
		if (s->stage[i].at)
			cudaFreeHost(s->stage[i].at);
		if (s->stage[i].done)
			cudaEventDestroy(s->stage[i].done);
	}
}

static uint64_t piece(uint64_t left)
{
	return left < QL_STAGE_BYTES ? left : QL_STAGE_BYTES;
}

static cudaError_t up(struct ql_gpu_stream *s, char *at, const char *host, uint64_t bytes)
{
	struct ql_gpu_stage *g;
	cudaError_t error = stage(s, &g);

	if (error)
		return error;
	memcpy(g->at, host, bytes);
	error = cudaMemcpyAsync(at, g->at, bytes, cudaMemcpyHostToDevice, s->stream);
	if (!error)
		error = cudaEventRecord(g->done, s->stream);
	g->busy = !error;
	return error;
}

int32_t ql_stream_to_device(struct ql_gpu_stream *s, void *at, const void *host, uint64_t bytes)
{
	cudaError_t error = cudaSuccess;
	int32_t status = ql_device_enter(s->device);

	if (!status && s->recording && bytes)
		return ql_graph_write(s, at, host, bytes);
	for (uint64_t i = 0; i < bytes && !status && !error; i += QL_STAGE_BYTES)
		error = up(s, (char *)at + i, (const char *)host + i, piece(bytes - i));
	return status ? status : ended(s, error, "copying to the device");
}

/* Queues the copy of a piece into a buffer. */
static cudaError_t ask(struct ql_gpu_stream *s, const char *at, uint64_t bytes, struct ql_gpu_stage **out)
{
	cudaError_t error = stage(s, out);

	if (!error)
		error = cudaMemcpyAsync((*out)->at, at, bytes, cudaMemcpyDeviceToHost, s->stream);
	if (!error)
		error = cudaEventRecord((*out)->done, s->stream);
	return error;
}

int32_t ql_stream_to_host(struct ql_gpu_stream *s, void *host, const void *at, uint64_t bytes)
{
	struct ql_gpu_stage *g[2] = {NULL, NULL}; /* of the piece at i, and of the next one */
	cudaError_t error = cudaSuccess;
	int32_t status = ql_device_enter(s->device);

	if (!status)
		status = ql_graph_refuse(s, "copying to the host");
	if (status || bytes == 0)
		return status;
	error = ask(s, at, piece(bytes), &g[0]);
	for (uint64_t i = 0; i < bytes && !error; i += QL_STAGE_BYTES) {
		uint64_t next = i + QL_STAGE_BYTES;

		if (next < bytes)
			error = ask(s, (const char *)at + next, piece(bytes - next), &g[1]);
		if (!error)
			error = cudaEventSynchronize(g[0]->done);
		if (!error)
			memcpy((char *)host + i, g[0]->at, piece(bytes - i));
		g[0] = g[1];
	}
	return ended(s, error, "copying to the host");
}
