/* SPDX-License-Identifier: MIT
 * Parses specs (spec_print.c prints them): dtype[/axis][:block[:outer]][+min][@observer], then words in any order,
 * separated by blanks. The name of a format may replace the dtype.
 *   the name of a scheme            int8 asymmetric
 *   key=value                       int4/1 bits=3      uint8@percentile p=99.9      int8 log octaves=8
 *   lists, numbers after a comma    int8/1 bits=8,4,2      uint8/1 scale=0.1,0.2 zero_point=3,4
 *   lists of more than one axis     int8:32 scale=2x3:0.1,0.2,0.3,0.4,0.5,0.6
 * Printed text parses to an equal spec, because numbers are printed with enough digits. A word begins with a letter
 * after a blank.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/observer_kind.h"
#include "quant/spec.h"
#include "quant/spec_words.h"
#include "tensor/nearest.h"

#define BLANKS " \t"

/* ---- reading ---- */

static enum ql_status grammar(struct ql_ctx *ctx, const char *text)
{
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"spec: wanted dtype[/axis][:block[:outer]][+min][@observer] and words like 'int8/1', 'int4:32' or "
		"'int8 log bits=6', got '%.60s'",
		text);
}

/* Parses and removes the number after `mark`, if present. False: not a number. */
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

static const char keys[] =
#define KEY_FIRST(key)
#define KEY_BARE(key)
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

static bool read_value(const struct ql_spec_word *w, char *value)
{
	switch (w->kind) {
	case QL_WORD_STRING: *(const char **)w->value = value; return *value != '\0';
	case QL_WORD_FLOAT: return read_double(value, w->value);
	case QL_WORD_INT: return read_integer(value, w->value);
	case QL_WORD_BOOL: return read_bool(value, w->value);
	}
	return false;
}

/* scale=pow2 is short for scaling=pow2. */
static bool take_pow2(const struct ql_spec_word *w, const char *value, struct ql_spec_fields *f)
{
	if (w->value != &f->scale || strcmp(value, "pow2"))
		return false;
	f->scaling = "pow2";
	return true;
}

static enum ql_status read_word(struct ql_ctx *ctx, const struct ql_spec_word *w, char *value)
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
	struct ql_spec_word words[QL_SPEC_WORDS];
	const int n = ql_spec_words(f, words);
	char *value = strchr(word, '='), near[96];
	int i = n;

	if (!value && !ql_scheme_by_name(word))
		return ql_fail(ctx, QL_ERR_ARGUMENT,
			"spec: wanted a scheme (%s) or key=value after the dtype, got '%.40s'%s", ql_scheme_names, word,
			ql_nearest(word, ql_scheme_names, near));
	if (value) {
		*value++ = '\0';
		for (i = 0; i < n && (words[i].bare || strcmp(word, words[i].key)); i++)
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

/* Parses and removes ":outer" after ":block", if present. False: not a number. */
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
	if (!take_minimum(copy, &fields->with_minimum) || !take_outer(copy, fields) ||
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
