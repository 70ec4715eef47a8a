/* SPDX-License-Identifier: MIT
 * The host code of the plug-in on the emulated runtime: what there is, memory, copies larger than the pinned buffers, events,
 * operands beyond their memory, families of kernels, kernels that go wrong, and every call of the runtime failing in turn.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/gpu_device.h"

enum bug {
	BUG_none,
#define X(name, test, what) BUG_##name,
#include "gpu/emu/bugs.def"
#undef X
};

static struct gpu g;

static void probing(void)
{
	struct ql_gpu_info info[2];
	char why[160] = "";

	CASE("probe");
	CHECK(g.v->probe(info, 2, why) == 1 && !info[0].why[0] && info[0].cc_major == 9, "%s", why);
	CHECK(!strcmp(g.v->name, "cudaemu"), "%s", g.v->name);
	setenv("QUOLL_EMU_NONE", "35", 1);
	CHECK(g.v->probe(info, 2, why) < 0 && strstr(why, "no NVIDIA driver"), "%s", why);
	setenv("QUOLL_EMU_NONE", "100", 1);
	CHECK(g.v->probe(info, 2, why) < 0 && strstr(why, "no device"), "%s", why);
	unsetenv("QUOLL_EMU_NONE");
}

static void copies(void)
{
	uint64_t bytes = ((uint64_t)19 << 20) + 3; /* more than two pinned buffers */
	unsigned char *data = check_alloc(bytes), *back = check_alloc(bytes);
	void *at = NULL, *other = NULL;

	CASE("copies of 19 MiB");
	CHECK(!g.v->alloc(g.s, bytes, &at) && !g.v->alloc(g.s, bytes, &other), "alloc");
	for (uint64_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)(i * 2654435761u >> 13);
	CHECK(!g.v->to_device(g.s, at, data, bytes), "to_device");
	memcpy(back, data, bytes);
	memset(data, 0, bytes); /* the caller may reuse its memory at once */
	CHECK(!g.v->copy(g.s, other, at, bytes) && !g.v->fill(g.s, other, 7, 5), "copy, fill");
	CHECK(!g.v->to_host(g.s, data, other, bytes), "to_host");
	memset(back, 7, 5);
	CHECK(!memcmp(data, back, bytes), "other bytes came back");
	CHECK(!g.v->free(g.s, at) && !g.v->free(g.s, other) && !g.v->free(g.s, NULL), "free");
	free(data);
	free(back);
}

static void memory(void)
{
	struct ql_gpu_memory m;
	void *at = NULL, *more = NULL;

	CASE("memory");
	CHECK(!g.v->memory_reset(g.d) && !g.v->memory(g.d, &m) && m.now == m.peak && m.free <= m.total, "at the start");
	CHECK(!g.v->alloc(g.s, 1000000, &at) && !g.v->free(g.s, at) && !g.v->memory(g.d, &m), "alloc");
	CHECK(m.peak >= m.now + 1000000, "peak %llu, now %llu", (unsigned long long)m.peak, (unsigned long long)m.now);
	setenv("QUOLL_EMU_MEMORY", "100000", 1);
	CHECK(g.v->alloc(g.s, 1000000, &at) == QL_GPU_MEMORY && !at, "a device of 100 kB gave 1 MB");
	g.v->last_error(g.d, g.error, sizeof(g.error));
	CHECK(strstr(g.error, "cudaErrorMemoryAllocation"), "%s", g.error);
	CHECK(!g.v->alloc(g.s, 1000, &more), "after an out-of-memory the next smaller one succeeds");
	unsetenv("QUOLL_EMU_MEMORY");
	g.v->free(g.s, more);
	CHECK(!g.v->alloc(g.s, 0, &at) && !g.v->free(g.s, at), "no bytes");
}

static void events(void)
{
	struct ql_gpu_event *from = NULL, *to = NULL;
	double seconds = -1;
	void *at = NULL;
	int32_t status;

	CASE("events and queries");
	CHECK(!g.v->event_open(g.d, &from) && !g.v->event_open(g.d, &to), "open");
	g.v->event_record(g.s, from);
	g.v->alloc(g.s, 100000, &at);
	for (int i = 0; i < 10; i++)
		g.v->fill(g.s, at, 1, 100000);
	g.v->event_record(g.s, to);
	status = g.v->stream_query(g.s);
	CHECK(status == QL_GPU_PENDING, "work is left, query gives %d", (int)status);
	for (int i = 0; i < 100 && status == QL_GPU_PENDING; i++)
		status = g.v->stream_query(g.s);
	CHECK(status == QL_GPU_OK, "query gives %d", (int)status);
	CHECK(!g.v->event_elapsed(from, to, &seconds) && seconds >= 0 && seconds < 10, "%g s", seconds);
	g.v->free(g.s, at);
	g.v->event_close(from);
	g.v->event_close(to);
}

