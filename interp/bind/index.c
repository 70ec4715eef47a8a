/* SPDX-License-Identifier: MIT
 * Indexing: x[i], x[{ {1,10}, {}, 3, {9,1,-2} }], x['1:10, :, 3, 9:1:-2'], x[mask], x[ids], x[{ {}, ids }], and
 * assignment to each of them. Indices are 1-based, ranges inclusive, negatives count from the end.
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
	int64_t from, to, step;
};

struct slices {
	int n;
	struct part part[QL_MAX_RANK];
	int ids; /* position on the Lua stack of a tensor of indices, whose part is ALL; 0: there is none */
	int at;  /* its part */
};

static int64_t table_integer(lua_State *L, int index)
{
	int ok;
	lua_Integer i = lua_tointegerx(L, index, &ok);

	if (!ok)
		ql_error(L, "index: wanted an integer, a range {a, b}, {a, b, step} or {}, got %s",
			luaL_typename(L, index));
	return i;
}

static struct part table_part(lua_State *L, int index)
{
	struct part p = {.kind = INDEX, .step = 1};
	int64_t *field[] = {&p.from, &p.to, &p.step};
	lua_Integer n;

	if (lua_type(L, index) != LUA_TTABLE) {
		p.from = table_integer(L, index);
		return p;
	}
	n = luaL_len(L, index);
	ql_check_list(L, "index", "two ends and a step", index);
	if (n == 0)
		return (struct part){.kind = ALL, .from = 1, .to = -1, .step = 1};
	if (n != 2 && n != 3)
		ql_error(L, "index: wanted a range {first, last}, {first, last, step} or {}, got a list of %lld",
			(long long)n);
	p.kind = RANGE;
	for (int i = 0; i < n; i++) {
		lua_geti(L, index, i + 1);
		*field[i] = table_integer(L, -1);
		lua_pop(L, 1);
	}
	return p;
}

/* Notes the tensor on top of the stack, which stays there, as entry i. */
static void take_ids(lua_State *L, struct slices *s, int i)
{
	if (s->ids)
		ql_error(L, "index: wanted one tensor of indices, got two; use x:gathernd(index)");
	if (ql_dtype_is_bool(ql_test_tensor(L, -1)->dtype))
		ql_error(L, "index: wanted a tensor of integers in a list, got a mask; use mask:nonzero()");
	s->ids = lua_gettop(L);
	s->at = i;
	s->part[i] = (struct part){.kind = ALL, .from = 1, .to = -1, .step = 1};
}

