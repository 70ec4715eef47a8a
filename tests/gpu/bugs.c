/* SPDX-License-Identifier: MIT
 * The faults of gpu/emu/bugs.def are found: for each, the test that it names runs with it and must fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/check.h"

static const struct bug {
	const char *name, *test, *what;
} bugs[] = {
	{"none", "copy", "nothing"},
#define X(name, test, what) {#name, #test, what},
#include "gpu/emu/bugs.def"
#undef X
};
#define BUGS ((int)(sizeof(bugs) / sizeof(bugs[0])))

/* The program of tests/gpu/<test>.c, beside this one. */
static bool program(const char *test, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *slash;

	if (n <= 0)
		return false;
	path[n] = '\0';
	slash = strrchr(path, '/');
	return slash && (size_t)snprintf(slash, size - (size_t)(slash - path), "/tests_gpu_%s_c", test) <
				size - (size_t)(slash - path);
}

/* Exit status of the test with fault i; -1: it did not run. */
static int run(int i)
{
	char path[4096], number[16];
	int status = 0;
	pid_t child;

	if (!program(bugs[i].test, path, sizeof(path)) || access(path, X_OK))
		return -1;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		snprintf(number, sizeof(number), "%d", i);
		setenv("QUOLL_EMU_BUG", number, 1);
		if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
			_exit(0);
		execl(path, path, (char *)NULL);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(void)
{
	if (!getenv("QUOLL_TEST_PLUGIN")) {
		SKIP("cudaemu",
			"the emulation is not built: Boost.Context (libboost-context-dev) or a C++ compiler is missing");
		return check_end();
	}
	for (int i = 0; i < BUGS; i++) {
		int status;

		if (left_out(i, 4))
			continue;
		status = run(i);
		CASE("%s", bugs[i].name);
		CHECK(status >= 0 && (status != 0) == (i > 0), "%s: tests/gpu/%s.c ends with %d", bugs[i].what,
			bugs[i].test, status);
	}
	return check_end();
}
