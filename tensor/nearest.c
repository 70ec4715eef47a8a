/* SPDX-License-Identifier: MIT
 * Finds the word of a list that was probably meant: the one with the smallest edit distance with transpositions
 * (Damerau-Levenshtein, restricted), at most one edit in short words and two in longer ones; else the shortest word
 * with the typed prefix.
 */
#include "tensor/nearest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* quantise and quantize count as equal. */
static bool alike(char a, char b)
{
	return a == b || (a == 's' && b == 'z');
}

/* Edit distance with transpositions for words of up to 31 letters; longer ones never match. */
static int distance(const char *a, size_t n, const char *b, size_t m)
{
	int row[3][33];

	if (n > 31 || m > 31)
		return 99;
	for (size_t j = 0; j <= m; j++)
		row[1][j] = (int)j;
	for (size_t i = 1; i <= n; i++) {
		int *now = row[(i + 1) % 3], *last = row[i % 3], *before = row[(i + 2) % 3];

		now[0] = (int)i;
		for (size_t j = 1; j <= m; j++) {
			int best = last[j - 1] + !alike(a[i - 1], b[j - 1]);

			best = last[j] + 1 < best ? last[j] + 1 : best;
			best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				best = before[j - 2] + 1 < best ? before[j - 2] + 1 : best;
			now[j] = best;
		}
	}
	return row[(n + 1) % 3][m];
}

/* The difference of the first digits that differ: int8 is nearer to int9 than int4. */
static int digits_off(const char *word, const char *a, size_t n)
{
	size_t i = 0;

	while (i < n && word[i] == a[i])
		i++;
	return i < n && isdigit((unsigned char)word[i]) && isdigit((unsigned char)a[i]) ? abs(word[i] - a[i]) : 10;
}

/* Of two words at the same distance prefers the one with the same first letter, then the one whose number is
 * nearer, then alphabetical order, so the result does not depend on the order of the words. */
static bool comes_first(const char *word, const char *a, size_t n, const char *b, size_t m)
{
	bool begins = a[0] == word[0];
	int off = digits_off(word, a, n), other = digits_off(word, b, m);

	if (begins != (b[0] == word[0]))
		return begins;
	if (off != other)
		return off < other;
	return strncmp(a, b, n < m ? n : m) < 0 || (n < m && !strncmp(a, b, n));
}

/* The shortest word of which the typed one, of at least three letters, is a prefix. */
static const char *begun(const char *word, size_t n, const char *words, size_t *found_n)
{
	const char *found = NULL;

	if (n < 3)
		return NULL;
	for (const char *w = words; *w; w += strspn(w, " ")) {
		size_t m = strcspn(w, " ");

		if (m > n && !strncmp(w, word, n) && (!found || m < *found_n)) {
			found = w;
			*found_n = m;
		}
		w += m;
	}
	return found;
}

const char *ql_nearest(const char *word, const char *words, char text[96])
{
	size_t n = strlen(word), best_n = 0;
	int best = n < 4 ? 2 : 3; /* one edit in a short word, two in a longer one */
	const char *found = NULL;

	for (const char *w = words; *w;) {
		size_t m = strcspn(w, " ");
		int d = distance(word, n, w, m);

		if (d < best || (found && d == best && comes_first(word, w, m, found, best_n))) {
			best = d;
			found = w;
			best_n = m;
		}
		w += m;
		w += strspn(w, " ");
	}
	if (!found)
		found = begun(word, n, words, &best_n);
	text[0] = '\0';
	if (found)
		snprintf(text, 96, "; did you mean '%.*s'?", (int)best_n, found);
	return text;
}

enum ql_status ql_fail_choice(struct ql_ctx *ctx, const char *what, const char *words, const char *got)
{
	size_t n = strlen(words);
	char near[96];

	while (n && words[n - 1] == ' ')
		n--;
	return ql_fail(ctx, QL_ERR_ARGUMENT, "%s: wanted one of %.*s, got '%.40s'%s", what, (int)n, words, got,
		ql_nearest(got, words, near));
}
