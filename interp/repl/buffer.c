/* SPDX-License-Identifier: MIT
 * An array of bytes and a list of changes: an input is a few kilobytes, which memmove shifts in microseconds.
 */
#include "interp/repl/buffer.h"

#include <stdlib.h>
#include <string.h>

#define QL_CHANGES 2000 /* steps that are remembered */

static void free_change(struct ql_change *c)
{
	ql_bytes_free(&c->removed);
	ql_bytes_free(&c->inserted);
}

static void forget_redo(struct ql_buffer *b)
{
	while (b->n_known > b->n_done)
		free_change(&b->change[--b->n_known]);
}

static void forget_oldest(struct ql_buffer *b)
{
	size_t n = QL_CHANGES / 4;

	for (size_t i = 0; i < n; i++)
		free_change(&b->change[i]);
	memmove(b->change, b->change + n, (b->n_done - n) * sizeof(*b->change));
	b->n_done -= n;
	b->n_known = b->n_done;
}

static bool has_room(struct ql_buffer *b)
{
	size_t room = b->room ? 2 * b->room : 32;
	struct ql_change *change;

	if (b->n_done >= QL_CHANGES)
		forget_oldest(b);
	if (b->n_done < b->room)
		return true;
	change = reallocarray(b->change, room, sizeof(*change));
	if (!change)
		return false;
	b->change = change;
	b->room = room;
	return true;
}

bool ql_buffer_replace(struct ql_buffer *b, size_t from, size_t to, const char *text, size_t n)
{
	struct ql_change c = {.at = from, .cursor = b->cursor, .joined = b->group > 1};

	forget_redo(b);
	if (!has_room(b) || !ql_bytes_add(&c.removed, b->text.size ? b->text.at + from : "", to - from) ||
		!ql_bytes_add(&c.inserted, text, n) || !ql_bytes_replace(&b->text, from, to, text, n)) {
		free_change(&c);
		return false;
	}
	b->change[b->n_done++] = c;
	b->n_known = b->n_done;
	b->cursor = from + n;
	b->typing = false;
	b->group += b->group == 1;
	return true;
}

/* A blank ends a step: words are undone one by one. */
bool ql_buffer_type(struct ql_buffer *b, const char *text, size_t n)
{
	struct ql_change *last = b->n_done ? &b->change[b->n_done - 1] : NULL;
	bool joins = b->typing && last && last->at + last->inserted.size == b->cursor && *text != ' ' &&
		     *text != '\n' && b->n_known == b->n_done;

	if (!joins) {
		if (!ql_buffer_replace(b, b->cursor, b->cursor, text, n))
			return false;
		b->typing = true;
		return true;
	}
	if (!ql_bytes_add(&last->inserted, text, n))
		return false;
	if (!ql_bytes_replace(&b->text, b->cursor, b->cursor, text, n)) {
		last->inserted.size -= n;
		return false;
	}
	b->cursor += n;
	return true;
}

void ql_buffer_group(struct ql_buffer *b)
{
	if (b->group == 0)
		b->group = 1;
}

void ql_buffer_ungroup(struct ql_buffer *b)
{
	b->group = 0;
	b->typing = false;
}

bool ql_buffer_undo(struct ql_buffer *b)
{
	struct ql_change *c;

	if (b->n_done == 0)
		return false;
	do {
		c = &b->change[b->n_done - 1];
		if (!ql_bytes_replace(&b->text, c->at, c->at + c->inserted.size, c->removed.at, c->removed.size))
			return false;
		b->n_done--;
		b->cursor = c->cursor;
	} while (c->joined && b->n_done > 0);
	b->typing = false;
	return true;
}

bool ql_buffer_redo(struct ql_buffer *b)
{
	struct ql_change *c;

	if (b->n_done == b->n_known)
		return false;
	do {
		c = &b->change[b->n_done];
		if (!ql_bytes_replace(&b->text, c->at, c->at + c->removed.size, c->inserted.at, c->inserted.size))
			return false;
		b->n_done++;
		b->cursor = c->at + c->inserted.size;
	} while (b->n_done < b->n_known && b->change[b->n_done].joined);
	b->typing = false;
	return true;
}

void ql_buffer_clear(struct ql_buffer *b)
{
	b->n_done = 0;
	forget_redo(b);
	if (b->text.at)
		b->text.at[0] = '\0';
	b->text.size = b->cursor = 0;
	b->typing = false;
	b->group = 0;
}

void ql_buffer_free(struct ql_buffer *b)
{
	ql_buffer_clear(b);
	free(b->change);
	ql_bytes_free(&b->text);
	*b = (struct ql_buffer){0};
}
