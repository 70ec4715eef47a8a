/* SPDX-License-Identifier: MIT
 * labels: quick serial
 * What only a terminal shows: Ctrl-C at random moments and in commands of the shell, remarks below inputs,
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
	dialog_line(d, "w = 2", "stale now: In[2]; %stale tells why, %run stale runs it again\r\n");
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
	} kinds[] = {
		{"kitty", "\033_G"}, {"iterm", "\033]1337;File="}, {"sixel", "\033P"}, {"text", "a picture"}};
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

int main(void)
{
	if (!dialog_prepare())
		return check_end();
	test_shell();
	test_remarks();
	test_settings();
	test_plots();
	test_debug();
	test_moments();
	dialog_clean();
	return check_end();
}
