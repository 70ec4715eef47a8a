/* SPDX-License-Identifier: MIT
 * labels: quick serial
 * The line editor on a pseudo-terminal, as somebody sees it who types: each feature is a scenario.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>

#include "tests/interp/repl/typist.h"

static void test_inputs(struct terminal *t)
{
	CASE("an expression runs, an incomplete input goes on, indented");
	SHOWS(t, "1 + 1" ENTER, "In [1]: 1 + 1\nOut[1]: 2\nIn [2]:", 8);
	SHOWS(t, "for i = 1, 2 do" ENTER, "In [2]: for i = 1, 2 do\n   ...:", 10);
	SHOWS(t, "if i > 1 then" ENTER "print(i)" ENTER "end" ENTER,
		"   ...:   if i > 1 then\n   ...:     print(i)\n   ...:   end\n   ...:", 10);
	SHOWS(t, "end", "   ...: end", 11);
	SHOWS(t, ENTER, "   ...: end\n2\nIn [3]:", 8);
	CASE("a recalled block is one unit: moved in by lines, changed, run again");
	SHOWS(t, UP,
		"In [3]: for i = 1, 2 do\n   ...:   if i > 1 then\n   ...:     print(i)\n   ...:   end\n   ...: end",
		11);
	SHOWS(t, UP UP "\x05" LEFT " * 10", "   ...:     print(i * 10)\n   ...:   end\n   ...: end", 24);
	SHOWS(t, "\033>" ENTER, "   ...: end\n20\nIn [4]:", 8);
	CASE("Enter within an input makes a line, Alt-Enter always does");
	fresh(t, 4);
	SHOWS(t, "x = 1\033\r", "In [4]: x = 1\n   ...:", 8);
	SHOWS(t, "y = 2" UP HOME ENTER, "In [4]:\n   ...: x = 1\n   ...: y = 2", 8);
	SHOWS(t, "\033>" ENTER "x + y" ENTER, "Out[5]: 3\nIn [6]:", 8);
	CASE("Up goes to inputs that begin with what is typed");
	fresh(t, 6);
	SHOWS(t, "fo" UP, "   ...:     print(i * 10)\n   ...:   end\n   ...: end", 11);
	SHOWS(t, "\033[5~", "   ...:     print(i)\n   ...:   end\n   ...: end", 11);
	SHOWS(t, "\033[6~\033[6~", "In [6]: for i = 1, 2 do \xE2\x80\xA6", 10);
	CASE("a wrong input is run, not continued");
	fresh(t, 6);
	SHOWS(t, "x = = 1" ENTER, "unexpected symbol near '='\nIn [7]:", 8);
	CASE("Ctrl-C drops an input, the number stays");
	SHOWS(t, "half" CTRL_C, "In [7]: half\nIn [7]:", 8);
	CASE("Ctrl-D removes a character of an input");
	fresh(t, 7);
	SHOWS(t, "abc" HOME CTRL_D, "In [7]: bc", 8);
	CASE("output that did not end its line gets a mark");
	fresh(t, 7);
	SHOWS(t, "io.write 'no end';" ENTER, "no end~\nIn [8]:", 8);
	CASE("what is typed ahead goes to the one who reads");
	SHOWS(t, "io.read()" ENTER "typed\n", "Out[8]: \"typed\"\nIn [9]:", 8);
	fresh(t, 9);
}

static void test_keys(struct terminal *t)
{
	CASE("moving and removing");
	SHOWS(t, "one two three", "In [9]: one two three", 21);
	SHOWS(t, HOME, "In [9]: one two three", 8);
	SHOWS(t, "\033[1;5C", "In [9]: one two three", 11);
	SHOWS(t, "\033f\033b", "In [9]: one two three", 12);
	SHOWS(t, DELETE, "In [9]: one wo three", 12);
	SHOWS(t, END "\x7F", "In [9]: one wo thre", 19);
	CASE("killing and yanking");
	SHOWS(t, "\x17", "In [9]: one wo", 15);
	SHOWS(t, "\x15", "In [9]:", 8);
	SHOWS(t, "\x19", "In [9]: one wo thre", 19);
	SHOWS(t, HOME "\x0B\x19", "In [9]: one wo thre", 19);
	CASE("undo and redo");
	fresh(t, 9);
	SHOWS(t, "alpha beta gamma\x1F", "In [9]: alpha beta", 18);
	SHOWS(t, "\x1F", "In [9]: alpha", 13);
	SHOWS(t, "\033_", "In [9]: alpha beta", 18);
	CASE("swapping, capitals");
	SHOWS(t, "\x14", "In [9]: alpha beat", 18);
	SHOWS(t, "\033b\033u", "In [9]: alpha BEAT", 18);
	SHOWS(t, "\033t", "In [9]: BEAT alpha", 18);
	CASE("Ctrl-L clears the screen and keeps the input");
	SHOWS(t, "\x0C", "In [9]: BEAT alpha", 18);
	CHECK(t->screen.row == 0, "row %d", t->screen.row);
	CASE("Ctrl-X Ctrl-E opens the editor on the input");
	fresh(t, 9);
	SHOWS(t, "one = 1\033\rone\x18\x05", "In [9]: two = 1\n   ...: two", 11);
	fresh(t, 9);
}

static void test_paste(struct terminal *t)
{
	CASE("a paste is one edit and runs nothing");
	CHECK(t->screen.paste, "bracketed paste is off");
	SHOWS(t, PASTE("a = 1\nb = 2\nprint 'ran'\n"), "In [9]: a = 1\n   ...: b = 2\n   ...: print 'ran'", 19);
	SHOWS(t, "\x1F", "In [9]:", 8);
	SHOWS(t, "\033_" ENTER, "   ...: print 'ran'\nran\nIn [10]:", 9);
	fresh(t, 10);
	CASE("escape bytes in a paste do nothing");
	SHOWS(t, PASTE("x\033]0;title\a\033[31my"), "In [10]: x]0;title[31my", 23);
	fresh(t, 10);
	CASE("indentation is not doubled");
	SHOWS(t, PASTE("if x then\n  y()\nend"), "In [10]: if x then\n    ...:   y()\n    ...: end", 12);
	fresh(t, 10);
}

static void test_looks(struct terminal *t)
{
	CASE("colours");
	SHOWS(t, "local x = 'abc' .. 12 -- note ", "In [10]: local x = 'abc' .. 12 -- note", 39);
	CHECK(!strcmp(style_of(t, "local"), "1;35"), "keyword: %s", style_of(t, "local"));
	CHECK(!strcmp(style_of(t, "'abc'"), "33"), "string: %s", style_of(t, "'abc'"));
	CHECK(!strcmp(style_of(t, "12"), "36"), "number: %s", style_of(t, "12"));
	CHECK(!strcmp(style_of(t, "-- note"), "90"), "comment: %s", style_of(t, "-- note"));
	CHECK(!strcmp(style_of(t, "x ="), ""), "name: %s", style_of(t, "x ="));
	CHECK(!strcmp(style_of(t, "In ["), "32"), "prompt: %s", style_of(t, "In ["));
	fresh(t, 10);
	CASE("the bracket that belongs to the one at the cursor");
	SHOWS(t, "f(a[1], ')')", "In [10]: f(a[1], ')')", 21);
	CHECK(!strcmp(t->screen.cell[0][10].style, "1;4") && !strcmp(t->screen.cell[0][20].style, "1;4"), "%s %s",
		t->screen.cell[0][10].style, t->screen.cell[0][20].style);
	CHECK(!strcmp(t->screen.cell[0][12].style, ""), "another bracket: %s", t->screen.cell[0][12].style);
	fresh(t, 10);
	CASE("suggestion from earlier inputs");
	SHOWS(t, "print 'a rather long one'" ENTER, "In [11]:", 9);
	fresh(t, 11);
	SHOWS(t, "print 'a", "In [11]: print 'a rather long one'", 17);
	CHECK(!strcmp(style_of(t, "rather"), "90") && !strcmp(style_of(t, "print"), ""), "%s", style_of(t, "rather"));
	SHOWS(t, "\033f", "In [11]: print 'a rather long one'", 24);
	SHOWS(t, RIGHT, "In [11]: print 'a rather long one'", 34);
	CHECK(!strcmp(style_of(t, "rather"), "33"), "%s", style_of(t, "rather"));
	fresh(t, 11);
	SHOWS(t, "print 'a\x05", "In [11]: print 'a rather long one'", 34);
	fresh(t, 11);
	SHOWS(t, "print 'a" END, "In [11]: print 'a rather long one'", 34);
	fresh(t, 11);
	CASE("a suggestion is not run");
	SHOWS(t, "print 'a" CTRL_C, "In [11]: print 'a\nIn [11]:", 9);
	fresh(t, 11);
}

static void test_search(struct terminal *t)
{
	CASE("search through earlier inputs, blocks shown whole");
	SHOWS(t, "\x12", "In [11]:\nsearch:", 9);
	SHOWS(t, "i > 1",
		"In [11]: for i = 1, 2 do\n    ...:   if i > 1 then\n    ...:     print(i * 10)\n    ...:   end\n"
		"    ...: end\nsearch: i > 1",
		14);
	SHOWS(t, "\x12", "    ...:     print(i)\n    ...:   end\n    ...: end\nsearch: i > 1", 14);
	SHOWS(t, "qq", "search, nothing found: i > 1qq", 14);
	SHOWS(t, "\x07", "In [11]:", 9);
	SHOWS(t, "draft\x12rather\x07", "In [11]: draft", 14);
	SHOWS(t, "\x12rather" END, "In [11]: print 'a rather long one'", 34);
	fresh(t, 11);
	SHOWS(t, "\x12rather" ENTER, "a rather long one\nIn [12]:", 9);
	fresh(t, 12);
}

static void test_completion(struct terminal *t)
{
	CASE("completion");
	SHOWS(t, "tens\t", "In [12]: tensor", 15);
	SHOWS(t, ".zer\t", "In [12]: tensor.zeros", 21);
	SHOWS(t, "{2, dty\t", "In [12]: tensor.zeros{2, dtype=", 31);
	SHOWS(t, "'bf\t", "In [12]: tensor.zeros{2, dtype='bfloat16", 40);
	SHOWS(t, "'};" ENTER, "In [13]:", 9);
	SHOWS(t, "local xs = tensor.ones(2);" ENTER, "In [14]:", 9);
	fresh(t, 14);
	CASE("the list, chosen from with Tab");
	SHOWS(t, "xs:argm\t", "In [14]: xs:argm\n argmax   argmin", 16);
	SHOWS(t, "\t",
		"In [14]: xs:argmax\n argmax   argmin\nmethod: 1-based position (int64) of the first largest eleme",
		-1);
	CHECK(strstr(t->text, "xs:argmax\n argmax ") && !strcmp(style_of(t, "argmax  "), "7"), "%s", t->text);
	SHOWS(t, "\t" ENTER, "In [14]: xs:argmin", 18);
	SHOWS(t, "\x1F", "In [14]: xs:argm", 16);
	SHOWS(t, "\t\t\x07", "In [14]: xs:argm", 16);
	fresh(t, 14);
	CASE("options with their text, methods of what a call returns");
	SHOWS(t, "xs:sum{\t\t", "integers, an axis or a list of axes (default: all)", -1);
	SHOWS(t, ENTER "1}:arg\t\t" ENTER, "In [14]: xs:sum{axis=1}:argmax", 30);
	fresh(t, 14);
	SHOWS(t, "xs:quantize 'uint8@ent\t", "In [14]: xs:quantize 'uint8@entropy", 35);
	fresh(t, 14);
	SHOWS(t, "%tim\t", "In [14]: %time\n time     timeit", 14);
	fresh(t, 14);
	SHOWS(t, "help 'tensor.threa\t", "In [14]: help 'tensor.threads", 29);
	fresh(t, 14);
	CASE("file names");
	SHOWS(t, "io.open 'tests/interp/repl/edit\t",
		"In [14]: io.open 'tests/interp/repl/edit\n editing.c         editor.c          editor.h\n editor_screen.c",
		40);
	fresh(t, 14);
	CASE("nothing of the user runs");
	SHOWS(t, "spy = setmetatable({}, {__index = function() print 'RAN' end});" ENTER, "In [15]:", 9);
	fresh(t, 15);
	SHOWS(t,
		"spy.a\t"
		"b",
		"In [15]: spy.ab", 15);
	fresh(t, 15);
	CASE("Tab in leading blanks indents");
	SHOWS(t, "\tx", "In [15]:   x", 12);
	fresh(t, 15);
}

static void test_width(struct terminal *t)
{
	CASE("wide and combining characters");
	SHOWS(t, "'\xE6\x97\xA5\xE6\x9C\xAC'", "In [15]: '\xE6\x97\xA5\xE6\x9C\xAC'", 15);
	SHOWS(t, LEFT "\x7F", "In [15]: '\xE6\x97\xA5'", 12);
	SHOWS(t, "e\xCC\x81z" LEFT LEFT,
		"In [15]: '\xE6\x97\xA5"
		"e\xCC\x81z'",
		12);
	SHOWS(t, DELETE, "In [15]: '\xE6\x97\xA5z'", 12);
	fresh(t, 15);
	CASE("a long line goes on in the next row");
	SHOWS(t, "x = 'aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffff",
		"In [15]: x = 'aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeee\neeeeffff", 8);
	SHOWS(t, HOME, "eeeeffff", 9);
	SHOWS(t, "\x0B", "In [15]:", 9);
	SHOWS(t, "x = 'aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeee",
		"In [15]: x = 'aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeee", 0);
	SHOWS(t, "1\x7F\x7F", "dddddddddeeeee", 59);
	fresh(t, 15);
	CASE("the terminal gets narrower and wider");
	SHOWS(t, PASTE("local first = 'aaaaaaaaaabbbbbbbbbbccccccc'\nlocal second = 2\nlocal third = 3"),
		"   ...: local third = 3", 24);
	terminal_resize(t, 24, 30);
	SHOWS(t, "3",
		"In [15]: local first = 'aaaaaa\naaaabbbbbbbbbbccccccc'\n    ...: local second = 2\n    ...: local third = 33",
		25);
	CHECK(!strncmp(t->text, "In [15]: local first", 20), "something was left: %s", t->text);
	terminal_resize(t, 24, 60);
	SHOWS(t, "3",
		"In [15]: local first = 'aaaaaaaaaabbbbbbbbbbccccccc'\n    ...: local second = 2\n    ...: local third = 333",
		26);
	CHECK(!strncmp(t->text, "In [15]: local first", 20), "something was left: %s", t->text);
	fresh(t, 15);
}

/* More lines than the terminal has rows. */
static void test_long(struct terminal *t)
{
	char text[8000] = "\033[200~", line[64];

	for (int i = 1; i <= 200; i++) {
		snprintf(line, sizeof(line), "v%d = %d\n", i, i);
		strcat(text, line);
	}
	strcat(text, "\033[201~");
	CASE("an input of 200 lines scrolls with the cursor");
	SHOWS(t, text, "    ...: v199 = 199\n    ...: v200 = 200", 19);
	CHECK(t->screen.row == 23, "row %d", t->screen.row);
	SHOWS(t, "\033<", "\n    ...: v24 = 24", 9);
	CHECK(!strncmp(t->text, "In [15]: v1 = 1\n", 16) && t->screen.row == 0, "%.40s", t->text);
	SHOWS(t, DOWN DOWN "x", "\n    ...: v24 = 24", 10);
	CHECK(strstr(t->text, "\n    ...: xv3 = 3\n"), "%s", t->text);
	SHOWS(t, "\x7F\033>" ENTER, "    ...: v200 = 200\nIn [16]:", 9);
	SHOWS(t, "v1 + v200" ENTER, "Out[16]: 201\nIn [17]:", 9);
	fresh(t, 17);
}

