/* SPDX-License-Identifier: MIT
 * Which pictures a terminal takes, and their sequences: kitty's graphics protocol (PNG in base64, 4096 bytes
 * a chunk), iTerm2's inline images (OSC 1337), sixel; text for all others. Nothing but plain text ever goes
 * to a stdout that is no terminal.
 */
#include "interp/plot/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "interp/plot/kind.h"
#include "interp/plot/sixel.h"

#define CHUNK 4096   /* base64 letters of one kitty sequence */
#define PATIENCE 100 /* milliseconds a terminal has to answer */
#define COLOURS_PLOT 32
#define COLOURS_HEAT 256

/* ---- detection ---- */

static bool is_set(const char *name)
{
	const char *value = getenv(name);

	return value && *value;
}

static bool says(const char *name, const char *word)
{
	const char *value = getenv(name);

	return value && strstr(value, word);
}

/* Neither colours nor pictures are wanted. */
static bool plain(void)
{
	return is_set("NO_COLOR") || says("TERM", "dumb") || !is_set("TERM");
}

enum ql_terminal ql_terminal_by_name(const char *name)
{
	static const char *const names[] = {"none", "text", "kitty", "iterm", "sixel"};

	for (int i = 0; i < 5; i++)
		if (!strcmp(name, names[i]))
			return (enum ql_terminal)i;
	return QL_TERMINAL_TEXT;
}

/* Reads the answer to a request for device attributes, ESC [ ? 62 ; 4 ; … c; true when attribute 4 (sixel) is
 * in. */
static bool answer_has_sixel(int tty)
{
	char text[128];
	size_t n = 0;
	struct pollfd ready = {.fd = tty, .events = POLLIN};

	while (n < sizeof(text) - 1 && poll(&ready, 1, PATIENCE) > 0 && read(tty, text + n, 1) == 1)
		if (text[n++] == 'c')
			break;
	text[n] = '\0';
	return n && text[n - 1] == 'c' && (strstr(text, ";4;") || strstr(text, ";4c"));
}

static bool ask_for_sixel(void)
{
	int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios before, raw;
	struct pollfd typed = {.fd = tty, .events = POLLIN};
	bool sixel = false;

	if (tty < 0)
		return false;
	/* a job in the background must not touch the terminal, and letters typed ahead must not be eaten */
	if (tcgetpgrp(tty) == getpgrp() && poll(&typed, 1, 0) == 0 && !tcgetattr(tty, &before)) {
		raw = before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		tcsetattr(tty, TCSANOW, &raw);
		if (write(tty, "\x1b[c", 3) == 3)
			sixel = answer_has_sixel(tty);
		tcsetattr(tty, TCSANOW, &before);
	}
	close(tty);
	return sixel;
}

static bool takes_sixel(void)
{
	static int known = -1;

	if (known < 0)
		known = ask_for_sixel();
	return known;
}

enum ql_terminal ql_terminal_detect(void)
{
	const char *wanted = getenv("QUOLL_PLOT");
	bool inside = is_set("TMUX") || is_set("STY"); /* the variables of the terminal outside do not count */

	if (wanted && !strcmp(wanted, "none"))
		return QL_TERMINAL_NONE;
	if (!isatty(STDOUT_FILENO))
		return QL_TERMINAL_TEXT;
	if (wanted && *wanted)
		return ql_terminal_by_name(wanted);
	if (plain())
		return QL_TERMINAL_TEXT;
	if (!inside && (is_set("KITTY_WINDOW_ID") || says("TERM", "kitty") || says("TERM", "ghostty") ||
			       says("TERM_PROGRAM", "ghostty")))
		return QL_TERMINAL_KITTY;
	if (!inside &&
		(says("TERM_PROGRAM", "iTerm") || says("LC_TERMINAL", "iTerm") || says("TERM_PROGRAM", "WezTerm")))
		return QL_TERMINAL_ITERM;
	return takes_sixel() ? QL_TERMINAL_SIXEL : QL_TERMINAL_TEXT;
}

static enum ql_colour colours(void)
{
	if (!isatty(STDOUT_FILENO) || plain())
		return QL_COLOUR_NONE;
	if (says("COLORTERM", "truecolor") || says("COLORTERM", "24bit") || says("TERM", "direct"))
		return QL_COLOUR_24BIT;
	return says("TERM", "vt1") || says("TERM", "vt2") ? QL_COLOUR_NONE : QL_COLOUR_256;
}

/* ---- sequences ---- */

struct sequence {
	char *at;
	size_t n;
	bool tmux;
};

static void put(struct sequence *s, const char *bytes, size_t n)
{
	memcpy(s->at + s->n, bytes, n);
	s->n += n;
}

/* tmux hands on what is wrapped so, with each escape doubled (set -g allow-passthrough on). */
static void open_sequence(struct sequence *s, const char *text)
{
	if (s->tmux)
		put(s, "\x1bPtmux;\x1b", 8);
	put(s, text, strlen(text));
}

static void close_sequence(struct sequence *s, const char *text)
{
	if (s->tmux && *text == '\x1b')
		put(s, "\x1b", 1);
	put(s, text, strlen(text));
	if (s->tmux)
		put(s, "\x1b\\", 2);
}

