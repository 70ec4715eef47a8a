/* SPDX-License-Identifier: MIT
 * Passes over data sets for the prelude, where data.loader is (nn/data/loader.lua), which checks what users give:
 *	internal.loader_length(plan) -> number of batches
 *	internal.loader_open(plan) -> a pass, and whether a thread fills its batches: pass() -> x, y or nil; it ends by
 *		__close, __gc or its last batch
 *	internal.loader_seed() -> 64 random bits from tensor.seed
 *	internal.read_bytes(path, size, exact) -> uint8 tensor; or nil, message
 *	internal.bytes_text(t) -> the bytes of a uint8 tensor as text
 *	internal.list_folder(path) -> names in a folder; or nil, message
 * plan: x, y, order ("samples", "windows", "streams"), batch, steps, drop, shuffle, seed, crop, cutout, flip, mean and
 * std (lists of numbers, one a channel), prefetch (nil: where it pays).
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/prelude.h"
#include "nn/loader.h"
#include "tensor/io/bytes.h"
#include "tensor/kernels/kernels.h"
#include "tensor/rng.h"

#define PASS "quoll.pass"

static int64_t integer_field(lua_State *L, const char *name)
{
	int64_t value;
	int good;

	lua_getfield(L, 1, name);
	value = lua_tointegerx(L, -1, &good);
	if (!good && !lua_isnil(L, -1))
		ql_error(L, "loader: %s: wanted an integer, got %s", name, luaL_tolstring(L, -1, NULL));
	lua_pop(L, 1);
	return value;
}

static bool flag_field(lua_State *L, const char *name)
{
	bool value;

	lua_getfield(L, 1, name);
	value = lua_toboolean(L, -1);
	lua_pop(L, 1);
	return value;
}

/* The tensor stays on the stack. */
static struct ql_tensor *tensor_field(lua_State *L, const char *name)
{
	if (lua_getfield(L, 1, name) == LUA_TNIL)
		return NULL;
	ql_host_tensor(L, -1);
	return ql_check_tensor(L, -1, "loader");
}