static void test_interrupt(struct terminal *t)
{
	CASE("Ctrl-C stops what runs");
	terminal_send(t, "while true do end" ENTER);
	pause_ms(300);
	SHOWS(t, CTRL_C, "In [18]:", 9);
	CHECK(strstr(t->text, "interrupted"), "%s", t->text);
	CASE("SIGINT from elsewhere drops the input");
	SHOWS(t, "half", "In [18]: half", 13);
	kill(t->pid, SIGINT);
	SHOWS(t, "", "In [18]: half\nIn [18]:", 9);
	CASE("SIGTSTP without a shell that does job control changes nothing");
	SHOWS(t, "q", "In [18]: q", 10);
	kill(t->pid, SIGTSTP);
	pause_ms(100);
	SHOWS(t,
		"b\x01"
		"c",
		"In [18]: cqb", 10);
	fresh(t, 18);
	CASE("SIGCONT draws the input again");
	SHOWS(t, "text", "In [18]: text", 13);
	kill(t->pid, SIGCONT);
	SHOWS(t, "2", "In [18]: text2", 14);
	fresh(t, 18);
}

/* Ctrl-Z needs a shell above that does job control. */
static void test_suspend(void)
{
	static const char script[] = "set -m; \"$0\"; echo stopped with $?; fg >/dev/null; echo over";
	struct terminal *t = calloc(1, sizeof(*t));
	struct winsize size = {24, 60, 0, 0};

	CASE("Ctrl-Z goes to the shell, fg comes back to the same input");
	if (!t)
		exit(1);
	screen_begin(&t->screen, 24, 60);
	t->pid = forkpty(&t->fd, NULL, NULL, &size);
	if (t->pid == 0) {
		setenv("TERM", "xterm", 1);
		for (const char *const *s = settings(NULL); *s; s++)
			putenv(strdup(*s));
		execl("/bin/sh", "sh", "-c", script, program_path(), (char *)NULL);
		_exit(127);
	}
	CHECK(terminal_shows(t, "In [1]:", 8), "%s", t->text);
	terminal_send(t, "x = 5\x1A");
	CHECK(terminal_shows(t, "In [1]: x = 5", 13), "%s", t->text);
	CHECK(strstr(t->text, "stopped with"), "not stopped: %s", t->text);
	SHOWS(t, " + 1" ENTER "x" ENTER, "Out[2]: 6\nIn [3]:", 8);
	terminal_send(t, CTRL_D);
	CHECK(terminal_close(t, PATIENCE) == 0, "did not end");
}

