/* SPDX-License-Identifier: MIT
 * An editor without a terminal, to which tests feed keys.
 */
#ifndef QUOLL_TESTS_INTERP_REPL_EDITOR_H
#define QUOLL_TESTS_INTERP_REPL_EDITOR_H

#include <string.h>

#include "interp/repl/editor.h"
#include "tests/check.h"

#define UP "\033[A"
#define DOWN "\033[B"
#define LEFT "\033[D"
#define RIGHT "\033[C"

static struct ql_history history;
static struct ql_editor editor;

static inline bool is_whole(void *data, const char *text, size_t n)
{
	(void)data;
	return n < 1 || text[n - 1] != '\\'; /* a backslash at the end asks for more */
}

static inline bool complete(void *data, const char *text, size_t n, size_t at, struct ql_matches *m)
{
	static const char *const words[] = {"alpha", "alphabet", "beta", NULL};
	size_t from = at;

	(void)data;
	(void)n;
	while (from > 0 && text[from - 1] >= 'a' && text[from - 1] <= 'z')
		from--;
	m->from = from;
	m->to = at;
	for (const char *const *word = words; *word; word++)
		if (!strncmp(*word, text + from, at - from))
			ql_matches_add(m, *word, "word", "of the test");
	return m->n > 0;
}

static inline void begin(void)
{
	ql_editor_free(&editor);
	ql_editor_begin(&editor, &history, &(struct ql_editor_host){.is_whole = is_whole, .complete = complete});
}

static inline void feed(const char *bytes, size_t n)
{
	uint32_t key;

	for (size_t i = 0; i < n; i++)
		if (ql_keys_feed(&editor.keys, (unsigned char)bytes[i], &key))
			ql_editor_key(&editor, key);
	if (ql_keys_waiting(&editor.keys) && ql_keys_flush(&editor.keys, &key))
		ql_editor_key(&editor, key);
}

/* Types keys into an empty editor; | in `wanted` is the cursor. */

#endif
