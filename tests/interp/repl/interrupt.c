/* SPDX-License-Identifier: MIT
 * labels: quick serial
 * What only a terminal shows: Ctrl-C at random moments, in commands of the shell and below a bar, remarks below inputs,
 * the user's settings.
 */
#define MOMENTS 13
#include "tests/interp/repl/interrupt.h"

static void test_shell(void)
{
	struct dialog *d = dialog_begin(NULL, NULL);
	int took;

	CASE("!command gets the Ctrl-C, the prompt goes on");
	dialog_line(d, "kept = 5", "");
	dialog_send(d, "!sleep 30\n");
	pause_us(300000);
	dialog_send(d, "\x03");
	took = dialog_wait(d, "interrupted", PATIENCE);
	CHECK(took >= 0 && took < 2000, "%d ms: %s", took, d->out + d->seen);
	CHECK(dialog_wait(d, "In [3]", PATIENCE) >= 0, "%s", d->out + d->seen);
	dialog_line(d, "kept", "Out[3]: 5");
	dialog_line(d, "!exit 4", "exit status 4");
	dialog_line(d, "!cat /dev/null", "");
	CHECK(dialog_leave(d) == 0, "status");

	CASE("Ctrl-C leaves %%run and its list of inputs");
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "n = 1", "");
	dialog_line(d, "if n > 1 then while true do end end", "");
	dialog_line(d, "n = n + 1", "");
	dialog_send(d, "%run 2-3\n");
	pause_us(200000);
	dialog_send(d, "\x03");
	CHECK(dialog_wait(d, "interrupted", PATIENCE) >= 0, "%s", d->out + d->seen);
	CHECK(dialog_wait(d, "In [5]", PATIENCE) >= 0, "%s", d->out + d->seen);
	dialog_line(d, "n", "Out[5]: 2");
	dialog_line(d, "%stale 2", "In[2] read n");
	CHECK(dialog_leave(d) == 0, "status");
}

static void test_remarks(void)
{
	struct dialog *d = dialog_begin(NULL, NULL);

	CASE("remarks below an input");
	dialog_line(d, "w = 1", "");
	dialog_line(d, "y = w", "");
	dialog_line(d, "w = 2", "stale now: In[2]; %stale shows why, %run stale runs it again\r\n");
	dialog_line(d, "w", "Out[4]: 2\r\n");
	dialog_line(d, "w = 3", "");
	CHECK(!strstr(d->out, "stale now: In[4]") && !strstr(d->out, "In[2] In[4]"),
		"an input that only showed something: %s", d->out);
	dialog_line(d, "%set stale off", "");
	dialog_line(d, "w = 4", "");
	dialog_line(d, "big = tensor.zeros(1 << 25);", "tensors +128.0 MiB at the peak\r\n");
	dialog_line(d, "local t = os.clock() while os.clock() < t + 1.1 do end", " s\r\n");
	dialog_line(d, "%set footer off", "");
	dialog_line(d, "big = nil big = tensor.zeros(1 << 25); 'silent'", "");
	CHECK(strstr(d->out, "Out[11]: \"silent\"\r\nIn [12"), "%s", d->out);
	CHECK(dialog_leave(d) == 0, "status");
}

static void test_settings(void)
{
	struct dialog *d = dialog_begin(NULL, NULL);
	char command[256];

	CASE("the user's settings");
	dialog_line(d, "%set precision 2", "");
	dialog_line(d, "%set plot text --save", "/.config/quoll/settings");
	CHECK(dialog_leave(d) == 0, "status");
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "tensor{0.5}", "float32(1)  0.50\r\n");
	dialog_line(d, "plot.line{{1, 2, 3}, title='a picture'}", "a picture");
	CHECK(dialog_leave(d) == 0, "status");
	snprintf(command, sizeof(command),
		"printf 'precision x\\nnonsense\\nfooter on\\n' > '%s/.config/quoll/settings'", home);
	CHECK(system(command) == 0, "%s", command);
	d = dialog_begin(NULL, NULL);
	CHECK(strstr(d->out, "settings:1: set: precision: wanted an integer") &&
			strstr(d->out, "settings:2: wanted a name and a value"),
		"%s", d->out);
	dialog_line(d, "1", "at the peak");
	CHECK(dialog_leave(d) == 0, "status");
	snprintf(command, sizeof(command), "rm '%s/.config/quoll/settings'", home);
	CHECK(system(command) == 0, "%s", command);
}

