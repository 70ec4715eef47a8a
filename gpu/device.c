/* SPDX-License-Identifier: MIT
 * A plug-in's device: memory, waiting, kernels.
 */
#include "gpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/call.h"
#include "gpu/faults.h"
#include "tensor/kernels/kernels.h"
#include "tensor/recording.h"
#include "tensor/scratch.h"

#define NAME 40
#define REASONS 64 /* different reasons of refusals that are kept */

struct opened {
	struct ql_device device;
	const struct ql_gpu_vtable *v;
	struct ql_gpu_device *gpu;
	struct ql_gpu_stream *stream;
	char name[NAME], usage[NAME + 16];
	struct ql_gpu_plan plan; /* of the last call of find */
	char *reason[REASONS];
	int reasons;
	uint64_t serial;
	struct ql_gpu_faults faults;
	bool sync;                     /* QUOLL_GPU_SYNC: wait after each op, which then reports its own faults */
	struct ql_gpu_traffic traffic; /* since the last reset */
	struct recorded *recording;    /* that is being made, or NULL */
	uint64_t unrecorded;           /* bytes in use when it began */
};

static const struct opened *opened(const struct ql_device *d)
{
	return d->state;
}

/* The status of a function of the plug-in, with its words as the error. */
static enum ql_status checked(struct ql_ctx *ctx, const struct opened *o, const char *what, int32_t status)
{
	char text[320] = "";

	if (status == QL_GPU_OK)
		return QL_OK;
	o->v->last_error(o->gpu, text, sizeof(text));
	return ql_fail(ctx, status == QL_GPU_MEMORY ? QL_ERR_MEMORY : QL_ERR_UNSUPPORTED, "%s: %s: %s", what, o->name,
		text[0] ? text : "failed without a reason");
}

#define POLLS 100 /* without a pause */

/* Waits for all work. Polls, so that Ctrl-C ends the wait; the work goes on. What is done within some 0.1 ms is not slept for: a
 * pause takes about as long. */
static enum ql_status wait_idle(const struct ql_device *d)
{
	const struct opened *o = opened(d);
	const struct timespec pause = {.tv_nsec = 20000};
	int32_t status;
	int polls = 0;

	while ((status = o->v->stream_query(o->stream)) == QL_GPU_PENDING) {
		if (ql_stopped(d->ctx))
			return ql_fail(d->ctx, QL_ERR_INTERRUPTED, "interrupted");
		if (polls++ >= POLLS)
			nanosleep(&pause, NULL);
	}
	return checked(d->ctx, o, "waiting", status);
}

/* ---- memory ---- */

/* Where memory runs out, recordings go first: they can be made again. */
static int32_t alloc(const struct ql_device *d, uint64_t bytes, void **at)
{
	const struct opened *o = opened(d);
	int32_t status = o->v->alloc(o->stream, bytes ? bytes : 1, at);

	if (status != QL_GPU_MEMORY || d->ctx->recording || !ql_recordings_drop(d->ctx, d))
		return status;
	return o->v->alloc(o->stream, bytes ? bytes : 1, at);
}

static void fail_memory(struct ql_ctx *ctx, const struct opened *o, size_t bytes)
{
	char text[320] = "";

	o->v->last_error(o->gpu, text, sizeof(text));
	ql_fail(ctx, QL_ERR_MEMORY, "out of memory: wanted %zu bytes on %s, %zu in use (%s)", bytes, o->name,
		ctx->memory.devices.now, text);
}

static void *device_alloc(struct ql_ctx *ctx, const struct ql_device *d, size_t bytes)
{
	struct ql_level *level = &ctx->memory.devices;
	void *at = NULL;
	int32_t status = alloc(d, bytes, &at);

	if (status == QL_GPU_MEMORY)
		fail_memory(ctx, opened(d), bytes);
	else
		checked(ctx, opened(d), "alloc", status);
	if (status)
		return NULL;
	ctx->memory.held += bytes;
	level->now += bytes;
	if (level->peak < level->now)
		level->peak = level->now;
	return at;
}

