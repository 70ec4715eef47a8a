/* SPDX-License-Identifier: MIT
 * Programs: the ops of a graph as steps for nn/graph/run.lua, with what a call of an op from Lua finds out each time found
 * once: the op, its arguments, where its operands and results are. A run makes no Lua value but those of its outputs.
 *
 * Values have places: those of the inputs first, then constants, then results. Constants stay in their boxes, since a module
 * may move to a device. A value is released after its last step, so that the next result takes over memory that is in the
 * caches. Steps may run Lua (a scheme of the user), which may run the same program: what a run needs belongs to the run.
 */
#include <string.h>

#include "interp/bind/call.h"
#include "interp/bind/record.h"
#include "interp/host/interrupt.h"
#include "interp/host/lifetime.h"
#include "interp/host/undo.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/deferred.h"
#include "tensor/ops.h"

#define PROGRAM "quoll.program"
#define VALUES "quoll.program.values"
#define JOINED 3 /* steps that may run as one */

struct places {
	int n;
	int *at; /* from 0; of operands, negative: the literal -1 - at */
};

struct step {
	const struct ql_op *op;
	const char *name; /* of the node */
	struct places in, out, free;
	struct ql_literal *literal;
	uint32_t weak;
	int joins, at; /* so many of the next steps may run with it: ql_op_apply_joined */
	bool has_args;
	struct ql_arguments args;
};

struct program {
	int n_inputs, n_constants, n_values, n_steps, most_in;
	struct step *step;
	struct ql_tensor ***constant; /* their boxes */
	struct places outputs;
	struct ql_tensor **v, **in; /* memory of a run: values, which are NULL between runs, and operands of a step */
	bool busy;                  /* a run has it: one within that takes memory of its own */
};

/* ---- reading a description ----
 *
 * {inputs= (their number), constants= {tensors}, values= (number of places), outputs= {places}, steps= {{op=, name=, results= {places},
 * free= {places}, arguments= {n=, …}, joins=, at=, and as items the operands: a place, or {a number}}}}, places from 1 on. `keep` is the index
 * of the table that keeps the memory of the program, and what its arguments borrow.
 */

static void *keep_memory(lua_State *L, int keep, int64_t n, size_t size)
{
	uint64_t bytes = ql_size_array(n, size);
	void *memory = lua_newuserdatauv(L, bytes, 0);

	memset(memory, 0, bytes);
	lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
	return memory;
}

static int integer_of(lua_State *L, int table, const char *key)
{
	lua_Integer i;

	lua_getfield(L, table, key);
	i = luaL_optinteger(L, -1, 0);
	lua_pop(L, 1);
	return (int)i;
}

static int place_at(lua_State *L, const struct program *p)
{
	lua_Integer i = luaL_checkinteger(L, -1);

	if (i < 1 || i > p->n_values)
		return ql_error(L, "program: wanted a place from 1 to %d, got %lld", p->n_values, (long long)i);
	return (int)i - 1;
}

/* The list on top, which is popped. */
static struct places read_places(lua_State *L, const struct program *p, int keep)
{
	struct places list = {.n = (int)luaL_len(L, -1)};

