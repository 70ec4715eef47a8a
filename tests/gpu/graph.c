/* SPDX-License-Identifier: MIT
 * Recorded sequences of calls: they run when they are asked to, as often as they are, on what memory then holds; which memory
 * stays; what is refused while recording; every call of the runtime failing in turn.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/gpu_device.h"

static struct gpu g;

static uint64_t used(void)
{
	struct ql_gpu_memory m = {0};

	CHECK(!g.v->memory(g.d, &m), "memory");
	return m.now;
}

/* Queues a call with a workspace of its own, without waiting. */
static int32_t queue(struct ql_gpu_call call)
{
	struct ql_gpu_plan plan = {.size = sizeof(plan)};
	int32_t status = g.v->plan(g.d, g.v->op_find(call.op), &call, &plan);

	if (!status && plan.workspace)
		status = g.v->alloc(g.s, plan.workspace, &call.workspace);
	if (!status)
		status = g.v->run(g.s, &call, &plan);
	if (call.workspace)
		g.v->free(g.s, call.workspace);
	return status;
}

static bool ok(int32_t status)
{
	return status == QL_GPU_OK || gpu_fail(&g, "status");
}

/* ---- a layer, by the kernels whose launches are many and short ---- */

#define BATCH 3
#define STEPS 5
#define WIDTH 8

struct layer {
	struct ql_gpu_tensor in[7], out[3];
};

static struct ql_gpu_tensor random_tensor(int rank, int64_t a, int64_t b, int64_t c)
{
	float x[4 * WIDTH * WIDTH];

	for (int i = 0; i < 4 * WIDTH * WIDTH; i++)
		x[i] = gpu_draw_float() / 8;
	return gpu_tensor(&g, "float32", rank, (int64_t[]){a, b, c}, x, 0);
}

static void layer_open(struct layer *l)
{
	l->in[0] = random_tensor(3, BATCH, STEPS, WIDTH);
	l->in[1] = random_tensor(2, BATCH, WIDTH, 0);
	l->in[2] = random_tensor(2, BATCH, WIDTH, 0);
	l->in[3] = random_tensor(2, 4 * WIDTH, WIDTH, 0);
	l->in[4] = random_tensor(2, 4 * WIDTH, WIDTH, 0);
	l->in[5] = random_tensor(1, 4 * WIDTH, 0, 0);
	l->in[6] = random_tensor(1, 4 * WIDTH, 0, 0);
	l->out[0] = random_tensor(3, BATCH, STEPS, WIDTH);
	l->out[1] = random_tensor(2, BATCH, WIDTH, 0);
	l->out[2] = random_tensor(2, BATCH, WIDTH, 0);
}

static void layer_close(struct layer *l)
{
	for (int i = 0; i < 7; i++)
		gpu_free(&g, &l->in[i]);
	for (int i = 0; i < 3; i++)
		gpu_free(&g, &l->out[i]);
}

#define RESULTS (BATCH * STEPS * WIDTH)

static void results(struct layer *l, float y[RESULTS])
{
	gpu_get(&g, &l->out[0], y);
}

static void expect_results(struct layer *l, const float want[RESULTS], const char *what)
{
	float got[RESULTS];

	results(l, got);
	for (int i = 0; i < RESULTS; i++)
		if (!CHECK(gpu_same_f32(got[i], want[i]), "%s: element %d is %g, wanted %g", what, i, (double)got[i],
			    (double)want[i]))
			return;
}

static void replaying(void)
{
	struct layer l;
	struct ql_gpu_graph *graph = NULL;
	struct ql_gpu_call call;
	float want[2][RESULTS], x[RESULTS], none[RESULTS] = {0};

	CASE("a recorded layer");
	layer_open(&l);
	call = gpu_call("lstm", l.in, 7, l.out, 3);
	gpu_get(&g, &l.in[0], x);
	for (int i = 1; i >= 0; i--) {
		for (int j = 0; j < RESULTS; j++)
			x[j] = -x[j];
		g.v->to_device(g.s, l.in[0].at, x, sizeof(x));
		ok(queue(call));
		results(&l, want[i]);
	}
	g.v->fill(g.s, l.out[0].at, 0, sizeof(x));
	ok(g.v->graph_begin(g.s));
	ok(queue(call));
	ok(queue(call)); /* in the same memory */
	if (!ok(g.v->graph_end(g.s, &graph)))
		return;
	expect_results(&l, none, "what was recorded has run");
	for (int i = 0; i < 4; i++) {
		ok(g.v->graph_run(g.s, graph));
		expect_results(&l, want[i % 2], "a replay");
		for (int j = 0; j < RESULTS; j++)
			x[j] = -x[j];
		g.v->to_device(g.s, l.in[0].at, x, sizeof(x));
	}
	ok(g.v->graph_run(g.s, graph));
	g.v->graph_close(graph); /* while it is queued */
	expect_results(&l, want[0], "the last replay");
	layer_close(&l);
}

