/* SPDX-License-Identifier: MIT
 * Writing of journals, and what interp/repl/journal_read.lua needs to read them. A write that fails (a full disk)
 * takes back what it wrote and ends the recording, which is reported once: the session goes on.
 */
#include "interp/repl/journal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "interp/host/folders.h"
#include "interp/prelude/libs.h"
#include "interp/host/output.h"
#include "interp/prelude/prelude.h"

#define QL_HEAD 64

struct ql_journal {
	struct ql_listener listener;
	int fd;
	int n;         /* the input whose output comes */
	size_t size;   /* of the file */
	size_t output; /* recorded of this input */
	size_t left;   /* not recorded of this input */
	bool broken;
	char path[QL_PATH];
};

static struct ql_journal *open_journal; /* for the exit of the process */

/* ---- records ---- */

static uint32_t checksum(const char *head, const char *text, size_t size)
{
	uLong crc = crc32(crc32(0, NULL, 0), (const Bytef *)head, (uInt)strlen(head));

	return (uint32_t)crc32_z(crc, (const Bytef *)text, size);
}

static void break_off(struct ql_journal *j)
{
	int error = errno;

	if (ftruncate(j->fd, (off_t)j->size) == 0)
		lseek(j->fd, 0, SEEK_END);
	j->broken = true;
	fprintf(stderr, "journal: %s: %s; this session is not recorded any more\n", j->path, strerror(error));
}

static void put_record(struct ql_journal *j, const char *kind, int n, const char *text, size_t size)
{
	char head[QL_HEAD];
	struct iovec part[3] = {{head, 0}, {(void *)(uintptr_t)text, size}, {(void *)(uintptr_t) "\n", 1}};
	ssize_t wanted, got;

	if (!j || j->broken)
		return;
	snprintf(head, sizeof(head), "%s %d %zu", kind, n, size);
	snprintf(head + strlen(head), sizeof(head) - strlen(head), " %08x\n", checksum(head, text, size));
	part[0].iov_len = strlen(head);
	wanted = (ssize_t)(part[0].iov_len + size + 1);
	errno = ENOSPC;
	do
		got = writev(j->fd, part, 3);
	while (got < 0 && errno == EINTR);
	if (got == wanted)
		j->size += (size_t)wanted;
	else
		break_off(j);
}

static void put_left(struct ql_journal *j)
{
	char text[32];

	if (j && j->left) {
		snprintf(text, sizeof(text), "%zu", j->left);
		put_record(j, "left", j->n, text, strlen(text));
		j->left = 0;
	}
}

/* A listener: see interp/host/output.h. */
static void take(void *self, const struct ql_output *event)
{
	static const char *const kinds[] = {[QL_OUTPUT_STDOUT] = "stdout",
		[QL_OUTPUT_STDERR] = "stderr",
		[QL_OUTPUT_RESULT] = "result",
		[QL_OUTPUT_DISPLAY] = "display",
		[QL_OUTPUT_ERROR] = "error",
		[QL_OUTPUT_NOTE] = "note"};
	struct ql_journal *j = self;
	size_t room = j->output < QL_JOURNAL_OUTPUT ? QL_JOURNAL_OUTPUT - j->output : 0, n;

	if (j->size > QL_JOURNAL_FILE || j->n == 0)
		room = 0;
	n = event->size < room ? event->size : room;
	if (n)
		put_record(j, kinds[event->kind], j->n, event->text, n);
	j->output += n;
	if (j->n)
		j->left += event->size - n;
}

void ql_journal_input(struct ql_journal *j, int n, const char *text, size_t size)
{
	if (!j)
		return;
	fflush(stdout);
	put_left(j);
	j->n = n;
	j->output = 0;
	put_record(j, "input", n, text, size);
}

void ql_journal_done(struct ql_journal *j, int n, const char *how)
{
	if (!j)
		return;
	fflush(stdout);
	put_left(j);
	put_record(j, "done", n, how, strlen(how));
	j->n = 0; /* what comes before the next input is the prompt's own */
	if (!j->broken)
		fdatasync(j->fd);
}

/* ---- files ---- */

/* The whole path of an entry of the folder `path` ("…/journal/"). */
static bool file_of(const char *path, const char *name, char file[QL_PATH], struct stat *st)
{
	size_t n = strlen(name);

	return n > 8 && !strcmp(name + n - 8, ".journal") &&
	       snprintf(file, QL_PATH, "%.3000s%.1000s", path, name) < QL_PATH && !lstat(file, st) &&
	       S_ISREG(st->st_mode);
}

