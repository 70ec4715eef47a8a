/* SPDX-License-Identifier: MIT
 * An input in pieces: Lua text, and between it lines that are no Lua (magic.h), each a statement of its own.
 */
#ifndef QUOLL_INTERP_REPL_PIECES_H
#define QUOLL_INTERP_REPL_PIECES_H

#include "interp/repl/cell.h"

struct ql_magic;

struct ql_piece {
	const struct ql_magic *magic; /* NULL: Lua */
	size_t begin, end;            /* bytes of the text */
	size_t from, code;            /* where the rest of a magic begins, and the code in it */
	size_t lines;                 /* line breaks before `begin` */
};

struct ql_pieces {
	lua_State *L;
	const char *text; /* borrowed */
	size_t size, at, lines;
	const size_t *cuts; /* places where a piece ends in any case, ascending */
	size_t n_cuts;
};

/* The next piece that is not blank; false: there is none. May raise (no memory). */
bool ql_pieces_next(struct ql_pieces *p, struct ql_piece *piece);
/* What the whole text is when it is an input: WRONG or INCOMPLETE: the message is on the stack. EMPTY: blank.
 * READY: nothing is on the stack. `chunk` as for ql_cell_compile. */
enum ql_cell_state ql_pieces_state(struct ql_pieces p, const char *chunk, struct ql_cell *cell);
/* Compiles one piece, whose lines get the numbers that they have in the whole text. Below the function, or
 * the message, may stand a text that must live as long as the cell. A magic without code is READY, and
 * nothing is pushed. */
enum ql_cell_state ql_piece_compile(
	const struct ql_pieces *p, const struct ql_piece *piece, const char *chunk, struct ql_cell *cell);

#endif
