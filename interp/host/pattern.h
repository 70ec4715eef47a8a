/* SPDX-License-Identifier: MIT
 * Matching of Lua patterns (section 6.4.1 of the Lua 5.4 manual) that an interrupt can end.
 */
#ifndef QUOLL_INTERP_HOST_PATTERN_H
#define QUOLL_INTERP_HOST_PATTERN_H

#include <lua.h>
#include <stddef.h>

#define QL_CAPTURES 32
#define QL_CAPTURE_OPEN (-1)     /* its end is not yet known */
#define QL_CAPTURE_POSITION (-2) /* "()" */

struct ql_pattern_match {
	lua_State *L;
	const char *text, *text_end, *pattern_end;
	int depth;    /* of the recursion */
	size_t steps; /* since the interrupt flag was polled */
	int captures;
	struct {
		const char *at;
		ptrdiff_t size; /* or one of the two above */
	} capture[QL_CAPTURES];
};

struct ql_pattern_match ql_match_new(
	lua_State *L, const char *text, size_t size, const char *pattern, size_t pattern_size);
/* Matches the pattern at this place of the text: end of the match, or NULL. Raises for a malformed pattern,
 * one that nests too deeply, and an interrupt. */
const char *ql_match_at(struct ql_pattern_match *m, const char *at, const char *pattern);
/* Pushes capture i (0-based) of a match at..end; without captures, 0 is the whole match. */
void ql_match_push(struct ql_pattern_match *m, int i, const char *at, const char *end);
/* Pushes all captures (the whole match when there are none, unless at is NULL) and returns their number. */
int ql_match_push_all(struct ql_pattern_match *m, const char *at, const char *end);

#endif
