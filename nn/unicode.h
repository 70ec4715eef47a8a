/* SPDX-License-Identifier: MIT
 * Forms of text by Unicode: utf8proc, opened at run time.
 */
#ifndef QUOLL_NN_UNICODE_H
#define QUOLL_NN_UNICODE_H

#include "tensor/base.h"

/* Normal forms; lower case, character by character; without combining marks (Mn). */
enum ql_unicode_form {
	QL_UNICODE_NFC,
	QL_UNICODE_NFD,
	QL_UNICODE_NFKC,
	QL_UNICODE_NFKD,
	QL_UNICODE_LOWER,
	QL_UNICODE_UNMARKED
};

/* The form by its name in lower case: nfc, nfd, nfkc, nfkd, lower, unmarked. */
bool ql_unicode_form_by_name(const char *name, enum ql_unicode_form *form);
/* Gives the form of n bytes of valid UTF-8 in a block of ql_alloc, *length bytes. Errors: the library is missing. */
enum ql_status ql_unicode_form_of(
	struct ql_ctx *ctx, enum ql_unicode_form form, const char *text, size_t n, char **out, size_t *length);

#endif
