/* SPDX-License-Identifier: MIT
 * One input: keys are read and done as long as there are any, then the frame is drawn with a single write.
 * Bytes are read one by one, so what was typed after the end of an input is still there for io.read or the
 * next one.
 */
#include "interp/repl/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interp/host/interrupt.h"
#include "interp/repl/ask.h"
#include "interp/repl/tty.h"
#include "interp/host/settings.h"

/* ---- the host ---- */

static bool is_whole(void *data, const char *text, size_t n)
{
	struct ql_prompt *p = data;

	return p->any || ql_ask_state(p->state->L, text, n) != QL_CELL_INCOMPLETE;
}

static bool complete(void *data, const char *text, size_t n, size_t at, struct ql_matches *m)
{
	struct ql_prompt *p = data;

	return ql_ask_complete(p->state->L, text, n, at, m);
}

/* ---- settings ---- */

/* "set editing-mode vi" in $INPUTRC or ~/.inputrc */
static bool inputrc_wants_vi(void)
{
	const char *given = getenv("INPUTRC"), *home = getenv("HOME");
	char path[4096], line[512], mode[32];
	bool vi = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", given ? given : home ? home : "", given ? "" : "/.inputrc");
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " set editing-mode %31s", mode) == 1)
			vi = !strcmp(mode, "vi");
	fclose(f);
	return vi;
}

static void read_settings(struct ql_prompt *p)
{
	if (!ql_setting_is(QL_SETTING_editing_mode, "auto"))
		p->editor.vi.on = ql_setting_is(QL_SETTING_editing_mode, "vi");
	p->editor.plain = !ql_style_wanted(stdout);
}

/* ---- drawing ---- */

static void flush(struct ql_prompt *p)
{
	if (p->out.size)
		ql_tty_write(p->out.at, p->out.size);
	ql_bytes_set(&p->out, NULL, 0);
}

/* `height` 0: all rows */
static void make_frame(struct ql_prompt *p, bool editing, int height)
{
	const struct ql_editor *e = &p->editor;
	struct ql_screen_view view = {.prompt = p->first,
		.more = p->more,
		.text = &p->text,
		.below = &p->below,
		.cursor = editing ? e->buffer.cursor : e->buffer.text.size,
		.plain = e->plain};

	ql_paint_editor(&p->text, e, editing);
	ql_paint_below(&p->below, e, p->columns, editing ? p->rows / 2 : 0);
	ql_frame_make(&p->frame, &view, p->columns, height);
}

static void draw(struct ql_prompt *p)
{
	make_frame(p, true, p->rows);
	ql_screen_draw(&p->screen, &p->frame, &p->out);
	flush(p);
}

/* The last look of an input, as it stays on the screen: all of it, also what was above the window. */
static void draw_last(struct ql_prompt *p)
{
	make_frame(p, false, 0);
	if (p->frame.rows > p->rows)
		ql_screen_restart(&p->screen, &p->out);
	ql_screen_draw(&p->screen, &p->frame, &p->out);
	ql_screen_leave(&p->screen, &p->out);
	flush(p);
}

/* Output that did not end its line gets a mark and the prompt a line of its own: the blanks reach the next
 * line when the cursor was not at the beginning of one, and are erased again otherwise. */
static void begin_line(struct ql_prompt *p)
{
	ql_bytes_text(&p->out, p->editor.plain ? "~" : "\033[7m~\033[0m");
	for (int i = 1; i < p->columns; i++)
		ql_bytes_text(&p->out, " ");
	ql_bytes_text(&p->out, "\r\033[K");
}

/* xterm cuts rows at the right instead of breaking them. */
static void resize(struct ql_prompt *p)
{
	int columns = p->columns;

	ql_tty_size(&p->columns, &p->rows);
	if (columns != p->columns)
		ql_screen_resize(&p->screen, p->columns, !getenv("XTERM_VERSION"), &p->out);
	else
		ql_screen_erase(&p->screen, &p->out);
}

/* ---- wishes ---- */

static void restart(struct ql_prompt *p)
{
	ql_tty_raw();
	ql_tty_size(&p->columns, &p->rows);
	ql_screen_forget(&p->screen);
}

static void suspend(struct ql_prompt *p)
{
	draw_last(p);
	ql_tty_cooked();
	ql_tty_suspend();
	restart(p);
}

