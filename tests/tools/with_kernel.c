/* SPDX-License-Identifier: MIT
 * with_kernel LEVEL COMMAND …: runs the command with QUOLL_KERNEL=LEVEL, or says why not: this CPU has nothing which that level
 * adds to the one below it, or no kernel beyond the level, so that the tests run the same kernels without it.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor/cpu.h"

/* True when the level has a feature that this CPU has and the next lower level has not; ref always counts. */
static bool present(const char *level)
{
	char names[] = QL_CPU_LEVELS;
	int64_t below = 0;

	for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
		int64_t features = ql_cpu_level(name);

		if (!strcmp(name, level))
			return features == 0 || (features & ~below & ql_cpu()->features) != 0;
		below = features;
	}
	return false;
}

/* What kernels need of a CPU, all of them. */
#define X(family, isa, needs) | (needs)
static const int64_t needed = 0
#include "tensor/kernels/kernels.def"
	;
#undef X

static bool complete(const char *level)
{
	return (needed & ql_cpu()->features & ~ql_cpu_level(level)) == 0;
}

static int skip(const char *level, const char *why)
{
	printf("skipped: kernel level %s: this CPU (%s) %s\n0 passed, 0 failed, 1 skipped\n", level, ql_cpu()->name,
		why);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: with_kernel LEVEL COMMAND ...\n");
		return 2;
	}
	if (!present(argv[1]))
		return skip(argv[1], "has nothing of it");
	if (complete(argv[1]))
		return skip(argv[1], "has no kernels beyond it: the tests run these without it");
	setenv("QUOLL_KERNEL", argv[1], 1);
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
