/* SPDX-License-Identifier: MIT
 * The checked directory of a zip archive: every entry is inside the file, before the directory, and does not
 * overlap another; names are distinct. Stored and deflated entries, with and without the 64-bit extension; no
 * encryption, no archives in several parts.
 */
#ifndef QUOLL_TENSOR_IO_ZIP_H
#define QUOLL_TENSOR_IO_ZIP_H

#include "tensor/io/stream.h"

struct ql_zip_entry {
	char *name;
	uint64_t offset, data, packed, size; /* local header, first byte, compressed and real bytes */
	uint32_t crc;
	bool deflated;
};

struct ql_zip {
	const struct ql_reader *r;
	char *directory; /* holds the names */
	struct ql_zip_entry *entry;
	uint64_t n;
};

/* Close afterwards also on failure. */
enum ql_status ql_zip_open(const struct ql_reader *r, struct ql_zip *z);
void ql_zip_close(struct ql_zip *z);

#endif
