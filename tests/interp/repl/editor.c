/* SPDX-License-Identifier: MIT
 * The line editor without a terminal: keys, text, undo, history, indentation, and the file of the history.
 * What it draws: editor_screen.c.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interp/repl/indent.h"
#include "interp/repl/motion.h"
#include "tests/interp/repl/editor.h"

/* ---- keys ---- */

static uint32_t decode(const char *bytes, size_t n, int *keys)
{
	struct ql_keys k = {0};
	uint32_t key = QL_KEY_NONE, last = QL_KEY_NONE;

	*keys = 0;
	for (size_t i = 0; i < n; i++)
		if (ql_keys_feed(&k, (unsigned char)bytes[i], &key)) {
			last = key;
			++*keys;
		}
	if (ql_keys_waiting(&k) && ql_keys_flush(&k, &key)) {
		last = key;
		++*keys;
	}
	ql_keys_free(&k);
	return last;
}

static const struct {
	const char *bytes, *name;
} sequences[] = {
	{"a", "a"},
	{"\xC3\xA9", "\xC3\xA9"},
	{"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
	{"\x01", "C-a"},
	{"\x1A", "C-z"},
	{"\x1F", "C-_"},
	{"\r", "Enter"},
	{"\n", "Enter"},
	{"\t", "Tab"},
	{"\x7F", "Backspace"},
	{"\b", "Backspace"},
	{"\033", "Escape"},
	{"\033f", "M-f"},
	{"\033\r", "M-Enter"},
	{"\033\x7F", "M-Backspace"},
	{"\033<", "M-<"},
	{"\033[A", "Up"},
	{"\033OA", "Up"},
	{"\033[B", "Down"},
	{"\033[C", "Right"},
	{"\033[D", "Left"},
	{"\033[1;5C", "C-Right"},
	{"\033[1;3D", "M-Left"},
	{"\033[1;5H", "C-Home"},
	{"\033[H", "Home"},
	{"\033OF", "End"},
	{"\033[1~", "Home"},
	{"\033[7~", "Home"},
	{"\033[4~", "End"},
	{"\033[3~", "Delete"},
	{"\033[5~", "PageUp"},
	{"\033[6~", "PageDown"},
	{"\033[Z", "S-Tab"},
	{"\033[13;2u", "S-Enter"},
	{"\033[27;2;13~", "S-Enter"},
	{"\033[97;5u", "C-a"},
	{"\033[27;5;114~", "C-r"},
	{"\033OM", "Enter"},
	{"\033[98;3u", "M-b"},
};

static void test_keys(void)
{
	static const char *const strange[] = {"\033[15~", "\033[[A", "\033[?1;2c", "\033[>0;1u", "\033[1;2P", "\033OP",
		"\xC3", "\xFF", "\xE2\x28", "\xED\xA0\x80", "\033[99999999999999999999u", "\033[1;2;3;4;5;6;7;8A"};
	int keys;

	for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++) {
		const char *name = sequences[i].name;
		uint32_t wanted = ql_key_named(name, strlen(name));
		uint32_t got = decode(sequences[i].bytes, strlen(sequences[i].bytes), &keys);

		CASE("key %s, sequence %zu", name, i);
		CHECK(wanted != QL_KEY_UNKNOWN && got == wanted && keys == 1, "wanted %x, got %x, %d keys", wanted, got,
			keys);
	}
	CASE("a lone ESC then a key is two keys only after the wait");
	CHECK(decode("\033\033[A", 4, &keys) == QL_KEY_UP && keys == 2, "%d keys", keys);
	CASE("unknown sequences are swallowed and what follows is read");
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		char bytes[64];

		snprintf(bytes, sizeof(bytes), "%sx", strange[i]);
		CHECK(decode(bytes, strlen(bytes), &keys) == 'x' || !strncmp(bytes, "\033[1;2;3", 7), "%zu: %x", i,
			decode(bytes, strlen(bytes), &keys));
	}
}

