/* SPDX-License-Identifier: MIT
 * A backtracking matcher over the text of the pattern. The pattern is a sequence of items: a class of
 * characters with an optional repetition, a capture bracket, a back reference, %b, %f or the final $. What
 * follows an item decides how often it is repeated, so the matcher calls itself for the rest and tries again
 * with another count.
 *
 * Backtracking can take exponential time, hence the poll of the interrupt flag every QL_POLL steps.
 */
#include "interp/host/pattern.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <string.h>

#include "interp/host/interrupt.h"

#define QL_DEPTH 200 /* of the recursion, as in plain Lua */
#define QL_POLL 65536

#define ESCAPE '%'

static unsigned char byte_at(const char *p)
{
	return (unsigned char)*p;
}

struct ql_pattern_match ql_match_new(
	lua_State *L, const char *text, size_t size, const char *pattern, size_t pattern_size)
{
	return (struct ql_pattern_match){
		.L = L, .text = text, .text_end = text + size, .pattern_end = pattern + pattern_size};
}

static void count_steps(struct ql_pattern_match *m, ptrdiff_t n)
{
	m->steps += (size_t)n;
	if (m->steps < QL_POLL)
		return;
	m->steps = 0;
	ql_interrupt_check(m->L);
}

/* ---- classes of characters ---- */

/* %a and its like; any other letter means itself */
static bool in_named_class(int c, int name)
{
	bool in;

	switch (tolower(name)) {
	case 'a': in = isalpha(c); break;
	case 'c': in = iscntrl(c); break;
	case 'd': in = isdigit(c); break;
	case 'g': in = isgraph(c); break;
	case 'l': in = islower(c); break;
	case 'p': in = ispunct(c); break;
	case 's': in = isspace(c); break;
	case 'u': in = isupper(c); break;
	case 'w': in = isalnum(c); break;
	case 'x': in = isxdigit(c); break;
	case 'z': /* from the time when a pattern could not contain one */ in = c == 0; break;
	default: return name == c;
	}
	return isupper(name) ? !in : in;
}

/* After the class that begins at p. */
static const char *class_end(struct ql_pattern_match *m, const char *p)
{
	char first = *p++;

	if (first == ESCAPE) {
		if (p == m->pattern_end)
			luaL_error(m->L, "malformed pattern (ends with '%%')");
		return p + 1;
	}
	if (first != '[')
		return p;
	if (p < m->pattern_end && *p == '^')
		p++;
	do { /* a "]" in first place is an ordinary character */
		if (p == m->pattern_end)
			luaL_error(m->L, "malformed pattern (missing ']')");
		if (*p++ == ESCAPE && p < m->pattern_end)
			p++;
	} while (p >= m->pattern_end || *p != ']');
	return p + 1;
}

/* c is in the set [...] whose closing bracket is at `last` */
static bool in_set(int c, const char *p, const char *last)
{
	bool inside = true;

	p++;
	if (*p == '^') {
		inside = false;
		p++;
	}
	for (; p < last; p++) {
		if (*p == ESCAPE) {
			p++;
			if (in_named_class(c, byte_at(p)))
				return inside;
		} else if (p[1] == '-' && p + 2 < last) {
			if (byte_at(p) <= c && c <= byte_at(p + 2))
				return inside;
			p += 2;
		} else if (byte_at(p) == c) {
			return inside;
		}
	}
	return !inside;
}

/* The character at `at` (which may be the end of the text) is in the class p..end. */
static bool in_class(const struct ql_pattern_match *m, const char *at, const char *p, const char *end)
{
	int c;

	if (at >= m->text_end)
		return false;
	c = byte_at(at);
	switch (*p) {
	case '.': return true;
	case ESCAPE: return in_named_class(c, byte_at(p + 1));
	case '[': return in_set(c, p, end - 1);
	default: return byte_at(p) == c;
	}
}

/* ---- repetitions: the class p..end, the rest of the pattern after its mark ---- */

static const char *match(struct ql_pattern_match *m, const char *at, const char *p);

static const char *most_first(struct ql_pattern_match *m, const char *at, const char *p, const char *end)
{
	ptrdiff_t n = 0;

	while (in_class(m, at + n, p, end))
		n++;
	count_steps(m, n);
	for (; n >= 0; n--) {
		const char *found = match(m, at + n, end + 1);

		if (found)
			return found;
	}
	return NULL;
}

static const char *fewest_first(struct ql_pattern_match *m, const char *at, const char *p, const char *end)
{
	for (;; at++) {
		const char *found = match(m, at, end + 1);

		if (found)
			return found;
		if (!in_class(m, at, p, end))
			return NULL;
	}
}

/* ---- captures ---- */

static const char *open_capture(struct ql_pattern_match *m, const char *at, const char *rest, ptrdiff_t size)
{
	const char *found;

	if (m->captures >= QL_CAPTURES)
		luaL_error(m->L, "too many captures");
	m->capture[m->captures].at = at;
	m->capture[m->captures].size = size;
	m->captures++;
	found = match(m, at, rest);
	if (!found)
		m->captures--;
	return found;
}

static const char *close_capture(struct ql_pattern_match *m, const char *at, const char *rest)
{
	int i = m->captures - 1;
	const char *found;

	while (i >= 0 && m->capture[i].size != QL_CAPTURE_OPEN)
		i--;
	if (i < 0)
		luaL_error(m->L, "invalid pattern capture");
	m->capture[i].size = at - m->capture[i].at;
	found = match(m, at, rest);
	if (!found)
		m->capture[i].size = QL_CAPTURE_OPEN;
	return found;
}

