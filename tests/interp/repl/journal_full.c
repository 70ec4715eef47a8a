/* SPDX-License-Identifier: MIT
 * labels: full
 * 40 of the kills that journal.c tries a few of; for long: QUOLL_KILLS=1000.
 */
#define KILLS 40
#include "tests/interp/repl/journal.h"

int main(void)
{
	if (!dialog_prepare())
		return check_end();
	test_kills();
	dialog_clean();
	return check_end();
}
