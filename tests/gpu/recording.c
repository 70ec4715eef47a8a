/* SPDX-License-Identifier: MIT
 * Recordings of the core (tensor/recording.h) on a device: what a replay asks of the plug-in, counted; what ends a recording, and
 * that everything is as before then; memory.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/device.h"
#include "tensor/ledger.h"
#include "tensor/op.h"
#include "tensor/recording.h"
#include "tensor/remote.h"
#include "tests/tools/gpu_device.h"

static struct ql_ctx *ctx;
static const struct ql_device *device;

/* ---- a plug-in whose calls are counted ---- */

static struct gpu g;
static struct ql_gpu_vtable counting;
static struct {
	int runs, replays, copies, writes, reads;
} calls;
static int open_graphs;

static int32_t run(struct ql_gpu_stream *s, const struct ql_gpu_call *call, const struct ql_gpu_plan *plan)
{
	calls.runs++;
	return g.v->run(s, call, plan);
}

static int32_t graph_run(struct ql_gpu_stream *s, struct ql_gpu_graph *graph)
{
	calls.replays++;
	return g.v->graph_run(s, graph);
}

static int32_t graph_end(struct ql_gpu_stream *s, struct ql_gpu_graph **out)
{
	int32_t status = g.v->graph_end(s, out);

	open_graphs += status == QL_GPU_OK;
	return status;
}

static void graph_close(struct ql_gpu_graph *graph)
{
	open_graphs--;
	g.v->graph_close(graph);
}

static int32_t copy(struct ql_gpu_stream *s, void *at, const void *from, uint64_t bytes)
{
	calls.copies++;
	return g.v->copy(s, at, from, bytes);
}

static int32_t to_device(struct ql_gpu_stream *s, void *at, const void *host, uint64_t bytes)
{
	calls.writes++;
	return g.v->to_device(s, at, host, bytes);
}

static int32_t to_host(struct ql_gpu_stream *s, void *host, const void *at, uint64_t bytes)
{
	calls.reads++;
	return g.v->to_host(s, host, at, bytes);
}

static void start(void)
{
	counting = *g.v;
	counting.run = run;
	counting.graph_run = graph_run;
	counting.graph_end = graph_end;
	counting.graph_close = graph_close;
	counting.copy = copy;
	counting.to_device = to_device;
	counting.to_host = to_host;
	ctx = ql_ctx_new(1);
	CHECK(!ql_gpu_open(ctx, &counting, 0, "counted", &device), "%s", ctx->err);
}

/* ---- the run that is recorded ---- */

#define N 5

static struct ql_tensor *tensor_of(float first)
{
	struct ql_tensor *host, *t = NULL;

	CHECK(!ql_tensor_new(ctx, QL_float32, 1, (const int64_t[]){N}, &host), "%s", ctx->err);
	for (int i = 0; i < N; i++)
		((float *)host->storage->data)[i] = first + (float)i;
	CHECK(!ql_tensor_to(ctx, host, device, &t), "%s", ctx->err);
	ql_tensor_release(ctx, host);
	return t;
}

static const struct ql_op *op(const char *name)
{
	return ql_op_by_name(ql_ops, name);
}

/* (x + w) * x */
static enum ql_status ops(struct ql_tensor *x, struct ql_tensor *w, struct ql_tensor **out)
{
	struct ql_tensor *sum = NULL;
	enum ql_status status = ql_op_run(ctx, op("add"), x, w, &sum);

	*out = NULL;
	if (!status)
		status = ql_op_run(ctx, op("mul"), sum, x, out);
	ql_tensor_release(ctx, sum);
	return status;
}

static void expect(struct ql_tensor *y, float x, float w)
{
	struct ql_tensor *host = NULL;

	if (!CHECK(!ql_tensor_to(ctx, y, &ql_device_cpu, &host), "%s", ctx->err))
		return;
	for (int i = 0; i < N; i++) {
		float a = x + (float)i, want = (a + w + (float)i) * a, got = ((float *)host->storage->data)[i];

		CHECK(got == want, "element %d is %g, wanted %g", i, (double)got, (double)want);
	}
	ql_tensor_release(ctx, host);
}

static struct ql_recording *record(struct ql_tensor *x, struct ql_tensor *w)
{
	struct ql_recording *r = NULL;
	struct ql_tensor *y = NULL;

	if (!CHECK(!ql_recording_begin(ctx, 1, &x, false, &r), "%s", ctx->err))
		return r;
	CHECK(!ops(ql_recording_input(r, 0), w, &y), "%s", ctx->err);
	CHECK(!ql_recording_end(ctx, r, 1, &y), "%s", ctx->err);
	ql_tensor_release(ctx, y);
	return r;
}

