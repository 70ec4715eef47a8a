/* SPDX-License-Identifier: MIT
 * Sequential reading of a range of a file: stored, or decompressed (raw deflate of zip entries, gzip, xz).
 *
 * The output size is bounded before the first byte: for deflate by the size that the file declares, which must not
 * exceed QL_INFLATE_MAX or QL_INFLATE_RATIO times the compressed bytes (deflate's own limit is 1032 to 1), for gzip
 * by those two limits, for xz by the same with QL_XZ_RATIO. So a decompression bomb is an error before memory is
 * allocated for it.
 */
#ifndef QUOLL_TENSOR_IO_STREAM_H
#define QUOLL_TENSOR_IO_STREAM_H

#include <lzma.h>
#include <zlib.h>

#include "tensor/io/reader.h"

#define QL_INFLATE_MAX ((uint64_t)8 << 30)
#define QL_INFLATE_RATIO 1100
#define QL_XZ_RATIO 10000                 /* LZMA's own limit is about 7000 to 1 */
#define QL_XZ_MEMORY ((uint64_t)80 << 20) /* decompressing xz -9 needs 65 MiB */
#define QL_STREAM_BUFFER 8192

enum ql_coding { QL_STORED, QL_DEFLATE, QL_GZIP, QL_XZ };

struct ql_stream {
	const struct ql_reader *reader;
	enum ql_coding coding;
	uint64_t at, end; /* part of the file not yet read */
	uint64_t left;    /* bytes that may still be output */
	bool summed;      /* set after opening: compute `crc`, the CRC-32 of the output */
	uint32_t crc;
	bool open, ended; /* ended: end of the compressed data */
	z_stream z;
	lzma_stream x;
	lzma_allocator x_memory;
	size_t begin, filled; /* buffered bytes of QL_STORED */
	uint8_t buffer[QL_STREAM_BUFFER];
};

/* The compression of a file, by its first bytes: QL_GZIP, QL_XZ or QL_STORED. */
enum ql_status ql_stream_coding(const struct ql_reader *r, enum ql_coding *coding);
/* Opens the `bytes` bytes at `offset`. `inflated`: the declared decompressed size (QL_DEFLATE only). */
enum ql_status ql_stream_open(struct ql_stream *s, const struct ql_reader *r, uint64_t offset, uint64_t bytes,
	enum ql_coding coding, uint64_t inflated);
/* Reads exactly n bytes to `to`, or fails naming `what`. */
enum ql_status ql_stream_read(struct ql_stream *s, void *to, uint64_t n, const char *what);
/* Reads up to n bytes; fewer only at the end of the data or of s->left. */
enum ql_status ql_stream_some(struct ql_stream *s, void *to, size_t n, size_t *got);
/* Fails unless everything was read: no bytes may follow, checksums of gzip must match. */
enum ql_status ql_stream_finish(struct ql_stream *s);
/* May be called twice, and after a failed open. */
void ql_stream_close(struct ql_stream *s);

/* zlib's memory through ql_alloc; opaque is the ctx. */
void *ql_zlib_alloc(void *ctx, unsigned items, unsigned size);
void ql_zlib_free(void *ctx, void *block);

#endif
