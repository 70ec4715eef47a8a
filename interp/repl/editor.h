/* SPDX-License-Identifier: MIT
 * The line editor without its terminal: keys come in, the text and what is around it come out.
 */
#ifndef QUOLL_INTERP_REPL_EDITOR_H
#define QUOLL_INTERP_REPL_EDITOR_H

#include "interp/repl/buffer.h"
#include "interp/repl/history.h"
#include "interp/repl/keys.h"
#include "interp/repl/kills.h"
#include "interp/repl/matches.h"

/* What the editor asks of the interpreter. Any may be NULL. */
struct ql_editor_host {
	void *data;
	bool (*is_whole)(void *data, const char *text, size_t n); /* Enter may run it */
	bool (*complete)(void *data, const char *text, size_t n, size_t at, struct ql_matches *m);
};

/* What a key asked for beyond editing. */
enum ql_wish {
	QL_WISH_NONE,
	QL_WISH_RUN,     /* the text is an input */
	QL_WISH_DROP,    /* forget the text, begin again */
	QL_WISH_LEAVE,   /* end the session */
	QL_WISH_SUSPEND, /* give the terminal back to the shell */
	QL_WISH_EDITOR,  /* open $EDITOR on the text */
	QL_WISH_CLEAR    /* clear the screen */
};

enum ql_did { QL_DID_OTHER, QL_DID_KILL, QL_DID_YANK, QL_DID_VERTICAL }; /* the last command */

struct ql_search {
	bool on, failed;
	int step;             /* -1: towards older ones */
	struct ql_bytes word; /* what is looked for */
	size_t entry, begin;  /* where it was found: entry and offset */
	struct ql_bytes before;
	size_t before_cursor;
};

struct ql_menu {
	bool open;
	struct ql_matches matches;
	size_t chosen; /* SIZE_MAX: none */
	size_t length; /* bytes of what is in the text at matches.from now */
};

/* editing_mode vi. A command is [count] operator [count] motion. */
struct ql_vi {
	bool on, normal;
	unsigned count, operator_count;
	uint32_t pending, operator; /* r f F t T g wait for one more key; d c y for a motion */
	uint32_t found, found_how;  /* last character of f F t T */
	bool repeats;               /* ; and , go beyond where t and T have stopped */
};

struct ql_editor {
	struct ql_buffer buffer;
	struct ql_kills kills;
	struct ql_history *history; /* borrowed */
	struct ql_editor_host host;
	struct ql_keys keys;
	struct ql_search search;
	struct ql_menu menu;
	struct ql_vi vi;
	bool plain; /* no colours: no grey suggestion, which would look like text */
	enum ql_wish wish;
	enum ql_did did, doing;
	uint32_t prefix_key; /* Ctrl-X waits for the second key */
	int goal;            /* column that Up and Down keep to */
	size_t yank_from;
	/* history: the entry that is shown (history->n: none), the text as it was before, how much of it
	 * entries must begin with */
	size_t entry, filter;
	struct ql_bytes draft, recalled;
};

typedef void ql_edit_fn(struct ql_editor *e);

void ql_editor_begin(struct ql_editor *e, struct ql_history *history, const struct ql_editor_host *host);
/* One key; e->wish is what is asked for. */
void ql_editor_key(struct ql_editor *e, uint32_t key);
/* For a new input: no text, no undo; kills and settings stay. */
void ql_editor_clear(struct ql_editor *e);
void ql_editor_free(struct ql_editor *e);

/* Replaces the whole text, as one step of undo. */
void ql_editor_set(struct ql_editor *e, const char *text, size_t n);
/* Copies text from outside: line ends become \n, what is no text is left out. */
bool ql_editor_clean(struct ql_bytes *out, const char *text, size_t n);
/* What follows the text in the newest entry that begins with it, when the cursor is at its end; NULL:
 * nothing. */
const char *ql_editor_suggestion(const struct ql_editor *e, size_t *n);

/* Between the files of the editor. */
bool ql_editor_take_suggestion(struct ql_editor *e, bool word);
bool ql_search_key(struct ql_editor *e, uint32_t key);
bool ql_menu_key(struct ql_editor *e, uint32_t key);
void ql_menu_close(struct ql_editor *e);
void ql_menu_refresh(struct ql_editor *e);
bool ql_vi_key(struct ql_editor *e, uint32_t key);

/* The commands of keys.def. */
#define X(key, command, text) void ql_edit_##command(struct ql_editor *e);
#include "interp/repl/keys.def"
#undef X

#endif
