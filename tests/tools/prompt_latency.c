/* SPDX-License-Identifier: MIT
 * Times the line editor as somebody feels it: from a key that is written to a pseudo-terminal to the last
 * byte of the answer. Not a test; run it by hand: tests/prompt_latency (in the build's folder).
 */
#include "tests/interp/terminal.h"

#define TIMES 200
#define QUIET 30 /* ms without output: the answer is over */

static int compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

/* Reads the answer; returns when its last byte came, 0 when none did. */
static long long answer(struct terminal *t)
{
	long long last = 0;
	char block[1 << 16];
	struct pollfd p = {t->fd, POLLIN, 0};

	while (poll(&p, 1, last ? QUIET : 2000) > 0) {
		ssize_t n = read(t->fd, block, sizeof(block));

		if (n <= 0)
			break;
		last = microseconds();
		screen_feed(&t->screen, block, (size_t)n);
	}
	return last;
}

static void report(const char *what, struct terminal *t, const char *const *keys, int times)
{
	static long long took[TIMES];
	int n = 0;

	for (int i = 0; i < times; i++) {
		const char *key = keys[i % 2];
		long long begin = microseconds(), end;

		if (write(t->fd, key, strlen(key)) < 0)
			exit(1);
		end = answer(t);
		if (end)
			took[n++] = end - begin;
	}
	if (n == 0) {
		printf("%-44s no answer\n", what);
		return;
	}
	qsort(took, (size_t)n, sizeof(*took), compare);
	printf("%-44s median %6.2f ms, 99%% %6.2f ms, most %6.2f ms\n", what, 1e-3 * (double)took[n / 2],
		1e-3 * (double)took[n * 99 / 100], 1e-3 * (double)took[n - 1]);
}

static void fill(struct terminal *t, int lines)
{
	static char text[100000], line[100];

	strcpy(text, "\x03\033[200~");
	for (int i = 1; i <= lines; i++) {
		snprintf(line, sizeof(line), "local variable_%d = math.max(%d, 'text' .. %d) -- a comment\n",
			i, i, i);
		strcat(text, line);
	}
	strcat(text, "\033[201~");
	terminal_send(t, text);
	answer(t);
}

static void start(const char *const *settings)
{
	long long took[20];

	for (int i = 0; i < 20; i++) {
		long long begin = microseconds();
		struct terminal *t = terminal_open(50, 100, settings);

		while (!t->screen.paste || t->screen.hidden || t->screen.column != 8)
			terminal_read(t, 1000);
		took[i] = microseconds() - begin;
		terminal_send(t, "\x04");
		terminal_close(t, PATIENCE);
	}
	qsort(took, 20, sizeof(*took), compare);
	printf("%-44s median %6.2f ms, most %6.2f ms\n", "start to prompt", 1e-3 * (double)took[10],
		1e-3 * (double)took[19]);
}

int main(void)
{
	static const char *const settings[] = {"HOME", "XDG_STATE_HOME", NULL};
	static const char *const typing[] = {"x", "\x7F"}, *const moving[] = {"\033[D", "\033[C"},
				 *const redraw[] = {"\x0C", "\x0C"}, *const lines[] = {"\033\r", "\x1F"},
				 *const ends[] = {"\033<", "\033>"}, *const tabs[] = {" tens\t", "\x17"};
	struct terminal *t;

	start(settings);
	t = terminal_open(50, 100, settings);
	answer(t);
	report("a character, empty input", t, typing, TIMES);
	for (int n = 100; n <= 200; n += 100) {
		printf("%d lines:\n", n);
		fill(t, n);
		report("  a character at the end", t, typing, TIMES);
		report("  the cursor", t, moving, TIMES);
		report("  a new line and its undo", t, lines, TIMES);
		report("  from begin to end (all rows change)", t, ends, TIMES);
		report("  Ctrl-L (all is drawn)", t, redraw, TIMES);
		terminal_send(t, "\033<");
		answer(t);
		report("  a character at the beginning", t, typing, TIMES);
		report("  completion", t, tabs, 40);
	}
	terminal_send(t, "\x03\x04");
	return terminal_close(t, PATIENCE);
}
