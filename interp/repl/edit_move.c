/* SPDX-License-Identifier: MIT
 * Commands of keys.def that move the cursor, and those that leave the editor.
 */
#include "interp/repl/editor.h"
#include "interp/repl/motion.h"

static const struct ql_bytes *text_of(const struct ql_editor *e)
{
	return &e->buffer.text;
}

static void go(struct ql_editor *e, size_t at)
{
	e->buffer.cursor = at;
	e->buffer.typing = false;
	ql_menu_close(e);
}

void ql_edit_back(struct ql_editor *e)
{
	go(e, ql_motion_back(text_of(e), e->buffer.cursor));
}

void ql_edit_forward(struct ql_editor *e)
{
	if (!ql_editor_take_suggestion(e, false))
		go(e, ql_motion_next(text_of(e), e->buffer.cursor));
}

void ql_edit_word_back(struct ql_editor *e)
{
	go(e, ql_motion_word_begin(text_of(e), e->buffer.cursor));
}

void ql_edit_word_forward(struct ql_editor *e)
{
	if (!ql_editor_take_suggestion(e, true))
		go(e, ql_motion_word_end(text_of(e), e->buffer.cursor));
}

void ql_edit_line_begin(struct ql_editor *e)
{
	go(e, ql_motion_line_begin(text_of(e), e->buffer.cursor));
}

void ql_edit_line_end(struct ql_editor *e)
{
	if (!ql_editor_take_suggestion(e, false))
		go(e, ql_motion_line_end(text_of(e), e->buffer.cursor));
}

void ql_edit_text_begin(struct ql_editor *e)
{
	go(e, 0);
}

void ql_edit_text_end(struct ql_editor *e)
{
	go(e, text_of(e)->size);
}

void ql_edit_clear(struct ql_editor *e)
{
	e->wish = QL_WISH_CLEAR;
}

void ql_edit_drop(struct ql_editor *e)
{
	e->wish = QL_WISH_DROP;
}

void ql_edit_suspend(struct ql_editor *e)
{
	e->wish = QL_WISH_SUSPEND;
}

void ql_edit_external(struct ql_editor *e)
{
	e->wish = QL_WISH_EDITOR;
}

void ql_edit_cancel(struct ql_editor *e)
{
	ql_menu_close(e);
}