static void device_free(struct ql_ctx *ctx, const struct ql_device *d, void *block, size_t bytes)
{
	const struct opened *o = opened(d);

	o->v->free(o->stream, block);
	ctx->memory.held -= bytes;
	ctx->memory.devices.now -= bytes;
}

/* After a wait: reports what kernels have noted. */
static enum ql_status check_faults(const struct ql_device *d)
{
	struct opened *o = d->state;
	struct ql_gpu_fault fault = {0};
	enum ql_status status;

	if (!o->faults.any)
		return QL_OK;
	o->faults.any = false;
	status = checked(d->ctx, o, "read", o->v->fault(o->stream, &fault));
	if (status || fault.kind == QL_GPU_FAULT_NONE)
		return status;
	return ql_gpu_faults_fail(d->ctx, &o->faults, &fault);
}

static enum ql_status device_read(const struct ql_device *d, void *host, const void *at, size_t bytes)
{
	struct opened *o = d->state;
	enum ql_status status = QL_OK;

	if (o->faults.recording)
		return ql_recording_refuse(d->ctx, "it waits for a value");
	if (bytes)
		status = wait_idle(d);
	o->traffic.read += bytes;
	if (!status && bytes)
		status = checked(d->ctx, o, "read", o->v->to_host(o->stream, host, at, bytes));
	return status ? status : check_faults(d);
}

static enum ql_status device_write(const struct ql_device *d, void *at, const void *host, size_t bytes)
{
	struct opened *o = d->state;

	o->traffic.written += bytes;
	return bytes ? checked(d->ctx, o, "write", o->v->to_device(o->stream, at, host, bytes)) : QL_OK;
}

static enum ql_status device_copy(const struct ql_device *d, void *to, const void *from, size_t bytes)
{
	const struct opened *o = opened(d);

	return bytes ? checked(d->ctx, o, "copy", o->v->copy(o->stream, to, from, bytes)) : QL_OK;
}

static enum ql_status device_fill(const struct ql_device *d, void *at, uint8_t value, size_t bytes)
{
	const struct opened *o = opened(d);

	return bytes ? checked(d->ctx, o, "fill", o->v->fill(o->stream, at, value, bytes)) : QL_OK;
}

static enum ql_status device_sync(const struct ql_device *d)
{
	enum ql_status status;

	if (opened(d)->faults.recording)
		return ql_recording_refuse(d->ctx, "it waits for the device");
	status = wait_idle(d);
	return status ? status : check_faults(d);
}

enum ql_status ql_gpu_memory(
	const struct ql_device *d, bool reset, struct ql_gpu_memory *out, struct ql_gpu_traffic *traffic)
{
	struct opened *o = d->state;
	enum ql_status status = reset ? checked(d->ctx, o, "memory", o->v->memory_reset(o->gpu)) : QL_OK;

	if (reset)
		o->traffic = (struct ql_gpu_traffic){.read = 0};
	*traffic = o->traffic;
	return status ? status : checked(d->ctx, o, "memory", o->v->memory(o->gpu, out));
}

/* ---- kernels ---- */

static bool device_has(const struct ql_device *d, const char *op)
{
	const struct opened *o = opened(d);

	return o->v->op_find && o->v->op_find(op) >= 0;
}

/* The text, kept as long as the device: the ledger refers to it. */
static const char *kept_reason(struct opened *o, const char *text)
{
	for (int i = 0; i < o->reasons; i++)
		if (!strcmp(o->reason[i], text))
			return o->reason[i];
	if (o->reasons < REASONS && (o->reason[o->reasons] = ql_strdup(o->device.ctx, text)))
		return o->reason[o->reasons++];
	return "the device has no kernel for these operands";
}

