/* SPDX-License-Identifier: MIT
 * Specs as text, which ql_spec_parse reads: the fields that are not defaults, in the order of spec.def.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "quant/spec_words.h"

#define SHOWN 12     /* numbers of a list in messages */
#define LONGEST 4096 /* longest list that is printed completely */

struct printer {
	ql_spec_put_fn *put;
	void *arg;
	int64_t most; /* numbers of a list */
	bool numbers; /* with scale, zero_point and minimum */
};

__attribute__((format(printf, 2, 3))) static void say(const struct printer *p, const char *format, ...)
{
	char text[64];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	p->put(p->arg, text);
}

/* Prints as many digits as the number needs to be parsed back, as float32 or double. */
static void say_number(const struct printer *p, double value, bool single)
{
	bool whole = value == rint(value) && fabs(value) < 1e9;
	char text[40];

	snprintf(text, sizeof(text), "%.0f", value);
	for (int digits = 1; digits <= 17 && !whole; digits++) {
		double back;

		snprintf(text, sizeof(text), "%.*g", digits, value);
		back = strtod(text, NULL);
		if (single ? (float)back == (float)value : back == value)
			break;
	}
	p->put(p->arg, text);
}

static void say_list(const struct printer *p, const char *key, const struct ql_tensor *t)
{
	int64_t n = ql_tensor_nelem(t), shown = n <= p->most ? n : p->most < SHOWN ? p->most : SHOWN;

	say(p, " %s=", key);
	for (int d = 0; d < t->rank && t->rank > 1; d++)
		say(p, "%lld%s", (long long)t->shape[d], d == t->rank - 1 ? ":" : "x");
	if (t->rank <= 1 && n <= 1)
		say(p, "%lld:", (long long)n);
	for (int64_t i = 0; i < shown; i++) {
		if (i)
			p->put(p->arg, ",");
		say_number(p, ql_tensor_at_f64(t, i), true);
	}
	if (shown < n)
		say(p, ",...(%lld)", (long long)n);
}

/* dtype[/axis][:block[:outer]][+min][@observer] */
static void print_first(const struct printer *p, const struct ql_spec_fields *f)
{
	p->put(p->arg, f->dtype);
	if (f->has_axis)
		say(p, "/%lld", (long long)f->axis);
	if (f->has_block)
		say(p, ":%lld", (long long)f->block);
	if (f->has_outer)
		say(p, ":%lld", (long long)f->outer);
	if (f->with_minimum)
		p->put(p->arg, "+min");
	if (f->observer)
		say(p, "@%s", f->observer);
}

static void print_value(const struct printer *p, const struct ql_spec_word *w, bool single)
{
	switch (w->kind) {
	case QL_WORD_STRING: p->put(p->arg, *(const char **)w->value); break;
	case QL_WORD_FLOAT: say_number(p, *(double *)w->value, single); break;
	case QL_WORD_INT: say(p, "%lld", (long long)*(int64_t *)w->value); break;
	case QL_WORD_BOOL: p->put(p->arg, *(bool *)w->value ? "true" : "false"); break;
	}
}

static bool is_given(const struct ql_spec_word *w)
{
	return w->has ? *w->has : *(const char **)w->value != NULL;
}

static void print(const struct printer *p, const struct ql_spec *s)
{
	struct ql_spec_fields f;
	struct ql_spec_word words[QL_SPEC_WORDS];
	int n = ql_spec_words(&f, words);

	ql_spec_fields_of(s, &f);
	print_first(p, &f);
	for (int i = 0; i < n; i++) {
		bool number =
			words[i].value == &f.scale || words[i].value == &f.zero_point || words[i].value == &f.minimum;

		if (number && !p->numbers)
			continue;
		if (words[i].tensor && *words[i].tensor) {
			say_list(p, words[i].key, *words[i].tensor);
		} else if (is_given(&words[i])) {
			say(p, words[i].bare ? " " : " %s=", words[i].key);
			print_value(p, &words[i], number);
		}
	}
}

void ql_spec_print(const struct ql_spec *spec, bool numbers, ql_spec_put_fn *put, void *arg)
{
	print(&(struct printer){put, arg, numbers ? LONGEST : SHOWN, numbers}, spec);
}

struct buffer {
	char *text;
	size_t used;
};

static void append(void *arg, const char *text)
{
	struct buffer *b = arg;

	b->used += (size_t)snprintf(b->text + b->used, QL_SPEC_TEXT - b->used, "%s", text);
	b->used = b->used < QL_SPEC_TEXT ? b->used : QL_SPEC_TEXT - 1;
}

char *ql_spec_text(const struct ql_spec *s, char text[QL_SPEC_TEXT])
{
	struct buffer b = {.text = text};

	text[0] = '\0';
	print(&(struct printer){append, &b, SHOWN, true}, s);
	return text;
}
