/* SPDX-License-Identifier: MIT
 * Boxes, and raising.
 */
#include "interp/host/box.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "interp/host/interrupt.h"
#include "interp/prelude/prelude.h"
#include "interp/host/text.h"
#include "tensor/deferred.h"
#include "tensor/remote.h"

/* Pushes the place of the caller, or, when that is the prelude, of the innermost line outside of it, as base.fail does:
 * what an op of a module is given comes from the one who calls the module. x[mask] and -x call their op from a metamethod of C,
 * which has no line. "" when there is none. */
static void push_place(lua_State *L)
{
	lua_Debug ar;

	if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "Sn", &ar) ||
		(!ql_prelude_is_own(ar.source) && strcmp(ar.namewhat, "metamethod") != 0)) {
		luaL_where(L, 1);
		return;
	}
	for (int level = 2; lua_getstack(L, level, &ar) && lua_getinfo(L, "Sl", &ar); level++)
		if (ar.currentline > 0 && !ql_prelude_is_own(ar.source)) {
			lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
			return;
		}
	lua_pushliteral(L, "");
}

static int raise_text(lua_State *L, const char *text)
{
	char line[2048];

	push_place(L);
	ql_text_escape(text, strlen(text), SIZE_MAX, line, sizeof(line));
	lua_pushstring(L, line);
	lua_concat(L, 2);
	return lua_error(L);
}

int ql_error(lua_State *L, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return raise_text(L, text);
}

int ql_raise(lua_State *L, enum ql_status status)
{
	if (status == QL_ERR_INTERRUPTED)
		ql_interrupt_raised(L);
	return raise_text(L, ql_ctx_of(L)->err);
}

bool ql_metatable_new(lua_State *L, const char *name)
{
	if (!luaL_newmetatable(L, name))
		return false;
	lua_pushstring(L, name);
	lua_setfield(L, -2, "__metatable");
	return true;
}

/* Every call of an op needs the metatable of boxes: its address, and its place in the registry, save looking up its name. */
void ql_box_open(lua_State *L)
{
	struct ql_state *s = ql_state_of(L);

	ql_metatable_new(L, QL_TENSOR);
	s->boxes = lua_topointer(L, -1);
	lua_pushvalue(L, -1);
	s->boxes_ref = luaL_ref(L, LUA_REGISTRYINDEX);
}

struct ql_tensor **ql_box_new(lua_State *L)
{
	struct ql_tensor **box = lua_newuserdatauv(L, sizeof(*box), 0);

	*box = NULL;
	lua_rawgeti(L, LUA_REGISTRYINDEX, ql_state_of(L)->boxes_ref);
	lua_setmetatable(L, -2);
	if (ql_state_of(L)->lifetime.closing)
		ql_lifetime_late(L);
	return box;
}

struct ql_tensor **ql_test_box(lua_State *L, int index)
{
	void *box = lua_touserdata(L, index);
	bool same;

	if (!box || !lua_getmetatable(L, index))
		return NULL;
	same = lua_topointer(L, -1) == ql_state_of(L)->boxes;
	lua_pop(L, 1);
	return same ? box : NULL;
}

struct ql_tensor *ql_test_operand(lua_State *L, int index)
{
	struct ql_tensor **box = ql_test_box(L, index);

	if (box && !*box)
		ql_error(L, "tensor: wanted a live tensor, got one that was already closed");
	return box ? *box : NULL;
}

struct ql_tensor *ql_test_tensor(lua_State *L, int index)
{
	struct ql_tensor *t = ql_test_operand(L, index);
	enum ql_status status = t ? ql_deferred_settle(ql_ctx_of(L), t->storage) : QL_OK;

	return status ? (ql_raise(L, status), NULL) : t;
}

struct ql_tensor *ql_check_tensor(lua_State *L, int index, const char *what)
{
	struct ql_tensor *t = ql_test_tensor(L, index);

	if (!t)
		ql_error(L, "%s: wanted a tensor, got %s", what, luaL_typename(L, index));
	return t;
}

enum ql_status ql_place_box(lua_State *L, struct ql_tensor **box, const struct ql_device *device)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_tensor *t = *box;
	enum ql_status status;

	device = device ? device : ctx->device ? ctx->device : &ql_device_cpu;
	if (!t || t->storage->device == device)
		return QL_OK;
	status = ql_tensor_to(ctx, t, device, box);
	if (!*box)
		*box = t; /* as it was */
	else
		ql_tensor_release(ctx, t);
	return status;
}

struct ql_tensor *ql_host_tensor(lua_State *L, int index)
{
	struct ql_tensor *t = ql_test_tensor(L, index), **box;
	enum ql_status status;

	if (!t || !ql_is_remote(t))
		return t;
	index = lua_absindex(L, index);
	box = ql_box_new(L);
	status = ql_tensor_host(ql_ctx_of(L), t, box);
	if (status)
		ql_raise(L, status);
	lua_replace(L, index);
	return *box;
}

void ql_set_functions(lua_State *L, const luaL_Reg *functions)
{
	luaL_setfuncs(L, functions, 0);
}

void ql_set_text(lua_State *L, const char *key, const char *value)
{
	lua_pushstring(L, value);
	lua_setfield(L, -2, key);
}

void ql_set_integer(lua_State *L, const char *key, lua_Integer value)
{
	lua_pushinteger(L, value);
	lua_setfield(L, -2, key);
}

static struct ql_doc_list *docs;

void ql_doc_register(struct ql_doc_list *list)
{
	for (const struct ql_doc_list *l = docs; l; l = l->next)
		if (l == list)
			return;
	list->next = docs;
	docs = list;
}

const struct ql_doc_list *ql_doc_lists(void)
{
	return docs;
}