static const void *device_find(const struct ql_device *d, struct ql_call *call)
{
	struct opened *o = d->state;
	struct ql_scratch_mark mark = ql_scratch_mark(d->ctx);
	struct ql_gpu_packed *p = ql_scratch_take(d->ctx, sizeof(*p));
	const char *why = p ? ql_gpu_pack(d->ctx, call, p) : "no memory for the description of the call";
	int32_t op = o->v->op_find(call->op->doc.name);
	bool found = false;

	if (!why) {
		o->plan = (struct ql_gpu_plan){.size = sizeof(o->plan)};
		found = op >= 0 && o->v->plan(o->gpu, op, &p->call, &o->plan) == QL_GPU_OK;
		why = o->plan.why;
	}
	ql_scratch_release(d->ctx, mark);
	if (!found) {
		call->reason = kept_reason(o, why);
		return NULL;
	}
	call->kernel = o->plan.name;
	call->path = o->plan.path && *o->plan.path ? o->plan.path : ql_dtype_name(call->result[0].dtype);
	return &o->plan;
}

static enum ql_status device_run(const struct ql_device *d, struct ql_call *call, const void *plan)
{
	struct opened *o = d->state;
	const struct ql_gpu_plan *chosen = plan;
	struct ql_scratch_mark mark = ql_scratch_mark(d->ctx);
	struct ql_gpu_packed *p = ql_scratch_take(d->ctx, sizeof(*p));
	const char *why = p ? ql_gpu_pack(d->ctx, call, p) : "no memory for the description of the call";
	enum ql_status status = why ? ql_fail(d->ctx, QL_ERR_MEMORY, "%s: %s", call->op->doc.name, why) : QL_OK;

	if (!status && chosen->workspace)
		status = checked(d->ctx, o, call->op->doc.name, alloc(d, chosen->workspace, &p->call.workspace));
	if (!status) {
		p->call.serial = ++o->serial;
		status = checked(d->ctx, o, call->op->doc.name, o->v->run(o->stream, &p->call, chosen));
		if (chosen->faults)
			ql_gpu_faults_add(d->ctx, &o->faults, call, p->call.serial);
	}
	if (!status && o->sync)
		status = check_faults(d);
	if (p && p->call.workspace)
		o->v->free(o->stream, p->call.workspace);
	ql_scratch_release(d->ctx, mark);
	return status;
}

enum ql_status ql_gpu_force(const struct ql_device *d)
{
	const struct opened *o = opened(d);
	const char *families = ql_kernels_families();

	ql_recordings_drop(d->ctx, d); /* made with other kernels */
	return o->v->force ? checked(d->ctx, o, "force", o->v->force(o->gpu, *families ? families : NULL)) : QL_OK;
}

/* ---- recordings ---- */

struct recorded {
	struct ql_gpu_graph *graph;
	struct ql_gpu_suspects suspects;
	size_t bytes;
};

static uint64_t used_now(const struct opened *o)
{
	struct ql_gpu_memory m = {.now = 0};

	return o->v->memory(o->gpu, &m) == QL_GPU_OK ? m.now : 0;
}

static void unlink_suspects(struct ql_gpu_faults *f, const struct ql_gpu_suspects *s)
{
	struct ql_gpu_suspects **link = &f->recorded;

	while (*link && *link != s)
		link = &(*link)->next;
	if (*link)
		*link = s->next;
}

static void record_free(const struct ql_device *d, void *recorded)
{
	struct opened *o = d->state;
	struct recorded *r = recorded;

	if (r->graph)
		o->v->graph_close(r->graph);
	unlink_suspects(&o->faults, &r->suspects);
	d->ctx->memory.held -= r->bytes;
	ql_free(d->ctx, r->suspects.call);
	ql_free(d->ctx, r);
}

static enum ql_status record_begin(const struct ql_device *d)
{
	struct opened *o = d->state;
	struct recorded *r = ql_alloc_zeroed(d->ctx, sizeof(*r));
	enum ql_status status;

