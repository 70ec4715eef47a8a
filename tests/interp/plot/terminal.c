/* SPDX-License-Identifier: MIT
 * What goes to a terminal: which protocol is chosen on a pseudo-terminal that answers or does not, that the
 * encoded pictures decode to the PNG they were made from, and that plain terminals get no escape byte.
 */
#include <poll.h>
#include <png.h>
#include <pty.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/plot/kind.h"
#include "interp/plot/terminal.h"
#include "tests/check.h"

static struct ql_ctx *ctx;

static struct ql_figure *figure(void)
{
	struct ql_figure *f = NULL;
	struct ql_series *s;

	if (ql_figure_new(ctx, ql_plot_kinds[0], &f) || ql_figure_add(f, 50, true, &s))
		exit(1);
	for (int i = 0; i < 50; i++) {
		s->x[i] = i;
		s->y[i] = (i * 7) % 20;
	}
	if (ql_figure_finish(f))
		exit(1);
	return f;
}

/* The variables that matter; those not named are unset. */
static void set_environment(const char *const *pairs)
{
	static const char *const names[] = {"QUOLL_PLOT", "NO_COLOR", "TERM", "TERM_PROGRAM", "LC_TERMINAL",
		"KITTY_WINDOW_ID", "TMUX", "STY", "COLORTERM"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("TERM", "xterm-256color", 1);
	for (; pairs && *pairs; pairs += 2)
		setenv(pairs[0], pairs[1], 1);
}

static _Noreturn void child(void)
{
	struct ql_figure *f = figure();
	struct ql_encoded b = {0};
	size_t done = 0;
	enum ql_status status = ql_terminal_show(f, &b);

	for (ssize_t n; done < b.n && (n = write(1, b.at + done, b.n - done)) > 0;)
		done += (size_t)n;
	_exit(status != QL_OK);
}

static char output[4 << 20];

/* What the child writes to a terminal of 90 x 30 characters (`pixels`: and 900 x 600 pixels) that replies to
 * a request for attributes with `answer` (NULL: it stays silent). Returns its length. */
static size_t show(const char *const *environment, const char *answer, bool pixels)
{
	struct winsize size = {30, 90, pixels ? 900 : 0, pixels ? 600 : 0};
	size_t n = 0;
	int master, status;
	bool answered = false;
	pid_t pid = forkpty(&master, NULL, NULL, &size);

	if (pid < 0)
		exit(1);
	if (!pid) {
		set_environment(environment);
		child();
	}
	for (ssize_t more; n < sizeof(output) - 1 && (more = read(master, output + n, sizeof(output) - 1 - n)) > 0;) {
		n += (size_t)more;
		output[n] = '\0';
		if (answer && !answered && strstr(output, "\x1b[c")) {
			answered = true;
			if (write(master, answer, strlen(answer)) < 0)
				break;
		}
	}
	output[n] = '\0';
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %d", status);
	close(master);
	return n;
}

static bool has(const char *text)
{
	return strstr(output, text) != NULL;
}

static void test_choice(void)
{
	const char *const kitty[] = {"KITTY_WINDOW_ID", "1", NULL}, *const term[] = {"TERM", "xterm-kitty", NULL},
			  *const ghostty[] = {"TERM_PROGRAM", "ghostty", NULL},
			  *const iterm[] = {"TERM_PROGRAM", "iTerm.app", NULL},
			  *const remote[] = {"LC_TERMINAL", "iTerm2", NULL},
			  *const wezterm[] = {"TERM_PROGRAM", "WezTerm", NULL};

	CASE("terminal: kitty is known by its variables");
	for (int i = 0; i < 3; i++) {
		show(i == 0 ? kitty : i == 1 ? term : ghostty, NULL, true);
		CHECK(has("\x1b_Ga=T,f=100,q=2,m=1;iVBORw0KGgo"), "variant %d: %.40s", i, output);
	}
	CASE("terminal: iTerm2 and WezTerm are, too");
	for (int i = 0; i < 3; i++) {
		show(i == 0 ? iterm : i == 1 ? remote : wezterm, NULL, true);
		CHECK(has("\x1b]1337;File=inline=1;size=") && has(":iVBORw0KGgo"), "variant %d: %.40s", i, output);
	}
}

static void test_request(void)
{
	const char *const inside[] = {"TMUX", "/tmp/tmux", "KITTY_WINDOW_ID", "1", NULL};

	CASE("terminal: sixel is found by asking");
	show(NULL, "\x1b[?62;4;6c", true);
	CHECK(has("\x1b[c") && has("\x1bP0;0;0q\"1;1;"), "%.60s", output);
	show(NULL, "\x1b[?62;22;4c", true);
	CHECK(has("\x1bP0;0;0q"), "%.60s", output);
	CASE("terminal: others and silent ones get text");
	show(NULL, "\x1b[?62;22;14;44c", true);
	CHECK(!has("\x1bP") && has("\xE2\x94\x94"), "%.60s", output);
	show(NULL, NULL, true);
	CHECK(!has("\x1bP") && has("\xE2\x94\x94"), "%.60s", output);
	CASE("terminal: inside tmux the outer terminal's variables do not count");
	show(inside, "\x1b[?1;2c", true);
	CHECK(!has("\x1b_G") && has("\xE2\x94\x94"), "%.60s", output);
}

static void test_plain(void)
{
	const char *const environments[][5] = {{"NO_COLOR", "1", NULL}, {"TERM", "dumb", NULL}, {"TERM", "", NULL},
		{"NO_COLOR", "1", "KITTY_WINDOW_ID", "1", NULL}};
	const char *const none[] = {"QUOLL_PLOT", "none", NULL};

	CASE("terminal: no escape byte where none is wanted");
	for (size_t i = 0; i < 4; i++) {
		size_t n = show(environments[i], NULL, false);

		CHECK(n > 500 && !strchr(output, 0x1b), "variant %zu, %zu bytes", i, n);
	}
	CASE("terminal: nothing when nothing is wanted");
	CHECK(show(none, NULL, false) == 0, "%.40s", output);
}

static void test_override(void)
{
	const char *const text[] = {"QUOLL_PLOT", "text", "KITTY_WINDOW_ID", "1", NULL};
	const char *const sixel[] = {"QUOLL_PLOT", "sixel", NULL};
	const char *const wrapped[] = {"QUOLL_PLOT", "kitty", "TMUX", "x", NULL};
	int rows = 0, columns = 0, width = 0;

	CASE("terminal: the override decides");
	show(text, NULL, false);
	CHECK(!has("\x1b_G") && has("\xE2\x94\x94") && has("\x1b[38;5;"), "%.60s", output);
	show(sixel, NULL, true);
	CHECK(has("\x1bP0;0;0q"), "%.60s", output);
	show(wrapped, NULL, true);
	CHECK(has("\x1bPtmux;\x1b\x1b_Ga=T") && has("\x1b\x1b\\\x1b\\"), "%.60s", output);
	CASE("terminal: text fills the width and leaves two lines");
	set_environment(NULL);
	show(text, NULL, false);
	for (const char *p = output; *p; p++) {
		rows += *p == '\n';
		width = *p == '\n' ? 0 : width + ((*p & 0xC0) != 0x80 && *p != '\r');
		if (*p == 0x1b)
			while (*p && *p != 'm')
				p++, width -= *p == 'm';
		columns = width > columns ? width : columns;
	}
	CHECK(rows == 28 && columns <= 90 && columns >= 88, "%d rows, %d columns", rows, columns);
}

static void test_pipe(void)
{
	struct ql_figure *f = figure();
	const char *const kitty[] = {"QUOLL_PLOT", "kitty", "KITTY_WINDOW_ID", "1", NULL};
	struct ql_encoded b = {0};
	int saved = dup(1), pipes[2];

	CASE("terminal: a pipe gets plain text whatever the environment says");
	if (pipe(pipes))
		exit(1);
	set_environment(kitty);
	fflush(stdout);
	dup2(pipes[1], 1);
	CHECK(ql_terminal_show(f, &b) == QL_OK, "%s", ctx->err);
	dup2(saved, 1);
	CHECK(b.n > 500 && !memchr(b.at, 0x1b, b.n), "%zu bytes", b.n);
	close(saved);
	close(pipes[0]);
	close(pipes[1]);
	ql_free(ctx, b.at);
	ql_figure_free(f);
}

/* ---- decoding ---- */

static uint8_t *pixels_of(const struct ql_encoded *png, int *width, int *height)
{
	png_image image = {.version = PNG_IMAGE_VERSION};
	uint8_t *pixels;

	if (!png_image_begin_read_from_memory(&image, png->at, png->n))
		return NULL;
	image.format = PNG_FORMAT_RGB;
	*width = (int)image.width;
	*height = (int)image.height;
	pixels = malloc(PNG_IMAGE_SIZE(image));
	if (!pixels || !png_image_finish_read(&image, NULL, pixels, 0, NULL))
		exit(1);
	return pixels;
}

/* A reader of what the encoder writes: raster attributes, colours by percent, runs, $ and -. */
static uint8_t *decode_sixel(const char *p, int *width, int *height)
{
	uint8_t colour[256][3] = {{0}}, *out = NULL;
	int x = 0, y = 0, now = 0, run, value[5], n;

	p = strstr(p, "q\"1;1;");
	if (!p || sscanf(p, "q\"1;1;%d;%d%n", width, height, &n) != 2)
		return NULL;
	out = calloc((size_t)*width * (size_t)*height, 3);
	for (p += n; out && *p && *p != 0x1b; p++) {
		run = 1;
		if (*p == '!')
			p += 1 + (sscanf(p, "!%d%n", &run, &n), n - 1);
		if (*p == '#' && sscanf(p, "#%d;%d;%d;%d;%d%n", &value[0], &value[1], &value[2], &value[3], &value[4],
					 &n) == 5) {
			for (int i = 0; i < 3; i++)
				colour[value[0]][i] = (uint8_t)((value[2 + i] * 255 + 50) / 100);
			p += n - 1;
		} else if (*p == '#') {
			sscanf(p, "#%d%n", &now, &n);
			p += n - 1;
		} else if (*p == '$') {
			x = 0;
		} else if (*p == '-') {
			x = 0;
			y += 6;
		} else if (*p >= 63) {
			for (; run-- > 0; x++)
				for (int i = 0; i < 6; i++)
					if ((*p - 63) >> i & 1 && x < *width && y + i < *height)
						memcpy(out + ((size_t)(y + i) * (size_t)*width + (size_t)x) * 3,
							colour[now], 3);
		}
	}
	return out;
}

static void test_sixel(void)
{
	struct ql_figure *f = figure();
	struct ql_encoded png = {0}, sixel = {0};
	int width = 0, height = 0, w = 0, h = 0, worst = 0;
	uint8_t *want, *got;
	double sum = 0;

	CASE("terminal: sixel shows the pixels of the PNG");
	CHECK(!ql_figure_picture(f, QL_PICTURE_PNG, 601, 403, &png), "%s", ctx->err);
	CHECK(!ql_terminal_encode(f, QL_TERMINAL_SIXEL, 601, 403, &sixel), "%s", ctx->err);
	want = pixels_of(&png, &width, &height);
	got = decode_sixel(sixel.at, &w, &h);
	CHECK(want && got && w == width && h == height, "%d x %d", w, h);
	for (int i = 0; want && got && i < width * height * 3; i++) {
		int d = abs(want[i] - got[i]);

		worst = d > worst ? d : worst;
		sum += d;
	}
	/* 32 colours for a plot: edges are blends, areas are exact to 5 bits */
	CHECK(sum / (width * height * 3) < 1 && worst < 100, "mean %g, worst %d", sum / (width * height * 3), worst);
	CHECK(sixel.n < 100000, "%zu bytes", sixel.n);
	free(want);
	free(got);
	ql_free(ctx, png.at);
	ql_free(ctx, sixel.at);
	ql_figure_free(f);
}

static size_t from_base64(const char *text, size_t n, char *out)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t bytes = 0;
	uint32_t bits = 0;
	int have = 0;

	for (size_t i = 0; i < n && text[i] != '='; i++) {
		bits = bits << 6 | (uint32_t)(strchr(letters, text[i]) - letters);
		have += 6;
		if (have >= 8)
			out[bytes++] = (char)(bits >> (have -= 8));
	}
	return bytes;
}

