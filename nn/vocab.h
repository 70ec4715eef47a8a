/* SPDX-License-Identifier: MIT
 * A vocabulary: words (any bytes) numbered 1, 2, …, and conversion of texts to numbers.
 */
#ifndef QUOLL_NN_VOCAB_H
#define QUOLL_NN_VOCAB_H

#include "tensor/tensor.h"

/* The kinds of tokens. */
enum ql_vocab_level {
	QL_VOCAB_CHAR, /* UTF-8 characters; an invalid byte is a token of its own */
	QL_VOCAB_WORD  /* words between blanks, and "<eos>" for the end of each line */
};

struct ql_vocab {
	int64_t n;  /* words */
	char *text; /* all words, concatenated */
	size_t n_text, text_room;
	size_t *begin; /* (room) start of each word in text; it ends where the next one starts */
	int64_t room;
	int32_t *slot;  /* hash table of word numbers, 0: free */
	uint64_t slots; /* a power of two, at least twice n */
};

/* A range of bytes of a text. */
struct ql_vocab_token {
	const char *at;
	size_t n;
};

/* Zero-initialise. */
void ql_vocab_clear(struct ql_ctx *ctx, struct ql_vocab *v);
/* The number of a word; 0: unknown. */
int32_t ql_vocab_find(const struct ql_vocab *v, struct ql_vocab_token word);
/* Adds a word if it is new; *number receives its number. */
enum ql_status ql_vocab_add(struct ql_ctx *ctx, struct ql_vocab *v, struct ql_vocab_token word, int32_t *number);
struct ql_vocab_token ql_vocab_word(const struct ql_vocab *v, int64_t number);
/* Gives an int32 tensor with the numbers of the text's tokens. With `grow` new words are added; else they become
 * the number `unknown`, or, if that is 0, an error names the word. */
enum ql_status ql_vocab_encode(struct ql_ctx *ctx, struct ql_vocab *v, const char *text, size_t n,
	enum ql_vocab_level level, bool grow, int32_t unknown, struct ql_tensor **out);

#endif
