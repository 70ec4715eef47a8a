/* SPDX-License-Identifier: MIT
 * Recorded sequences of calls: what is queued between begin and end is kept and not run, until graph_run queues all of it as
 * one launch: for many short kernels in a fixed order, as the steps of recurrent layers.
 *
 * Addresses are recorded, so memory that a recording uses must stay. Memory that is given meanwhile belongs to the graph: freed
 * while recording, it is given again to what follows; freed later, it stays until the graph is closed. What the caller still
 * has when the graph is closed is then ordinary memory. Memory from before the recording that is freed in it stays, too.
 *
 * Bytes of the host are copied into memory of the graph at once, and what is recorded is the copy from there: the memory that they
 * were written to may have other contents before and after, in the same run.
 */
#include <stdlib.h>

#include "gpu/cuda/plugin.h"

struct block {
	void *at;
	uint64_t bytes;
	bool held; /* by the caller */
	bool own;  /* given while recording, so that it may be given again */
};

struct ql_gpu_graph {
	struct ql_gpu_stream *stream;
	cudaStream_t aside; /* for memory while recording: the stream itself would record it */
	cudaGraphExec_t exec;
	struct block *block;
	size_t blocks, room;
	struct ql_gpu_graph *next; /* of the stream's graphs */
};

int32_t ql_graph_refuse(struct ql_gpu_stream *s, const char *what)
{
	return s->recording ? ql_device_fail(s->device, "%s: wanted no recording, got one that has begun", what)
			    : QL_GPU_OK;
}

/* ---- memory ---- */

static int32_t add_block(struct ql_gpu_graph *g, struct block b)
{
	size_t room = g->room ? 2 * g->room : 16;
	struct block *more = g->blocks < g->room ? g->block : realloc(g->block, room * sizeof(*more));

	if (!more) {
		ql_device_fail(g->stream->device, "out of host memory");
		return QL_GPU_MEMORY;
	}
	g->room = g->blocks < g->room ? g->room : room;
	g->block = more;
	g->block[g->blocks++] = b;
	return QL_GPU_OK;
}

/* A block that is free again and not much larger; NULL: there is none. */
static struct block *used_before(struct ql_gpu_graph *g, uint64_t bytes)
{
	struct block *best = NULL;

	for (size_t i = 0; i < g->blocks; i++) {
		struct block *b = &g->block[i];

		if (b->own && !b->held && b->bytes >= bytes && b->bytes / 2 <= bytes &&
			(!best || b->bytes < best->bytes))
			best = b;
	}
	return best;
}

int32_t ql_graph_alloc(struct ql_gpu_stream *s, uint64_t bytes, void **at)
{
	struct ql_gpu_graph *g = s->recording;
	struct block *b = used_before(g, bytes);
	int32_t status;

	if (b) {
		b->held = true;
		*at = b->at;
		return QL_GPU_OK;
	}
	status = ql_device_status(
		s->device, cudaMallocAsync(at, bytes ? bytes : 1, g->aside), "allocating memory", s->op);
	if (!status)
		status = add_block(g, (struct block){.at = *at, .bytes = bytes, .held = true, .own = true});
	if (status && *at)
		cudaFreeAsync(*at, g->aside);
	if (status)
		*at = NULL;
	return status;
}

static struct block *block_of(struct ql_gpu_graph *g, const void *at)
{
	for (size_t i = 0; i < g->blocks; i++)
		if (g->block[i].at == at && g->block[i].held)
			return &g->block[i];
	return NULL;
}

bool ql_graph_free(struct ql_gpu_stream *s, void *at, int32_t *status)
{
	struct block *b = NULL;

	*status = QL_GPU_OK;
	for (struct ql_gpu_graph *g = s->graphs; g && !b; g = g->next)
		b = block_of(g, at);
	if (b)
		b->held = false;
	else if (s->recording)
		*status = add_block(s->recording, (struct block){.at = at});
	return b || s->recording;
}

