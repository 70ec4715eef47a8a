/* SPDX-License-Identifier: MIT
 * Motions of vi's normal mode, for its commands.
 */
#ifndef QUOLL_INTERP_REPL_VI_H
#define QUOLL_INTERP_REPL_VI_H

#include "interp/repl/editor.h"

/* What an operator takes of the way: the last character is left out, or in; whole lines. NONE: there is no
 * way. */
enum ql_reach { QL_REACH_NONE, QL_REACH_UP_TO, QL_REACH_WITH, QL_REACH_LINES };

/* One step of a motion from *at. */
enum ql_reach ql_vi_move(struct ql_editor *e, uint32_t key, size_t *at);
bool ql_vi_is_motion(uint32_t key);
/* The line above or below in the same column; QL_NO_PLACE: there is none. */
size_t ql_vi_line(struct ql_editor *e, size_t at, bool down);
bool ql_vi_is_blank(const struct ql_bytes *t, size_t at);
/* The character is the last of its word. */
bool ql_vi_ends_word(const struct ql_bytes *t, size_t at, bool big);

#endif