	list.at = keep_memory(L, keep, list.n, sizeof(*list.at));
	for (int i = 0; i < list.n; i++) {
		lua_rawgeti(L, -1, i + 1);
		list.at[i] = place_at(L, p);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	return list;
}

static struct places places_of(lua_State *L, const struct program *p, int keep, int table, const char *key)
{
	lua_getfield(L, table, key);
	luaL_checktype(L, -1, LUA_TTABLE);
	return read_places(L, p, keep);
}

/* The operand on top: a place, or a list of one number. */
static int read_operand(lua_State *L, const struct program *p, struct step *s, int i)
{
	if (lua_type(L, -1) != LUA_TTABLE)
		return place_at(L, p);
	lua_rawgeti(L, -1, 1);
	if (lua_isinteger(L, -1))
		ql_literal_int(&s->literal[i], lua_tointeger(L, -1));
	else
		ql_literal_float(&s->literal[i], luaL_checknumber(L, -1));
	lua_pop(L, 1);
	if (i < 32)
		s->weak |= UINT32_C(1) << i;
	return -1 - i;
}

static void read_operands(lua_State *L, struct program *p, int keep, int table, struct step *s)
{
	s->in.n = (int)lua_rawlen(L, table);
	s->in.at = keep_memory(L, keep, s->in.n, sizeof(*s->in.at));
	if (s->op->flags & QL_NUMBERS)
		s->literal = keep_memory(L, keep, s->in.n, sizeof(*s->literal));
	for (int i = 0; i < s->in.n; i++) {
		lua_rawgeti(L, table, i + 1);
		if (!s->literal && lua_type(L, -1) == LUA_TTABLE)
			ql_error(L, "%s: operand %d: wanted a tensor, got a number", s->op->doc.name, i + 1);
		s->in.at[i] = read_operand(L, p, s, i);
		lua_pop(L, 1);
	}
	if (s->in.n < s->op->arity_min || (s->in.n > s->op->arity_max && !(s->op->flags & QL_LIST_IN)))
		ql_error(L, "%s: wanted other operands", s->op->doc.name);
	p->most_in = s->in.n > p->most_in ? s->in.n : p->most_in;
}

/* What the arguments borrow was pushed, and is kept. */
static void read_arguments(lua_State *L, int keep, int table, struct step *s)
{
	int top = lua_gettop(L), n;

	lua_getfield(L, table, "arguments");
	luaL_checktype(L, -1, LUA_TTABLE);
	n = integer_of(L, top + 1, "n");
	luaL_checkstack(L, n + LUA_MINSTACK, "arguments");
	for (int i = 1; i <= n; i++)
		lua_rawgeti(L, top + 1, i);
	ql_read_arguments(L, s->op->doc.name, s->op->doc.attrs, top + 2, &s->args);
	s->has_args = n > 0;
	while (lua_gettop(L) > top)
		lua_rawseti(L, keep, (lua_Integer)lua_rawlen(L, keep) + 1);
}

static void read_step(lua_State *L, struct program *p, int keep, struct step *s)
{
	int table = lua_gettop(L);

	luaL_checktype(L, table, LUA_TTABLE);
	lua_getfield(L, table, "op");
	s->op = ql_op_named(luaL_checkstring(L, -1));
	if (!s->op)
		ql_error(L, "program: unknown op '%s'", lua_tostring(L, -1));
	lua_getfield(L, table, "name");
	s->name = luaL_checkstring(L, -1);
	lua_pop(L, 2); /* the description has it */
	read_operands(L, p, keep, table, s);
	s->out = places_of(L, p, keep, table, "results");
	s->free = places_of(L, p, keep, table, "free");
	s->joins = integer_of(L, table, "joins");
	s->at = integer_of(L, table, "at") - 1;
	read_arguments(L, keep, table, s);
}

static void read_steps(lua_State *L, struct program *p, int keep)
{
	lua_getfield(L, 1, "steps");
	p->n_steps = (int)luaL_len(L, -1);
	p->step = keep_memory(L, keep, p->n_steps, sizeof(*p->step));
	for (int i = 0; i < p->n_steps; i++) {
		lua_rawgeti(L, -1, i + 1);
		read_step(L, p, keep, &p->step[i]);
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
	for (int i = 0; i < p->n_steps; i++) {
		const struct step *s = &p->step[i];

		if (s->joins && (s->joins >= JOINED || i + s->joins >= p->n_steps || s[1].in.n != 2 || (s->at & ~1)))
			ql_error(L, "program: wanted a sum behind step %d", i + 1);
	}
}

static void read_constants(lua_State *L, struct program *p, int keep)
{
	lua_getfield(L, 1, "constants");
	p->n_constants = (int)luaL_len(L, -1);
	p->constant = keep_memory(L, keep, p->n_constants, sizeof(*p->constant));
	for (int i = 0; i < p->n_constants; i++) {
		lua_rawgeti(L, -1, i + 1);
		p->constant[i] = ql_test_box(L, -1);
		if (!p->constant[i])
			ql_error(L, "program: wanted tensors as constants");
		lua_pop(L, 1);
	}
	lua_pop(L, 1);
}

/* program(description) -> a program; raises where an argument is wrong */
static int program_new(lua_State *L)
{
	struct program *p;
	int keep;

	luaL_checktype(L, 1, LUA_TTABLE);
	lua_settop(L, 1);
	p = lua_newuserdatauv(L, sizeof(*p), 1);
	*p = (struct program){0};
	ql_metatable_new(L, PROGRAM);
	lua_setmetatable(L, -2);
	lua_newtable(L);
	keep = lua_gettop(L);
	lua_pushvalue(L, 1);
	lua_rawseti(L, keep, 1);
	lua_pushvalue(L, keep);
	lua_setiuservalue(L, 2, 1);
	p->n_inputs = integer_of(L, 1, "inputs");
	p->n_values = integer_of(L, 1, "values");
	read_constants(L, p, keep);
	if (p->n_inputs < 0 || p->n_inputs + p->n_constants > p->n_values)
		return ql_error(L, "program: wanted places for inputs and constants");
	read_steps(L, p, keep);
	p->outputs = places_of(L, p, keep, 1, "outputs");
	p->v = keep_memory(L, keep, p->n_values, sizeof(*p->v));
	p->in = keep_memory(L, keep, p->most_in, sizeof(struct ql_tensor *));
	lua_settop(L, 2);
	return 1;
}

/* ---- the values of a run ---- */

static int values_gc(lua_State *L)
{
	struct ql_tensor **v = luaL_checkudata(L, 1, VALUES);
	size_t n = lua_rawlen(L, 1) / sizeof(struct ql_tensor *);

	for (size_t i = 0; i < n; i++) {
		ql_tensor_discard(L, v[i]);
		v[i] = NULL;
	}
	return 0;
}

static void release(struct ql_ctx *ctx, struct ql_tensor **v)
{
	struct ql_tensor *t = *v;

	*v = NULL;
	ql_tensor_release(ctx, t);
}

/* Memory for the values of another run, which is pushed. */
static struct ql_tensor **values_new(lua_State *L, const struct program *p)
{
	uint64_t bytes = ql_size_array(p->n_values, sizeof(struct ql_tensor *));
	struct ql_tensor **v = lua_newuserdatauv(L, bytes, 0);

	memset(v, 0, bytes);
	if (ql_metatable_new(L, VALUES)) {
		lua_pushcfunction(L, values_gc);
		lua_setfield(L, -2, "__gc");
	}
	lua_setmetatable(L, -2);
	return v;
}

/* Raises unless the inputs in the list at index 2 are tensors, and the constants live. */
static void check_given(lua_State *L, const struct program *p)
{
	for (int i = 0; i < p->n_inputs; i++) {
		lua_rawgeti(L, 2, i + 1);
		ql_check_tensor(L, -1, "run");
		lua_pop(L, 1);
	}
	for (int i = 0; i < p->n_constants; i++)
		if (!*p->constant[i])
			ql_error(L, "run: wanted live constants, got one that was already closed");
}

/* Takes them, without raising. */
static void take_given(lua_State *L, const struct program *p, struct ql_tensor **v)
{
	for (int i = 0; i < p->n_inputs; i++) {
		lua_rawgeti(L, 2, i + 1);
		v[i] = ql_tensor_keep(*ql_test_box(L, -1));
		lua_pop(L, 1);
	}
	for (int i = 0; i < p->n_constants; i++)
		v[p->n_inputs + i] = ql_tensor_keep(*p->constant[i]);
}

/* ---- running ---- */

struct run {
	lua_State *L;
	struct ql_ctx *ctx;
	const struct program *p;
	struct ql_tensor **v, **in; /* in: operands of the step */
};

/* The call of a step, whose operands go to `in`; one that is missing is `missing`. */
static struct ql_call call_of(
	const struct run *r, const struct step *s, struct ql_tensor **in, struct ql_tensor *missing)
{
	struct ql_call call = {
		.op = s->op, .in = in, .n_in = s->in.n, .weak = s->weak, .attr = s->has_args ? s->args.value : NULL};

	for (int i = 0; i < s->in.n; i++) {
		in[i] = s->in.at[i] < 0 ? &s->literal[i].tensor : r->v[s->in.at[i]];
		in[i] = in[i] ? in[i] : missing;
	}
	return call;
}

static void take_results(const struct run *r, const struct step *s, struct ql_call *call)
{
	bool lists = s->op->flags & QL_LIST_OUT;
	struct ql_tensor **from = lists ? call->list : call->out;
	int n = lists ? call->n_out : ql_call_outputs(call);

	for (int i = 0; i < n; i++)
		if (i < s->out.n)
			r->v[s->out.at[i]] = from[i];
		else
			ql_tensor_release(r->ctx, from[i]);
	if (lists)
		ql_free(r->ctx, call->list);
}

static enum ql_status apply(const struct run *r, const struct step *s)
{
	struct ql_call call = call_of(r, s, r->in, NULL);
	enum ql_status status = QL_OK;

	for (int i = 0; i < call.n_in && !status; i++)
		if (!call.in[i])
			status = ql_fail(
				r->ctx, QL_ERR_ARGUMENT, "%s: wanted operand %d, got none", s->op->doc.name, i + 1);
	if (!status)
		status = ql_op_apply(r->ctx, &call);
	if (status == QL_ERR_MEMORY) {
		ql_collect(r->L);
		status = ql_op_apply(r->ctx, &call);
	}
	if (!status)
		take_results(r, s, &call);
	return status;
}

/* The steps from s on that may run as one. */
static enum ql_status apply_joined(const struct run *r, const struct step *s)
{
	struct ql_tensor *other = r->v[s[1].in.at[1 - s->at]], *in[2], *last[1];
	struct ql_call first = call_of(r, s, r->in, NULL), second = call_of(r, s + 1, in, other),
		       third = s->joins > 1 ? call_of(r, s + 2, last, other) : second;
	struct ql_join join = {.second = &second, .third = s->joins > 1 ? &third : NULL, .at = s->at};
	enum ql_status status = ql_op_apply_joined(r->ctx, &first, &join);

	if (status == QL_ERR_MEMORY) {
		in[s->at] = other; /* no longer the result that is gone */
		ql_collect(r->L);
		status = ql_op_apply_joined(r->ctx, &first, &join);
	}
	if (!status)
		take_results(r, s + s->joins, join.third ? &third : &second);
	return status;
}

/* Whether the steps can be joined: all operands are there, in the host's memory. */
static bool can_join(const struct run *r, const struct step *s)
{
	struct ql_tensor *other = s[1].in.at[1 - s->at] < 0 ? NULL : r->v[s[1].in.at[1 - s->at]];
	bool can = other && !other->storage->remote;

	for (int i = 0; i < s->in.n; i++)
		can = can && s->in.at[i] >= 0 && r->v[s->in.at[i]] && !r->v[s->in.at[i]]->storage->remote;
	return can;
}

/* Runs all steps; on an error *failed is the step. */
static enum ql_status run_steps(const struct run *r, const struct step **failed)
{
	const struct program *p = r->p;
	enum ql_status status = QL_OK;

	for (int i = 0, n; i < p->n_steps && !status; i += n) {
		const struct step *s = &p->step[i];
		bool joined = s->joins && can_join(r, s);

		*failed = s;
		n = joined ? 1 + s->joins : 1;
		status = joined ? apply_joined(r, s) : apply(r, s);
		for (int k = 0; k < n; k++)
			for (int f = 0; f < s[k].free.n; f++)
				release(r->ctx, &r->v[s[k].free.at[f]]);
		if (!status && ql_stopped(r->ctx))
			status = ql_fail(r->ctx, QL_ERR_INTERRUPTED, "interrupted");
	}
	for (int i = 0; i < p->outputs.n && !status; i++)
		if (r->v[p->outputs.at[i]])
			status = ql_deferred_settle(r->ctx, r->v[p->outputs.at[i]]->storage);
	return status;
}

/* Without gradients; elementwise steps may wait for each other, in one pass over memory. */
static enum ql_status run_guarded(const struct run *r, bool ordered, const struct step **failed)
{
	struct ql_guards g = ql_guards_get(r->ctx);
	enum ql_status status;

	g.nograd++;
	g.deferring++;
	g.ordered += ordered;
	ql_guards_set(r->ctx, g);
	status = run_steps(r, failed);
	g = ql_guards_get(r->ctx);
	g.nograd--;
	g.deferring--;
	g.ordered -= ordered;
	ql_guards_set(r->ctx, g);
	return status;
}

/* run_program(program, list of inputs, whether products are added in order) -> the outputs; nothing while operations are recorded */
static int run_program(lua_State *L)
{
	struct program *p = luaL_checkudata(L, 1, PROGRAM);
	struct run r = {.L = L, .ctx = ql_ctx_of(L), .p = p, .v = p->v, .in = p->in};
	const struct step *failed = NULL;
	bool own = !p->busy;
	enum ql_status status;

	if (ql_recorded(L))
		return 0;
	luaL_checktype(L, 2, LUA_TTABLE);
	lua_settop(L, 3);
	luaL_checkstack(L, p->outputs.n + LUA_MINSTACK, "outputs");
	check_given(L, p);
	if (!own) {
		r.v = values_new(L, p);
		r.in = lua_newuserdatauv(L, ql_size_array(p->most_in, sizeof(*r.in)), 0);
	}
	for (int i = 0; i < p->outputs.n; i++)
		ql_box_new(L);
	p->busy = true;
	take_given(L, p, r.v);
	status = run_guarded(&r, lua_toboolean(L, 3), &failed);
	for (int i = 0; i < p->outputs.n && !status; i++) {
		struct ql_tensor **box = lua_touserdata(L, i - p->outputs.n);

		*box = r.v[p->outputs.at[i]] ? ql_tensor_keep(r.v[p->outputs.at[i]]) : NULL;
	}
	for (int i = 0; i < p->n_values; i++)
		release(r.ctx, &r.v[i]);
	p->busy = !own;
	if (status == QL_ERR_INTERRUPTED)
		ql_interrupt_raised(L);
	if (status)
		return ql_error(L, "run: node '%s': %s", failed ? failed->name : "", r.ctx->err);
	ql_pay_gc(L);
	return p->outputs.n;
}

int ql_open_program(lua_State *L)
{
	static const luaL_Reg functions[] = {{"program", program_new}, {"run_program", run_program}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
	return 0;
}
