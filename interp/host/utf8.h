/* SPDX-License-Identifier: MIT
 * UTF-8 as labels need it: cleaning, widths on a terminal and in a sans-serif font.
 */
#ifndef QUOLL_INTERP_HOST_UTF8_H
#define QUOLL_INTERP_HOST_UTF8_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/base.h"
#include "tensor/utf8.h"

/* gives a copy in which malformed bytes are U+FFFD and control characters are spaces */
char *ql_utf8_clean(struct ql_ctx *ctx, const char *text, size_t n);
/* Columns of a terminal: 0 for combining marks, 2 for wide characters. */
int ql_utf8_columns(uint32_t c);
/* Width in em of a common sans-serif font; an estimate beyond ASCII. */
double ql_utf8_em(uint32_t c);

#endif