/* Another process writes the file. */
static bool is_alive(const char *file)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool alive = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return alive;
}

struct entry {
	char *name;
	struct stat st;
};

/* By nanoseconds: two sessions may end in the same second. */
static int newest_first(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	const struct timespec *s = &x->st.st_mtim, *t = &y->st.st_mtim;

	if (s->tv_sec != t->tv_sec)
		return s->tv_sec < t->tv_sec ? 1 : -1;
	if (s->tv_nsec != t->tv_nsec)
		return s->tv_nsec < t->tv_nsec ? 1 : -1;
	return -strcmp(x->name, y->name);
}

/* Journals of the folder, the newest first; the caller frees the list and the names. */
static size_t list_files(const char *folder, struct entry **out)
{
	DIR *dir = opendir(folder);
	struct dirent *d;
	size_t n = 0, room = 0;

	*out = NULL;
	while (dir && (d = readdir(dir)) != NULL) {
		char file[QL_PATH];
		struct stat st;
		struct entry *more = *out;

		if (!file_of(folder, d->d_name, file, &st))
			continue;
		if (n == room) {
			room = room ? 2 * room : 64;
			more = reallocarray(*out, room, sizeof(**out));
			if (!more)
				break;
			*out = more;
		}
		more[n].st = st;
		more[n].name = strdup(file);
		n += more[n].name != NULL;
	}
	if (dir)
		closedir(dir);
	if (n)
		qsort(*out, n, sizeof(**out), newest_first);
	return n;
}

static void free_files(struct entry *files, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(files[i].name);
	free(files);
}

static void remove_old(const char *folder)
{
	struct entry *files;
	size_t n = list_files(folder, &files), total = 0;
	time_t now = time(NULL);

	for (size_t i = 0; i < n; i++) {
		total += (size_t)files[i].st.st_size;
		if ((i >= QL_JOURNAL_FILES || total > QL_JOURNAL_TOTAL ||
			    now - files[i].st.st_mtime > (time_t)QL_JOURNAL_DAYS * 86400) &&
			!is_alive(files[i].name))
			unlink(files[i].name);
	}
	free_files(files, n);
}

/* A new name in the user's folder. */
static bool make_path(char path[QL_PATH], char error[QL_JOURNAL_ERROR])
{
	char name[96];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	if (!ql_folder(QL_FOLDER_STATE, "journal/", true, path)) {
		snprintf(error, QL_JOURNAL_ERROR, "journal: %s", path);
		return false;
	}
	remove_old(path);
	strftime(name, sizeof(name), "journal/%Y-%m-%dT%H-%M-%S", &tm);
	snprintf(name + strlen(name), sizeof(name) - strlen(name), "-%ld.journal", (long)getpid());
	return ql_folder(QL_FOLDER_STATE, name, true, path);
}

static void put_session(struct ql_journal *j)
{
	char text[QL_PATH + 128], stamp[64], folder[QL_PATH];
	time_t now = time(NULL);
	struct tm tm;

	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &tm);
	if (!getcwd(folder, sizeof(folder)))
		strcpy(folder, "?");
	snprintf(text, sizeof(text), "quoll %s\n%s\n%s", QUOLL_VERSION, stamp, folder);
	put_record(j, "session", 1, text, strlen(text));
}

/* A process that exits by itself (os.exit) has ended cleanly. */
static void at_exit(void)
{
	if (open_journal)
		put_record(open_journal, "end", 0, "", 0);
}

struct ql_journal *ql_journal_open(lua_State *L, const char *path, char error[QL_JOURNAL_ERROR])
{
	static bool registered;
	struct ql_journal *j = calloc(1, sizeof(*j));

