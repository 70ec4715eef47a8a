/* SPDX-License-Identifier: MIT
 * The file of the history: one line for each input, with \n for its line ends and \\ for a backslash. An
 * input is appended with a single write under a lock, so sessions that run side by side do not mix their
 * lines. A file that has grown to twice what is kept is replaced as a whole: a process that waits for the lock of
 * the old one sees by its inode that it is gone, and opens again. The lock is waited for a second at most: whoever
 * holds it longer is stopped, and must not stop this prompt.
 */
#include "interp/repl/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define QL_HISTORY_BYTES ((off_t)64 << 20) /* a file beyond that is none of ours */
#define QL_TRIES 10
#define QL_LOCK_TRIES 100
#define QL_LOCK_PAUSE 10000000L /* ns */

static bool set_error(struct ql_history *h, const char *what, const char *why)
{
	snprintf(h->error, sizeof(h->error), "history: %s: %s", what, why);
	return false;
}

bool ql_history_place(struct ql_bytes *path)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && *state == '/')
		return ql_bytes_text(path, state) && ql_bytes_text(path, "/quoll/history");
	if (!home || *home != '/')
		return false;
	return ql_bytes_text(path, home) && ql_bytes_text(path, "/.local/state/quoll/history");
}

/* The folders above the file, for the user alone. */
static void make_folders(const char *path)
{
	struct ql_bytes folder = {0};

	for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/'))
		if (ql_bytes_set(&folder, path, (size_t)(slash - path)))
			mkdir(folder.at, 0700);
	ql_bytes_free(&folder);
}

static bool lock(int fd)
{
	const struct timespec pause = {0, QL_LOCK_PAUSE};

	for (int i = 0; i < QL_LOCK_TRIES; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return true;
		if (errno != EWOULDBLOCK && errno != EINTR)
			return false;
		nanosleep(&pause, NULL);
	}
	errno = EWOULDBLOCK;
	return false;
}

static const char *reason(void)
{
	return errno == EWOULDBLOCK ? "another process does not give its lock back" : strerror(errno);
}

/* Opens and locks what has that name now; -1: errno has the reason. */
static int open_locked(const char *path)
{
	for (int i = 0; i < QL_TRIES; i++) {
		int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0600);
		struct stat ours, now;

		if (fd < 0)
			return -1;
		if (!lock(fd)) {
			int error = errno;

			close(fd);
			errno = error;
			return -1;
		}
		if (!fstat(fd, &ours) && !stat(path, &now) && ours.st_ino == now.st_ino)
			return fd;
		close(fd);
	}
	errno = EWOULDBLOCK;
	return -1;
}

static bool read_all(int fd, struct ql_bytes *b)
{
	char block[1 << 16];
	ssize_t n;

	while ((n = read(fd, block, sizeof(block))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || !ql_bytes_add(b, block, (size_t)n))
			return false;
	}
	return true;
}

static bool write_all(int fd, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t put = write(fd, text, n);

		if (put < 0 && errno != EINTR)
			return false;
		if (put > 0) {
			text += put;
			n -= (size_t)put;
		}
	}
	return true;
}

/* One input as a line. */
static bool encode(struct ql_bytes *line, const struct ql_bytes *text)
{
	for (size_t i = 0; i < text->size; i++) {
		char c = text->at[i];
		const char *put = c == '\n' ? "\\n" : c == '\\' ? "\\\\" : NULL;

		if (!(put ? ql_bytes_text(line, put) : ql_bytes_add(line, &c, 1)))
			return false;
	}
	return ql_bytes_text(line, "\n");
}

/* Valid UTF-8 without control characters except the tab. */
static bool is_text(const char *text, size_t n)
{
	size_t length;

	for (size_t i = 0; i < n; i += length) {
		uint32_t c = (unsigned char)text[i];

		length = 1;
		if (c >= 0x80)
			c = ql_bytes_char(text + i, n - i, &length);
		if ((c < 0x20 && c != '\t') || c == 0x7F || (c == 0xFFFD && length == 1))
			return false;
	}
	return true;
}

