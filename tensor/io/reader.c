/* SPDX-License-Identifier: MIT
 * Bounded reader.
 */
#include "tensor/io/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/mapping.h"

#define CHUNK ((uint64_t)8 << 20) /* bytes between two polls of the interrupt flag: a few milliseconds */

static enum ql_status system_error(struct ql_ctx *ctx, const char *what)
{
	return ql_fail(ctx, QL_ERR_IO, "%s: %s", what, strerror(errno));
}

enum ql_status ql_reader_open(struct ql_ctx *ctx, const char *path, struct ql_reader *r)
{
	struct stat info;
	enum ql_status status = QL_OK;

	*r = (struct ql_reader){.ctx = ctx, .path = path, .fd = -1};
	/* without O_NONBLOCK a pipe without a writer would block forever */
	r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (r->fd < 0)
		return system_error(ctx, "cannot open");
	if (fstat(r->fd, &info))
		status = system_error(ctx, "cannot ask for the size");
	else if (S_ISDIR(info.st_mode))
		status = ql_fail(ctx, QL_ERR_IO, "wanted a file, got a directory");
	else if (!S_ISREG(info.st_mode))
		status = ql_fail(ctx, QL_ERR_IO, "wanted a regular file, got a device, pipe or socket");
	else
		r->size = (uint64_t)info.st_size;
	if (status)
		ql_reader_close(r);
	return status;
}

void ql_reader_memory(struct ql_ctx *ctx, const void *data, uint64_t size, struct ql_reader *r)
{
	*r = (struct ql_reader){.ctx = ctx, .path = "", .fd = -1, .memory = data, .size = size};
}

void ql_reader_close(struct ql_reader *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
	ql_mapping_release(r->ctx, r->mapping);
	r->mapping = NULL;
}

void ql_reader_map(struct ql_reader *r)
{
	r->mapping = ql_mapping_new(r->ctx, r->fd, r->size);
}

enum ql_status ql_reader_check(const struct ql_reader *r, uint64_t offset, uint64_t n, const char *what)
{
	if (offset <= r->size && n <= r->size - offset)
		return QL_OK;
	return ql_fail(r->ctx, QL_ERR_FORMAT, "%s: wanted %llu bytes at offset %llu, the file ends at %llu", what,
		(unsigned long long)n, (unsigned long long)offset, (unsigned long long)r->size);
}

/* At most CHUNK bytes. */
static enum ql_status read_chunk(const struct ql_reader *r, uint64_t offset, uint64_t n, char *to, const char *what)
{
	ssize_t got;

	while (n > 0) {
		got = pread(r->fd, to, (size_t)n, (off_t)offset);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return ql_fail(r->ctx, QL_ERR_IO, "%s: cannot read: %s", what, strerror(errno));
		if (got == 0)
			return ql_fail(r->ctx, QL_ERR_IO, "%s: the file became shorter while it was read", what);
		to += got;
		offset += (uint64_t)got;
		n -= (uint64_t)got;
	}
	return QL_OK;
}

enum ql_status ql_reader_at(const struct ql_reader *r, uint64_t offset, uint64_t n, void *to, const char *what)
{
	enum ql_status status = ql_reader_check(r, offset, n, what);
	uint64_t part;

	if (!status && r->fd < 0 && n > 0)
		memcpy(to, r->memory + offset, (size_t)n);
	for (uint64_t done = 0; !status && r->fd >= 0 && done < n; done += part) {
		part = n - done < CHUNK ? n - done : CHUNK;
		if (r->ctx->interrupted)
			return ql_fail(r->ctx, QL_ERR_INTERRUPTED, "interrupted");
		status = read_chunk(r, offset + done, part, (char *)to + done, what);
	}
	return status;
}

enum ql_status ql_reader_take(const struct ql_reader *r, uint64_t offset, uint64_t n, const char *what, char **out)
{
	enum ql_status status = ql_reader_check(r, offset, n, what);
	char *block;

	*out = NULL;
	if (status)
		return status;
	block = ql_alloc(r->ctx, (size_t)n + 1);
	if (!block)
		return QL_ERR_MEMORY;
	status = ql_reader_at(r, offset, n, block, what);
	if (status) {
		ql_free(r->ctx, block);
		return status;
	}
	block[n] = '\0';
	*out = block;
	return QL_OK;
}