/* The user's editor in the foreground; false: it did not end well. */
static bool run_editor(const char *path)
{
	static const char command[] = "${VISUAL:-${EDITOR:-vi}} \"$1\"";
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command, "sh", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool write_file(const char *path, const struct ql_bytes *text)
{
	FILE *f = fopen(path, "we");
	bool good;

	if (!f)
		return false;
	good = fwrite(text->at, 1, text->size, f) == text->size && (text->size == 0 || fputc('\n', f) != EOF);
	return !fclose(f) && good;
}

static void read_file(struct ql_prompt *p, const char *path)
{
	struct ql_bytes all = {0}, clean = {0};
	char block[4096];
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return;
	while ((n = fread(block, 1, sizeof(block), f)) > 0)
		ql_bytes_add(&all, block, n);
	fclose(f);
	if (all.size && ql_editor_clean(&clean, all.at, all.size)) {
		while (clean.size && clean.at[clean.size - 1] == '\n')
			clean.size--;
		ql_editor_set(&p->editor, clean.at, clean.size);
	}
	ql_bytes_free(&all);
	ql_bytes_free(&clean);
}

/* The text is only replaced when the editor ends with status 0. */
static void edit_outside(struct ql_prompt *p)
{
	const char *folder = getenv("TMPDIR");
	char path[4096];
	int fd;

	draw_last(p);
	ql_tty_cooked();
	snprintf(path, sizeof(path), "%s/quollXXXXXX.lua", folder && *folder ? folder : "/tmp");
	fd = mkstemps(path, 4);
	if (fd >= 0 && !close(fd) && write_file(path, &p->editor.buffer.text)) {
		if (run_editor(path))
			read_file(p, path);
		else
			fputs("the editor failed; the input is unchanged\n", stderr);
	} else {
		perror(path);
	}
	if (fd >= 0)
		unlink(path);
	ql_interrupt_clear(p->state); /* a Ctrl-C was the editor's */
	restart(p);
}

/* False: the input is over. */
static bool fulfil(struct ql_prompt *p, enum ql_prompt_result *result)
{
	switch (p->editor.wish) {
	case QL_WISH_NONE: return true;
	case QL_WISH_CLEAR:
		ql_bytes_text(&p->out, "\033[H\033[2J");
		ql_screen_forget(&p->screen);
		return true;
	case QL_WISH_SUSPEND: suspend(p); return true;
	case QL_WISH_EDITOR: edit_outside(p); return true;
	case QL_WISH_RUN: *result = QL_PROMPT_READ; return false;
	case QL_WISH_DROP: *result = QL_PROMPT_DROPPED; return false;
	case QL_WISH_LEAVE: *result = QL_PROMPT_END; return false;
	}
	return true;
}

/* ---- keys ---- */

static bool take_byte(struct ql_prompt *p, unsigned char byte, enum ql_prompt_result *result)
{
	uint32_t key;

	if (!ql_keys_feed(&p->editor.keys, byte, &key))
		return true;
	ql_editor_key(&p->editor, key);
	return fulfil(p, result);
}

static bool take_timeout(struct ql_prompt *p, enum ql_prompt_result *result)
{
	uint32_t key;

	if (!ql_keys_flush(&p->editor.keys, &key))
		return true;
	ql_editor_key(&p->editor, key);
	return fulfil(p, result);
}

static bool take_event(struct ql_prompt *p, enum ql_prompt_result *result)
{
	int wait = ql_keys_waiting(&p->editor.keys) ? QL_KEYS_WAIT : -1;
	unsigned char byte;

	switch (ql_tty_read(wait, &p->state->ctx->interrupted, &byte)) {
	case QL_TTY_BYTE: return take_byte(p, byte, result);
	case QL_TTY_TIMEOUT: return take_timeout(p, result);
	case QL_TTY_RESIZED: resize(p); return true;
	case QL_TTY_RESUMED:
		restart(p);
		begin_line(p);
		return true;
	case QL_TTY_INTERRUPTED: *result = QL_PROMPT_DROPPED; return false;
	case QL_TTY_END: break;
	}
	*result = QL_PROMPT_END;
	return false;
}

/* Once for each thing that is wrong. */
static void tell_history(struct ql_prompt *p)
{
	if (*p->history.error)
		fprintf(stderr, "%s\n", p->history.error);
	p->history.error[0] = '\0';
}

enum ql_prompt_result ql_prompt_read(struct ql_prompt *p, const char *first, const char *more, bool any)
{
	enum ql_prompt_result result = QL_PROMPT_END;

	fflush(stdout);
	if (!ql_tty_raw())
		return QL_PROMPT_END;
	ql_tty_size(&p->columns, &p->rows);
	p->first = first;
	p->more = more;
	p->any = any;
	ql_editor_clear(&p->editor);
	read_settings(p);
	begin_line(p);
	do
		if (!ql_tty_ready() || p->editor.wish != QL_WISH_NONE || p->screen.rows == 0)
			draw(p);
	while (take_event(p, &result));
	ql_menu_close(&p->editor);
	p->editor.search.on = false;
	draw_last(p);
	ql_tty_cooked();
	if (result == QL_PROMPT_READ)
		ql_history_keep(&p->history, p->editor.buffer.text.at, p->editor.buffer.text.size);
	tell_history(p);
	return result;
}

/* ---- opening ---- */

void ql_prompt_open(struct ql_prompt *p, struct ql_state *state)
{
	struct ql_bytes path = {0};

	*p = (struct ql_prompt){.state = state};
	if (ql_history_place(&path))
		ql_history_open(&p->history, path.at);
	ql_bytes_free(&path);
	tell_history(p);
	ql_editor_begin(&p->editor, &p->history,
		&(struct ql_editor_host){.data = p, .is_whole = is_whole, .complete = complete});
	p->editor.vi.on = inputrc_wants_vi();
}

void ql_prompt_close(struct ql_prompt *p)
{
	ql_editor_free(&p->editor);
	ql_history_free(&p->history);
	ql_screen_free(&p->screen);
	ql_frame_free(&p->frame);
	ql_painted_free(&p->text);
	ql_painted_free(&p->below);
	ql_bytes_free(&p->out);
}
