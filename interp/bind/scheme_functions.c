/* SPDX-License-Identifier: MIT
 * Calls the Lua functions of a number format, protected: what they raise becomes the message of a status. They live as long
 * as the formats, until the state closes, in a table of the registry.
 */
#include "interp/bind/scheme_functions.h"

#include <lauxlib.h>

#include "interp/host/box.h"
#include "interp/host/state.h"

#define FUNCTIONS "quoll.scheme functions"

/* One call of a function by the library. */
struct call {
	const struct ql_codec_functions *f;
	const char *function;
	struct ql_tensor *a, *b; /* b may be NULL */
	bool number;             /* the result may be one */
	struct ql_tensor *result;
};

static void push_operand(lua_State *L, struct ql_tensor *t)
{
	if (t)
		*ql_box_new(L) = ql_tensor_keep(t);
	else
		lua_pushnil(L);
}

static int protected_call(lua_State *L)
{
	struct call *c = lua_touserdata(L, 1);
	struct ql_tensor *t;

	luaL_getsubtable(L, LUA_REGISTRYINDEX, FUNCTIONS);
	lua_rawgetp(L, -1, c->f->key);
	lua_getfield(L, -1, c->function);
	push_operand(L, c->a);
	push_operand(L, c->b);
	lua_call(L, 2, 1);
	t = ql_test_tensor(L, -1);
	if (t) {
		c->result = ql_tensor_keep(t);
	} else if (lua_type(L, -1) != LUA_TNUMBER || !c->number) {
		return luaL_error(L, "wanted a tensor, got %s", luaL_typename(L, -1));
	} else if (ql_tensor_of_f32(ql_ctx_of(L), (float)lua_tonumber(L, -1), &c->result)) {
		return luaL_error(L, "%s", ql_ctx_of(L)->err);
	}
	return 0;
}

/* The text of an error, which may be any value. */
static int protected_text(lua_State *L)
{
	luaL_tolstring(L, 1, NULL);
	return 1;
}

/* Pops the error. */
static enum ql_status raised(lua_State *L, const struct call *c)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	enum ql_status status;
	const char *text;

	lua_pushcfunction(L, protected_text);
	lua_insert(L, -2);
	text = lua_pcall(L, 1, 1, 0) ? NULL : lua_tostring(L, -1);
	status = ql_fail(ctx, ctx->interrupted ? QL_ERR_INTERRUPTED : QL_ERR_ARGUMENT, "scheme %s: %s: %s", c->f->name,
		c->function, text ? text : "failed");
	lua_pop(L, 1);
	ql_tensor_release(ctx, c->result);
	return status;
}

static enum ql_status call(struct ql_ctx *ctx, struct call *c, struct ql_tensor **out)
{
	lua_State *L = ((struct ql_state *)ctx->host)->running;
	bool recorded = ctx->recorded, failed;

	*out = NULL;
	if (!lua_checkstack(L, 8))
		return ql_fail(ctx, QL_ERR_MEMORY,
			"scheme %s: %s: wanted room for a call, got too many calls inside each other", c->f->name,
			c->function);
	ctx->recorded = false; /* graph.trace sees the op that needs the function, not what is in it */
	lua_pushcfunction(L, protected_call);
	lua_pushlightuserdata(L, c);
	failed = lua_pcall(L, 1, 0, 0) != LUA_OK;
	ctx->recorded = recorded;
	if (failed)
		return raised(L, c);
	*out = c->result;
	return QL_OK;
}

static enum ql_status fit(struct ql_ctx *ctx, const struct ql_codec_functions *f, struct ql_tensor *x,
	struct ql_tensor *importance, struct ql_tensor **scale)
{
	return call(ctx, &(struct call){.f = f, .function = "fit", .a = x, .b = importance, .number = true}, scale);
}

static enum ql_status encode(struct ql_ctx *ctx, const struct ql_codec_functions *f, struct ql_tensor *x,
	struct ql_tensor *scale, struct ql_tensor **codes)
{
	return call(ctx, &(struct call){.f = f, .function = "encode", .a = x, .b = scale}, codes);
}

static enum ql_status decode(struct ql_ctx *ctx, const struct ql_codec_functions *f, struct ql_tensor *codes,
	struct ql_tensor *scale, struct ql_tensor **x)
{
	return call(ctx, &(struct call){.f = f, .function = "decode", .a = codes, .b = scale}, x);
}

void ql_scheme_functions_keep(lua_State *L, struct ql_codec_functions *f)
{
	*f = (struct ql_codec_functions){.key = lua_topointer(L, -1), .encode = encode, .decode = decode};
	if (lua_getfield(L, -1, "fit") == LUA_TFUNCTION)
		f->fit = fit;
	lua_pop(L, 1);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, FUNCTIONS);
	lua_insert(L, -2);
	lua_rawsetp(L, -2, f->key);
	lua_pop(L, 1);
}

void ql_scheme_functions_drop(lua_State *L, const struct ql_codec_functions *f)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, FUNCTIONS);
	lua_pushnil(L);
	lua_rawsetp(L, -2, f->key);
	lua_pop(L, 1);
}
