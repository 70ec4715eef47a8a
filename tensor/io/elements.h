/* SPDX-License-Identifier: MIT
 * Conversion of elements between file and tensor: byte order, unsigned types that Quoll lacks, bools other than 0
 * and 1.
 */
#ifndef QUOLL_TENSOR_IO_ELEMENTS_H
#define QUOLL_TENSOR_IO_ELEMENTS_H

#include "tensor/io/stream.h"
#include "tensor/io/writer.h"
#include "tensor/tensor.h"

/* The format of one element in a file. Unsigned integers of 32 and 64 bits become int64; a value out of range is an
 * error. */
struct ql_element_wire {
	unsigned dtype; /* of the tensor */
	unsigned bytes; /* per element in the file; whole-byte types only */
	bool big_endian;
	bool is_unsigned; /* bytes 4 or 8, dtype int64 */
};

/* Bytes of `shape` at `bytes` each. Errors: overflow of 64 bits, rank above QL_MAX_RANK. */
enum ql_status ql_elements_size(struct ql_ctx *ctx, int rank, const int64_t *shape, unsigned bytes, uint64_t *out);
/* Gives a contiguous tensor read from the stream, after checking that the stream has enough bytes. */
enum ql_status ql_elements_read(struct ql_stream *s, const struct ql_element_wire *wire, int rank, const int64_t *shape,
	struct ql_tensor **out);

/* Gives the elements at `offset` in place if the file is mapped and has them as memory does; else *out is NULL. The bytes have been checked to be
 * there. */
enum ql_status ql_elements_map(const struct ql_reader *r, unsigned dtype, int rank, const int64_t *shape,
	uint64_t offset, uint64_t bytes, struct ql_tensor **out);

/* Bytes of the elements only: whole bytes per row for packed types, and per channel where channels differ in bits. */
uint64_t ql_elements_bytes(const struct ql_tensor *t);
/* Writes the elements of the view in row-major order, little-endian; a view with gaps is copied first. */
enum ql_status ql_elements_write(struct ql_writer *w, struct ql_tensor *t);

#endif
