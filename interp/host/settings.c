/* SPDX-License-Identifier: MIT
 * Values are kept as text, each in a place of its own. `plot` lives in the environment, where the plots look
 * for it: QUOLL_PLOT, set before the start, wins over the user's file.
 */
#include "interp/host/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/host/box.h"
#include "interp/host/folders.h"
#include "interp/prelude/libs.h"
#include "interp/prelude/prelude.h"
#include "tensor/nearest.h"

#define QL_VALUE 32

struct setting {
	const char *name, *otherwise;
	int64_t lo, hi;
	const char *choices; /* NULL: an integer */
	const char *text;
};

static const struct setting settings[QL_SETTING_COUNT] = {
#define X(name, otherwise, lo, hi, choices, text) {#name, otherwise, lo, hi, choices, text},
#include "interp/host/settings.def"
#undef X
};

static char values[QL_SETTING_COUNT][QL_VALUE]; /* "": the default */

const char *ql_setting_text(enum ql_setting setting)
{
	const char *plot = setting == QL_SETTING_plot ? getenv("QUOLL_PLOT") : NULL;

	if (plot && *plot)
		return plot;
	return *values[setting] ? values[setting] : settings[setting].otherwise;
}

int64_t ql_setting_int(enum ql_setting setting)
{
	return strtoll(ql_setting_text(setting), NULL, 10);
}

bool ql_setting_is(enum ql_setting setting, const char *word)
{
	return !strcmp(ql_setting_text(setting), word);
}

static const char *names(void)
{
	return ""
#define X(name, otherwise, lo, hi, choices, text) #name " "
#include "interp/host/settings.def"
#undef X
		;
}

static int find(const char *name)
{
	for (int i = 0; i < QL_SETTING_COUNT; i++)
		if (!strcmp(settings[i].name, name))
			return i;
	return -1;
}

static bool is_choice(const char *choices, const char *value)
{
	size_t n = strlen(value);

	for (const char *at = choices; *at; at += strcspn(at, " "), at += *at == ' ')
		if (strcspn(at, " ") == n && !memcmp(at, value, n))
			return true;
	return false;
}

static bool is_integer(const struct setting *s, const char *value)
{
	char *end;
	long long i = strtoll(value, &end, 10);

	if (s == &settings[QL_SETTING_width] && i > 0 && i < 20)
		return false;
	return end != value && !*end && i >= s->lo && i <= s->hi && strlen(value) < QL_VALUE;
}

/* False, with the reason in `error`: there is no such setting, or it does not take the value. */
static bool put_setting(const char *name, const char *value, char error[QL_SETTING_ERROR])
{
	int i = find(name);
	const struct setting *s = &settings[i < 0 ? 0 : i];
	char near[96];

	if (i < 0) {
		snprintf(error, QL_SETTING_ERROR, "set: no setting '%.40s'%s", name, ql_nearest(name, names(), near));
		return false;
	}
	if (s->choices && !is_choice(s->choices, value)) {
		snprintf(error, QL_SETTING_ERROR, "set: %s: wanted one of %s, got '%.40s'%s", name, s->choices, value,
			ql_nearest(value, s->choices, near));
		return false;
	}
	if (!s->choices && !is_integer(s, value)) {
		snprintf(error, QL_SETTING_ERROR, "set: %s: wanted an integer from %lld to %lld, got '%.40s'", name,
			(long long)s->lo, (long long)s->hi, value);
		return false;
	}
	snprintf(values[i], QL_VALUE, "%s", value);
	if (i == QL_SETTING_plot)
		setenv("QUOLL_PLOT", strcmp(value, "auto") ? value : "", 1);
	return true;
}

/* ---- the user's file ---- */

