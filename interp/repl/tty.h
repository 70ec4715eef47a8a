/* SPDX-License-Identifier: MIT
 * The terminal: raw while an input is edited, as the shell left it at all other times. There is one per
 * process.
 */
#ifndef QUOLL_INTERP_REPL_TTY_H
#define QUOLL_INTERP_REPL_TTY_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum ql_tty_event { QL_TTY_BYTE, QL_TTY_TIMEOUT, QL_TTY_END, QL_TTY_RESIZED, QL_TTY_RESUMED, QL_TTY_INTERRUPTED };

/* stdin and stdout are a terminal that understands escape sequences. */
bool ql_tty_usable(void);
/* False: the terminal refuses. However the process ends or is stopped, the terminal is restored first. */
bool ql_tty_raw(void);
void ql_tty_cooked(void);
/* Stops the process as Ctrl-Z does; returns when it goes on. The terminal must be cooked. */
void ql_tty_suspend(void);
/* Waits for one byte, at most `ms` milliseconds (-1: for ever). `interrupted` is watched for a SIGINT that
 * came from elsewhere than the keyboard. */
enum ql_tty_event ql_tty_read(int ms, const volatile sig_atomic_t *interrupted, unsigned char *byte);
/* There is something to read at once. */
bool ql_tty_ready(void);
void ql_tty_write(const char *bytes, size_t n);
void ql_tty_size(int *columns, int *rows);

#endif
