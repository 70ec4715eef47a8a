/* SPDX-License-Identifier: MIT
 * Texts of any origin as they may appear in one line.
 */
#ifndef QUOLL_INTERP_HOST_TEXT_H
#define QUOLL_INTERP_HOST_TEXT_H

#include <stddef.h>

/* Copies at most `room` - 1 bytes, control characters replaced by '?', cut text marked with "...". */
void ql_text_clean(const char *text, size_t size, char *out, size_t room);

/* Copies text for a message of one line: control characters and bytes that are no UTF-8 as \n or \x1b, at most
 * `most` characters and what fits into `room`, cut text marked with "…". */
void ql_text_escape(const char *text, size_t size, size_t most, char *out, size_t room);

#endif