/* ---- memory ---- */

static void memory(void)
{
	uint64_t before = used(), bytes = 1000;
	struct ql_gpu_graph *graph = NULL;
	void *old = NULL, *first = NULL, *again = NULL, *small = NULL, *kept = NULL;
	unsigned char byte = 0;

	CASE("memory of a recording");
	ok(g.v->alloc(g.s, bytes, &old));
	ok(g.v->fill(g.s, old, 7, bytes));
	ok(g.v->graph_begin(g.s));
	ok(g.v->alloc(g.s, bytes, &first) || g.v->copy(g.s, first, old, bytes) || g.v->free(g.s, first));
	ok(g.v->alloc(g.s, bytes - 200, &again) || g.v->alloc(g.s, 10, &small) || g.v->alloc(g.s, bytes, &kept));
	CHECK(again == first && small != first && kept != first && kept != small, "memory that is free again");
	ok(g.v->copy(g.s, kept, first, bytes) || g.v->free(g.s, old) || g.v->free(g.s, small));
	ok(g.v->graph_end(g.s, &graph));
	ok(g.v->free(g.s, again));
	CHECK(used() >= before + 3 * bytes, "memory of the recording was given back");
	for (int i = 0; i < 2; i++) {
		ok(g.v->fill(g.s, kept, 0, bytes) || g.v->graph_run(g.s, graph) ||
			g.v->to_host(g.s, &byte, (char *)kept + bytes - 1, 1));
		CHECK(byte == 7, "byte %d", byte);
	}
	g.v->graph_close(graph);
	CHECK(used() == before + bytes, "%d bytes are left, wanted those of the caller", (int)(used() - before));
	ok(g.v->to_host(g.s, &byte, kept, 1));
	CHECK(byte == 7, "byte %d after the graph is closed", byte);
	ok(g.v->free(g.s, kept));
	CHECK(used() == before, "%d bytes are left", (int)(used() - before));
}

/* ---- bytes of the host ---- */

static void numbers(void)
{
	uint64_t before = used();
	struct ql_gpu_graph *graph = NULL;
	unsigned char number = 5, got[2] = {0}, none = 0;
	void *at = NULL, *to[2] = {NULL, NULL};

	CASE("bytes of the host in a recording");
	ok(g.v->alloc(g.s, 1, &to[0]) || g.v->alloc(g.s, 1, &to[1]) || g.v->fill(g.s, to[0], 0, 1));
	ok(g.v->graph_begin(g.s));
	ok(g.v->alloc(g.s, 1, &at) || g.v->fill(g.s, at, 1, 1) || g.v->copy(g.s, to[0], at, 1));
	ok(g.v->to_device(g.s, at, &number, 1) || g.v->to_device(g.s, at, &none, 0));
	number = 6; /* the memory may be reused */
	ok(g.v->copy(g.s, to[1], at, 1) || g.v->free(g.s, at) || g.v->graph_end(g.s, &graph));
	ok(g.v->to_host(g.s, &got[0], to[0], 1));
	CHECK(got[0] == 0, "what was recorded has run: byte %d", got[0]);
	for (int i = 0; i < 2; i++) {
		ok(g.v->graph_run(g.s, graph) || g.v->to_host(g.s, &got[0], to[0], 1) ||
			g.v->to_host(g.s, &got[1], to[1], 1));
		CHECK(got[0] == 1 && got[1] == 5, "run %d: bytes %d and %d, wanted 1 and 5", i, got[0], got[1]);
	}
	g.v->graph_close(graph);
	ok(g.v->free(g.s, to[0]) || g.v->free(g.s, to[1]));
	CHECK(used() == before, "%d bytes are left", (int)(used() - before));
}

/* ---- what is refused ---- */

static void expect_refused(int32_t status, const char *what)
{
	g.v->last_error(g.d, g.error, sizeof(g.error));
	CHECK(status == QL_GPU_FAILED && strstr(g.error, "recording"), "%s: status %d, %s", what, (int)status, g.error);
}