int32_t ql_graph_write(struct ql_gpu_stream *s, void *at, const void *host, uint64_t bytes)
{
	struct ql_gpu_graph *g = s->recording;
	void *kept = NULL;
	cudaError_t error = cudaMallocAsync(&kept, bytes, g->aside);
	int32_t status = ql_device_status(s->device, error, "allocating memory", s->op);

	if (!status)
		status = add_block(g, (struct block){.at = kept, .bytes = bytes});
	if (status && !error)
		cudaFreeAsync(kept, g->aside);
	if (status)
		return status;
	/* host memory that is not pinned is read before the call returns */
	error = cudaMemcpyAsync(kept, host, bytes, cudaMemcpyHostToDevice, g->aside);
	if (!error)
		error = cudaMemcpyAsync(at, kept, bytes, cudaMemcpyDeviceToDevice, s->stream);
	return ql_device_status(s->device, error, "copying to the device", s->op);
}

/* ---- recording ---- */

static void unlink_graph(struct ql_gpu_graph *g)
{
	struct ql_gpu_graph **link = &g->stream->graphs;

	while (*link && *link != g)
		link = &(*link)->next;
	if (*link)
		*link = g->next;
}

void ql_graph_close(struct ql_gpu_graph *g)
{
	if (!g)
		return;
	cudaSetDevice(g->stream->device->index);
	unlink_graph(g);
	if (g->exec)
		cudaGraphExecDestroy(g->exec);
	for (size_t i = 0; i < g->blocks; i++)
		if (!g->block[i].held)
			cudaFreeAsync(g->block[i].at, g->stream->stream);
	if (g->aside)
		cudaStreamDestroy(g->aside);
	free(g->block);
	free(g);
}

int32_t ql_graph_begin(struct ql_gpu_stream *s)
{
	struct ql_gpu_graph *g;
	cudaError_t error;
	int32_t status = ql_device_enter(s->device);

	if (!status)
		status = ql_graph_refuse(s, "graph_begin");
	if (status)
		return status;
	g = calloc(1, sizeof(*g));
	if (!g) {
		ql_device_fail(s->device, "out of host memory");
		return QL_GPU_MEMORY;
	}
	g->stream = s;
	g->next = s->graphs;
	s->graphs = g;
	error = cudaStreamCreateWithFlags(&g->aside, cudaStreamNonBlocking);
	if (!error)
		error = cudaStreamBeginCapture(s->stream, cudaStreamCaptureModeRelaxed);
	if (error)
		ql_graph_close(g);
	else
		s->recording = g;
	return ql_device_status(s->device, error, "beginning a recording", NULL);
}

int32_t ql_graph_end(struct ql_gpu_stream *s, struct ql_gpu_graph **out)
{
	struct ql_gpu_graph *g = s->recording;
	cudaGraph_t graph = NULL;
	cudaError_t error = cudaSetDevice(s->device->index), instantiated;

	*out = NULL;
	if (!g)
		return ql_device_fail(s->device, "graph_end: wanted a recording that has begun, got none");
	s->recording = NULL;
	instantiated = cudaStreamEndCapture(s->stream, &graph); /* also on a lost device: the stream is to be closed */
	error = error ? error : instantiated;
	if (!error)
		error = cudaGraphInstantiateWithFlags(&g->exec, graph, 0);
	if (!error) /* its memory is there */
		error = cudaStreamSynchronize(g->aside);
	if (graph)
		cudaGraphDestroy(graph);
	if (error)
		ql_graph_close(g);
	else
		*out = g;
	return s->device->lost ? QL_GPU_LOST : ql_device_status(s->device, error, "recording", s->op);
}

int32_t ql_graph_run(struct ql_gpu_stream *s, struct ql_gpu_graph *g)
{
	int32_t status = ql_device_enter(s->device);

	if (!status)
		status = ql_graph_refuse(s, "graph_run");
	return status ? status
		      : ql_device_status(s->device, cudaGraphLaunch(g->exec, s->stream), "running a recording", s->op);
}