/* Figures are drawn as the setting says; a terminal that understands none of it gets characters. */
static void test_plots(void)
{
	static const struct {
		const char *set, *wanted;
	} kinds[] = {{"kitty", "\033_G"}, {"iterm", "\033]1337;File="}, {"sixel", "\033P"}, {"text", "a picture"}};
	struct dialog *d = dialog_begin(NULL, NULL);
	char line[64];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		CASE("%%set plot %s", kinds[i].set);
		snprintf(line, sizeof(line), "%%set plot %s", kinds[i].set);
		dialog_line(d, line, "");
		dialog_line(d, "have = #plot.line{{1, 2, 3}, title='x'}:text() > 0", "");
		dialog_line(d, "plot.line{{1, 2, 3}, title='a picture'}", i == 3 ? kinds[i].wanted : "");
		if (i < 3 && !strstr(d->out, kinds[i].wanted))
			CHECK(strstr(d->out, "plplot") || strstr(d->out, "a picture"),
				"neither a picture nor a reason: %s", d->out);
		d->size = d->seen = 0;
		d->out[0] = '\0';
	}
	CHECK(dialog_leave(d) == 0, "status");
}

static void test_debug(void)
{
	struct dialog *d = dialog_begin(NULL, NULL);

	CASE("%%debug has a prompt of its own");
	dialog_line(d, "function f(a) error 'x' end f(7)", "In[1]:1: x");
	dialog_send(d, "%debug\n");
	CHECK(dialog_wait(d, "\r\ndebug: ", PATIENCE) >= 0, "%s", d->out + d->seen);
	dialog_send(d, "a\n");
	CHECK(dialog_wait(d, "\n7\r\ndebug: ", PATIENCE) >= 0, "%s", d->out + d->seen);
	dialog_send(d, "while true do end\n");
	pause_us(100000);
	dialog_send(d, "\x03");
	CHECK(dialog_wait(d, "interrupted", PATIENCE) >= 0 && dialog_wait(d, "debug: ", PATIENCE) >= 0, "%s",
		d->out + d->seen);
	dialog_line(d, "quit", "");
	dialog_line(d, "1", "Out[3]: 1");
	CHECK(dialog_leave(d) == 0, "status");
}

/* The line of the terminal in which `at` stands, up to it: what \r goes over is covered. */
static void seen_line(const char *from, const char *at, char line[256])
{
	size_t column = 0, most = 0;

	for (const char *c = at; c > from; c--)
		if (c[-1] == '\n') {
			from = c;
			break;
		}
	for (const char *c = from; c < at && column < 255; c++) {
		if (*c == '\r') {
			column = 0;
			continue;
		}
		line[column++] = *c;
		most = column > most ? column : most;
	}
	line[most] = '\0';
}

/* Ctrl-C while fit draws its bar: the bar is gone, and the error, which names the user's line, stands in its place. */
static void test_bar(void)
{
	char script[96], line[256];
	unsigned seed = 5;
	FILE *f;

	snprintf(script, sizeof(script), "%s/bar.lua", home);
	f = fopen(script, "w");
	CHECK(f != NULL, "%s", script);
	if (!f)
		return;
	fputs("local net, x = nn.Linear(128, 128), tensor.randn(128, 128)\n"
	      "local pair, list = {x, x}, {}\n"
	      "for i = 1, 1e6 do list[i] = pair end\n"
	      "net:fit(list, {opt = optim.sgd(net, {lr = 0}), loss = nn.mse})\n",
		f);
	fclose(f);
	for (int i = 0; i < 6; i++) {
		struct dialog *d = dialog_open(script, "TERM=xterm");
		int status;

		CASE("Ctrl-C clears the bar of fit, %d", i);
		CHECK(dialog_wait(d, " to go", PATIENCE) >= 0, "no bar: %s", d->out + d->seen);
		pause_us(rand_r(&seed) % 250000);
		dialog_send(d, "\x03");
		CHECK(dialog_wait(d, "interrupted", PATIENCE) >= 0, "%s", d->out + d->seen);
		seen_line(d->out, d->out + d->seen, line);
		CHECK(strstr(line, "bar.lua:4: interrupted") && !strstr(line, "=") && !strstr(line, "to go") &&
				!strstr(line, "^C"),
			"the line is: %s", line);
		while (dialog_read(d, 200))
			;
		CHECK(waitpid(d->pid, &status, 0) == d->pid && WIFEXITED(status) && WEXITSTATUS(status) == 130,
			"status %d", status);
		dialog_free(d);
	}
}

int main(void)
{
	if (!dialog_prepare())
		return check_end();
	test_shell();
	test_bar();
	test_remarks();
	test_settings();
	test_plots();
	test_debug();
	test_moments();
	dialog_clean();
	return check_end();
}
