/* SPDX-License-Identifier: MIT
 * The .npy format, which is also the content of every .npz entry.
 */
#ifndef QUOLL_TENSOR_IO_NPY_H
#define QUOLL_TENSOR_IO_NPY_H

#include "tensor/io/elements.h"

#define QL_NPY_HEADER_MAX 512 /* bytes of the longest header written */

/* Gives the tensor of a stream, which must contain nothing else. */
enum ql_status ql_npy_read(struct ql_stream *s, struct ql_tensor **out);
/* Fails if NumPy lacks the dtype or t is quantized. */
enum ql_status ql_npy_check(struct ql_ctx *ctx, const struct ql_tensor *t);
enum ql_status ql_npy_write(struct ql_writer *w, struct ql_tensor *t);

#endif
