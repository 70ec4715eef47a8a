/* SPDX-License-Identifier: MIT
 * A ring of killed texts.
 */
#include "interp/repl/kills.h"

void ql_kills_add(struct ql_kills *k, const char *text, size_t n, enum ql_kill how)
{
	struct ql_bytes *b;

	k->shown = 0;
	if (n == 0)
		return;
	if (how == QL_KILL_NEW || k->n == 0) {
		k->newest = (k->newest + 1) % QL_KILLS;
		k->n += k->n < QL_KILLS;
		ql_bytes_set(&k->text[k->newest], NULL, 0);
	}
	b = &k->text[k->newest];
	ql_bytes_replace(b, how == QL_KILL_BEFORE ? 0 : b->size, how == QL_KILL_BEFORE ? 0 : b->size, text, n);
}

const struct ql_bytes *ql_kills_yank(struct ql_kills *k)
{
	k->shown = 0;
	return k->n ? &k->text[k->newest] : NULL;
}

const struct ql_bytes *ql_kills_rotate(struct ql_kills *k)
{
	if (k->n == 0)
		return NULL;
	k->shown = (k->shown + 1) % k->n;
	return &k->text[(k->newest - k->shown + QL_KILLS) % QL_KILLS];
}

void ql_kills_free(struct ql_kills *k)
{
	for (int i = 0; i < QL_KILLS; i++)
		ql_bytes_free(&k->text[i]);
	k->n = 0;
}
