/* SPDX-License-Identifier: MIT
 * Tensors as text: a header with dtype, shape and quant facts, then the (decoded) values in aligned columns. More than
 * QL_PRINT_MAX elements: only EDGE items at both ends of each axis, with an ellipsis between. No line is longer than
 * ql_width: one axis is broken into lines, of more axes the last shows as many columns of both ends as there is room for.
 * More than two axes take no more than the setting `lines`: fewer items at both ends of the leading axes, then fewer rows.
 */
#include "interp/bind/print.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "interp/host/settings.h"
#include "interp/host/width.h"
#include "quant/format.h"
#include "tensor/codec.h"
#include "tensor/grid.h"
#include "tensor/qparams.h"

#define QL_PRINT_MAX 1000
#define EDGE 3
#define QL_FACTS_MAX ((int64_t)1 << 24) /* elements that are counted or compared for the header */

/* ---- header ---- */

static void range_of(const struct ql_tensor *t, double *lo, double *hi)
{
	int64_t n = ql_tensor_nelem(t);

	*lo = n ? INFINITY : 0;
	*hi = n ? -INFINITY : 0;
	for (int64_t i = 0; i < n; i++) {
		double v = ql_tensor_at_f64(t, i);

		*lo = fmin(*lo, v);
		*hi = fmax(*hi, v);
	}
}

/* Of scales that are codes what they stand for. */
static size_t range_text(lua_State *L, char *text, size_t size, const char *name, const struct ql_tensor *t)
{
	bool few = ql_tensor_nelem(t) <= QL_FACTS_MAX;
	struct ql_tensor *plain = NULL;
	double lo, hi;

	if (!few || (t->q && ql_decode(ql_ctx_of(L), t, &plain)))
		return (size_t)snprintf(text, size, ", %lld %ss", (long long)ql_tensor_nelem(t), name);
	range_of(plain ? plain : t, &lo, &hi);
	ql_tensor_release(ql_ctx_of(L), plain);
	if (lo == hi)
		return (size_t)snprintf(text, size, ", %s %.4g", name, lo);
	return (size_t)snprintf(text, size, ", %s %.4g..%.4g", name, lo, hi);
}

/* True for the codes of the ends of the range, and of infinity and NaN. */
static bool is_end(const struct ql_codes *codes, int64_t code)
{
	const struct ql_grid_table *g = codes->grid;

	if (!g)
		return code <= codes->lo || code >= codes->hi;
	return code < 0 || code >= g->n ||
	       !(g->value[code] > g->least && g->value[code] < g->value[g->code[g->ranks - 1]]);
}

/* Share of codes at either end of their range: of values that were clipped, or from which the range was found. Which of the
 * two is not known any more. */
static double at_ends(const struct ql_tensor *t)
{
	int64_t n = ql_tensor_nelem(t), count = 0;
	int64_t index[QL_MAX_RANK] = {0};
	struct ql_codes codes = t->q->codes;

	for (int64_t i = 0; i < n; i++) {
		if (t->q->bits)
			codes = ql_qparams_codes(t->q, t->dtype, index[t->q->axis]);
		count += is_end(&codes, ql_tensor_get_i64(t, index));
		for (int d = t->rank - 1; d >= 0 && ++index[d] == t->shape[d]; d--)
			index[d] = 0;
	}
	return n ? (double)count / (double)n : 0;
}

static void bytes_text(uint64_t bytes, char text[32])
{
	if (bytes < 1024)
		snprintf(text, 32, "%llu B", (unsigned long long)bytes);
	else if (bytes < 1 << 20)
		snprintf(text, 32, "%.1f KiB", (double)bytes / 1024);
	else
		snprintf(text, 32, "%.1f MiB", (double)bytes / (1 << 20));
}

static char *granularity(const struct ql_qparams *q, char text[48])
{
	text[0] = '\0';
	if (q->block)
		snprintf(text, 48, ", blocks of %d on axis %d", q->block, q->block_axis + 1);
	else if (q->axis >= 0)
		snprintf(text, 48, ", axis %d", q->axis + 1);
	return text;
}

