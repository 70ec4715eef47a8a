/* SPDX-License-Identifier: MIT
 * The journal: what is recorded, what survives, what is refused.
 */
#define KILLS 6
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/interp/repl/journal.h"

#define FOLDER "/.local/state/quoll/journal"

static int shell(const char *format, const char *a)
{
	char command[2 * PATH_MAX];

	snprintf(command, sizeof(command), format, home, a);
	return system(command);
}

static void begin_anew(void)
{
	CHECK(shell("rm -rf '%s/.local'%s", "") == 0, "rm");
}

static void test_clean(void)
{
	struct dialog *d;

	CASE("a session that ends is not restored");
	begin_anew();
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "1 + 1", "Out[1]: 2");
	CHECK(dialog_leave(d) == 0, "status");
	CHECK(shell("test $(stat -c %%a '%s'" FOLDER "/*.journal) = 600%s", "") == 0, "mode");
	d = dialog_restore();
	CHECK(strstr(d->out, "no session that did not end by itself"), "%s", d->out);
	dialog_line(d, "%journal", "ended");
	dialog_send(d, "os.exit(3)\n");
	CHECK(waitpid(d->pid, NULL, 0) == d->pid, "os.exit");
	dialog_free(d);
	d = dialog_restore();
	CHECK(strstr(d->out, "no session that did not end by itself"), "os.exit: %s", d->out);
	CHECK(dialog_leave(d) == 0, "status");
}

static void test_contents(void)
{
	struct dialog *d;

	CASE("outputs of all kinds come back, and the next crash loses nothing");
	begin_anew();
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "print 'to stdout' io.stderr:write('to stderr\\n')", "to stderr");
	dialog_line(d, "error 'an error'", "In[2]:1: an error");
	dialog_line(d, "tensor{{1, 2}}", "float32(1, 2)");
	dialog_line(d, "for i = 1, 2 do\nlast = i\nend", "");
	dialog_line(d, "=last", "Out[5]: 2");
	dialog_kill(d);
	for (int i = 0; i < 2; i++) { /* the second time from the journal of the session that restored */
		d = dialog_restore();
		CHECK(strstr(d->out, "In [1]: print 'to stdout'") && strstr(d->out, "\nto stdout\r\nto stderr\r\n"),
			"%s", d->out);
		CHECK(strstr(d->out, "In[2]:1: an error\r\nstack traceback:"), "%s", d->out);
		CHECK(strstr(d->out, "Out[3]:\r\nfloat32(1, 2)\r\n  1  2\r\n"), "%s", d->out);
		CHECK(strstr(d->out, "   ...: last = i\r\n"), "%s", d->out);
		CHECK(strstr(d->out, "In [6]: "), "%s", d->out);
		dialog_line(d, "In[5], last", "\"=last\\n\"\tnil");
		dialog_kill(d);
	}
	d = dialog_restore();
	dialog_line(d, "%run 4", "");
	dialog_line(d, "last", "2");
	CHECK(dialog_leave(d) == 0, "status");
}

static void test_hint(void)
{
	static const char hint[] = "The session before did not end by itself: quoll --restore";
	struct dialog *d, *other;

	CASE("the session after a crash says so, once, and no other");
	begin_anew();
	d = dialog_begin(NULL, NULL);
	CHECK(!strstr(d->out, hint), "first: %s", d->out);
	dialog_kill(d);
	d = dialog_begin(NULL, NULL);
	CHECK(!strstr(d->out, hint), "without inputs: %s", d->out);
	dialog_line(d, "1 + 1", "Out[1]: 2");
	other = dialog_begin(NULL, NULL);
	CHECK(!strstr(other->out, hint), "while it runs: %s", other->out);
	CHECK(dialog_leave(other) == 0, "status");
	pause_us(50000); /* the clock of files goes in steps of a few milliseconds */
	dialog_line(d, "2 + 2", "Out[2]: 4");
	dialog_kill(d);
	d = dialog_begin(NULL, NULL);
	CHECK(strstr(d->out, hint), "after a crash: %s", d->out);
	CHECK(dialog_leave(d) == 0, "status");
	d = dialog_begin(NULL, NULL);
	CHECK(!strstr(d->out, hint), "later: %s", d->out);
	CHECK(dialog_leave(d) == 0, "status");
}

/* The later name belongs to the file that was written first, both in one second. */
static void test_same_second(void)
{
	struct dialog *d;

	CASE("of two that ended in one second the later is restored");
	begin_anew();
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "'the first'", "the first");
	dialog_kill(d);
	CHECK(shell("cd '%s'" FOLDER
		    " && mv 2*.journal z.journal && touch -d \"@$(($(date +%%s) / 1000 * 1000)).2\" z.journal%s",
		      "") == 0,
		"touch");
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "'the second'", "the second");
	dialog_kill(d);
	CHECK(shell("cd '%s'" FOLDER " && touch -d \"@$(($(date +%%s) / 1000 * 1000)).7\" 2*.journal%s", "") == 0,
		"touch");
	d = dialog_restore();
	CHECK(strstr(d->out, "the second") && !strstr(d->out, "the first"), "%s", d->out);
	CHECK(dialog_leave(d) == 0, "status");
}

