/* SPDX-License-Identifier: MIT
 * One short line about a tensor or a model, for tracebacks and lists of variables.
 */
#ifndef QUOLL_INTERP_DESCRIBE_H
#define QUOLL_INTERP_DESCRIBE_H

#include <lua.h>
#include <stdbool.h>

#define QL_DESCRIPTION 256

/* Writes the line about the value at `index`: "float32(3, 4)". False for any other kind of value. Never
 * raises an error of the value itself (only one of no memory). */
bool ql_value_describe(lua_State *L, int index, char text[QL_DESCRIPTION]);
/* Copies at most `room` - 1 bytes, control characters replaced by '?', cut text marked with "...". */
void ql_text_clean(const char *text, size_t size, char *out, size_t room);

/* Copies text as it may stand in a message of one line: control characters and bytes that are no UTF-8 as \n or \x1b, at most
 * `most` characters and what fits into `room`, cut text marked with "…". */
void ql_text_escape(const char *text, size_t size, size_t most, char *out, size_t room);
/* What a message says behind "got": "nil", "number 3", "string abc", "float32(2, 3)", "table". */
void ql_value_got(lua_State *L, int index, char text[QL_DESCRIPTION]);

#endif
