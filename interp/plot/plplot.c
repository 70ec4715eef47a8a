/* SPDX-License-Identifier: MIT
 * The only file that knows plplot (5.15, LGPL; never linked: opened by name at the first picture).
 *
 * plplot is used as a drawing device: one window in pixels, lines, polygons and text; all layout is ours.
 * Three habits of it are fenced in here. It asks on stdin when a device is unknown: the list of devices is
 * looked up first. It ends the process on errors: its exit handler jumps back into ql_plplot_render, over
 * plplot's frames only, since nothing of ours runs or allocates while a scene is replayed. It writes to
 * stderr: stderr is put aside meanwhile. It has one global state, so only the interpreter's thread comes
 * here.
 */
#include "interp/plot/plplot.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/plot/hush.h"
#include "interp/plot/palette.h"
#include "interp/plot/svg.h"

/* name, result, parameters: what is used of plplot.h, where int32_t is called PLINT and double PLFLT */
#define FUNCTIONS(F) \
	F(c_plsdev, void, (const char *)) \
	F(c_plsfnam, void, (const char *)) \
	F(plsfile, void, (FILE *)) \
	F(c_plspage, void, (double, double, int32_t, int32_t, int32_t, int32_t)) \
	F(c_plscmap0, void, (const int32_t *, const int32_t *, const int32_t *, int32_t)) \
	F(c_plinit, void, (void)) \
	F(c_pladv, void, (int32_t)) \
	F(c_plend, void, (void)) \
	F(c_plvpor, void, (double, double, double, double)) \
	F(c_plwind, void, (double, double, double, double)) \
	F(c_plscol0a, void, (int32_t, int32_t, int32_t, int32_t, double)) \
	F(c_plcol0, void, (int32_t)) \
	F(c_plwidth, void, (double)) \
	F(c_plstyl, void, (int32_t, const int32_t *, const int32_t *)) \
	F(c_plline, void, (int32_t, const double *, const double *)) \
	F(c_plfill, void, (int32_t, const double *, const double *)) \
	F(c_plsfont, void, (int32_t, int32_t, int32_t)) \
	F(c_plschr, void, (double, double)) \
	F(c_plptex, void, (double, double, double, double, double, const char *)) \
	F(c_plgver, void, (char *)) \
	F(plgDevs, void, (const char ***, const char ***, int *)) \
	F(plsexit, void, (int (*)(const char *))) \
	F(plsabort, void, (void (*)(const char *)))

#define F(name, result, parameters) typedef result name##_fn parameters;
FUNCTIONS(F)
#undef F

/* Our prototypes against the header, on machines that have it. */
#if defined(__has_include)
#if __has_include(<plplot/plplot.h>)
#include <plplot/plplot.h>
#define F(name, result, parameters) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&name), name##_fn *), \
		"plplot.h declares " #name " otherwise");
FUNCTIONS(F)
#undef F
#endif
#endif

static struct {
	bool tried;
	void *library;
#define F(name, result, parameters) name##_fn *name;
	FUNCTIONS(F)
#undef F
} pl;

#define INSTALL "; install it with: apt-get install --no-install-recommends libplplot17 plplot-driver-cairo"
#define SANS 0
/* Pixels of the font per millimetre as given to plplot, whatever the page; a little more for the svg driver,
 * which rounds down to whole pixels. */
#define PIXELS_PER_MM 3.78
#define SVG_PIXELS_PER_MM 3.74

