/* SPDX-License-Identifier: MIT
 * Reading and checking of options.def.
 */
#include "interp/host/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"

struct option {
	const char *name;
	enum ql_option_kind kind;
	int64_t otherwise, lo, hi;
	const char *text;
};

static const struct option table[] = {
#define X(name, kind, otherwise, lo, hi, text) {#name, QL_OPTION_##kind, otherwise, lo, hi, text},
#include "interp/host/options.def"
#undef X
};

#define VARIABLE 40 /* room for the name of an environment variable */

static const char *variable(const struct option *o, char name[VARIABLE])
{
	size_t n = (size_t)snprintf(name, VARIABLE, "QUOLL_%s", o->name);

	for (size_t i = 0; i < n; i++)
		name[i] = (char)toupper((unsigned char)name[i]);
	return name;
}

static const struct option *find(const char *name, size_t size)
{
	for (size_t i = 0; i < QL_OPTION_COUNT; i++)
		if (strlen(table[i].name) == size && !memcmp(table[i].name, name, size))
			return &table[i];
	return NULL;
}

static bool flag_value(const char *text, int64_t *out)
{
	static const char *const word[] = {"0", "1", "no", "yes", "off", "on", "false", "true"};

	for (size_t i = 0; i < sizeof(word) / sizeof(word[0]); i++)
		if (!strcmp(text, word[i])) {
			*out = i % 2;
			return true;
		}
	return false;
}

static bool int_value(const struct option *o, const char *text, int64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	return end != text && !*end && !errno && *out >= o->lo && *out <= o->hi;
}

/* `what` is the option as the user wrote it: --threads or QUOLL_THREADS */
static bool check(const struct option *o, const char *what, const char *text, int64_t *out, char *error)
{
	*out = 0;
	if (o->kind == QL_OPTION_INT && !int_value(o, text, out)) {
		snprintf(error, QL_OPTIONS_ERROR, "%s: wanted an integer from %lld to %lld, got '%.60s'", what,
			(long long)o->lo, (long long)o->hi, text);
		return false;
	}
	if (o->kind == QL_OPTION_FLAG && !flag_value(text, out)) {
		snprintf(error, QL_OPTIONS_ERROR, "%s: wanted 0 or 1, got '%.60s'", what, text);
		return false;
	}
	if (o == &table[QL_OPTION_kernel] && !ql_kernels_known(text)) {
		snprintf(
			error, QL_OPTIONS_ERROR, "%s: wanted one of %s native, got '%.60s'", what, QL_CPU_LEVELS, text);
		return false;
	}
	return true;
}

int ql_options_take(const char *argument, const char *next, char error[QL_OPTIONS_ERROR])
{
	const char *equals = strchr(argument, '=');
	size_t size = equals ? (size_t)(equals - argument) : strlen(argument);
	const struct option *o = size > 2 ? find(argument + 2, size - 2) : NULL;
	const char *value = equals ? equals + 1 : o && o->kind == QL_OPTION_FLAG ? "1" : next;
	char name[VARIABLE], what[VARIABLE];
	int64_t unused;

	if (!o)
		return 0;
	snprintf(what, sizeof(what), "--%s", o->name);
	if (!value) {
		snprintf(error, QL_OPTIONS_ERROR, "%s: wanted a value, got none", what);
		return -1;
	}
	if (o->kind == QL_OPTION_TEXT && !*value) {
		snprintf(error, QL_OPTIONS_ERROR, "%s: wanted a value, got an empty one", what);
		return -1;
	}
	if (!check(o, what, value, &unused, error))
		return -1;
	if (setenv(variable(o, name), value, 1)) {
		snprintf(error, QL_OPTIONS_ERROR, "%s: %s", what, strerror(errno));
		return -1;
	}
	return equals || o->kind == QL_OPTION_FLAG ? 1 : 2;
}

bool ql_options_read(struct ql_options *options, char error[QL_OPTIONS_ERROR])
{
	for (size_t i = 0; i < QL_OPTION_COUNT; i++) {
		char name[VARIABLE];
		const char *text = getenv(variable(&table[i], name));

		options->at[i].i = table[i].otherwise;
		options->at[i].s = NULL;
		if (!text || !*text)
			continue;
		if (!check(&table[i], name, text, &options->at[i].i, error))
			return false;
		options->at[i].s = text;
	}
	return true;
}

void ql_options_help(FILE *f)
{
	for (size_t i = 0; i < QL_OPTION_COUNT; i++) {
		char name[VARIABLE], left[VARIABLE];
		static const char *const value[] = {"N", "", "X"};

		snprintf(left, sizeof(left), "--%s %s", table[i].name, value[table[i].kind]);
		fprintf(f, "  %-15s  %s\n  %-15s  (environment: %s)\n", left, table[i].text, "",
			variable(&table[i], name));
	}
}

void ql_options_text(enum ql_option option, struct ql_option_text *out)
{
	const struct option *o = &table[option];

	out->name = o->name;
	out->text = o->text;
	out->kind = o->kind;
	variable(o, out->variable);
}

const char *ql_options_names(void)
{
	return ""
#define X(name, kind, otherwise, lo, hi, text) #name " "
#include "interp/host/options.def"
#undef X
		;
}
