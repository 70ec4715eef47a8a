/* SPDX-License-Identifier: MIT
 * Completions of a place in a text.
 */
#ifndef QUOLL_INTERP_REPL_MATCHES_H
#define QUOLL_INTERP_REPL_MATCHES_H

#include "interp/host/bytes.h"

struct ql_match {
	struct ql_bytes text, kind, doc;
};

/* The text from `from` up to `to` is to be replaced by one of them. */
struct ql_matches {
	size_t from, to;
	struct ql_match *match;
	size_t n, room;
};

bool ql_matches_add(struct ql_matches *m, const char *text, const char *kind, const char *doc);
/* Bytes that all have in common. */
size_t ql_matches_common(const struct ql_matches *m);
void ql_matches_clear(struct ql_matches *m);
void ql_matches_free(struct ql_matches *m);

#endif
