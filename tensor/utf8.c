/* SPDX-License-Identifier: MIT
 * The range of the second byte depends on the first: Unicode 15, table 3-7.
 */
#include "tensor/utf8.h"

int ql_utf8_length(const char *at, size_t n)
{
	const unsigned char *p = (const unsigned char *)at;
	unsigned lo = 0x80, hi = 0xBF;
	int length = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;

	if (p[0] == 0xE0)
		lo = 0xA0;
	else if (p[0] == 0xED)
		hi = 0x9F;
	else if (p[0] == 0xF0)
		lo = 0x90;
	else if (p[0] == 0xF4)
		hi = 0x8F;
	for (int i = 1; i < length; i++) {
		if ((size_t)i == n)
			return -1;
		if (p[i] < lo || p[i] > hi)
			return 0;
		lo = 0x80;
		hi = 0xBF;
	}
	return length;
}

bool ql_utf8_valid(const char *text, size_t n)
{
	for (size_t at = 0; at < n;) {
		int length = ql_utf8_length(text + at, n - at);

		if (length <= 0)
			return false;
		at += (size_t)length;
	}
	return true;
}

uint32_t ql_utf8_next(const char **text)
{
	const unsigned char *p = (const unsigned char *)*text;
	int more = *p < 0x80 ? 0 : *p < 0xE0 ? 1 : *p < 0xF0 ? 2 : 3;
	uint32_t c = more ? *p & (0x3Fu >> more) : *p;

	if (!c && !more)
		return 0;
	for (int i = 1; i <= more; i++)
		c = c << 6 | (p[i] & 0x3Fu);
	*text += more + 1;
	return c;
}

int ql_utf8_put(uint32_t c, char *out)
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xC0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3F));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xE0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3F));
		out[2] = (char)(0x80 | (c & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3F));
	out[2] = (char)(0x80 | (c >> 6 & 0x3F));
	out[3] = (char)(0x80 | (c & 0x3F));
	return 4;
}
