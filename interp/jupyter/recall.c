/* SPDX-License-Identifier: MIT
 * Ranges, tails and searches. There is one session, number 1; a request for session 0 means this one, too, as
 * does -0; other sessions are unknown and give an empty list. Patterns are those of fnmatch, as IPython's: *
 * and ?.
 */
#include "interp/jupyter/recall.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "interp/jupyter/jupyter.h"

static const struct ql_recall_entry *at(const struct ql_recall *h, int i)
{
	return &h->entry[(h->first + i) % QL_RECALL_INPUTS];
}

static void clear(struct ql_recall_entry *e)
{
	ql_wire_free(&e->input);
	ql_wire_free(&e->output);
}

/* Ends the text with 0, for strcmp and fnmatch. */
static void set(struct ql_wire *w, const char *text, size_t n)
{
	ql_wire_free(w);
	ql_wire_add(w, text, n);
	ql_wire_add(w, "", 1);
}

void ql_recall_add(struct ql_recall *h, int line, const char *input)
{
	struct ql_recall_entry *e;

	if (!h->entry)
		h->entry = calloc(QL_RECALL_INPUTS, sizeof(*h->entry));
	if (!h->entry)
		return;
	e = &h->entry[(h->first + h->n) % QL_RECALL_INPUTS];
	if (h->n < QL_RECALL_INPUTS)
		h->n++;
	else
		h->first = (h->first + 1) % QL_RECALL_INPUTS;
	clear(e);
	e->line = line;
	set(&e->input, input, strlen(input));
	set(&e->output, "", 0);
	if (e->input.failed || e->output.failed) {
		clear(e);
		h->n--;
	}
}

void ql_recall_result(struct ql_recall *h, int line, const char *output, size_t n)
{
	struct ql_recall_entry *e = h->n ? &h->entry[(h->first + h->n - 1) % QL_RECALL_INPUTS] : NULL;

	if (!e || e->line != line)
		return;
	n = n < QL_RECALL_OUTPUT ? n : QL_RECALL_OUTPUT;
	set(&e->output, output, n);
	if (e->output.failed)
		set(&e->output, "", 0);
}

void ql_recall_free(struct ql_recall *h)
{
	for (int i = 0; i < h->n; i++)
		clear(&h->entry[(h->first + i) % QL_RECALL_INPUTS]);
	free(h->entry);
	*h = (struct ql_recall){0};
}

/* ---- answers ---- */

/* Which entries are wanted: `chosen` has a byte for each. */
struct query {
	const struct ql_recall *h;
	const cJSON *request;
	char *chosen;
};

static void choose_range(struct query *q)
{
	long long session = ql_wire_integer(q->request, "session", 0);
	long long start = ql_wire_integer(q->request, "start", 1),
		  stop = ql_wire_integer(q->request, "stop", 1LL << 40);
	int newest = q->h->n ? at(q->h, q->h->n - 1)->line : 0;

	if (session != 0 && session != 1)
		return;
	start = start < 0 ? newest + 1 + start : start; /* from the end, as in Python */
	stop = stop < 0 ? newest + 1 + stop : stop;
	for (int i = 0; i < q->h->n; i++)
		q->chosen[i] = at(q->h, i)->line >= start && at(q->h, i)->line < stop;
}

static void choose_tail(struct query *q)
{
	long long n = ql_wire_integer(q->request, "n", 10);

	for (int i = 0; i < q->h->n; i++)
		q->chosen[i] = i >= q->h->n - n;
}

static bool is_later(const struct query *q, int i)
{
	for (int k = i + 1; k < q->h->n; k++)
		if (q->chosen[k] && !strcmp(at(q->h, k)->input.at, at(q->h, i)->input.at))
			return true;
	return false;
}

/* The last n that fit; `unique`: of equal ones the newest. */
static void choose_search(struct query *q)
{
	const char *pattern = ql_wire_member(q->request, "pattern");
	long long n = ql_wire_integer(q->request, "n", QL_RECALL_INPUTS);
	bool unique = ql_wire_flag(q->request, "unique", false);

	for (int i = q->h->n - 1; i >= 0; i--) {
		q->chosen[i] = n > 0 && fnmatch(pattern ? pattern : "*", at(q->h, i)->input.at, FNM_NOESCAPE) == 0;
		if (q->chosen[i] && unique)
			q->chosen[i] = !is_later(q, i);
		n -= q->chosen[i];
	}
}

static void write_entry(const struct ql_recall_entry *e, bool output, struct ql_wire *out)
{
	ql_wire_print(out, "[1,%d,", e->line);
	ql_wire_put(out, output ? "[" : "");
	ql_wire_quote(out, e->input.at, e->input.n - 1);
	if (output && e->output.n > 1) {
		ql_wire_put(out, ",");
		ql_wire_quote(out, e->output.at, e->output.n - 1);
	} else if (output) {
		ql_wire_put(out, ",null");
	}
	ql_wire_put(out, output ? "]]" : "]");
}

/* Writes the list that a history_request asks for: [[session, line, input], …]. */
static void write_list(const struct ql_recall *h, const cJSON *request, struct ql_wire *out)
{
	const char *type = ql_wire_member(request, "hist_access_type");
	struct query q = {h, request, calloc((size_t)h->n + 1, 1)};
	bool output = ql_wire_flag(request, "output", false), first = true;

	ql_wire_put(out, "[");
	if (q.chosen && type && !strcmp(type, "range"))
		choose_range(&q);
	else if (q.chosen && type && !strcmp(type, "search"))
		choose_search(&q);
	else if (q.chosen)
		choose_tail(&q);
	for (int i = 0; i < h->n && q.chosen; i++) {
		if (!q.chosen[i])
			continue;
		ql_wire_put(out, first ? "" : ",");
		write_entry(at(h, i), output, out);
		first = false;
	}
	ql_wire_put(out, "]");
	free(q.chosen);
}

void ql_request_history(struct ql_jupyter *k, enum ql_channel channel, struct ql_message *m)
{
	struct ql_wire content = {0};

	ql_wire_put(&content, "{\"status\":\"ok\",\"history\":");
	write_list(&k->history, m->content, &content);
	ql_wire_put(&content, "}");
	ql_jupyter_reply(k, channel, m, "history_reply", &content);
}
