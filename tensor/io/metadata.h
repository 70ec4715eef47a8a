/* SPDX-License-Identifier: MIT
 * What a file says beside its tensors: an ordered list of keys, each with a number, a text, or a list of one of these.
 */
#ifndef QUOLL_TENSOR_IO_METADATA_H
#define QUOLL_TENSOR_IO_METADATA_H

#include "tensor/tensor.h"

struct ql_metadata_value {
	char *key;
	struct ql_tensor *numbers; /* of no axes, or of one for a list; NULL: texts */
	bool list;
	int64_t n;     /* texts: 1 unless it is a list */
	char *text;    /* all texts, concatenated; may contain zero bytes */
	uint64_t *end; /* (n) where each text ends; it starts where the one before ends */
};

/* Zero-initialise; ql_metadata_clear releases. */
struct ql_metadata {
	int64_t n, room;
	struct ql_metadata_value *at;
};

void ql_metadata_clear(struct ql_ctx *ctx, struct ql_metadata *m);
/* Appends a key without a value, which the caller sets: *out is valid until the next call. Copies the key. */
enum ql_status ql_metadata_add(
	struct ql_ctx *ctx, struct ql_metadata *m, const char *key, struct ql_metadata_value **out);
/* Sets one text; copies it. */
enum ql_status ql_metadata_set_text(struct ql_ctx *ctx, struct ql_metadata_value *v, const char *text, size_t n);
/* Makes room for n texts of `bytes` bytes together, which the caller fills. */
enum ql_status ql_metadata_texts(struct ql_ctx *ctx, struct ql_metadata_value *v, int64_t n, uint64_t bytes);
/* Borrowed; NULL for an unknown key. */
const struct ql_metadata_value *ql_metadata_find(const struct ql_metadata *m, const char *key);
/* Fails when two entries have the same key. */
enum ql_status ql_metadata_check(struct ql_ctx *ctx, const struct ql_metadata *m);
/* Text i; *n receives its length. */
const char *ql_metadata_text(const struct ql_metadata_value *v, int64_t i, size_t *n);

#endif
