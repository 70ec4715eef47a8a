/* SPDX-License-Identifier: MIT
 * An ordered list of named tensors, and metadata: the contents of a file. A format for one tensor uses one entry with an
 * empty name.
 */
#ifndef QUOLL_TENSOR_IO_NAMED_H
#define QUOLL_TENSOR_IO_NAMED_H

#include "tensor/io/metadata.h"

struct ql_named_tensor {
	char *name;
	struct ql_tensor *tensor;
};

/* A tensor of a file that cannot be read, while others can. */
struct ql_named_refusal {
	char *name;
	char *why; /* NULL: not kept, as there are many */
};

/* Zero-initialise; ql_named_clear releases. */
struct ql_named_list {
	int64_t n, room;
	struct ql_named_tensor *at;
	int64_t n_refused, room_refused;
	struct ql_named_refusal *refused;
	struct ql_metadata metadata;
};

/* Appends; copies the name and keeps the tensor. */
enum ql_status ql_named_add(struct ql_ctx *ctx, struct ql_named_list *list, const char *name, struct ql_tensor *t);
/* Appends a tensor that cannot be read, for the reason in ctx->err. */
enum ql_status ql_named_refuse(struct ql_ctx *ctx, struct ql_named_list *list, const char *name);
void ql_named_clear(struct ql_ctx *ctx, struct ql_named_list *list);
/* Fails when two entries have the same name. */
enum ql_status ql_named_check(struct ql_ctx *ctx, const struct ql_named_list *list);
/* Borrowed; NULL for an unknown name. */
struct ql_tensor *ql_named_find(const struct ql_named_list *list, const char *name);

#endif