static void test_vi(void)
{
	char path[128], setting[140];
	FILE *f;
	struct terminal *t;

	CASE("editing-mode vi of ~/.inputrc");
	snprintf(path, sizeof(path), "%s/inputrc", folder);
	f = fopen(path, "w");
	fputs("# mine\nset bell-style none\nset editing-mode vi\n", f);
	fclose(f);
	snprintf(setting, sizeof(setting), "INPUTRC=%s", path);
	t = open_with(setting);
	terminal_send(t, "one two\033");
	pause_ms(200);
	SHOWS(t, "0dw", "In [1]: two", 8);
	SHOWS(t, "xp", "In [1]: wto", 9);
	SHOWS(t, "A = 3", "In [1]: wto = 3", 15);
	SHOWS(t, ENTER "wto" ENTER, "Out[2]: 3\nIn [3]:", 8);
	leave(t);
	unlink(path);
}

static void test_plain(void)
{
	struct terminal *t = open_with("NO_COLOR=1");

	CASE("NO_COLOR: the editor without any style");
	SHOWS(t, "print 'x'" ENTER, "In [2]:", 8);
	SHOWS(t, "print", "In [2]: print", 13);
	SHOWS(t, "('y'" LEFT RIGHT UP "\x7F\t" CTRL_C, "In [2]:", 8);
	SHOWS(t, "tensor.a\t\t", " avgpool2d\nfunction: The magnitude.", -1);
	CHECK(t->screen.colours == 0, "%d styles", t->screen.colours);
	leave(t);
	CASE("TERM=dumb: no escape byte");
	t = terminal_open(24, 60, settings("TERM=dumb"));
	CHECK(terminal_shows(t, "In [1]:", 8), "%s", t->text);
	terminal_send(t, "for i = 1, 2 do\nprint(i) end\n");
	CHECK(terminal_shows(t, "1\n2\nIn [2]:", 8), "%s", t->text);
	CHECK(t->screen.escapes == 0, "%d escape bytes", t->screen.escapes);
	terminal_send(t, CTRL_D);
	CHECK(terminal_close(t, PATIENCE) == 0, "did not end");
}

