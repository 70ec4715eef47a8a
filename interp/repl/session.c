/* SPDX-License-Identifier: MIT
 * Running one input. All of it happens inside one protected call, so that no lack of memory ends the session;
 * the input's own function runs in a second one with the traceback handler.
 */
#include "interp/repl/session.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "interp/interrupt.h"
#include "interp/output.h"
#include "interp/prelude/prelude.h"
#include "interp/repl/magic.h"
#include "interp/style.h"
#include "interp/traceback.h"
#include "tensor/ledger.h"

#define QL_HISTORY 1000            /* inputs kept in In */
#define QL_RESULTS 100             /* results kept in Out */
#define QL_BIG ((uint64_t)1 << 20) /* bytes; Out keeps larger tensors only as long as something else does */

static const char weak[] = "quoll.out"; /* registry: the big tensors of Out */

/* ---- In, Out, _ ---- */

static int push_locals(lua_State *L)
{
	ql_locals_all(L);
	return 1;
}

static void set_metafield(lua_State *L, const char *name)
{
	lua_createtable(L, 0, 1);
	lua_insert(L, -2);
	lua_setfield(L, -2, name);
	lua_setmetatable(L, -2);
}

void ql_session_begin(struct ql_session *s, struct ql_state *state)
{
	lua_State *L = state->L;

	*s = (struct ql_session){.state = state, .n = 1};
	lua_newtable(L);
	lua_setglobal(L, "In");
	lua_newtable(L); /* Out */
	lua_newtable(L);
	lua_pushliteral(L, "v");
	set_metafield(L, "__mode");
	lua_pushvalue(L, -1);
	lua_setfield(L, LUA_REGISTRYINDEX, weak);
	set_metafield(L, "__index");
	lua_setglobal(L, "Out");
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_pushcfunction(L, push_locals);
	lua_setfield(L, -2, "locals");
	luaL_getsubtable(L, -1, "baseline");
	for (const char *const *name = (const char *const[]){"In", "Out", "_", NULL}; *name; name++) {
		lua_pushboolean(L, 1);
		lua_setfield(L, -2, *name);
	}
	lua_pop(L, 2);
}

/* In and Out are the user's to replace; then nothing is stored. */
static bool push_list(lua_State *L, const char *name)
{
	lua_pushglobaltable(L);
	lua_pushstring(L, name);
	lua_rawget(L, -2);
	lua_remove(L, -2);
	if (lua_istable(L, -1))
		return true;
	lua_pop(L, 1);
	return false;
}

/* list[n] = the value on top, which is popped; list[n - kept] goes */
static void store(lua_State *L, const char *list, int n, int kept)
{
	if (!push_list(L, list)) {
		lua_pop(L, 1);
		return;
	}
	lua_insert(L, -2);
	lua_rawseti(L, -2, n);
	lua_pushnil(L);
	lua_rawseti(L, -2, n - kept);
	lua_pop(L, 1);
}

static void store_input(struct ql_session *s, const char *text, size_t size, const char *chunk)
{
	lua_State *L = s->state->L;

	ql_traceback_source(L, chunk, text, size);
	lua_pushlstring(L, text + s->skip, size - s->skip);
	store(L, "In", s->n, QL_HISTORY);
}

static void store_result(struct ql_session *s, int index)
{
	lua_State *L = s->state->L;
	struct ql_tensor **box = luaL_testudata(L, index, QL_TENSOR);

	lua_pushglobaltable(L);
	lua_pushliteral(L, "_");
	lua_pushvalue(L, index);
	lua_rawset(L, -3);
	lua_pop(L, 1);
	lua_pushvalue(L, index);
	if (box && *box && ql_tensor_nbytes(*box) > QL_BIG) {
		lua_getfield(L, LUA_REGISTRYINDEX, weak);
		lua_insert(L, -2);
		lua_rawseti(L, -2, s->n);
		lua_pop(L, 1);
		return;
	}
	store(L, "Out", s->n, QL_RESULTS);
}

/* ---- showing ---- */

void ql_session_show(lua_State *L, int index)
{
	index = lua_absindex(L, index);
	/* what is no text, such as a figure, says itself how the terminal shows it */
	if (luaL_getmetafield(L, index, "__show") == LUA_TNIL)
		ql_prelude_require(L, "show");
	lua_pushvalue(L, index);
	if (lua_pcall(L, 1, 1, 0) == LUA_OK)
		return;
	ql_interrupt_check(L);
	lua_pushfstring(L, "<%s that cannot be shown: %s>", luaL_typename(L, index),
		lua_isstring(L, -1) ? lua_tostring(L, -1) : "error in __tostring");
	lua_remove(L, -2);
}

