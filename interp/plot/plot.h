/* SPDX-License-Identifier: MIT
 * The Lua module `plot`: figures from tables and tensors.
 *
 * A figure shows itself: its metatable has a field __show, a function that returns the bytes which show the
 * figure on stdout (a picture or text); the prompt writes them. fig:show() also calls the listeners (interp/host/output.h),
 * such as a notebook.
 */
#ifndef QUOLL_INTERP_PLOT_PLOT_H
#define QUOLL_INTERP_PLOT_PLOT_H

#include "interp/bind/call.h"
#include "interp/plot/figure.h"

#define QL_FIGURE "quoll.figure"

/* Pushes a box that holds NULL; __gc and __close free what it holds later. */
struct ql_figure **ql_figure_box(lua_State *L);

/* Reads data and options from the table at `index` into the empty figure f, which a box already owns. Raises.
 */
void ql_figure_read(lua_State *L, int index, struct ql_figure *f);

#endif
