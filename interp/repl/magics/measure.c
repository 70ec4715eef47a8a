/* SPDX-License-Identifier: MIT
 * What code costs: %time once, %timeit and %bench many times, %explain what the last input ran on.
 */
#include <stdio.h>

#include "interp/repl/magic.h"
#include "interp/repl/show.h"

static bool run_time(struct ql_session *s, const char *rest, size_t size, struct ql_cell *cell)
{
	char wall[QL_AMOUNT], cpu[QL_AMOUNT], peak[128];
	bool good = ql_session_call(s, cell, 0);

	(void)rest;
	(void)size;
	ql_show_peak(&s->cost, peak, sizeof(peak));
	printf("time %s (processor %s), %s, %llu allocations\n", ql_time_text(s->cost.wall, wall),
		ql_time_text(s->cost.cpu, cpu), peak, (unsigned long long)s->cost.allocations);
	return good;
}

const struct ql_magic ql_magic_time = {
	"time", "code", "runs it once: time, memory and float32 fallbacks", QL_TAKES_CODE, run_time, NULL, NULL};
const struct ql_magic ql_magic_timeit = {"timeit", "[-n calls] [-r runs] code", "runs it many times: median and spread",
	QL_TAKES_TIMED, NULL, "interp/repl/magic_measure", "timeit"};
const struct ql_magic ql_magic_bench = {"bench", "[-n calls] [-r runs] code",
	"the same as a report that is kept as Out: median, fastest, spread, kernels, memory", QL_TAKES_TIMED, NULL,
	"interp/repl/magic_measure", "bench"};
const struct ql_magic ql_magic_explain = {"explain", "",
	"ops of the last input: kernels, paths, and why some fell back to float32", QL_TAKES_NOTHING, NULL,
	"interp/repl/magic_measure", "explain"};