/* One line for all when each is short, else one line for each. */
static void write_values(struct ql_session *s, FILE *f, int first, int n)
{
	lua_State *L = s->state->L;
	bool block = false;

	for (int i = first; i < first + n; i++)
		block = block || strchr(lua_tostring(L, i), '\n');
	fprintf(f, "%sOut[%d]:%s%s", ql_style(f, QL_STYLE_RESULT), s->n, ql_style(f, QL_STYLE_NONE), block ? "\n" : " ");
	for (int i = first; i < first + n; i++) {
		size_t size;
		const char *text = lua_tolstring(L, i, &size);

		fwrite(text, 1, size, f);
		fputs(i + 1 == first + n ? "\n" : block ? "\n" : "\t", f);
	}
	fflush(f);
}

/* A value as text without pictures. */
static void push_plain(lua_State *L, int index)
{
	if (luaL_getmetafield(L, index, "__show") == LUA_TNIL) {
		ql_session_show(L, index);
		return;
	}
	lua_pop(L, 1);
	luaL_tolstring(L, index, NULL);
}

static void tell_value(lua_State *L, enum ql_output_kind kind, int index)
{
	struct ql_output event = {.kind = kind, .L = L, .index = lua_absindex(L, index)};

	if (!ql_output_heard())
		return;
	push_plain(L, event.index);
	event.text = lua_tolstring(L, -1, &event.size);
	ql_output_tell(&event);
	lua_pop(L, 1);
}

static void show_values(struct ql_session *s, int first)
{
	lua_State *L = s->state->L;
	int last = lua_gettop(L), n = last - first + 1;
	FILE *terminal = ql_output_terminal(stdout);

	luaL_checkstack(L, n + LUA_MINSTACK, "too many results to show");
	if (terminal) {
		for (int i = first; i <= last; i++)
			ql_session_show(L, i);
		write_values(s, terminal, last + 1, n);
		lua_settop(L, last);
	}
	for (int i = first; i <= last; i++)
		tell_value(L, QL_OUTPUT_RESULT, i);
}

/* Of the message on top, which is popped. */
static void show_error(lua_State *L)
{
	FILE *terminal = ql_output_terminal(stderr);
	struct ql_output event = {.kind = QL_OUTPUT_ERROR, .text = "error", .size = 5};

	if (lua_isstring(L, -1))
		event.text = lua_tolstring(L, -1, &event.size);
	if (terminal)
		ql_traceback_print(terminal, "", event.text);
	ql_output_tell(&event);
	lua_pop(L, 1);
}

static void note(const char *text)
{
	FILE *f = ql_output_terminal(stdout);
	struct ql_output event = {.kind = QL_OUTPUT_NOTE, .text = text, .size = strlen(text)};

	if (f) {
		fprintf(f, "%s%s%s\n", ql_style(f, QL_STYLE_DIM), text, ql_style(f, QL_STYLE_NONE));
		fflush(f);
	}
	ql_output_tell(&event);
}

static void show_notes(struct ql_session *s, const struct ql_cell *cell)
{
	char text[256];

	if (s->cost.fallbacks) {
		snprintf(text, sizeof(text), "%llu op%s fell back to float32; quant.log() tells which and why",
			(unsigned long long)s->cost.fallbacks, s->cost.fallbacks == 1 ? "" : "s");
		note(text);
	}
	if (cell->lost && cell->locals.n_made) {
		snprintf(text, sizeof(text), "the local variables of this input are not kept: %s", cell->lost);
		note(text);
	}
	if (s->cost.wall >= 1 && ql_style_wanted(stdout)) {
		snprintf(text, sizeof(text), "%.2f s", s->cost.wall);
		note(text);
	}
}

/* ---- calling ---- */

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct meter {
	double wall, cpu;
	size_t now, peak;
	uint64_t count, fallbacks;
};

static struct meter meter_begin(struct ql_ctx *ctx)
{
	struct meter m = {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID), ctx->memory.now,
		ctx->memory.peak, ctx->memory.count, ql_ledger_fallbacks(ctx)};

	ctx->memory.peak = m.now;
	return m;
}

static struct ql_cost meter_end(struct ql_ctx *ctx, const struct meter *m)
{
	uint64_t fallbacks = ql_ledger_fallbacks(ctx);
	struct ql_cost cost = {seconds(CLOCK_MONOTONIC) - m->wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - m->cpu,
		ctx->memory.peak > m->now ? ctx->memory.peak - m->now : 0, ctx->memory.count - m->count,
		fallbacks < m->fallbacks ? fallbacks : fallbacks - m->fallbacks};

	if (ctx->memory.peak < m->peak)
		ctx->memory.peak = m->peak;
	return cost;
}

/* (function, cell) */
static int rescue(lua_State *L)
{
	ql_locals_rescue(L, 1, lua_touserdata(L, 2));
	return 0;
}