static void test_disk(void)
{
	char path[128];
	struct terminal *t, *other;
	struct stat info;

	CASE("inputs of earlier sessions, blocks whole");
	t = open_with(NULL);
	SHOWS(t, "kept = {\r1\r}" ENTER " secret = 1" ENTER, "In [3]:", 8);
	other = open_with(NULL);
	SHOWS(other, "theirs = 2" ENTER, "In [2]:", 8);
	leave(t);
	leave(other);
	t = open_with(NULL);
	SHOWS(t, "kept" UP, "In [1]: kept = {\n   ...:   1\n   ...: }", 9);
	SHOWS(t, CTRL_C "theirs" UP, "In [1]: theirs = 2", 18);
	SHOWS(t, CTRL_C "\x12secret =", "search, nothing found: secret =", -1);
	leave(t);
	snprintf(path, sizeof(path), "%s/state/quoll/history", folder);
	CHECK(!stat(path, &info) && (info.st_mode & 0777) == 0600, "mode %o", info.st_mode & 0777);
	CASE("a history that cannot be read is told once and nothing else");
	unlink(path);
	mkdir(path, 0700);
	t = terminal_open(24, 100, settings(NULL));
	CHECK(terminal_shows(t, "In [1]:", 8), "no prompt: %s", t->text);
	CHECK(strstr(t->text, "history: ") && strstr(t->text, "directory"), "%s", t->text);
	fresh(t, 1);
	SHOWS(t, "1" ENTER, "In [1]: 1\nOut[1]: 1\nIn [2]:", 8);
	leave(t);
	rmdir(path);
}

