/* SPDX-License-Identifier: MIT
 * A vocabulary: words (any bytes) with the numbers 1, 2, …, and texts turned into numbers.
 */
#ifndef QUOLL_NN_VOCAB_H
#define QUOLL_NN_VOCAB_H

#include "tensor/tensor.h"

/* What the tokens of a text are. */
enum ql_vocab_level {
	QL_VOCAB_CHAR, /* UTF-8 characters; a byte that belongs to none stands for itself */
	QL_VOCAB_WORD  /* words between blanks, and "<eos>" for the end of each line */
};

struct ql_vocab {
	int64_t n;        /* words */
	char *text;       /* all words one behind the other */
	size_t n_text, text_room;
	size_t *begin;    /* (room) of each word in text; its end is the next one's begin */
	int64_t room;
	int32_t *slot;    /* hash table of word numbers, 0: free */
	uint64_t slots;   /* a power of two, at least twice n */
};

/* Some bytes of a text. */
struct ql_vocab_token {
	const char *at;
	size_t n;
};

/* Zero-initialise. */
void ql_vocab_clear(struct ql_ctx *ctx, struct ql_vocab *v);
/* The number of a word; 0: there is none. */
int32_t ql_vocab_find(const struct ql_vocab *v, struct ql_vocab_token word);
/* Adds a word that may be there already; *number is its number. */
enum ql_status ql_vocab_add(struct ql_ctx *ctx, struct ql_vocab *v, struct ql_vocab_token word, int32_t *number);
struct ql_vocab_token ql_vocab_word(const struct ql_vocab *v, int64_t number);
/* gives an int32 tensor with the numbers of the text's tokens. New words are added with `grow`; else they become the
 * number `unknown`, or, when that is 0, fail by name. */
enum ql_status ql_vocab_encode(struct ql_ctx *ctx, struct ql_vocab *v, const char *text, size_t n,
	enum ql_vocab_level level, bool grow, int32_t unknown, struct ql_tensor **out);

#endif
