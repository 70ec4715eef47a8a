/* SPDX-License-Identifier: MIT
 * "did you mean": which word of a list is the nearest, and when none is.
 */
#include <string.h>

#include "tensor/nearest.h"
#include "tests/check.h"

static void is(const char *word, const char *words, const char *wanted)
{
	char near[96], text[96] = "";

	if (*wanted)
		snprintf(text, sizeof(text), "; did you mean '%s'?", wanted);
	ql_nearest(word, words, near);
	CHECK(!strcmp(near, text), "%s of %s: wanted '%s', got '%s'", word, words, text, near);
}

int main(void)
{
	CASE("edits, swapped letters, s and z");
	is("unit8", "int8 uint8 int4", "uint8");
	is("symetric", "asymmetric symmetric log", "symmetric");
	is("quantise", "quantize requantize", "quantize");
	CASE("short words: one edit; longer ones: two");
	is("lg", "log", "log");
	is("abc", "axy", "");
	is("entropi", "entropy", "entropy");
	is("nothing", "int8 minmax", "");
	CASE("equally near: the same beginning, the nearer number, the alphabet");
	is("int9", "int4 int8", "int8");
	is("int9", "int8 int4", "int8");
	is("int3", "int8 int4", "int4");
	is("xat", "cat bat xan", "xan");
	is("zat", "cat bat", "bat");
	CASE("the shortest that goes on");
	is("asy", "asymmetrically asymmetric log", "asymmetric");
	is("as", "asymmetric", "");
	CASE("no words, long words");
	is("x", "", "");
	is("abcdefghijklmnopqrstuvwxyzabcdefgh", "abcdefghijklmnopqrstuvwxyzabcdefgi", "");
	return check_end();
}
