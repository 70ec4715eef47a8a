/* SPDX-License-Identifier: MIT
 * Bytes that grow: the text of an input, what is written to the terminal, killed text.
 */
#ifndef QUOLL_INTERP_HOST_BYTES_H
#define QUOLL_INTERP_HOST_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `at` ends in a NUL that `size` does not count; NULL while nothing was put in. */
struct ql_bytes {
	char *at;
	size_t size, room;
};

/* Puts `n` bytes in place of those from `from` up to `to`. False: no memory, nothing has changed. `bytes`
 * must not lie in `b`. */
bool ql_bytes_replace(struct ql_bytes *b, size_t from, size_t to, const char *bytes, size_t n);
bool ql_bytes_add(struct ql_bytes *b, const char *bytes, size_t n);
bool ql_bytes_set(struct ql_bytes *b, const char *bytes, size_t n);
bool ql_bytes_text(struct ql_bytes *b, const char *text);
__attribute__((format(printf, 2, 3))) bool ql_bytes_print(struct ql_bytes *b, const char *format, ...);
void ql_bytes_free(struct ql_bytes *b);

/* The code point at `text` of `n` > 0 bytes and its length; malformed: U+FFFD and length 1. */
uint32_t ql_bytes_char(const char *text, size_t n, size_t *length);
/* Columns that the terminal gives a code point: 0, 1 or 2. Control characters: 2, shown as ^X. */
int ql_bytes_columns(uint32_t c);

#endif
