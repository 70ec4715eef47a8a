/* SPDX-License-Identifier: MIT
 * A relative path in the environment is no place (the specification says: ignore it).
 */
#include "interp/host/folders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool fail(char path[QL_PATH], const char *what, int error)
{
	char reason[QL_PATH];

	snprintf(reason, sizeof(reason), "%.3000s: %s", what, strerror(error));
	memcpy(path, reason, sizeof(reason));
	return false;
}

/* Every folder of the path but the last part. */
static bool make_folders(char path[QL_PATH])
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		int error;

		*slash = '\0';
		error = mkdir(path, 0700) && errno != EEXIST ? errno : 0;
		if (error)
			return fail(path, path, error);
		*slash = '/';
	}
	return true;
}

bool ql_folder(enum ql_folder folder, const char *name, bool make, char path[QL_PATH])
{
	const char *base = getenv(folder == QL_FOLDER_CONFIG ? "XDG_CONFIG_HOME" : "XDG_STATE_HOME");
	const char *home = getenv("HOME");
	int n;

	if (base && *base == '/')
		n = snprintf(path, QL_PATH, "%s/quoll/%s", base, name);
	else if (home && *home == '/')
		n = snprintf(path, QL_PATH, "%s/%s/quoll/%s", home,
			folder == QL_FOLDER_CONFIG ? ".config" : ".local/state", name);
	else
		return fail(path, "HOME", ENOENT);
	if (n >= QL_PATH)
		return fail(path, "HOME", ENAMETOOLONG);
	return !make || make_folders(path);
}
