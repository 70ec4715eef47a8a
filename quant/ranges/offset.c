/* SPDX-License-Identifier: MIT
 * Values of codes that rounding offsets choose, and their gradients. See offset.h.
 */
#include "quant/ranges/offset.h"

#include <math.h>
#include <string.h>

#include "quant/ranges/scales.h"
#include "tensor/grid.h"
#include "tensor/parallel.h"
#include "tensor/scratch.h"

#define PIECE 512
#define NEAREST 0x1.8p23f /* adding and subtracting it rounds half to even for |v| < 2^22 */
#define VALUE_NS 4        /* an element */
#define SLOPE_NS 8

/* ---- numbers ---- */

static bool has_origin(const struct ql_spec *spec)
{
	return spec->scheme && (spec->scheme->shift || spec->scheme->offset);
}

static enum ql_status check_codes(struct ql_ctx *ctx, const struct ql_spec *spec)
{
	const struct ql_scheme *scheme = spec->scheme;
	bool joint = spec->format && spec->format->blocks;

	if (scheme && (scheme->affine || scheme->grid) && !joint && !spec->outer && !spec->stochastic &&
		!spec->has_scale && spec->bits > 1 && !(spec->grid && spec->grid->learned))
		return QL_OK;
	return ql_fail(ctx, QL_ERR_ARGUMENT,
		"fake: offset: wanted codes that are integers or of a fixed grid, under scales that can be given, got '%s'%s",
		joint || spec->format ? spec->format->doc.name
		: scheme              ? scheme->doc.name
				      : ql_dtype_name(spec->dtype),
		spec->has_scale ? " with explicit scales"
		: spec->outer   ? " with scales that are coded"
				: "");
}

/* Reads one float for each scale. */
static enum ql_status read_numbers(struct ql_ctx *ctx, const char *what, const struct ql_tensor *t,
	const struct ql_offset *o, int rank, const int64_t *shape, float **out)
{
	int64_t n = o->grain.scales;
	char a[QL_SHAPE_TEXT], b[QL_SHAPE_TEXT];

	if (t->q || !ql_dtype_is_float(t->dtype))
		return ql_fail(ctx, QL_ERR_DTYPE, "fake: %s: wanted plain floats, got %s", what, ql_tensor_text(t, a));
	if (t->rank != rank || memcmp(t->shape, shape, (size_t)rank * sizeof(*shape)) != 0)
		return ql_fail(ctx, QL_ERR_SHAPE, "fake: %s: wanted shape %s, a number for each scale, got %s", what,
			ql_shape_text(rank, shape, a), ql_shape_text(t->rank, t->shape, b));
	*out = ql_scratch_array(ctx, n, sizeof(**out));
	if (!*out)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++)
		(*out)[i] = (float)ql_tensor_at_f64(t, i);
	return QL_OK;
}

static enum ql_status check_scales(struct ql_ctx *ctx, const float *scale, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (!(scale[i] > 0) || !isfinite(scale[i]))
			return ql_fail(ctx, QL_ERR_ARGUMENT, "fake: scale: wanted finite numbers > 0, got %g",
				(double)scale[i]);
	return QL_OK;
}

/* The ends of the codes without their zero points. */
static enum ql_status ends(struct ql_ctx *ctx, const struct ql_spec *spec, const float *zero, struct ql_offset *o)
{
	int64_t n = o->grain.scales;
	float *lo = ql_scratch_array(ctx, n, 2 * sizeof(*lo)), *hi = lo + n;

	if (!lo)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		struct ql_codes codes = ql_spec_codes(spec, false, spec->each_bits ? i : 0);
		float z = zero ? rintf(zero[i]) : ql_scales_have_zeros(spec) ? (float)ql_spec_zero(spec, i) : 0;

		z = z < (float)codes.lo ? (float)codes.lo : z > (float)codes.hi ? (float)codes.hi : z == z ? z : 0;
		lo[i] = (float)codes.lo - z;
		hi[i] = (float)codes.hi - z;
	}
	o->lo = lo;
	o->hi = hi;
	return QL_OK;
}

static void take_grid(const struct ql_spec *spec, struct ql_offset *o)
{
	o->grid = spec->scheme->grid ? spec->grid : NULL;
	o->overflow = spec->overflow;
	memset(o->rank, -1, sizeof(o->rank));
	for (int i = 0; o->grid && i < o->grid->ranks; i++)
		o->rank[o->grid->code[i]] = (int16_t)i;
	for (int i = 0; o->grid && i < o->grid->n; i++) /* -0 has the rank of 0 */
		for (int k = 0; k < o->grid->ranks && o->rank[i] < 0; k++)
			if (o->grid->value[i] == o->grid->value[o->grid->code[k]])
				o->rank[i] = (int16_t)k;
}

