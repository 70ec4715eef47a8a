/* SPDX-License-Identifier: MIT
 * plplot writes its SVG with an attribute to a line, a size in points and the same id in every file. One pass
 * drops the indentation and attributes that say the default, turns points into pixels and makes the id depend
 * on the contents. Only markup is touched: plplot writes text as character references. The first tag gets the
 * colour of the text in place of a name space that is not used: by it pages know our figures, whose neutral colours
 * they may change (interp/prelude/page.lua).
 */
#include "interp/plot/svg.h"

#include <stdio.h>
#include <string.h>

struct pass {
	const char *from, *end;
	char *to;
	char id[16];
};

/* FNV-1a, 32 bits */
static uint32_t hash(const char *p, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * 16777619u;
	return h;
}

static bool at(const struct pass *p, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(p->end - p->from) >= n && !memcmp(p->from, word, n);
}

/* Replaces `word` by `by` (not longer) when it comes next. */
static bool replace(struct pass *p, const char *word, const char *by)
{
	if (!at(p, word))
		return false;
	p->from += strlen(word);
	memcpy(p->to, by, strlen(by));
	p->to += strlen(by);
	return true;
}

static bool blank(char c)
{
	return c == ' ' || c == '\n' || c == '\t';
}

/* A line break with its indentation becomes one space, or nothing beside an angle bracket. */
static bool line_break(struct pass *p, const char *start)
{
	char before = p->to > start ? p->to[-1] : '>';

	if (*p->from != '\n')
		return false;
	while (p->from < p->end && blank(*p->from))
		p->from++;
	if (p->from < p->end && before != '>' && before != ' ' && !strchr("<>/", *p->from))
		*p->to++ = ' ';
	return true;
}

/* Fills come with a stroke of width 0 in the same colour. */
static bool no_stroke(struct pass *p)
{
	static const char width[] = "stroke-width=\"0.000000e+00\"", colour[] = "stroke=\"#RRGGBB\"";

	if (!at(p, width))
		return false;
	p->from += sizeof(width) - 1;
	while (p->from < p->end && blank(*p->from))
		p->from++;
	if (at(p, "stroke=\"#"))
		p->from += sizeof(colour) - 1;
	return true;
}

enum ql_status ql_svg_tidy(struct ql_ctx *ctx, const char *svg, size_t n, struct ql_encoded *out)
{
	struct pass p = {.from = svg, .end = svg + n};

	out->at = p.to = ql_alloc(ctx, n + 1);
	if (!out->at)
		return QL_ERR_MEMORY;
	snprintf(p.id, sizeof(p.id), "q%08x", hash(svg, n));
	while (p.from < p.end) {
		if (line_break(&p, out->at) || no_stroke(&p) || replace(&p, "text-clipping", p.id) ||
			replace(&p, "xmlns:xlink=\"http://www.w3.org/1999/xlink\"", "color=\"#262626\"") ||
			replace(&p, "pt\"", "\"") || replace(&p, "stroke-opacity=\"1.000000\"", "") ||
			replace(&p, "fill-opacity=\"1.000000\"", "") || replace(&p, "fill-rule=\"nonzero\"", "") ||
			replace(&p, "dominant-baseline=\"no-change\"", ""))
			continue;
		*p.to++ = *p.from++;
	}
	out->n = (size_t)(p.to - out->at);
	return QL_OK;
}
