/* SPDX-License-Identifier: MIT
 * What a C test needs: cases with checks, counted for the test summary.
 *   CASE("gemm_i8 %s: all sizes", isa);  CHECK(got == want, "m=%d: %d", m, got);  …  return check_end();
 * A case passes when all checks up to the next CASE do. SKIP("kernel amx", "this CPU has none") is a case,
 * too. Long loops thin themselves out under the sanitizers: if (left_out(i, 3)) continue;
 */
#ifndef QUOLL_TESTS_CHECK_H
#define QUOLL_TESTS_CHECK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
	char name[128];
	bool open; /* a case has begun: by CASE, or by a check outside of any */
	int bad;   /* failed checks of the case */
	int passed, failed, skipped;
} check;

static inline void check_case_end(void)
{
	if (!check.open)
		return;
	*(check.bad ? &check.failed : &check.passed) += 1;
	if (check.bad > 5)
		printf("%s: %d failed checks\n", check.name, check.bad);
	check.name[0] = '\0';
	check.open = false;
	check.bad = 0;
}

__attribute__((format(printf, 1, 2))) static inline void CASE(const char *format, ...)
{
	va_list args;

	check_case_end();
	check.open = true;
	va_start(args, format);
	vsnprintf(check.name, sizeof(check.name), format, args);
	va_end(args);
}

/* The first failures of a case are printed. */
__attribute__((format(printf, 5, 6))) static inline bool check_one(
	bool good, const char *file, int line, const char *text, const char *format, ...)
{
	va_list args;

	check.open = true;
	if (good)
		return true;
	if (check.bad++ < 5) {
		printf("%s:%d: %s: failed: %s  ", file, line, check.name, text);
		va_start(args, format);
		vprintf(format, args);
		va_end(args);
		putchar('\n');
	}
	return false;
}

/* The sanitizers' build is 5 to 20 times slower. What they look for depends on the edges of tiles, panels and buffers under each kernel;
 * that every value and size gives the right bits is the subject of the release build, which leaves out nothing. */
#ifdef __SANITIZE_ADDRESS__
enum { under_sanitizers = 1 };
#else
enum { under_sanitizers = 0 };
#endif

/* Of similar cases in a loop, those that the sanitizers do without: all but every n-th. */
static inline bool left_out(int64_t i, int n)
{
	return under_sanitizers && i % n != 0;
}

#define CHECK(condition, ...) check_one(condition, __FILE__, __LINE__, #condition, __VA_ARGS__)

/* Zeroed memory; without it the test ends here. */
static inline void *check_alloc(size_t n)
{
	void *block = calloc(n ? n : 1, 1);

	if (!block) {
		printf("no memory for %zu bytes\n", n);
		exit(1);
	}
	return block;
}

static inline void SKIP(const char *what, const char *why)
{
	check_case_end();
	check.skipped++;
	printf("skipped: %s: %s\n", what, why);
}

/* Exit status of the test. */
static inline int check_end(void)
{
	check_case_end();
	printf("%d passed, %d failed, %d skipped\n", check.passed, check.failed, check.skipped);
	return check.failed > 0 || check.passed + check.skipped == 0;
}

#endif
