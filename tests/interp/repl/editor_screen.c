/* SPDX-License-Identifier: MIT
 * The line editor without a terminal: the bytes it writes make the screen that they should, and no input of
 * random bytes breaks it.
 */
#include "interp/repl/screen.h"
#include "tests/interp/repl/editor.h"
#include "tests/interp/repl/screen.h"

#define ROUNDS 8000 /* of 64 random bytes */

static struct ql_screen screen;
static struct ql_screen_frame frame;
static struct ql_painted text, below;
static struct ql_bytes out;
static struct screen shown, wanted;

static void make(int rows, int columns)
{
	struct ql_screen_view view = {.prompt = "In [1]: ",
		.more = "   ...: ",
		.text = &text,
		.below = &below,
		.cursor = editor.buffer.cursor};

	ql_paint_editor(&text, &editor, true);
	ql_paint_below(&below, &editor, columns, rows / 2);
	ql_frame_make(&frame, &view, columns, rows);
}

static void draw(int rows, int columns)
{
	make(rows, columns);
	ql_bytes_set(&out, NULL, 0);
	ql_screen_draw(&screen, &frame, &out);
	screen_feed(&shown, out.at, out.size);
}

/* The same text drawn at once on an empty screen. */
static void draw_afresh(int rows, int columns)
{
	struct ql_screen other = {0};
	int top = screen.shown.top;

	make(rows, columns);
	frame.top = top;
	make(rows, columns);
	ql_bytes_set(&out, NULL, 0);
	ql_screen_draw(&other, &frame, &out);
	screen_begin(&wanted, rows, columns);
	screen_feed(&wanted, out.at, out.size);
	ql_screen_free(&other);
}

static bool equal_screens(void)
{
	for (int row = 0; row < wanted.rows; row++)
		for (int column = 0; column < wanted.columns; column++) {
			const struct cell *a = &shown.cell[row][column], *b = &wanted.cell[row][column];
			bool blank = (a->size == 0 || *a->text == ' ') && (b->size == 0 || *b->text == ' ');

			if (!blank &&
				(a->size != b->size || memcmp(a->text, b->text, a->size) || strcmp(a->style, b->style)))
				return false;
		}
	return shown.row == wanted.row && shown.column == wanted.column && !shown.unknown && !shown.hidden;
}

static unsigned seed = 1;

static unsigned dice(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* Text, wide and combining characters, tabs, all kinds of keys, at random. */
static void random_keys(void)
{
	static const char *const keys[] = {"a", "b ", "for ", "end", "'", "(", ")", "[[", "\xE6\x97\xA5", "\xC3\xA9",
		"e\xCC\x81", "\xF0\x9F\x98\x80", "\033\r", "\033\r", "\033[200~x\ty\n\tz\033[201~", "\x7F", "\x7F", UP,
		DOWN, LEFT, LEFT, RIGHT, "\x01", "\x05", "\x0B", "\x15", "\x19", "\x1F", "\x1F", "\033_", "\x14",
		"\033<", "\033>", "a\t", "\t", "\033[Z", "\x07", "\x12", "= ", "\033u",
		"a long line of text that goes beyond the right margin of the screen ",
		"\033[200~1\n2\n3\n4\n5\n6\n7\n8\n9\n\033[201~"};
	const char *key = keys[dice(sizeof(keys) / sizeof(keys[0]))];

	feed(key, strlen(key));
}

static void test_screen(void)
{
	static const int sizes[][2] = {{24, 80}, {10, 40}, {5, 20}, {3, 12}, {24, 9}};

	begin();
	ql_history_add(&history, "for i = 1, 2 do\n  print(i)\nend", 30);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		int rows = sizes[i][0], columns = sizes[i][1], step, bad = 0;

		CASE("what is drawn step by step is what is drawn at once, %d x %d", rows, columns);
		ql_editor_clear(&editor);
		ql_screen_forget(&screen);
		frame.top = 0;
		screen_begin(&shown, rows, columns);
		for (step = 0; step < 3000 && bad < 3; step++) {
			random_keys();
			if (dice(20) == 0) {
				ql_bytes_set(&out, NULL, 0);
				ql_screen_restart(&screen, &out);
				screen_feed(&shown, out.at, out.size);
			}
			draw(rows, columns);
			if (step % 7)
				continue;
			draw_afresh(rows, columns);
			if (!equal_screens()) {
				char a[20000], b[20000];

				screen_text(&shown, a);
				screen_text(&wanted, b);
				bad++;
				CHECK(false, "step %d: <<%s>> (%d,%d) instead of <<%s>> (%d,%d), %d unknown", step, a,
					shown.row, shown.column, b, wanted.row, wanted.column, shown.unknown);
			}
			if (editor.buffer.text.size > 3000)
				ql_editor_clear(&editor);
		}
		CHECK(step == 3000, "stopped at %d", step);
	}
	ql_history_free(&history);
}

/* Random bytes: no crash, no endless loop, no text that is not UTF-8. */
static void test_fuzz(void)
{
	CASE("random bytes");
	ql_editor_clear(&editor);
	for (int round = 0; round < ROUNDS; round++) {
		char bytes[64];

		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (char)(dice(3) ? dice(256) : (unsigned)"\033[;~O0123u"[dice(10)]);
		feed(bytes, sizeof(bytes));
		editor.vi.on = dice(50) ? editor.vi.on : !editor.vi.on;
		if (editor.buffer.text.size > 500 || dice(100) == 0)
			ql_editor_clear(&editor);
		CHECK(editor.buffer.cursor <= editor.buffer.text.size, "cursor %zu of %zu", editor.buffer.cursor,
			editor.buffer.text.size);
		for (size_t i = 0, n; i < editor.buffer.text.size; i += n)
			if (ql_bytes_char(editor.buffer.text.at + i, editor.buffer.text.size - i, &n) == 0xFFFD &&
				n == 1) {
				CHECK(false, "half a character at %zu", i);
				break;
			}
	}
}

int main(void)
{
	test_screen();
	test_fuzz();
	ql_editor_free(&editor);
	ql_screen_free(&screen);
	ql_frame_free(&frame);
	ql_painted_free(&text);
	ql_painted_free(&below);
	ql_bytes_free(&out);
	ql_history_free(&history);
	return check_end();
}
