/* SPDX-License-Identifier: MIT
 * Keeps what a library writes to stderr from the user, and what it leaks from the sanitizer.
 */
#ifndef QUOLL_INTERP_PLOT_HUSH_H
#define QUOLL_INTERP_PLOT_HUSH_H

/* Puts stderr aside; returns what ql_hush_end needs to bring it back. */
int ql_hush_begin(void);
void ql_hush_end(int saved);

#endif
