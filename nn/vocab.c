/* SPDX-License-Identifier: MIT
 * Vocabularies: a hash table with open addressing over consecutive words. The hash is FNV-1a with 64 bits (Fowler,
 * Noll, Vo); users choose the texts themselves, so attacks by collisions are not a concern.
 */
#include "nn/vocab.h"

#include <string.h>

#define POLL 65536 /* tokens between two polls of the interrupt flag */

void ql_vocab_clear(struct ql_ctx *ctx, struct ql_vocab *v)
{
	ql_free(ctx, v->text);
	ql_free(ctx, v->begin);
	ql_free(ctx, v->slot);
	*v = (struct ql_vocab){0};
}

static uint64_t hash_of(struct ql_vocab_token word)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < word.n; i++)
		hash = (hash ^ (uint8_t)word.at[i]) * 0x100000001b3u;
	return hash ^ hash >> 32;
}

struct ql_vocab_token ql_vocab_word(const struct ql_vocab *v, int64_t number)
{
	size_t begin = v->begin[number - 1], end = number < v->n ? v->begin[number] : v->n_text;

	return (struct ql_vocab_token){v->text + begin, end - begin};
}

/* The slot of the word, or the free slot where it belongs. There is always a free one. */
static int32_t *slot_of(const struct ql_vocab *v, struct ql_vocab_token word)
{
	for (uint64_t i = hash_of(word);; i++) {
		int32_t *slot = &v->slot[i & (v->slots - 1)];
		struct ql_vocab_token known;

		if (!*slot)
			return slot;
		known = ql_vocab_word(v, *slot);
		if (known.n == word.n && !memcmp(known.at, word.at, word.n))
			return slot;
	}
}

int32_t ql_vocab_find(const struct ql_vocab *v, struct ql_vocab_token word)
{
	return v->slots ? *slot_of(v, word) : 0;
}

/* Makes room for one more word. */
static enum ql_status reserve(struct ql_ctx *ctx, struct ql_vocab *v, size_t bytes)
{
	int64_t room = v->room ? 2 * v->room : 256;
	size_t text_room = 2 * (v->n_text + bytes) + 1024, *begin;
	int32_t *slot;
	char *text;

	if (v->n_text + bytes > v->text_room) {
		text = ql_realloc(ctx, v->text, text_room);
		if (!text)
			return QL_ERR_MEMORY;
		v->text = text;
		v->text_room = text_room;
	}
	if (v->n < v->room)
		return QL_OK;
	if (room > INT32_MAX / 4)
		return ql_fail(ctx, QL_ERR_OVERFLOW, "vocabulary: wanted at most %d words, got more", INT32_MAX / 4);
	begin = ql_realloc_array(ctx, v->begin, room, sizeof(*begin));
	if (!begin)
		return QL_ERR_MEMORY;
	v->begin = begin;
	slot = ql_alloc_array_zeroed(ctx, room, 2 * sizeof(*slot));
	if (!slot)
		return QL_ERR_MEMORY;
	ql_free(ctx, v->slot);
	v->slot = slot;
	v->slots = 2 * (uint64_t)room;
	v->room = room;
	for (int64_t i = 1; i <= v->n; i++)
		*slot_of(v, ql_vocab_word(v, i)) = (int32_t)i;
	return QL_OK;
}

enum ql_status ql_vocab_add(struct ql_ctx *ctx, struct ql_vocab *v, struct ql_vocab_token word, int32_t *number)
{
	enum ql_status status;
	int32_t *slot;

	*number = ql_vocab_find(v, word);
	if (*number)
		return QL_OK;
	status = reserve(ctx, v, word.n);
	if (status)
		return status;
	slot = slot_of(v, word);
	if (word.n)
		memcpy(v->text + v->n_text, word.at, word.n);
	v->begin[v->n] = v->n_text;
	v->n_text += word.n;
	*slot = *number = (int32_t)++v->n;
	return QL_OK;
}

/* ---- texts ---- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

/* Bytes of the UTF-8 character at the start of n bytes; 1 for an invalid one. */
static size_t character(const char *at, size_t n)
{
	uint8_t lead = (uint8_t)*at;
	size_t length = lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;

	if (lead >= 0xf8 || length > n)
		return 1;
	for (size_t i = 1; i < length; i++)
		if (((uint8_t)at[i] & 0xc0) != 0x80)
			return 1;
	return length;
}

/* Takes the next token from `rest`; false at the end. */
static bool next_token(enum ql_vocab_level level, struct ql_vocab_token *rest, struct ql_vocab_token *token)
{
	size_t n = 0;

	while (level == QL_VOCAB_WORD && rest->n && is_blank(*rest->at))
		*rest = (struct ql_vocab_token){rest->at + 1, rest->n - 1};
	if (!rest->n)
		return false;
	*token = (struct ql_vocab_token){rest->at, 0};
	if (level == QL_VOCAB_CHAR)
		n = token->n = character(rest->at, rest->n);
	else if (*rest->at == '\n')
		n = 1;
	else
		while (n < rest->n && !is_blank(rest->at[n]) && rest->at[n] != '\n')
			token->n = ++n;
	if (level == QL_VOCAB_WORD && token->n == 0)
		*token = (struct ql_vocab_token){"<eos>", 5};
	*rest = (struct ql_vocab_token){rest->at + n, rest->n - n};
	return true;
}

static enum ql_status unknown_token(struct ql_ctx *ctx, struct ql_vocab_token token)
{
	return ql_fail(ctx, QL_ERR_ARGUMENT, "encode: wanted tokens of the vocabulary, got '%.*s'",
		(int)(token.n < 40 ? token.n : 40), token.at);
}

enum ql_status ql_vocab_encode(struct ql_ctx *ctx, struct ql_vocab *v, const char *text, size_t n,
	enum ql_vocab_level level, bool grow, int32_t unknown, struct ql_tensor **out)
{
	struct ql_vocab_token rest = {text, n}, token;
	enum ql_status status;
	int64_t count = 0;
	int32_t *ids;

	while (next_token(level, &rest, &token))
		if (++count % POLL == 0 && ctx->interrupted)
			return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
	status = ql_tensor_new(ctx, QL_int32, 1, &count, out);
	if (status)
		return status;
	ids = ql_tensor_data(*out);
	rest = (struct ql_vocab_token){text, n};
	for (int64_t i = 0; !status && next_token(level, &rest, &token); i++) {
		if (i % POLL == 0 && ctx->interrupted)
			return ql_fail(ctx, QL_ERR_INTERRUPTED, "interrupted");
		ids[i] = ql_vocab_find(v, token);
		if (!ids[i] && grow)
			status = ql_vocab_add(ctx, v, token, &ids[i]);
		else if (!ids[i] && unknown)
			ids[i] = unknown;
		else if (!ids[i])
			status = unknown_token(ctx, token);
	}
	return status;
}
