/* SPDX-License-Identifier: MIT
 * UTF-8 against its definition: all characters, all sequences of two bytes, and the limits of longer ones.
 */
#include "tensor/utf8.h"

#include <string.h>

#include "tests/check.h"

static void test_characters(void)
{
	CASE("every character survives encoding and decoding, and no part of it is one");
	for (uint32_t c = 1; c < 0x110000; c++) {
		char bytes[5] = {0};
		const char *at = bytes;
		int n = ql_utf8_put(c, bytes), want = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		bool surrogate = c >= 0xD800 && c < 0xE000;

		CHECK(n == want, "U+%04X: %d bytes", c, n);
		CHECK(ql_utf8_length(bytes, (size_t)n) == (surrogate ? 0 : n), "U+%04X", c);
		CHECK(ql_utf8_valid(bytes, (size_t)n) == !surrogate, "U+%04X", c);
		CHECK(surrogate || (ql_utf8_next(&at) == c && !*at), "U+%04X", c);
		for (int k = 1; k < n && !surrogate; k++) {
			CHECK(ql_utf8_length(bytes, (size_t)k) == -1, "U+%04X: %d bytes of it", c, k);
			CHECK(ql_utf8_length(bytes + k, (size_t)(n - k)) == 0, "U+%04X: from byte %d on", c, k);
		}
	}
}

static void test_malformed(void)
{
	static const char *const wrong[] = {"\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xe0\x80\xaf", "\xed\xa0\x80",
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe", "\x80", "\xe2z\x80",
		"\xe2\x82z", "\xf0\x9f\x98z"};

	CASE("overlong forms, surrogates, characters that are too large, and bytes that continue nothing");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK(ql_utf8_length(wrong[i], strlen(wrong[i])) == 0, "%zu", i);
		CHECK(!ql_utf8_valid(wrong[i], strlen(wrong[i])), "%zu", i);
	}
	CHECK(ql_utf8_valid("", 0) && ql_utf8_valid("a\0b", 3) && !ql_utf8_valid("ab\xc3", 3), "%s", "");
	CASE("two bytes: characters are C2 to DF, then 80 to BF");
	for (int a = 0x80; a < 0x100; a++)
		for (int b = 0; b < 0x100; b++) {
			char bytes[2] = {(char)a, (char)b};
			bool good = a >= 0xC2 && a < 0xE0 && b >= 0x80 && b < 0xC0;

			CHECK((ql_utf8_length(bytes, 2) == 2) == good, "%02x %02x", a, b);
		}
}

int main(void)
{
	test_characters();
	test_malformed();
	return check_end();
}
