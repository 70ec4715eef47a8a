/* SPDX-License-Identifier: MIT
 * What the files of the plug-in's host code share. C11 over the CUDA runtime or its emulation.
 */
#ifndef QUOLL_GPU_CUDA_PLUGIN_H
#define QUOLL_GPU_CUDA_PLUGIN_H

#include "gpu/kernels/kernel.h"

#define QL_STAGES 2
#define QL_STAGE_BYTES ((uint64_t)8 << 20)
#define QL_ERROR_TEXT 320

struct ql_gpu_device {
	int32_t index, cc, processors;
	bool lost;
	bool sync;          /* QUOLL_GPU_SYNC: wait after each op */
	char families[128]; /* of force; "": all */
	char error[QL_ERROR_TEXT];
	cudaMemPool_t pool;
};

/* A pinned buffer; `done` is after the last copy that uses it. */
struct ql_gpu_stage {
	void *at;
	cudaEvent_t done;
	bool busy;
};

struct ql_gpu_stream {
	struct ql_gpu_device *device;
	cudaStream_t stream;
	struct ql_gpu_stage stage[QL_STAGES];
	int next;
	struct ql_gpu_record *record;   /* on the device */
	const char *op;                 /* the last one that was run since the stream was idle; NULL: none */
	char name[48];                  /* its name */
	struct ql_gpu_graph *graphs;    /* that are not closed */
	struct ql_gpu_graph *recording; /* the one of them that is being recorded, or NULL */
};

struct ql_gpu_event {
	struct ql_gpu_device *device;
	cudaEvent_t event;
};

/* error.c: the status of a call of the runtime, whose failure is kept in words. `op` may be NULL. */
int32_t ql_device_status(struct ql_gpu_device *d, cudaError_t error, const char *what, const char *op);
/* Keeps a message; returns QL_GPU_FAILED. */
int32_t ql_device_fail(struct ql_gpu_device *d, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Makes d the device of this thread; QL_GPU_LOST when it is lost. */
int32_t ql_device_enter(struct ql_gpu_device *d);
/* Copies the last message, of open if d is NULL. */
void ql_device_last_error(struct ql_gpu_device *d, char *text, size_t size);

/* device.c */
int32_t ql_device_probe(struct ql_gpu_info *out, int32_t room, char *why);
int32_t ql_device_open(int32_t index, struct ql_gpu_device **out);
void ql_device_close(struct ql_gpu_device *d);
int32_t ql_device_memory(struct ql_gpu_device *d, struct ql_gpu_memory *out);
int32_t ql_device_memory_reset(struct ql_gpu_device *d);

/* memory.c */
int32_t ql_stream_alloc(struct ql_gpu_stream *s, uint64_t bytes, void **at);
int32_t ql_stream_free(struct ql_gpu_stream *s, void *at);
int32_t ql_stream_to_device(struct ql_gpu_stream *s, void *at, const void *host, uint64_t bytes);
int32_t ql_stream_to_host(struct ql_gpu_stream *s, void *host, const void *at, uint64_t bytes);
int32_t ql_stream_copy(struct ql_gpu_stream *s, void *at, const void *from, uint64_t bytes);
int32_t ql_stream_fill(struct ql_gpu_stream *s, void *at, uint8_t value, uint64_t bytes);
void ql_stages_close(struct ql_gpu_stream *s);

/* stream.c */
int32_t ql_stream_open(struct ql_gpu_device *d, struct ql_gpu_stream **out);
void ql_stream_close(struct ql_gpu_stream *s);
int32_t ql_stream_sync(struct ql_gpu_stream *s);
int32_t ql_stream_query(struct ql_gpu_stream *s);
int32_t ql_stream_fault(struct ql_gpu_stream *s, struct ql_gpu_fault *out);
int32_t ql_event_open(struct ql_gpu_device *d, struct ql_gpu_event **out);
void ql_event_close(struct ql_gpu_event *e);
int32_t ql_event_record(struct ql_gpu_stream *s, struct ql_gpu_event *e);
int32_t ql_event_elapsed(struct ql_gpu_event *from, struct ql_gpu_event *to, double *seconds);

/* graph.c */
int32_t ql_graph_begin(struct ql_gpu_stream *s);
int32_t ql_graph_end(struct ql_gpu_stream *s, struct ql_gpu_graph **out);
int32_t ql_graph_run(struct ql_gpu_stream *s, struct ql_gpu_graph *g);
void ql_graph_close(struct ql_gpu_graph *g);
/* Memory, and copies from the host, while s is recording. */
int32_t ql_graph_alloc(struct ql_gpu_stream *s, uint64_t bytes, void **at);
int32_t ql_graph_write(struct ql_gpu_stream *s, void *at, const void *host, uint64_t bytes);
/* True: a graph keeps the memory, which is not to be freed now. */
bool ql_graph_free(struct ql_gpu_stream *s, void *at, int32_t *status);
/* QL_GPU_FAILED while s is recording: `what` is nothing that is queued. */
int32_t ql_graph_refuse(struct ql_gpu_stream *s, const char *what);

/* call.c */
int32_t ql_call_op_find(const char *name);
int32_t ql_call_plan(struct ql_gpu_device *d, int32_t op, const struct ql_gpu_call *call, struct ql_gpu_plan *plan);
int32_t ql_call_run(struct ql_gpu_stream *s, const struct ql_gpu_call *call, const struct ql_gpu_plan *plan);
int32_t ql_call_kernels(int32_t i, struct ql_gpu_kernel_info *out);
int32_t ql_call_force(struct ql_gpu_device *d, const char *families);

/* extent.c: the number, from 1, of an operand (then results) that is not within its allocation; 0: all are. */
int32_t ql_extent_outside(const struct ql_gpu_call *call);

#endif