static struct ql_grain grain_of(const struct ql_offset_place *p, int rank, const int64_t *shape)
{
	return ql_grain_of(rank, shape, QL_float32, (int)p->axis, (int)p->block_axis, p->block);
}

enum ql_status ql_offset_open(struct ql_ctx *ctx, const struct ql_spec *spec, int rank, const int64_t *shape,
	struct ql_tensor *scale, struct ql_tensor *origin, struct ql_offset *o)
{
	const char *what = spec->scheme && spec->scheme->shift ? "minimum" : "zero_point";
	int axis = -1, s_rank;
	int64_t s_shape[QL_MAX_RANK];
	float *scales = NULL, *origins = NULL;
	enum ql_status status = check_codes(ctx, spec);

	if (!status && spec->axis)
		status = ql_axis(ctx, "fake: axis", spec->axis, rank, &axis);
	if (!status && spec->block && rank == 0)
		status =
			ql_fail(ctx, QL_ERR_SHAPE, "fake: block: wanted a tensor with at least one axis, got a number");
	if (!status && !origin != !has_origin(spec))
		status = ql_fail(ctx, QL_ERR_ARGUMENT, "fake: %s: wanted %s for '%s', got %s", what,
			origin ? "none" : "it after the scale", spec->scheme->doc.name, origin ? "one" : "none");
	if (status)
		return status;
	o->place = (struct ql_offset_place){axis, -1, spec->block, spec->scheme->shift};
	if (spec->block) {
		o->place.block_axis = axis < 0 ? rank - 1 : axis;
		o->place.axis = -1;
	}
	o->grain = grain_of(&o->place, rank, shape);
	s_rank = ql_grain_shape(rank, shape, (int)o->place.axis, (int)o->place.block_axis, o->place.block, s_shape);
	status = read_numbers(ctx, "scale", scale, o, s_rank, s_shape, &scales);
	if (!status)
		status = check_scales(ctx, scales, o->grain.scales);
	if (!status && origin)
		status = read_numbers(ctx, what, origin, o, s_rank, s_shape, &origins);
	o->scale = scales;
	o->minimum = spec->scheme->shift ? origins : NULL;
	take_grid(spec, o);
	return status ? status : ends(ctx, spec, o->minimum ? NULL : origins, o);
}

/* ---- elements ---- */

/* n elements that share the scale s (each = 0), or have the scales s, s + 1, … (each = 1). */
struct run {
	const float *x, *v;
	int64_t n, s;
	int each;
};

struct element {
	float c, gap; /* the code without its zero point, or the value of the grid; distance that 1 of the offset is */
	bool inside;
};

static float reduced(const struct ql_offset *o, float x, int64_t s)
{
	return o->minimum ? x - o->minimum[s] : x;
}

static struct element integer_at(const struct ql_offset *o, float x, float v, int64_t s)
{
	float lo = o->lo[s], hi = o->hi[s], u = reduced(o, x, s) / o->scale[s] + v;
	float low = lo - 1, high = hi + 1, n, c;

	n = u < low ? low : u > high ? high : u == u ? u : 0;
	n = (n + NEAREST) - NEAREST;
	c = n < lo ? lo : n > hi ? hi : n;
	return (struct element){c, 1, c == n && u == u};
}

/* The rank of the upper one of the two values around t, of which `code` is the nearer one; beyond the ends that of the last two. */
static int upper_of(const struct ql_offset *o, float t, uint8_t code)
{
	const struct ql_grid_table *g = o->grid;
	int at = o->rank[code], up = t >= g->value[code] ? at + 1 : at;

	return up < 1 ? 1 : up > g->ranks - 1 ? g->ranks - 1 : up;
}

static void grid_run(const struct ql_offset *o, const struct run *r, struct element *out)
{
	const struct ql_grid_table *g = o->grid;
	float t[PIECE], least = g->value[g->code[0]], most = g->value[g->code[g->ranks - 1]];
	uint8_t code[PIECE], upper[PIECE];

	for (int64_t i = 0; i < r->n; i++) {
		float scale = o->scale[r->s + i * r->each];

		t[i] = g->reciprocal ? r->x[i] * (1 / scale) : r->x[i] / scale;
	}
	ql_grid_encode(g, 0, o->overflow, t, &(float){1}, false, r->n, code);
	for (int64_t i = 0; i < r->n; i++) {
		upper[i] = (uint8_t)upper_of(o, t[i], code[i]);
		out[i].gap = g->value[g->code[upper[i]]] - g->value[g->code[upper[i] - 1]];
		t[i] += r->v[i] * out[i].gap;
		out[i].inside = t[i] >= least && t[i] <= most;
	}
	ql_grid_encode(g, 0, o->overflow, t, &(float){1}, false, r->n, code);
	for (int64_t i = 0; i < r->n; i++) {
		int at = o->rank[code[i]], up = upper[i];
		bool far = at >= 0 && (at < up - 1 || at > up);

		out[i].c = g->value[far ? g->code[at > up ? up : up - 1] : code[i]];
	}
}

