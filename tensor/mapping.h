/* SPDX-License-Identifier: MIT
 * The bytes of a file in memory, shared by the storages of its tensors. Pages are private: writing changes the memory, never the file.
 * Another program must not cut the file short meanwhile, as reading beyond its end ends the program; replacing it by another file, as
 * everything here saves, changes nothing.
 */
#ifndef QUOLL_TENSOR_MAPPING_H
#define QUOLL_TENSOR_MAPPING_H

#include "tensor/base.h"

struct ql_mapping {
	int refs;
	char *base;
	size_t bytes;
};

/* Gives the first `bytes` bytes of the open file; NULL if the system cannot map them, which is no error. */
struct ql_mapping *ql_mapping_new(struct ql_ctx *ctx, int fd, uint64_t bytes);
struct ql_mapping *ql_mapping_keep(struct ql_mapping *m);
void ql_mapping_release(struct ql_ctx *ctx, struct ql_mapping *m);

#endif
