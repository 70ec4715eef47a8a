/* SPDX-License-Identifier: MIT
 * File descriptor 2 points to a file in memory meanwhile. When that cannot be had, stderr stays what it is.
 */
#include "interp/plot/hush.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

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
