/* SPDX-License-Identifier: MIT
 * The palette. Basic colours only: they follow the user's terminal theme.
 */
#include "interp/host/style.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/host/output.h"
#include "interp/host/settings.h"

bool ql_style_wanted(FILE *f)
{
	const char *term = getenv("TERM"), *plain = getenv("NO_COLOR");

	if (!ql_setting_is(QL_SETTING_colours, "auto"))
		return ql_setting_is(QL_SETTING_colours, "on");
	if (plain && *plain)
		return false;
	return term && *term && strcmp(term, "dumb") && isatty(ql_output_fd(f));
}

const char *ql_style_escape(enum ql_style style)
{
	static const char *const escape[] = {
		[QL_STYLE_NONE] = "\033[0m",
		[QL_STYLE_PROMPT] = "\033[32m",
		[QL_STYLE_RESULT] = "\033[31m",
		[QL_STYLE_ERROR] = "\033[31m",
		[QL_STYLE_WARNING] = "\033[33m",
		[QL_STYLE_DIM] = "\033[2m",
		[QL_STYLE_KEYWORD] = "\033[1;35m",
		[QL_STYLE_STRING] = "\033[33m",
		[QL_STYLE_NUMBER] = "\033[36m",
		[QL_STYLE_COMMENT] = "\033[90m",
		[QL_STYLE_HINT] = "\033[90m",
		[QL_STYLE_BRACKET] = "\033[1;4m",
		[QL_STYLE_CHOSEN] = "\033[7m",
	};

	return escape[style];
}

const char *ql_style(FILE *f, enum ql_style style)
{
	return ql_style_wanted(f) ? ql_style_escape(style) : "";
}