static bool load(void)
{
	const char *wanted = getenv("QUOLL_PLPLOT");
	bool all = true;

	if (pl.tried)
		return pl.library != NULL;
	pl.tried = true;
	pl.library = dlopen(wanted && *wanted ? wanted : "libplplot.so.17", RTLD_NOW | RTLD_LOCAL);
	if (!pl.library)
		return false;
#define F(name, result, parameters) \
	*(void **)&pl.name = dlsym(pl.library, #name); \
	all = all && pl.name;
	FUNCTIONS(F)
#undef F
	if (!all) { /* something else of that name */
		dlclose(pl.library);
		pl.library = NULL;
	}
	return all;
}

/* ---- the fence ---- */

static jmp_buf back;
static char trouble[200];

/* plplot ends the process when this returns. */
static int leave(const char *message)
{
	snprintf(trouble, sizeof(trouble), "%s", message && *message ? message : "plplot gave up");
	longjmp(back, 1);
	return 1;
}

static void note_abort(const char *message)
{
	snprintf(trouble, sizeof(trouble), "%s", message);
}

/* ---- replaying ---- */

/* One replay: lives outside the function that calls setjmp, so that all of it is intact after a jump. */
static struct {
	const struct ql_scene *scene;
	const char *device;
	bool svg;
	double unit; /* widths of lines are given for an em of 15 */
	double *x, *y;
	char *text;
	FILE *file;
	char *buffer;
	size_t size;
} job;

static void set_ink(uint32_t rgb, double alpha)
{
	/* changing the entry is not enough: the pen keeps its colour until it is chosen again */
	pl.c_plscol0a(1, (int32_t)(rgb >> 16 & 0xFF), (int32_t)(rgb >> 8 & 0xFF), (int32_t)(rgb & 0xFF), alpha);
	pl.c_plcol0(1);
}

static void set_window(double x0, double y0, double x1, double y1)
{
	double w = job.scene->width, h = job.scene->height;

	x0 = fmin(fmax(x0, 0), w - 1);
	y0 = fmin(fmax(y0, 0), h - 1);
	x1 = fmin(fmax(x1, x0 + 1), w);
	y1 = fmin(fmax(y1, y0 + 1), h);
	pl.c_plvpor(x0 / w, x1 / w, y0 / h, y1 / h);
	pl.c_plwind(x0, x1, y0, y1);
}

static void set_dash(int dash)
{
	/* lengths in micrometres */
	static const int32_t mark[4][2] = {{0, 0}, {1500, 0}, {400, 0}, {1800, 400}};
	static const int32_t space[4][2] = {{0, 0}, {1000, 0}, {700, 0}, {700, 700}};

	pl.c_plstyl(dash == 0 ? 0 : dash == 3 ? 2 : 1, mark[dash & 3], space[dash & 3]);
}

static void stroke(size_t n, double width, int dash)
{
	pl.c_plwidth(width * job.unit);
	if (dash)
		set_dash(dash);
	pl.c_plline((int32_t)n, job.x, job.y);
	if (dash)
		set_dash(0);
}

static void put_points(const struct ql_item *item)
{
	for (size_t i = 0; i < item->n; i++) {
		job.x[i] = job.scene->point[item->first + i].x;
		job.y[i] = job.scene->point[item->first + i].y;
	}
}

static void fill(size_t n)
{
	pl.c_plwidth(0); /* the drivers also stroke the edge of what they fill */
	pl.c_plfill((int32_t)n, job.x, job.y);
}

static void fill_box(double x0, double y0, double x1, double y1)
{
	job.x[0] = job.x[3] = x0;
	job.x[1] = job.x[2] = x1;
	job.y[0] = job.y[1] = y0;
	job.y[2] = job.y[3] = y1;
	fill(4);
}

static void cross(double x, double y, double dx, double dy, double width)
{
	job.x[0] = x - dx;
	job.y[0] = y - dy;
	job.x[1] = x + dx;
	job.y[1] = y + dy;
	stroke(2, width, 0);
}

static void mark(const struct ql_item *item)
{
	double r = item->x1 / 2, d = r * 0.75;

	if (item->detail == QL_SHAPE_PLUS) {
		cross(item->x0, item->y0, r, 0, 2);
		cross(item->x0, item->y0, 0, r, 2);
	} else if (item->detail == QL_SHAPE_CROSS) {
		cross(item->x0, item->y0, d, d, 2);
		cross(item->x0, item->y0, d, -d, 2);
	} else {
		fill(ql_shape_corners((enum ql_shape)item->detail, item->x0, item->y0, item->x1, job.x, job.y));
	}
}

/* A line one pixel wide is sharp in the middle of a pixel. */
static double sharp(double v)
{
	return floor(v) + 0.5;
}

static void rule(const struct ql_item *item)
{
	static const uint32_t colour[] = {0xE3E3E3, 0xF1F1F1, 0x4D4D4D, 0x4D4D4D};
	bool upright = item->x0 == item->x1;

	set_ink(colour[item->detail], 1);
	job.x[0] = upright ? sharp(item->x0) : item->x0;
	job.x[1] = upright ? job.x[0] : item->x1;
	job.y[0] = upright ? item->y0 : sharp(item->y0);
	job.y[1] = upright ? item->y1 : job.y[0];
	stroke(2, 1, 0);
}

/* plplot's escape character is doubled. Returns job.text. */
static const char *escaped(const char *text)
{
	char *to = job.text;

	for (; *text; text++) {
		if (*text == '#')
			*to++ = '#';
		*to++ = *text;
	}
	*to = '\0';
	return job.text;
}

static void text(const struct ql_item *item)
{
	static const double dx[] = {1, 0, 0.766}, dy[] = {0, 1, 0.643};

	pl.c_plsfont(SANS, 0, item->ink.bold);
	pl.c_plschr(job.scene->em * item->x1 / (job.svg ? SVG_PIXELS_PER_MM : PIXELS_PER_MM), 1);
	pl.c_plptex(item->x0, item->y0, dx[item->detail], dy[item->detail], item->y1,
		escaped(job.scene->text + item->first));
}

/* 256 shades: more than an eye tells apart. */
static uint32_t shade(const struct ql_item *item, int64_t i)
{
	double value = job.scene->value[item->first + (size_t)i];

	if (item->detail != QL_GRADIENT_RGB)
		value = rint(value * 255) / 255;
	return ql_gradient_at((enum ql_gradient)item->detail, value);
}

/* Runs of one colour become one box; boxes overlap a little, so that no seam shines through. */
static void cells(const struct ql_item *item)
{
	int64_t columns = item->columns, n = (int64_t)item->n;
	double w = (item->x1 - item->x0) / (double)columns, h = (item->y1 - item->y0) * (double)columns / (double)n;

	for (int64_t i = 0, end; i < n; i = end) {
		double y1 = item->y1 - h * (double)(i / columns), x0 = item->x0 + w * (double)(i % columns);
		uint32_t rgb = shade(item, i);

		for (end = i + 1; end % columns && shade(item, end) == rgb;)
			end++;
		set_ink(rgb, 1);
		fill_box(x0, fmax(y1 - h - 0.4, item->y0), fmin(x0 + w * (double)(end - i) + 0.4, item->x1), y1);
	}
}

static void replay_item(const struct ql_item *item)
{
	switch ((enum ql_item_type)item->type) {
	case QL_ITEM_LINE:
		set_ink(item->ink.rgb, (double)item->ink.alpha);
		put_points(item);
		stroke(item->n, (double)item->ink.width, item->ink.dash);
		break;
	case QL_ITEM_AREA:
		set_ink(item->ink.rgb, (double)item->ink.alpha);
		put_points(item);
		fill(item->n);
		break;
	case QL_ITEM_RECT:
		set_ink(item->ink.rgb, (double)item->ink.alpha);
		fill_box(item->x0, item->y0, item->x1, item->y1);
		break;
	case QL_ITEM_MARK:
		set_ink(item->ink.rgb, (double)item->ink.alpha);
		mark(item);
		break;
	case QL_ITEM_TEXT:
		set_ink(item->ink.rgb, (double)item->ink.alpha);
		text(item);
		break;
	case QL_ITEM_RULE: rule(item); break;
	case QL_ITEM_CELLS: cells(item); break;
	case QL_ITEM_CLIP: set_window(item->x0, item->y0, item->x1, item->y1); break;
	}
}

static void replay(void)
{
	static const int32_t white[2] = {255, 255};
	const struct ql_scene *s = job.scene;

	pl.c_plsdev(job.device);
	pl.c_plsfnam("memory"); /* before plsfile, which it would undo; no file of this name is made */
	pl.plsfile(job.file);
	pl.c_plspage(96, 96, (int32_t)s->width, (int32_t)s->height, 0, 0);
	pl.c_plscmap0(white, white, white, 2); /* entry 0: the page; entry 1: the pen, set for each item */
	pl.c_plinit();
	pl.c_pladv(0);
	set_window(0, 0, s->width, s->height);
	for (size_t i = 0; i < s->n_items; i++)
		replay_item(&s->item[i]);
	pl.c_plend(); /* closes the file */
	job.file = NULL;
}

/* false: plplot gave up, and `trouble` says why */
static bool guarded(void (*run)(void))
{
	int saved = ql_hush_begin();
	bool done = false;

	*trouble = '\0';
	pl.plsexit(leave);
	pl.plsabort(note_abort);
	if (!setjmp(back)) {
		run();
		done = !*trouble;
	}
	ql_hush_end(saved);
	return done;
}

/* ---- devices ---- */

static struct {
	int n;
	const char *menu[128], *name[128];
} devices;

static void list_devices(void)
{
	const char **menu = devices.menu, **name = devices.name;

	devices.n = 128 - 1;
	pl.plgDevs(&menu, &name, &devices.n);
}

/* The list is made anew each time: its strings live until the next plend. */
static bool has_device(const char *name)
{
	devices.n = 0;
	if (!guarded(list_devices))
		return false;
	for (int i = 0; i < devices.n; i++)
		if (!strcmp(devices.name[i], name))
			return true;
	return false;
}

/* ---- */

static enum ql_status choose(struct ql_ctx *ctx, enum ql_picture picture)
{
	static const char *const device[] = {"pngcairo", "svg", "pdfcairo"}, *const name[] = {"PNG", "SVG", "PDF"};

	if (!load())
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "plot: %s: the plotting library plplot was not found" INSTALL,
			name[picture]);
	job.device = device[picture];
	job.svg = picture == QL_PICTURE_SVG;
	if (!has_device(job.device))
		return ql_fail(ctx, QL_ERR_UNSUPPORTED, "plot: %s: plplot has no driver %s" INSTALL, name[picture],
			job.device);
	return QL_OK;
}

