/* SPDX-License-Identifier: MIT
 * Recordings of runs on a device (tensor/recording.h) as values for nn/base/recorded.lua. Errors and reasons come back as
 * texts: the caller runs the ops without a recording.
 */
#include "interp/bind/call.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/recording.h"
#include "tensor/tape.h"

#define RECORDING "quoll.recording"
#define MOST 256 /* inputs or results */

/* The tensors of the list at `index`, which the list keeps alive; false: it has others, or too many. */
static bool read_list(lua_State *L, int index, struct ql_tensor *list[MOST], int *n)
{
	lua_Unsigned length;

	luaL_checktype(L, index, LUA_TTABLE);
	length = lua_rawlen(L, index);
	if (length > MOST)
		return false;
	*n = (int)length;
	for (int i = 0; i < *n; i++) {
		lua_rawgeti(L, index, i + 1);
		list[i] = ql_test_tensor(L, -1);
		lua_pop(L, 1);
		if (!list[i])
			return false;
	}
	return true;
}

/* nil and the reason */
static int refused(lua_State *L, const char *why)
{
	lua_pushnil(L);
	lua_pushstring(L, why);
	return 2;
}

static struct ql_recording **check(lua_State *L)
{
	return luaL_checkudata(L, 1, RECORDING);
}

/* Also of one that is not ended: the device goes on as before. */
static int recording_free(lua_State *L)
{
	struct ql_recording **r = check(L);

	ql_recording_free(ql_ctx_of(L), *r);
	*r = NULL;
	return 0;
}

/* recordable(inputs) -> true; or nil and why runs on these tensors are not recorded */
static int recordable(lua_State *L)
{
	struct ql_tensor *in[MOST];
	int n;
	const char *why;

	if (!read_list(L, 1, in, &n))
		return refused(L, "there are too many inputs");
	why = ql_recording_refusal(ql_ctx_of(L), n, in);
	if (why)
		return refused(L, why);
	lua_pushboolean(L, true);
	return 1;
}

/* record_begin(inputs, constants, training) -> a recording, which has begun, and its own inputs; or nil and why not */
static int record_begin(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_tensor *in[MOST];
	struct ql_recording **r;
	int n, constants = (int)luaL_len(L, 2);
	enum ql_status status;

	if (!read_list(L, 1, in, &n))
		return refused(L, "there are too many inputs");
	lua_settop(L, 3);
	lua_createtable(L, n, 0);
	for (int i = 0; i < n; i++) { /* boxes first: while it records, nothing may be collected */
		ql_box_new(L);
		lua_rawseti(L, 4, i + 1);
	}
	r = lua_newuserdatauv(L, sizeof(struct ql_recording *), 0);
	*r = NULL;
	if (ql_metatable_new(L, RECORDING)) {
		lua_pushcfunction(L, recording_free);
		lua_setfield(L, -2, "__gc");
		lua_pushcfunction(L, recording_free);
		lua_setfield(L, -2, "__close");
	}
	lua_setmetatable(L, -2);
	status = ql_recording_begin(ctx, n, in, lua_toboolean(L, 3), r);
	if (status) {
		ql_recording_free(ctx, *r);
		*r = NULL;
		return refused(L, ctx->err);
	}
	for (int i = 0; i < n; i++) {
		struct ql_tensor **box;

		lua_rawgeti(L, 4, i + 1);
		box = ql_test_box(L, -1);
		*box = ql_tensor_keep(ql_recording_input(*r, i));
		lua_pop(L, 1);
	}
	for (int i = 1; i <= constants; i++) {
		lua_rawgeti(L, 2, i);
		if (ql_test_tensor(L, -1))
			ql_recording_constant(ctx, *r, ql_test_tensor(L, -1));
		lua_pop(L, 1);
	}
	lua_pushvalue(L, 4);
	return 2;
}

/* record_end(recording, results) -> true; or nil and why it is useless */
static int record_end(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_recording **r = check(L);
	struct ql_tensor *result[MOST];
	int n;

	if (!read_list(L, 2, result, &n))
		return refused(L, "there are too many results");
	if (ql_recording_end(ctx, *r, n, result))
		return refused(L, ctx->err);
	lua_pushboolean(L, true);
	return 1;
}

/* replay(recording, inputs) -> list of results; nil: it does not hold any more */
static int replay(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_recording **r = check(L);
	struct ql_tensor *in[MOST], *out[MOST] = {NULL};
	int n, results;
	enum ql_status status;

	if (!*r || !ql_recording_holds(*r) || !read_list(L, 2, in, &n))
		return 0;
	results = ql_recording_results(*r);
	lua_createtable(L, results, 0);
	for (int i = 0; i < results; i++) {
		ql_box_new(L);
		lua_rawseti(L, 3, i + 1);
	}
	status = ql_recording_run(ctx, *r, in, out);
	if (status == QL_ERR_MEMORY) {
		ql_collect(L);
		status = ql_recording_run(ctx, *r, in, out);
	}
	for (int i = 0; i < results; i++) {
		struct ql_tensor **box;

		lua_rawgeti(L, 3, i + 1);
		box = ql_test_box(L, -1);
		*box = out[i];
		lua_pop(L, 1);
	}
	if (status)
		return ql_raise(L, status);
	ql_pay_gc(L);
	return 1;
}

/* set_grad(leaf, gradient): replaces the sum of its gradients */
static int set_grad(lua_State *L)
{
	struct ql_tensor *t = ql_check_tensor(L, 1, "set_grad"), *sum = ql_check_tensor(L, 2, "set_grad");

	if (!t->node || t->node->op)
		return ql_error(L, "set_grad: wanted a tensor that collects a gradient, got another one");
	ql_tensor_keep(sum);
	ql_tensor_release(ql_ctx_of(L), t->node->sum);
	t->node->sum = sum;
	return 0;
}

int ql_open_recording(lua_State *L)
{
	static const luaL_Reg functions[] = {{"recordable", recordable}, {"record_begin", record_begin},
		{"record_end", record_end}, {"record_free", recording_free}, {"replay", replay}, {"set_grad", set_grad},
		{NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
	return 0;
}
