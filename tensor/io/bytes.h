/* SPDX-License-Identifier: MIT
 * The bytes of a whole file, decompressed if its first bytes are those of gzip or xz.
 */
#ifndef QUOLL_TENSOR_IO_BYTES_H
#define QUOLL_TENSOR_IO_BYTES_H

#include "tensor/tensor.h"

/* Gives a uint8 tensor (n) with the content of the file at `path`. `exact`: n must be `size`, which is allocated at
 * once; else n may be up to `size`, and memory grows with the decompressed bytes. Errors are one line that names
 * the file. */
enum ql_status ql_bytes_load(struct ql_ctx *ctx, const char *path, uint64_t size, bool exact, struct ql_tensor **out);

#endif
