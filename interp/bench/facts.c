/* SPDX-License-Identifier: MIT
 * internal.facts(): what this program was linked with and what it finds on the machine, as one plain table.
 * Nothing is judged here; interp/bench/doctor.lua does that. CUDA is looked at through its driver library, without
 * its headers.
 */
#include <cjson/cJSON.h>
#include <dlfcn.h>
#include <lzma.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "interp/bind/call.h"
#include "interp/host/box.h"
#include "interp/jupyter/zmq.h"
#include "interp/prelude/libs.h"
#include "interp/plot/terminal.h"
#include "interp/prelude/prelude.h"
#include "tensor/io/jpeg.h"
#include "tensor/kernels/blas.h"

static void add_versions(lua_State *L)
{
	ql_set_text(L, "quoll", QUOLL_VERSION);
	ql_set_text(L, "lua", LUA_RELEASE);
	ql_set_text(L, "compiler", __VERSION__);
	ql_set_text(L, "png", png_get_libpng_ver(NULL));
	ql_set_text(L, "zlib", zlibVersion());
	ql_set_text(L, "lzma", lzma_version_string());
	ql_set_text(L, "cjson", cJSON_Version());
	lua_pushboolean(L, ql_jpeg_usable());
	lua_setfield(L, -2, "jpeg");
}

static void add_program(lua_State *L)
{
	char path[512];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	ql_set_text(L, "program", path);
	ql_set_integer(L, "memory", (lua_Integer)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
	lua_pushboolean(L, isatty(STDOUT_FILENO));
	lua_setfield(L, -2, "terminal");
}

static void add_blas(lua_State *L)
{
	const struct ql_blas *blas = ql_blas();

	lua_createtable(L, 0, 4);
	lua_pushboolean(L, blas->open);
	lua_setfield(L, -2, "open");
	ql_set_text(L, "library", blas->library);
	ql_set_text(L, "config", blas->config);
	ql_set_text(L, "error", blas->error);
	lua_setfield(L, -2, "blas");
}

/* ---- the CUDA driver ---- */

struct driver {
	int (*init)(unsigned flags);
	int (*version)(int *version);
	int (*count)(int *count);
	int (*device)(int *device, int ordinal);
	int (*name)(char *name, int size, int device);
};

static bool find_functions(void *library, struct driver *d)
{
	*(void **)&d->init = dlsym(library, "cuInit");
	*(void **)&d->version = dlsym(library, "cuDriverGetVersion");
	*(void **)&d->count = dlsym(library, "cuDeviceGetCount");
	*(void **)&d->device = dlsym(library, "cuDeviceGet");
	*(void **)&d->name = dlsym(library, "cuDeviceGetName");
	return d->init && d->version && d->count && d->device && d->name;
}

/* Adds "devices", a list of names, to the table on top. */
static void add_devices(lua_State *L, const struct driver *d)
{
	int count = 0, device;
	char name[128];

	lua_newtable(L);
	if (d->count(&count))
		count = 0;
	for (int i = 0; i < count; i++) {
		if (d->device(&device, i) || d->name(name, sizeof(name), device))
			continue;
		lua_pushstring(L, name);
		lua_seti(L, -2, luaL_len(L, -2) + 1);
	}
	lua_setfield(L, -2, "devices");
}

static void add_driver(lua_State *L)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	struct driver d;
	int version = 0, code;

	lua_createtable(L, 0, 3);
	if (!library) {
		ql_set_text(L, "error", dlerror());
	} else if (!find_functions(library, &d)) {
		ql_set_text(L, "error", "libcuda.so.1 lacks a function");
	} else {
		code = d.init(0);
		if (code == 0 && d.version(&version) == 0) {
			lua_pushfstring(L, "%d.%d", version / 1000, version % 1000 / 10);
			lua_setfield(L, -2, "version");
			add_devices(L, &d);
		} else {
			lua_pushfstring(L, "cuInit answers %d", code);
			lua_setfield(L, -2, "error");
		}
	}
	lua_setfield(L, -2, "driver");
}

static int internal_facts(lua_State *L)
{
	lua_newtable(L);
	add_versions(L);
	add_program(L);
	add_blas(L);
	add_driver(L);
	return 1;
}

/* internal.terminal_facts() -> state and detail: how figures are shown */
static int internal_terminal_facts(lua_State *L)
{
	static const char *const details[] = {[QL_TERMINAL_NONE] = "none: figures are not shown",
		[QL_TERMINAL_TEXT] = "figures are drawn with characters: no graphics protocol was seen",
		[QL_TERMINAL_KITTY] = "kitty",
		[QL_TERMINAL_ITERM] = "iTerm2",
		[QL_TERMINAL_SIXEL] = "sixel"};
	enum ql_terminal terminal = ql_terminal_detect();

	lua_pushstring(L, terminal > QL_TERMINAL_TEXT ? "ok" : "none");
	lua_pushstring(L, details[terminal]);
	return 2;
}

/* internal.kernel_facts() -> whether a Jupyter kernel can be run, and a line about it */
static int internal_kernel_facts(lua_State *L)
{
	char text[512];

	lua_pushboolean(L, ql_zmq_describe(text, sizeof(text)));
	lua_pushstring(L, text);
	return 2;
}

/* internal.exists(path): there is such a file or folder, and it may be read */
static int internal_exists(lua_State *L)
{
	lua_pushboolean(L, access(luaL_checkstring(L, 1), R_OK) == 0);
	return 1;
}

static const luaL_Reg internal[] = {{"facts", internal_facts}, {"exists", internal_exists},
	{"terminal_facts", internal_terminal_facts}, {"kernel_facts", internal_kernel_facts}, {NULL, NULL}};

int ql_open_doctor(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, internal);
	lua_pop(L, 1);
	return 0;
}
