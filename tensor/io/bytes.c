/* SPDX-License-Identifier: MIT
 * The bytes of a whole file. The caller bounds the decompressed size, so a decompression bomb is an error after at
 * most that much memory (twice as much while the block grows).
 */
#include "tensor/io/bytes.h"

#include <string.h>

#include "tensor/io/format.h"
#include "tensor/io/stream.h"

#define FIRST ((size_t)64 << 10) /* bytes of the block that grows */

static enum ql_status read_exact(struct ql_stream *s, uint64_t size, struct ql_tensor **out)
{
	enum ql_status status;
	int64_t shape = (int64_t)size;

	if (size > s->left)
		return ql_fail(s->reader->ctx, QL_ERR_FORMAT,
			"wanted %llu bytes of content, %llu bytes of file hold at most %llu", (unsigned long long)size,
			(unsigned long long)s->reader->size, (unsigned long long)s->left);
	status = ql_tensor_new(s->reader->ctx, QL_uint8, 1, &shape, out);
	return status ? status : ql_stream_read(s, ql_tensor_data(*out), size, "content");
}

/* Reads to the end of the stream into a block of ql_alloc that doubles. */
static enum ql_status read_growing(struct ql_stream *s, uint64_t limit, uint8_t **block, size_t *n)
{
	struct ql_ctx *ctx = s->reader->ctx;
	size_t room = FIRST, got;
	enum ql_status status;
	uint8_t *more;

	for (;;) {
		more = ql_realloc(ctx, *block, room);
		if (!more)
			return QL_ERR_MEMORY;
		*block = more;
		status = ql_stream_some(s, *block + *n, room - *n, &got);
		*n += got;
		if (!status && *n > limit)
			status = ql_fail(ctx, QL_ERR_FORMAT, "wanted at most %llu bytes of content, got more",
				(unsigned long long)limit);
		if (status || *n < room)
			return status;
		room *= 2;
	}
}

static enum ql_status read_all(struct ql_stream *s, uint64_t limit, struct ql_tensor **out)
{
	struct ql_ctx *ctx = s->reader->ctx;
	uint8_t *block = NULL;
	size_t n = 0;
	enum ql_status status = read_growing(s, limit, &block, &n);
	int64_t shape = (int64_t)n;

	if (!status)
		status = ql_tensor_new(ctx, QL_uint8, 1, &shape, out);
	if (!status)
		memcpy(ql_tensor_data(*out), block, n);
	ql_free(ctx, block);
	return status;
}

static enum ql_status load(struct ql_reader *r, const char *path, uint64_t size, bool exact, struct ql_tensor **out)
{
	struct ql_stream s = {.open = false};
	enum ql_coding coding;
	enum ql_status status = ql_reader_open(r->ctx, path, r);

	if (!status)
		status = ql_stream_coding(r, &coding);
	if (!status)
		status = ql_stream_open(&s, r, 0, r->size, coding, 0);
	if (!status)
		status = exact ? read_exact(&s, size, out) : read_all(&s, size, out);
	if (!status)
		status = ql_stream_finish(&s);
	ql_stream_close(&s);
	return status;
}

enum ql_status ql_bytes_load(struct ql_ctx *ctx, const char *path, uint64_t size, bool exact, struct ql_tensor **out)
{
	struct ql_reader r = {.ctx = ctx, .fd = -1};
	enum ql_status status = load(&r, path, size, exact, out);

	ql_reader_close(&r);
	if (!status)
		return QL_OK;
	ql_tensor_release(ctx, *out);
	*out = NULL;
	return ql_file_fail(ctx, status, "read", path);
}