/* Leaves a tensor of indices on the stack. */
static void table_slices(lua_State *L, int index, struct slices *s)
{
	lua_Integer n = luaL_len(L, index);

	ql_check_list(L, "index", "indices", index);
	if (n < 1 || n > QL_MAX_RANK)
		ql_error(L, "index: wanted 1 to %d entries, got %lld", QL_MAX_RANK, (long long)n);
	s->ids = 0;
	for (s->n = 0; s->n < n; s->n++) {
		lua_geti(L, index, s->n + 1);
		if (ql_test_tensor(L, -1)) {
			take_ids(L, s, s->n);
			continue;
		}
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

/* "a:b:step", "a:b", ":", "a:", ":b" or "a"; an open end is the first or the last index, the other way with a negative
 * step. */
static const char *text_part(const char *p, struct part *part)
{
	bool from, to, step = false;

	*part = (struct part){.kind = INDEX, .step = 1};
	p = text_integer(p, &part->from, &from);
	if (*p != ':')
		return from ? p : NULL;
	p = text_integer(p + 1, &part->to, &to);
	if (*p == ':')
		p = text_integer(p + 1, &part->step, &step);
	part->kind = from || to || step ? RANGE : ALL;
	if (!from)
		part->from = part->step < 0 ? -1 : 1;
	if (!to)
		part->to = part->step < 0 ? 1 : -1;
	return p;
}

bool ql_index_is_text(const char *key)
{
	return *key && strspn(key, "0123456789:,- \t") == strlen(key);
}

static void text_slices(lua_State *L, const char *text, struct slices *s)
{
	const char *p = text;

	s->ids = 0;
	for (s->n = 0;;) {
		if (s->n == QL_MAX_RANK)
			ql_error(L, "index: wanted at most %d entries, got '%.60s'", QL_MAX_RANK, text);
		p = text_part(p, &s->part[s->n]);
		if (!p || (*p && *p != ','))
			ql_error(L, "index: wanted a form like '1:10, :, 3, 9:1:-2', got '%.60s'", text);
		s->n++;
		if (!*p)
			return;
		p++;
	}
}

/* A view as an op with integer attributes, in their order: recorded for gradients. */
static enum ql_status view_op(struct ql_ctx *ctx, const struct ql_op *op, struct ql_tensor *t, const int64_t *values,
	int n, struct ql_tensor **out)
{
	struct ql_value attr[4];
	struct ql_call call = {.op = op, .in = &t, .n_in = 1, .attr = attr};
	enum ql_status status;

	for (int i = 0; i < n; i++)
		attr[i] = (struct ql_value){.set = true, .i = values[i]};
	status = ql_op_apply(ctx, &call);
	*out = call.out[0];
	return status;
}

static enum ql_status apply_index(
	struct ql_ctx *ctx, const struct part *p, int axis, struct ql_tensor *t, struct ql_tensor **out)
{
	int64_t at;
	enum ql_status status = ql_index(ctx, "index", p->from, t->shape[axis], &at);

	if (status)
		return status;
	if (t->node)
		return view_op(ctx, &ql_op_select, t, (const int64_t[]){axis + 1, at + 1}, 2, out);
	return ql_view_select(ctx, "index", t, axis, at, out);
}

static enum ql_status apply_range(
	struct ql_ctx *ctx, const struct part *p, int axis, struct ql_tensor *t, struct ql_tensor **out)
{
	int64_t start, length;
	enum ql_status status = ql_view_range(ctx, "index", p->from, p->to, p->step, t->shape[axis], &start, &length);

	if (status)
		return status;
	if (!t->node)
		return ql_view_slice(ctx, "index", t, axis, start, p->step, length, out);
	if (p->step == 1)
		return view_op(ctx, &ql_op_narrow, t, (const int64_t[]){axis + 1, start + 1, length}, 3, out);
	return view_op(ctx, &ql_op_slice, t, (const int64_t[]){axis + 1, p->from, p->to, p->step}, 4, out);
}

/* Applies one part to `axis` of t. */
static enum ql_status apply_part(
	struct ql_ctx *ctx, const struct part *p, int axis, struct ql_tensor *t, struct ql_tensor **out)
{
	if (p->kind == INDEX)
		return apply_index(ctx, p, axis, t, out);
	if (p->kind == RANGE)
		return apply_range(ctx, p, axis, t, out);
	if (!t->node)
		return ql_tensor_alias(ctx, t, out);
	*out = ql_tensor_keep(t);
	return QL_OK;
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
		s->ids = 0;
		s->part[0] = (struct part){.kind = INDEX, .from = table_integer(L, key), .step = 1};
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

/* Pushes {axis, first, length}; of a single index {axis, index, 0}; of a range that is empty or has a step {axis, first,
 * last, step}. */
static void push_part(lua_State *L, const struct part *p, int axis, int64_t size)
{
	int64_t from = p->from < 0 ? p->from + size + 1 : p->from, to = p->to < 0 ? p->to + size + 1 : p->to;
	bool plain = p->kind == INDEX || (p->step == 1 && to >= from);
	int64_t value[] = {axis + 1, from, p->kind == INDEX ? 0 : plain ? to - from + 1 : to, p->step};

	lua_createtable(L, 4, 0);
	for (int k = 0; k < (plain ? 3 : 4); k++) {
		lua_pushinteger(L, value[k]);
		lua_seti(L, -2, k + 1);
	}
}

/* Pushes the slices as a list; whole axes are left out. They have been applied to t. */
static void push_slices(lua_State *L, const struct ql_tensor *t, const struct slices *s)
{
	int axis = 0;
	lua_Integer n = 0;

	lua_newtable(L);
	for (int i = 0; i < s->n; i++) {
		if (s->part[i].kind != ALL) {
			push_part(L, &s->part[i], axis, t->shape[i]);
			lua_seti(L, -2, ++n);
		}
		axis += s->part[i].kind != INDEX;
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

/* The axis of the tensor of indices, 1-based, when the other parts have been applied. */
static int ids_axis(const struct slices *s)
{
	int axis = 1;

	for (int i = 0; i < s->at; i++)
		axis += s->part[i].kind != INDEX;
	return axis;
}

/* Replaces the tensor on top of the stack by the indices of it that the tensor in the slices names. */
static void choose_ids(lua_State *L, const struct slices *s)
{
	int view = lua_gettop(L);

	ql_push_op(L, &ql_op_indexselect, false);
	lua_pushvalue(L, view);
	lua_pushvalue(L, s->ids);
	lua_pushinteger(L, ids_axis(s));
	lua_call(L, 3, 1);
}

static int get_by_tensor(lua_State *L, const struct ql_tensor *by, int key)
{
	lua_settop(L, key);
	if (ql_dtype_is_bool(by->dtype) || ql_dtype_is_float(by->dtype))
		return ql_call_op(L, &ql_op_maskedselect, false);
	lua_pushinteger(L, 1);
	return ql_call_op(L, &ql_op_indexselect, false);
}

int ql_index_get(lua_State *L, struct ql_tensor *t, int key)
{
	struct ql_tensor *by = ql_test_tensor(L, key);
	struct slices s;

	if (by)
		return get_by_tensor(L, by, key);
	read_slices(L, key, &s);
	push_view(L, t, &s);
	if (ql_recorded(L))
		tell_slices(L, t, &s);
	if (s.ids)
		choose_ids(L, &s);
	ql_pay_gc(L);
	return 1;
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

/* Turns ranges with a negative step round, as values are written through views, and the value at `index` with them: pushes
 * it if it has several along such an axis. Returns the index of the value. */
static int turn_ranges(lua_State *L, const struct ql_tensor *t, struct slices *s, int index)
{
	const struct ql_tensor *value = ql_test_tensor(L, index);
	int left = t->rank, at = 0, turned[QL_MAX_RANK], n = 0;

	for (int i = 0; i < s->n; i++)
		left -= s->part[i].kind == INDEX;
	for (int i = 0; i < s->n && i < t->rank; i++) {
		struct part *p = &s->part[i];
		int64_t start, length;
		int own = at - left + (value ? value->rank : 0); /* the axis of the value */

		at += p->kind != INDEX;
		if (p->kind != RANGE || p->step >= 0 ||
			ql_view_range(ql_ctx_of(L), "index", p->from, p->to, p->step, t->shape[i], &start, &length))
			continue;
		if (length == 0)
			*p = (struct part){.kind = RANGE, .from = 1, .to = 0, .step = 1};
		else
			*p = (struct part){.kind = RANGE,
				.from = start + (length - 1) * p->step + 1,
				.to = start + 1,
				.step = length > 1 ? -p->step : 1};
		if (value && own >= 0 && value->shape[own] > 1)
			turned[n++] = own;
	}
	if (n == 0)
		return index;
	ql_push_op(L, &ql_op_flip, false);
	lua_pushvalue(L, index);
	for (int i = 0; i < n; i++)
		lua_pushinteger(L, turned[i] + 1);
	lua_call(L, n + 1, 1);
	return lua_gettop(L);
}

static int set_by_tensor(lua_State *L, const struct ql_tensor *by, int value)
{
	lua_settop(L, value);
	if (ql_dtype_is_bool(by->dtype) || ql_dtype_is_float(by->dtype)) {
		ql_call_op(L, &ql_op_maskedassign, true);
		return 0;
	}
	lua_pushinteger(L, 1);
	ql_call_op(L, &ql_op_indexassign, true);
	return 0;
}

/* Pushes the slices with the indices that the tensor names replaced by the value; returns its position. */
static int replaced_ids(lua_State *L, struct ql_tensor *t, const struct slices *s, int value)
{
	int view;

	push_view(L, t, s);
	if (ql_recorded(L))
		tell_slices(L, t, s);
	view = lua_gettop(L);
	ql_push_op(L, &ql_op_indexassign, false);
	lua_pushvalue(L, view);
	lua_pushvalue(L, s->ids);
	lua_pushvalue(L, value);
	lua_pushinteger(L, ids_axis(s));
	lua_call(L, 4, 1);
	return lua_gettop(L);
}

int ql_index_set(lua_State *L, struct ql_tensor *t, int key, int value)
{
	struct ql_tensor *by = ql_test_tensor(L, key), *source, *view;
	struct ql_ctx *ctx = ql_ctx_of(L);
	struct ql_literal number;
	struct slices s;
	enum ql_status status;

	if (by)
		return set_by_tensor(L, by, value);
	read_slices(L, key, &s);
	if (s.ids)
		value = replaced_ids(L, t, &s, value);
	value = turn_ranges(L, t, &s, value);
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