char *ql_describe(const struct ql_tensor *t, char text[256])
{
	char shape[QL_SHAPE_TEXT], grain[48];

	ql_shape_text(t->rank, t->shape, shape);
	if (t->q && t->q->format)
		snprintf(text, 256, "%s%.150s%s", t->q->format->doc.name, shape, granularity(t->q, grain));
	else if (t->q)
		snprintf(text, 256, "%s%.150s %s%s", ql_dtype_name(t->dtype), shape, t->q->scheme->doc.name,
			granularity(t->q, grain));
	else
		snprintf(text, 256, "%s%.150s", ql_dtype_name(t->dtype), t->rank ? shape : "");
	return text;
}

size_t ql_describe_params(lua_State *L, const struct ql_tensor *t, char *text, size_t size)
{
	const struct ql_qparams *q = t->q;
	const struct ql_tensor *part[] = {q->scale, q->zero_point, q->shift, q->bits};
	static const char *const names[] = {"scale", "zero_point", "minimum", "bits"};
	size_t n = 0;

	for (int i = 0; i < 4; i++)
		if (part[i] && n < size)
			n += range_text(L, text + n, size - n, names[i], part[i]);
	return n;
}

/* What matters most comes first: the end is cut in a narrow window. Returns the columns. */
static int add_header(lua_State *L, luaL_Buffer *b, const struct ql_tensor *t)
{
	char text[512], bytes[32], base[256];
	int64_t nan, inf;
	size_t n;

	if (t->rank == 0 && !t->q)
		return 0;
	n = (size_t)snprintf(text, sizeof(text), "%s", ql_describe(t, base));
	if (t->q) {
		n += ql_describe_params(L, t, text + n, sizeof(text) - n);
		bytes_text(ql_tensor_nbytes(t), bytes);
		n += (size_t)snprintf(text + n, sizeof(text) - n, ", %s", bytes);
		if (!ql_dtype_is_binary(t->dtype) && !t->q->scheme->host && ql_tensor_nelem(t) <= QL_FACTS_MAX)
			n += (size_t)snprintf(text + n, sizeof(text) - n, ", %.2f %% at the ends", 100 * at_ends(t));
		ql_qparams_counts(t->q, &nan, &inf);
		if (nan || inf)
			snprintf(text + n, sizeof(text) - n, ", met %lld NaN and %lld Inf", (long long)nan,
				(long long)inf);
	}
	ql_width_cut(text, sizeof(text), ql_width());
	luaL_addstring(b, text);
	return ql_width_of(text);
}

/* ---- values ---- */

struct style {
	bool integer, boolean, scientific, whole;
	int width;
};

#define ALL (INT64_MAX / 4)

/* Indices that are shown of an axis: `edge` at both ends, with the ellipsis between, which is -1; of edge 0 the first. */
static int64_t shown(int64_t size, int64_t edge)
{
	int64_t most = edge ? 2 * edge + 1 : 2;

	return size <= most && (edge || size < 2) ? size : most;
}

static int64_t shown_index(int64_t i, int64_t size, int64_t edge)
{
	int64_t n = shown(size, edge);

	if (n == size && (edge || size < 2))
		return i;
	return i < (edge ? edge : 1) ? i : i == (edge ? edge : 1) ? -1 : size - n + i;
}

struct printer {
	lua_State *L;
	luaL_Buffer *b;
	const struct ql_tensor *t;
	struct style style;
	int64_t edge[QL_MAX_RANK];
	int head, tail; /* columns shown of the last axis */
	int line;       /* columns of a line */
	int64_t index[QL_MAX_RANK];
	double lo, hi; /* magnitudes of the finite values shown, zeros left out */
	bool fractional;
	int width;
};

/* The value shown; of a quantized tensor that is too large to be decoded for a few. */
static double value_at(const struct printer *p)
{
	enum ql_status status;
	float value;

	if (!p->t->q)
		return ql_tensor_get_f64(p->t, p->index);
	status = ql_decode_element(ql_ctx_of(p->L), p->t, p->index, &value);
	if (status)
		ql_raise(p->L, status);
	return (double)value;
}