static uint64_t count_of(const char *name)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i <= ql_ledger_rows(ctx); i++)
		if (!strcmp(ql_ledger_row(ctx, i)->op, name))
			n += ql_ledger_row(ctx, i)->count;
	return n;
}

/* ---- replays ---- */

static void replaying(void)
{
	struct ql_tensor *x = tensor_of(1), *w = tensor_of(10), *y[3] = {NULL};
	struct ql_recording *r = record(x, w);

	CASE("a recording is one launch");
	CHECK(count_of("mul") == 0, "what was recorded is counted before it runs");
	for (int i = 0; i < 3; i++) {
		struct ql_tensor *other = tensor_of((float)i);

		memset(&calls, 0, sizeof(calls));
		CHECK(ql_recording_holds(r) && !ql_recording_run(ctx, r, &other, &y[i]), "%s", ctx->err);
		CHECK(calls.replays == 1 && calls.runs == 0 && calls.copies == 2, "%d replays, %d runs, %d copies",
			calls.replays, calls.runs, calls.copies);
		CHECK(calls.writes == 0 && calls.reads == 0, "%d writes, %d reads", calls.writes, calls.reads);
		CHECK(count_of("mul") == (uint64_t)i + 1 && count_of("add") == (uint64_t)i + 1 &&
				count_of("graph") == (uint64_t)i + 1,
			"the ledger");
		ql_tensor_release(ctx, other);
	}
	for (int i = 0; i < 3; i++) {
		expect(y[i], (float)i, 10);
		ql_tensor_release(ctx, y[i]);
	}
	ql_recording_free(ctx, r);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
}

/* ---- training ---- */

static enum ql_status in_place(struct ql_tensor *t)
{
	struct ql_call call = {.op = op("relu"), .in = &t, .n_in = 1, .into = t};
	enum ql_status status = ql_op_apply(ctx, &call);

	ql_tensor_release(ctx, call.out[0]);
	return status;
}

/* w = relu_(w) is recorded, then y = (x + w) * x. */
static struct ql_recording *record_step(struct ql_tensor *x, struct ql_tensor *w, bool read, const char *why)
{
	struct ql_recording *r = NULL;
	struct ql_tensor *y = NULL;

	CHECK(!ql_recording_begin(ctx, 1, &x, true, &r), "%s", ctx->err);
	if (read)
		CHECK(ql_tensor_at_f64(w, 0) == -2, "a number that the host has");
	CHECK(!in_place(w) && !ops(ql_recording_input(r, 0), w, &y), "%s", ctx->err);
	CHECK(why ? ql_recording_end(ctx, r, 1, &y) && strstr(ctx->err, why) : !ql_recording_end(ctx, r, 1, &y), "%s",
		ctx->err);
	ql_tensor_release(ctx, y);
	return r;
}

static void training(void)
{
	struct ql_tensor *x = tensor_of(1), *w = tensor_of(-2), *y[2] = {NULL}, *host = NULL;
	struct ql_recording *r = record_step(x, w, false, NULL);
	uint64_t version = w->storage->version;

	CASE("a step of training");
	for (int i = 0; i < 2; i++) {
		memset(&calls, 0, sizeof(calls));
		CHECK(ql_recording_holds(r) && !ql_recording_run(ctx, r, &x, &y[i]), "%s", ctx->err);
		CHECK(calls.replays == 1 && calls.runs == 0 && calls.copies == 1, "%d replays, %d runs, %d copies",
			calls.replays, calls.runs, calls.copies);
		CHECK(w->storage->version == version + (uint64_t)i + 1, "the host does not know of the write");
	}
	CHECK(y[0] == y[1], "the results are the same tensor");
	CHECK(!ql_tensor_to(ctx, w, &ql_device_cpu, &host) && ql_tensor_at_f64(host, 0) == 0, "w is written");
	ql_tensor_release(ctx, host);
	CHECK(!ql_tensor_to(ctx, y[0], &ql_device_cpu, &host) && ql_tensor_at_f64(host, 0) == 1, "from w");
	ql_tensor_release(ctx, host);
	ql_recording_free(ctx, r);
	ql_tensor_release(ctx, y[0]);
	ql_tensor_release(ctx, y[1]);
	ql_tensor_release(ctx, w);
	w = tensor_of(-2);
	ql_recording_free(ctx, record_step(x, w, true, "host has read"));
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
}