static void test_paste(void)
{
	static const char bytes[] = "\033[200~a\033[31m\tb\r\nc\033[201~";
	struct ql_keys k = {0};
	uint32_t key = 0;
	int keys = 0;

	CASE("a bracketed paste is one key");
	for (size_t i = 0; i < sizeof(bytes) - 1; i++)
		keys += ql_keys_feed(&k, (unsigned char)bytes[i], &key);
	CHECK(keys == 1 && key == QL_KEY_PASTE, "%d keys, %x", keys, key);
	CHECK(!strcmp(k.paste.at, "a\033[31m\tb\r\nc"), "%s", k.paste.at);
	CHECK(!ql_keys_waiting(&k), "still waiting");
	CASE("Ctrl-C ends a paste without an end");
	for (const char *c = "\033[200~abc\x03"; *c; c++)
		ql_keys_feed(&k, (unsigned char)*c, &key);
	CHECK(key == ('c' | QL_KEY_CTRL), "%x", key);
	ql_keys_free(&k);
}

/* ---- editing ---- */

/* Types keys into an empty editor; | in `wanted` is the cursor. */
static void check_keys(const char *keys, const char *wanted)
{
	char got[4096];
	const struct ql_bytes *t = &editor.buffer.text;

	ql_editor_clear(&editor);
	feed(keys, strlen(keys));
	snprintf(got, sizeof(got), "%.*s|%s", (int)editor.buffer.cursor, t->at, t->at + editor.buffer.cursor);
	CHECK(!strcmp(got, wanted), "%s: wanted %s, got %s", keys, wanted, got);
}

static void test_moving(void)
{
	begin();
	CASE("moving");
	check_keys("abc" LEFT LEFT, "a|bc");
	check_keys("abc\x01", "|abc");
	check_keys("abc\x01\x05", "abc|");
	check_keys("one two\033b", "one |two");
	check_keys("one two\033b\033b\033f", "one| two");
	check_keys("a\xC3\xA9\xCC\x81z" LEFT LEFT, "a|\xC3\xA9\xCC\x81z"); /* with its combining mark */
	check_keys("ab\033\rcdef\033\rg" UP, "ab\nc|def\ng");
	check_keys("abcd\033\rx\033\refgh" UP UP, "abcd|\nx\nefgh"); /* the column is kept over a shorter line */
	check_keys("ab\033\rcd\033<", "|ab\ncd");
}

static void test_changing(void)
{
	CASE("removing");
	check_keys("abc\x7F", "ab|");
	check_keys("abc" LEFT "\033[3~", "ab|");
	check_keys("abc" LEFT LEFT "\x04", "a|c");
	check_keys("\xE6\x97\xA5\xE6\x9C\xAC\x7F", "\xE6\x97\xA5|");
	CASE("killing and yanking");
	check_keys("one two\x01\x0B\x19\x19", "one twoone two|");
	check_keys("one two\x15.\x19", ".one two|");
	check_keys("a.b c.d\x17", "a.b |");
	check_keys("a.b c.d\033\x7F", "a.b c.|");
	check_keys("one two\033b\033b\033d\033d\x19", "one two|"); /* two kills in a row are one */
	check_keys("one\x15"
		   "two\x15\x19\033y",
		"one|");                                   /* the one before */
	check_keys("ab\033\rcd\x01\x10\x05\x0B", "ab|cd"); /* at its end a line is joined */
	CASE("undo and redo");
	check_keys("one two\x1F", "one|");
	check_keys("one two\x1F\x1F", "|");
	check_keys("one two\x1F\x1F\033_", "one|");
	check_keys("one two\x1F\x1F\033_\033_", "one two|");
	check_keys("abc\x15\x1F", "abc|");
	check_keys("abc\x18\x15", "|"); /* Ctrl-X Ctrl-U is undo, not kill */
	check_keys("do\033\rx\x1F\x1F", "do|");
	CASE("swapping and letters");
	check_keys("ab\x14", "ba|");
	check_keys("abc" LEFT "\x14", "acb|");
	check_keys("one two\033t", "two one|");
	check_keys("one two\x01\033u", "ONE| two");
	check_keys("ONE\x01\033l", "one|");
	check_keys("oNE\x01\033c", "One|");
}

