/* SPDX-License-Identifier: MIT
 * PNG to sixel graphics (DEC STD 070; what xterm, foot, mlterm, WezTerm and tmux 3.4 show).
 */
#ifndef QUOLL_INTERP_PLOT_SIXEL_H
#define QUOLL_INTERP_PLOT_SIXEL_H

#include "interp/plot/plplot.h"

/* gives the sequence for a picture in at most `colours` (2 to 256) colours */
enum ql_status ql_sixel_encode(struct ql_ctx *ctx, const struct ql_encoded *png, int colours, struct ql_encoded *out);

#endif
