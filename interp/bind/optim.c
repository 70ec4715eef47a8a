/* SPDX-License-Identifier: MIT
 * What the optimizers of the prelude are made of: steps over lists of tensors, norms and clipping.
 */
#include "interp/bind/call.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "nn/optimizer.h"

/* A list of tensors as an array in a userdata, which is pushed; *n of them. */
static struct ql_tensor **read_list(lua_State *L, int index, const char *what, int *n)
{
	struct ql_tensor **list;

	luaL_checktype(L, index, LUA_TTABLE);
	*n = (int)luaL_len(L, index);
	list = lua_newuserdatauv(L, ql_size_array(*n, sizeof(struct ql_tensor *)), 0);
	for (int i = 0; i < *n; i++) {
		lua_rawgeti(L, index, i + 1);
		list[i] = ql_check_tensor(L, -1, what);
		lua_pop(L, 1); /* the caller's table keeps it */
	}
	return list;
}

/* Values at 1, gradients at 2 and the states from 3 on (tables; nil: none), as an array that is pushed. */
static struct ql_trained *read_trained(lua_State *L, const char *what, int states, int *n)
{
	int same;
	struct ql_tensor **value = read_list(L, 1, what, n), **gradient = read_list(L, 2, what, &same),
			 **state[QL_TRAINED_STATES] = {NULL};
	struct ql_trained *list;

	luaL_argcheck(L, same == *n, 2, "one gradient for each tensor");
	for (int s = 0; s < states; s++) {
		if (lua_isnoneornil(L, 3 + s))
			continue;
		state[s] = read_list(L, 3 + s, what, &same);
		luaL_argcheck(L, same == *n, 3 + s, "one state for each tensor");
	}
	list = lua_newuserdatauv(L, ql_size_array(*n, sizeof(*list)), 0);
	for (int i = 0; i < *n; i++)
		list[i] = (struct ql_trained){.value = value[i],
			.gradient = gradient[i],
			.state = {state[0] ? state[0][i] : NULL, state[1] ? state[1][i] : NULL,
				state[2] ? state[2][i] : NULL}};
	return list;
}

/* The number of the step of each tensor, a list at `index`. */
static void read_steps(lua_State *L, int index, int n, struct ql_trained *list)
{
	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, index, i + 1);
		list[i].step = luaL_checkinteger(L, -1);
		lua_pop(L, 1);
	}
}

/* Arguments scale, limit from `index` on. */
static struct ql_clip read_clip(lua_State *L, int index)
{
	return (struct ql_clip){.scale = luaL_checknumber(L, index), .limit = luaL_checknumber(L, index + 1)};
}

/* sgd_step(values, gradients, momenta or nil, scale, limit, lr, decay, momentum, nesterov) */
static int sgd_step(lua_State *L)
{
	struct ql_sgd o = {.clip = read_clip(L, 4),
		.lr = luaL_checknumber(L, 6),
		.decay = luaL_checknumber(L, 7),
		.momentum = luaL_checknumber(L, 8),
		.nesterov = lua_toboolean(L, 9)};
	int n;
	struct ql_trained *list = read_trained(L, "sgd", 1, &n);
	enum ql_status status = ql_sgd_step(ql_ctx_of(L), n, list, &o);

	return status ? ql_raise(L, status) : 0;
}

/* adam_step(values, gradients, first moments, second moments, steps, scale, limit, lr, decay, beta1, beta2, eps,
 * decoupled) */
static int adam_step(lua_State *L)
{
	struct ql_adam o = {.clip = read_clip(L, 6),
		.lr = luaL_checknumber(L, 8),
		.decay = luaL_checknumber(L, 9),
		.beta1 = luaL_checknumber(L, 10),
		.beta2 = luaL_checknumber(L, 11),
		.eps = luaL_checknumber(L, 12),
		.decoupled = lua_toboolean(L, 13)};
	int n;
	struct ql_trained *list = read_trained(L, "adam", 2, &n);
	enum ql_status status;

	read_steps(L, 5, n, list);
	status = ql_adam_step(ql_ctx_of(L), n, list, &o);
	return status ? ql_raise(L, status) : 0;
}

/* rmsprop_step(values, gradients, means of squares, momenta or nil, means or nil, scale, limit, lr, decay, alpha, eps, momentum) */
static int rmsprop_step(lua_State *L)
{
	struct ql_rmsprop o = {.clip = read_clip(L, 6),
		.lr = luaL_checknumber(L, 8),
		.decay = luaL_checknumber(L, 9),
		.alpha = luaL_checknumber(L, 10),
		.eps = luaL_checknumber(L, 11),
		.momentum = luaL_checknumber(L, 12),
		.centered = !lua_isnil(L, 5)};
	int n;
	struct ql_trained *list = read_trained(L, "rmsprop", 3, &n);
	enum ql_status status = ql_rmsprop_step(ql_ctx_of(L), n, list, &o);

	return status ? ql_raise(L, status) : 0;
}

/* adagrad_step(values, gradients, sums of squares, steps, scale, limit, lr, decay, lr_decay, eps) */
static int adagrad_step(lua_State *L)
{
	struct ql_adagrad o = {.clip = read_clip(L, 5),
		.lr = luaL_checknumber(L, 7),
		.decay = luaL_checknumber(L, 8),
		.lr_decay = luaL_checknumber(L, 9),
		.eps = luaL_checknumber(L, 10)};
	int n;
	struct ql_trained *list = read_trained(L, "adagrad", 1, &n);
	enum ql_status status;

	read_steps(L, 4, n, list);
	status = ql_adagrad_step(ql_ctx_of(L), n, list, &o);
	return status ? ql_raise(L, status) : 0;
}

/* gradient_norm(list) -> number */
static int gradient_norm(lua_State *L)
{
	int n;
	struct ql_tensor **list = read_list(L, 1, "norm", &n);
	double norm;
	enum ql_status status = ql_gradient_norm(ql_ctx_of(L), n, list, &norm);

	if (status)
		return ql_raise(L, status);
	lua_pushnumber(L, norm);
	return 1;
}

/* gradient_clip(list, scale, limit) */
static int gradient_clip(lua_State *L)
{
	struct ql_clip clip = read_clip(L, 2);
	int n;
	struct ql_tensor **list = read_list(L, 1, "clip", &n);
	enum ql_status status = ql_gradient_clip(ql_ctx_of(L), n, list, &clip);

	return status ? ql_raise(L, status) : 0;
}

int ql_open_optim(lua_State *L)
{
	static const luaL_Reg functions[] = {{"sgd_step", sgd_step}, {"adam_step", adam_step},
		{"rmsprop_step", rmsprop_step}, {"adagrad_step", adagrad_step}, {"gradient_norm", gradient_norm},
		{"gradient_clip", gradient_clip}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
	return 0;
}
