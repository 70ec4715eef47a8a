/* SPDX-License-Identifier: MIT
 * Finds SQLite at run time (Debian's libsqlite3-0): a machine without it only lacks sweeps.
 */
#include "interp/sweep/sqlite.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Our prototypes and values against the header, on machines that have it. */
#if defined(__has_include)
#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#define F(name, result, parameters) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), ql_##name##_fn *), \
		"sqlite3.h declares " #name " otherwise");
QL_SQLITE_FUNCTIONS(F)
#undef F
_Static_assert(SQLITE_OK == (int)QL_SQLITE_OK && SQLITE_ROW == (int)QL_SQLITE_ROW && SQLITE_DONE == (int)QL_SQLITE_DONE,
	"results");
_Static_assert(SQLITE_OPEN_READONLY == (int)QL_SQLITE_READONLY && SQLITE_OPEN_READWRITE == (int)QL_SQLITE_READWRITE &&
		       SQLITE_OPEN_CREATE == (int)QL_SQLITE_CREATE && SQLITE_OPEN_URI == (int)QL_SQLITE_URI,
	"flags of opening");
_Static_assert(SQLITE_INTEGER == (int)QL_SQLITE_INTEGER && SQLITE_FLOAT == (int)QL_SQLITE_FLOAT &&
		       SQLITE_TEXT == (int)QL_SQLITE_TEXT && SQLITE_BLOB == (int)QL_SQLITE_BLOB &&
		       SQLITE_NULL == (int)QL_SQLITE_NULL,
	"types");
#endif
#endif

#define OLDEST 3035000 /* RETURNING */
#define INSTALL "; install it with: apt-get install --no-install-recommends libsqlite3-0"

static struct {
	bool tried, usable;
	void *library;
	struct ql_sqlite functions;
} found;

static void load(void)
{
	const char *wanted = getenv("QUOLL_SQLITE");
	bool all = true;

	found.tried = true;
	found.library = dlopen(wanted && *wanted ? wanted : "libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!found.library)
		return;
#define F(name, result, parameters) \
	*(void **)&found.functions.name = dlsym(found.library, #name); \
	all = all && found.functions.name;
	QL_SQLITE_FUNCTIONS(F)
#undef F
	found.usable = all && found.functions.sqlite3_libversion_number() >= OLDEST;
}

const struct ql_sqlite *ql_sqlite(void)
{
	if (!found.tried)
		load();
	return found.usable ? &found.functions : NULL;
}

bool ql_sqlite_describe(char *text, size_t size)
{
	if (ql_sqlite())
		snprintf(text, size, "SQLite %s", found.functions.sqlite3_libversion());
	else if (!found.library)
		snprintf(text, size, "no SQLite: no sweeps" INSTALL);
	else if (!found.functions.sqlite3_libversion)
		snprintf(text, size, "the library lacks functions of SQLite" INSTALL);
	else
		snprintf(text, size, "SQLite %s is too old, sweeps need 3.35" INSTALL,
			found.functions.sqlite3_libversion());
	return found.usable;
}
