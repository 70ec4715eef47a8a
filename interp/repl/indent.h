/* SPDX-License-Identifier: MIT
 * Indentation of Lua while it is typed.
 */
#ifndef QUOLL_INTERP_REPL_INDENT_H
#define QUOLL_INTERP_REPL_INDENT_H

#include "interp/host/bytes.h"

#define QL_INDENT 2 /* blanks for each open block or bracket */

/* Blanks that a line begun at `at` gets. Blocks that are opened on one line count once. */
int ql_indent_after(const struct ql_bytes *t, size_t at);
/* When what precedes `at` on its line is only a word that closes a block (end, else, until, a bracket):
 * the blanks it wants before it; -1: it is nothing of the kind. */
int ql_indent_closing(const struct ql_bytes *t, size_t at);

#endif
