/* SPDX-License-Identifier: MIT
 * Raw mode by termios. Carriage returns stay translated, so what was typed ahead is lines for io.read.
 * Bracketed paste (2004) is on while raw. Signals that end or stop the process restore the terminal first and
 * are then raised again as they would have been; those that only notify (SIGWINCH, SIGCONT) write a
 * byte into a pipe, because they may arrive on any thread while this one waits in poll.
 */
#include "interp/repl/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static const int fatal[] = {SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTSTP};

#define QL_FATAL (sizeof(fatal) / sizeof(fatal[0]))

/* Static because signal handlers get no argument. */
static struct termios cooked, raw;
static volatile sig_atomic_t is_raw;
static struct sigaction before[QL_FATAL], before_winch, before_cont;
static int note[2] = {-1, -1}; /* pipe */

static const char paste_on[] = "\033[?2004h", paste_off[] = "\033[?2004l\033[?25h";

bool ql_tty_usable(void)
{
	const char *term = getenv("TERM");

	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
}

/* ---- signals; only functions that are safe in a handler ---- */

static void restore(void)
{
	ssize_t ignored;

	if (!is_raw)
		return;
	is_raw = 0;
	ignored = write(STDOUT_FILENO, paste_off, sizeof(paste_off) - 1);
	(void)ignored;
	tcsetattr(STDIN_FILENO, TCSADRAIN, &cooked);
}

static void tell(char what)
{
	ssize_t ignored = write(note[1], &what, 1);

	(void)ignored;
}

static void on_fatal(int signal)
{
	int saved = errno;

	restore();
	for (size_t i = 0; i < QL_FATAL; i++)
		if (fatal[i] == signal)
			sigaction(signal, &before[i], NULL);
	if (signal == SIGTSTP)
		tell('c'); /* where no shell does job control, nothing stops and nobody sends SIGCONT */
	raise(signal);     /* is delivered when this handler returns */
	errno = saved;
}

/* Nothing to do where ours is installed already: `before` must stay what it was. */
static void catch_signal(int signal, void (*handler)(int), int flags, struct sigaction *old)
{
	struct sigaction action;

	sigaction(signal, NULL, &action);
	if (action.sa_handler == handler)
		return;
	*old = action;
	if (handler == on_fatal && action.sa_handler == SIG_IGN)
		return;
	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = flags;
	sigaction(signal, &action, NULL);
}

static void on_resize(int signal)
{
	int saved = errno;

	(void)signal;
	tell('r');
	errno = saved;
}

/* The shell has set its own modes meanwhile. */
static void on_continue(int signal)
{
	int saved = errno;
	ssize_t ignored;

	(void)signal;
	catch_signal(SIGTSTP, on_fatal, 0, &before[QL_FATAL - 1]);
	tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
	ignored = write(STDOUT_FILENO, paste_on, sizeof(paste_on) - 1);
	(void)ignored;
	is_raw = 1;
	tell('c');
	errno = saved;
}

/* ---- modes ---- */

static bool open_note(void)
{
	if (note[0] >= 0)
		return true;
	if (pipe2(note, O_CLOEXEC | O_NONBLOCK))
		return false;
	atexit(restore);
	return true;
}

static void empty_note(char *last)
{
	char c;

	while (read(note[0], &c, 1) == 1)
		if (last && *last != 'c')
			*last = c;
}

bool ql_tty_raw(void)
{
	if (is_raw)
		return true;
	if (!open_note() || tcgetattr(STDIN_FILENO, &cooked))
		return false;
	raw = cooked;
	raw.c_iflag &= ~(tcflag_t)(BRKINT | INPCK | ISTRIP | IXON);
	raw.c_iflag |= ICRNL;
	raw.c_cflag |= CS8;
	raw.c_lflag &= ~(tcflag_t)(ECHO | ICANON | IEXTEN | ISIG);
	raw.c_cc[VMIN] = 1;
	raw.c_cc[VTIME] = 0;
	empty_note(NULL);
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw))
		return false;
	is_raw = 1;
	ql_tty_write(paste_on, sizeof(paste_on) - 1);
	for (size_t i = 0; i < QL_FATAL; i++)
		catch_signal(fatal[i], on_fatal, 0, &before[i]);
	catch_signal(SIGWINCH, on_resize, SA_RESTART, &before_winch);
	catch_signal(SIGCONT, on_continue, SA_RESTART, &before_cont);
	return true;
}

void ql_tty_cooked(void)
{
	if (!is_raw)
		return;
	sigaction(SIGCONT, &before_cont, NULL);
	sigaction(SIGWINCH, &before_winch, NULL);
	restore();
	for (size_t i = 0; i < QL_FATAL; i++)
		sigaction(fatal[i], &before[i], NULL);
}

/* The whole job stops, also the launcher that waits for us. */
void ql_tty_suspend(void)
{
	kill(0, SIGTSTP);
}

/* ---- reading and writing ---- */

static enum ql_tty_event what_happened(void)
{
	char what = 0;

	empty_note(&what);
	return what == 'c' ? QL_TTY_RESUMED : QL_TTY_RESIZED;
}

enum ql_tty_event ql_tty_read(int ms, const volatile sig_atomic_t *interrupted, unsigned char *byte)
{
	struct pollfd wait[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.fd = note[0], .events = POLLIN}};
	struct timespec limit = {ms / 1000, ms % 1000 * 1000000L};
	sigset_t blocked, mask;
	int n = 0;

	/* SIGINT and SIGALRM (--time) are let in only while waiting, or it could come between the look at the flag and the poll */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &blocked, &mask);
	while (!*interrupted && (n = ppoll(wait, 2, ms < 0 ? NULL : &limit, &mask)) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (*interrupted)
		return QL_TTY_INTERRUPTED;
	if (n == 0)
		return QL_TTY_TIMEOUT;
	if (n > 0 && wait[1].revents)
		return what_happened();
	while ((n = (int)read(STDIN_FILENO, byte, 1)) < 0 && errno == EINTR)
		;
	return n == 1 ? QL_TTY_BYTE : QL_TTY_END;
}

bool ql_tty_ready(void)
{
	struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&wait, 1, 0) > 0 && wait.revents & POLLIN;
}

void ql_tty_write(const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t put = write(STDOUT_FILENO, bytes, n);

		if (put < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (put > 0) {
			bytes += put;
			n -= (size_t)put;
		}
	}
}

void ql_tty_size(int *columns, int *rows)
{
	struct winsize size = {0};

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size)) /* zeros then */
		size = (struct winsize){0};
	*columns = size.ws_col >= 2 ? size.ws_col : 80;
	*rows = size.ws_row >= 1 ? size.ws_row : 24;
}
