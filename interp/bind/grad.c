/* SPDX-License-Identifier: MIT
 * Methods of a tensor for gradients, and the guards behind tensor.nograd and tensor.fuse.
 */
#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/host/lifetime.h"
#include "interp/prelude/prelude.h"
#include "interp/bind/record.h"
#include "interp/bind/surplus.h"
#include "interp/host/undo.h"
#include "tensor/tape.h"

static struct ql_tensor *self(lua_State *L)
{
	return ql_check_tensor(L, 1, "tensor");
}

/* x:backward()  x:backward(gradient) */
static int method_backward(lua_State *L)
{
	struct ql_tensor *t = self(L),
			 *seed = lua_isnoneornil(L, 2) ? NULL : ql_check_tensor(L, 2, "backward: gradient");
	enum ql_status status = ql_backward(ql_ctx_of(L), t, seed);

	if (status == QL_ERR_MEMORY)
		ql_collect(L);
	if (status)
		return ql_raise(L, status);
	ql_pay_gc(L);
	return 0;
}

static int method_grad(lua_State *L)
{
	struct ql_tensor *t = self(L), **box;

	if (!t->node || t->node->op || !t->node->sum) {
		lua_pushnil(L);
		return 1;
	}
	box = ql_box_new(L);
	*box = ql_tensor_keep(t->node->sum);
	return 1;
}

static int method_zero_grad(lua_State *L)
{
	struct ql_tensor *t = self(L);

	if (t->node && !t->node->op) {
		ql_tensor_release(ql_ctx_of(L), t->node->sum);
		t->node->sum = NULL;
	}
	lua_settop(L, 1);
	return 1;
}

static int method_detach(lua_State *L)
{
	struct ql_tensor *t = self(L), **box;
	enum ql_status status;

	lua_settop(L, 1);
	box = ql_box_new(L);
	status = ql_tensor_alias(ql_ctx_of(L), t, box);

	if (status)
		return ql_raise(L, status);
	if (ql_recorded(L))
		ql_record(L, "alias", 2);
	return 1;
}

static int method_requires_grad(lua_State *L)
{
	lua_pushboolean(L, self(L)->node != NULL);
	return 1;
}

/* x:requires_grad_()  x:requires_grad_(false) */
static int method_set_requires_grad(lua_State *L)
{
	struct ql_tensor *t = self(L);
	struct ql_ctx *ctx = ql_ctx_of(L);
	enum ql_status status;

	if (!lua_isnoneornil(L, 2) && !lua_isboolean(L, 2))
		return ql_error(L, "requires_grad_: wanted true or false, got %s", luaL_typename(L, 2));
	if (lua_isboolean(L, 2) && !lua_toboolean(L, 2)) {
		ql_tape_detach(ctx, t);
	} else {
		status = ql_tape_leaf(ctx, t);
		if (status)
			return ql_raise(L, status);
	}
	lua_settop(L, 1);
	return 1;
}

/* ---- nograd ---- */

/* nograd() -> a value for local … <close>: until it is closed nothing is recorded */
static int nograd(lua_State *L)
{
	ql_guard_push(L, QL_GUARD_NOGRAD);
	return 1;
}

/* deferring() -> such a value: until it is closed elementwise ops may wait (tensor/deferred.h) */
static int deferring(lua_State *L)
{
	ql_guard_push(L, QL_GUARD_DEFERRING);
	return 1;
}

/* settled(…) -> its arguments, tensors among them with their elements computed */
static int settled(lua_State *L)
{
	int n = lua_gettop(L);

	for (int i = 1; i <= n; i++)
		ql_test_tensor(L, i);
	return n;
}

/* taped(f, …) -> f(…), recorded on the tape even where nograd is open; f must not yield */
static int taped(lua_State *L)
{
	struct ql_ctx *ctx = ql_ctx_of(L);
	int off = ctx->nograd, status;

	luaL_checkany(L, 1);
	ctx->nograd = 0;
	status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
	ctx->nograd = off;
	return status == LUA_OK ? lua_gettop(L) : lua_error(L);
}

static int recording(lua_State *L)
{
	lua_pushboolean(L, ql_ctx_of(L)->nograd == 0);
	return 1;
}

static const struct ql_doc docs[] = {
	{"backward", "loss:backward()  y:backward(gradient)",
		"Adds the gradient of a value of one element to x:grad() of every tensor with requires_grad that it was made "
		"from; a value with more elements wants the gradient to begin with, of its own shape. Afterwards the graph is "
		"gone: a second backward needs the value computed again. If it fails or is interrupted, no gradient has "
		"changed.",
		"x = tensor{3, 4, grad=true}\nloss = (x * x):sum()\nloss:backward()\nprint(x:grad())  --> float32(2)  6 8",
		NULL},
	{"grad", "x:grad()",
		"The sum of the gradients of all backwards so far, or nil. It is the tensor itself, not a copy.",
		"x = tensor{2, grad=true}\nprint(x:grad())  --> nil\ny = x * 5\ny:backward()\nprint(x:grad():item())  --> 5.0",
		NULL},
	{"zero_grad", "x:zero_grad()", "Forgets the gradient and returns x.",
		"x = tensor{2, grad=true}\ny = x * 5\ny:backward()\nprint(x:zero_grad():grad())  --> nil", NULL},
	{"detach", "x:detach()", "The same elements, as a value through which no gradient flows. See help 'nograd'.",
		"x = tensor{2, grad=true}\nprint((x * 5):detach():requires_grad())  --> false", NULL},
	{"requires_grad", "x:requires_grad()",
		"Whether a gradient will flow to x: it was made with grad=true or from such a tensor.",
		"x = tensor{2, grad=true}\nprint((x + 1):requires_grad(), tensor{1}:requires_grad())  --> true false",
		NULL},
	{"requires_grad_", "x:requires_grad_()  x:requires_grad_(false)",
		"Makes x, a float tensor that was not made from others, collect its gradient (or stop doing so), and returns x. "
		"Afterwards it is written to inside tensor.nograd only.",
		"w = tensor.ones(2):requires_grad_()\nw:sum():backward()\nprint(w:grad())  --> float32(2)  1 1", NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static const luaL_Reg methods[] = {{"backward", method_backward}, {"grad", method_grad},
	{"zero_grad", method_zero_grad}, {"detach", method_detach}, {"requires_grad", method_requires_grad},
	{"requires_grad_", method_set_requires_grad}, {NULL, NULL}};

int ql_open_grad(lua_State *L)
{
	static const luaL_Reg internal[] = {{"nograd", nograd}, {"taped", taped}, {"recording", recording},
		{"deferring", deferring}, {"settled", settled}, {NULL, NULL}};
	static struct ql_doc_list list = {.module = "x", .docs = docs};

	ql_doc_register(&list);
	ql_lifetime_harmless(L, taped);
	luaL_getmetatable(L, QL_TENSOR);
	lua_getfield(L, -1, "methods");
	ql_set_documented(L, methods, docs);
	lua_pop(L, 2);
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, internal, 0);
	lua_pop(L, 1);
	return 0;
}
