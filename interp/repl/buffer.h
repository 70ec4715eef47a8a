/* SPDX-License-Identifier: MIT
 * The text that is edited, its cursor, and undo.
 */
#ifndef QUOLL_INTERP_REPL_BUFFER_H
#define QUOLL_INTERP_REPL_BUFFER_H

#include "interp/host/bytes.h"

/* One change: at `at`, `removed` went and `inserted` came. */
struct ql_change {
	size_t at;
	struct ql_bytes removed, inserted;
	size_t cursor; /* before it */
	bool joined;   /* undone together with the one before */
};

struct ql_buffer {
	struct ql_bytes text;
	size_t cursor;            /* byte offset, always between characters */
	struct ql_change *change; /* [0, n_done) can be undone, [n_done, n_known) redone */
	size_t n_done, n_known, room;
	bool typing; /* the last change was typed: the next character joins it */
	int group;   /* > 0: changes join into one step */
};

/* Replaces and puts the cursor after what came; undoable. False: no memory. */
bool ql_buffer_replace(struct ql_buffer *b, size_t from, size_t to, const char *text, size_t n);
/* At the cursor; typed characters of one word are undone together. */
bool ql_buffer_type(struct ql_buffer *b, const char *text, size_t n);
/* Changes between the two are one step. */
void ql_buffer_group(struct ql_buffer *b);
void ql_buffer_ungroup(struct ql_buffer *b);
/* False: there is nothing to undo (redo). */
bool ql_buffer_undo(struct ql_buffer *b);
bool ql_buffer_redo(struct ql_buffer *b);
/* Empty, with nothing to undo. */
void ql_buffer_clear(struct ql_buffer *b);
void ql_buffer_free(struct ql_buffer *b);

#endif
