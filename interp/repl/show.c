/* SPDX-License-Identifier: MIT
 * Values are shown by interp/prelude/show.lua or, what is no text, by their metafield __show. Listeners get them
 * plain.
 */
#include "interp/repl/show.h"

#include <stdio.h>
#include <string.h>

#include "interp/host/interrupt.h"
#include "interp/host/output.h"
#include "interp/prelude/prelude.h"
#include "interp/host/settings.h"
#include "interp/host/style.h"
#include "interp/trace/traceback.h"
#include "interp/host/width.h"

#define QL_MUCH ((size_t)64 << 20) /* bytes of tensors above which an input's use of memory is reported */

/* Pushes the text shown for the value at `index`. Raises only for an interrupt or no memory. */
static void push_shown(lua_State *L, int index)
{
	index = lua_absindex(L, index);
	/* what is no text, such as a figure, says itself how the terminal shows it */
	if (luaL_getmetafield(L, index, "__show") == LUA_TNIL)
		ql_prelude_require(L, "interp/prelude/show");
	lua_pushvalue(L, index);
	if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
		ql_interrupt_check(L);
		if (!lua_isstring(L, -1)) {
			lua_pop(L, 1);
			lua_pushliteral(L, "error in __tostring");
		}
	} else if (lua_isstring(L, -1)) {
		lua_tostring(L, -1); /* a number becomes its text */
		return;
	} else {
		lua_pushfstring(L, "__show: wanted a text, got %s", luaL_typename(L, -1));
		lua_remove(L, -2);
	}
	lua_pushfstring(L, "<%s that cannot be shown: %s>", luaL_typename(L, index), lua_tostring(L, -1));
	lua_remove(L, -2);
}

/* One line for all when each is short, else one line for each. */
static void write_values(struct ql_session *s, FILE *f, int first, int n)
{
	lua_State *L = s->state->L;
	bool block = false;

	for (int i = first; i < first + n; i++)
		block = block || strchr(lua_tostring(L, i), '\n');
	fprintf(f, "%sOut[%d]:%s%s", ql_style(f, QL_STYLE_RESULT), s->n, ql_style(f, QL_STYLE_NONE),
		block ? "\n" : " ");
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
		push_shown(L, index);
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

void ql_show_values(struct ql_session *s, int first)
{
	lua_State *L = s->state->L;
	int last = lua_gettop(L), n = last - first + 1;
	FILE *terminal = ql_output_terminal(stdout);

	luaL_checkstack(L, n + LUA_MINSTACK, "too many results to show");
	if (terminal) {
		for (int i = first; i <= last; i++)
			push_shown(L, i);
		write_values(s, terminal, last + 1, n);
		lua_settop(L, last);
	}
	for (int i = first; i <= last; i++)
		tell_value(L, QL_OUTPUT_RESULT, i);
}

void ql_show_error(lua_State *L)
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

void ql_show_note(const char *text)
{
	FILE *f = ql_output_terminal(stdout);
	struct ql_output event = {.kind = QL_OUTPUT_NOTE, .text = text, .size = strlen(text)};

	if (f) {
		fprintf(f, "%s%s%s\n", ql_style(f, QL_STYLE_DIM), text, ql_style(f, QL_STYLE_NONE));
		fflush(f);
	}
	ql_output_tell(&event);
}

/* ---- below an input ---- */

static const char *amount_text(size_t bytes, char text[QL_AMOUNT])
{
	if (bytes < 1024)
		snprintf(text, QL_AMOUNT, "%zu B", bytes);
	else if (bytes < 1 << 20)
		snprintf(text, QL_AMOUNT, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(text, QL_AMOUNT, "%.1f MiB", (double)bytes / (1 << 20));
	return text;
}

const char *ql_time_text(double seconds, char text[QL_AMOUNT])
{
	if (seconds < 1e-3)
		snprintf(text, QL_AMOUNT, "%.1f us", 1e6 * seconds);
	else if (seconds < 1)
		snprintf(text, QL_AMOUNT, "%.2f ms", 1e3 * seconds);
	else
		snprintf(text, QL_AMOUNT, "%.2f s", seconds);
	return text;
}

/* A part of the line, after a comma when it is not the first. */
static void add_part(char *line, size_t room, const char *part)
{
	size_t n = strlen(line);

	snprintf(line + n, room - n, "%s%s", n ? ", " : "", part);
}

void ql_show_peak(const struct ql_cost *cost, char *text, size_t size)
{
	char amount[QL_AMOUNT], on_devices[QL_AMOUNT];

	if (cost->on_devices)
		snprintf(text, size, "tensors +%s, on devices +%s at the peak", amount_text(cost->peak, amount),
			amount_text(cost->on_devices, on_devices));
	else
		snprintf(text, size, "tensors +%s at the peak", amount_text(cost->peak, amount));
}

/* Fallbacks are always reported: a user must know of them. The rest is for people, who see it when it is
 * much. */
static void show_cost(const struct ql_session *s)
{
	bool all = ql_setting_is(QL_SETTING_footer, "on");
	char line[256] = "", part[128], amount[QL_AMOUNT];

	if (ql_setting_is(QL_SETTING_footer, "off"))
		return;
	if (all || (s->cost.wall >= 1 && s->terminal))
		add_part(line, sizeof(line), ql_time_text(s->cost.wall, amount));
	if (all || (s->cost.peak + s->cost.on_devices >= QL_MUCH && s->terminal)) {
		ql_show_peak(&s->cost, part, sizeof(part));
		add_part(line, sizeof(line), part);
	}
	if (s->cost.fallbacks) {
		snprintf(part, sizeof(part), "%llu op%s fell back to float32; %%explain shows why",
			(unsigned long long)s->cost.fallbacks, s->cost.fallbacks == 1 ? "" : "s");
		add_part(line, sizeof(line), part);
	}
	if (s->terminal)
		ql_width_cut(line, sizeof(line), ql_width());
	if (*line)
		ql_show_note(line);
}

void ql_show_footer(struct ql_session *s, const struct ql_cell *cell)
{
	char text[256];

	show_cost(s);
	if (cell->lost && cell->locals.n_made) {
		snprintf(text, sizeof(text), "the local variables of this input are not kept: %s", cell->lost);
		ql_show_note(text);
	}
}
