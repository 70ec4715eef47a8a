/* SPDX-License-Identifier: MIT
 * Specs as text, in both directions: dtype[/axis][:block[:outer]][+min][@observer], then words in any order, separated by
 * blanks. A format's name may be in place of the dtype.
 *   the name of a scheme            int8 asymmetric
 *   key=value                       int4/1 bits=3      uint8@percentile p=99.9      int8 log octaves=8
 *   lists, numbers after a comma    int8/1 bits=8,4,2      uint8/1 scale=0.1,0.2 zero_point=3,4
 *   lists of more than one axis     int8:32 scale=2x3:0.1,0.2,0.3,0.4,0.5,0.6
 * Printed text parses to an equal spec: numbers have as many digits as that needs. A word begins with a letter
 * after a blank.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/observer_kind.h"
#include "quant/spec.h"
#include "tensor/nearest.h"

#define SHOWN 12     /* numbers of a list in messages */
#define LONGEST 4096 /* longest list that is printed completely */
#define BLANKS " \t"

/* ---- reading ---- */

static enum ql_status grammar(struct ql_ctx *ctx, const char *text)
{
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"spec: wanted dtype[/axis][:block[:outer]][+min][@observer] and words like 'int8/1', 'int4:32' or "
		"'int8 log bits=6', got '%.60s'",
		text);
}

/* Parses and removes the number after `mark`. False: there is something else. */
static bool take_number(char *copy, char mark, bool *has, int64_t *value)
{
	char *at = strchr(copy, mark), *end;

	if (!at)
		return true;
	*at++ = '\0';
	*value = strtoll(at, &end, 10);
	*has = true;
	return end != at && *end == '\0';
}

static bool read_double(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && *end == '\0';
}

static bool read_integer(const char *text, int64_t *value)
{
	char *end;

	*value = strtoll(text, &end, 10);
	return end != text && *end == '\0';
}

enum word_kind { WORD_STRING, WORD_FLOAT, WORD_INT, WORD_BOOL };

struct word {
	const char *key;
	enum word_kind kind;
	bool *has;         /* set if the word is present; NULL: its value shows it */
	void *value;       /* const char *, double, int64_t or bool */
	const char **list; /* receives the text of a list; NULL: one value only */
};

#define QL_SPEC_WORDS 24

/* Fills `words` with the fields that have a text form key=value; returns their number. */
static int list_words(struct ql_spec_fields *f, struct word words[QL_SPEC_WORDS])
{
	int n = 0;

#define HAS_STRING(key) NULL
#define HAS_FLOAT(key) &f->has_##key
#define HAS_INT(key) &f->has_##key
#define HAS_BOOL(key) &f->has_##key
#define PUT_FIRST(key, kind)
#define PUT_TABLE(key, kind)
#define PUT_WORD(key, kind) words[n++] = (struct word){#key, WORD_##kind, HAS_##kind(key), &f->key, NULL};
#define X(key, kind, place, choices, text) PUT_##place(key, kind)
#include "quant/spec.def"
#undef X
	for (int i = 0; i < n; i++)
		words[i].list = !strcmp(words[i].key, "bits")         ? &f->bits_list
				: !strcmp(words[i].key, "scale")      ? &f->scale_list
				: !strcmp(words[i].key, "zero_point") ? &f->zero_list
								      : NULL;
	return n;
}

static const char keys[] =
#define KEY_FIRST(key)
#define KEY_TABLE(key)
#define KEY_WORD(key) #key " "
#define X(key, kind, place, choices, text) KEY_##place(key)
#include "quant/spec.def"
#undef X
	;

static bool read_bool(const char *text, bool *value)
{
	*value = !strcmp(text, "true");
	return *value || !strcmp(text, "false");
}

static bool read_value(const struct word *w, char *value)
{
	switch (w->kind) {
	case WORD_STRING: *(const char **)w->value = value; return *value != '\0';
	case WORD_FLOAT: return read_double(value, w->value);
	case WORD_INT: return read_integer(value, w->value);
	case WORD_BOOL: return read_bool(value, w->value);
	}
	return false;
}

/* scale=pow2 is short for scaling=pow2. */
static bool take_pow2(const struct word *w, const char *value, struct ql_spec_fields *f)
{
	if (w->value != &f->scale || strcmp(value, "pow2"))
		return false;
	f->scaling = "pow2";
	return true;
}

static enum ql_status read_word(struct ql_ctx *ctx, const struct word *w, char *value)
{
	static const char *const wanted[] = {"a word", "a number", "a whole number", "true or false"};
	bool is_list = w->list && strpbrk(value, ",:"), ok;

	if (is_list)
		*w->list = value;
	ok = is_list ? *value != '\0' : read_value(w, value);
	if (w->has)
		*w->has = true;
	return ok ? QL_OK
		  : ql_fail(ctx, QL_ERR_ARGUMENT, "spec: %s: wanted %s%s, got '%.40s'", w->key, wanted[w->kind],
			    w->list ? " or a list" : "", value);
}

