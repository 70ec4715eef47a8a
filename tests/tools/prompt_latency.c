/* SPDX-License-Identifier: MIT
 * Times the line editor as somebody feels it: from a key that is written to a pseudo-terminal to the last
 * byte of the answer. Not a test; run it by hand: tests/prompt_latency (in the build's folder). A wait of ten seconds (20 for
 * a paste) ends it with the screen and what became of the program.
 */
#include "tests/interp/repl/terminal.h"

#define TIMES 200
#define QUIET 30    /* ms without output: the answer is over */
#define LIMIT 10000 /* ms for anything */

static int compare(const void *a, const void *b)
{
	long long x = *(const long long *)a, y = *(const long long *)b;

	return (x > y) - (x < y);
}

/* Shows what there is instead of what was waited for. */
static _Noreturn void give_up(struct terminal *t, const char *wanted)
{
	int status = 0;

	screen_text(&t->screen, t->text);
	printf("no %s in time; the screen, the cursor in column %d:\n%s\n", wanted, t->screen.column, t->text);
	if (waitpid(t->pid, &status, WNOHANG) != t->pid) {
		printf("the program runs\n");
		kill(t->pid, SIGKILL);
	} else if (WIFEXITED(status)) {
		printf("the program ended with status %d\n", WEXITSTATUS(status));
	} else {
		printf("signal %d ended the program\n", WTERMSIG(status));
	}
	exit(1);
}

/* Reads the answer; returns when its last byte came. */
static long long answer(struct terminal *t, const char *what)
{
	long long last = 0, end = microseconds() + LIMIT * 1000LL;
	char block[1 << 16];
	struct pollfd p = {t->fd, POLLIN, 0};

	while (poll(&p, 1, last ? QUIET : LIMIT) > 0) {
		ssize_t n = read(t->fd, block, sizeof(block));

		last = microseconds();
		if (n <= 0 || last > end)
			give_up(t, what);
		screen_feed(&t->screen, block, (size_t)n);
	}
	if (!last)
		give_up(t, what);
	return last;
}

static void report(const char *what, struct terminal *t, const char *const *keys, int times)
{
	static long long took[TIMES];

	for (int i = 0; i < times; i++) {
		const char *key = keys[i % 2];
		long long begin = microseconds();

		if (write(t->fd, key, strlen(key)) < 0)
			give_up(t, what);
		took[i] = answer(t, what) - begin;
	}
	qsort(took, (size_t)times, sizeof(*took), compare);
	printf("%-44s median %6.2f ms, 99%% %6.2f ms, most %6.2f ms\n", what, 1e-3 * (double)took[times / 2],
		1e-3 * (double)took[times * 99 / 100], 1e-3 * (double)took[times - 1]);
}

static void fill(struct terminal *t, int lines)
{
	static char text[100000], line[100];

	strcpy(text, "\x03\033[200~");
	for (int i = 1; i <= lines; i++) {
		snprintf(line, sizeof(line), "local variable_%d = math.max(%d, 'text' .. %d) -- a comment\n", i, i, i);
		strcat(text, line);
	}
	strcat(text, "\033[201~");
	snprintf(line, sizeof(line), "'text' .. %d) -- a comment", lines);
	terminal_send(t, text);
	if (!terminal_shows(t, line, -1))
		give_up(t, "pasted text");
}

static void leave(struct terminal *t, const char *keys)
{
	int status;

	terminal_send(t, keys);
	status = terminal_close(t, LIMIT);
	if (status == 0)
		return;
	printf("Ctrl-D: wanted an end with status 0, got %d (-1: none within %d s)\n", status, LIMIT / 1000);
	exit(1);
}

static void start(const char *const *settings)
{
	long long took[20];

	for (int i = 0; i < 20; i++) {
		long long begin = microseconds();
		struct terminal *t = terminal_open(50, 100, settings);

		while (!t->screen.paste || t->screen.hidden || t->screen.column != 8)
			if ((!terminal_read(t, 1000) && terminal_ended(t)) || microseconds() - begin > LIMIT * 1000LL)
				give_up(t, "prompt");
		took[i] = microseconds() - begin;
		leave(t, "\x04");
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

	setvbuf(stdout, NULL, _IONBF, 0);
	start(settings);
	t = terminal_open(50, 100, settings);
	answer(t, "prompt");
	report("a character, empty input", t, typing, TIMES);
	for (int n = 100; n <= 200; n += 100) {
		printf("%d lines:\n", n);
		fill(t, n);
		report("  a character at the end", t, typing, TIMES);
		report("  the cursor", t, moving, TIMES);
		report("  a new line and its undo", t, lines, TIMES);
		report("  from begin to end (all rows change)", t, ends, TIMES);
		report("  Ctrl-L (all is drawn)", t, redraw, TIMES);
		if (write(t->fd, "\033<", 2) < 0 || !answer(t, "first line"))
			return 1;
		report("  a character at the beginning", t, typing, TIMES);
		report("  completion", t, tabs, 40);
	}
	leave(t, "\x03\x04");
	return 0;
}
