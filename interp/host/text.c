/* SPDX-License-Identifier: MIT
 * Texts of any origin as they may appear in one line.
 */
#include "interp/host/text.h"

#include <stdio.h>
#include <string.h>

#include "interp/host/bytes.h"

void ql_text_clean(const char *text, size_t size, char *out, size_t room)
{
	size_t n = size < room ? size : room - 1;

	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 127 ? '?' : text[i];
	if (n < size && n > 3)
		memcpy(out + n - 3, "...", 3);
	out[n] = '\0';
}

/* Writes one character, escaped where it must be, and returns its length. */
static size_t escape(const char *text, size_t n, uint32_t c, char out[8])
{
	if (c == '\n' || c == '\t' || c == '\r')
		return (size_t)snprintf(out, 8, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
	if (c == 0)
		return (size_t)snprintf(out, 8, "\\0");
	if (c < ' ' || (c >= 127 && c < 160) || (n == 1 && c > 127))
		return (size_t)snprintf(out, 8, "\\x%02x", n == 1 ? (unsigned char)*text : (unsigned)c);
	memcpy(out, text, n);
	return n;
}

void ql_text_escape(const char *text, size_t size, size_t most, char *out, size_t room)
{
	size_t at = 0, done = 0, n;
	char one[8];

	for (; done < size; most--) {
		uint32_t c = ql_bytes_char(text + done, size - done, &n);
		size_t wide = escape(text + done, n, c, one);

		if (!most || at + wide + (done + n < size ? sizeof("…") : 1) > room)
			break;
		memcpy(out + at, one, wide);
		at += wide;
		done += n;
	}
	if (done < size) {
		memcpy(out + at, "…", strlen("…"));
		at += strlen("…");
	}
	out[at] = '\0';
}
