/* SPDX-License-Identifier: MIT
 * Atomic saving: readers see either all of the old contents or all of the new ones, whatever happens (full disk,
 * kill -9, power loss after the end).
 *
 * The bytes are written to a temporary file in the same directory; commit writes the rest, checks the size, flushes
 * it to disk, renames it over the target and flushes the directory. A writer locks its temporary file while it
 * lives, so the next save in the directory recognises those of dead writers and removes them.
 *
 * 	status = ql_writer_open(ctx, path, &w);
 * 	if (!status) status = ql_writer_put(&w, …);
 * 	if (!status) status = ql_writer_commit(&w);
 * 	ql_writer_close(&w);
 */
#ifndef QUOLL_TENSOR_IO_WRITER_H
#define QUOLL_TENSOR_IO_WRITER_H

#include <zlib.h>

#include "tensor/base.h"

#define QL_WRITER_TEMP 40 /* bytes of a temporary name */

struct ql_writer {
	struct ql_ctx *ctx;
	char *target; /* path with symbolic links followed */
	char *name;   /* last part of target */
	char temp[QL_WRITER_TEMP];
	int directory, fd;
	uint64_t at;  /* bytes written so far, including buffered ones */
	bool summed;  /* inside a section */
	uint64_t raw; /* bytes put since its start */
	uint32_t crc; /* CRC-32 of those */
	bool deflating;
	z_stream z;
	uint8_t *buffer; /* written out when full */
	size_t filled;
	uint8_t *packed; /* output of deflate */
};

/* The target must be a writable regular file or not exist; its permissions are kept. Messages omit the path; the
 * caller (ql_file_save) adds it. */
enum ql_status ql_writer_open(struct ql_ctx *ctx, const char *path, struct ql_writer *w);
enum ql_status ql_writer_put(struct ql_writer *w, const void *data, uint64_t n);
/* Overwrites bytes written earlier. */
enum ql_status ql_writer_patch(struct ql_writer *w, uint64_t offset, const void *data, size_t n);
/* Starts a run of bytes: raw and crc count from here; with `deflate` the bytes are compressed. */
enum ql_status ql_writer_section(struct ql_writer *w, bool deflate);
/* Ends the section: flushes the compressor. */
enum ql_status ql_writer_section_end(struct ql_writer *w);
enum ql_status ql_writer_commit(struct ql_writer *w);
/* Releases; removes the temporary file unless it was committed. Does not change ctx->err. */
void ql_writer_close(struct ql_writer *w);

#endif