/* One word after the first. `seen` has a bit for each key, and one for a scheme. */
static enum ql_status take_word(struct ql_ctx *ctx, char *word, struct ql_spec_fields *f, unsigned *seen)
{
	struct word words[QL_SPEC_WORDS];
	const int n = list_words(f, words);
	char *value = strchr(word, '='), near[96];
	int i = n;

	if (!value && !ql_scheme_by_name(word))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: wanted a scheme (%s) or key=value after the dtype, got '%.40s'%s", ql_scheme_names, word,
			ql_nearest(word, ql_scheme_names, near));
	if (value) {
		*value++ = '\0';
		for (i = 0; i < n && strcmp(word, words[i].key); i++)
			;
		if (i == n)
			return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted one of %sbefore '=', got '%.40s'%s", keys,
				word, ql_nearest(word, keys, near));
	} else {
		f->scheme = word;
	}
	if (*seen & 1u << i)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "spec: wanted %s once, got it twice", value ? word : "a scheme");
	*seen |= 1u << i;
	return value && !take_pow2(&words[i], value, f) ? read_word(ctx, &words[i], value) : QL_OK;
}

static enum ql_status take_words(struct ql_ctx *ctx, char *rest, struct ql_spec_fields *f)
{
	enum ql_status status = QL_OK;
	unsigned seen = 0;

	while (!status && *rest) {
		size_t n = strcspn(rest, BLANKS);
		char *next = rest + n + strspn(rest + n, BLANKS);

		rest[n] = '\0';
		status = take_word(ctx, rest, f, &seen);
		rest = next;
	}
	if (f->bits_list)
		f->has_bits = false;
	return status;
}

/* Removes ":outer" after ":block". False: there is something else. */
static bool take_outer(char *copy, struct ql_spec_fields *f)
{
	char *first = strchr(copy, ':'), *second = first ? strchr(first + 1, ':') : NULL;

	return !second || take_number(second, ':', &f->has_outer, &f->outer);
}

/* Removes "+min" from the end of the first word. False: something else follows '+'. */
static bool take_minimum(char *copy, bool *minimum)
{
	char *plus = strchr(copy, '+');

	if (!plus)
		return true;
	*plus = '\0';
	*minimum = true;
	return !strcmp(plus + 1, "min");
}

enum ql_status ql_spec_split(struct ql_ctx *ctx, const char *text, char *copy, struct ql_spec_fields *fields)
{
	char *at, *rest;
	size_t n;

	*fields = (struct ql_spec_fields){0};
	strcpy(copy, text + strspn(text, BLANKS));
	n = strcspn(copy, BLANKS);
	rest = copy + n + strspn(copy + n, BLANKS);
	copy[n] = '\0';
	at = strchr(copy, '@');
	if (at) {
		*at = '\0';
		fields->observer = at + 1;
	}
	if (!take_minimum(copy, &fields->minimum) || !take_outer(copy, fields) ||
		!take_number(copy, ':', &fields->has_block, &fields->block) ||
		!take_number(copy, '/', &fields->has_axis, &fields->axis) || copy[0] == '\0')
		return grammar(ctx, text);
	fields->dtype = copy;
	return take_words(ctx, rest, fields);
}

enum ql_status ql_spec_parse(struct ql_ctx *ctx, const char *text, struct ql_spec *spec)
{
	char *copy = ql_alloc(ctx, strlen(text) + 1);
	struct ql_spec_fields fields;
	enum ql_status status = copy ? ql_spec_split(ctx, text, copy, &fields) : QL_ERR_MEMORY;

	if (!status)
		status = ql_spec_make(ctx, &fields, spec);
	ql_free(ctx, copy);
	return status;
}

/* ---- lists ---- */

/* Parses the sizes before ':', else counts the elements; *at is set to the first element. */
static bool list_shape(const char **at, int *rank, int64_t shape[QL_MAX_RANK])
{
	const char *end = strchr(*at, ':');
	char *after;

	*rank = 1;
	shape[0] = 1;
	if (!end) {
		for (const char *p = *at; *p; p++)
			shape[0] += *p == ',';
		return true;
	}
	for (*rank = 0; *rank < QL_MAX_RANK; *at = after + 1) {
		shape[(*rank)++] = strtoll(*at, &after, 10);
		if (after == *at || shape[*rank - 1] < 0 || shape[*rank - 1] > INT32_MAX ||
			(*after != 'x' && *after != ':'))
			return false;
		if (*after == ':') {
			*at = after + 1;
			return true;
		}
	}
	return false;
}

static enum ql_status bad_list(struct ql_ctx *ctx, const char *what, const char *text)
{
	return ql_fail(
		ctx, QL_ERR_ARGUMENT, "spec: %s: wanted numbers like 0.1,0.2 or 2x2:1,2,3,4, got '%.60s'", what, text);
}

