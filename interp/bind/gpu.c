/* SPDX-License-Identifier: MIT
 * The global `gpu`: finds the device plug-in, opens it once and asks what is there. Without one everything
 * answers "no" with the reason. What the machine has of NVIDIA's is looked up only for gpu.info, without
 * CUDA's headers.
 */
#include "interp/bind/gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/bind/call.h"
#include "interp/host/box.h"
#include "interp/prelude/libs.h"
#include "interp/bind/surplus.h"

#define FILE_NAME "quoll_cuda.so"

static struct ql_gpu gpu;

/* ---- the plug-in ---- */

/* "the program's folder" + tail, in `path`; false when it is not known or too long */
static bool beside(const char *tail, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;
	size_t used;

	if (n <= 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	used = slash ? (size_t)(slash - path) : 0;
	return slash && (size_t)snprintf(path + used, size - used, "%s", tail) < size - used;
}

static bool locate(char *path, size_t size)
{
	static const char *const tails[] = {"/" FILE_NAME, "/../lib/quoll/" FILE_NAME};
	const char *wanted = getenv("QUOLL_GPU_PLUGIN");

	if (wanted && *wanted)
		return (size_t)snprintf(path, size, "%s", wanted) < size;
	for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++)
		if (beside(tails[i], path, size) && access(path, R_OK) == 0)
			return true;
	return false;
}

static const char *driver_text(void)
{
	return access("/proc/driver/nvidia/version", R_OK) == 0 ? "" : ", and there is no NVIDIA driver";
}

/* The table, or NULL with gpu.why filled. The library stays open. */
static const struct ql_gpu_vtable *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ql_gpu_entry_fn *entry = NULL;
	const struct ql_gpu_vtable *v;

	if (!library) {
		snprintf(gpu.why, sizeof(gpu.why), "%s", dlerror());
		return NULL;
	}
	*(void **)&entry = dlsym(library, QL_GPU_ENTRY);
	v = entry ? entry(QL_GPU_ABI) : NULL;
	if (v && v->abi == QL_GPU_ABI && v->size >= sizeof(*v))
		return v;
	snprintf(gpu.why, sizeof(gpu.why),
		entry ? "%s was built for another version of the program"
		      : "%s has no function " QL_GPU_ENTRY ": it is no plug-in of Quoll",
		path);
	dlclose(library);
	return NULL;
}

/* Copies the reason of the first device that cannot be used; true when one can. */
static bool any_usable(void)
{
	for (int i = 0; i < gpu.count; i++)
		if (!gpu.device[i].why[0])
			return true;
	snprintf(gpu.why, sizeof(gpu.why), "%.95s: %s", gpu.device[0].name, gpu.device[0].why);
	return false;
}

static void open_once(void)
{
	const struct ql_gpu_vtable *v;
	int32_t n;

	if (!locate(gpu.path, sizeof(gpu.path))) {
		gpu.path[0] = '\0';
		snprintf(
			gpu.why, sizeof(gpu.why), "no GPU plug-in (" FILE_NAME ") beside the program%s", driver_text());
		return;
	}
	v = load(gpu.path);
	if (!v)
		return;
	gpu.plugin = v;
	n = v->probe(gpu.device, QL_GPU_DEVICES, gpu.why);
	if (n < 0 && !gpu.why[0])
		snprintf(gpu.why, sizeof(gpu.why), "the plug-in %.16s gives no reason", v->name);
	gpu.count = n < 0 ? 0 : n < QL_GPU_DEVICES ? n : QL_GPU_DEVICES;
	if (n == 0)
		snprintf(gpu.why, sizeof(gpu.why), "the plug-in %.16s found no device", v->name);
	gpu.usable = gpu.count > 0 && any_usable();
}

static const struct ql_gpu *opened_gpu(void)
{
	static bool tried;

	if (!tried) {
		tried = true;
		open_once();
	}
	return &gpu;
}

const struct ql_gpu_info *ql_gpu_first(void)
{
	const struct ql_gpu *g = opened_gpu();

	for (int i = 0; i < g->count; i++)
		if (!g->device[i].why[0])
			return &g->device[i];
	return NULL;
}

/* ---- Lua ---- */

static int gpu_available(lua_State *L)
{
	const struct ql_gpu *g = opened_gpu();

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
	const struct ql_gpu *g = opened_gpu();

	lua_createtable(L, 0, 4);
	lua_pushboolean(L, g->usable);
	lua_setfield(L, -2, "available");
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

/* No device is opened before tensors can be there, so all of it is zero or what the machine has. */
static int gpu_memory(lua_State *L)
{
	const struct ql_gpu_info *first = ql_gpu_first();

	lua_createtable(L, 0, 3);
	ql_set_integer(L, "now", 0);
	ql_set_integer(L, "peak", 0);
	ql_set_integer(L, "total", first ? (lua_Integer)first->memory : 0);
	return 1;
}

static int gpu_sync(lua_State *L)
{
	(void)L; /* nothing can be queued: no device is open */
	return 0;
}

static const luaL_Reg functions[] = {
	{"available", gpu_available}, {"info", gpu_info}, {"memory", gpu_memory}, {"sync", gpu_sync}, {NULL, NULL}};

static const struct ql_doc docs[] = {
	{"available", "gpu.available()",
		"true when a GPU can be used; else false and the reason. The first call looks for the "
		"plug-in: the file named in "
		"QUOLL_GPU_PLUGIN, else quoll_cuda.so beside the program or in ../lib/quoll from there.",
		"ok, why = gpu.available()\nprint(type(ok), ok or #why > 0)  --> boolean true", NULL},
	{"info", "gpu.info()",
		"What is known of the GPUs: a table with available, reason (when not), plugin (the file that "
		"was opened or tried), "
		"and devices: a list of tables with name, capability, processors, memory in bytes, usable, "
		"and reason when not.",
		"print(gpu.info().available == gpu.available())  --> true", NULL},
	{"memory", "gpu.memory()",
		"Bytes that tensors hold on the GPU (now), their highest sum (peak) and the memory of the "
		"device (total); all 0 "
		"without one.",
		"print(gpu.memory().now)  --> 0", NULL},
	{"sync", "gpu.sync()",
		"Waits until the GPU has done all that was asked of it; returns at once when there is "
		"nothing to wait for.",
		"gpu.sync()", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

int ql_open_gpu(lua_State *L)
{
	static struct ql_doc_list list = {.module = "gpu", .docs = docs};

	ql_doc_register(&list);
	lua_newtable(L);
	ql_set_documented(L, functions, docs);
	lua_setglobal(L, "gpu");
	return 0;
}
