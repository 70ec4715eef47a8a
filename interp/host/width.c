/* SPDX-License-Identifier: MIT
 * The width of printed values. The terminal is asked each time: windows change. COLUMNS of the environment
 * wins in scripts, as in most programs, but not at the prompt, where a shell that exports it would freeze the
 * width.
 */
#include "interp/host/width.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "interp/host/settings.h"

#define PLAIN 80 /* columns where there is no terminal */
#define LEAST 20 /* a terminal that claims less does not know */
#define MOST 10000

static bool fixed, at_prompt;

void ql_width_fix(void)
{
	fixed = true;
}

void ql_width_prompt(void)
{
	at_prompt = true;
}

bool ql_width_script(void)
{
	return !fixed && !at_prompt;
}

bool ql_width_at_prompt(void)
{
	return at_prompt && !fixed;
}

/* What COLUMNS says; 0: nothing that makes sense. */
static int columns_of_environment(void)
{
	const char *text = getenv("COLUMNS");
	char *end;
	long columns = text ? strtol(text, &end, 10) : 0;

	return columns >= LEAST && columns <= MOST && !*end ? (int)columns : 0;
}

int ql_width(void)
{
	int wanted = (int)ql_setting_int(QL_SETTING_width);
	struct winsize size;

	if (!wanted && !fixed && !at_prompt)
		wanted = columns_of_environment();
	if (wanted)
		return wanted;
	if (fixed || !isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < LEAST)
		return PLAIN;
	return size.ws_col;
}

static bool begins_character(char c)
{
	return ((unsigned char)c & 0xC0) != 0x80;
}

int ql_width_of(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += begins_character(*text);
	return n;
}

/* "a 1, b 2" becomes "a 1 …" rather than "a 1, b …", unless that leaves less than half of the width. */
void ql_width_cut(char *text, size_t room, int width)
{
	size_t end = 0, space = 0, part = 0;
	int columns = 0;

	if (ql_width_of(text) <= width)
		return;
	for (; text[end]; end++) {
		if (begins_character(text[end]) && ++columns > width - 1)
			break;
		if (text[end] == ' ')
			space = end;
		if (text[end] == ' ' && end && strchr(",;", text[end - 1]) && columns > width / 2)
			part = end;
	}
	if (space)
		end = part ? part : space;
	while (end && strchr(" ,;", text[end - 1]))
		end--;
	snprintf(text + end, room - end, "%s…", space ? " " : "");
}
