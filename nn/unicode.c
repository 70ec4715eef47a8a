/* SPDX-License-Identifier: MIT
 * Calls to utf8proc.
 */
#include "nn/unicode.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/utf8.h"

#define LIBRARY "libutf8proc.so.2"
#define MARK 6 /* UTF8PROC_CATEGORY_MN */

/* options of utf8proc_map */
enum { STABLE = 1 << 1, COMPATIBLE = 1 << 2, COMPOSE = 1 << 3, DECOMPOSE = 1 << 4 };

#define FUNCTIONS(F) \
	F(utf8proc_map, ssize_t, (const uint8_t *text, ssize_t n, uint8_t **out, int options)) \
	F(utf8proc_tolower, int32_t, (int32_t c)) \
	F(utf8proc_category, int, (int32_t c))

struct utf8proc {
#define F(name, result, parameters) result(*name) parameters;
	FUNCTIONS(F)
#undef F
};

/* NULL if the library is missing or lacks a function. */
static const struct utf8proc *utf8proc(void)
{
	static struct utf8proc functions;
	static bool tried, usable;
	void *library;

	if (tried)
		return usable ? &functions : NULL;
	tried = true;
	library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	usable = library != NULL;
#define F(name, result, parameters) \
	*(void **)&functions.name = library ? dlsym(library, #name) : NULL; \
	usable = usable && functions.name;
	FUNCTIONS(F)
#undef F
	return usable ? &functions : NULL;
}

bool ql_unicode_form_by_name(const char *name, enum ql_unicode_form *form)
{
	static const char *const names[] = {"nfc", "nfd", "nfkc", "nfkd", "lower", "unmarked"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], name)) {
			*form = (enum ql_unicode_form)i;
			return true;
		}
	return false;
}

static enum ql_status normalize(
	struct ql_ctx *ctx, enum ql_unicode_form form, const char *text, size_t n, char **out, size_t *length)
{
	static const int options[] = {
		STABLE | COMPOSE, STABLE | DECOMPOSE, STABLE | COMPOSE | COMPATIBLE, STABLE | DECOMPOSE | COMPATIBLE};
	uint8_t *made = NULL;
	ssize_t got = n > PTRDIFF_MAX
			      ? -1
			      : utf8proc()->utf8proc_map((const uint8_t *)text, (ssize_t)n, &made, options[form]);

	if (got < 0)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "unicode: wanted a text that utf8proc can normalize, got another");
	*length = (size_t)got;
	*out = ql_alloc(ctx, *length + 1);
	if (*out)
		memcpy(*out, made, *length + 1);
	free(made);
	return *out ? QL_OK : QL_ERR_MEMORY;
}

/* Character by character. Lower case may have more bytes: at most 3 of 2. */
static enum ql_status change(
	struct ql_ctx *ctx, enum ql_unicode_form form, const char *text, size_t n, char **out, size_t *length)
{
	const struct utf8proc *lib = utf8proc();
	size_t room;
	char *to;

	if (n > SIZE_MAX / 4)
		return ql_fail(ctx, QL_ERR_OVERFLOW, "unicode: wanted texts below 2^62 bytes, got more");
	room = 2 * n + 1; /* size: n is below 2^62 */
	to = *out = ql_alloc(ctx, room);
	if (!to)
		return QL_ERR_MEMORY;
	for (size_t i = 0; i < n;) {
		int bytes = ql_utf8_length(text + i, n - i);
		char one[5] = {0};
		const char *at = one;
		uint32_t c;

		memcpy(one, text + i, (size_t)bytes);
		c = ql_utf8_next(&at);
		if (form == QL_UNICODE_LOWER)
			to += ql_utf8_put((uint32_t)lib->utf8proc_tolower((int32_t)c), to);
		else if (lib->utf8proc_category((int32_t)c) != MARK)
			to += ql_utf8_put(c, to);
		i += (size_t)bytes;
	}
	*length = (size_t)(to - *out);
	return QL_OK;
}

enum ql_status ql_unicode_form_of(
	struct ql_ctx *ctx, enum ql_unicode_form form, const char *text, size_t n, char **out, size_t *length)
{
	*out = NULL;
	if (!utf8proc())
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"unicode: wanted the library " LIBRARY " (Debian: libutf8proc2), it is not here");
	if (form <= QL_UNICODE_NFKD)
		return normalize(ctx, form, text, n, out, length);
	return change(ctx, form, text, n, out, length);
}
