/* SPDX-License-Identifier: MIT
 * Walking JSON objects, writing JSON text (RFC 8259).
 */
#include "tensor/io/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tensor/utf8.h"

#define DEPTH_MAX 32 /* nesting depth of brackets in a value */

static enum ql_status wanted(struct ql_json *j, const char *what)
{
	if (j->at >= j->end)
		return ql_fail(j->ctx, QL_ERR_FORMAT, "%s: wanted %s, got its end", j->what, what);
	return ql_fail(j->ctx, QL_ERR_FORMAT, "%s: wanted %s at byte %zu, got '%c'", j->what, what,
		(size_t)(j->at - j->begin), *j->at);
}

static void skip_space(struct ql_json *j)
{
	while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
		j->at++;
}

static bool accept(struct ql_json *j, char symbol)
{
	skip_space(j);
	if (j->at == j->end || *j->at != symbol)
		return false;
	j->at++;
	return true;
}

enum ql_status ql_json_open(struct ql_ctx *ctx, const char *what, char *text, size_t n, struct ql_json *j)
{
	*j = (struct ql_json){.ctx = ctx, .what = what, .at = text, .begin = text, .end = text + n, .first = true};
	return accept(j, '{') ? QL_OK : wanted(j, "'{'");
}

/* Advances past the closing quote of the string that starts here. */
static enum ql_status skip_string(struct ql_json *j)
{
	if (!accept(j, '"'))
		return wanted(j, "a string");
	for (; j->at < j->end && *j->at != '"'; j->at++) {
		if ((unsigned char)*j->at < ' ')
			return wanted(j, "a string without control characters");
		if (*j->at == '\\' && ++j->at == j->end)
			break;
	}
	if (j->at >= j->end) {
		j->at = j->end;
		return wanted(j, "'\"'");
	}
	j->at++;
	return QL_OK;
}

/* Advances past the bracket that closes the one here. */
static enum ql_status skip_nested(struct ql_json *j)
{
	enum ql_status status = QL_OK;
	int depth = 0;

	do {
		if (j->at == j->end)
			return wanted(j, "a closing bracket");
		if (*j->at == '"') {
			status = skip_string(j);
			continue;
		}
		if (*j->at == '{' || *j->at == '[')
			depth++;
		if (*j->at == '}' || *j->at == ']')
			depth--;
		if (depth > DEPTH_MAX)
			return wanted(j, "at most 32 nested brackets");
		j->at++;
	} while (!status && depth > 0);
	return status;
}

static enum ql_status skip_value(struct ql_json *j, struct ql_json_value *value)
{
	enum ql_status status = QL_OK;

	skip_space(j);
	value->at = j->at;
	if (j->at < j->end && *j->at == '"')
		status = skip_string(j);
	else if (j->at < j->end && (*j->at == '{' || *j->at == '['))
		status = skip_nested(j);
	else
		while (j->at < j->end && !strchr(",}] \t\r\n", *j->at))
			j->at++;
	value->n = (size_t)(j->at - value->at);
	return status || value->n ? status : wanted(j, "a value");
}

enum ql_status ql_json_next(struct ql_json *j, char **key, struct ql_json_value *value)
{
	struct ql_json_value name;
	enum ql_status status;

	j->done = accept(j, '}');
	if (j->done)
		return QL_OK;
	if (!j->first && !accept(j, ','))
		return wanted(j, "',' or '}'");
	j->first = false;
	skip_space(j);
	name.at = j->at;
	status = skip_string(j);
	name.n = (size_t)(j->at - name.at);
	if (!status && !accept(j, ':'))
		status = wanted(j, "':'");
	if (!status)
		status = skip_value(j, value);
	if (!status && key)
		status = ql_json_string(j, name, key);
	return status;
}

enum ql_status ql_json_close(struct ql_json *j)
{
	skip_space(j);
	return j->at == j->end ? QL_OK : wanted(j, "nothing after the object");
}

static bool read_hex(const char *p, const char *end, uint32_t *code)
{
	*code = 0;
	if (end - p < 4)
		return false;
	for (int i = 0; i < 4; i++) {
		char c = p[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return false;
		*code = *code << 4 | (uint32_t)digit;
	}
	return true;
}

/* \uXXXX, or two of them for a code above FFFF; U+0000 is an error because names are zero-terminated. Returns the
 * position after it; NULL if it is not a character. */
static const char *read_unicode(const char *p, const char *end, uint32_t *code)
{
	uint32_t low;

	if (!read_hex(p, end, code) || *code == 0 || (*code >= 0xdc00 && *code < 0xe000))
		return NULL;
	p += 4;
	if (*code < 0xd800 || *code >= 0xe000)
		return p;
	if (end - p < 6 || p[0] != '\\' || p[1] != 'u' || !read_hex(p + 2, end, &low) || low < 0xdc00 || low >= 0xe000)
		return NULL;
	*code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
	return p + 6;
}

/* p is after a backslash; appends the decoded character at *to. */
static const char *decode_escape(const char *p, const char *end, char **to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *simple = p < end && *p ? strchr(from, *p) : NULL;
	uint32_t code;

	if (simple) {
		*(*to)++ = into[simple - from];
		return p + 1;
	}
	if (p == end || *p != 'u')
		return NULL;
	p = read_unicode(p + 1, end, &code);
	if (p)
		*to += ql_utf8_put(code, *to);
	return p;
}

enum ql_status ql_json_string(struct ql_json *j, struct ql_json_value value, char **out)
{
	const char *p = value.at + 1, *end = value.at + value.n - 1;
	char *to = value.at;

	*out = value.at;
	if (value.n < 2 || *value.at != '"')
		return ql_fail(j->ctx, QL_ERR_FORMAT, "%s: wanted a string, got '%.*s'", j->what,
			(int)(value.n < 20 ? value.n : 20), value.at);
	if (!ql_utf8_valid(p, (size_t)(end - p)))
		return ql_fail(j->ctx, QL_ERR_FORMAT, "%s: wanted a string in UTF-8, got other bytes at byte %zu",
			j->what, (size_t)(value.at - j->begin));
	while (p && p < end) {
		if (*p == '\\')
			p = decode_escape(p + 1, end, &to);
		else
			*to++ = *p++;
	}
	if (!p)
		return ql_fail(j->ctx, QL_ERR_FORMAT, "%s: wanted a legal escape in the string at byte %zu", j->what,
			(size_t)(value.at - j->begin));
	*to = '\0';
	return QL_OK;
}

static bool make_room(struct ql_text *t, size_t more)
{
	size_t room = t->room ? t->room : 1024;
	char *at;

	while (room - t->n <= more)
		room *= 2;
	if (room == t->room || t->failed)
		return !t->failed;
	at = ql_realloc(t->ctx, t->at, room);
	t->failed = !at;
	if (at) {
		t->at = at;
		t->room = room;
	}
	return !t->failed;
}

void ql_text_add(struct ql_text *t, const char *format, ...)
{
	va_list args, again;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	if (n >= 0 && make_room(t, (size_t)n)) {
		vsnprintf(t->at + t->n, t->room - t->n, format, again);
		t->n += (size_t)n;
	}
	va_end(again);
	va_end(args);
}

void ql_text_add_escaped(struct ql_text *t, const char *string)
{
	for (const unsigned char *p = (const unsigned char *)string; *p; p++) {
		if (*p < ' ')
			ql_text_add(t, "\\u%04x", *p);
		else if (*p == '"' || *p == '\\')
			ql_text_add(t, "\\%c", *p);
		else
			ql_text_add(t, "%c", *p);
	}
}