static void test_lines(void)
{
	CASE("lines and indentation");
	check_keys("if x then\033\ry", "if x then\n  y|");
	check_keys("f(function()\033\ry\033\rend", "f(function()\n  y\nend|");
	check_keys("if x then\033\ry\033\relse", "if x then\n  y\nelse|");
	check_keys("if x then\033\ry\033\relseif", "if x then\n  y\nelseif|");
	check_keys("t = {\033\r1,\033\r}", "t = {\n  1,\n}|");
	check_keys("do\033\r\x7F", "do\n|");
	check_keys("do\033\r\t", "do\n    |");
	check_keys("do\033\r\t\033[Z", "do\n  |");
	check_keys("s = [[\033\rx", "s = [[\nx|");
	check_keys("x\\\ry", "x\\\ny|"); /* not whole: Enter goes on */
	CASE("Enter");
	check_keys("ab\033\rcd" UP "\r", "ab\n|\ncd");
	CHECK(editor.wish == QL_WISH_NONE, "an inner line ran");
	check_keys("ab\033\rcd\x01\r", "ab\n|cd");
	CHECK(editor.wish == QL_WISH_RUN, "the last line did not run");
	check_keys("x\x03", "x|");
	CHECK(editor.wish == QL_WISH_DROP, "Ctrl-C");
	check_keys("\x04", "|");
	CHECK(editor.wish == QL_WISH_LEAVE, "Ctrl-D");
	check_keys("x\x18\x05", "x|");
	CHECK(editor.wish == QL_WISH_EDITOR, "Ctrl-X Ctrl-E");
	CASE("pasting");
	check_keys("a\033[200~b\r\n  c\033[31m\x01\r\033[201~", "ab\n  c[31m|");
	check_keys("a\033[200~b\nc\033[201~\x1F", "a|");
}

static void test_completion(void)
{
	CASE("completion");
	check_keys("x b\t", "x beta|");
	check_keys("x zz\t", "x zz|");
	check_keys("x a\t", "x alpha|");
	CHECK(editor.menu.open && editor.menu.matches.n == 2, "%zu matches", editor.menu.matches.n);
	check_keys("x a\t\t\t", "x alphabet|");
	check_keys("x a\t\t\t\r", "x alphabet|");
	CHECK(!editor.menu.open && editor.wish == QL_WISH_NONE, "Enter chooses and runs nothing");
	check_keys("x a\t\t\t\t", "x alpha|");
	check_keys("x a\t\033[Z", "x alphabet|");
	check_keys("x a\t\t\x07", "x alpha|");
	check_keys("x a\tb", "x alphab|");
	CHECK(editor.menu.open && editor.menu.matches.n == 1, "typing narrows the list");
	check_keys("x a\tq", "x alphaq|");
	CHECK(!editor.menu.open, "nothing fits");
	check_keys("x a\t\t\t\x1F", "x alpha|"); /* one change, however many were looked at */
}

