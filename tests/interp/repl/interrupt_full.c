/* SPDX-License-Identifier: MIT
 * labels: full serial
 * Four moments of each kind of work; for long: QUOLL_MOMENTS=2000.
 */
#define MOMENTS 88
#include "tests/interp/repl/interrupt.h"

int main(void)
{
	if (!dialog_prepare())
		return check_end();
	test_moments();
	dialog_clean();
	return check_end();
}
