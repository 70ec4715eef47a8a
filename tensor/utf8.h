/* SPDX-License-Identifier: MIT
 * UTF-8 (RFC 3629): no surrogates, no overlong forms, nothing above U+10FFFF.
 */
#ifndef QUOLL_TENSOR_UTF8_H
#define QUOLL_TENSOR_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed character at `at` (n > 0 bytes), 1 to 4; 0: it is malformed; -1: the text ends within it. */
int ql_utf8_length(const char *at, size_t n);
bool ql_utf8_valid(const char *text, size_t n);
/* The next character of valid, zero-terminated UTF-8; *text moves on. 0 at the end. */
uint32_t ql_utf8_next(const char **text);
/* Writes the character; returns the number of bytes, at most 4. */
int ql_utf8_put(uint32_t c, char *out);

#endif
