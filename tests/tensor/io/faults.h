/* SPDX-License-Identifier: MIT
 * System calls that fail on demand. This program's own definitions stand in front of the C library's, for
 * everything that is linked into it; they do the work by syscall(2), or fail.
 */
#ifndef QUOLL_TESTS_TENSOR_IO_FAULTS_H
#define QUOLL_TESTS_TENSOR_IO_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
	bool on;
	int count;   /* calls seen */
	int fail_at; /* the call that fails, from 1; 0: none */
	bool stay;   /* all later ones fail, too */
	int error;
	size_t most;        /* bytes that one read or write handles; 0: all */
	const char *failed; /* name of the last call that failed */
} faults;

static bool fault(const char *name)
{
	if (!faults.on)
		return false;
	faults.count++;
	if (!faults.fail_at || faults.count < faults.fail_at || (faults.count > faults.fail_at && !faults.stay))
		return false;
	faults.failed = name;
	errno = faults.error;
	return true;
}

static size_t part(size_t n)
{
	return faults.on && faults.most && n > faults.most ? faults.most : n;
}

int open(const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	return fault("open") ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...)
{
	va_list args;
	int mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, int) : 0;
	va_end(args);
	return fault("openat") ? -1 : (int)syscall(SYS_openat, directory, path, flags, mode);
}

/* A close that fails has closed nevertheless. */
int close(int fd)
{
	int result = (int)syscall(SYS_close, fd);

	return fault("close") ? -1 : result;
}

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	return fault("pread") ? -1 : syscall(SYS_pread64, fd, to, part(n), at);
}

ssize_t write(int fd, const void *from, size_t n)
{
	return fault("write") ? -1 : syscall(SYS_write, fd, from, part(n));
}

ssize_t pwrite(int fd, const void *from, size_t n, off_t at)
{
	return fault("pwrite") ? -1 : syscall(SYS_pwrite64, fd, from, part(n), at);
}

int fsync(int fd)
{
	return fault("fsync") ? -1 : (int)syscall(SYS_fsync, fd);
}

int fstat(int fd, struct stat *info)
{
	return fault("fstat") ? -1 : (int)syscall(SYS_fstat, fd, info);
}

int fchmod(int fd, mode_t mode)
{
	return fault("fchmod") ? -1 : (int)syscall(SYS_fchmod, fd, mode);
}

int faccessat(int directory, const char *path, int mode, int flags)
{
	(void)flags;
	return fault("faccessat") ? -1 : (int)syscall(SYS_faccessat, directory, path, mode);
}

int renameat(int from_directory, const char *from, int to_directory, const char *to)
{
	return fault("renameat") ? -1 : (int)syscall(SYS_renameat, from_directory, from, to_directory, to);
}

int unlinkat(int directory, const char *path, int flags)
{
	return fault("unlinkat") ? -1 : (int)syscall(SYS_unlinkat, directory, path, flags);
}

int flock(int fd, int how)
{
	return fault("flock") ? -1 : (int)syscall(SYS_flock, fd, how);
}

ssize_t getrandom(void *to, size_t n, unsigned flags)
{
	return fault("getrandom") ? -1 : syscall(SYS_getrandom, to, n, flags);
}

/* Runs `action` with a failing call. */
#define WITH_FAULT(n, persistent, reason, action) \
	do { \
		faults.on = true; \
		faults.count = 0; \
		faults.fail_at = n; \
		faults.stay = persistent; \
		faults.error = reason; \
		faults.failed = NULL; \
		action; \
		faults.on = false; \
	} while (0)

#endif