	if (!r)
		return QL_ERR_MEMORY;
	o->unrecorded = used_now(o);
	status = checked(d->ctx, o, "record", o->v->graph_begin(o->stream));
	if (status) {
		ql_free(d->ctx, r);
		return status;
	}
	o->recording = r;
	r->suspects.next = o->faults.recorded;
	o->faults.recorded = o->faults.recording = &r->suspects;
	return QL_OK;
}

static enum ql_status record_end(const struct ql_device *d, void **recorded, size_t *bytes)
{
	struct opened *o = d->state;
	struct recorded *r = o->recording;
	enum ql_status status = checked(d->ctx, o, "record", o->v->graph_end(o->stream, &r->graph));
	uint64_t now = used_now(o);

	o->recording = NULL;
	o->faults.recording = NULL;
	if (status) {
		record_free(d, r);
		return status;
	}
	*bytes = r->bytes = now > o->unrecorded ? (size_t)(now - o->unrecorded) : 0;
	d->ctx->memory.held += r->bytes; /* results that the caller has count twice, until they are freed */
	*recorded = r;
	return QL_OK;
}

static enum ql_status record_run(const struct ql_device *d, void *recorded)
{
	struct opened *o = d->state;
	const struct recorded *r = recorded;

	o->faults.any |= r->suspects.n > 0;
	return checked(d->ctx, o, "replay", o->v->graph_run(o->stream, r->graph));
}

/* ---- opening ---- */

static void device_close(struct ql_device *d)
{
	struct opened *o = d->state;

	ql_recordings_drop(d->ctx, d);
	if (o->stream)
		o->v->stream_close(o->stream);
	if (o->gpu)
		o->v->close(o->gpu);
	for (int i = 0; i < o->reasons; i++)
		ql_free(d->ctx, o->reason[i]);
	ql_free(d->ctx, o);
}

bool ql_gpu_is(const struct ql_device *d)
{
	return d->close == device_close;
}

static const struct ql_device functions = {
	.remote = true,
	.alloc = device_alloc,
	.free = device_free,
	.read = device_read,
	.write = device_write,
	.copy = device_copy,
	.fill = device_fill,
	.sync = device_sync,
	.has = device_has,
	.find = device_find,
	.run = device_run,
	.record_begin = record_begin,
	.record_end = record_end,
	.record_run = record_run,
	.record_free = record_free,
	.close = device_close,
};

enum ql_status ql_gpu_open(struct ql_ctx *ctx, const struct ql_gpu_vtable *v, int32_t index, const char *name,
	const struct ql_device **out)
{
	struct opened *o = ql_alloc_zeroed(ctx, sizeof(*o));
	const char *sync = getenv("QUOLL_GPU_SYNC");
	enum ql_status status;

	if (!o)
		return QL_ERR_MEMORY;
	o->v = v;
	snprintf(o->name, sizeof(o->name), "%s", name);
	snprintf(o->usage, sizeof(o->usage), "x:to '%s'", o->name);
	o->sync = sync && *sync && strcmp(sync, "0") != 0;
	o->device = functions;
	if (o->sync || !v->graph_begin) /* errors are to name their op */
		o->device.record_begin = NULL;
	o->device.ctx = ctx;
	o->device.state = o;
	o->device.doc = (struct ql_doc){.name = o->name, .usage = o->usage, .text = "A device of a plug-in."};
	status = checked(ctx, o, "open", v->open(index, &o->gpu));
	if (!status)
		status = checked(ctx, o, "open", v->stream_open(o->gpu, &o->stream));
	if (!status)
		status = ql_gpu_force(&o->device);
	if (status) {
		device_close(&o->device);
		return status;
	}
	o->device.next = ctx->devices;
	ctx->devices = &o->device;
	*out = &o->device;
	return QL_OK;
}
