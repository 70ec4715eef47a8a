/* SPDX-License-Identifier: MIT
 * UTF-8 for labels. The widths are those of DejaVu Sans, which pango picks on Debian; other sans-serif fonts
 * are as wide or narrower, so boxes made by them hold.
 */
#include "interp/host/utf8.h"

#include <string.h>

/* Controls C0, DEL and C1; the line and paragraph separators; the marks that turn the direction of writing,
 * which could make a label pretend to be another; U+FFFE and U+FFFF, which XML forbids. */
static bool unwanted(uint32_t c)
{
	return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) ||
	       (c & 0xFFFE) == 0xFFFE;
}

char *ql_utf8_clean(struct ql_ctx *ctx, const char *text, size_t n)
{
	uint64_t room;
	char *out, *o;

	if (!ql_size_mul(n, 3, &room) || !ql_size_add(room, 1, &room))
		room = UINT64_MAX;
	o = out = ql_alloc(ctx, room);
	if (!out)
		return NULL;
	for (size_t i = 0; i < n;) {
		int length = ql_utf8_length(text + i, n - i);
		const char *at = text + i, *next = at, *end = at + (length > 0 ? length : 1);

		i = (size_t)(end - text);
		if (length <= 0)
			o += ql_utf8_put(0xFFFD, o);
		else if (unwanted(ql_utf8_next(&next))) /* 0, too */
			*o++ = ' ';
		else
			while (at < end)
				*o++ = *at++;
	}
	*o = '\0';
	return out;
}

struct span {
	uint32_t lo, hi;
};

/* Combining marks and joiners of the scripts likely in labels (Unicode classes Mn, Me, Cf). */
static const struct span zero_width[] = {{0x300, 0x36F}, {0x483, 0x489}, {0x591, 0x5BD}, {0x610, 0x61A}, {0x64B, 0x65F},
	{0x6D6, 0x6DC}, {0x900, 0x902}, {0x93C, 0x93C}, {0x941, 0x948}, {0x94D, 0x94D}, {0xE31, 0xE31}, {0xE34, 0xE3A},
	{0xE47, 0xE4E}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x2060, 0x2064}, {0x20D0, 0x20FF},
	{0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};
/* East Asian wide and fullwidth (UAX 11), emoji. */
static const struct span wide[] = {{0x1100, 0x115F}, {0x231A, 0x231B}, {0x23E9, 0x23EC}, {0x25FD, 0x25FE},
	{0x2614, 0x2615}, {0x2648, 0x2653}, {0x26AA, 0x26AB}, {0x26BD, 0x26BE}, {0x2705, 0x2705}, {0x274C, 0x274C},
	{0x2753, 0x2755}, {0x2795, 0x2797}, {0x2B1B, 0x2B1C}, {0x2B50, 0x2B50}, {0x2E80, 0x303E}, {0x3041, 0x33FF},
	{0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA000, 0xA4CF}, {0xA960, 0xA97F}, {0xAC00, 0xD7A3}, {0xF900, 0xFAFF},
	{0xFE30, 0xFE6F}, {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
	{0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

static bool within(uint32_t c, const struct span *spans, size_t n)
{
	for (size_t i = 0; i < n && c >= spans[i].lo; i++)
		if (c <= spans[i].hi)
			return true;
	return false;
}

int ql_utf8_columns(uint32_t c)
{
	if (c < 0x300)
		return 1;
	if (within(c, zero_width, sizeof(zero_width) / sizeof(zero_width[0])))
		return 0;
	return within(c, wide, sizeof(wide) / sizeof(wide[0])) ? 2 : 1;
}

/* Hundredths of an em for ' ' to '~'. */
static const unsigned char ascii_width[95] = {32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64,
	64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86,
	75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63, 63, 28,
	28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};

double ql_utf8_em(uint32_t c)
{
	if (c >= ' ' && c <= '~')
		return ascii_width[c - ' '] * 0.01;
	if (c == 0x2212) /* minus */
		return 0.84;
	if (c == 0xB2 || c == 0xB3 || c == 0xB9 || (c >= 0x2070 && c <= 0x2089)) /* superscript digits */
		return 0.41;
	return c == 0xB5 || c == 0xD7 ? 0.7 : 0.7 * ql_utf8_columns(c);
}