static void test_bounds(void)
{
	struct dialog *d;

	CASE("the output of an input is bounded");
	begin_anew();
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "io.write(('x'):rep(1 << 19)) io.write(('y'):rep(1 << 20)) print() 5", "Out[1]: 5");
	d->size = d->seen = 0;
	dialog_kill(d);
	d = dialog_restore();
	CHECK(strstr(d->out, " more bytes were not recorded)\r\n"), "no note");
	CHECK(dialog_leave(d) == 0, "status");
	CASE("old files go");
	CHECK(shell("cd '%s'" FOLDER
		    " && rm -f * && for i in $(seq 250); do echo x >old$i.journal; done; touch -d '40 days ago' old1.journal "
		    "old2.journal; touch other%s",
		      "") == 0,
		"shell");
	d = dialog_begin(NULL, NULL);
	CHECK(shell("test $(ls '%s'" FOLDER "/old*.journal | wc -l) -le 200 -a ! -e '%s'" FOLDER "/old1.journal",
		      home) == 0,
		"files");
	CHECK(shell("test -e '%s'" FOLDER "/other%s", "") == 0, "another file went");
	CHECK(dialog_leave(d) == 0, "status");
}

static void test_damage(void)
{
	struct dialog *d;

	CASE("a torn or damaged tail costs that record only");
	for (int i = 0; i < 4; i++) {
		static const char *const harm[] = {"printf 'input 3 1000 00000000\\nabc' >>", "printf 'garbage' >>",
			"printf 'input 3 999999999999999999999999 00000000\\n' >>", "truncate -s -3"};
		char command[PATH_MAX];

		begin_anew();
		d = dialog_begin(NULL, NULL);
		dialog_line(d, "'first'", "Out[1]");
		dialog_line(d, "'second'", "Out[2]");
		dialog_kill(d);
		snprintf(command, sizeof(command), "for f in '%%s'" FOLDER "/*; do %s \"$f\"; done%%s", harm[i]);
		CHECK(shell(command, "") == 0, "%s", command);
		d = dialog_restore();
		CHECK(strstr(d->out, "Out[1]: \"first\"") && strstr(d->out, "Out[2]: \"second\""), "%s: %s", harm[i],
			d->out);
		CHECK(dialog_leave(d) == 0, "status");
		d = dialog_restore(); /* the old file counts as ended now */
		CHECK(strstr(d->out, "no session that did not end"), "%s: %s", harm[i], d->out);
		CHECK(dialog_leave(d) == 0, "status");
	}
}

static void test_places(void)
{
	struct dialog *d;
	char path[PATH_MAX], setting[PATH_MAX + 32];

	CASE("--journal names a new file, none means none");
	begin_anew();
	snprintf(path, sizeof(path), "%s/named", home);
	snprintf(setting, sizeof(setting), "QUOLL_JOURNAL=%s", path);
	d = dialog_begin(NULL, setting);
	dialog_line(d, "'in the file'", "Out[1]");
	CHECK(dialog_leave(d) == 0, "status");
	CHECK(shell("grep -q 'in the file' '%s/named'%s", "") == 0, "not recorded");
	d = dialog_begin(NULL, setting);
	CHECK(strstr(d->out, "File exists; this session is not recorded"), "%s", d->out);
	CHECK(dialog_leave(d) == 0, "status");
	d = dialog_begin(NULL, "QUOLL_JOURNAL=none");
	dialog_line(d, "1", "Out[1]");
	CHECK(dialog_leave(d) == 0, "status");
	CHECK(shell("test ! -e '%s/.local'%s", "") == 0, "recorded all the same");

	CASE("a home that cannot be written costs the journal only");
	d = dialog_begin(NULL, "XDG_STATE_HOME=/proc/nowhere");
	CHECK(strstr(d->out, "this session is not recorded"), "%s", d->out);
	dialog_line(d, "6 * 7", "Out[1]: 42");
	CHECK(dialog_leave(d) == 0, "status");
	d = dialog_begin(NULL, "QUOLL_JOURNAL=/dev/full");
	CHECK(strstr(d->out, "this session is not recorded"), "%s", d->out);
	CHECK(dialog_leave(d) == 0, "status");

	CASE("a pipe has no journal unless asked");
	begin_anew();
	CHECK(shell("echo 1 | HOME='%s' '%s' -i >/dev/null", program) == 0, "-i");
	CHECK(shell("test ! -e '%s/.local'%s", "") == 0, "recorded");
	CHECK(shell("echo 1 | '%2$s' --journal '%1$s/piped' -i >/dev/null && grep -q '^end ' '%1$s/piped'", program) ==
			0,
		"--journal");

	CASE("a session that runs is not restored by another");
	begin_anew();
	d = dialog_begin(NULL, NULL);
	dialog_line(d, "'mine'", "Out[1]");
	CHECK(shell("HOME='%s' '%s' --restore </dev/null 2>&1 | grep -q 'no session that did not end'", program) == 0,
		"restored");
	CHECK(shell("printf '%%%%journal\\n' | HOME='%s' '%s' -i | grep -q running", program) == 0, "not listed");
	CHECK(dialog_leave(d) == 0, "status");
}

int main(void)
{
	if (!dialog_prepare())
		return check_end();
	test_clean();
	test_contents();
	test_hint();
	test_same_second();
	test_bounds();
	test_damage();
	test_places();
	begin_anew();
	test_kills();
	dialog_clean();
	return check_end();
}
