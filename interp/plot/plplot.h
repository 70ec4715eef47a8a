/* SPDX-License-Identifier: MIT
 * Scenes to pictures by plplot, which is opened at the first picture and never before.
 */
#ifndef QUOLL_INTERP_PLOT_PLPLOT_H
#define QUOLL_INTERP_PLOT_PLPLOT_H

#include "interp/plot/scene.h"

struct ql_encoded {
	char *at; /* from ql_alloc */
	size_t n;
};

enum ql_picture { QL_PICTURE_PNG, QL_PICTURE_SVG, QL_PICTURE_PDF };

/* gives the bytes of the picture. Errors: QL_ERR_UNSUPPORTED with the Debian packages to install, when plplot
 * or the driver is missing. */
enum ql_status ql_plplot_render(const struct ql_scene *s, enum ql_picture picture, struct ql_encoded *out);
/* One line for `quoll doctor`: version and devices, or what is missing; true when all three pictures can be
 * made. */
bool ql_plplot_describe(char *text, size_t size);

#endif
