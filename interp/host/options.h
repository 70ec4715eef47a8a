/* SPDX-License-Identifier: MIT
 * The options of options.def. The environment is their one home: the command line writes QUOLL_NAME there, so
 * that library code and child processes see the same values; ql_options_read checks and reads them all.
 */
#ifndef QUOLL_INTERP_HOST_OPTIONS_H
#define QUOLL_INTERP_HOST_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum ql_option_kind { QL_OPTION_INT, QL_OPTION_FLAG, QL_OPTION_TEXT };

enum ql_option {
#define X(name, kind, otherwise, lo, hi, text) QL_OPTION_##name,
#include "interp/host/options.def"
#undef X
	QL_OPTION_COUNT
};

struct ql_options {
	struct {
		int64_t i;     /* INT and FLAG */
		const char *s; /* TEXT: NULL when not set; borrowed from the environment */
	} at[QL_OPTION_COUNT];
};

#define QL_OPTIONS_ERROR 256

/* Takes "--name=value", or "--name" with its value in `next` (which may be NULL), into the environment.
 * Returns the number of arguments used, 1 or 2; 0: there is no such option; -1: the value is wrong, with the reason in
 * `error`. */
int ql_options_take(const char *argument, const char *next, char error[QL_OPTIONS_ERROR]);
/* Reads all options from the environment; false, with the reason in `error`, when one is out of range. */
bool ql_options_read(struct ql_options *options, char error[QL_OPTIONS_ERROR]);
/* The lines of --help. */
void ql_options_help(FILE *f);
/* One line of options.def; variable: its name in the environment. */
struct ql_option_text {
	const char *name, *text;
	enum ql_option_kind kind;
	char variable[40];
};
void ql_options_text(enum ql_option option, struct ql_option_text *out);
/* All names, separated by spaces. */
const char *ql_options_names(void);

#endif
