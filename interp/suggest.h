/* SPDX-License-Identifier: MIT
 * "did you mean": the candidate nearest to a mistyped word.
 */
#ifndef QUOLL_INTERP_SUGGEST_H
#define QUOLL_INTERP_SUGGEST_H

struct ql_suggest {
	const char *word;
	const char *best; /* NULL while no candidate is near enough */
	int distance;
};

/* A candidate counts when at most a third of the letters of `word` (at least one) have to change. */
struct ql_suggest ql_suggest_begin(const char *word);
void ql_suggest_try(struct ql_suggest *s, const char *candidate);

#endif