/* Message handler; upvalues: the input's function, its cell. */
static int handler(lua_State *L)
{
	const struct ql_cell *cell = lua_touserdata(L, lua_upvalueindex(2));

	lua_settop(L, 1);
	if (!cell->lost && lua_checkstack(L, LUA_MINSTACK)) {
		lua_pushcfunction(L, rescue);
		lua_pushvalue(L, lua_upvalueindex(1));
		lua_pushlightuserdata(L, (void *)(uintptr_t)&cell->locals);
		lua_pcall(L, 2, 0, 0);
		lua_settop(L, 1);
	}
	return ql_traceback_handler(L);
}

bool ql_session_call(struct ql_session *s, struct ql_cell *cell)
{
	lua_State *L = s->state->L;
	int base = lua_gettop(L), outer = s->state->outer_frames, status;
	struct meter m;

	lua_pushvalue(L, base);
	lua_pushlightuserdata(L, cell);
	lua_pushcclosure(L, handler, 2);
	lua_insert(L, base);
	s->state->outer_frames = ql_traceback_depth(L);
	m = meter_begin(s->state->ctx);
	status = lua_pcall(L, 0, LUA_MULTRET, base);
	s->state->outer_frames = outer;
	s->cost = meter_end(s->state->ctx, &m);
	if (!status && s->state->ctx->interrupted) { /* in a C function that was the last */
		lua_pushliteral(L, "interrupted");
		status = LUA_ERRRUN;
	}
	if (status) {
		show_error(L);
	} else if (lua_gettop(L) > base && !cell->quiet) {
		store_result(s, base + 1);
		show_values(s, base + 1);
	}
	show_notes(s, cell);
	lua_settop(L, base - 1);
	return status == LUA_OK;
}

/* ---- one input ---- */

struct input {
	struct ql_session *session;
	const char *text;
	size_t size;
	bool final, incomplete, counted;
	struct ql_cell cell;
};

static bool is_word(const struct input *in, const char *word)
{
	size_t from = 0, to = in->size, n = strlen(word);

	while (from < to && strchr(" \t\r\n", in->text[from]))
		from++;
	while (to > from && strchr(" \t\r\n;", in->text[to - 1]))
		to--;
	return to - from == n && !memcmp(in->text + from, word, n);
}

static bool is_unused(lua_State *L, const char *name)
{
	bool unused = !ql_locals_get(L, name) && lua_getglobal(L, name) == LUA_TNIL;

	lua_pop(L, 1);
	return unused;
}

/* `exit` and `quit` leave; a lone `help` means help(). */
static bool is_plain_word(lua_State *L, struct input *in)
{
	if ((is_word(in, "exit") && is_unused(L, "exit")) || (is_word(in, "quit") && is_unused(L, "quit"))) {
		in->session->leave = true;
		return true;
	}
	if (is_word(in, "help") && lua_getglobal(L, "help") == LUA_TFUNCTION) {
		in->text = "help()";
		in->size = 6;
		in->session->skip = 0;
	}
	lua_settop(L, 1);
	return false;
}

static int run_input(lua_State *L)
{
	struct input *in = lua_touserdata(L, 1);
	struct ql_session *s = in->session;
	enum ql_cell_state state = QL_CELL_READY;
	const struct ql_magic *magic;
	char number[32];
	const char *chunk = s->chunk ? s->chunk : number;
	size_t from = 0;

	luaL_checkstack(L, LUA_MINSTACK, NULL);
	if (is_plain_word(L, in))
		return 0;
	snprintf(number, sizeof(number), "=In[%d]", s->n);
	magic = ql_magic_find(in->text, in->size, &from);
	if (!magic || magic->takes_code)
		state = ql_cell_compile(L, in->text + from, in->size - from, chunk, &in->cell);
	in->incomplete = state == QL_CELL_INCOMPLETE && !in->final;
	if (in->incomplete || (state == QL_CELL_EMPTY && !magic))
		return 0;
	in->counted = true;
	store_input(s, in->text, in->size, chunk);
	if (state == QL_CELL_WRONG || state == QL_CELL_INCOMPLETE)
		show_error(L);
	else if (!magic)
		ql_session_call(s, &in->cell);
	else if (state == QL_CELL_EMPTY)
		ql_magic_usage(magic);
	else
		magic->run(s, in->text + from, in->size - from, &in->cell);
	return 0;
}

bool ql_session_input(struct ql_session *s, const char *text, size_t size, bool final)
{
	lua_State *L = s->state->L;
	struct input in = {.session = s, .text = text, .size = size, .final = final};

	lua_pushcfunction(L, run_input);
	lua_pushlightuserdata(L, &in);
	if (lua_pcall(L, 1, 0, 0))
		show_error(L);
	s->n += in.counted;
	return !in.incomplete;
}