static bool is_cooked(int fd)
{
	struct termios mode;

	return !tcgetattr(fd, &mode) && mode.c_lflag & ICANON && mode.c_lflag & ECHO && mode.c_lflag & ISIG;
}

/* However it ends, the terminal is as it was. */
static void test_restored(void)
{
	static const int signals[] = {0, SIGTERM, SIGHUP, SIGSEGV, SIGABRT};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct terminal *t = open_with(NULL);
		int keep = open(ptsname(t->fd), O_RDWR | O_NOCTTY), status;

		CASE("the terminal is restored at the end, signal %d", signals[i]);
		CHECK(!is_cooked(keep) && t->screen.paste, "not raw while editing");
		if (signals[i])
			kill(t->pid, signals[i]);
		else
			terminal_send(t, CTRL_D);
		waitpid(t->pid, &status, 0);
		while (terminal_read(t, 50))
			;
		CHECK(is_cooked(keep), "still raw");
		CHECK(!t->screen.paste, "bracketed paste is still on");
#if !defined(__SANITIZE_ADDRESS__)
		CHECK(signals[i] ? WIFSIGNALED(status) && WTERMSIG(status) == signals[i] : WEXITSTATUS(status) == 0,
			"status %x", (unsigned)status);
#endif
		close(keep);
		close(t->fd);
		free(t);
	}
	CASE("the terminal is cooked while an input runs");
	{
		struct terminal *t = open_with(NULL);
		int keep = open(ptsname(t->fd), O_RDWR | O_NOCTTY);

		terminal_send(t, "os.execute 'sleep 1'" ENTER);
		pause_ms(500);
		CHECK(is_cooked(keep), "raw");
		SHOWS(t, "", "In [2]:", 8);
		close(keep);
		leave(t);
	}
}

int main(void)
{
	struct terminal *t;

	if (!typist_begin("the line editor in a terminal", 24, 60))
		return check_end();
	t = open_with(NULL);
	test_inputs(t);
	test_keys(t);
	test_paste(t);
	test_looks(t);
	test_search(t);
	test_completion(t);
	test_width(t);
	test_long(t);
	test_interrupt(t);
	CHECK(t->screen.unknown == 0, "%d sequences that this screen does not know", t->screen.unknown);
	leave(t);
	test_suspend();
	test_vi();
	test_plain();
	test_disk();
	test_restored();
	return check_end();
}
