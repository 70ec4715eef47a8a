/* SPDX-License-Identifier: MIT
 * The global `gpu`. Without a plug-in everything answers "no" with the reason.
 */
#include "interp/bind/gpu.h"

#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/surplus.h"
#include "interp/host/box.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/kernels/kernels.h"
#include "tensor/nearest.h"
#include "tensor/recording.h"

/* What is known of the kernels as a whole; a table with date and machine in gpu/README.md will change it. */
#define STATE "tested on the CPU by emulation; not yet run on a GPU"

static int gpu_available(lua_State *L)
{
	const struct ql_gpu *g = ql_gpu_main();

	lua_pushboolean(L, g->usable);
	if (g->usable)
		return 1;
	lua_pushstring(L, g->why);
	return 2;
}

static void push_device(lua_State *L, const struct ql_gpu_info *d)
{
	lua_createtable(L, 0, 6);
	ql_set_text(L, "name", d->name);
	lua_pushfstring(L, "%d.%d", (int)d->cc_major, (int)d->cc_minor);
	lua_setfield(L, -2, "capability");
	ql_set_integer(L, "processors", d->processors);
	ql_set_integer(L, "memory", (lua_Integer)d->memory);
	lua_pushboolean(L, !d->why[0]);
	lua_setfield(L, -2, "usable");
	if (d->why[0])
		ql_set_text(L, "reason", d->why);
}

static int gpu_info(lua_State *L)
{
	const struct ql_gpu *g = ql_gpu_main();

	lua_createtable(L, 0, 5);
	lua_pushboolean(L, g->usable);
	lua_setfield(L, -2, "available");
	ql_set_text(L, "state", STATE);
	if (!g->usable)
		ql_set_text(L, "reason", g->why);
	if (g->path[0])
		ql_set_text(L, "plugin", g->path);
	lua_createtable(L, g->count, 0);
	for (int i = 0; i < g->count; i++) {
		push_device(L, &g->device[i]);
		lua_seti(L, -2, i + 1);
	}
	lua_setfield(L, -2, "devices");
	return 1;
}

/* Sums over the devices that are open; `total` is not one. With `reset` peak and counts begin again. */
static enum ql_status sum_memory(
	struct ql_ctx *ctx, bool reset, struct ql_gpu_memory *sum, struct ql_gpu_traffic *copied)
{
	struct ql_gpu_memory m;
	struct ql_gpu_traffic one;

	*sum = (struct ql_gpu_memory){.now = 0};
	*copied = (struct ql_gpu_traffic){.read = 0};
	for (const struct ql_device *d = ctx->devices; d; d = d->next) {
		enum ql_status status;

		if (!ql_gpu_is(d))
			continue;
		status = ql_gpu_memory(d, reset, &m, &one);
		if (status)
			return status;
		sum->now += m.now;
		sum->peak += m.peak;
		copied->read += one.read;
		copied->written += one.written;
	}
	return QL_OK;
}

static int gpu_memory(lua_State *L)
{
	bool reset = !lua_isnoneornil(L, 1) && strcmp(ql_check_string(L, 1, "memory"), "reset") == 0;
	const struct ql_gpu_info *first;
	struct ql_gpu_memory sum;
	struct ql_gpu_traffic copied;
	size_t recorded;
	int recordings;
	enum ql_status status;

	if (!reset && !lua_isnoneornil(L, 1))
		return ql_error(L, "memory: wanted reset, got '%.40s'", lua_tostring(L, 1));
	first = ql_gpu_first();
	status = sum_memory(ql_ctx_of(L), reset, &sum, &copied);
	if (status)
		return ql_raise(L, status);
	recordings = ql_recordings_count(ql_ctx_of(L), &recorded);
	lua_createtable(L, 0, 7);
	ql_set_integer(L, "recordings", recordings);
	ql_set_integer(L, "recorded", (lua_Integer)recorded);
	ql_set_integer(L, "now", (lua_Integer)sum.now);
	ql_set_integer(L, "peak", (lua_Integer)sum.peak);
	ql_set_integer(L, "total", first ? (lua_Integer)first->memory : 0);
	ql_set_integer(L, "read", (lua_Integer)copied.read);
	ql_set_integer(L, "written", (lua_Integer)copied.written);
	return 1;
}

/* device_peak(reset) -> bytes in use, their highest sum; of the devices that are open: it opens none, and 0, 0 is none.
 * For measurements that need not be of a device. */
static int device_peak(lua_State *L)
{
	struct ql_gpu_memory sum;
	struct ql_gpu_traffic copied;
	enum ql_status status = sum_memory(ql_ctx_of(L), lua_toboolean(L, 1), &sum, &copied);

	if (status)
		return ql_raise(L, status);
	lua_pushinteger(L, (lua_Integer)sum.now);
	lua_pushinteger(L, (lua_Integer)sum.peak);
	return 2;
}

static int gpu_sync(lua_State *L)
{
	enum ql_status status = ql_devices_sync(ql_ctx_of(L));

	return status ? ql_raise(L, status) : 0;
}

static void add_name(void *arg, const char *name, const struct ql_gpu_info *info)
{
	lua_State *L = arg;

	(void)info;
	lua_pushstring(L, name);
	lua_seti(L, -2, luaL_len(L, -2) + 1);
}

static int gpu_devices(lua_State *L)
{
	lua_newtable(L);
	lua_pushliteral(L, "cpu");
	lua_seti(L, -2, 1);
	ql_gpu_each(add_name, L);
	return 1;
}

