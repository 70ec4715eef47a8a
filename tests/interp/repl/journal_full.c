/* SPDX-License-Identifier: MIT
 * labels: full serial
 * 100 of the kills that journal.c tries a few of.
 */
#define KILLS 100
#include "tests/interp/repl/journal.h"

int main(void)
{
	if (!dialog_prepare())
		return check_end();
	test_kills();
	dialog_clean();
	return check_end();
}
