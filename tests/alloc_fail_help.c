/* SPDX-License-Identifier: MIT
 * labels: full
 * The input of alloc_fail.c with the most allocations: a search of all help for a name that is not there.
 */
#include "tests/tools/alloc_fail.h"

int main(void)
{
	static const char *const inputs[] = {"?nothing", "_"};

	if (!ql_temporary_start())
		return 2;
	sweep_inputs(inputs, 2);
	ql_temporary_end();
	return check_end();
}
