/* SPDX-License-Identifier: MIT
 * kill -9 at random moments: every input whose prompt came back is in the journal with all its output, and
 * --restore shows it. KILLS says how often, the variable QUOLL_KILLS how often instead.
 */
#include "tests/interp/repl/dialog.h"

/* Restores the session that was killed: all inputs before `n` are there, whole. */
static void check_restored(int n, unsigned seed)
{
	struct dialog *d = dialog_restore();
	char wanted[160];

	for (int i = 1; i < n; i++) {
		snprintf(wanted, sizeof(wanted), "In [%d]: for k = 1, %d do print(k, %d) end %d\r\n", i, i % 7, i,
			i * 11);
		CHECK(strstr(d->out, wanted), "seed %u: no %s in %s", seed, wanted, d->out);
		if (i % 7)
			snprintf(wanted, sizeof(wanted), "\n%d\t%d\r\nOut[%d]: %d\r\n", i % 7, i, i, i * 11);
		else
			snprintf(wanted, sizeof(wanted), "end %d\r\nOut[%d]: %d\r\n", i * 11, i, i * 11);
		CHECK(strstr(d->out, wanted), "seed %u: no %s in %s", seed, wanted, d->out);
	}
	CHECK(strstr(d->out, "nothing was run"), "seed %u: %s", seed, d->out);
	CHECK(dialog_leave(d) == 0, "seed %u", seed);
}

static void kill_once(unsigned seed)
{
	struct dialog *d;
	int inputs = 1 + rand_r(&seed) % 12, n = 1;
	char line[96];

	CASE("kill -9, seed %u", seed);
	d = dialog_begin(NULL, NULL);
	for (; n <= inputs; n++) {
		snprintf(line, sizeof(line), "for k = 1, %d do print(k, %d) end %d", n % 7, n, n * 11);
		dialog_line(d, line, "Out[");
	}
	if (seed % 2) { /* in the middle of an input, too */
		dialog_send(d, "for k = 1, 1e9 do print(k) end\n");
		pause_us(rand_r(&seed) % 20000);
	} else {
		pause_us(rand_r(&seed) % 3000);
	}
	dialog_kill(d);
	check_restored(n, seed);
}

static void test_kills(void)
{
	unsigned kills = dialog_times("QUOLL_KILLS", KILLS);

	for (unsigned i = 1; i <= kills; i++)
		kill_once(i * 7919);
}
