/* SPDX-License-Identifier: MIT
 * Scenes to characters.
 */
#ifndef QUOLL_INTERP_PLOT_TEXT_H
#define QUOLL_INTERP_PLOT_TEXT_H

#include "interp/plot/render.h"
#include "interp/plot/scene.h"

/* gives the lines of a scene whose `cells` is set */
enum ql_status ql_text_render(const struct ql_scene *s, enum ql_colour colour, struct ql_encoded *out);

#endif
