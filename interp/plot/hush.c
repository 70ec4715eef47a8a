/* SPDX-License-Identifier: MIT
 * File descriptor 2 points to a file in memory meanwhile. When that cannot be had, stderr stays what it is.
 * Under AddressSanitizer, what fontconfig and libltdl keep for the life of the process is no leak of ours.
 */
#include "interp/plot/hush.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
/* Both are asked for by LeakSanitizer. Pango fills fontconfig's tables in a thread of its own, so
 * __lsan_disable would not do. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void)
{
	return "leak:libfontconfig\nleak:libltdl\nleak:libpango\n";
}

const char *__lsan_default_options(void)
{
	return "print_suppressions=0";
}
#endif

int ql_hush_begin(void)
{
	int aside = memfd_create("stderr", MFD_CLOEXEC), saved = aside < 0 ? -1 : dup(STDERR_FILENO);

	fflush(stderr);
	if (saved >= 0)
		dup2(aside, STDERR_FILENO);
	if (aside >= 0)
		close(aside);
	return saved;
}

void ql_hush_end(int saved)
{
	fflush(stderr);
	if (saved < 0)
		return;
	dup2(saved, STDERR_FILENO);
	close(saved);
}
