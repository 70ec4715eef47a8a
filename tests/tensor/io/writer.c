/* SPDX-License-Identifier: MIT
 * Atomic saving: whatever fails, and whenever the program is killed, the file holds all of the old contents
 * or all of the new ones.
 */
#include "tests/tensor/io/faults.h"
#include "tests/tensor/io/files.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define ROUNDS 200 /* of kill -9 */

/* n times the byte `value` */
static struct ql_tensor *filled(int value, int64_t n)
{
	struct ql_tensor *t;

	ql_tensor_new(ctx, QL_uint8, 1, &n, &t);
	memset(t->storage->data, value, (size_t)n);
	return t;
}

/* The value all elements of the saved tensor have, and their number: -1 when there is something else. */
static int contents(const char *path, int64_t *n)
{
	struct ql_named_list list = {0};
	const uint8_t *data;
	int value = -1;

	if (ql_file_load(ctx, path, &list, NULL) || list.n != 1)
		return -1;
	*n = ql_tensor_nelem(list.at[0].tensor);
	data = list.at[0].tensor->storage->data;
	value = *n > 0 ? data[0] : -1;
	for (int64_t i = 0; i < *n; i++)
		if (data[i] != value)
			value = -1;
	ql_named_clear(ctx, &list);
	return value;
}

static int temporary_files(void)
{
	DIR *list = opendir(folder);
	struct dirent *entry;
	int n = 0;

	while ((entry = readdir(list)))
		n += !strncmp(entry->d_name, ".quoll-", 7);
	closedir(list);
	return n;
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each call that a save makes fails once, or from there on. */
static void every_call_fails(const char *path, unsigned flags, bool stay, int error)
{
	struct ql_tensor *before = filled(1, 1000), *after = filled(2, 200000);
	size_t memory = ctx->memory.now;
	int files = open_files(), n, calls = 1 << 20, value;
	enum ql_status status;
	int64_t size;

	for (n = 1; n <= calls; n++) {
		if (!CHECK(!save_named(path, "", before, 0), "%s", ctx->err))
			break;
		WITH_FAULT(n, stay, error, status = save_named(path, "", after, flags));
		calls = faults.failed ? 1 << 20 : 0;
		value = contents(path, &size);
		CHECK(value == 1 || (value == 2 && size == 200000), "%s %d: value %d", faults.failed, n, value);
		CHECK(status || value == 2, "%s %d: success, but the old file", faults.failed, n);
		CHECK(!status || (strstr(ctx->err, path) && strstr(ctx->err, strerror(error))), "%s %d: %s",
			faults.failed, n, ctx->err);
		CHECK(status == QL_OK || status == QL_ERR_IO, "%s %d: status %d", faults.failed, n, status);
		CHECK(ctx->memory.now == memory && open_files() == files, "%s %d: something is kept", faults.failed, n);
		CHECK(temporary_files() == 0 || stay || !strcmp(faults.failed, "unlinkat"),
			"%s %d: a temporary file is left", faults.failed, n);
	}
	CHECK(n > 10, "%d calls", n);
	ql_tensor_release(ctx, before);
	ql_tensor_release(ctx, after);
}

static void system_calls(void)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {{"disk full", ENOSPC}, {"device error", EIO}, {"not permitted", EACCES}, {"quota", EDQUOT}};
	static const char *const files[] = {"x.npy", "x.npz", "x.safetensors"};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++) {
			CASE("%s: each call fails once: %s", files[k], errors[i].name);
			every_call_fails(path_of(files[k]), 0, false, errors[i].error);
			CASE("%s: each call and all behind it fail: %s", files[k], errors[i].name);
			every_call_fails(path_of(files[k]), strstr(files[k], ".npz") ? QL_SAVE_COMPRESS : 0, true,
				errors[i].error);
		}
}

static void short_writes(void)
{
	struct ql_tensor *t = filled(3, 300000);
	int64_t size;

	CASE("calls that handle only a part, or are interrupted");
	for (size_t most = 1; most < 100000; most = most * 7 + 3) {
		faults.most = most < 100 ? 100 + most : most;
		WITH_FAULT(0, false, 0, CHECK(!save_named(path_of("x.npz"), "", t, 0), "%s", ctx->err));
		faults.on = true;
		CHECK(contents(path_of("x.npz"), &size) == 3 && size == 300000, "%zu bytes at once", most);
		faults.on = false;
	}
	faults.most = 0;
	for (int n = 1; n < 40; n++) {
		WITH_FAULT(n, false, EINTR, save_named(path_of("y.npy"), "", t, 0));
		if (!faults.failed || strcmp(faults.failed, "write"))
			continue;
		CHECK(contents(path_of("y.npy"), &size) == 3, "call %d", n);
	}
	ql_tensor_release(ctx, t);
}

