/* SPDX-License-Identifier: MIT
 * Text with a style for each byte, and how the editor's text and what is below it are painted.
 */
#ifndef QUOLL_INTERP_REPL_PAINTED_H
#define QUOLL_INTERP_REPL_PAINTED_H

#include "interp/repl/editor.h"
#include "interp/host/style.h"

struct ql_painted {
	struct ql_bytes text, style; /* style: one enum ql_style for each byte of text */
};

bool ql_painted_add(struct ql_painted *p, const char *text, size_t n, enum ql_style style);
void ql_painted_clear(struct ql_painted *p);
void ql_painted_free(struct ql_painted *p);

/* What the editor shows: the text with its bracket and suggestion, when it is still edited; below it the
 * search or the list of completions, at most `rows` lines. */
void ql_paint_editor(struct ql_painted *p, const struct ql_editor *e, bool editing);
void ql_paint_below(struct ql_painted *p, const struct ql_editor *e, int columns, int rows);

#endif
