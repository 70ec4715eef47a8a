/* SPDX-License-Identifier: MIT
 * How many columns a printed value may take.
 */
#ifndef QUOLL_INTERP_HOST_WIDTH_H
#define QUOLL_INTERP_HOST_WIDTH_H

#include <stdbool.h>
#include <stddef.h>

/* What %set width says; else COLUMNS in scripts; else the columns of the terminal; 80 where the output goes
 * elsewhere. */
int ql_width(void);
/* From now on the terminal's width counts, not COLUMNS. */
void ql_width_prompt(void);
/* From now on 80 on terminals, too: what is shown goes into a file, a browser or a comparison. */
void ql_width_fix(void);
/* true in scripts: neither at the prompt nor where outputs are kept, as in notebooks and tests. */
bool ql_width_script(void);
/* true at the prompt, where someone reads what is put out as it comes. */
bool ql_width_at_prompt(void);
/* Columns of a UTF-8 text, one for each character. */
int ql_width_of(const char *text);
/* Cuts the text after a word, at best after a comma, with " …", so that it takes at most `width` columns;
 * `room`: bytes there are. */
void ql_width_cut(char *text, size_t room, int width);

#endif
