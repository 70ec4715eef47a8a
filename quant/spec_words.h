/* SPDX-License-Identifier: MIT
 * The fields of a spec that are words (key=value) of its text, from spec.def; for parsing and printing.
 */
#ifndef QUOLL_QUANT_SPEC_WORDS_H
#define QUOLL_QUANT_SPEC_WORDS_H

#include "quant/spec.h"

enum ql_spec_word_kind { QL_WORD_STRING, QL_WORD_FLOAT, QL_WORD_INT, QL_WORD_BOOL };

struct ql_spec_word {
	const char *key;
	enum ql_spec_word_kind kind;
	bool *has;                 /* true if the word is present; NULL: present if its value is not NULL */
	void *value;               /* const char *, double, int64_t or bool */
	const char **list;         /* receives the text of a list; NULL: one value only */
	struct ql_tensor **tensor; /* of the list; NULL: one value only */
	bool bare;                 /* written without its key (the scheme) */
};

#define QL_SPEC_WORDS 24

/* Fills `words` with the fields that are words of a text, in the order of spec.def; returns their number. */
int ql_spec_words(struct ql_spec_fields *f, struct ql_spec_word words[QL_SPEC_WORDS]);

#endif
