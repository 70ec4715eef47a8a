/* SPDX-License-Identifier: MIT
 * What a C test needs: checks that are counted and, at the end, the line that the test summary reads.
 *   CHECK(a == b, "n=%d", n);    SKIP("kernel amx", "this CPU has none");    return check_end();
 */
#ifndef QUOLL_TESTS_CHECK_H
#define QUOLL_TESTS_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int check_passed, check_failed, check_skipped;

/* The first failures are printed, all are counted. */
__attribute__((format(printf, 5, 6))) static inline bool check_one(bool good, const char *file, int line,
	const char *text, const char *format, ...)
{
	va_list args;

	if (good) {
		check_passed++;
		return true;
	}
	if (check_failed++ < 20) {
		va_start(args, format);
		printf("%s:%d: failed: %s  ", file, line, text);
		vprintf(format, args);
		putchar('\n');
		va_end(args);
	}
	return false;
}

#define CHECK(condition, ...) check_one(condition, __FILE__, __LINE__, #condition, __VA_ARGS__)

static inline void SKIP(const char *what, const char *why)
{
	check_skipped++;
	printf("skipped: %s: %s\n", what, why);
}

/* Exit status of the test. */
static inline int check_end(void)
{
	printf("%d passed, %d failed, %d skipped\n", check_passed, check_failed, check_skipped);
	return check_failed > 0 || check_passed + check_skipped == 0;
}

#endif