/* The limit on file sizes gives a real failing write. */
static void file_size_limit(void)
{
	struct ql_tensor *t = filled(2, 1000000), *old = filled(1, 10);
	struct rlimit was, limit;
	int64_t size;

	CASE("a write that the system refuses");
	save_named(path_of("x.npy"), "", old, 0);
	getrlimit(RLIMIT_FSIZE, &was);
	limit = was;
	limit.rlim_cur = 100000;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	CHECK(save_named(path_of("x.npy"), "", t, 0) == QL_ERR_IO, "saved");
	setrlimit(RLIMIT_FSIZE, &was);
	CHECK(strstr(ctx->err, "x.npy") && strstr(ctx->err, "cannot write: File too large"), "%s", ctx->err);
	CHECK(contents(path_of("x.npy"), &size) == 1 && temporary_files() == 0, "the old file");
	ql_tensor_release(ctx, t);
	ql_tensor_release(ctx, old);
}

static void refuse_target(const char *path, struct ql_tensor *t, const char *reason)
{
	CHECK(save_named(path, "", t, 0) != QL_OK, "%s was saved", path);
	CHECK(strstr(ctx->err, reason), "%s: %s", path, ctx->err);
}

static void targets(void)
{
	struct ql_tensor *t = filled(1, 10), *u = filled(2, 10);
	struct stat info;
	int64_t size;

	CASE("what is no file stays as it is");
	symlink("/dev/full", path_of("full.npy"));
	refuse_target(path_of("full.npy"), t, "got a device");
	CHECK(!stat("/dev/full", &info) && S_ISCHR(info.st_mode), "/dev/full");
	mkfifo(path_of("pipe.npy"), 0600);
	refuse_target(path_of("pipe.npy"), t, "pipe");
	mkdir(path_of("dir.npy"), 0700);
	refuse_target(path_of("dir.npy"), t, "got a directory");
	rmdir(path_of("dir.npy"));
	refuse_target(path_of("none/x.npy"), t, "cannot open the directory: No such file or directory");
	refuse_target(path_of("pipe.npy/x.npy"), t, "Not a directory");
	symlink("nowhere/x", path_of("dangling.npy"));
	refuse_target(path_of("dangling.npy"), t, "symbolic link");
	if (geteuid() != 0) {
		save_named(path_of("locked.npy"), "", t, 0);
		chmod(path_of("locked.npy"), 0400);
		refuse_target(path_of("locked.npy"), t, "cannot write: Permission denied");
	}
	CASE("symbolic links and permissions stay");
	save_named(path_of("real.npy"), "", t, 0);
	chmod(path_of("real.npy"), 0640);
	symlink("real.npy", path_of("link.npy"));
	CHECK(!save_named(path_of("link.npy"), "", u, 0), "%s", ctx->err);
	CHECK(contents(path_of("real.npy"), &size) == 2, "the target of the link");
	CHECK(!lstat(path_of("link.npy"), &info) && S_ISLNK(info.st_mode), "the link");
	CHECK(!lstat(path_of("real.npy"), &info) && (info.st_mode & 07777) == 0640, "mode %o", info.st_mode);
	umask(027);
	CHECK(!save_named(path_of("new.npy"), "", u, 0) && !stat(path_of("new.npy"), &info) &&
			(info.st_mode & 07777) == 0640,
		"mode of a new file");
	CASE("a path without a folder");
	CHECK(!chdir(folder) && !save_named("here.npy", "", u, 0) && contents("here.npy", &size) == 2, "%s", ctx->err);
	chdir("/");
	ql_tensor_release(ctx, t);
	ql_tensor_release(ctx, u);
}

static void left_behind(void)
{
	struct ql_tensor *t = filled(1, 10);
	int fd;

	CASE("temporary files of dead writers go, those of living ones stay");
	write_file(".quoll-0000000000000001.part", "x", 1);
	write_file(".quoll-0000000000000002.part", "x", 1);
	write_file(".quoll-notes", "x", 1);
	fd = open(path_of(".quoll-0000000000000002.part"), O_RDWR);
	flock(fd, LOCK_EX);
	CHECK(!save_named(path_of("x.npy"), "", t, 0), "%s", ctx->err);
	CHECK(access(path_of(".quoll-0000000000000001.part"), F_OK), "the dead one");
	CHECK(!access(path_of(".quoll-0000000000000002.part"), F_OK), "the living one");
	CHECK(!access(path_of(".quoll-notes"), F_OK), "another file");
	close(fd);
	CHECK(!save_named(path_of("x.npy"), "", t, 0), "%s", ctx->err);
	CHECK(access(path_of(".quoll-0000000000000002.part"), F_OK), "dead, too");
	unlink(path_of(".quoll-notes"));
	ql_tensor_release(ctx, t);
}