static int element_text(const struct printer *p, char text[64])
{
	const struct ql_dtype_info *d = &ql_dtypes[p->t->dtype];
	double v;

	if (p->style.boolean)
		return snprintf(text, 64, "%s", ql_tensor_get_i64(p->t, p->index) ? "true" : "false");
	if (d->kind != QL_KIND_FLOAT && !p->t->q)
		return snprintf(text, 64, "%lld", (long long)ql_tensor_get_i64(p->t, p->index));
	v = value_at(p);
	if (isnan(v))
		return snprintf(text, 64, "nan");
	if (isinf(v))
		return snprintf(text, 64, v > 0 ? "inf" : "-inf");
	if (p->style.whole)
		return snprintf(text, 64, "%.0f", v);
	return snprintf(text, 64, p->style.scientific ? "%.*e" : "%.*f", (int)ql_setting_int(QL_SETTING_precision), v);
}

static void visit(struct printer *p, int axis, void (*leaf)(struct printer *))
{
	int64_t n = axis < p->t->rank ? shown(p->t->shape[axis], p->edge[axis]) : 0;

	if (axis == p->t->rank) {
		leaf(p);
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		p->index[axis] = shown_index(i, p->t->shape[axis], p->edge[axis]);
		if (p->index[axis] >= 0)
			visit(p, axis + 1, leaf);
	}
}

static void leaf_range(struct printer *p)
{
	double v = fabs(value_at(p));

	if (!isfinite(v))
		return;
	p->fractional = p->fractional || v != floor(v);
	if (v == 0)
		return;
	p->lo = fmin(p->lo, v);
	p->hi = fmax(p->hi, v);
}

static void leaf_width(struct printer *p)
{
	char text[64];
	int n = element_text(p, text);

	p->width = n > p->width ? n : p->width;
}

static void choose_style(struct printer *p)
{
	const struct ql_dtype_info *d = &ql_dtypes[p->t->dtype];

	p->style.boolean = d->kind == QL_KIND_BOOL && !p->t->q;
	if (d->kind == QL_KIND_FLOAT || p->t->q) {
		p->lo = INFINITY;
		p->hi = 0;
		visit(p, 0, leaf_range);
		p->style.whole = !p->fractional && p->hi < 1e7;
		p->style.scientific =
			!p->style.whole && p->hi > 0 && (p->hi >= 1e5 || p->hi < 1e-3 || p->lo < 1e-4 * p->hi);
		if (!p->style.whole && p->hi < 1e5 && p->hi >= 1e-2)
			p->style.scientific = false;
	}
	visit(p, 0, leaf_width);
}

static void add_element(struct printer *p)
{
	char text[64];

	element_text(p, text);
	for (int k = (int)strlen(text); k < p->width + 2; k++)
		luaL_addchar(p->b, ' ');
	luaL_addstring(p->b, text);
}

/* The only axis: lines of as many elements as fit. */
static void add_line(struct printer *p)
{
	int64_t n = shown(p->t->shape[0], p->edge[0]);
	int column = 0;

	for (int64_t i = 0; i < n; i++) {
		p->index[0] = shown_index(i, p->t->shape[0], p->edge[0]);
		if (p->index[0] < 0) {
			luaL_addstring(p->b, "  …");
			column += 3;
			continue;
		}
		if (column && column + p->width + 2 > p->line) {
			luaL_addstring(p->b, "\n");
			column = 0;
		}
		add_element(p);
		column += p->width + 2;
	}
}

/* How many columns of the last axis a line has room for; at least one. */
static void choose_columns(struct printer *p)
{
	int64_t size = p->t->shape[p->t->rank - 1], wanted = shown(size, p->edge[p->t->rank - 1]);
	int room = (p->line - 3) / (p->width + 2); /* beside the ellipsis */

	if (wanted == size && size * (p->width + 2) <= p->line) {
		p->head = (int)size;
		return;
	}
	if (wanted < size && room > 2 * EDGE)
		room = 2 * EDGE;
	p->head = room < 1 ? 1 : (room + 1) / 2;
	p->tail = room / 2;
}

static void add_row(struct printer *p, int axis)
{
	int64_t size = p->t->shape[axis];

	for (int i = 0; i < p->head; i++) {
		p->index[axis] = i;
		add_element(p);
	}
	if (p->head + p->tail < size)
		luaL_addstring(p->b, "  …");
	for (int64_t i = size - p->tail; i < size; i++) {
		p->index[axis] = i;
		add_element(p);
	}
}