static void take_line(const char *path, int number, char *line)
{
	char name[64], value[64], error[QL_SETTING_ERROR];
	const char *plot = getenv("QUOLL_PLOT");

	if (line[strspn(line, " \t\n")] == '#' || !line[strspn(line, " \t\n")])
		return;
	if (sscanf(line, "%63s %63s", name, value) != 2)
		snprintf(error, sizeof(error), "wanted a name and a value");
	else if ((!strcmp(name, "plot") && plot && *plot) || put_setting(name, value, error))
		return;
	fprintf(stderr, "%s:%d: %s; the line is left out\n", path, number, error);
}

/* internal.settings: name -> value, for those who have only Lua's registry. */
static int publish(lua_State *L)
{
	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	lua_createtable(L, 0, QL_SETTING_COUNT);
	for (int i = 0; i < QL_SETTING_COUNT; i++) {
		lua_pushstring(L, ql_setting_text((enum ql_setting)i));
		lua_setfield(L, -2, settings[i].name);
	}
	lua_setfield(L, -2, "settings");
	return 0;
}

void ql_settings_load(lua_State *L)
{
	char path[QL_PATH], *line = NULL;
	size_t room = 0;
	FILE *f = ql_folder(QL_FOLDER_CONFIG, "settings", false, path) ? fopen(path, "re") : NULL;

	for (int number = 1; f && getline(&line, &room, f) >= 0; number++)
		take_line(path, number, line);
	free(line);
	if (f)
		fclose(f);
	lua_pushcfunction(L, publish);
	if (lua_pcall(L, 0, 0, 0))
		lua_pop(L, 1);
}

/* ---- for the prelude ---- */

/* list_settings() -> list of {name, value, otherwise, choices or range, text} */
static int push_settings(lua_State *L)
{
	lua_createtable(L, QL_SETTING_COUNT, 0);
	for (int i = 0; i < QL_SETTING_COUNT; i++) {
		const struct setting *s = &settings[i];

		lua_createtable(L, 5, 0);
		lua_pushstring(L, s->name);
		lua_rawseti(L, -2, 1);
		lua_pushstring(L, ql_setting_text((enum ql_setting)i));
		lua_rawseti(L, -2, 2);
		lua_pushstring(L, s->otherwise);
		lua_rawseti(L, -2, 3);
		if (s->choices)
			lua_pushstring(L, s->choices);
		else
			lua_pushfstring(L, "%I to %I", (LUAI_UACINT)s->lo, (LUAI_UACINT)s->hi);
		lua_rawseti(L, -2, 4);
		lua_pushstring(L, s->text);
		lua_rawseti(L, -2, 5);
		lua_rawseti(L, -2, i + 1);
	}
	return 1;
}

/* setting(name) -> value; setting(name, value) -> true, or nil and a message */
static int setting(lua_State *L)
{
	const char *name = luaL_checkstring(L, 1);
	char error[QL_SETTING_ERROR];
	int i = find(name);

	if (lua_isnoneornil(L, 2)) {
		lua_pushstring(L, i < 0 ? NULL : ql_setting_text((enum ql_setting)i));
		return 1;
	}
	if (put_setting(name, luaL_checkstring(L, 2), error)) {
		publish(L);
		lua_pushboolean(L, true);
		return 1;
	}
	lua_pushnil(L);
	lua_pushstring(L, error);
	return 2;
}

/* folder('config' or 'state', name) -> path, whose folder exists now; or nil, message */
static int folder(lua_State *L)
{
	static const char *const kinds[] = {"config", "state", NULL};
	enum ql_folder kind = luaL_checkoption(L, 1, NULL, kinds) ? QL_FOLDER_STATE : QL_FOLDER_CONFIG;
	char path[QL_PATH];

	if (ql_folder(kind, luaL_checkstring(L, 2), true, path)) {
		lua_pushstring(L, path);
		return 1;
	}
	lua_pushnil(L);
	lua_pushstring(L, path);
	return 2;
}

int ql_open_settings(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{"list_settings", push_settings}, {"setting", setting}, {"folder", folder}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
	return 0;
}
