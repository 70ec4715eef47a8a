/* SPDX-License-Identifier: MIT
 * Libraries of CUDA that only some ops need: opened by the first of them, since a large one takes seconds when its file is not
 * cached, and may be missing. Looked for in QUOLL_CUDA_LIBDIR, then by the dynamic loader, in the toolkit, and in Python
 * packages (CUDA installed by pip).
 */
#include "gpu/cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH 512

static void *open_in(const char *folder, const char *file)
{
	char path[PATH];

	return folder && (size_t)snprintf(path, sizeof(path), "%s/%s", folder, file) < sizeof(path)
		       ? dlopen(path, RTLD_NOW | RTLD_LOCAL)
		       : NULL;
}

/* Opens the first file that matches the pattern and can be opened. */
static void *open_matching(const char *pattern, const char *file)
{
	char path[PATH];
	glob_t found;
	void *library = NULL;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", pattern, file) >= sizeof(path) || glob(path, 0, NULL, &found))
		return NULL;
	for (size_t i = 0; i < found.gl_pathc && !library; i++)
		library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
	globfree(&found);
	return library;
}

void *ql_library_open(const char *file)
{
	static const char *const patterns[] = {"/usr/local/cuda/lib64", "/usr/lib/python3*/dist-packages/nvidia/*/lib",
		"/usr/lib/python3*/site-packages/nvidia/*/lib", "/usr/local/lib/python3*/*-packages/nvidia/*/lib"};
	const char *given = getenv("QUOLL_CUDA_LIBDIR"), *environment = getenv("VIRTUAL_ENV");
	char packages[PATH];
	void *library = open_in(given, file);

	if (!library)
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library && environment &&
		(size_t)snprintf(packages, sizeof(packages), "%s/lib/python3*/site-packages/nvidia/*/lib",
			environment) < sizeof(packages))
		library = open_matching(packages, file);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]) && !library; i++)
		library = open_matching(patterns[i], file);
	return library;
}
