/* SPDX-License-Identifier: MIT
 * Elements between a file and a tensor: byte order, unsigned types Quoll has not, bools that are neither 0
 * nor 1.
 */
#ifndef QUOLL_TENSOR_IO_ELEMENTS_H
#define QUOLL_TENSOR_IO_ELEMENTS_H

#include "tensor/io/stream.h"
#include "tensor/io/writer.h"
#include "tensor/tensor.h"

/* How one element lies in a file. Unsigned integers of 32 and 64 bits become int64, and a file with a value
 * that does not fit is refused. */
struct ql_element_wire {
	unsigned dtype; /* of the tensor */
	unsigned bytes; /* per element in the file; whole-byte types only */
	bool big_endian;
	bool is_unsigned; /* bytes 4 or 8, dtype int64 */
};

/* Bytes of `shape` at `bytes` each; fails when they do not fit into 64 bits, or the rank into QL_MAX_RANK. */
enum ql_status ql_elements_size(
	struct ql_ctx *ctx, int rank, const int64_t *shape, unsigned bytes, uint64_t *out);
/* gives a contiguous tensor read from the stream, whose remaining bytes are checked before it is allocated */
enum ql_status ql_elements_read(struct ql_stream *s, const struct ql_element_wire *wire, int rank,
	const int64_t *shape, struct ql_tensor **out);

/* Bytes of the elements alone: whole bytes per row for packed types. */
uint64_t ql_elements_bytes(const struct ql_tensor *t);
/* Writes the elements of the view in row-major order, little-endian; a view with gaps is copied first. */
enum ql_status ql_elements_write(struct ql_writer *w, struct ql_tensor *t);

#endif
