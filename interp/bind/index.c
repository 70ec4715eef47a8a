/* SPDX-License-Identifier: MIT
 * Indexing: x[i], x[{ {1,10}, {}, 3 }], x['1:10, :, 3'], x[mask], and assignment to each of them. Indices are 1-based,
 * ranges inclusive, negatives count from the end.
 */
#include "interp/bind/index.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "interp/bind/record.h"
#include "interp/bind/surplus.h"
#include "tensor/assign.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

enum part_kind { ALL, RANGE, INDEX };

struct part {
	enum part_kind kind;
	int64_t from, to;
};

struct slices {
	int n;
	struct part part[QL_MAX_RANK];
};

static int64_t table_integer(lua_State *L, int index)
{
	int ok;
	lua_Integer i = lua_tointegerx(L, index, &ok);

	if (!ok)
		ql_error(L, "index: wanted an integer, a range {a, b} or {}, got %s", luaL_typename(L, index));
	return i;
}

static struct part table_part(lua_State *L, int index)
{
	struct part p = {.kind = INDEX};
	lua_Integer n;

	if (lua_type(L, index) != LUA_TTABLE) {
		p.from = table_integer(L, index);
		return p;
	}
	n = luaL_len(L, index);
	ql_check_list(L, "index", "two ends", index);
	if (n == 0)
		return (struct part){.kind = ALL};
	if (n != 2)
		ql_error(L, "index: wanted a range {first, last} or {}, got a list of %lld", (long long)n);
	p.kind = RANGE;
	lua_geti(L, index, 1);
	lua_geti(L, index, 2);
	p.from = table_integer(L, -2);
	p.to = table_integer(L, -1);
	lua_pop(L, 2);
	return p;
}

static void table_slices(lua_State *L, int index, struct slices *s)
{
	lua_Integer n = luaL_len(L, index);

	ql_check_list(L, "index", "indices", index);
	if (n < 1 || n > QL_MAX_RANK)
		ql_error(L, "index: wanted 1 to %d entries, got %lld", QL_MAX_RANK, (long long)n);
	for (s->n = 0; s->n < n; s->n++) {
		lua_geti(L, index, s->n + 1);
		s->part[s->n] = table_part(L, lua_gettop(L));
		lua_pop(L, 1);
	}
}

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

static const char *text_integer(const char *p, int64_t *value, bool *found)
{
	char *end;

	p = skip_space(p);
	*found = isdigit((unsigned char)*p) || (*p == '-' && isdigit((unsigned char)p[1]));
	if (!*found)
		return p;
	*value = strtoll(p, &end, 10);
	return skip_space(end);
}

/* "a:b", ":", "a:", ":b" or "a"; an open end is the first or the last index. */
static const char *text_part(const char *p, struct part *part)
{
	bool from, to;

	*part = (struct part){.kind = INDEX, .from = 1, .to = -1};
	p = text_integer(p, &part->from, &from);
	if (*p != ':')
		return from ? p : NULL;
	p = text_integer(p + 1, &part->to, &to);
	part->kind = from || to ? RANGE : ALL;
	return p;
}

bool ql_index_is_text(const char *key)
{
	return *key && strspn(key, "0123456789:,- \t") == strlen(key);
}

static void text_slices(lua_State *L, const char *text, struct slices *s)
{
	const char *p = text;

	for (s->n = 0;;) {
		if (s->n == QL_MAX_RANK)
			ql_error(L, "index: wanted at most %d entries, got '%.60s'", QL_MAX_RANK, text);
		p = text_part(p, &s->part[s->n]);
		if (!p || (*p && *p != ','))
			ql_error(L, "index: wanted a form like '1:10, :, 3', got '%.60s'", text);
		s->n++;
		if (!*p)
			return;
		p++;
	}
}

/* A view as an op with integer attributes, in their order: recorded for gradients. */
static enum ql_status view_op(struct ql_ctx *ctx, const struct ql_op *op, struct ql_tensor *t, int64_t axis,
	int64_t from, int64_t length, struct ql_tensor **out)
{
	struct ql_value attr[] = {
		{.set = true, .i = axis + 1}, {.set = true, .i = from + 1}, {.set = true, .i = length}};
	struct ql_call call = {.op = op, .in = &t, .n_in = 1, .attr = attr};
	enum ql_status status = ql_op_apply(ctx, &call);

	*out = call.out[0];
	return status;
}

/* Applies one part to `axis` of *t; returns true when the axis is still there. */
static enum ql_status apply_part(
	struct ql_ctx *ctx, const struct part *p, int axis, struct ql_tensor *t, struct ql_tensor **out)
{
	int64_t from, to;
	enum ql_status status;

	if (p->kind == ALL || (p->kind == RANGE && t->shape[axis] == 0 && p->from == 1 && p->to == -1)) {
		if (!t->node)
			return ql_tensor_alias(ctx, t, out);
		*out = ql_tensor_keep(t);
		return QL_OK;
	}
	status = ql_index(ctx, "index", p->from, t->shape[axis], &from);
	if (status || p->kind == INDEX)
		return status    ? status
		       : t->node ? view_op(ctx, &ql_op_select, t, axis, from, 0, out)
				 : ql_view_select(ctx, "index", t, axis, from, out);
	status = ql_index(ctx, "index", p->to, t->shape[axis], &to);
	if (status)
		return status;
	if (to < from)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "index: wanted first <= last, got %lld:%lld", (long long)p->from,
			(long long)p->to);
	if (t->node)
		return view_op(ctx, &ql_op_narrow, t, axis, from, to - from + 1, out);
	return ql_view_narrow(ctx, "index", t, axis, from, to - from + 1, out);
}