static void test_history(void)
{
	size_t n;

	ql_history_add(&history, "one = 1", 7);
	ql_history_add(&history, "for i = 1, 2 do\n  print(i)\nend", 30);
	ql_history_add(&history, "two = 2", 7);
	CASE("earlier inputs");
	check_keys("\x10", "two = 2|");
	check_keys("\x10\x10", "for i = 1, 2 do\n  print(i)\nend|");
	check_keys("\x10\x10\x10", "for i = 1, 2 do\n  p|rint(i)\nend");
	check_keys("\x10\x10\x10\x10\x10", "one = 1|");
	check_keys("\033[5~\033[5~\033[5~", "one = 1|");
	check_keys("\033[5~\033[5~\033[5~\033[5~\033[6~\033[6~\033[6~", "|");
	check_keys("draft\x10", "draft|"); /* nothing begins so */
	check_keys("o\x10", "one = 1|");
	check_keys("o\x10\x0E", "o|");
	check_keys("new" LEFT LEFT LEFT "\x10\x10\x0E\x0E\x0E\x0E\x0E", "new|");
	check_keys("\x10 + 1\x10\x0E", "two = 2 + 1|"); /* what was changed is not lost */
	CASE("suggestions");
	check_keys("on" RIGHT, "one = 1|");
	check_keys("on\x05", "one = 1|");
	check_keys("fo\033f", "for|");
	CASE("search");
	check_keys("\x12pri", "for i = 1, 2 do\n  |print(i)\nend");
	check_keys("\x12= ", "two |= 2");
	check_keys("\x12= \x12\x12", "one |= 1");
	check_keys("\x12= \x12\x12\x13\x13", "two |= 2");
	check_keys("keep\x12one\x07", "keep|");
	check_keys("keep\x12one\033[C", "o|ne = 1");
	check_keys("keep\x12oneq", "|one = 1");
	CHECK(editor.search.failed, "oneq was found");
	check_keys("keep\x12oneq\x7F", "|one = 1");
	CHECK(!editor.search.failed, "one was not found");
	check_keys("\x12ONE", "|");
	check_keys("\x12one\r", "one = 1|");
	CHECK(editor.wish == QL_WISH_RUN, "Enter in a search runs");
	check_keys("x\x12one\033[C\x1F", "x|");
	CASE("what is kept");
	n = history.n;
	CHECK(!ql_history_add(&history, " secret", 7) && !ql_history_add(&history, "", 0) && history.n == n, "%zu",
		history.n);
	CHECK(ql_history_add(&history, "one = 1\n", 8) && history.n == n, "%zu", history.n);
	CHECK(!strcmp(history.entry[n - 1].text.at, "one = 1"), "%s", history.entry[n - 1].text.at);
	for (int i = 0; i < 12000; i++) {
		char text[32];

		ql_history_add(&history, text, (size_t)snprintf(text, sizeof(text), "x = %d", i));
	}
	CHECK(history.n >= QL_HISTORY_ENTRIES && history.n <= QL_HISTORY_ENTRIES + QL_HISTORY_SPARE, "%zu", history.n);
	ql_history_free(&history);
	ql_editor_clear(&editor);
}

static void test_vi(void)
{
	CASE("vi");
	editor.vi.on = true;
	check_keys("abc\033", "ab|c");
	check_keys("abc\0330x", "|bc");
	check_keys("one two three\0330wdw", "one |three");
	check_keys("one two three\0330cwx", "x| two three");
	check_keys("one two three\0332b", "one |two three");
	check_keys("one two\0330d$", "|");
	check_keys("one two\0330dw$p", "twoone| ");
	check_keys("a(b)c\0330l%", "a(b|)c");
	check_keys("a,b,c\0330f,;", "a,b|,c");
	check_keys("a,b,c\0330t,r.", "|.,b,c");
	check_keys("a,b,c\033F,d0", "|,c");
	check_keys("a,b,c\033dF,", "a,b|c");
	check_keys("a,b,c\0330df,", "|b,c");
	check_keys("a,b,c\0330dt,", "|,b,c");
	check_keys("f(a, b)\0330wd%", "|f");
	check_keys("a\033\rb\033\rc\033kdG", "|a");
	check_keys("abc\033u", "|");
	check_keys("abc\0330D", "|");
	check_keys("abc\033Aq\033Ip", "p|abcq");
	check_keys("ab\033\rcd\033kdd", "|cd");
	check_keys("abc\033~", "ab|C");
	check_keys("abc\0330~~", "AB|c");
	check_keys("abc\0330rx", "|xbc");
	check_keys("abc\0330yyp", "abc\n|abc");
	check_keys("abc\033oq", "abc\nq|");
	check_keys("abc\033l"
		   "Oq",
		"q|\nabc");
	check_keys("a b c d\03302dw", "|c d");
	check_keys("abc\033xi", "a|b");
	check_keys("one\033h\r", "one|");
	CHECK(editor.wish == QL_WISH_RUN, "Enter in normal mode runs");
	editor.vi.on = false;
}

/* ---- the file ---- */

static char folder[] = "/tmp/quoll_editorXXXXXX", path[64];

static void write_raw(const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
}