/* r->n is at most PIECE. */
static void elements_of(const struct ql_offset *o, const struct run *r, struct element *out)
{
	if (o->grid) {
		grid_run(o, r, out);
		return;
	}
	for (int64_t i = 0; i < r->n; i++)
		out[i] = integer_at(o, r->x[i], r->v[i], r->s + i * r->each);
}

/* ---- values ---- */

struct job {
	const struct ql_offset *o;
	const float *x, *v;
	float *y, *step, *slope;
};

static void put(const struct job *j, const struct run *r, const struct element *e, int64_t at)
{
	const struct ql_offset *o = j->o;

	for (int64_t i = 0; i < r->n; i++) {
		int64_t s = r->s + i * r->each;
		float y = e[i].c * o->scale[s];

		j->y[at + i] = o->minimum ? y + o->minimum[s] : y;
		if (!j->step)
			continue;
		j->step[at + i] = e[i].inside ? e[i].gap : 0;
		j->slope[at + i] = e[i].inside ? e[i].c - reduced(o, r->x[i], s) / o->scale[s] : e[i].c;
	}
}

static void values_row(const struct job *j, int64_t row)
{
	const struct ql_grain *g = &j->o->grain;
	struct element e[PIECE];
	int64_t length;

	for (int64_t column = 0; column < g->row;) {
		int64_t at = row * g->row + column;
		struct run r = {.x = j->x + at, .v = j->v + at, .each = g->kind >= QL_GRAIN_COLUMN};

		r.s = ql_grain_scale(g, row, column, &length);
		r.n = length < g->row - column ? length : g->row - column;
		r.n = r.n < PIECE ? r.n : PIECE;
		elements_of(j->o, &r, e);
		put(j, &r, e, at);
		column += r.n;
	}
}

static void values_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t row = begin; row < end; row++)
		values_row(arg, row);
}

static int64_t rows_of_task(const struct ql_grain *g)
{
	return 1 + 16384 / (g->row + 1);
}

enum ql_status ql_offset_values(struct ql_ctx *ctx, const struct ql_offset *o, const float *x, const float *v, float *y,
	float *step, float *slope)
{
	struct job j = {.o = o, .x = x, .v = v, .y = y, .step = step, .slope = slope};
	const struct ql_grain *g = &o->grain;

	return ql_parallel_for(
		ctx, g->row ? g->rows : 0, rows_of_task(g), g->rows * g->row * VALUE_NS, values_body, &j);
}

/* ---- gradients ---- */

struct slopes {
	const struct ql_offset_slopes *s;
	struct ql_grain grain;
};

static void slopes_row(const struct slopes *j, int64_t row)
{
	const struct ql_offset_slopes *p = j->s;
	const struct ql_grain *g = &j->grain;
	int64_t length, each = g->kind >= QL_GRAIN_COLUMN;

	for (int64_t column = 0, stop; column < g->row; column = stop) {
		int64_t first = ql_grain_scale(g, row, column, &length), from = row * g->row + column;

		stop = length < g->row - column ? column + length : g->row;
		for (int64_t i = 0; i < stop - column; i++) {
			int64_t s = first + i * each, at = from + i;
			float dy = p->dy[at], scale = p->scale[s];
			bool inside = p->step[at] > 0;

			p->dx[at] = inside ? dy : 0;
			p->dv[at] = dy * scale * p->step[at];
			p->ds[s] += (double)dy * (double)p->slope[at];
			if (!inside)
				p->dorigin[s] += (double)dy * (p->place.minimum ? 1 : -(double)scale);
		}
	}
}

static void slopes_body(void *arg, int64_t begin, int64_t end)
{
	for (int64_t row = begin; row < end; row++)
		slopes_row(arg, row);
}

enum ql_status ql_offset_slopes(struct ql_ctx *ctx, const struct ql_offset_slopes *s, int rank, const int64_t *shape)
{
	struct slopes j = {.s = s, .grain = grain_of(&s->place, rank, shape)};
	const struct ql_grain *g = &j.grain;
	int64_t rows = g->row ? g->rows : 0;
	/* where rows share scales, one task takes all sums */
	bool own = g->kind == QL_GRAIN_BLOCK || (g->kind == QL_GRAIN_ROW && g->scales == g->rows);

	memset(s->ds, 0, (size_t)g->scales * sizeof(*s->ds));
	memset(s->dorigin, 0, (size_t)g->scales * sizeof(*s->dorigin));
	return ql_parallel_for(ctx, rows, own ? rows_of_task(g) : rows + 1, rows * g->row * SLOPE_NS, slopes_body, &j);
}
