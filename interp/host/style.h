/* SPDX-License-Identifier: MIT
 * Colours, only where they are wanted: on a terminal, without NO_COLOR, with a TERM that is not "dumb".
 */
#ifndef QUOLL_INTERP_HOST_STYLE_H
#define QUOLL_INTERP_HOST_STYLE_H

#include <stdbool.h>
#include <stdio.h>

enum ql_style {
	QL_STYLE_NONE,
	QL_STYLE_PROMPT,
	QL_STYLE_RESULT,
	QL_STYLE_ERROR,
	QL_STYLE_WARNING,
	QL_STYLE_DIM,
	QL_STYLE_KEYWORD,
	QL_STYLE_STRING,
	QL_STYLE_NUMBER,
	QL_STYLE_COMMENT,
	QL_STYLE_HINT,    /* what could be typed next */
	QL_STYLE_BRACKET, /* the one that belongs to the one at the cursor */
	QL_STYLE_CHOSEN
};

/* Escape sequence of the style, wherever it goes. */
const char *ql_style_escape(enum ql_style style);

bool ql_style_wanted(FILE *f);
/* Escape sequence that begins the style (QL_STYLE_NONE: ends all), "" where no colours are wanted. */
const char *ql_style(FILE *f, enum ql_style style);

#endif
