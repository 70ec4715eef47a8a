/* SPDX-License-Identifier: MIT
 * plplot's SVG made fit for a page.
 */
#ifndef QUOLL_INTERP_PLOT_SVG_H
#define QUOLL_INTERP_PLOT_SVG_H

#include "interp/plot/plplot.h"

/* gives the same picture: sized in pixels, with names of its own (several figures may be in one HTML
 * page), a third of the bytes. */
enum ql_status ql_svg_tidy(struct ql_ctx *ctx, const char *svg, size_t n, struct ql_encoded *out);

#endif