	if (!j) {
		snprintf(error, QL_JOURNAL_ERROR, "journal: %s", strerror(ENOMEM));
		return NULL;
	}
	if (path)
		snprintf(j->path, QL_PATH, "%s", path);
	else if (!make_path(j->path, error))
		goto fail;
	j->fd = open(j->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (j->fd < 0) {
		snprintf(error, QL_JOURNAL_ERROR, "journal: %.4000s: %s", j->path, strerror(errno));
		goto fail;
	}
	flock(j->fd, LOCK_EX | LOCK_NB);
	put_session(j);
	j->listener = (struct ql_listener){.take = take, .self = j};
	if (!ql_output_listen(L, &j->listener, false)) {
		snprintf(error, QL_JOURNAL_ERROR, "journal: %s", strerror(ENOMEM));
		close(j->fd);
		goto fail;
	}
	if (!registered)
		atexit(at_exit);
	registered = true;
	open_journal = j;
	return j;
fail:
	free(j);
	return NULL;
}

void ql_journal_close(lua_State *L, struct ql_journal *j)
{
	if (!j)
		return;
	ql_output_end(L, &j->listener);
	put_record(j, "end", 0, "", 0);
	open_journal = NULL;
	close(j->fd);
	free(j);
}

/* ---- the session before ---- */

/* Whether the text is in the `size` bytes of the file from `at` on (from its end back: negative). */
static bool file_has(const char *file, off_t at, size_t size, const char *text)
{
	char part[QL_PATH + QL_HEAD];
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;
	ssize_t n = -1;

	if (at < 0)
		at = end > -at ? end + at : 0;
	if (end >= 0)
		n = pread(fd, part, size < sizeof(part) ? size : sizeof(part), at);
	if (fd >= 0)
		close(fd);
	return n > 0 && memmem(part, (size_t)n, text, strlen(text));
}

bool ql_journal_crashed(const struct ql_journal *j)
{
	char folder[QL_PATH];
	struct entry *files;
	size_t n, i = 0;
	bool crashed;

	snprintf(folder, sizeof(folder), "%s", j->path);
	strrchr(folder, '/')[1] = '\0';
	n = list_files(folder, &files);
	while (i < n && (!strcmp(files[i].name, j->path) || is_alive(files[i].name)))
		i++;
	crashed = i < n && file_has(files[i].name, 0, QL_PATH, "\ninput ") &&
		  !file_has(files[i].name, -QL_HEAD, QL_HEAD, "\nend 0 0 ");
	free_files(files, n);
	return crashed;
}

/* ---- for the prelude ---- */

/* journal_files() -> list of {path, size, time, alive = another process writes it, own = this one does} */
static int journal_files(lua_State *L)
{
	char folder[QL_PATH];
	struct entry *files;
	size_t n;

	lua_newtable(L);
	if (!ql_folder(QL_FOLDER_STATE, "journal/", false, folder))
		return 1;
	n = list_files(folder, &files);
	for (size_t i = 0; i < n; i++) {
		bool own = open_journal && !strcmp(open_journal->path, files[i].name);

		lua_createtable(L, 0, 5);
		lua_pushstring(L, files[i].name);
		lua_setfield(L, -2, "path");
		lua_pushinteger(L, (lua_Integer)files[i].st.st_size);
		lua_setfield(L, -2, "size");
		lua_pushinteger(L, (lua_Integer)files[i].st.st_mtime);
		lua_setfield(L, -2, "time");
		lua_pushboolean(L, own);
		lua_setfield(L, -2, "own");
		lua_pushboolean(L, !own && is_alive(files[i].name));
		lua_setfield(L, -2, "alive");
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	free_files(files, n);
	return 1;
}

/* journal_end(path, size): cuts off what is after `size` bytes of whole records and marks the session as
 * ended */
static int journal_end(lua_State *L)
{
	struct ql_journal j = {.fd = open(luaL_checkstring(L, 1), O_WRONLY | O_APPEND | O_CLOEXEC)};

	if (j.fd >= 0) {
		j.size = (size_t)luaL_checkinteger(L, 2);
		j.broken = ftruncate(j.fd, (off_t)j.size) != 0;
		put_record(&j, "end", 0, "", 0);
		close(j.fd);
	}
	lua_pushboolean(L, j.fd >= 0 && !j.broken);
	return 1;
}

/* journal_put(kind, number, text): a record taken over into the journal of this session, if there is one */
static int journal_put(lua_State *L)
{
	size_t size;
	const char *text = luaL_checklstring(L, 3, &size);

	put_record(open_journal, luaL_checkstring(L, 1), (int)luaL_checkinteger(L, 2), text, size);
	return 0;
}

/* crc32(a, b) -> of both together */
static int push_crc32(lua_State *L)
{
	size_t size;
	const char *text = luaL_checklstring(L, 2, &size);

	lua_pushinteger(L, checksum(luaL_checkstring(L, 1), text, size));
	return 1;
}

int ql_open_journal(lua_State *L)
{
	static const luaL_Reg functions[] = {{"journal_files", journal_files}, {"journal_end", journal_end},
		{"journal_put", journal_put}, {"crc32", push_crc32}, {NULL, NULL}};

	luaL_getsubtable(L, LUA_REGISTRYINDEX, QL_INTERNAL);
	luaL_setfuncs(L, functions, 0);
	lua_pop(L, 1);
	return 0;
}
