/* SPDX-License-Identifier: MIT
 * What the tests of kernels share: a device opened through gpu/abi.h, tensors on it, one call. QUOLL_TEST_PLUGIN names the
 * plug-in, by default the emulation; without it a test is skipped by name.
 */
#ifndef QUOLL_TESTS_TOOLS_GPU_DEVICE_H
#define QUOLL_TESTS_TOOLS_GPU_DEVICE_H

#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/abi.h"
#include "tensor/dtype.h"
#include "tests/check.h"

struct gpu {
	const struct ql_gpu_vtable *v;
	struct ql_gpu_device *d;
	struct ql_gpu_stream *s;
	char why[160]; /* of the last refusal */
	char name[64]; /* of the kernel that ran */
	char error[320];
};

/* The orders in which the threads of the emulation run. Where they matter, threads race, and a test sees other values; what is read and
 * written is the same in each of them, so that the sanitizers do with one. tests/gpu/bugs.c wants all. */
#define ORDERS (under_sanitizers && !getenv("QUOLL_EMU_BUG") ? 1 : 3)

static inline const char *gpu_order(int i)
{
	static const char *const orders[] = {"forward", "backward", "20261123"};

	setenv("QUOLL_EMU_ORDER", orders[i], 1);
	return orders[i];
}

static inline bool gpu_fail(struct gpu *g, const char *what)
{
	g->v->last_error(g->d, g->error, sizeof(g->error));
	return CHECK(false, "%s: %s", what, g->error);
}

static inline bool gpu_load(struct gpu *g, const char *variable)
{
	const char *path = getenv(variable);
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	ql_gpu_entry_fn *entry = NULL;

	*g = (struct gpu){0};
	if (!path) {
		SKIP("cudaemu",
			"the emulation is not built: Boost.Context (libboost-context-dev) or a C++ compiler is missing");
		return false;
	}
	if (!CHECK(library, "%s", dlerror()))
		return false;
	*(void **)&entry = dlsym(library, QL_GPU_ENTRY);
	g->v = entry ? entry(QL_GPU_ABI) : NULL;
	return CHECK(g->v && g->v->abi == QL_GPU_ABI && g->v->size == sizeof(*g->v), "another interface");
}

static inline bool gpu_open(struct gpu *g, const char *variable)
{
	if (!gpu_load(g, variable))
		return false;
	if (g->v->open(0, &g->d) || g->v->stream_open(g->d, &g->s))
		return gpu_fail(g, "open");
	return true;
}

static inline void gpu_close(struct gpu *g)
{
	g->v->stream_close(g->s);
	g->v->close(g->d);
}

static inline int64_t gpu_count(const struct ql_gpu_tensor *t)
{
	int64_t n = 1;

	for (int d = 0; d < t->rank; d++)
		n *= t->shape[d];
	return n;
}

/* A dense tensor with these elements; NULL: whatever the memory holds. `before` bytes lie before the first element, so
 * that it can be unaligned. */
static inline struct ql_gpu_tensor gpu_tensor(
	struct gpu *g, const char *dtype, int rank, const int64_t *shape, const void *data, int64_t before)
{
	struct ql_gpu_tensor t = {.dtype = dtype, .rank = rank};
	int bits = ql_dtypes[ql_dtype_by_name(dtype)].bits;
	int64_t n = 1;

	for (int d = rank - 1; d >= 0; d--) {
		t.shape[d] = shape[d];
		t.stride[d] = n;
		n *= shape[d];
	}
	t.bytes = (uint64_t)(before + (n * bits + 7) / 8);
	if (g->v->alloc(g->s, t.bytes, &t.base))
		gpu_fail(g, "alloc");
	t.at = (char *)t.base + before;
	if (data && n && g->v->to_device(g->s, t.at, data, t.bytes - (uint64_t)before))
		gpu_fail(g, "to_device");
	return t;
}

static inline void gpu_free(struct gpu *g, struct ql_gpu_tensor *t)
{
	g->v->free(g->s, t->base);
}

/* The bytes of a dense tensor. */
static inline void gpu_get(struct gpu *g, const struct ql_gpu_tensor *t, void *host)
{
	uint64_t before = (uint64_t)((const char *)t->at - (const char *)t->base);

	if (g->v->to_host(g->s, host, t->at, t->bytes - before))
		gpu_fail(g, "to_host");
}

static inline struct ql_gpu_call gpu_call(
	const char *op, const struct ql_gpu_tensor *in, int n_in, const struct ql_gpu_tensor *out, int n_out)
{
	return (struct ql_gpu_call){
		.size = sizeof(struct ql_gpu_call), .op = op, .n_in = n_in, .n_out = n_out, .in = in, .out = out};
}

/* Plans and runs a call, and waits. False: refused (g->why), or failed, which is a failed check. */
static inline bool gpu_run(struct gpu *g, struct ql_gpu_call call)
{
	struct ql_gpu_plan plan = {.size = sizeof(plan)};
	int32_t op = g->v->op_find(call.op);

	if (!CHECK(op >= 0, "%s: no kernel of that name", call.op))
		return false;
	if (getenv("QUOLL_EMU_BUG") && (check.bad || check.failed)) /* found: tests/gpu/bugs.c wants no more */
		exit(check_end());
	if (g->v->plan(g->d, op, &call, &plan)) {
		snprintf(g->why, sizeof(g->why), "%s", plan.why);
		CHECK(g->why[0], "%s: refused without a reason", call.op);
		return false;
	}
	snprintf(g->name, sizeof(g->name), "%s", plan.name);
	if (plan.workspace && g->v->alloc(g->s, plan.workspace, &call.workspace))
		return gpu_fail(g, "workspace");
	if (g->v->run(g->s, &call, &plan) || g->v->stream_sync(g->s))
		return gpu_fail(g, call.op);
	if (plan.workspace)
		g->v->free(g->s, call.workspace);
	return true;
}

/* ---- numbers ---- */

static uint64_t gpu_seed = 1;

static inline uint32_t gpu_draw(void)
{
	gpu_seed = gpu_seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(gpu_seed >> 32);
}

static inline float gpu_draw_float(void)
{
	return ((float)(gpu_draw() >> 8) / 0x1p23f - 1) * 8;
}

/* Equal bits; any NaN equals any other. */
static inline bool gpu_same_f32(float a, float b)
{
	union {
		float f;
		uint32_t bits;
	} x = {a}, y = {b};

	return (isnan(a) && isnan(b)) || x.bits == y.bits;
}

#endif