static enum ql_status apply_slices(
	struct ql_ctx *ctx, const struct slices *s, struct ql_tensor *t, struct ql_tensor **out)
{
	char text[QL_SHAPE_TEXT];
	int axis = 0;
	enum ql_status status;

	*out = NULL;
	if (s->n > t->rank)
		return ql_fail(ctx, QL_ERR_SHAPE, "index: wanted at most %d entries for shape %s, got %d", t->rank,
			ql_shape_text(t->rank, t->shape, text), s->n);
	*out = ql_tensor_keep(t);
	for (int i = 0; i < s->n; i++) {
		struct ql_tensor *next = NULL;

		status = apply_part(ctx, &s->part[i], axis, *out, &next);
		ql_tensor_release(ctx, *out);
		*out = next;
		if (status)
			return status;
		axis += s->part[i].kind != INDEX;
	}
	return QL_OK;
}

static void read_slices(lua_State *L, int key, struct slices *s)
{
	if (lua_type(L, key) == LUA_TTABLE) {
		table_slices(L, key, s);
	} else if (lua_type(L, key) == LUA_TSTRING) {
		text_slices(L, lua_tostring(L, key), s);
	} else {
		s->n = 1;
		s->part[0] = (struct part){.kind = INDEX, .from = table_integer(L, key)};
	}
}

/* Pushes the view that the slices name. */
static void push_view(lua_State *L, struct ql_tensor *t, const struct slices *s)
{
	struct ql_tensor **box = ql_box_new(L);
	enum ql_status status = apply_slices(ql_ctx_of(L), s, t, box);

	if (status)
		ql_raise(L, status);
}

/* Pushes the slices as a list of {axis, first, length}, a single index with length 0; whole axes are left out. They have
 * been applied to t. */
static void push_slices(lua_State *L, const struct ql_tensor *t, const struct slices *s)
{
	int axis = 0;
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 0; i < s->n; i++) {
		const struct part *p = &s->part[i];
		int64_t size = t->shape[i], from = p->from < 0 ? p->from + size + 1 : p->from;
		int64_t to = p->to < 0 ? p->to + size + 1 : p->to,
			values[] = {axis + 1, from, p->kind == INDEX ? 0 : to - from + 1};

		axis += p->kind != INDEX;
		if (p->kind == ALL)
			continue;
		lua_createtable(L, 3, 0);
		for (int k = 0; k < 3; k++) {
			lua_pushinteger(L, values[k]);
			lua_seti(L, -2, k + 1);
		}
		lua_seti(L, -2, ++n);
	}
}

/* index(x, slices, result); the result is on top and stays there. */
static void tell_slices(lua_State *L, const struct ql_tensor *t, const struct slices *s)
{
	int top = lua_gettop(L);

	lua_pushvalue(L, 1);
	push_slices(L, t, s);
	lua_pushvalue(L, top);
	ql_record(L, "index", 3);
	lua_settop(L, top);
}

int ql_index_get(lua_State *L, struct ql_tensor *t, int key)
{
	struct ql_tensor *mask = ql_test_tensor(L, key);
	struct slices s;

	if (!mask) {
		read_slices(L, key, &s);
		push_view(L, t, &s);
		if (ql_recorded(L))
			tell_slices(L, t, &s);
		ql_pay_gc(L);
		return 1;
	}
	lua_settop(L, key);
	return ql_call_op(L, &ql_op_maskedselect, false);
}

struct ql_tensor *ql_index_value(lua_State *L, int index, const struct ql_tensor *target, struct ql_literal *number)
{
	const struct ql_dtype_info *d = &ql_dtypes[target->dtype];
	int ok = 0;
	lua_Integer i;

	if (lua_type(L, index) != LUA_TNUMBER)
		return ql_check_tensor(L, index, "index: value");
	if (target->q || d->kind == QL_KIND_FLOAT)
		return ql_literal_float(number, lua_tonumber(L, index));
	i = lua_tointegerx(L, index, &ok);
	if (!ok || i < d->lo || i > d->hi)
		ql_error(L, "index: wanted an integer that fits %s, got %.14g", d->name, lua_tonumber(L, index));
	return ql_literal_int(number, i);
}

/* assign(x, slices, value) */
static void tell_assignment(lua_State *L, const struct ql_tensor *t, const struct slices *s, int value)
{
	lua_pushvalue(L, 1);
	push_slices(L, t, s);
	lua_pushvalue(L, value);
	ql_record(L, "assign", 3);
}

int ql_index_set(lua_State *L, struct ql_tensor *t, int key, int value)
{
	struct ql_tensor *mask = ql_test_tensor(L, key), *source, *view;
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_literal number;
	struct slices s;
	enum ql_status status;

	if (mask) {
		ql_call_op(L, &ql_op_maskedassign, true);
		return 0;
	}
	read_slices(L, key, &s);
	source = ql_index_value(L, value, t, &number);
	status = apply_slices(ctx, &s, t, &view);
	if (!status)
		status = ql_tensor_assign(ctx, "index", view, source);
	ql_tensor_release(ctx, view);
	if (status)
		return ql_raise(L, status);
	if (ql_recorded(L))
		tell_assignment(L, t, &s, value);
	ql_pay_gc(L);
	return 0;
}
