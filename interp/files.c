/* SPDX-License-Identifier: MIT
 * tensor.load and tensor.save. Between the library and Lua stands a list of named tensors in a box of its
 * own, so that an error of Lua on the way loses nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "interp/bind.h"
#include "interp/libs.h"
#include "tensor/io/format.h"

#define QL_NAMED "quoll.named"

struct list_box {
	struct ql_ctx *ctx;
	struct ql_named_list list;
};

static int list_gc(lua_State *L)
{
	struct list_box *b = lua_touserdata(L, 1);

	ql_named_clear(b->ctx, &b->list);
	return 0;
}

static struct ql_named_list *list_new(lua_State *L)
{
	struct list_box *b = lua_newuserdatauv(L, sizeof(*b), 0);

	*b = (struct list_box){.ctx = ql_ctx_of(L)};
	luaL_setmetatable(L, QL_NAMED);
	return &b->list;
}

static const char *file_name(lua_State *L, const char *function)
{
	if (lua_type(L, 1) != LUA_TSTRING)
		ql_error(L, "%s: file: wanted a name, got %s", function, luaL_typename(L, 1));
	return lua_tostring(L, 1);
}

static void push_tensor(lua_State *L, struct ql_named *entry)
{
	struct ql_tensor **box = ql_box_new(L);

	*box = entry->tensor;
	entry->tensor = NULL;
}

static int tensor_load(lua_State *L)
{
	const char *file = file_name(L, "load");
	struct ql_named_list *list;
	enum ql_status status;

	lua_settop(L, 1);
	list = list_new(L);
	status = ql_file_load(ql_ctx_of(L), file, list, NULL);
	if (status)
		return ql_raise(L, status);
	if (list->n == 1 && list->at[0].name[0] == '\0') {
		push_tensor(L, &list->at[0]);
		ql_pay_gc(L);
		return 1;
	}
	lua_createtable(L, 0, list->n > 1 << 20 ? 0 : (int)list->n);
	for (int64_t i = 0; i < list->n; i++) {
		lua_pushstring(L, list->at[i].name);
		push_tensor(L, &list->at[i]);
		lua_settable(L, -3);
	}
	ql_pay_gc(L);
	return 1;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct ql_named *)a)->name, ((const struct ql_named *)b)->name);
}

/* Fills the list from the table at `index`, sorted by name: the same table gives the same file. */
static void add_table(lua_State *L, int index, struct ql_named_list *list)
{
	struct ql_tensor *t;
	enum ql_status status;

	lua_pushnil(L);
	while (lua_next(L, index)) {
		if (lua_type(L, -2) != LUA_TSTRING)
			ql_error(L, "save: wanted tensors by name, as in {weight=t}, got %s",
			        lua_type(L, -2) == LUA_TNUMBER ? "a list" : luaL_typename(L, -2));
		t = ql_test_tensor(L, -1);
		if (!t)
			ql_error(L, "save: %s: wanted a tensor, got %s", lua_tostring(L, -2),
			        luaL_typename(L, -1));
		status = ql_named_add(ql_ctx_of(L), list, lua_tostring(L, -2), t);
		if (status)
			ql_raise(L, status);
		lua_pop(L, 1);
	}
	if (list->n > 1)
		qsort(list->at, (size_t)list->n, sizeof(list->at[0]), by_name);
}

static const struct ql_attr save_attrs[] = {
        {"compress", QL_ATTR_BOOL, 0, NULL, ".npz: deflate what is written (default false)"},
        {NULL, QL_ATTR_END, 0, NULL, NULL},
};

static int tensor_save(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	const char *file = file_name(L, "save");
	struct ql_tensor *t = ql_test_tensor(L, 2);
	struct ql_arguments args;
	struct ql_named_list *list;
	enum ql_status status;

	if (!t && lua_type(L, 2) != LUA_TTABLE)
		return ql_error(L, "save: wanted a tensor or a table of tensors by name, got %s",
		        luaL_typename(L, 2));
	ql_read_arguments(L, "save", save_attrs, 3, &args);
	list = list_new(L);
	if (t) {
		status = ql_named_add(ctx, list, "", t);
		if (status)
			return ql_raise(L, status);
	} else {
		add_table(L, 2, list);
	}
	status = ql_file_save(ctx, file, list, args.value[0].set && args.value[0].b ? QL_SAVE_COMPRESS : 0);
	return status ? ql_raise(L, status) : 0;
}

static const struct ql_doc docs[] = {
        {"load", "tensor.load(file)",
                "Reads a file by the ending of its name (.npy .npz .safetensors .png, idx with or without "
                ".gz) "
                "or by what it begins with: a tensor, or a table of tensors by name for .npz and "
                ".safetensors. "
                "Quantized tensors in .safetensors come back quantized. A damaged file is an error of one "
                "line; nothing in a file is ever run. See files.",
                "file = os.tmpname() .. '.npz'\ntensor.save(file, {a=tensor{1,2}, b=tensor{3}})\n"
                "t = tensor.load(file)\nprint(t.a:size(1), t.b:item())  --> 2 3.0\nos.remove(file)",
                NULL},
        {"save", "tensor.save(file, x)  tensor.save(file, {name=x, …}, {compress=true})",
                "Writes a tensor, or tensors by name, in the format of the ending: .npy (one plain tensor), "
                ".npz (plain ones), .safetensors (all, with their scales). The file is replaced as a whole "
                "or "
                "not at all. A tensor without a name is called arr_0 in .npz and tensor in .safetensors.",
                "file = os.tmpname() .. '.safetensors'\n"
                "tensor.save(file, {w=tensor{1,-2}:quantize('int8')})\n"
                "print(tensor.load(file).w:dtype())  --> int8\nos.remove(file)",
                save_attrs},
        {NULL, NULL, NULL, NULL, NULL},
};

int ql_open_files(lua_State *L)
{
	static const luaL_Reg functions[] = {{"load", tensor_load}, {"save", tensor_save}, {NULL, NULL}};
	static struct ql_doc_list list = {.module = "tensor", .docs = docs};

	ql_doc_register(&list);
	luaL_newmetatable(L, QL_NAMED);
	lua_pushcfunction(L, list_gc);
	lua_setfield(L, -2, "__gc");
	lua_getglobal(L, "tensor");
	ql_set_functions(L, functions);
	lua_pop(L, 2);
	return 0;
}