/* Room for the longest path and text, so that nothing is allocated during the replay. */
static enum ql_status prepare(const struct ql_scene *s)
{
	size_t points = 64, chars = 0;

	for (size_t i = 0; i < s->n_items; i++) {
		const struct ql_item *item = &s->item[i];

		if (item->type == QL_ITEM_LINE || item->type == QL_ITEM_AREA)
			points = item->n > points ? item->n : points;
		else if (item->type == QL_ITEM_TEXT)
			chars = item->n > chars ? item->n : chars;
	}
	job.scene = s;
	job.unit = s->em / 15;
	job.x = ql_alloc_array(s->ctx, (int64_t)points, sizeof(double));
	job.y = ql_alloc_array(s->ctx, (int64_t)points, sizeof(double));
	job.text = ql_alloc(s->ctx, 2 * chars + 1) /* size: twice a text that exists */;
	job.buffer = NULL;
	job.size = 0;
	job.file = job.x && job.y && job.text ? open_memstream(&job.buffer, &job.size) : NULL;
	return job.file ? QL_OK : ql_fail(s->ctx, QL_ERR_MEMORY, "plot: no memory for the picture");
}

static enum ql_status finish(const struct ql_scene *s, struct ql_encoded *out)
{
	if (job.svg)
		return ql_svg_tidy(s->ctx, job.buffer, job.size, out);
	out->at = ql_alloc(s->ctx, job.size);
	if (!out->at)
		return QL_ERR_MEMORY;
	memcpy(out->at, job.buffer, job.size);
	out->n = job.size;
	return QL_OK;
}