static int gpu_fallback(lua_State *L)
{
	static const char *const modes[] = {"silent", "warn", "error", NULL};
	struct ql_ctx *ctx = ql_ctx_of(L);
	const char *wanted;
	char near[96];

	lua_pushstring(L, modes[ctx->host_fallback]);
	if (lua_isnone(L, 1) || lua_isnil(L, 1) || lua_gettop(L) == 1)
		return 1;
	wanted = ql_check_string(L, 1, "fallback");
	for (int i = 0; modes[i]; i++)
		if (!strcmp(wanted, modes[i])) {
			ctx->host_fallback = (enum ql_fallback_mode)i;
			return 1;
		}
	return ql_error(L, "fallback: wanted silent, warn or error, got '%.40s'%s", wanted,
		ql_nearest(wanted, "silent warn error", near));
}

static const luaL_Reg functions[] = {{"available", gpu_available}, {"info", gpu_info}, {"memory", gpu_memory},
	{"sync", gpu_sync}, {"devices", gpu_devices}, {"fallback", gpu_fallback}, {NULL, NULL}};

static const struct ql_doc docs[] = {
	{"available", "gpu.available()",
		"true when a GPU can be used; else false and the reason. The first call looks for the "
		"plug-in: the file named in "
		"QUOLL_GPU_PLUGIN, else quoll_cuda.so beside the program or in ../lib/quoll from there.",
		"ok, why = gpu.available()\nprint(type(ok), ok or #why > 0)  --> boolean true", NULL},
	{"info", "gpu.info()",
		"What is known of the GPUs: a table with available, reason (when not), plugin (the file that "
		"was opened or tried), state (what is known of its kernels) "
		"and devices: a list of tables with name, capability, processors, memory in bytes, usable, "
		"and reason when not.",
		"print(gpu.info().available == gpu.available())  --> true", NULL},
	{"memory", "gpu.memory()  gpu.memory 'reset'",
		"Bytes that tensors hold on the devices that are in use (now), their highest sum (peak), the memory of the first "
		"device (total), bytes that were copied from devices to the host (read) and to them (written), and how many runs of graphs "
		"are recorded (recordings; see g:run) and the bytes that these keep (recorded); all 0 without a device. 'reset' begins peak, read and written again.",
		"print(gpu.memory().now)  --> 0", NULL},
	{"sync", "gpu.sync()",
		"Waits until the devices have done all that was asked of them; returns at once when there is nothing to wait for.",
		"gpu.sync()", NULL},
	{"devices", "gpu.devices()",
		"Names for x:to, device= and --device: cpu, and the devices of the plug-ins that can be used. cuda is the first GPU, "
		"cuda:1 the second one; cudaemu runs the GPU's kernels on the CPU, for tests and learning.",
		"print(gpu.devices()[1])  --> cpu", NULL},
	{"fallback", "gpu.fallback 'silent'|'warn'|'error'",
		"What happens where a device has no kernel for an op: it runs on the host with copies of the operands, and the "
		"result goes to the device (silent, the default; the ledger shows path host with the reason), the same with a "
		"warning, or an error. Returns the mode that was set before.",
		"print(gpu.fallback())  --> silent", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

/* Whether a device of that capability (80 for 8.0) may run it under hw.force. */
static bool in_use(const struct ql_gpu_kernel_info *k, int capability)
{
	const char *families = ql_kernels_families(), *at = strstr(families, k->family);

	return k->cc <= capability &&
	       (!*families || (at && (at == families || at[-1] == ' ') && strchr(" ", at[strlen(k->family)])));
}

static void push_kernel(lua_State *L, const struct ql_gpu_kernel_info *k, int capability)
{
	lua_createtable(L, 0, 6);
	ql_set_text(L, "kernel", k->name);
	ql_set_text(L, "ops", k->op);
	ql_set_text(L, "family", k->family);
	ql_set_text(L, "result", k->exact == QL_GPU_BITS ? "bits" : "tolerance");
	lua_pushfstring(L, "%d.%d", (int)k->cc / 10, (int)k->cc % 10);
	lua_setfield(L, -2, "capability");
	lua_pushboolean(L, in_use(k, capability));
	lua_setfield(L, -2, "used");
}

/* gpu_kernels() -> a list of the kernels of the plug-in */
static int gpu_kernels(lua_State *L)
{
	const struct ql_gpu *g = ql_gpu_usable();
	struct ql_gpu_kernel_info k;
	int capability = 0;

	for (int i = g->count - 1; i >= 0; i--) /* in the end that of the first one */
		if (!g->device[i].why[0])
			capability = 10 * g->device[i].cc_major + g->device[i].cc_minor;
	lua_newtable(L);
	for (int32_t i = 0; g->plugin && g->plugin->kernels && g->plugin->kernels(i, &k) == QL_GPU_OK; i++) {
		push_kernel(L, &k, capability);
		lua_seti(L, -2, i + 1);
	}
	return 1;
}

/* on_cpu(f, …): f(…) with the CPU as the default device (--device). */
static int on_cpu(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	const struct ql_device *before = ctx->device;
	int status;

	ctx->device = NULL;
	status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
	ctx->device = before;
	return status ? lua_error(L) : lua_gettop(L);
}

int ql_open_gpu(lua_State *L)
{
	static const luaL_Reg internal[] = {
		{"device_peak", device_peak}, {"gpu_kernels", gpu_kernels}, {"on_cpu", on_cpu}, {NULL, NULL}};
	static struct ql_doc_list list = {.module = "gpu", .docs = docs};

	ql_ctx_of(L)->find_device = ql_gpu_find;
	ql_doc_register(&list);
	lua_newtable(L);
	ql_set_documented(L, functions, docs);
	lua_setglobal(L, "gpu");
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, internal, 0);
	lua_pop(L, 1);
	ql_lifetime_harmless(L, on_cpu); /* else nothing that it drops would be freed before it returns */
	return 0;
}