/* Matrices, each under its own index line when there are more than two axes. */
static void add_blocks(struct printer *p, int axis)
{
	int64_t n = shown(p->t->shape[axis], p->edge[axis]);
	char text[32];

	for (int64_t i = 0; i < n; i++) {
		p->index[axis] = shown_index(i, p->t->shape[axis], p->edge[axis]);
		if (p->index[axis] < 0) {
			luaL_addstring(p->b, "\n  …");
			continue;
		}
		if (axis < p->t->rank - 2) {
			add_blocks(p, axis + 1);
			continue;
		}
		if (axis > 0 && i == 0) {
			luaL_addstring(p->b, "\n[");
			for (int d = 0; d < axis; d++) {
				snprintf(text, sizeof(text), "%lld, ", (long long)p->index[d] + 1);
				luaL_addstring(p->b, text);
			}
			luaL_addstring(p->b, ":, :]");
		}
		luaL_addstring(p->b, "\n");
		add_row(p, axis + 1);
	}
}

/* The lines of the values, and the header. */
static int64_t lines_of(const struct printer *p)
{
	int rank = p->t->rank;
	int64_t lines = 1 + shown(p->t->shape[rank - 2], p->edge[rank - 2]);

	for (int d = rank - 3; d >= 0; d--) {
		int64_t n = shown(p->t->shape[d], p->edge[d]);
		bool whole = shown_index(n - 1, p->t->shape[d], p->edge[d]) == n - 1;

		lines = whole ? n * lines : (n - 1) * lines + 1;
	}
	return lines + 1;
}

/* How much of each axis is shown: as much as there are lines for. */
static void choose_edges(struct printer *p)
{
	static const int64_t fewer[] = {ALL, EDGE, 2, 1};
	int64_t most = ql_tensor_nelem(p->t) <= QL_PRINT_MAX ? ALL : EDGE, limit = ql_setting_int(QL_SETTING_lines);
	int rank = p->t->rank;

	for (int d = 0; d < rank; d++)
		p->edge[d] = most;
	for (int row = 0; rank > 2 && limit && row < 4; row++) {
		p->edge[rank - 2] = fewer[row] < most ? fewer[row] : most;
		for (int lead = 0; lead < 4; lead++) {
			for (int d = 0; d < rank - 2; d++)
				p->edge[d] = fewer[lead] < most ? fewer[lead] : most;
			if (lines_of(p) <= limit)
				return;
		}
	}
	for (int d = 0; d < rank - 2 && limit && lines_of(p) > limit; d++)
		p->edge[d] = 0;
}

/* `column`: where the header ended */
static void add_values(lua_State *L, luaL_Buffer *b, const struct ql_tensor *t, int column)
{
	struct printer p = {.L = L, .b = b, .t = t, .line = ql_width()};
	char text[64];

	if (ql_tensor_nelem(t) == 0)
		return;
	choose_edges(&p);
	choose_style(&p);
	if (t->rank == 0) {
		element_text(&p, text);
		luaL_addstring(b, text);
	} else if (t->rank == 1) {
		if (column + (p.width + 2) * shown(t->shape[0], p.edge[0]) > p.line)
			luaL_addstring(b, "\n");
		add_line(&p);
	} else {
		choose_columns(&p);
		add_blocks(&p, 0);
	}
}

int ql_print_tostring(lua_State *L)
{
	struct ql_tensor *t, *values;
	luaL_Buffer b;
	int column;

	ql_check_tensor(L, 1, "tostring");
	lua_settop(L, 1);
	t = values = ql_host_tensor(L, 1); /* the one wait, which raises what kernels found in values */
	if (t->q && ql_tensor_nelem(t) <= QL_PRINT_MAX) {
		struct ql_tensor **box = ql_box_new(L);
		enum ql_status status = ql_decode(ql_ctx_of(L), t, box);

		if (status)
			return ql_raise(L, status);
		values = *box;
	}
	luaL_buffinit(L, &b);
	column = add_header(L, &b, t);
	if (t->rank == 0 && t->q)
		luaL_addstring(&b, "  ");
	add_values(L, &b, values, column);
	luaL_pushresult(&b);
	ql_pay_gc(L);
	return 1;
}