static void interrupted(void)
{
	struct ql_tensor *t = filled(1, 10), *u = filled(2, 1000000);
	int64_t size;

	CASE("an interrupt leaves the old file");
	save_named(path_of("x.npy"), "", t, 0);
	ctx->interrupted = 1;
	CHECK(save_named(path_of("x.npy"), "", u, 0) == QL_ERR_INTERRUPTED, "%s", ctx->err);
	ctx->interrupted = 0;
	CHECK(contents(path_of("x.npy"), &size) == 1 && temporary_files() == 0, "the old file");
	ql_tensor_release(ctx, t);
	ql_tensor_release(ctx, u);
}

/* Saves without end, in a process of its own: 1 and 2 in turn, of different sizes. */
static void save_for_ever(const char *path, int ready)
{
	struct ql_tensor *t[2] = {filled(1, 3000000), filled(2, 1000000)};

	write(ready, "", 1);
	for (int i = 0;; i ^= 1)
		save_named(path, "", t[i], 0);
}

static void killed(void)
{
	const char *const names[] = {"k.npy", "k.npz", "k.safetensors"};
	struct ql_tensor *t = filled(1, 3000000);
	int left = 0, whole = 0, value;
	int64_t size;

	CASE("kill -9 at %d moments", ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		char path[200], started;
		int ready[2];
		pid_t child;

		snprintf(path, sizeof(path), "%s/%s", folder, names[i % 3]);
		if (access(path, F_OK))
			save_named(path, "", t, 0);
		if (pipe(ready) || (child = fork()) < 0)
			exit(2);
		if (child == 0)
			save_for_ever(path, ready[1]);
		read(ready[0], &started, 1);
		close(ready[0]);
		close(ready[1]);
		usleep((unsigned)(i * 7919 % 9000));
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		left += temporary_files() > 0;
		value = contents(path, &size);
		whole += CHECK((value == 1 && size == 3000000) || (value == 2 && size == 1000000), "round %d: value %d",
			i, value);
	}
	CHECK(whole == ROUNDS, "%d of %d whole", whole, ROUNDS);
	CHECK(left > ROUNDS / 10, "only %d rounds hit a save", left);
	save_named(path_of("k.npy"), "", t, 0);
	CHECK(temporary_files() == 0, "%d temporary files left", temporary_files());
	printf("%d of %d rounds ended inside a save\n", left, ROUNDS);
	ql_tensor_release(ctx, t);
}

/* Loading: each call fails once; parts. */
static void reading(void)
{
	struct ql_tensor *t = filled(5, 100000);
	const char *const names[] = {"x.npy", "x.npz", "x.safetensors"};
	struct ql_named_list list = {0};
	int64_t size;

	for (int k = 0; k < 3; k++) {
		CASE("%s: each call of a load fails", names[k]);
		save_named(path_of(names[k]), "", t, 0);
		for (int n = 1, more = 1; more; n++) {
			enum ql_status status;
			size_t memory = ctx->memory.now;

			WITH_FAULT(n, false, EIO, status = ql_file_load(ctx, path_of(names[k]), &list, NULL));
			more = faults.failed != NULL;
			CHECK(more && strcmp(faults.failed, "close") ? status == QL_ERR_IO : !status, "%s %d: %s",
				faults.failed, n, ctx->err);
			CHECK(!status || strstr(ctx->err, strerror(EIO)), "%s", ctx->err);
			ql_named_clear(ctx, &list);
			CHECK(ctx->memory.now == memory, "memory is kept");
		}
		faults.most = 1000;
		faults.on = true;
		faults.fail_at = 0;
		CHECK(contents(path_of(names[k]), &size) == 5 && size == 100000, "short reads");
		faults.on = false;
		faults.most = 0;
	}
	ql_tensor_release(ctx, t);
}

int main(void)
{
	size_t before = start();

	system_calls();
	short_writes();
	file_size_limit();
	targets();
	left_behind();
	interrupted();
	reading();
	killed();
	return finish(before);
}
