/* SPDX-License-Identifier: MIT
 * labels: full serial
 */
#define MOMENTS 200
#include "tests/interp/repl/interrupt.h"

int main(void)
{
	if (!dialog_prepare())
		return check_end();
	test_moments();
	dialog_clean();
	return check_end();
}