static size_t base64(const char *bytes, size_t n, char *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *to = out;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)(unsigned char)bytes[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)(unsigned char)bytes[i + 1] << 8;
		if (i + 2 < n)
			v |= (uint32_t)(unsigned char)bytes[i + 2];
		*to++ = letters[v >> 18];
		*to++ = letters[v >> 12 & 63];
		*to++ = i + 1 < n ? letters[v >> 6 & 63] : '=';
		*to++ = i + 2 < n ? letters[v & 63] : '=';
	}
	return (size_t)(to - out);
}

static void put_kitty(struct sequence *s, const char *text, size_t n)
{
	char head[64];

	for (size_t at = 0; at < n; at += CHUNK) {
		bool more = at + CHUNK < n;

		/* a=T: show now; f=100: PNG; q=2: no answer, which the prompt would take for input */
		snprintf(head, sizeof(head), at ? "\x1b_Gm=%d;" : "\x1b_Ga=T,f=100,q=2,m=%d;", more);
		open_sequence(s, head);
		put(s, text + at, more ? CHUNK : n - at);
		close_sequence(s, "\x1b\\");
	}
}

static void put_iterm(struct sequence *s, const char *text, size_t n, size_t size)
{
	char head[80];

	snprintf(head, sizeof(head), "\x1b]1337;File=inline=1;size=%zu:", size);
	open_sequence(s, head);
	put(s, text, n);
	close_sequence(s, "\a");
}

static enum ql_status wrap(
	struct ql_ctx *ctx, const struct ql_encoded *png, enum ql_terminal terminal, struct ql_encoded *out)
{
	size_t letters = (png->n + 2) / 3 * 4;
	struct sequence s = {.tmux = is_set("TMUX")};
	char *text = ql_alloc(ctx, letters);

	s.at = ql_alloc(ctx,
		letters + (letters / CHUNK + 1) * 64 + 128); /* size: below twice the letters, which are allocated */
	if (!text || !s.at) {
		ql_free(ctx, text);
		ql_free(ctx, s.at);
		return QL_ERR_MEMORY;
	}
	letters = base64(png->at, png->n, text);
	if (terminal == QL_TERMINAL_KITTY)
		put_kitty(&s, text, letters);
	else
		put_iterm(&s, text, letters, png->n);
	put(&s, "\n", 1);
	ql_free(ctx, text);
	*out = (struct ql_encoded){s.at, s.n};
	return QL_OK;
}

enum ql_status ql_terminal_encode(
	const struct ql_figure *f, enum ql_terminal terminal, int width, int height, struct ql_encoded *out)
{
	struct ql_encoded png = {0};
	enum ql_status status = ql_figure_picture(f, QL_PICTURE_PNG, width, height, &png);

	if (!status && terminal == QL_TERMINAL_SIXEL)
		status = ql_sixel_encode(f->ctx, &png,
			f->kind->form == QL_FORM_MATRIX || f->kind->form == QL_FORM_IMAGES ? COLOURS_HEAT
											   : COLOURS_PLOT,
			out);
	else if (!status)
		status = wrap(f->ctx, &png, terminal, out);
	ql_free(f->ctx, png.at);
	return status;
}

/* ---- showing ---- */

static int limit(int value, int lo, int hi)
{
	return value < lo ? lo : value > hi ? hi : value;
}

/* Largest size of the figure's own proportions that leaves two lines of the window. */
static void picture_size(const struct ql_figure *f, const struct winsize *window, int *width, int *height)
{
	int64_t w = ql_figure_int(f, "width", 960), h = ql_figure_int(f, "height", 600);
	int64_t most_w = window->ws_xpixel > 200 ? window->ws_xpixel : 960, most_h = 640;

	if (window->ws_ypixel > 200 && window->ws_row > 4)
		most_h = (int64_t)window->ws_ypixel * (window->ws_row - 2) / window->ws_row;
	if (w > most_w) {
		h = h * most_w / w;
		w = most_w;
	}
	if (h > most_h) {
		w = w * most_h / h;
		h = most_h;
	}
	*width = limit((int)w, 100, 10000);
	*height = limit((int)h, 100, 10000);
}

enum ql_status ql_terminal_show(const struct ql_figure *f, struct ql_encoded *out)
{
	enum ql_terminal terminal = ql_terminal_detect();
	struct winsize window = {0};
	enum ql_status status;
	int width, height, columns = QL_TEXT_COLUMNS, rows = QL_TEXT_ROWS;

	if (terminal == QL_TERMINAL_NONE)
		return QL_OK;
	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &window))
		window = (struct winsize){0};
	if (terminal != QL_TERMINAL_TEXT) {
		picture_size(f, &window, &width, &height);
		/* without plplot there is still the text */
		status = ql_terminal_encode(f, terminal, width, height, out);
		if (status != QL_ERR_UNSUPPORTED)
			return status;
	}
	if (window.ws_col && window.ws_row) {
		columns = limit(window.ws_col, 20, 120);
		rows = limit(window.ws_row - 2, 6, limit(columns * 2 / 5, 6, 40));
	}
	return ql_figure_text(f, columns, rows, colours(), out);
}
