/* SPDX-License-Identifier: MIT
 * From a figure to bytes and files. The size of text follows the size of the picture, so that 1920 x 1200 is
 * the same picture as 960 x 600 with twice the pixels.
 */
#include "interp/plot/render.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "interp/plot/layout.h"
#include "interp/plot/text.h"
#include "tensor/io/writer.h"

static double em_of(double width, double height)
{
	return 15 * fmin(fmax(sqrt(width * height / (960.0 * 600)), 0.75), 8);
}

enum ql_status ql_figure_picture(
	const struct ql_figure *f, enum ql_picture picture, int width, int height, struct ql_encoded *out)
{
	double w = width ? width : (double)ql_figure_int(f, "width", 960);
	double h = height ? height : (double)ql_figure_int(f, "height", 600);
	struct ql_scene s;
	enum ql_status status;

	ql_scene_init(&s, f->ctx, w, h, em_of(w, h));
	s.fine_x = s.fine_y = picture == QL_PICTURE_PNG ? 2 : 6; /* each box of a vector picture costs 150 bytes */
	status = ql_figure_draw(f, &s);
	if (!status)
		status = ql_plplot_render(&s, picture, out);
	ql_scene_free(&s);
	return status;
}

enum ql_status ql_figure_text(
	const struct ql_figure *f, int columns, int rows, enum ql_colour colour, struct ql_encoded *out)
{
	struct ql_scene s;
	enum ql_status status;

	columns = columns < 20 ? 20 : columns > 1000 ? 1000 : columns;
	rows = rows < 6 ? 6 : rows > 1000 ? 1000 : rows;
	ql_scene_init(&s, f->ctx, columns * 2, rows * 4, 4);
	s.cells = true;
	s.colour = colour != QL_COLOUR_NONE;
	s.fine_x = 2;
	s.fine_y = s.colour ? 2 : 4; /* two colours fit into a character, two shades do not */
	status = ql_figure_draw(f, &s);
	if (!status)
		status = ql_text_render(&s, colour, out);
	ql_scene_free(&s);
	return status;
}

/* ---- files ---- */

static enum ql_status write_file(const struct ql_figure *f, const struct ql_encoded *bytes, const char *path)
{
	struct ql_writer w;
	enum ql_status status = ql_writer_open(f->ctx, path, &w);
	char reason[200];

	if (!status)
		status = ql_writer_put(&w, bytes->at, bytes->n);
	if (!status)
		status = ql_writer_commit(&w);
	ql_writer_close(&w);
	if (!status)
		return QL_OK;
	snprintf(reason, sizeof(reason), "%.199s", f->ctx->err);
	return ql_fail(f->ctx, status, "plot: file: '%.200s': %s", path, reason);
}

enum ql_status ql_figure_save(const struct ql_figure *f, const char *path)
{
	static const char *const extensions[] = {".png", ".svg", ".pdf"};
	const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
	struct ql_encoded bytes = {0};
	enum ql_status status = QL_ERR_ARGUMENT;

	for (int i = 0; dot && i < 3; i++)
		if (!strcasecmp(dot, extensions[i]))
			status = ql_figure_picture(f, (enum ql_picture)i, 0, 0, &bytes);
	if (dot && !strcasecmp(dot, ".txt"))
		status = ql_figure_text(f, QL_TEXT_COLUMNS, QL_TEXT_ROWS, QL_COLOUR_NONE, &bytes);
	else if (status == QL_ERR_ARGUMENT && !bytes.at)
		return ql_fail(f->ctx, status,
			"plot: file: wanted a name ending in .png, .svg, .pdf or .txt, got '%.200s'", path);
	if (!status)
		status = write_file(f, &bytes, path);
	ql_free(f->ctx, bytes.at);
	return status;
}
