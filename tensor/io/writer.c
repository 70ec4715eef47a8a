/* SPDX-License-Identifier: MIT
 * Atomic saving.
 */
#include "tensor/io/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tensor/io/stream.h"

#define BUFFER ((size_t)64 << 10)
#define CHUNK ((size_t)8 << 20) /* bytes between two polls of the interrupt flag */
#define TEMP_HEAD ".quoll-"
#define TEMP_TAIL ".part"

static enum ql_status system_error(struct ql_ctx *ctx, const char *what)
{
	return ql_fail(ctx, QL_ERR_IO, "%s: %s", what, strerror(errno));
}

/* Follows a symbolic link at the end of the path, so that its target is replaced, not the link. */
static enum ql_status resolve(struct ql_writer *w, const char *path)
{
	struct stat info;
	char *real;

	if (lstat(path, &info) || !S_ISLNK(info.st_mode)) {
		w->target = ql_strdup(w->ctx, path);
		return w->target ? QL_OK : QL_ERR_MEMORY;
	}
	real = realpath(path, NULL);
	if (!real)
		return system_error(w->ctx, "cannot follow the symbolic link");
	w->target = ql_strdup(w->ctx, real);
	free(real);
	return w->target ? QL_OK : QL_ERR_MEMORY;
}

static enum ql_status open_directory(struct ql_writer *w)
{
	char *slash = strrchr(w->target, '/');
	const char *directory = ".";

	w->name = slash ? slash + 1 : w->target;
	if (!*w->name)
		return ql_fail(w->ctx, QL_ERR_IO, "wanted a file name, got a directory");
	if (slash == w->target)
		directory = "/";
	else if (slash) {
		*slash = '\0';
		directory = w->target;
	}
	w->directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return w->directory < 0 ? system_error(w->ctx, "cannot open the directory") : QL_OK;
}

/* An existing target must be a writable regular file. A device is an error because the rename would replace it. */
static enum ql_status check_target(struct ql_writer *w, bool *exists, struct stat *old)
{
	*exists = !fstatat(w->directory, w->name, old, 0);
	if (!*exists)
		return errno == ENOENT ? QL_OK : system_error(w->ctx, "cannot look at the file");
	if (S_ISDIR(old->st_mode))
		return ql_fail(w->ctx, QL_ERR_IO, "wanted a file, got a directory");
	if (!S_ISREG(old->st_mode))
		return ql_fail(w->ctx, QL_ERR_IO, "wanted a regular file, got a device, pipe or socket");
	if (faccessat(w->directory, w->name, W_OK, AT_EACCESS))
		return system_error(w->ctx, "cannot write");
	return QL_OK;
}

/* Gives the new file the permissions of the old one, and its owner if the system allows it. */
static enum ql_status take_over(struct ql_writer *w, const struct stat *old)
{
	if (old->st_uid != geteuid() && fchown(w->fd, old->st_uid, old->st_gid) && errno != EPERM)
		return system_error(w->ctx, "cannot set the owner of the old file");
	if (fchmod(w->fd, old->st_mode & 07777))
		return system_error(w->ctx, "cannot set the permissions of the old file");
	return QL_OK;
}

static bool is_temp(const char *name)
{
	size_t n = strlen(name), tail = strlen(TEMP_TAIL);

	return !strncmp(name, TEMP_HEAD, strlen(TEMP_HEAD)) && n > tail && !strcmp(name + n - tail, TEMP_TAIL);
}

/* Removes the file if its lock is free: the kernel releases the lock when a writer dies. */
static void remove_if_dead(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		unlinkat(directory, name, 0);
	close(fd);
}

/* Failures are ignored: a later save removes the files of dead writers. */
static void remove_dead(int directory)
{
	int again = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;

	if (!list) {
		if (again >= 0)
			close(again);
		return;
	}
	while ((entry = readdir(list)))
		if (is_temp(entry->d_name))
			remove_if_dead(directory, entry->d_name);
	closedir(list);
}