static void test_base64(void)
{
	struct ql_figure *f = figure();
	struct ql_encoded png = {0}, kitty = {0}, iterm = {0};
	char *joined, *bytes;
	size_t n = 0, longest = 0, size;

	CASE("terminal: kitty and iTerm2 carry the PNG byte for byte");
	set_environment(NULL);
	CHECK(!ql_figure_picture(f, QL_PICTURE_PNG, 0, 0, &png), "%s", ctx->err);
	CHECK(!ql_terminal_encode(f, QL_TERMINAL_KITTY, 0, 0, &kitty), "%s", ctx->err);
	CHECK(!ql_terminal_encode(f, QL_TERMINAL_ITERM, 0, 0, &iterm), "%s", ctx->err);
	joined = malloc(kitty.n + iterm.n + 1);
	bytes = malloc(kitty.n + iterm.n + 1);
	if (!joined || !bytes)
		exit(1);
	for (const char *p = kitty.at; p < kitty.at + kitty.n - 1;) {
		const char *from = memchr(p, ';', (size_t)(kitty.at + kitty.n - p)),
			   *to = from ? strchr(from, 0x1b) : NULL;

		if (!from || !to)
			break;
		size = (size_t)(to - from - 1);
		longest = size > longest ? size : longest;
		memcpy(joined + n, from + 1, size);
		n += size;
		p = to + 2;
	}
	n = from_base64(joined, n, bytes);
	CHECK(longest == 4096, "chunks of %zu", longest);
	CHECK(n == png.n && !memcmp(bytes, png.at, n), "%zu bytes of %zu", n, png.n);
	n = (size_t)((char *)memchr(iterm.at, ':', iterm.n) - iterm.at) + 1;
	n = from_base64(iterm.at + n, (size_t)((char *)memchr(iterm.at, '\a', iterm.n) - iterm.at) - n, bytes);
	CHECK(n == png.n && !memcmp(bytes, png.at, n), "%zu bytes of %zu", n, png.n);
	free(joined);
	free(bytes);
	ql_free(ctx, png.at);
	ql_free(ctx, kitty.at);
	ql_free(ctx, iterm.at);
	ql_figure_free(f);
}

int main(void)
{
	char facts[256];

	ctx = ql_ctx_new(1);
	if (!ctx)
		return 1;
	test_plain();
	test_pipe();
	if (ql_plplot_describe(facts, sizeof(facts))) {
		test_choice();
		test_request();
		test_override();
		test_sixel();
		test_base64();
	} else {
		SKIP("pictures in terminals", facts);
	}
	CASE("terminal: all memory was given back");
	CHECK(ctx->memory.now == 0, "%zu bytes", ctx->memory.now);
	ql_ctx_free(ctx);
	return check_end();
}
