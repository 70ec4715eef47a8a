/* SPDX-License-Identifier: MIT
 * The figure object: series that grow, categories, grouping, options by name, and the note about what the
 * picture does not show.
 */
#include "interp/plot/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "interp/plot/kind.h"

enum ql_status ql_figure_new(struct ql_ctx *ctx, const struct ql_plot_kind *kind, struct ql_figure **out)
{
	struct ql_figure *f = ql_alloc_zeroed(ctx, sizeof(*f));

	if (!f)
		return QL_ERR_MEMORY;
	f->ctx = ctx;
	f->kind = kind;
	*out = f;
	return QL_OK;
}

char **ql_texts_new(struct ql_ctx *ctx, int64_t n)
{
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)n, sizeof(char *), &bytes))
		bytes = UINT64_MAX;
	return ql_alloc_zeroed(ctx, bytes);
}

static void texts_free(struct ql_ctx *ctx, char **text, int64_t n)
{
	for (int64_t i = 0; text && i < n; i++)
		ql_free(ctx, text[i]);
	ql_free(ctx, text);
}

static void list_free(struct ql_ctx *ctx, struct ql_list *list)
{
	texts_free(ctx, list->text, list->n);
	ql_free(ctx, list->number);
	*list = (struct ql_list){0};
}

static void series_free(struct ql_ctx *ctx, struct ql_series *s)
{
	ql_free(ctx, s->name);
	ql_free(ctx, s->x);
	ql_free(ctx, s->y);
	ql_free(ctx, s->lo);
	ql_free(ctx, s->hi);
	texts_free(ctx, s->label, s->n);
}

void ql_figure_free(struct ql_figure *f)
{
	if (!f)
		return;
	for (int i = 0; i < QL_FIGURE_OPTIONS; i++) {
		ql_free(f->ctx, f->option[i].s);
		list_free(f->ctx, &f->option[i].list);
	}
	for (int64_t i = 0; i < f->n_series; i++)
		series_free(f->ctx, &f->series[i]);
	ql_free(f->ctx, f->series);
	list_free(f->ctx, &f->names);
	ql_free(f->ctx, f->grid);
	ql_free(f->ctx, f->derived);
	ql_free(f->ctx, f);
}

/* Makes room for one entry more in an array that doubles: a power of two is full. */
static enum ql_status grow(struct ql_ctx *ctx, void **at, int64_t n, size_t size)
{
	uint64_t bytes;
	void *p;

	if (n & (n - 1))
		return QL_OK;
	if (!ql_size_mul((uint64_t)ql_mul64(n, 2) + (n == 0), size, &bytes))
		bytes = UINT64_MAX;
	p = ql_realloc(ctx, *at, bytes);
	if (!p)
		return QL_ERR_MEMORY;
	*at = p;
	return QL_OK;
}

enum ql_status ql_figure_add(struct ql_figure *f, int64_t n, bool with_x, struct ql_series **out)
{
	struct ql_series *s;
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)n, sizeof(double), &bytes))
		bytes = UINT64_MAX;
	if (grow(f->ctx, (void **)&f->series, f->n_series, sizeof(*f->series)))
		return QL_ERR_MEMORY;
	s = &f->series[f->n_series++];
	*s = (struct ql_series){.n = n};
	s->y = ql_alloc_zeroed(f->ctx, bytes);
	if (with_x)
		s->x = ql_alloc_zeroed(f->ctx, bytes);
	*out = s;
	return !s->y || (with_x && !s->x) ? QL_ERR_MEMORY : QL_OK;
}

int64_t ql_figure_category(struct ql_figure *f, const char *name)
{
	struct ql_list *names = &f->names;

	for (int64_t i = 0; i < names->n; i++)
		if (!strcmp(names->text[i], name))
			return i + 1;
	if (grow(f->ctx, (void **)&names->text, names->n, sizeof(char *)))
		return 0;
	names->text[names->n] = ql_strdup(f->ctx, name);
	return names->text[names->n] ? ++names->n : 0;
}