/* Creates and locks a temporary file; false with errno on failure, or with EAGAIN if another process removed it as
 * a dead writer's between the two steps. ql_writer_close removes the file. */
static bool create_temp(struct ql_writer *w)
{
	uint64_t random;
	struct stat info;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return false;
	snprintf(w->temp, sizeof(w->temp), TEMP_HEAD "%016llx" TEMP_TAIL, (unsigned long long)random);
	w->fd = openat(w->directory, w->temp, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (w->fd < 0)
		return false;
	/* some network file systems have no locks: then no process can take it either */
	flock(w->fd, LOCK_EX | LOCK_NB);
	if (fstat(w->fd, &info))
		return false;
	if (info.st_nlink > 0)
		return true;
	close(w->fd);
	w->fd = -1;
	errno = EAGAIN;
	return false;
}

static enum ql_status open_temp(struct ql_writer *w)
{
	for (int attempt = 0; attempt < 16; attempt++) {
		if (create_temp(w))
			return QL_OK;
		if (w->fd >= 0 || (errno != EEXIST && errno != EAGAIN && errno != EINTR))
			break;
	}
	return system_error(w->ctx, "cannot create a temporary file in the directory");
}

enum ql_status ql_writer_open(struct ql_ctx *ctx, const char *path, struct ql_writer *w)
{
	struct stat old;
	enum ql_status status;
	bool exists = false;

	*w = (struct ql_writer){.ctx = ctx, .directory = -1, .fd = -1};
	status = resolve(w, path);
	if (!status)
		status = open_directory(w);
	if (!status)
		status = check_target(w, &exists, &old);
	if (status)
		return status;
	w->buffer = ql_alloc(ctx, BUFFER);
	if (!w->buffer)
		return QL_ERR_MEMORY;
	remove_dead(w->directory);
	status = open_temp(w);
	return status || !exists ? status : take_over(w, &old);
}

/* Loops over write(2), which may write less than requested, and always does above 2 GiB. */
static enum ql_status write_all(struct ql_writer *w, const uint8_t *data, size_t n)
{
	ssize_t done;

	while (n > 0) {
		if (w->ctx->interrupted)
			return ql_fail(w->ctx, QL_ERR_INTERRUPTED, "interrupted");
		done = write(w->fd, data, n < CHUNK ? n : CHUNK);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return system_error(w->ctx, "cannot write");
		data += done;
		n -= (size_t)done;
	}
	return QL_OK;
}

static enum ql_status flush(struct ql_writer *w)
{
	enum ql_status status = write_all(w, w->buffer, w->filled);

	w->filled = 0;
	return status;
}

static enum ql_status put_plain(struct ql_writer *w, const uint8_t *data, size_t n)
{
	enum ql_status status = QL_OK;

	w->at += n;
	if (n > BUFFER - w->filled)
		status = flush(w);
	if (!status && n >= BUFFER)
		return write_all(w, data, n);
	if (!status && n > 0) {
		memcpy(w->buffer + w->filled, data, n);
		w->filled += n;
	}
	return status;
}

static enum ql_status put_deflated(struct ql_writer *w, const uint8_t *data, size_t n, int how)
{
	enum ql_status status = QL_OK;
	int code;

	w->z.next_in = (Bytef *)(uintptr_t)data;
	w->z.avail_in = (uInt)n;
	do {
		w->z.next_out = w->packed;
		w->z.avail_out = (uInt)BUFFER;
		code = deflate(&w->z, how);
		if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
			return ql_fail(w->ctx, QL_ERR_IO, "cannot compress: %s", zError(code));
		status = put_plain(w, w->packed, BUFFER - w->z.avail_out);
	} while (!status && (w->z.avail_out == 0 || (how == Z_FINISH && code != Z_STREAM_END)));
	return status;
}

enum ql_status ql_writer_put(struct ql_writer *w, const void *data, uint64_t n)
{
	enum ql_status status = QL_OK;
	const uint8_t *at = data;
	size_t part;

	for (; !status && n > 0; n -= part, at += part) {
		part = n < CHUNK ? (size_t)n : CHUNK;
		w->raw += part;
		if (w->summed)
			w->crc = (uint32_t)crc32(w->crc, at, (uInt)part);
		status = w->deflating ? put_deflated(w, at, part, Z_NO_FLUSH) : put_plain(w, at, part);
	}
	return status;
}

enum ql_status ql_writer_patch(struct ql_writer *w, uint64_t offset, const void *data, size_t n)
{
	enum ql_status status = flush(w);
	const char *at = data;
	ssize_t done;

	while (!status && n > 0) {
		done = pwrite(w->fd, at, n, (off_t)offset);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return system_error(w->ctx, "cannot write");
		at += done;
		offset += (uint64_t)done;
		n -= (size_t)done;
	}
	return status;
}

enum ql_status ql_writer_section(struct ql_writer *w, bool deflate)
{
	int code;

	w->raw = 0;
	w->crc = 0;
	w->summed = true;
	if (!deflate)
		return QL_OK;
	if (!w->packed)
		w->packed = ql_alloc(w->ctx, BUFFER);
	if (!w->packed)
		return QL_ERR_MEMORY;
	w->z = (z_stream){.zalloc = ql_zlib_alloc, .zfree = ql_zlib_free, .opaque = w->ctx};
	code = deflateInit2(&w->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
	if (code == Z_MEM_ERROR)
		return QL_ERR_MEMORY;
	if (code != Z_OK)
		return ql_fail(w->ctx, QL_ERR_UNSUPPORTED, "cannot compress: zlib cannot start (%s)", zError(code));
	w->deflating = true;
	return QL_OK;
}

enum ql_status ql_writer_section_end(struct ql_writer *w)
{
	enum ql_status status = QL_OK;

	w->summed = false;
	if (!w->deflating)
		return QL_OK;
	status = put_deflated(w, NULL, 0, Z_FINISH);
	deflateEnd(&w->z);
	w->deflating = false;
	return status;
}

/* A file system may have written less than reported, or report a full disk only on a flush. */
static enum ql_status settle(struct ql_writer *w)
{
	struct stat info;
	int fd = w->fd;

	if (fsync(fd))
		return system_error(w->ctx, "cannot flush to the disk");
	if (fstat(fd, &info))
		return system_error(w->ctx, "cannot check the size");
	if ((uint64_t)info.st_size != w->at)
		return ql_fail(w->ctx, QL_ERR_IO, "wanted a file of %llu bytes, the system kept %llu",
			(unsigned long long)w->at, (unsigned long long)info.st_size);
	return QL_OK;
}

enum ql_status ql_writer_commit(struct ql_writer *w)
{
	enum ql_status status = flush(w);

	if (!status)
		status = settle(w);
	if (status)
		return status;
	if (renameat(w->directory, w->temp, w->directory, w->name))
		return system_error(w->ctx, "cannot rename the finished file");
	w->temp[0] = '\0';
	/* some file systems cannot flush a directory: EINVAL */
	if (fsync(w->directory) && errno != EINVAL)
		return system_error(w->ctx, "the file is complete, but its directory cannot be flushed to the disk");
	return QL_OK;
}

void ql_writer_close(struct ql_writer *w)
{
	if (w->deflating)
		deflateEnd(&w->z);
	if (w->fd >= 0 && w->temp[0])
		unlinkat(w->directory, w->temp, 0);
	if (w->fd >= 0)
		close(w->fd);
	if (w->directory >= 0)
		close(w->directory);
	ql_free(w->ctx, w->buffer);
	ql_free(w->ctx, w->packed);
	ql_free(w->ctx, w->target);
	*w = (struct ql_writer){.ctx = w->ctx, .directory = -1, .fd = -1};
}
