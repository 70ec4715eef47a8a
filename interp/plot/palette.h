/* SPDX-License-Identifier: MIT
 * Colours of matrices.
 */
#ifndef QUOLL_INTERP_PLOT_PALETTE_H
#define QUOLL_INTERP_PLOT_PALETTE_H

#include "interp/plot/scene.h"

/* 0xRRGGBB for t in 0..1; NaN is the gray of missing values. */
uint32_t ql_gradient_at(enum ql_gradient gradient, double t);
#define QL_MISSING 0xDDDDDDu

#endif