/* Bounds for a series that has none. */
static bool add_bounds(struct ql_ctx *ctx, struct ql_series *s)
{
	s->lo = ql_alloc_array_zeroed(ctx, s->n, sizeof(double));
	s->hi = ql_alloc_array_zeroed(ctx, s->n, sizeof(double));
	return s->lo && s->hi;
}

/* Moves the points of the group `name` out of `from` into a series of their own. Labels change owner. */
static enum ql_status split_one(struct ql_figure *f, int64_t from, char *const *group, const char *name)
{
	struct ql_series *to, *s = &f->series[from];
	int64_t n = 0;

	for (int64_t i = 0; i < s->n; i++)
		n += !strcmp(group[i], name);
	if (ql_figure_add(f, n, s->x != NULL, &to))
		return QL_ERR_MEMORY;
	s = &f->series[from];
	to->name = ql_strdup(f->ctx, name);
	if (s->label)
		to->label = ql_texts_new(f->ctx, n);
	if (!to->name || (s->label && !to->label) || (s->lo && !add_bounds(f->ctx, to)))
		return QL_ERR_MEMORY;
	n = 0;
	for (int64_t i = 0; i < s->n; i++) {
		if (strcmp(group[i], name) != 0)
			continue;
		to->y[n] = s->y[i];
		if (to->x)
			to->x[n] = s->x[i];
		if (to->lo) {
			to->lo[n] = s->lo[i];
			to->hi[n] = s->hi[i];
		}
		if (to->label) {
			to->label[n] = s->label[i];
			s->label[i] = NULL;
		}
		n++;
	}
	return QL_OK;
}

static bool seen_before(char *const *group, int64_t i)
{
	for (int64_t k = 0; k < i; k++)
		if (!strcmp(group[k], group[i]))
			return true;
	return false;
}

enum ql_status ql_figure_split(struct ql_figure *f, int64_t index, char *const *group)
{
	int64_t n = f->series[index].n;
	enum ql_status status = QL_OK;

	for (int64_t i = 0; i < n && !status; i++)
		if (!seen_before(group, i))
			status = split_one(f, index, group, group[i]);
	if (status)
		return status;
	series_free(f->ctx, &f->series[index]);
	f->n_series--;
	memmove(&f->series[index], &f->series[index + 1], (size_t)(f->n_series - index) * sizeof(*f->series));
	return QL_OK;
}

static bool hidden(const struct ql_figure *f, const struct ql_series *s, int64_t i)
{
	double x = ql_series_x(s, i), y = s->y[i];

	return !isfinite(x) || !isfinite(y) || (x <= 0 && ql_figure_bool(f, "xlog", false)) ||
	       (y <= 0 && ql_figure_bool(f, "ylog", false));
}

static void note_hidden(struct ql_figure *f)
{
	int64_t count = 0, all = 0;
	bool log = ql_figure_bool(f, "xlog", false) || ql_figure_bool(f, "ylog", false);

	for (int64_t k = 0; k < f->n_series; k++) {
		all += f->series[k].n;
		for (int64_t i = 0; i < f->series[k].n; i++)
			count += hidden(f, &f->series[k], i);
	}
	if (count)
		snprintf(f->note, sizeof(f->note), "%lld of %lld values not shown (not finite%s)", (long long)count,
			(long long)all, log ? ", or not above 0 on a logarithmic axis" : "");
}

static enum ql_status check_limits(struct ql_figure *f, const char *option, const char *log)
{
	const struct ql_option *o = ql_figure_option(f, option);
	struct ql_scale scale;
	double limit[2];
	bool logarithmic = ql_figure_bool(f, log, false);
	char text[64];

