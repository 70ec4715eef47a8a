/* SPDX-License-Identifier: MIT
 * Finds the device plug-ins, opens each once and asks what is there. The global `gpu` is in gpu_functions.c.
 */
#include "interp/bind/gpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME 64
#define PLUGINS 2

static struct ql_gpu plugins[PLUGINS] = {{.file = "quoll_cuda.so"}, {.file = "quoll_cudaemu.so"}};
static const char *const words[PLUGINS] = {"cuda", "cudaemu"}; /* names of their devices, for messages */

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

static bool locate(const struct ql_gpu *g, char *path, size_t size)
{
	static const char *const folders[] = {"/", "/../lib/quoll/"};
	const char *wanted = g == plugins ? getenv("QUOLL_GPU_PLUGIN") : NULL;
	char tail[64];

	if (wanted && *wanted)
		return (size_t)snprintf(path, size, "%s", wanted) < size;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(tail, sizeof(tail), "%s%s", folders[i], g->file);
		if (beside(tail, path, size) && access(path, R_OK) == 0)
			return true;
	}
	return false;
}

static const char *driver_text(void)
{
	return access("/proc/driver/nvidia/version", R_OK) == 0 ? "" : ", and there is no NVIDIA driver";
}

/* The table, or NULL with g->why filled. The library stays open. */
static const struct ql_gpu_vtable *load(struct ql_gpu *g, const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	ql_gpu_entry_fn *entry = NULL;
	const struct ql_gpu_vtable *v;

	if (!library) {
		snprintf(g->why, sizeof(g->why), "%s", dlerror());
		return NULL;
	}
	*(void **)&entry = dlsym(library, QL_GPU_ENTRY);
	v = entry ? entry(QL_GPU_ABI) : NULL;
	if (v && v->abi == QL_GPU_ABI && v->size >= sizeof(*v))
		return v;
	snprintf(g->why, sizeof(g->why),
		entry ? "%s was built for another version of the program"
		      : "%s has no function " QL_GPU_ENTRY ": it is no plug-in of Quoll",
		path);
	dlclose(library);
	return NULL;
}

/* Copies the reason of the first device that cannot be used; true when one can. */
static bool any_usable(struct ql_gpu *g)
{
	for (int i = 0; i < g->count; i++)
		if (!g->device[i].why[0])
			return true;
	snprintf(g->why, sizeof(g->why), "%.95s: %s", g->device[0].name, g->device[0].why);
	return false;
}

static void open_once(struct ql_gpu *g)
{
	const struct ql_gpu_vtable *v;
	int32_t n;

	if (!locate(g, g->path, sizeof(g->path))) {
		g->path[0] = '\0';
		snprintf(g->why, sizeof(g->why), "no GPU plug-in (%s) beside the program%s", g->file, driver_text());
		return;
	}
	v = load(g, g->path);
	if (!v)
		return;
	g->plugin = v;
	n = v->probe(g->device, QL_GPU_DEVICES, g->why);
	if (n < 0 && !g->why[0])
		snprintf(g->why, sizeof(g->why), "the plug-in %.16s gives no reason", v->name);
	g->count = n < 0 ? 0 : n < QL_GPU_DEVICES ? n : QL_GPU_DEVICES;
	if (n == 0)
		snprintf(g->why, sizeof(g->why), "the plug-in %.16s found no device", v->name);
	g->usable = g->count > 0 && any_usable(g);
}

static const struct ql_gpu *opened(struct ql_gpu *g)
{
	if (!g->tried) {
		g->tried = true;
		open_once(g);
	}
	return g;
}

const struct ql_gpu *ql_gpu_main(void)
{
	return opened(plugins);
}

const struct ql_gpu *ql_gpu_usable(void)
{
	const struct ql_gpu *g = ql_gpu_main(), *emulation;

	if (g->usable)
		return g;
	emulation = opened(&plugins[1]);
	return emulation->usable ? emulation : g;
}

const struct ql_gpu_info *ql_gpu_first(void)
{
	const struct ql_gpu *g = ql_gpu_main();

	for (int i = 0; i < g->count; i++)
		if (!g->device[i].why[0])
			return &g->device[i];
	return NULL;
}

/* ---- devices ---- */

/* "cuda" for the first device of the plug-in, "cuda:1" for the second one */
static void name_device(const struct ql_gpu *g, int index, char name[NAME])
{
	snprintf(name, NAME, index ? "%s:%d" : "%s", g->plugin->name, index);
}

/* The index in "cuda" or "cuda:1"; -1: a device of another plug-in. */
static int index_of(const struct ql_gpu *g, const char *name)
{
	size_t n = g->plugin ? strlen(g->plugin->name) : 0;
	char *end;
	long index;

	if (!g->plugin || strncmp(name, g->plugin->name, n) || (name[n] && name[n] != ':'))
		return -1;
	if (!name[n])
		return 0;
	index = strtol(name + n + 1, &end, 10);
	return *end || end == name + n + 1 || index < 0 || index >= QL_GPU_DEVICES ? -1 : (int)index;
}

static enum ql_status open_device(
	struct ql_ctx *ctx, const struct ql_gpu *g, const char *what, int index, const struct ql_device **out)
{
	char name[NAME];

	name_device(g, index, name);
	if (index >= g->count)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "%s: wanted one of the %d devices that are here, got '%s'",
			what, g->count, name);
	if (g->device[index].why[0])
		return ql_fail(
			ctx, QL_ERR_UNSUPPORTED, "%s: '%s' cannot be used: %s", what, name, g->device[index].why);
	for (struct ql_device *d = ctx->devices; d; d = d->next)
		if (!strcmp(d->doc.name, name)) {
			*out = d;
			return QL_OK;
		}
	return ql_gpu_open(ctx, g->plugin, index, name, out);
}

enum ql_status ql_gpu_find(struct ql_ctx *ctx, const char *what, const char *name, const struct ql_device **out)
{
	for (size_t i = 0; i < PLUGINS; i++) {
		const struct ql_gpu *g = opened(&plugins[i]);
		int index = index_of(g, name);

		if (index >= 0)
			return open_device(ctx, g, what, index, out);
	}
	for (size_t i = PLUGINS; i-- > 0;) /* its plug-in is missing: say why */
		if (!strncmp(name, words[i], strlen(words[i])))
			return ql_fail(ctx, QL_ERR_UNSUPPORTED, "%s: wanted a device that is here, got '%.20s': %s",
				what, name, plugins[i].why[0] ? plugins[i].why : "there is no such device");
	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted cpu, cuda, cuda:1, … or cudaemu, got '%.40s'", what, name);
}

void ql_gpu_each(void (*f)(void *arg, const char *name, const struct ql_gpu_info *info), void *arg)
{
	char name[NAME];

	for (size_t i = 0; i < PLUGINS; i++) {
		const struct ql_gpu *g = opened(&plugins[i]);

		for (int k = 0; k < g->count; k++)
			if (!g->device[k].why[0]) {
				name_device(g, k, name);
				f(arg, name, &g->device[k]);
			}
	}
}