static void refusals(void)
{
	struct ql_gpu_graph *graph = NULL, *other = NULL;
	struct ql_gpu_event *event = NULL;
	struct ql_gpu_fault fault;
	unsigned char byte = 1;
	void *at = NULL;

	CASE("what a recording refuses");
	expect_refused(g.v->graph_end(g.s, &graph), "graph_end without a beginning");
	ok(g.v->alloc(g.s, 1, &at) || g.v->event_open(g.d, &event) || g.v->graph_begin(g.s));
	expect_refused(g.v->graph_begin(g.s), "graph_begin");
	expect_refused(g.v->graph_run(g.s, graph), "graph_run");
	expect_refused(g.v->to_host(g.s, &byte, at, 1), "to_host");
	expect_refused(g.v->stream_sync(g.s), "stream_sync");
	expect_refused(g.v->stream_query(g.s), "stream_query");
	expect_refused(g.v->fault(g.s, &fault), "fault");
	expect_refused(g.v->event_record(g.s, event), "event_record");
	ok(g.v->fill(g.s, at, 9, 1));
	ok(g.v->graph_end(g.s, &graph));
	ok(g.v->graph_run(g.s, graph) || g.v->to_host(g.s, &byte, at, 1));
	CHECK(byte == 9, "the recording went on: byte %d", byte);
	ok(g.v->graph_begin(g.s) || g.v->graph_end(g.s, &other) || g.v->graph_run(g.s, other));
	g.v->graph_close(graph);
	g.v->graph_close(other);
	g.v->graph_close(NULL);
	g.v->event_close(event);
	ok(g.v->free(g.s, at));
}

/* ---- failures, each in a process of its own ---- */

static int32_t everything(void)
{
	struct ql_gpu_graph *graph = NULL;
	struct ql_gpu_tensor t = {.dtype = "float32", .rank = 1, .shape = {100}, .stride = {1}, .bytes = 400}, u = t;
	int32_t status = g.v->open(0, &g.d), ended = QL_GPU_OK;
	float x = 0;

	if (!status)
		status = g.v->stream_open(g.d, &g.s);
	if (!status)
		status = g.v->alloc(g.s, 400, &t.base);
	if (!status)
		status = g.v->fill(g.s, t.base, 0, 400);
	if (!status)
		status = g.v->graph_begin(g.s);
	if (!status) {
		status = g.v->alloc(g.s, 400, &u.base);
		t.at = t.base;
		u.at = u.base;
		if (!status)
			status = g.v->to_device(g.s, u.base, &x, sizeof(x));
		if (!status)
			status = queue(gpu_call("copy", &t, 1, &u, 1));
		g.v->last_error(g.d, g.error, sizeof(g.error));
		ended = g.v->graph_end(g.s, &graph);
	}
	status = status ? status : ended;
	if (!status)
		status = g.v->graph_run(g.s, graph);
	if (!status)
		status = g.v->to_host(g.s, &x, u.at, sizeof(x));
	if (status)
		g.v->last_error(g.d, g.error, sizeof(g.error));
	if (!status && x != 0)
		status = 100;
	if (u.base)
		g.v->free(g.s, u.base);
	g.v->graph_close(graph);
	if (t.base)
		g.v->free(g.s, t.base);
	return status;
}

static int in_process(int n, int code)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		char value[32];

		snprintf(value, sizeof(value), "%d:%d", n, code);
		setenv("QUOLL_EMU_FAIL", value, 1);
		status = everything();
		if (g.s)
			g.v->stream_close(g.s);
		if (g.d)
			g.v->close(g.d);
		_exit(status && !g.error[0] ? 200 : status);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 201;
}

static void failures(void)
{
	static const int codes[] = {1, 2, 719, 901};

	for (int k = 0; k < 4; k++) {
		int status = -1, n = 1;

		CASE("the n-th call of the runtime fails with %d", codes[k]);
		for (; status != 0 && n < 100; n++) {
			status = in_process(n, codes[k]);
			CHECK(status <= QL_GPU_LOST, "call %d: status %d", n, status);
		}
		CHECK(n > 20 && n < 100, "%d calls failed", n);
	}
}

/* A stream is closed in the middle of a recording. */
static void closing(void)
{
	struct ql_gpu_stream *s = NULL;
	void *at = NULL, *more = NULL;

	CASE("a stream that is recording is closed");
	ok(g.v->stream_open(g.d, &s) || g.v->alloc(s, 100, &at) || g.v->graph_begin(s) || g.v->alloc(s, 50, &more) ||
		g.v->fill(s, at, 0, 100) || g.v->free(s, more) || g.v->free(s, at));
	g.v->stream_close(s);
	CHECK(g.v->stream_sync(g.s) == QL_GPU_OK, "another stream");
}

int main(void)
{
	struct gpu loaded;
	uint64_t before;

	if (!gpu_load(&loaded, "QUOLL_TEST_PLUGIN"))
		return check_end();
	g = loaded;
	failures();
	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	before = used();
	for (int o = 0; o < ORDERS; o++) {
		gpu_order(o);
		replaying();
	}
	memory();
	numbers();
	refusals();
	closing();
	CHECK(used() == before, "%d bytes are left", (int)(used() - before));
	gpu_close(&g);
	return check_end();
}