	if (!o)
		return QL_OK;
	if (!ql_figure_pair(f, option, limit) || !ql_scale_fixed(limit[0], limit[1], logarithmic, &scale))
		return ql_fail(f->ctx, QL_ERR_ARGUMENT,
			"plot.%s: %s: wanted {lo, hi}, two different finite numbers%s, got %s", f->kind->doc.name,
			option, logarithmic ? " above 0" : "", ql_figure_pair_text(f, option, text));
	return QL_OK;
}

static enum ql_status check_size(struct ql_figure *f, const char *option)
{
	int64_t size = ql_figure_int(f, option, 600);

	if (size >= 100 && size <= 10000)
		return QL_OK;
	return ql_fail(f->ctx, QL_ERR_ARGUMENT, "plot.%s: %s: wanted 100 to 10000 pixels, got %lld", f->kind->doc.name,
		option, (long long)size);
}

enum ql_status ql_figure_finish(struct ql_figure *f)
{
	enum ql_status status = check_limits(f, "xlim", "xlog");

	if (!status)
		status = check_limits(f, "ylim", "ylog");
	if (!status)
		status = check_size(f, "width");
	if (!status)
		status = check_size(f, "height");
	if (status)
		return status;
	if (f->kind->form == QL_FORM_POINTS)
		note_hidden(f);
	return f->kind->prepare ? f->kind->prepare(f) : QL_OK;
}

void ql_figure_describe(const struct ql_figure *f, char *text, size_t size)
{
	const char *title = ql_figure_string(f, "title");
	char what[64];

	if (f->kind->form == QL_FORM_IMAGES)
		snprintf(what, sizeof(what), "%lld of %lld x %lld%s", (long long)f->images, (long long)f->rows,
			(long long)f->columns, f->channels == 3 ? " RGB" : "");
	else if (f->kind->form == QL_FORM_MATRIX)
		snprintf(what, sizeof(what), "%lld x %lld", (long long)f->rows, (long long)f->columns);
	else
		snprintf(what, sizeof(what), "%lld series", (long long)f->n_series);
	snprintf(text, size, "%s figure, %s%s%s%s", f->kind->doc.name, what, title ? ", '" : "", title ? title : "",
		title ? "'" : "");
}

/* ---- options ---- */

const struct ql_option *ql_figure_option(const struct ql_figure *f, const char *name)
{
	const struct ql_attr *attrs = f->kind->doc.attrs;

	for (int i = 0; i < QL_FIGURE_OPTIONS && attrs[i].type != QL_ATTR_END; i++)
		if (!strcmp(attrs[i].name, name))
			return f->option[i].set ? &f->option[i] : NULL;
	return NULL;
}

const char *ql_figure_string(const struct ql_figure *f, const char *name)
{
	const struct ql_option *o = ql_figure_option(f, name);

	return o ? o->s : NULL;
}

bool ql_figure_bool(const struct ql_figure *f, const char *name, bool otherwise)
{
	const struct ql_option *o = ql_figure_option(f, name);

	return o ? o->b : otherwise;
}

int64_t ql_figure_int(const struct ql_figure *f, const char *name, int64_t otherwise)
{
	const struct ql_option *o = ql_figure_option(f, name);

	return o ? o->i : otherwise;
}

bool ql_figure_pair(const struct ql_figure *f, const char *name, double out[2])
{
	const struct ql_option *o = ql_figure_option(f, name);

	if (!o || o->list.n != 2 || !o->list.number)
		return false;
	out[0] = o->list.number[0];
	out[1] = o->list.number[1];
	return true;
}

const char *ql_figure_pair_text(const struct ql_figure *f, const char *name, char text[64])
{
	const struct ql_option *o = ql_figure_option(f, name);

	if (o && o->list.n == 2 && o->list.number)
		snprintf(text, 64, "{%.6g, %.6g}", o->list.number[0], o->list.number[1]);
	else
		snprintf(text, 64, "%lld numbers", o ? (long long)o->list.n : 0);
	return text;
}