/* Leaves 101 entries in the file. */
static void test_shared_file(void)
{
	struct ql_history a = {0}, b = {0};
	struct stat info;

	CASE("the history's file: made for the user alone, multi-line inputs whole");
	ql_history_open(&a, path);
	CHECK(!*a.error, "%s", a.error);
	ql_history_keep(&a, "x = 'a\\n'\ny = 2", 15);
	CHECK(!stat(path, &info) && (info.st_mode & 0777) == 0600, "mode %o", info.st_mode & 0777);
	ql_history_open(&b, path);
	CHECK(b.n == 1 && !strcmp(b.entry[0].text.at, "x = 'a\\n'\ny = 2"), "%zu", b.n);
	CASE("two sessions append to it");
	for (int i = 0; i < 100; i++) {
		char text[32];

		ql_history_keep(i % 2 ? &a : &b, text, (size_t)snprintf(text, sizeof(text), "z = %d", i));
	}
	ql_history_free(&a);
	ql_history_free(&b);
	ql_history_open(&a, path);
	CHECK(a.n == 101 && !*a.error, "%zu %s", a.n, a.error);
	CHECK(!strcmp(a.entry[100].text.at, "z = 99"), "%s", a.entry[100].text.at);
	ql_history_free(&a);
}

static void test_unusable_file(void)
{
	struct ql_history a = {0};

	CASE("a lock that is never given back costs a second, and the history only");
	{
		int other = open(path, O_RDONLY);

		flock(other, LOCK_EX);
		alarm(30);
		ql_history_open(&a, path);
		CHECK(!a.path && strstr(a.error, "another process"), "%s", a.error);
		alarm(0);
		close(other);
	}
	ql_history_free(&a);
	CASE("broken lines are left out and told, the others stay");
	write_raw("good = 1\nbad \\x escape\n\xFF\xFE\nalso = 2\ncut of");
	ql_history_open(&a, path);
	CHECK(a.n == 2 && strstr(a.error, "3 of 5 lines are broken"), "%zu: %s", a.n, a.error);
	ql_history_keep(&a, "new = 3", 7);
	ql_history_free(&a);
	ql_history_open(&a, path);
	CHECK(a.n == 4 && !strcmp(a.entry[2].text.at, "cut of") && !strcmp(a.entry[3].text.at, "new = 3"), "%zu", a.n);
	ql_history_free(&a);
	CASE("a file that cannot be one is told and never written");
	unlink(path);
	mkdir(path, 0700);
	ql_history_open(&a, path);
	CHECK(*a.error && !a.path, "%s", a.error);
	ql_history_keep(&a, "x = 1", 5);
	CHECK(a.n == 1, "in memory it works");
	ql_history_free(&a);
	rmdir(path);
}

static void test_long_file(void)
{
	struct ql_history a = {0};
	struct stat info;

	CASE("a file that has grown is replaced by what is kept");
	{
		FILE *f = fopen(path, "w");

		for (int i = 0; i < 2 * QL_HISTORY_ENTRIES; i++)
			fprintf(f, "x = %d\n", i % 5000);
		fclose(f);
	}
	ql_history_open(&a, path);
	CHECK(a.n == 5000 && !stat(path, &info) && info.st_size < 60000, "%zu, %lld bytes", a.n,
		(long long)info.st_size);
	ql_history_keep(&a, "last = 1", 8);
	ql_history_free(&a);
	ql_history_open(&a, path);
	CHECK(a.n == 5001 && !strcmp(a.entry[5000].text.at, "last = 1"), "%zu", a.n);
	ql_history_free(&a);
}

static void test_file(void)
{
	if (!mkdtemp(folder))
		return;
	snprintf(path, sizeof(path), "%s/state/quoll/history", folder);
	test_shared_file();
	test_unusable_file();
	test_long_file();
	unlink(path);
	for (char *slash; (slash = strrchr(path, '/')) && slash > path + 8;) {
		*slash = '\0';
		rmdir(path);
	}
}

int main(void)
{
	test_keys();
	test_paste();
	test_moving();
	test_changing();
	test_lines();
	test_completion();
	test_history();
	test_vi();
	test_file();
	ql_editor_free(&editor);
	ql_history_free(&history);
	return check_end();
}