enum ql_status ql_spec_list(
	struct ql_ctx *ctx, const char *what, const char *text, unsigned dtype, struct ql_tensor **out)
{
	const char *at = text;
	int64_t shape[QL_MAX_RANK], n, wanted = 1;
	enum ql_status status;
	int rank;

	*out = NULL;
	if (!list_shape(&at, &rank, shape))
		return bad_list(ctx, what, text);
	n = *at != '\0';
	for (const char *p = at; *p; p++)
		n += *p == ',';
	for (int d = 0; d < rank; d++)
		wanted = ql_mul64(wanted, shape[d]);
	if (n != wanted) /* before allocating: a short text can declare large sizes */
		return bad_list(ctx, what, text);
	status = ql_tensor_new(ctx, dtype, rank, shape, out);
	for (int64_t i = 0; i < n && !status; i++) {
		char *end;
		double value = strtod(at, &end);

		if (end == at || *end != (i < n - 1 ? ',' : '\0') || !(fabs(value) <= 3.5e38) ||
			(ql_dtypes[dtype].kind == QL_KIND_INT &&
				(value != rint(value) || value < (double)ql_dtypes[dtype].lo ||
					value > (double)ql_dtypes[dtype].hi)))
			return bad_list(ctx, what, text);
		at = end + 1;
		if (ql_dtypes[dtype].kind == QL_KIND_INT)
			ql_dtypes[dtype].from_i64(ql_tensor_data(*out), i, 1, 1, &(int64_t){(int64_t)value});
		else
			ql_dtypes[dtype].from_f64(ql_tensor_data(*out), i, 1, 1, &value);
	}
	return status;
}

/* ---- printing ---- */

struct printer {
	ql_spec_put_fn *put;
	void *arg;
	int64_t most; /* numbers of a list */
	bool numbers; /* with scale and zero_point */
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

static void say_numbers(const struct printer *p, const struct ql_spec *s)
{
	if (s->scale_tensor) {
		say_list(p, "scale", s->scale_tensor);
	} else if (s->has_scale) {
		say(p, " scale=");
		say_number(p, s->scale, true);
	}
	if (s->zero_tensor)
		say_list(p, "zero_point", s->zero_tensor);
	else if (s->has_zero)
		say(p, " zero_point=%lld", (long long)s->zero);
}

static void say_option(const struct printer *p, const char *key, double value, double usual)
{
	if (value == usual)
		return;
	say(p, " %s=", key);
	say_number(p, value, false);
}

/* dtype[/axis][:block[:outer]][+min][@observer] */
static void print_first(const struct printer *p, const struct ql_spec *s)
{
	p->put(p->arg, s->format ? s->format->doc.name : ql_dtype_name(s->dtype));
	if (s->axis)
		say(p, "/%d", s->axis);
	if (s->block && (s->outer || !(s->format && s->block == s->format->block)))
		say(p, ":%lld", (long long)s->block);
	if (s->outer)
		say(p, ":%lld", (long long)s->outer);
	if (s->scheme && s->scheme->shift && !s->format)
		p->put(p->arg, "+min");
	if (s->observer && strcmp(s->observer->doc.name, "minmax"))
		say(p, "@%s", s->observer->doc.name);
}

static void print_scheme(const struct printer *p, const struct ql_spec *s)
{
	bool is_unsigned = ql_dtypes[s->dtype].kind == QL_KIND_UINT;
	const char *usual = ql_dtype_is_binary(s->dtype) ? "binary" : is_unsigned ? "asymmetric" : "symmetric";

	if (s->each_bits)
		say_list(p, "bits", s->each_bits);
	else if (s->bits != ql_dtypes[s->dtype].bits)
		say(p, " bits=%d", s->bits);
	if (strcmp(s->scheme->doc.name, usual) && !s->scheme->shift)
		say(p, " %s", s->scheme->doc.name);
	if (s->has_min)
		say(p, " quant_min=%d", s->quant_min);
	if (s->has_max)
		say(p, " quant_max=%d", s->quant_max);
	if (s->scheme->table_length)
		say_option(p, "octaves", s->octaves, ql_spec_octaves(s->bits));
}

static void print(const struct printer *p, const struct ql_spec *s)
{
	print_first(p, s);
	if (!s->scheme)
		return;
	if (!s->format)
		print_scheme(p, s);
	if (s->scaling != (s->format ? s->format->scaling : QL_SCALING_EXACT))
		say(p, " scaling=%s", ql_scaling_name(s->scaling));
	if (s->overflow)
		p->put(p->arg, " saturate=false");
	say_option(p, "p", s->p, QL_SPEC_P);
	say_option(p, "momentum", s->momentum, QL_SPEC_MOMENTUM);
	say_option(p, "bins", s->bins, QL_SPEC_BINS);
	if (p->numbers)
		say_numbers(p, s);
	if (s->requant || s->stochastic)
		say(p, " rounding=%s", s->stochastic ? "stochastic" : ql_requant_name(s->requant));
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
