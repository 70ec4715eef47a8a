/* SPDX-License-Identifier: MIT
 * Labels' bytes: what is malformed or dangerous is replaced, everything else stays; widths.
 */
#include <string.h>

#include "interp/host/utf8.h"
#include "tests/check.h"

static struct ql_ctx *ctx;

static void check_clean(const char *text, size_t n, const char *expected)
{
	char *got = ql_utf8_clean(ctx, text, n);

	CHECK(got && !strcmp(got, expected), "'%s', wanted '%s'", got ? got : "(none)", expected);
	ql_free(ctx, got);
}

static void test_clean(void)
{
	CASE("utf8: good text stays");
	check_clean("a#<&\"", 5, "a#<&\"");
	check_clean("β µ ½ 日本 😀", strlen("β µ ½ 日本 😀"), "β µ ½ 日本 😀");
	check_clean("", 0, "");
	CASE("utf8: malformed bytes become U+FFFD (RFC 3629)");
	check_clean("a\xff"
		    "b",
		3,
		"a\xEF\xBF\xBD"
		"b");
	check_clean("\xc0\x80", 2, "\xEF\xBF\xBD\xEF\xBF\xBD");                                 /* overlong */
	check_clean("\xed\xa0\x80", 3, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");                 /* surrogate */
	check_clean("\xf4\x90\x80\x80", 4, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"); /* beyond U+10FFFF */
	check_clean("\xe2\x82", 2, "\xEF\xBF\xBD\xEF\xBF\xBD");                                 /* cut off */
	CASE("utf8: controls and marks that turn the direction become blanks");
	check_clean("a\0b\n\x1b[1m\x7f", 9, "a b  [1m ");
	check_clean("\xC2\x85\xE2\x80\xAE\xEF\xBF\xBE", 8, "   ");
}

static void test_width(void)
{
	const char *p = "aβ日😀";

	CASE("utf8: decoding and columns");
	CHECK(ql_utf8_next(&p) == 'a' && ql_utf8_next(&p) == 0x3B2 && ql_utf8_next(&p) == 0x65E5, "%s", p);
	CHECK(ql_utf8_next(&p) == 0x1F600 && ql_utf8_next(&p) == 0 && ql_utf8_next(&p) == 0, "%s", p);
	CHECK(ql_utf8_columns('a') == 1 && ql_utf8_columns(0x3B2) == 1 && ql_utf8_columns(0x28FF) == 1, "%s", "");
	CHECK(ql_utf8_columns(0x65E5) == 2 && ql_utf8_columns(0x1F600) == 2 && ql_utf8_columns(0x301) == 0, "%s", "");
	CHECK(ql_utf8_em('i') < ql_utf8_em('m') && ql_utf8_em(0x65E5) > ql_utf8_em('m'), "%s", "");
}

int main(void)
{
	ctx = ql_ctx_new(1);
	if (!ctx)
		return 1;
	test_clean();
	test_width();
	ql_ctx_free(ctx);
	return check_end();
}
