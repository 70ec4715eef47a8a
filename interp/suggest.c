/* SPDX-License-Identifier: MIT
 * Optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours cost 1 each
 * (Damerau 1964). Words longer than the table are never suggested.
 */
#include "interp/suggest.h"

#include <string.h>

#define LONGEST 32

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int distance(const char *a, int n, const char *b, int m)
{
	int d[LONGEST + 1][LONGEST + 1];

	for (int i = 0; i <= n; i++)
		d[i][0] = i;
	for (int j = 0; j <= m; j++)
		d[0][j] = j;
	for (int i = 1; i <= n; i++) {
		for (int j = 1; j <= m; j++) {
			int change = a[i - 1] != b[j - 1];

			d[i][j] = least(least(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n][m];
}

struct ql_suggest ql_suggest_begin(const char *word)
{
	int n = (int)strnlen(word, LONGEST + 1);

	return (struct ql_suggest){word, NULL, (n < 6 ? 1 : n / 3) + 1};
}

void ql_suggest_try(struct ql_suggest *s, const char *candidate)
{
	size_t n = strnlen(s->word, LONGEST + 1), m = strnlen(candidate, LONGEST + 1);
	int d;

	if (n == 0 || n > LONGEST || m > LONGEST)
		return;
	d = distance(s->word, (int)n, candidate, (int)m);
	if (d < s->distance) {
		s->best = candidate;
		s->distance = d;
	}
}
