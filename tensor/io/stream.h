/* SPDX-License-Identifier: MIT
 * A run of bytes of a file read in order: as stored, or unpacked (raw deflate of zip entries, gzip, xz).
 *
 * How much may come out is fixed before the first byte: for deflate the size that the file declares, which
 * must not be above QL_INFLATE_MAX nor above QL_INFLATE_RATIO times the compressed bytes (deflate's own limit
 * is 1032 to 1), for gzip those two bounds themselves, for xz the same with QL_XZ_RATIO. So a decompression bomb
 * is refused before memory is taken for it.
 */
#ifndef QUOLL_TENSOR_IO_STREAM_H
#define QUOLL_TENSOR_IO_STREAM_H

#include <lzma.h>
#include <zlib.h>

#include "tensor/io/reader.h"

#define QL_INFLATE_MAX ((uint64_t)8 << 30)
#define QL_INFLATE_RATIO 1100
#define QL_XZ_RATIO 10000                  /* LZMA's own limit is about 7000 to 1 */
#define QL_XZ_MEMORY ((uint64_t)80 << 20) /* what xz -9 needs for unpacking is 65 MiB */
#define QL_STREAM_BUFFER 8192

enum ql_coding { QL_STORED, QL_DEFLATE, QL_GZIP, QL_XZ };

struct ql_stream {
	const struct ql_reader *reader;
	enum ql_coding coding;
	uint64_t at, end; /* part of the file not yet fetched */
	uint64_t left;    /* bytes that may still come out */
	bool summed;      /* set after opening: keep `crc`, the CRC-32 of what came out */
	uint32_t crc;
	bool open, ended; /* ended: the compressed data said so */
	z_stream z;
	lzma_stream x;
	lzma_allocator x_memory;
	size_t begin, filled; /* fetched bytes, QL_STORED */
	uint8_t buffer[QL_STREAM_BUFFER];
};

/* How a file is packed, by its first bytes: QL_GZIP, QL_XZ or QL_STORED. */
enum ql_status ql_stream_coding(const struct ql_reader *r, enum ql_coding *coding);
/* The `bytes` bytes at `offset`. `inflated`: what they declare to become (QL_DEFLATE only). */
enum ql_status ql_stream_open(struct ql_stream *s, const struct ql_reader *r, uint64_t offset, uint64_t bytes,
	enum ql_coding coding, uint64_t inflated);
/* Exactly n bytes to `to`, or an error naming `what`. */
enum ql_status ql_stream_read(struct ql_stream *s, void *to, uint64_t n, const char *what);
/* Up to n bytes; fewer only where the data end or s->left does. */
enum ql_status ql_stream_some(struct ql_stream *s, void *to, size_t n, size_t *got);
/* Fails unless everything was read: no byte may follow, checksums of gzip must hold. */
enum ql_status ql_stream_finish(struct ql_stream *s);
/* May be called twice, and after a failed open. */
void ql_stream_close(struct ql_stream *s);

/* zlib's memory through ql_alloc; opaque is the ctx. */
void *ql_zlib_alloc(void *ctx, unsigned items, unsigned size);
void ql_zlib_free(void *ctx, void *block);

#endif
