/* SPDX-License-Identifier: MIT
 * Places in a text: characters, words, lines, brackets. Each function goes from a byte offset to another.
 */
#ifndef QUOLL_INTERP_REPL_MOTION_H
#define QUOLL_INTERP_REPL_MOTION_H

#include "interp/host/bytes.h"

#define QL_NO_PLACE SIZE_MAX

/* A letter with its combining marks is one character. */
size_t ql_motion_next(const struct ql_bytes *t, size_t at);
size_t ql_motion_back(const struct ql_bytes *t, size_t at);
/* Letters, digits, _ and everything beyond ASCII make words. */
bool ql_motion_in_word(const struct ql_bytes *t, size_t at);
size_t ql_motion_word_end(const struct ql_bytes *t, size_t at);
size_t ql_motion_word_begin(const struct ql_bytes *t, size_t at);
/* To the beginning of the blank-separated word before. */
size_t ql_motion_blank_begin(const struct ql_bytes *t, size_t at);

size_t ql_motion_line_begin(const struct ql_bytes *t, size_t at);
size_t ql_motion_line_end(const struct ql_bytes *t, size_t at);
/* The first character of the line that is no blank, or its end. */
size_t ql_motion_line_text(const struct ql_bytes *t, size_t at);
/* The columns between the beginning of the line and the place, a tab as wide as there. */
int ql_motion_column(const struct ql_bytes *t, size_t at);
/* The place at that column (or before) of the line that contains `at`. */
size_t ql_motion_at_column(const struct ql_bytes *t, size_t at, int column);
/* Columns of a tab that begins at `column` of the text. */
int ql_motion_tab(int column);

/* The bracket that belongs to the one at `at`, as Lua reads them: not those in strings. QL_NO_PLACE: none. */
size_t ql_motion_bracket(const struct ql_bytes *t, size_t at);

#endif
