/* SPDX-License-Identifier: MIT
 * Iterates over the members of a JSON object in memory without building a tree: a tree of 64-byte nodes would take
 * thirty times the memory of the text. Keys are decoded in place; cJSON parses the few small structured values.
 * Also a growable text for writing JSON.
 */
#ifndef QUOLL_TENSOR_IO_JSON_H
#define QUOLL_TENSOR_IO_JSON_H

#include "tensor/base.h"

struct ql_json {
	struct ql_ctx *ctx;
	const char *what; /* for messages: "header" */
	char *at, *end, *begin;
	bool first, done;
};

/* A run of the text. */
struct ql_json_value {
	char *at;
	size_t n;
};

/* Starts at the '{' of n bytes of text, which is modified and must be followed by one writable byte. */
enum ql_status ql_json_open(struct ql_ctx *ctx, const char *what, char *text, size_t n, struct ql_json *j);
/* The next member, or j->done. The key is decoded in place to a zero-terminated string unless `key` is NULL (which
 * leaves the text unchanged for another pass). The value is delimited by matching brackets and quotes only; the
 * caller must parse it. */
enum ql_status ql_json_next(struct ql_json *j, char **key, struct ql_json_value *value);
/* Decodes a value that must be a string, in place. */
enum ql_status ql_json_string(struct ql_json *j, struct ql_json_value value, char **out);
/* Fails unless only spaces follow the object. */
enum ql_status ql_json_close(struct ql_json *j);

/* A growable text; zero-initialise, free `at` with ql_free. */
struct ql_text {
	struct ql_ctx *ctx;
	char *at;
	size_t n, room;
	bool failed; /* out of memory: later calls do nothing */
};

void ql_text_add(struct ql_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends the contents of a JSON string: with escapes, without quotes. */
void ql_text_add_escaped(struct ql_text *t, const char *string);

#endif
