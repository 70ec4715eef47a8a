/* SPDX-License-Identifier: MIT
 * The list of inputs. Adding looks at all hashes: at most 11000 take some microseconds, once per input.
 */
#include "interp/repl/history.h"

#include <stdlib.h>
#include <string.h>

static uint64_t hash_of(const char *text, size_t n)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static void drop(struct ql_history *h, size_t i)
{
	ql_bytes_free(&h->entry[i].text);
	h->n--;
	memmove(h->entry + i, h->entry + i + 1, (h->n - i) * sizeof(*h->entry));
}

static void drop_equal(struct ql_history *h, const char *text, size_t n, uint64_t hash)
{
	uint64_t *word = &h->seen[hash >> 6 & 16383], bit = UINT64_C(1) << (hash & 63);

	if (!(*word & bit)) {
		*word |= bit;
		return;
	}
	for (size_t i = h->n; i-- > 0;) {
		const struct ql_entry *e = &h->entry[i];

		if (e->hash == hash && e->text.size == n && !memcmp(e->text.at, text, n)) {
			drop(h, i);
			return;
		}
	}
}

static void drop_oldest(struct ql_history *h)
{
	if (h->n < QL_HISTORY_ENTRIES + QL_HISTORY_SPARE)
		return;
	for (size_t i = 0; i < QL_HISTORY_SPARE; i++)
		ql_bytes_free(&h->entry[i].text);
	h->n -= QL_HISTORY_SPARE;
	memmove(h->entry, h->entry + QL_HISTORY_SPARE, h->n * sizeof(*h->entry));
}

static bool has_room(struct ql_history *h)
{
	size_t room = h->room ? 2 * h->room : 256;
	struct ql_entry *entry;

	if (h->n < h->room)
		return true;
	entry = reallocarray(h->entry, room, sizeof(*entry));
	if (!entry)
		return false;
	h->entry = entry;
	h->room = room;
	return true;
}

bool ql_history_add(struct ql_history *h, const char *text, size_t n)
{
	struct ql_entry e = {0};

	while (n > 0 && strchr(" \t\r\n", text[n - 1]))
		n--;
	if (n == 0 || *text == ' ' || *text == '\t' || memchr(text, '\0', n))
		return false;
	e.hash = hash_of(text, n);
	if (!has_room(h) || !ql_bytes_set(&e.text, text, n))
		return false;
	drop_equal(h, text, n, e.hash);
	h->entry[h->n++] = e;
	drop_oldest(h);
	return true;
}

size_t ql_history_prefix(const struct ql_history *h, size_t from, int step, const char *text, size_t n)
{
	for (size_t i = from + (size_t)step; i < h->n; i += (size_t)step)
		if (h->entry[i].text.size >= n && (n == 0 || !memcmp(h->entry[i].text.at, text, n)))
			return i;
	return QL_HISTORY_NOWHERE;
}

static bool has_capital(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			return true;
	return false;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static size_t find(const struct ql_bytes *t, const char *text, size_t n, bool exact)
{
	for (size_t at = 0; at + n <= t->size; at++) {
		size_t i = 0;

		while (i < n && (exact ? t->at[at + i] : lower(t->at[at + i])) == text[i])
			i++;
		if (i == n)
			return at;
	}
	return QL_HISTORY_NOWHERE;
}

size_t ql_history_search(const struct ql_history *h, size_t from, int step, const char *text, size_t n, size_t *at)
{
	bool exact = has_capital(text, n);

	for (size_t i = from; i < h->n; i += (size_t)step) {
		*at = find(&h->entry[i].text, text, n, exact);
		if (*at != QL_HISTORY_NOWHERE)
			return i;
	}
	return QL_HISTORY_NOWHERE;
}

void ql_history_free(struct ql_history *h)
{
	for (size_t i = 0; i < h->n; i++)
		ql_bytes_free(&h->entry[i].text);
	free(h->entry);
	free(h->path);
	*h = (struct ql_history){0};
}
