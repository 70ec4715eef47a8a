/* SPDX-License-Identifier: MIT
 * with_kernel LEVEL COMMAND … [-- ARGUMENT …]: runs the command with QUOLL_KERNEL=LEVEL, or says why not: this CPU has nothing which
 * that level adds to the one below it, or no kernel beyond the level, so that the tests run the same kernels without it.
 * The arguments behind -- are tests without products of codes. Where the next level that this CPU has differs from this one in nothing
 * but kernels of such products, they run the same kernels there, and are left out here.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensor/cpu.h"

static bool adds(int64_t features, int64_t below)
{
	return (features & ~below & ql_cpu()->features) != 0;
}

/* True when the level has a feature that this CPU has and the next lower level has not; ref always counts. */
static bool present(const char *level)
{
	char names[] = QL_CPU_LEVELS;
	int64_t below = 0;

	for (char *name = strtok(names, " "); name; name = strtok(NULL, " ")) {
		int64_t features = ql_cpu_level(name);

		if (!strcmp(name, level))
			return features == 0 || adds(features, below);
		below = features;
	}
	return false;
}

/* Features of the lowest level that adds to these something that this CPU has. */
static int64_t next_level(int64_t features)
{
	char names[] = QL_CPU_LEVELS;

	for (char *name = strtok(names, " "); name; name = strtok(NULL, " "))
		if (adds(ql_cpu_level(name), features))
			return ql_cpu_level(name);
	return features;
}

/* Kernels of products of codes, and those that no level takes by itself. */
static bool of_codes(const char *family)
{
	static const char *const names[] = {
		"gemm_i8", "pack_i8", "gemm_i16", "taps_i16", "gemm_coded", "gemm_b1", "conv_i8", "depth_i8"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(family, names[i]))
			return true;
	return !strcmp(family, "gemm_bf16") || !strcmp(family, "limit");
}

static bool changes_only_codes(const char *level)
{
	int64_t features = ql_cpu_level(level), above = next_level(features);
	bool only = true;

#define X(family, isa, needs) \
	only &= of_codes(#family) || !((needs) & ~features) || ((needs) & ~(above & ql_cpu()->features));
#include "tensor/kernels/kernels.def"
#undef X
	return only;
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
	for (char **arg = argv + 2, **to = argv + 2;; arg++) {
		if (*arg && !strcmp(*arg, "--")) {
			if (!changes_only_codes(argv[1]))
				continue;
			printf("kernel level %s changes only products of codes\n", argv[1]);
			fflush(stdout);
			*to = NULL;
			break;
		}
		*to++ = *arg;
		if (!*arg)
			break;
	}
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