/* False: no line of ours. */
static bool decode(const char *line, size_t n, struct ql_bytes *text)
{
	const char *end = line + n, *escape;

	ql_bytes_set(text, NULL, 0);
	if (!is_text(line, n))
		return false;
	while ((escape = memchr(line, '\\', (size_t)(end - line)))) {
		if (escape + 1 == end || (escape[1] != 'n' && escape[1] != '\\'))
			return false;
		if (!ql_bytes_add(text, line, (size_t)(escape - line)) ||
			!ql_bytes_text(text, escape[1] == 'n' ? "\n" : "\\"))
			return false;
		line = escape + 2;
	}
	return ql_bytes_add(text, line, (size_t)(end - line));
}

/* Returns the number of lines; *broken counts those that were left out. */
static size_t read_lines(struct ql_history *h, const struct ql_bytes *all, size_t *broken)
{
	struct ql_bytes text = {0};
	size_t lines = 0;

	for (size_t at = 0; at < all->size;) {
		const char *end = memchr(all->at + at, '\n', all->size - at);
		size_t n = end ? (size_t)(end - all->at) - at : all->size - at;

		lines++;
		if (!end || !decode(all->at + at, n, &text)) /* no line end: a write that was cut off */
			++*broken;
		else
			ql_history_add(h, text.at, text.size);
		at += n + 1;
	}
	ql_bytes_free(&text);
	return lines;
}

/* Puts a file with what is kept in the place of the old one, which is locked. */
static void rewrite(const struct ql_history *h)
{
	struct ql_bytes all = {0}, name = {0};
	bool good = ql_bytes_print(&name, "%s.%ld", h->path, (long)getpid());
	int fd = -1;

	for (size_t i = 0; good && i < h->n; i++)
		good = encode(&all, &h->entry[i].text);
	if (good)
		fd = open(name.at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		good = write_all(fd, all.size ? all.at : "", all.size) && !fsync(fd);
		good = !close(fd) && good;
		if (!good || rename(name.at, h->path))
			unlink(name.at);
	}
	ql_bytes_free(&all);
	ql_bytes_free(&name);
}

static bool check(struct ql_history *h, int fd, const char *path)
{
	struct stat info;

	if (fd < 0 || fstat(fd, &info))
		return set_error(h, path, reason());
	if (!S_ISREG(info.st_mode))
		return set_error(h, path, "wanted a plain file");
	if (info.st_size > QL_HISTORY_BYTES)
		return set_error(h, path, "wanted at most 64 MiB");
	if (info.st_uid == geteuid() && info.st_mode & 077)
		fchmod(fd, 0600);
	return true;
}

static bool read_file(struct ql_history *h, int fd, const char *path)
{
	struct ql_bytes all = {0};
	size_t broken = 0, lines;

	if (!check(h, fd, path))
		return false;
	if (!read_all(fd, &all)) {
		ql_bytes_free(&all);
		return set_error(h, path, strerror(errno));
	}
	lines = read_lines(h, &all, &broken);
	if (broken)
		snprintf(h->error, sizeof(h->error), "history: %.160s: %zu of %zu lines are broken and left out", path,
			broken, lines);
	if (all.size && all.at[all.size - 1] != '\n')
		write_all(fd, "\n", 1); /* what comes next shall be a line of its own */
	if (lines >= 2 * QL_HISTORY_ENTRIES)
		rewrite(h);
	ql_bytes_free(&all);
	return true;
}

void ql_history_open(struct ql_history *h, const char *path)
{
	int fd;

	h->path = strdup(path);
	if (!h->path)
		return;
	make_folders(path);
	fd = open_locked(path);
	if (!read_file(h, fd, path)) {
		free(h->path);
		h->path = NULL;
	}
	if (fd >= 0)
		close(fd);
}

void ql_history_keep(struct ql_history *h, const char *text, size_t n)
{
	struct ql_bytes line = {0};
	const struct ql_bytes *last = h->n ? &h->entry[h->n - 1].text : NULL;
	bool again = last && last->size == n && !memcmp(last->at, text, n);
	int fd;

	if (again || !ql_history_add(h, text, n) || !h->path)
		return;
	fd = open_locked(h->path);
	if (fd < 0 || !encode(&line, &h->entry[h->n - 1].text) || !write_all(fd, line.at, line.size)) {
		set_error(h, h->path, reason());
		free(h->path);
		h->path = NULL;
	}
	if (fd >= 0)
		close(fd);
	ql_bytes_free(&line);
}