static void calls(void)
{
	int64_t n = 16;
	struct ql_gpu_kernel_info info;
	struct ql_gpu_fault fault;
	struct ql_gpu_tensor in = gpu_tensor(&g, "float32", 1, &n, NULL, 0),
			     out = gpu_tensor(&g, "float32", 1, &n, NULL, 0);
	struct ql_gpu_call call = gpu_call("copy", &in, 1, &out, 1);
	struct ql_gpu_plan plan = {.size = sizeof(plan)};
	int32_t count = 0;

	CASE("calls");
	for (; count < 1000 && !g.v->kernels(count, &info); count++) {
		char *op = strndup(info.op, strcspn(info.op, " "));

		CHECK(op && info.name && info.family && g.v->op_find(op) >= 0, "kernel %d", (int)count);
		free(op);
	}
	CHECK(count > 5, "%d kernels", (int)count);
	CHECK(g.v->op_find("no such op") < 0 && g.v->op_find("cop") < 0 && g.v->op_find("") < 0,
		"an unknown op was found");
	CHECK(!g.v->plan(g.d, g.v->op_find("copy"), &call, &plan), "%s", plan.why);
	in.bytes -= 4;
	CHECK(g.v->run(g.s, &call, &plan) == QL_GPU_FAILED, "an operand beyond its memory");
	g.v->last_error(g.d, g.error, sizeof(g.error));
	CHECK(strstr(g.error, "operand 1 is not within"), "%s", g.error);
	in.bytes += 4;
	CHECK(!g.v->run(g.s, &call, &plan) && !g.v->stream_sync(g.s), "the device is usable after it");
	CHECK(g.v->force(g.d, "mma dp4a") == QL_GPU_OK &&
			g.v->plan(g.d, g.v->op_find("copy"), &call, &plan) == QL_GPU_FAILED &&
			strstr(plan.why, "mma dp4a"),
		"%s", plan.why);
	CHECK(g.v->force(g.d, "mma abacus") == QL_GPU_FAILED, "an unknown family");
	CHECK(!g.v->force(g.d, NULL) && !g.v->plan(g.d, g.v->op_find("copy"), &call, &plan), "%s", plan.why);
	CHECK(!g.v->fault(g.s, &fault) && fault.kind == QL_GPU_FAULT_NONE, "a fault of kind %d", (int)fault.kind);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

/* ---- what can go wrong, each in a process of its own ---- */

/* Everything once; returns the first status that is not QL_GPU_OK, whose words are in g.error. */
static int32_t everything(void)
{
	int64_t n = 5000;
	struct ql_gpu_tensor in = {.dtype = "float32",
				     .rank = 1,
				     .shape = {n},
				     .stride = {1},
				     .bytes = (uint64_t)n * 4},
			     out = in;
	struct ql_gpu_option axis = {.name = "axis", .type = QL_GPU_OPTION_AXES, .i = 1};
	struct ql_gpu_call call = gpu_call("sum", &in, 1, &out, 1);
	struct ql_gpu_plan plan = {.size = sizeof(plan)};
	float *x = calloc((size_t)n, 4), sum = 1;
	int32_t status = g.v->open(0, &g.d);

	call.options = &axis;
	call.n_options = 1;
	out.rank = 0;
	out.bytes = 4;
	if (!status)
		status = g.v->stream_open(g.d, &g.s);
	if (!status)
		status = g.v->alloc(g.s, in.bytes, &in.base);
	in.at = in.base;
	if (!status)
		status = g.v->alloc(g.s, out.bytes, &out.base);
	out.at = out.base;
	if (!status)
		status = g.v->to_device(g.s, in.at, x, in.bytes);
	if (!status)
		status = g.v->plan(g.d, g.v->op_find("sum"), &call, &plan);
	if (!status)
		status = g.v->run(g.s, &call, &plan);
	if (!status)
		status = g.v->to_host(g.s, &sum, out.at, 4);
	g.v->last_error(g.d, g.error, sizeof(g.error));
	if (!status && sum != 0)
		status = 100;
	if (g.s) {
		g.v->free(g.s, in.base);
		g.v->free(g.s, out.base);
	}
	free(x);
	return status;
}

/* Exit status of a process that runs everything with the variable set: its status, or 200 if it failed without a word. */
static int in_process(const char *variable, const char *value)
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0) {
		setenv(variable, value, 1);
		status = everything();
		if (g.s) /* closing after any failure does no harm */
			g.v->stream_close(g.s);
		if (g.d)
			g.v->close(g.d);
		_exit(status && !g.error[0] ? 200 : status);
	}
	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 201;
}

/* Every call of the runtime fails in turn, with an error that leaves the device usable, memory, and a lost device. */
static void failures(void)
{
	static const struct {
		int code, status;
	} kinds[] = {{1, QL_GPU_FAILED}, {2, QL_GPU_MEMORY}, {719, QL_GPU_LOST}};

	for (int k = 0; k < 3; k++) {
		int status = -1, n = 1;

		CASE("the n-th call of the runtime fails with %d", kinds[k].code);
		for (; status != 0 && n < 100; n++) {
			char value[32];

			snprintf(value, sizeof(value), "%d:%d", n, kinds[k].code);
			status = in_process("QUOLL_EMU_FAIL", value);
			/* describing a device keeps the reason as that of the device */
			CHECK(status == 0 || status == kinds[k].status || (n == 1 && status == QL_GPU_FAILED),
				"call %d: status %d", n, status);
		}
		CHECK(n > 15 && n < 100, "%d calls failed", n);
	}
}

/* A kernel whose threads do not all reach a barrier loses the device; the words say how many did. */
static void divergence(void)
{
	struct gpu planted;
	char number[16];

	CASE("a barrier that a part of the block reaches");
	if (!gpu_load(&planted, "QUOLL_TEST_PLUGIN"))
		return;
	g = planted;
	snprintf(number, sizeof(number), "%d", BUG_reduce_divergence);
	setenv("QUOLL_EMU_BUG", number, 1);
	CHECK(everything() == QL_GPU_LOST && strstr(g.error, "of 256 threads reach __syncthreads"), "%s", g.error);
	CHECK(g.v->stream_sync(g.s) == QL_GPU_LOST, "a lost device answers");
	unsetenv("QUOLL_EMU_BUG");
	gpu_close(&g);
}

int main(void)
{
	struct gpu again;

	if (!gpu_load(&again, "QUOLL_TEST_PLUGIN"))
		return check_end();
	g = again;
	failures();
	if (!gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	probing();
	copies();
	memory();
	events();
	calls();
	gpu_close(&g);
	divergence();
	return check_end();
}
