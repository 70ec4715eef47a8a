/* SPDX-License-Identifier: MIT
 * labels: full
 * The input of alloc_fail.c with the most allocations: a search of all help for a name that is not there. It allocates the same for
 * each of hundreds of names, so each fifth allocation fails; QUOLL_ALLOC_STEP=1: each.
 */
#include "tests/tools/alloc_fail.h"

int main(void)
{
	static const char *const inputs[] = {"?nothing", "_"};
	const char *step = getenv("QUOLL_ALLOC_STEP");

	if (!ql_temporary_start())
		return 2;
	sweep_inputs(inputs, 2, step && atoi(step) > 0 ? (unsigned)atoi(step) : 5);
	ql_temporary_end();
	return check_end();
}
