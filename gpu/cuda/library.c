/* SPDX-License-Identifier: MIT
 * Libraries of CUDA that only some ops need: opened by the first of them, since a large one takes seconds when its file is not
 * cached, and may be missing. Looked for in the folders of QUOLL_CUDA_LIBDIR (with : between them), then by the dynamic loader,
 * in the toolkit, and in Python packages (CUDA installed by pip).
 */
#include "gpu/cuda/library.h"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH 512

/* In one of the folders, which are separated by colons. */
static void *open_in(const char *folders, const char *file)
{
	char path[PATH];
	void *library = NULL;

	while (folders && *folders && !library) {
		int n = (int)strcspn(folders, ":");

		if ((size_t)snprintf(path, sizeof(path), "%.*s/%s", n, folders, file) < sizeof(path))
			library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		folders += n + (folders[n] == ':');
	}
	return library;
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

/* In the packages of a Python below one of these folders: PATH names .../bin, VIRTUAL_ENV the folder above. */
static void *open_packaged(const char *folders, const char *above, const char *file)
{
	char pattern[PATH];
	void *library = NULL;

	while (folders && *folders && !library) {
		int n = (int)strcspn(folders, ":");

		if ((size_t)snprintf(pattern, sizeof(pattern), "%.*s%s/lib/python3*/*-packages/nvidia/*/lib", n,
			    folders, above) < sizeof(pattern))
			library = open_matching(pattern, file);
		folders += n + (folders[n] == ':');
	}
	return library;
}

void *ql_library_open(const char *file)
{
	void *library = open_in(getenv("QUOLL_CUDA_LIBDIR"), file);

	if (!library)
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		library = open_in("/usr/local/cuda/lib64", file);
	if (!library)
		library = open_packaged(getenv("VIRTUAL_ENV"), "", file);
	if (!library)
		library = open_packaged(getenv("PATH"), "/..", file);
	return library ? library : open_packaged("/usr:/usr/local", "", file);
}

bool ql_library_ready(struct ql_library *l)
{
	void *library;
	char *to = l->functions;

	if (l->tried)
		return l->ready;
	l->tried = true;
	library = ql_library_open(l->file);
	l->ready = library != NULL;
	for (const char *const *name = l->names; l->ready && *name; name++, to += sizeof(void *)) {
		void *function = dlsym(library, *name);

		memcpy(to, &function, sizeof(function)); /* ISO C converts no object pointers to functions */
		l->ready = function != NULL;
	}
	return l->ready;
}

void *ql_library_handle(struct ql_library *l)
{
	int device;

	if (cudaGetDevice(&device))
		return NULL;
	for (int i = 0; i < l->count; i++)
		if (l->made[i].device == device)
			return l->made[i].handle;
	if (l->count == QL_LIBRARY_DEVICES || !l->create(&l->made[l->count].handle))
		return NULL;
	l->made[l->count].device = device;
	return l->made[l->count++].handle;
}
