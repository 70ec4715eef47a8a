/* SPDX-License-Identifier: MIT
 * Lists of numbers and texts from Lua: tables and tensors. Quantized tensors count as the real numbers they
 * stand for.
 */
#include "interp/plot/read.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "interp/host/utf8.h"
#include "interp/bind/surplus.h"
#include "tensor/codec.h"
#include "tensor/remote.h"

_Noreturn void ql_read_fail(const struct ql_plot_reader *r, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ql_error(r->L, "plot.%s: %s%s%s", r->f->kind->doc.name, r->what ? r->what : "", r->what ? ": " : "", text);
	__builtin_unreachable();
}

void ql_read_check(const struct ql_plot_reader *r, enum ql_status status)
{
	if (status)
		ql_raise(r->L, status);
}

bool ql_read_is_number(lua_State *L, int index)
{
	const struct ql_tensor *t = ql_test_tensor(L, index);

	return lua_type(L, index) == LUA_TNUMBER || (t && t->rank == 0);
}

bool ql_read_is_numbers(lua_State *L, int index)
{
	bool numbers;

	if (ql_test_tensor(L, index))
		return true;
	if (lua_type(L, index) != LUA_TTABLE)
		return false;
	if (lua_rawgeti(L, index, 1) == LUA_TNIL)
		numbers = lua_rawlen(L, index) == 0;
	else
		numbers = ql_read_is_number(L, -1);
	lua_pop(L, 1);
	return numbers;
}

/* Real values of any tensor, in order. */
static enum ql_status tensor_numbers(struct ql_ctx *ctx, struct ql_tensor *t, double *out)
{
	struct ql_tensor *host = NULL, *decoded = NULL, *wide = NULL;
	enum ql_status status = ql_tensor_host(ctx, t, &host);

	if (!status && t->q)
		status = ql_decode(ctx, host, &decoded);
	if (!status)
		status = ql_tensor_cast(ctx, decoded ? decoded : host, QL_float64, &wide);
	if (!status)
		memcpy(out, ql_tensor_data(wide), (size_t)ql_tensor_nelem(t) * sizeof(double));
	ql_tensor_release(ctx, host);
	ql_tensor_release(ctx, decoded);
	ql_tensor_release(ctx, wide);
	return status;
}

double ql_read_number(const struct ql_plot_reader *r, int index)
{
	struct ql_tensor *t = ql_test_tensor(r->L, index);
	double value = 0;

	if (lua_type(r->L, index) == LUA_TNUMBER)
		return lua_tonumber(r->L, index);
	if (!t || ql_tensor_nelem(t) != 1)
		ql_read_fail(r, "wanted a number, got %s", t ? "a tensor of several" : luaL_typename(r->L, index));
	ql_read_check(r, tensor_numbers(r->f->ctx, t, &value));
	return value;
}

int64_t ql_read_length(const struct ql_plot_reader *r, int index)
{
	const struct ql_tensor *t = ql_test_tensor(r->L, index);

	if (t)
		return ql_tensor_nelem(t);
	if (lua_type(r->L, index) != LUA_TTABLE)
		ql_read_fail(r, "wanted a list or a tensor, got %s", luaL_typename(r->L, index));
	if (lua_topointer(r->L, index) == lua_topointer(r->L, r->table)) /* options are there */
		ql_check_gaps(r->L, "plot", "numbers", index);
	else
		ql_check_list(r->L, "plot", "numbers, options beside the data", index);
	return (int64_t)lua_rawlen(r->L, index);
}

void ql_read_numbers(const struct ql_plot_reader *r, int index, int64_t n, double *out)
{
	struct ql_tensor *t = ql_test_tensor(r->L, index);
	lua_State *L = r->L;

	index = lua_absindex(L, index);
	if (t) {
		ql_read_check(r, tensor_numbers(r->f->ctx, t, out));
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		if (lua_rawgeti(L, index, i + 1) != LUA_TNUMBER && !ql_read_is_number(L, -1))
			ql_read_fail(
				r, "element %lld: wanted a number, got %s", (long long)i + 1, luaL_typename(L, -1));
		out[i] = ql_read_number(r, -1);
		lua_pop(L, 1);
	}
}

/* ---- texts ---- */

char *ql_read_text(const struct ql_plot_reader *r, int index)
{
	lua_State *L = r->L;
	int type = lua_type(L, index);
	size_t n;
	const char *text;
	char *clean;

	if (type != LUA_TSTRING && type != LUA_TNUMBER && type != LUA_TBOOLEAN)
		ql_read_fail(r, "wanted a text, got %s", luaL_typename(L, index));
	text = luaL_tolstring(L, index, &n);
	clean = ql_utf8_clean(r->f->ctx, text, n);
	lua_pop(L, 1);
	if (!clean)
		ql_raise(L, QL_ERR_MEMORY);
	return clean;
}

char *ql_read_text_of(const struct ql_plot_reader *r, int index, int64_t i)
{
	lua_State *L = r->L;
	struct ql_tensor *t = ql_test_tensor(L, index);
	char *text;

	if (t) {
		double value = ql_tensor_at_f64(t, i - 1);

		if (value == rint(value) && fabs(value) < 1e15)
			lua_pushinteger(L, (lua_Integer)value);
		else
			lua_pushnumber(L, value);
	} else {
		lua_rawgeti(L, index, i);
	}
	text = ql_read_text(r, -1);
	lua_pop(L, 1);
	return text;
}