/* What the host has gone by ends it, other weights may change. */
static void weights(void)
{
	struct ql_tensor *x = tensor_of(1), *w = tensor_of(10), *y = NULL;

	CASE("weights of a step");
	for (int known = 0; known < 2; known++) {
		struct ql_recording *r = NULL;

		CHECK(!ql_recording_begin(ctx, 1, &x, true, &r), "%s", ctx->err);
		CHECK(!ops(ql_recording_input(r, 0), w, &y), "%s", ctx->err);
		CHECK(!known || ql_tensor_at_f64(w, 1) == 11, "a number that the host has");
		CHECK(!ql_recording_end(ctx, r, 1, &y), "%s", ctx->err);
		ql_tensor_release(ctx, y);
		CHECK(ql_recording_holds(r), "it does not hold");
		w->storage->version++;
		CHECK(ql_recording_holds(r) == !known, "known %d", known);
		w->storage->version--;
		ql_recording_free(ctx, r);
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
}

/* ---- what ends one ---- */

static void ending(void)
{
	struct ql_tensor *x = tensor_of(1), *w = tensor_of(10), *y = NULL, *longer = NULL;
	struct ql_recording *r = record(x, w);
	size_t bytes;

	CASE("what ends a recording");
	CHECK(ql_recordings_count(ctx, &bytes) == 1 && bytes > 0, "%zu bytes", bytes);
	w->storage->version++;
	CHECK(!ql_recording_holds(r), "a constant was written to");
	w->storage->version--;
	CHECK(ql_recording_holds(r), "none was");
	CHECK(!ql_tensor_new_on(ctx, device, QL_float32, 1, (const int64_t[]){N + 1}, &longer), "%s", ctx->err);
	CHECK(ql_recording_run(ctx, r, &longer, &y) && !y, "another shape");
	CHECK(ql_recordings_drop(ctx, device) && !ql_recording_holds(r), "dropped");
	CHECK(!ql_recordings_drop(ctx, device) && ql_recordings_count(ctx, &bytes) == 0 && bytes == 0, "twice");
	ql_recording_free(ctx, r);
	r = record(x, w);
	CHECK(!ql_gpu_force(device) && !ql_recording_holds(r), "other kernels");
	ql_recording_free(ctx, r);
	ql_tensor_release(ctx, longer);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
}

/* ---- what makes one useless ---- */

enum useless { READ, SYNC, WRITE, DRAW, HOST, MIRRORED, INPUT, CONSTANT, UNENDED, KINDS };

static enum ql_status draw(void)
{
	int64_t size = 3;
	struct ql_value attr[16] = {{.set = false}};
	struct ql_call call = {.op = op("randn"), .attr = attr};
	enum ql_status status;

	for (int i = 0; call.op->doc.attrs[i].type != QL_ATTR_END; i++)
		if (call.op->doc.attrs[i].type == QL_ATTR_INTS)
			attr[i] = (struct ql_value){.set = true, .ints = {1, &size}};
	status = ql_op_apply(ctx, &call);
	if (!status)
		ql_call_drop(ctx, &call);
	return status;
}

/* An op of several results that the device has no kernel for. */
static enum ql_status sort(struct ql_tensor *x)
{
	struct ql_call call = {.op = op("sort"), .in = &x, .n_in = 1};
	enum ql_status status = ql_op_apply(ctx, &call);

	if (!status)
		ql_call_drop(ctx, &call);
	return status;
}

/* Does what cannot be recorded; gives the result, which may be NULL. */
static void spoil(enum useless what, struct ql_tensor *x, struct ql_tensor *w, struct ql_tensor **y)
{
	struct ql_tensor *t = NULL;

	switch (what) {
	case READ: CHECK(ql_tensor_to(ctx, *y, &ql_device_cpu, &t) && strstr(ctx->err, "not recorded"), "read"); break;
	case SYNC: CHECK(device->sync(device) && strstr(ctx->err, "not recorded"), "sync"); break;
	case WRITE: CHECK(!in_place(w), "%s", ctx->err); break;
	case DRAW: CHECK(!draw(), "%s", ctx->err); break;
	case HOST: CHECK(sort(*y), "sort"); break;
	case MIRRORED: CHECK(!sort(w), "%s", ctx->err); break;
	case INPUT:
	case CONSTANT:
		ql_tensor_release(ctx, *y);
		*y = ql_tensor_keep(what == INPUT ? x : w);
		break;
	default: break;
	}
	ql_tensor_release(ctx, t);
}

static void useless(void)
{
	static const char *const words[KINDS] = {
		"value", "device", "writes", "random", "value", "host", "input", "constant", ""};

	for (enum useless what = 0; what < KINDS; what++) {
		struct ql_tensor *x = tensor_of(1), *w = tensor_of(10), *y = NULL;
		struct ql_recording *r = NULL;
		uint64_t position = ctx->rng_position, unrecorded = count_of("graph"), muls = count_of("mul");

		CASE("a useless recording: %d", (int)what);
		CHECK(!ql_recording_begin(ctx, 1, &x, false, &r), "%s", ctx->err);
		CHECK(!ops(ql_recording_input(r, 0), w, &y), "%s", ctx->err);
		spoil(what, ql_recording_input(r, 0), w, &y);
		if (what != UNENDED) {
			CHECK(ql_recording_end(ctx, r, 1, &y) && strstr(ctx->err, words[what]), "%s", ctx->err);
			CHECK(count_of("graph") == unrecorded + 1, "the ledger has no reason");
		}
		ql_tensor_release(ctx, y);
		ql_recording_free(ctx, r);
		CHECK(!ctx->recording && open_graphs == 0 && ctx->rng_position == position && !ctx->unread[0] &&
				count_of("mul") == muls,
			"something is left: %d graphs", open_graphs);
		CHECK(!ops(x, w, &y), "%s", ctx->err);
		expect(y, 1, 10);
		ql_tensor_release(ctx, y);
		ql_tensor_release(ctx, x);
		ql_tensor_release(ctx, w);
	}
}

/* Inputs for which none begins. */
static void refusals(void)
{
	struct ql_tensor *x = tensor_of(1), *host = NULL, *two[2];
	struct ql_recording *r = NULL, *inner = NULL;

	CASE("inputs that are not recorded");
	CHECK(!ql_tensor_to(ctx, x, &ql_device_cpu, &host), "%s", ctx->err);
	two[0] = x;
	two[1] = host;
	CHECK(ql_recording_refusal(ctx, 0, NULL) && ql_recording_refusal(ctx, 1, &host) &&
			ql_recording_refusal(ctx, 2, two) && !ql_recording_refusal(ctx, 1, two),
		"the device");
	CHECK(ql_recording_begin(ctx, 1, &host, false, &r) && !r, "of the host");
	x->stride[0] = 0;
	CHECK(ql_recording_refusal(ctx, 1, &x), "strides");
	x->stride[0] = 1;
	ctx->host_fallback = QL_FALLBACK_WARN;
	CHECK(ql_recording_refusal(ctx, 1, &x), "warnings");
	ctx->host_fallback = QL_FALLBACK_SILENT;
	CHECK(!ql_recording_begin(ctx, 1, &x, false, &r), "%s", ctx->err);
	CHECK(ql_recording_begin(ctx, 1, &x, false, &inner) && !inner, "one within another");
	ql_recording_free(ctx, r);
	ql_tensor_release(ctx, host);
	ql_tensor_release(ctx, x);
}

/* ---- memory ---- */

static uint64_t used(void)
{
	struct ql_gpu_memory m = {0};
	struct ql_gpu_traffic traffic;

	CHECK(!ql_gpu_memory(device, false, &m, &traffic), "%s", ctx->err);
	return m.now;
}

/* Where there is no memory for a tensor, recordings go; the one that runs stays. */
static void memory(void)
{
	struct ql_tensor *x = tensor_of(1), *w = tensor_of(10), *y = NULL, *big = NULL;
	size_t held = ctx->memory.held;
	uint64_t before = used();
	struct ql_recording *r = record(x, w);
	char limit[32];

	CASE("out of memory");
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)used());
	setenv("QUOLL_EMU_MEMORY", limit, 1);
	CHECK(ql_recording_run(ctx, r, &x, &y) == QL_ERR_MEMORY && !y && ql_recording_holds(r), "the one that runs");
	CHECK(!ql_tensor_new_on(ctx, device, QL_float32, 1, (const int64_t[]){N}, &big), "%s", ctx->err);
	CHECK(!ql_recording_holds(r), "the recording is still there");
	unsetenv("QUOLL_EMU_MEMORY");
	ql_recording_free(ctx, r);
	ql_tensor_release(ctx, big);
	CHECK(used() == before && ctx->memory.held == held, "%d bytes are left, held %d", (int)(used() - before),
		(int)(ctx->memory.held - held));
	r = record(x, w);
	CHECK(!ql_recording_run(ctx, r, &x, &y), "%s", ctx->err);
	expect(y, 1, 10);
	ql_tensor_release(ctx, y);
	ql_recording_free(ctx, r);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
}

int main(void)
{
	struct ql_recording *kept;
	struct ql_tensor *x, *w;

	if (!gpu_load(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	start();
	if (device) {
		replaying();
		training();
		weights();
		ending();
		useless();
		refusals();
		memory();
		x = tensor_of(1);
		w = tensor_of(2);
		kept = record(x, w);
		ql_tensor_release(ctx, x);
		ql_tensor_release(ctx, w);
		CHECK(open_graphs == 1, "%d graphs", open_graphs);
		ql_recording_free(ctx, kept);
		CHECK(open_graphs == 0, "%d graphs", open_graphs);
	}
	ql_ctx_free(ctx);
	return check_end();
}
