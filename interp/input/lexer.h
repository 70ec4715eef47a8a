/* SPDX-License-Identifier: MIT
 * Lua's tokens, with their places in the text: for the cells of the prompt, tracebacks, colouring.
 */
#ifndef QUOLL_INTERP_INPUT_LEXER_H
#define QUOLL_INTERP_INPUT_LEXER_H

#include <stdbool.h>
#include <stddef.h>

enum ql_token_kind {
	QL_TOKEN_END,
	QL_TOKEN_NAME,
	QL_TOKEN_KEYWORD,
	QL_TOKEN_NUMBER,
	QL_TOKEN_STRING,
	QL_TOKEN_COMMENT,
	QL_TOKEN_OP,
	QL_TOKEN_BAD /* a byte that begins no token */
};

struct ql_token {
	enum ql_token_kind kind;
	bool open; /* a string or comment that the text does not finish */
	size_t begin, end;
};

struct ql_lexer {
	const char *text;
	size_t size, at;
};

struct ql_lexer ql_lexer_begin(const char *text, size_t size);
struct ql_token ql_lexer_next(struct ql_lexer *lexer);
/* The token spells `word`. */
bool ql_token_is(const struct ql_lexer *lexer, const struct ql_token *token, const char *word);

#endif
