/* SPDX-License-Identifier: MIT
 * Parses the equation of an einsum: terms of letters, "..." for further axes, and, without "->", NumPy's rule for
 * the result.
 */
#include "tensor/equation.h"

#include <ctype.h>
#include <string.h>

#define LEGAL "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ,.->"

int ql_term_find(const struct ql_term *t, int label)
{
	for (int i = 0; i < t->n; i++)
		if (t->label[i] == label)
			return i;
	return -1;
}

static enum ql_status bad(struct ql_ctx *ctx, const char *text, const char *wanted)
{
	return ql_fail(ctx, QL_ERR_ARGUMENT, "einsum: equation: wanted %s, got '%.60s'", wanted, text);
}

/* One term up to ',', '-' or the end; `dots` is the number of axes of "...", or -1: unknown.
 */
static enum ql_status read_term(struct ql_ctx *ctx, const char *text, const char **at, int dots, struct ql_term *t)
{
	const char *s = *at;

	t->n = 0;
	for (; *s && *s != ',' && *s != '-'; s++) {
		int more = 1;

		if (*s == ' ')
			continue;
		if (strncmp(s, "...", 3) == 0) {
			more = dots;
			s += 2;
		} else if (!isalpha((unsigned char)*s)) {
			return bad(ctx, text, "letters, ',', '...' and '->'");
		}
		if (more < 0 || t->n + more > QL_MAX_RANK)
			return bad(ctx, text, "as many letters as each operand has axes");
		for (int k = 0; k < more; k++)
			t->label[t->n++] = *s == '.' ? QL_LABEL_DOTS + more - 1 - k : *s;
	}
	*at = s;
	return QL_OK;
}

/* The number of letters of a term, and whether it has "...". */
static int count_letters(const char *s, bool *dots)
{
	int n = 0;

	*dots = false;
	for (; *s && !strchr(",->", *s); s++) {
		n += isalpha((unsigned char)*s) != 0;
		*dots = *dots || *s == '.';
	}
	return n;
}

/* Without "->": the axes of "..." and then the letters that occur once, in alphabetical order. */
static void implicit_output(struct ql_equation *e, int dots)
{
	e->out.n = 0;
	for (int k = dots - 1; k >= 0; k--)
		e->out.label[e->out.n++] = QL_LABEL_DOTS + k;
	for (int label = 0; label < QL_LABEL_DOTS; label++) {
		int count = 0;

		for (int i = 0; i < e->operands; i++)
			for (int k = 0; k < e->in[i].n; k++)
				count += e->in[i].label[k] == label;
		if (count == 1 && e->out.n < QL_MAX_RANK)
			e->out.label[e->out.n++] = label;
	}
}

static enum ql_status check_output(struct ql_ctx *ctx, const char *text, const struct ql_equation *e)
{
	for (int i = 0; i < e->out.n; i++) {
		int label = e->out.label[i];
		bool known = false;

		for (int k = 0; k < e->operands; k++)
			known = known || ql_term_find(&e->in[k], label) >= 0;
		if (!known)
			return bad(ctx, text, "every letter of the result in an operand");
		for (int k = 0; k < i; k++)
			if (e->out.label[k] == label)
				return bad(ctx, text, "every letter of the result once");
	}
	return QL_OK;
}

static enum ql_status read_terms(struct ql_ctx *ctx, const struct ql_call *call, struct ql_equation *e)
{
	const char *text = ql_call_string(call, "equation", ""), *s = text;
	int most = 0;
	enum ql_status status = QL_OK;

	if (strspn(text, LEGAL) != strlen(text) || (strchr(text, '>') && !strstr(text, "->")))
		return bad(ctx, text, "letters, ',', '...' and '->'");
	e->operands = call->n_in;
	for (int i = 0; i < e->operands && !status; i++) {
		bool dots;
		int rank = call->in[i]->rank, letters = count_letters(s, &dots);

		if (i > 0 && *s++ != ',')
			return bad(ctx, text, "one term for each operand");
		if (i > 0)
			letters = count_letters(s, &dots);
		if (letters > rank || (!dots && letters < rank))
			return ql_fail(ctx, QL_ERR_SHAPE, "einsum: operand %d: wanted %d axes for '%.60s', got %d",
				i + 1, letters, text, rank);
		most = dots && rank - letters > most ? rank - letters : most;
		status = read_term(ctx, text, &s, dots ? rank - letters : -1, &e->in[i]);
	}
	if (status)
		return status;
	if (*s == ',')
		return bad(ctx, text, "one term for each operand");
	if (*s == '\0') {
		implicit_output(e, most);
		return QL_OK;
	}
	if (s[1] != '>')
		return bad(ctx, text, "'->' before the result");
	s += 2;
	status = read_term(ctx, text, &s, most, &e->out);
	if (!status && *s)
		status = bad(ctx, text, "one term after '->'");
	return status ? status : check_output(ctx, text, e);
}

/* Equal letters must have equal sizes; 1 broadcasts. */
static enum ql_status find_sizes(struct ql_ctx *ctx, const struct ql_call *call, struct ql_equation *e)
{
	for (int i = 0; i < e->operands; i++)
		for (int k = 0; k < e->in[i].n; k++) {
			int label = e->in[i].label[k];
			int64_t size = call->in[i]->shape[k];

			if (e->known[label] && e->size[label] != size && e->size[label] != 1 && size != 1)
				return ql_fail(ctx, QL_ERR_SHAPE,
					"einsum: operand %d, axis %d: wanted size %lld, as where its letter "
					"stands before, got %lld",
					i + 1, k + 1, (long long)e->size[label], (long long)size);
			if (!e->known[label] || e->size[label] == 1)
				e->size[label] = size;
			e->known[label] = true;
		}
	return QL_OK;
}

enum ql_status ql_equation_read(struct ql_ctx *ctx, const struct ql_call *call, struct ql_equation *e)
{
	enum ql_status status = read_terms(ctx, call, e);

	return status ? status : find_sizes(ctx, call, e);
}
