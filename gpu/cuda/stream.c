/* SPDX-License-Identifier: MIT
 * Streams, events, and the faults that kernels note.
 */
#include "gpu/cuda/plugin.h"

#include <stdlib.h>

/* A record for faults, cleared. */
static cudaError_t open_record(struct ql_gpu_stream *s)
{
	void *at = NULL;
	cudaError_t error = cudaMallocAsync(&at, sizeof(*s->record), s->stream);

	s->record = at;
	return error ? error : cudaMemsetAsync(at, 0, sizeof(*s->record), s->stream);
}

int32_t ql_stream_open(struct ql_gpu_device *d, struct ql_gpu_stream **out)
{
	struct ql_gpu_stream *s;
	cudaError_t error;
	int32_t status = ql_device_enter(d);

	*out = NULL;
	if (status)
		return status;
	s = calloc(1, sizeof(*s));
	if (!s) {
		ql_device_fail(d, "out of host memory");
		return QL_GPU_MEMORY;
	}
	s->device = d;
	error = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
	if (!error)
		error = open_record(s);
	status = ql_device_status(d, error, "opening a stream", NULL);
	if (status)
		ql_stream_close(s);
	else
		*out = s;
	return status;
}

void ql_stream_close(struct ql_gpu_stream *s)
{
	struct ql_gpu_graph *unfinished;

	if (!s)
		return;
	cudaSetDevice(s->device->index);
	if (s->recording && ql_graph_end(s, &unfinished) == QL_GPU_OK)
		ql_graph_close(unfinished);
	if (s->record)
		cudaFreeAsync(s->record, s->stream);
	if (s->stream) {
		cudaStreamSynchronize(s->stream);
		ql_stages_close(s);
		cudaStreamDestroy(s->stream);
	}
	free(s);
}

int32_t ql_stream_sync(struct ql_gpu_stream *s)
{
	int32_t status = ql_device_enter(s->device);

	if (!status)
		status = ql_graph_refuse(s, "waiting");
	if (!status)
		status = ql_device_status(s->device, cudaStreamSynchronize(s->stream), "waiting", s->op);
	if (!status)
		s->op = NULL;
	return status;
}

int32_t ql_stream_query(struct ql_gpu_stream *s)
{
	cudaError_t error;
	int32_t status = ql_device_enter(s->device);

	if (!status)
		status = ql_graph_refuse(s, "waiting");
	if (status)
		return status;
	error = cudaStreamQuery(s->stream);
	if (error == cudaErrorNotReady)
		return QL_GPU_PENDING;
	status = ql_device_status(s->device, error, "waiting", s->op);
	if (!status)
		s->op = NULL;
	return status;
}

int32_t ql_stream_fault(struct ql_gpu_stream *s, struct ql_gpu_fault *out)
{
	struct ql_gpu_record record;
	int32_t status = ql_stream_to_host(s, &record, s->record, sizeof(record));

	*out = (struct ql_gpu_fault){0};
	if (status || !record.taken)
		return status;
	*out = record.fault;
	return ql_stream_fill(s, s->record, 0, sizeof(record));
}

/* ---- events ---- */

int32_t ql_event_open(struct ql_gpu_device *d, struct ql_gpu_event **out)
{
	struct ql_gpu_event *e;
	int32_t status = ql_device_enter(d);

	*out = NULL;
	if (status)
		return status;
	e = calloc(1, sizeof(*e));
	if (!e) {
		ql_device_fail(d, "out of host memory");
		return QL_GPU_MEMORY;
	}
	e->device = d;
	status = ql_device_status(d, cudaEventCreateWithFlags(&e->event, cudaEventDefault), "opening an event", NULL);
	if (status)
		free(e);
	else
		*out = e;
	return status;
}

void ql_event_close(struct ql_gpu_event *e)
{
	if (!e)
		return;
	cudaEventDestroy(e->event);
	free(e);
}

int32_t ql_event_record(struct ql_gpu_stream *s, struct ql_gpu_event *e)
{
	int32_t status = ql_device_enter(s->device);

	if (!status)
		status = ql_graph_refuse(s, "recording an event");
	return status ? status
		      : ql_device_status(s->device, cudaEventRecord(e->event, s->stream), "recording an event", s->op);
}

int32_t ql_event_elapsed(struct ql_gpu_event *from, struct ql_gpu_event *to, double *seconds)
{
	float milliseconds = 0;
	cudaError_t error;
	int32_t status = ql_device_enter(to->device);

	if (status)
		return status;
	error = cudaEventSynchronize(to->event);
	if (!error)
		error = cudaEventElapsedTime(&milliseconds, from->event, to->event);
	*seconds = (double)milliseconds / 1e3;
	return ql_device_status(to->device, error, "measuring", NULL);
}
