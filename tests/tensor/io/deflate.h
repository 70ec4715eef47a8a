/* SPDX-License-Identifier: MIT
 * Packed bytes for the tests of files: deflate alone, and gzip.
 */
#ifndef QUOLL_TESTS_TENSOR_IO_DEFLATE_H
#define QUOLL_TESTS_TENSOR_IO_DEFLATE_H

#include <zlib.h>

#include "tests/tensor/io/files.h"

static inline struct bytes packed_with(const struct bytes *from, int window)
{
	struct bytes b = {0};
	z_stream z = {0};

	deflateInit2(&z, 9, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
	add_zeros(&b, deflateBound(&z, from->n) + 32);
	z.next_in = from->at;
	z.avail_in = (uInt)from->n;
	z.next_out = b.at;
	z.avail_out = (uInt)b.n;
	deflate(&z, Z_FINISH);
	b.n -= z.avail_out;
	deflateEnd(&z);
	return b;
}

static inline struct bytes gzip(const struct bytes *from)
{
	return packed_with(from, 15 + 16);
}

static inline struct bytes deflated(const struct bytes *from)
{
	return packed_with(from, -15);
}

#endif