/* After the text of capture %1 to %9 when it is here; NULL when it does not. */
static const char *match_reference(struct ql_pattern_match *m, const char *at, char digit)
{
	int i = digit - '1';
	size_t size;

	if (i < 0 || i >= m->captures || m->capture[i].size == QL_CAPTURE_OPEN)
		luaL_error(m->L, "invalid capture index %%%d", i + 1);
	size = (size_t)m->capture[i].size;
	if ((size_t)(m->text_end - at) < size || memcmp(m->capture[i].at, at, size))
		return NULL;
	return at + size;
}

/* ---- %b and %f; p is after the letter ---- */

static const char *match_balance(struct ql_pattern_match *m, const char *at, const char *p)
{
	const char *begin = at;
	int open = 1;

	if (p + 1 >= m->pattern_end)
		luaL_error(m->L, "malformed pattern (missing arguments to '%%b')");
	if (at >= m->text_end || *at != p[0])
		return NULL;
	for (at++; at < m->text_end; at++) {
		if (*at == p[1]) {
			if (--open == 0) {
				count_steps(m, at - begin);
				return at + 1;
			}
		} else if (*at == p[0]) {
			open++;
		}
	}
	count_steps(m, at - begin);
	return NULL;
}

/* Before the text and after it stands the character 0. */
static bool at_frontier(struct ql_pattern_match *m, const char *at, const char *p, const char *end)
{
	int before = at == m->text ? 0 : byte_at(at - 1), here = at == m->text_end ? 0 : byte_at(at);

	return !in_set(before, p, end - 1) && in_set(here, p, end - 1);
}

/* ---- the sequence ---- */

/* An item that begins with "%" and is no class: *at and *p go after it, or *at becomes NULL. False: it is a
 * class. */
static bool match_special(struct ql_pattern_match *m, const char **at, const char **p)
{
	char letter = *p + 1 < m->pattern_end ? (*p)[1] : '\0';
	const char *end;

	if (letter == 'b') {
		*at = match_balance(m, *at, *p + 2);
		*p += 4;
	} else if (letter == 'f') {
		if (*p + 2 >= m->pattern_end || (*p)[2] != '[')
			luaL_error(m->L, "missing '[' after '%%f' in pattern");
		end = class_end(m, *p + 2);
		if (!at_frontier(m, *at, *p + 2, end))
			*at = NULL;
		*p = end;
	} else if (letter >= '0' && letter <= '9') {
		*at = match_reference(m, *at, letter);
		*p += 2;
	} else {
		return false;
	}
	return true;
}

static const char *match_sequence(struct ql_pattern_match *m, const char *at, const char *p)
{
	while (p < m->pattern_end) {
		const char *end, *found;

		if (*p == '(') {
			bool position = p + 1 < m->pattern_end && p[1] == ')';

			return open_capture(m, at, p + 1 + position, position ? QL_CAPTURE_POSITION : QL_CAPTURE_OPEN);
		}
		if (*p == ')')
			return close_capture(m, at, p + 1);
		if (*p == '$' && p + 1 == m->pattern_end)
			return at == m->text_end ? at : NULL;
		if (*p == ESCAPE && match_special(m, &at, &p)) {
			if (!at)
				return NULL;
			continue;
		}
		end = class_end(m, p);
		switch (end < m->pattern_end ? *end : '\0') {
		case '*': return most_first(m, at, p, end);
		case '+': return in_class(m, at, p, end) ? most_first(m, at + 1, p, end) : NULL;
		case '-': return fewest_first(m, at, p, end);
		case '?':
			found = in_class(m, at, p, end) ? match(m, at + 1, end + 1) : NULL;
			if (found)
				return found;
			p = end + 1;
			break;
		default:
			if (!in_class(m, at, p, end))
				return NULL;
			at++;
			p = end;
			break;
		}
	}
	return at;
}

static const char *match(struct ql_pattern_match *m, const char *at, const char *p)
{
	const char *found;

	if (m->depth == QL_DEPTH)
		luaL_error(m->L, "pattern too complex");
	m->depth++;
	count_steps(m, 1);
	found = match_sequence(m, at, p);
	m->depth--;
	return found;
}

const char *ql_match_at(struct ql_pattern_match *m, const char *at, const char *pattern)
{
	m->captures = 0;
	m->depth = 0;
	return match(m, at, pattern);
}

void ql_match_push(struct ql_pattern_match *m, int i, const char *at, const char *end)
{
	if (i >= m->captures) {
		if (i != 0)
			luaL_error(m->L, "invalid capture index %%%d", i + 1);
		lua_pushlstring(m->L, at, (size_t)(end - at));
	} else if (m->capture[i].size == QL_CAPTURE_POSITION) {
		lua_pushinteger(m->L, m->capture[i].at - m->text + 1);
	} else if (m->capture[i].size == QL_CAPTURE_OPEN) {
		luaL_error(m->L, "unfinished capture");
	} else {
		lua_pushlstring(m->L, m->capture[i].at, (size_t)m->capture[i].size);
	}
}

int ql_match_push_all(struct ql_pattern_match *m, const char *at, const char *end)
{
	int n = m->captures == 0 && at ? 1 : m->captures;

	luaL_checkstack(m->L, n, "too many captures");
	for (int i = 0; i < n; i++)
		ql_match_push(m, i, at, end);
	return n;
}
