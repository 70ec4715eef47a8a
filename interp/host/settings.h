/* SPDX-License-Identifier: MIT
 * The settings of settings.def: how things are shown. One set per process, as there is one terminal.
 */
#ifndef QUOLL_INTERP_HOST_SETTINGS_H
#define QUOLL_INTERP_HOST_SETTINGS_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ql_setting {
#define X(name, otherwise, lo, hi, choices, text) QL_SETTING_##name,
#include "interp/host/settings.def"
#undef X
	QL_SETTING_COUNT
};

#define QL_SETTING_ERROR 256

/* The value as text; valid until the setting changes. */
const char *ql_setting_text(enum ql_setting setting);
int64_t ql_setting_int(enum ql_setting setting);
bool ql_setting_is(enum ql_setting setting, const char *word);
/* Takes the lines "name value" of the user's file, if there is one; what is wrong in it is reported on stderr and
 * left out. */
void ql_settings_load(lua_State *L);

#endif
