/* SPDX-License-Identifier: MIT
 * Tokens of a Lua text with their nesting: enough of the grammar to find top-level statements, `local`
 * declarations and `return`s. Made for text that compiles; on other text the nesting is a guess.
 */
#ifndef QUOLL_INTERP_INPUT_SCAN_H
#define QUOLL_INTERP_INPUT_SCAN_H

#include "interp/input/lexer.h"

#define QL_SCAN_BLOCKS 256 /* Lua allows 200 nested C levels of its parser */

struct ql_scan {
	struct ql_lexer lexer;
	struct ql_token token, last;     /* comments are left out */
	int blocks, brackets, functions; /* open before `token` */
	bool is_function[QL_SCAN_BLOCKS];
};

struct ql_scan ql_scan_begin(const char *text, size_t size);
/* Goes to the next token; false: there is none. */
bool ql_scan_next(struct ql_scan *s);
bool ql_scan_is(const struct ql_scan *s, const char *word);
/* The token is outside of all blocks and brackets. */
bool ql_scan_outside(const struct ql_scan *s);
/* The token is the name of a variable, not of a field, method or label. */
bool ql_scan_is_variable(const struct ql_scan *s);

#endif
