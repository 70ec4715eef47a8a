/* SPDX-License-Identifier: MIT
 * Reading walks over the text once before cJSON gets it: it counts brackets and looks at escapes, both
 * outside of and inside of strings as RFC 8259 has them. cJSON itself refuses what is no JSON.
 */
#include "interp/jupyter/wire.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/utf8.h"

#define QL_WIRE_DEEPEST 100

/* ---- writing ---- */

static bool reserve(struct ql_wire *t, size_t n)
{
	size_t room = 2 * (t->n + n) + 64;
	char *at;

	if (t->failed || n <= t->room - t->n)
		return !t->failed;
	at = n < ((size_t)1 << 40) ? realloc(t->at, room) : NULL;
	t->failed = !at;
	if (!at)
		return false;
	t->at = at;
	t->room = room;
	return true;
}

void ql_wire_add(struct ql_wire *t, const char *bytes, size_t n)
{
	if (!n || !reserve(t, n))
		return;
	memcpy(t->at + t->n, bytes, n);
	t->n += n;
}

void ql_wire_put(struct ql_wire *t, const char *text)
{
	ql_wire_add(t, text, strlen(text));
}

void ql_wire_print(struct ql_wire *t, const char *format, ...)
{
	char text[512];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	ql_wire_put(t, text);
}

static void quote_one(struct ql_wire *t, unsigned char c)
{
	static const char *const named[] = {
		['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r"};

	if (c == '"')
		ql_wire_add(t, "\\\"", 2);
	else if (c == '\\')
		ql_wire_add(t, "\\\\", 2);
	else if (c < sizeof(named) / sizeof(named[0]) && named[c])
		ql_wire_add(t, named[c], 2);
	else
		ql_wire_print(t, "\\u%04x", c);
}

void ql_wire_quote(struct ql_wire *t, const char *bytes, size_t n)
{
	size_t plain = 0, at = 0;

	ql_wire_add(t, "\"", 1);
	while (at < n) {
		unsigned char c = (unsigned char)bytes[at];
		int length = c < 0x80 ? 1 : ql_utf8_length(bytes + at, n - at);

		if (length > 0 && c >= 0x20 && c != '"' && c != '\\' && c != 0x7F) {
			at += (size_t)length;
			continue;
		}
		ql_wire_add(t, bytes + plain, at - plain);
		if (length <= 0)
			ql_wire_put(t, "\xEF\xBF\xBD");
		else
			quote_one(t, c);
		plain = ++at;
	}
	ql_wire_add(t, bytes + plain, n - plain);
	ql_wire_add(t, "\"", 1);
}

void ql_wire_quote_0(struct ql_wire *t, const char *text)
{
	ql_wire_quote(t, text, strlen(text));
}

void ql_wire_base64(struct ql_wire *t, const char *bytes, size_t n)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = (const unsigned char *)bytes;

	for (size_t i = 0; i < n; i += 3) {
		unsigned bits =
			(unsigned)p[i] << 16 | (i + 1 < n ? (unsigned)p[i + 1] << 8 : 0) | (i + 2 < n ? p[i + 2] : 0u);
		char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], i + 1 < n ? digits[bits >> 6 & 63] : '=',
			i + 2 < n ? digits[bits & 63] : '='};

		ql_wire_add(t, four, 4);
	}
}

void ql_wire_free(struct ql_wire *t)
{
	free(t->at);
	*t = (struct ql_wire){0};
}

/* ---- reading ---- */

/* Goes over a string; `at` is after the opening quote. */
static size_t pass_string(const char *text, size_t n, size_t at, const char **why)
{
	while (at < n && text[at] != '"') {
		if (text[at] != '\\') {
			at++;
			continue;
		}
		if (n - at >= 6 && !memcmp(text + at, "\\u0000", 6))
			*why = "a text with a NUL character";
		at += 2;
	}
	return at + 1;
}

static const char *check(const char *text, size_t n)
{
	const char *why = NULL;
	int depth = 0;

	for (size_t at = 0; at < n && !why;) {
		char c = text[at++];

		if (c == '"')
			at = pass_string(text, n, at, &why);
		else if (c == '{' || c == '[')
			depth++;
		else if (c == '}' || c == ']')
			depth--;
		else if (c == '\0')
			why = "a NUL byte";
		if (depth > QL_WIRE_DEEPEST)
			why = "too many levels";
	}
	return why;
}

static bool has_twice(const cJSON *object)
{
	for (const cJSON *a = object->child; a; a = a->next)
		for (const cJSON *b = a->next; b; b = b->next)
			if (!strcmp(a->string, b->string))
				return true;
	return false;
}

cJSON *ql_wire_read(const char *text, size_t n, const char **why)
{
	cJSON *object = NULL;
	const char *end = NULL;

	*why = check(text, n);
	if (*why)
		return NULL;
	object = cJSON_ParseWithLengthOpts(text, n, &end, 0);
	while (object && end < text + n && strchr(" \t\r\n", *end))
		end++;
	if (!object || end != text + n)
		*why = "no JSON";
	else if (!cJSON_IsObject(object))
		*why = "no object";
	else if (cJSON_GetArraySize(object) > 1000 || has_twice(object))
		*why = "a name twice";
	if (!*why)
		return object;
	cJSON_Delete(object);
	return NULL;
}

const char *ql_wire_member(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : NULL;
}

bool ql_wire_flag(const cJSON *object, const char *name, bool otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsBool(item) ? cJSON_IsTrue(item) : otherwise;
}

long long ql_wire_integer(const cJSON *object, const char *name, long long otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	if (!cJSON_IsNumber(item) || fabs(item->valuedouble) > 0x1p53 || floor(item->valuedouble) != item->valuedouble)
		return otherwise;
	return (long long)item->valuedouble;
}
