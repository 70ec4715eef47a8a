/* SPDX-License-Identifier: MIT
 * SQLite as far as sweeps need it. The library is opened by name at the first results file and never before.
 */
#ifndef QUOLL_INTERP_SWEEP_SQLITE_H
#define QUOLL_INTERP_SWEEP_SQLITE_H

#include <stdbool.h>
#include <stddef.h>

struct sqlite3;
struct sqlite3_stmt;

/* name, result, parameters: what is used of sqlite3.h */
#define QL_SQLITE_FUNCTIONS(F) \
	F(sqlite3_libversion, const char *, (void)) \
	F(sqlite3_libversion_number, int, (void)) \
	F(sqlite3_open_v2, int, (const char *, struct sqlite3 **, int, const char *)) \
	F(sqlite3_close_v2, int, (struct sqlite3 *)) \
	F(sqlite3_system_errno, int, (struct sqlite3 *)) \
	F(sqlite3_errmsg, const char *, (struct sqlite3 *)) \
	F(sqlite3_errstr, const char *, (int)) \
	F(sqlite3_busy_handler, int, (struct sqlite3 *, int (*)(void *, int), void *)) \
	F(sqlite3_changes, int, (struct sqlite3 *)) \
	F(sqlite3_prepare_v2, int, (struct sqlite3 *, const char *, int, struct sqlite3_stmt **, const char **)) \
	F(sqlite3_step, int, (struct sqlite3_stmt *)) \
	F(sqlite3_finalize, int, (struct sqlite3_stmt *)) \
	F(sqlite3_bind_parameter_count, int, (struct sqlite3_stmt *)) \
	F(sqlite3_bind_double, int, (struct sqlite3_stmt *, int, double)) \
	F(sqlite3_bind_int64, int, (struct sqlite3_stmt *, int, long long)) \
	F(sqlite3_bind_null, int, (struct sqlite3_stmt *, int)) \
	F(sqlite3_bind_text, int, (struct sqlite3_stmt *, int, const char *, int, void (*)(void *))) \
	F(sqlite3_column_count, int, (struct sqlite3_stmt *)) \
	F(sqlite3_column_name, const char *, (struct sqlite3_stmt *, int)) \
	F(sqlite3_column_type, int, (struct sqlite3_stmt *, int)) \
	F(sqlite3_column_double, double, (struct sqlite3_stmt *, int)) \
	F(sqlite3_column_int64, long long, (struct sqlite3_stmt *, int)) \
	F(sqlite3_column_blob, const void *, (struct sqlite3_stmt *, int)) \
	F(sqlite3_column_bytes, int, (struct sqlite3_stmt *, int))

#define F(name, result, parameters) typedef result ql_##name##_fn parameters;
QL_SQLITE_FUNCTIONS(F)
#undef F

struct ql_sqlite {
#define F(name, result, parameters) ql_##name##_fn *name;
	QL_SQLITE_FUNCTIONS(F)
#undef F
};

/* Values of sqlite3.h, checked against it in sqlite.c. */
enum { QL_SQLITE_OK = 0, QL_SQLITE_ROW = 100, QL_SQLITE_DONE = 101 };
enum { QL_SQLITE_READONLY = 1, QL_SQLITE_READWRITE = 2, QL_SQLITE_CREATE = 4, QL_SQLITE_URI = 64 };
enum { QL_SQLITE_INTEGER = 1, QL_SQLITE_FLOAT = 2, QL_SQLITE_TEXT = 3, QL_SQLITE_BLOB = 4, QL_SQLITE_NULL = 5 };

/* NULL: the library is not there, or too old for UPDATE … RETURNING; ql_sqlite_describe says which. */
const struct ql_sqlite *ql_sqlite(void);
/* One line for `quoll doctor`: the version, or what to install. True when it can be used. */
bool ql_sqlite_describe(char *text, size_t size);

#endif
