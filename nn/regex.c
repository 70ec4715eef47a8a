/* SPDX-License-Identifier: MIT
 * Calls to PCRE2. Patterns may come from files: steps and memory of a match are limited, the program is never compiled to machine code.
 */
#include "nn/regex.h"

#include <dlfcn.h>

#define LIBRARY "libpcre2-8.so.0"
#define LONGEST 65536         /* bytes of a pattern */
#define STEPS 1000000         /* of one match */
#define HEAP_KIB 65536        /* of one match */
#define UTF 0x00080000u       /* PCRE2_UTF */
#define UCP 0x00020000u       /* PCRE2_UCP */
#define UNCHECKED 0x40000000u /* PCRE2_NO_UTF_CHECK */
#define NOT_EMPTY 0x00000004u /* PCRE2_NOTEMPTY */
#define NO_MATCH (-1)

#define FUNCTIONS(F) \
	F(pcre2_compile_8, void *, \
		(const uint8_t *pattern, size_t n, uint32_t options, int *error, size_t *place, void *context)) \
	F(pcre2_code_free_8, void, (void *code)) \
	F(pcre2_match_data_create_8, void *, (uint32_t pairs, void *context)) \
	F(pcre2_match_data_free_8, void, (void *data)) \
	F(pcre2_match_context_create_8, void *, (void *context)) \
	F(pcre2_match_context_free_8, void, (void *context)) \
	F(pcre2_set_match_limit_8, int, (void *context, uint32_t limit)) \
	F(pcre2_set_heap_limit_8, int, (void *context, uint32_t limit)) \
	F(pcre2_match_8, int, \
		(const void *code, const uint8_t *text, size_t n, size_t from, uint32_t options, void *data, \
			void *context)) \
	F(pcre2_get_ovector_pointer_8, size_t *, (void *data)) \
	F(pcre2_get_error_message_8, int, (int error, uint8_t *text, size_t n))

struct pcre2 {
#define F(name, result, parameters) result(*name) parameters;
	FUNCTIONS(F)
#undef F
};

struct ql_regex {
	void *code, *data, *context;
};

/* NULL if the library is missing or lacks a function. */
static const struct pcre2 *pcre2(void)
{
	static struct pcre2 functions;
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

static enum ql_status refused(struct ql_ctx *ctx, int error, const char *what)
{
	uint8_t why[200] = "";

	pcre2()->pcre2_get_error_message_8(error, why, sizeof(why));
	return ql_fail(ctx, QL_ERR_ARGUMENT, "regular expression: %s: %s", what, (const char *)why);
}

enum ql_status ql_regex_new(struct ql_ctx *ctx, const char *pattern, size_t n, struct ql_regex **out)
{
	const struct pcre2 *lib = pcre2();
	struct ql_regex *re;
	int error = 0;
	size_t place = 0;

	*out = NULL;
	if (!lib)
		return ql_fail(ctx, QL_ERR_UNSUPPORTED,
			"regular expression: wanted the library " LIBRARY " (Debian: libpcre2-8-0), it is not here");
	if (n > LONGEST)
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "regular expression: wanted at most %d bytes, got %zu", LONGEST, n);
	re = ql_alloc_zeroed(ctx, sizeof(*re));
	if (!re)
		return QL_ERR_MEMORY;
	*out = re;
	re->code = lib->pcre2_compile_8((const uint8_t *)pattern, n, UTF | UCP, &error, &place, NULL);
	if (re->code) {
		re->data = lib->pcre2_match_data_create_8(1, NULL);
		re->context = lib->pcre2_match_context_create_8(NULL);
	}
	if (re->data && re->context) {
		lib->pcre2_set_match_limit_8(re->context, STEPS);
		lib->pcre2_set_heap_limit_8(re->context, HEAP_KIB);
		return QL_OK;
	}
	error = re->code ? 0 : error;
	ql_regex_free(ctx, re);
	*out = NULL;
	return error ? refused(ctx, error, "wanted one of PCRE2") : QL_ERR_MEMORY;
}

void ql_regex_free(struct ql_ctx *ctx, struct ql_regex *re)
{
	const struct pcre2 *lib = pcre2();

	if (!re)
		return;
	lib->pcre2_match_context_free_8(re->context);
	lib->pcre2_match_data_free_8(re->data);
	lib->pcre2_code_free_8(re->code);
	ql_free(ctx, re);
}

enum ql_status ql_regex_next(
	struct ql_ctx *ctx, struct ql_regex *re, const char *text, size_t n, size_t from, size_t *begin, size_t *end)
{
	const struct pcre2 *lib = pcre2();
	const size_t *pair;
	int found;

	*begin = *end = n;
	if (ctx->interrupted)
		return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
	found = lib->pcre2_match_8(
		re->code, (const uint8_t *)text, n, from, UNCHECKED | NOT_EMPTY, re->data, re->context);
	if (found == NO_MATCH)
		return QL_OK;
	if (found < 0)
		return refused(ctx, found, "wanted a match within the limits");
	pair = lib->pcre2_get_ovector_pointer_8(re->data);
	if (pair[1] <= pair[0] || pair[0] < from) /* \K within a lookahead */
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "regular expression: wanted matches from left to right, got others");
	*begin = pair[0];
	*end = pair[1];
	return QL_OK;
}
