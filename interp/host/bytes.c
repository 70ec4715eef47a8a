/* SPDX-License-Identifier: MIT
 * Growable bytes. Widths come from the C library's wcwidth, which knows the Unicode version that the
 * machine's other programs know; it needs a UTF-8 locale, which is switched on around the call only: Lua must
 * not see it.
 */
#include "interp/host/bytes.h"

#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "interp/host/utf8.h"

static bool reserve(struct ql_bytes *b, size_t size)
{
	size_t room = 2 * size + 64;
	char *at;

	if (b->at && size < b->room)
		return true;
	at = size < SIZE_MAX / 4 ? realloc(b->at, room) : NULL;
	if (!at)
		return false;
	b->at = at;
	b->room = room;
	return true;
}

bool ql_bytes_replace(struct ql_bytes *b, size_t from, size_t to, const char *bytes, size_t n)
{
	size_t rest = b->size - to;

	if (!reserve(b, b->size - (to - from) + n))
		return false;
	memmove(b->at + from + n, b->at + to, rest);
	if (n)
		memcpy(b->at + from, bytes, n);
	b->size = from + n + rest;
	b->at[b->size] = '\0';
	return true;
}

bool ql_bytes_add(struct ql_bytes *b, const char *bytes, size_t n)
{
	return ql_bytes_replace(b, b->size, b->size, bytes, n);
}

bool ql_bytes_set(struct ql_bytes *b, const char *bytes, size_t n)
{
	return ql_bytes_replace(b, 0, b->size, bytes, n);
}

bool ql_bytes_text(struct ql_bytes *b, const char *text)
{
	return ql_bytes_add(b, text, strlen(text));
}

bool ql_bytes_print(struct ql_bytes *b, const char *format, ...)
{
	char text[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (n >= (int)sizeof(text))
		n = (int)sizeof(text) - 1;
	return n >= 0 && ql_bytes_add(b, text, (size_t)n);
}

void ql_bytes_free(struct ql_bytes *b)
{
	free(b->at);
	*b = (struct ql_bytes){0};
}

/* RFC 3629: the length that the first byte asks for, and the least code point of that length. */
uint32_t ql_bytes_char(const char *text, size_t n, size_t *length)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)text;
	size_t size = *p < 0x80 ? 1 : *p < 0xC2 ? 0 : *p < 0xE0 ? 2 : *p < 0xF0 ? 3 : *p < 0xF5 ? 4 : 0;
	uint32_t c = size == 1 ? *p : *p & (0x7Fu >> size);

	*length = 1;
	if (size == 0 || size > n)
		return 0xFFFD;
	for (size_t i = 1; i < size; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0xFFFD;
		c = c << 6 | (p[i] & 0x3Fu);
	}
	if (c < least[size] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
		return 0xFFFD;
	*length = size;
	return c;
}

/* The user's locale when it is one of UTF-8, else C.UTF-8; 0: there is none. */
static locale_t wide_locale(void)
{
	static locale_t found;
	static bool asked;

	if (asked)
		return found;
	asked = true;
	found = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	if (found && strcmp(nl_langinfo_l(CODESET, found), "UTF-8")) {
		freelocale(found);
		found = (locale_t)0;
	}
	if (!found)
		found = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	return found;
}

int ql_bytes_columns(uint32_t c)
{
	locale_t wide, before;
	int columns;

	if (c < 0x20 || c == 0x7F)
		return 2;
	if (c < 0x7F)
		return 1;
	wide = wide_locale();
	if (!wide)
		return c < 0xA0 ? 1 : ql_utf8_columns(c);
	before = uselocale(wide);
	columns = wcwidth((wchar_t)c);
	uselocale(before);
	return columns < 0 ? 1 : columns;
}