enum ql_status ql_plplot_render(const struct ql_scene *s, enum ql_picture picture, struct ql_encoded *out)
{
	enum ql_status status = s->status;

	if (!status)
		status = choose(s->ctx, picture);
	if (status)
		return status;
	status = prepare(s);
	if (!status && (!guarded(replay) || !job.size))
		status = ql_fail(s->ctx, QL_ERR_IO, "plot: plplot could not draw the picture: %s",
			*trouble ? trouble : "it wrote nothing");
	if (!status)
		status = finish(s, out);
	if (job.file)
		fclose(job.file);
	free(job.buffer);
	ql_free(s->ctx, job.x);
	ql_free(s->ctx, job.y);
	ql_free(s->ctx, job.text);
	return status;
}

bool ql_plplot_describe(char *text, size_t size)
{
	char version[80] = "";
	bool cairo, svg;

	if (!load()) {
		snprintf(text, size, "no plplot: no pictures, text plots only" INSTALL);
		return false;
	}
	pl.c_plgver(version);
	cairo = has_device("pngcairo") && has_device("pdfcairo");
	svg = has_device("svg");
	if (cairo && svg)
		snprintf(text, size, "%s", version);
	else
		snprintf(text, size, "%s, but no driver for%s%s" INSTALL, version, cairo ? "" : " PNG and PDF",
			svg ? "" : " SVG");
	return cairo && svg;
}