static bool numbers_field(lua_State *L, const char *name, float out[QL_LOADER_CHANNELS])
{
	bool given = lua_getfield(L, 1, name) == LUA_TTABLE;

	for (int i = 0; given && i < QL_LOADER_CHANNELS; i++) {
		lua_rawgeti(L, -1, i + 1);
		out[i] = (float)lua_tonumber(L, -1);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return given;
}

static void read_plan(lua_State *L, struct ql_loader_plan *p)
{
	static const char *const orders[] = {"samples", "windows", "streams", NULL};

	luaL_checktype(L, 1, LUA_TTABLE);
	*p = (struct ql_loader_plan){.x = tensor_field(L, "x"), .y = tensor_field(L, "y")};
	if (!p->x)
		ql_error(L, "loader: wanted a tensor");
	lua_getfield(L, 1, "order");
	p->order = (enum ql_loader_order)luaL_checkoption(L, -1, "samples", orders);
	lua_pop(L, 1);
	p->batch = integer_field(L, "batch");
	p->steps = integer_field(L, "steps");
	p->seed = (uint64_t)integer_field(L, "seed");
	p->crop = integer_field(L, "crop");
	p->cutout = integer_field(L, "cutout");
	p->flip = flag_field(L, "flip");
	p->drop = flag_field(L, "drop");
	p->shuffle = flag_field(L, "shuffle");
	p->normalize = numbers_field(L, "mean", p->mean) && numbers_field(L, "std", p->deviation);
	lua_getfield(L, 1, "prefetch");
	p->prefetch = lua_isnil(L, -1) ? -1 : lua_toboolean(L, -1);
	lua_pop(L, 1);
}

static int loader_length(lua_State *L)
{
	struct ql_loader_plan plan;
	int64_t batches = 0;
	enum ql_status status;

	read_plan(L, &plan);
	status = ql_loader_check(ql_ctx_of(L), &plan, &batches);
	if (status)
		return ql_raise(L, status);
	lua_pushinteger(L, batches);
	return 1;
}

/* A pass over the data. */
struct pass {
	struct ql_loader *loader; /* NULL: it has ended */
	const struct ql_device *device;
};

static void pass_end(struct pass *pass)
{
	struct ql_loader *l = pass->loader;

	pass->loader = NULL;
	ql_loader_close(l);
}

static int pass_close(lua_State *L)
{
	struct pass *pass = luaL_checkudata(L, 1, PASS);

	if (ql_lifetime_may_free(L))
		pass_end(pass);
	return 0;
}

static int pass_next(lua_State *L)
{
	struct pass *pass = luaL_checkudata(L, 1, PASS);
	struct ql_tensor **x, **y;
	enum ql_status status;

	if (!pass->loader)
		return 0;
	x = ql_box_new(L);
	y = ql_box_new(L);
	status = ql_loader_next(pass->loader, x, y);
	if (status == QL_ERR_MEMORY) {
		ql_collect(L);
		status = ql_loader_next(pass->loader, x, y);
	}
	if (!status)
		status = ql_place_box(L, x, pass->device);
	if (!status)
		status = ql_place_box(L, y, pass->device);
	if (status)
		return ql_raise(L, status);
	ql_pay_gc(L);
	if (!*x) {
		pass_end(pass);
		return 0;
	}
	return *y ? 2 : (lua_pop(L, 1), 1);
}

/* Where batches go: the field device, or where the samples are if that is no CPU, or NULL for that of --device. */
static const struct ql_device *wanted_device(lua_State *L)
{
	const struct ql_device *device = NULL;

	if (lua_getfield(L, 1, "device") == LUA_TSTRING) {
		enum ql_status status = ql_device_by_name(ql_ctx_of(L), "loader: device", lua_tostring(L, -1), &device);

		if (status)
			ql_raise(L, status);
	} else {
		lua_getfield(L, 1, "x");
		device = ql_check_tensor(L, -1, "loader")->storage->device;
		lua_pop(L, 1);
		device = device->remote ? device : NULL;
	}
	lua_pop(L, 1);
	return device;
}

static int loader_open(lua_State *L)
{
	static const luaL_Reg meta[] = {
		{"__call", pass_next}, {"__close", pass_close}, {"__gc", pass_close}, {NULL, NULL}};
	struct ql_loader_plan plan;
	struct pass *pass;
	enum ql_status status;

	read_plan(L, &plan);
	pass = lua_newuserdatauv(L, sizeof(*pass), 0);
	*pass = (struct pass){.device = wanted_device(L)};
	if (ql_metatable_new(L, PASS))
		luaL_setfuncs(L, meta, 0);
	lua_setmetatable(L, -2);
	status = ql_loader_open(ql_ctx_of(L), &plan, &pass->loader);
	if (status == QL_ERR_MEMORY) {
		ql_tensor_keep(plan.x);
		if (plan.y)
			ql_tensor_keep(plan.y);
		ql_collect(L);
		status = ql_loader_open(ql_ctx_of(L), &plan, &pass->loader);
		ql_tensor_release(ql_ctx_of(L), plan.x);
		ql_tensor_release(ql_ctx_of(L), plan.y);
	}
	if (status)
		return ql_raise(L, status);
	lua_pushboolean(L, ql_loader_prefetches(pass->loader));
	return 2;
}

static int loader_seed(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	uint32_t words[4];

	ql_rng_words(ctx->kernels->simd->variant, ctx->seed, ql_rng_take(ctx, 4), 1, words);
	lua_pushinteger(L, (lua_Integer)((uint64_t)words[0] << 32 | words[1]));
	return 1;
}

static int read_bytes(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	const char *path = luaL_checkstring(L, 1);
	uint64_t size = (uint64_t)luaL_checkinteger(L, 2);
	bool exact = lua_toboolean(L, 3);
	struct ql_tensor **box = ql_box_new(L);
	enum ql_status status = ql_bytes_load(ctx, path, size, exact, box);

	if (status == QL_ERR_MEMORY) {
		ql_collect(L);
		status = ql_bytes_load(ctx, path, size, exact, box);
	}
	if (!status)
		status = ql_place_box(L, box, NULL);
	if (status) {
		lua_pushnil(L);
		lua_pushstring(L, ctx->err);
		return 2;
	}
	ql_pay_gc(L);
	return 1;
}

static int bytes_text(lua_State *L)
{
	struct ql_tensor *t;

	ql_host_tensor(L, 1);
	t = ql_check_tensor(L, 1, "bytes_text");
	if (t->dtype != QL_uint8 || !ql_tensor_is_contiguous(t))
		return ql_error(L, "bytes_text: wanted contiguous uint8");
	lua_pushlstring(L, ql_tensor_data(t), (size_t)ql_tensor_nelem(t));
	return 1;
}

static int folder_close(lua_State *L)
{
	DIR **box = lua_touserdata(L, 1);

	if (*box)
		closedir(*box);
	*box = NULL;
	return 0;
}

static int list_folder(lua_State *L)
{
	const char *path = luaL_checkstring(L, 1);
	DIR **box = lua_newuserdatauv(L, sizeof(*box), 0);
	struct dirent *entry;

	*box = NULL;
	if (ql_metatable_new(L, "quoll.folder_")) {
		lua_pushcfunction(L, folder_close);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	*box = opendir(path);
	if (!*box) {
		lua_pushnil(L);
		lua_pushfstring(L, "cannot open: %s", strerror(errno));
		return 2;
	}
	lua_newtable(L);
	for (lua_Integer n = 1; (entry = readdir(*box)); n++) {
		lua_pushstring(L, entry->d_name);
		lua_rawseti(L, -2, n);
	}
	closedir(*box);
	*box = NULL;
	return 1;
}

int ql_open_loader(lua_State *L)
{
	static const luaL_Reg functions[] = {{"loader_length", loader_length}, {"loader_open", loader_open},
		{"loader_seed", loader_seed}, {"read_bytes", read_bytes}, {"bytes_text", bytes_text},
		{"list_folder", list_folder}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	ql_set_functions(L, functions);
	lua_pop(L, 1);
	return 0;
}
