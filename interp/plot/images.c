/* SPDX-License-Identifier: MIT
 * Images from Lua: tensors of the layouts in use, (H, W), (C, H, W), (H, W, C), and batches of them, as
 * numbers in the order image, row, column, channel. Alpha is blended over white.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "interp/plot/read.h"

/* Images of a batch that are shown. */
#define MOST 64

/* Axes of the tensor, -1: none. */
struct axes {
	int image, channel, row, column;
};

static bool is_channels(int64_t n)
{
	return n == 1 || n == 3;
}

/* Channels last, as in files: with alpha only in integers. */
static bool ends_with_channels(const struct ql_tensor *t)
{
	int64_t n = t->shape[t->rank - 1];
	bool integers = !t->q && (t->dtype == QL_uint8 || t->dtype == QL_uint16);

	return is_channels(n) || (integers && (n == 2 || n == 4));
}

static const char *layout_of(const struct ql_plot_reader *r)
{
	const struct ql_option *o = ql_figure_option(r->f, "layout");

	return o ? o->s : "auto";
}

/* A tensor of rank 3 without a layout: channels first or last, else a batch of gray images. */
static const char *guess(const struct ql_plot_reader *r, const struct ql_tensor *t)
{
	bool first = is_channels(t->shape[0]), last = ends_with_channels(t);

	if (first && last)
		ql_read_fail(r,
			"(%lld, %lld, %lld) may have its channels first or last; layout='chw' or 'hwc' says which",
			(long long)t->shape[0], (long long)t->shape[1], (long long)t->shape[2]);
	return first ? "chw" : last ? "hwc" : "nhw";
}

static struct axes axes_of(const struct ql_plot_reader *r, const struct ql_tensor *t)
{
	const char *layout = layout_of(r);
	struct axes a = {-1, -1, -1, -1};

	if (!strcmp(layout, "auto"))
		layout = t->rank == 2               ? "hw"
			 : t->rank == 3             ? guess(r, t)
			 : is_channels(t->shape[1]) ? "nchw"
			 : ends_with_channels(t)    ? "nhwc"
						    : "nchw";
	if ((int)strlen(layout) != t->rank)
		ql_read_fail(r, "wanted a tensor of rank %d for layout='%s', got one of rank %d", (int)strlen(layout),
			layout, t->rank);
	for (int i = 0; layout[i]; i++) {
		int *axis = layout[i] == 'n'   ? &a.image
			    : layout[i] == 'c' ? &a.channel
			    : layout[i] == 'h' ? &a.row
					       : &a.column;

		*axis = i;
	}
	return a;
}

/* The tensor on top becomes what its method gives. */
static struct ql_tensor *apply(const struct ql_plot_reader *r, const char *method, int axis, int64_t n)
{
	lua_State *L = r->L;
	struct ql_tensor *t;

	lua_getfield(L, -1, method);
	lua_insert(L, -2);
	if (n) {
		lua_pushinteger(L, axis + 1);
		lua_pushinteger(L, 1);
		lua_pushinteger(L, n);
	}
	lua_call(L, n ? 4 : 1, 1);
	t = ql_test_tensor(L, -1);
	if (!t)
		ql_read_fail(r, "wanted a tensor from its method %s", method);
	return t;
}

static double *numbers(const struct ql_plot_reader *r, int64_t n)
{
	double *at = ql_alloc_array_zeroed(r->f->ctx, n, sizeof(double));

	if (!at)
		ql_raise(r->L, QL_ERR_MEMORY);
	return at;
}

/* The value of a full channel; 0: not known. */
static double white_of(const struct ql_tensor *t)
{
	return t->q                         ? 0
	       : t->dtype == QL_uint8       ? 255
	       : t->dtype == QL_uint16      ? 65535
	       : ql_dtype_is_bool(t->dtype) ? 1
					    : 0;
}

/* Distance in a contiguous tensor between neighbours along the axis. */
static int64_t step_of(const struct ql_tensor *t, int axis)
{
	int64_t step = 1;

	if (axis < 0)
		return 0;
	for (int i = t->rank - 1; i > axis; i--)
		step *= t->shape[i];
	return step;
}

/* Copies `from`, the values of t, into the grid; an even number of channels ends with alpha. */
static void arrange(
	struct ql_figure *f, const struct ql_tensor *t, const struct axes *a, const double *from, int64_t given)
{
	int64_t n = step_of(t, a->image), c = step_of(t, a->channel), h = step_of(t, a->row), w = step_of(t, a->column);
	double white = f->white > 0 ? f->white : 1, *to = f->grid;

	for (int64_t i = 0; i < f->images * f->rows * f->columns; i++) {
		const double *p =
			from + i / (f->rows * f->columns) * n + i / f->columns % f->rows * h + i % f->columns * w;
		double alpha = given % 2 ? 1 : p[(given - 1) * c] / white;

		for (int64_t k = 0; k < f->channels; k++)
			*to++ = alpha * p[k * c] + (1 - alpha) * white;
	}
}

static void check_shape(const struct ql_plot_reader *r, const struct ql_tensor *t, int64_t channels)
{
	if (channels < 1 || channels > 4)
		ql_read_fail(
			r, "wanted 1 (gray) or 3 (RGB) channels, 2 or 4 with alpha, got %lld", (long long)channels);
	if (!ql_tensor_nelem(t))
		ql_read_fail(r, "wanted an image with pixels, got an empty tensor");
}

void ql_read_images(struct ql_plot_reader *r)
{
	lua_State *L = r->L;
	struct ql_figure *f = r->f;
	struct ql_tensor *t;
	struct axes a;
	int64_t given, all;

	r->what = "image";
	lua_rawgeti(L, r->table, 1);
	t = ql_test_tensor(L, -1);
	if (!t || lua_rawlen(L, r->table) != 1 || t->rank < 2 || t->rank > 4)
		ql_read_fail(r, "wanted one tensor of shape (H, W), (C, H, W), (H, W, C) or a batch of them, got %s",
			!t                             ? luaL_typename(L, -1)
			: lua_rawlen(L, r->table) != 1 ? "several"
						       : "one of another rank");
	a = axes_of(r, t);
	given = a.channel < 0 ? 1 : t->shape[a.channel];
	check_shape(r, t, given);
	all = a.image < 0 ? 1 : t->shape[a.image];
	if (all > MOST) {
		snprintf(f->note, sizeof(f->note), "the first %d of %lld images", MOST, (long long)all);
		t = apply(r, "narrow", a.image, MOST);
	}
	f->codes = t->q && given == 1 && ql_figure_bool(f, "codes", t->rank == 2);
	if (ql_figure_bool(f, "codes", false) && !f->codes)
		ql_read_fail(r, "codes: wanted a quantized tensor of one channel, got %s",
			t->q ? "several channels" : "a plain one");
	if (f->codes)
		t = apply(r, "codes", 0, 0);
	f->white = f->codes ? 0 : white_of(t);
	f->images = a.image < 0 ? 1 : t->shape[a.image];
	f->channels = given > 2 ? 3 : 1;
	f->derived = numbers(r, ql_tensor_nelem(t));
	ql_read_numbers(r, lua_gettop(L), ql_tensor_nelem(t), f->derived);
	f->grid = numbers(r, f->images * f->channels * t->shape[a.row] * t->shape[a.column]);
	f->rows = t->shape[a.row];
	f->columns = t->shape[a.column];
	arrange(f, t, &a, f->derived, given);
	ql_free(f->ctx, f->derived);
	f->derived = NULL;
}
