/* SPDX-License-Identifier: MIT
 * Bounded reading of one file whose size is known: requests outside of it are errors, and no allocation exceeds the
 * bytes of the file.
 *
 * Reads use pread directly into the destination. With a memory map, SIGBUS would end the program if another process
 * truncates the file; here that is an error. So files are mapped only where the caller asks for it (ql_file_load_mapped).
 */
#ifndef QUOLL_TENSOR_IO_READER_H
#define QUOLL_TENSOR_IO_READER_H

#include "tensor/base.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the file formats are written for little-endian machines"
#endif

struct ql_reader {
	struct ql_ctx *ctx;
	const char *path;      /* borrowed; "" for memory */
	int fd;                /* -1 for memory */
	const uint8_t *memory; /* borrowed */
	uint64_t size;
	struct ql_mapping *mapping; /* the whole file; NULL: elements are copied */
};

/* Regular files only: a pipe or device has no size to check against. Messages omit the path; the caller
 * (ql_file_load) adds it. */
enum ql_status ql_reader_open(struct ql_ctx *ctx, const char *path, struct ql_reader *r);
/* Reads from memory instead; nothing to close. */
void ql_reader_memory(struct ql_ctx *ctx, const void *data, uint64_t size, struct ql_reader *r);
void ql_reader_close(struct ql_reader *r);
/* Maps the file, if the system can. */
void ql_reader_map(struct ql_reader *r);

/* Fails with QL_ERR_FORMAT naming `what` unless the file has n bytes at `offset`. */
enum ql_status ql_reader_check(const struct ql_reader *r, uint64_t offset, uint64_t n, const char *what);
/* Copies n bytes at `offset` to `to`. */
enum ql_status ql_reader_at(const struct ql_reader *r, uint64_t offset, uint64_t n, void *to, const char *what);
/* Gives those n bytes in a block of ql_alloc, followed by one zero byte. */
enum ql_status ql_reader_take(const struct ql_reader *r, uint64_t offset, uint64_t n, const char *what, char **out);

static inline uint16_t ql_le16(const void *p)
{
	const uint8_t *b = p;

	return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t ql_le32(const void *p)
{
	return (uint32_t)ql_le16(p) | (uint32_t)ql_le16((const uint8_t *)p + 2) << 16;
}

static inline uint64_t ql_le64(const void *p)
{
	return (uint64_t)ql_le32(p) | (uint64_t)ql_le32((const uint8_t *)p + 4) << 32;
}

static inline uint32_t ql_be32(const void *p)
{
	return __builtin_bswap32(ql_le32(p));
}

#endif
