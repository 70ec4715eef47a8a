/* SPDX-License-Identifier: MIT
 * Regular expressions of tokenizers: PCRE2, opened at run time, with limits on what a pattern may cost.
 */
#ifndef QUOLL_NN_REGEX_H
#define QUOLL_NN_REGEX_H

#include "tensor/base.h"

struct ql_regex; /* a compiled pattern */

/* Gives the pattern of n bytes compiled, for text in UTF-8 with Unicode's properties. Errors: the library is missing, or says why the
 * pattern is wrong. */
enum ql_status ql_regex_new(struct ql_ctx *ctx, const char *pattern, size_t n, struct ql_regex **out);
void ql_regex_free(struct ql_ctx *ctx, struct ql_regex *re);
/* The first match in the valid UTF-8 text of n bytes from `from` on: bytes *begin to *end - 1; *begin = *end = n if there is none. Matches are
 * never empty. */
enum ql_status ql_regex_next(
	struct ql_ctx *ctx, struct ql_regex *re, const char *text, size_t n, size_t from, size_t *begin, size_t *end);

#endif
