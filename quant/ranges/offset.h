/* SPDX-License-Identifier: MIT
 * Rounding with offsets: codes of x / scale + v instead of x / scale. Rounding up or down becomes a number v of -1/2 .. 1/2 that a
 * gradient can move, as scale, zero point z and minimum m can (AutoRound, arXiv 2309.05516). Integer codes from lo to hi:
 *
 *   u = (x - m) / s + v     c = clamp(rne(u), lo - z, hi - z)     y = c s + m
 *
 * Grids have their own values: v counts distances of the two values around x / s, c is the one of these that is nearer to u.
 * Gradients are straight-through (dc/du = 1) where u is inside the range of the codes, as in fake:
 *
 *   inside    dx = dy   dv = dy s   ds = dy (c - (x - m) / s)   dz = 0       dm = 0
 *   outside   dx = 0    dv = 0      ds = dy c                   dz = -dy s   dm = dy
 */
#ifndef QUOLL_QUANT_RANGES_OFFSET_H
#define QUOLL_QUANT_RANGES_OFFSET_H

#include "quant/spec.h"
#include "tensor/grain.h"

/* Where the scales of a tensor are; axes from 0, -1: none. */
struct ql_offset_place {
	int64_t axis, block_axis, block;
	int64_t minimum; /* 1: origins are minimums; 0: zero points, if any */
};

struct ql_offset {
	struct ql_offset_place place;
	struct ql_grain grain;
	const struct ql_grid_table *grid; /* NULL: codes are integers */
	bool overflow;
	const float *scale, *minimum; /* of the grain; minimum: NULL without */
	const float *lo, *hi;         /* codes without the zero point */
	int16_t rank[256];            /* of each code of the grid; -1: its value is not finite */
};

/* Gives what follows from the spec and its numbers for a tensor of `shape`, in scratch memory. scale: one finite number > 0 for each
 * scale. origin: the minimums of a scheme that has them, or the zero points of one whose zero point is free, which are rounded; NULL: there is
 * none. Errors: other numbers, codes that are neither integers nor a grid. */
enum ql_status ql_offset_open(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	struct ql_tensor *scale, struct ql_tensor *origin, struct ql_offset *o);
/* The values y of the contiguous x with the offsets v: bit for bit those that the codes decode to. If a gradient is wanted, else NULL:
 * step is the distance of the two values around x / s where it is inside, else 0; slope is dy/ds. */
enum ql_status ql_offset_values(struct ql_ctx *ctx, const struct ql_offset *o, const float *x, const float *v, float *y,
	float *step, float *slope);

/* The gradients of x, v, scales and origins for the gradient dy of y. */
struct ql_offset_slopes {
	struct ql_offset_place place;
	const float *scale, *step, *slope, *dy;
	float *dx, *dv;
	double *ds, *dorigin;
};

/* Fills dx, dv, ds and dorigin, for y of `shape`. Each scale's sum is taken in float64 in the order of its elements. */
enum ql_status ql_offset_slopes(struct ql_ctx *ctx, const struct ql_offset_slopes *s, int rank, const int64_t *shape);

#endif
