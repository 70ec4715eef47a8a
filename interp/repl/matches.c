/* SPDX-License-Identifier: MIT
 * A list of completions.
 */
#include "interp/repl/matches.h"

#include <stdlib.h>

static void free_match(struct ql_match *m)
{
	ql_bytes_free(&m->text);
	ql_bytes_free(&m->kind);
	ql_bytes_free(&m->doc);
}

bool ql_matches_add(struct ql_matches *m, const char *text, const char *kind, const char *doc)
{
	struct ql_match new = {0};

	if (m->n == m->room) {
		size_t room = m->room ? 2 * m->room : 32;
		struct ql_match *match = reallocarray(m->match, room, sizeof(*match));

		if (!match)
			return false;
		m->match = match;
		m->room = room;
	}
	if (!ql_bytes_text(&new.text, text) || !ql_bytes_text(&new.kind, kind) || !ql_bytes_text(&new.doc, doc)) {
		free_match(&new);
		return false;
	}
	m->match[m->n++] = new;
	return true;
}

size_t ql_matches_common(const struct ql_matches *m)
{
	size_t n = m->n ? m->match[0].text.size : 0;

	for (size_t i = 1; i < m->n; i++) {
		const struct ql_bytes *t = &m->match[i].text;
		size_t same = 0;

		while (same < n && same < t->size && t->at[same] == m->match[0].text.at[same])
			same++;
		n = same;
	}
	while (n > 0 && n < m->match[0].text.size && ((unsigned char)m->match[0].text.at[n] & 0xC0) == 0x80)
		n--; /* never half a character */
	return n;
}

void ql_matches_clear(struct ql_matches *m)
{
	while (m->n > 0)
		free_match(&m->match[--m->n]);
}

void ql_matches_free(struct ql_matches *m)
{
	ql_matches_clear(m);
	free(m->match);
	*m = (struct ql_matches){0};
}
