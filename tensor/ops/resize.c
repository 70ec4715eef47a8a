/* SPDX-License-Identifier: MIT
 * resize: resamples images on the last two axes; axes before them are a batch. Columns are resampled before rows
 * (tensor/loops/resample.h); nearest copies elements of any type.
 */
#include <math.h>
#include <string.h>

#include "tensor/loops/dense.h"
#include "tensor/kernels/kernels.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/resize.h"
#include "tensor/parallel.h"

#define CHUNK 65536 /* elements claimed at a time */

#define MODES "nearest bilinear linear bicubic cubic area"
#define COORDS "half_pixel pytorch_half_pixel align_corners asymmetric half_pixel_symmetric"
#define ROUNDINGS "floor ceil round_prefer_floor round_prefer_ceil" /* in the order of enum ql_resample_nearest */

/* The options that the gradient reads, too. */
#define OPTIONS \
	{"size", QL_ATTR_INTS, QL_POSITIONAL, NULL, "the new height and width: {h, w}, or one number for both"}, \
		{"scale", QL_ATTR_FLOAT, 0, NULL, \
			"instead of size: the new sizes are those of x times scale, rounded down"}, \
		{"scalew", QL_ATTR_FLOAT, 0, NULL, "scale of the width (default: scale)"}, \
		{"mode", QL_ATTR_STRING, 0, MODES, \
			"nearest, bilinear (or linear), bicubic (or cubic) or area (default: bilinear)"}, \
		{"coords", QL_ATTR_STRING, 0, COORDS, \
			"which places of x and the result are matched, as in ONNX (default: half_pixel; nearest: asymmetric)"}, \
		{"rounding", QL_ATTR_STRING, 0, ROUNDINGS, \
			"nearest: which pixel is nearest (default: floor; with coords= round_prefer_floor)"}, \
		{"a", QL_ATTR_FLOAT, 0, NULL, "bicubic: coefficient of the cubic (default: -0.75)"}, \
		{"excludeoutside", QL_ATTR_BOOL, 0, NULL, \
			"bicubic: places outside of x have no weight, else that of the edge (default: false)"}, \
	{ \
		"antialias", QL_ATTR_BOOL, 0, NULL, \
			"bilinear: when it shrinks, all pixels count, not two of them (default: false)" \
	}

static const struct ql_attr attrs[] = {
	OPTIONS,
	{"out", QL_ATTR_SPEC, 0, NULL, "spec of a quantized result; of codes it stays in integers (default: float32)"},
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

struct geometry {
	struct ql_resample r;
	int64_t planes, in[2], out[2]; /* rows and columns */
	double scale[2];               /* 0: out / in */
};

/* The position of the word that an option has in its choices, or `otherwise`. */
static int choice(const struct ql_call *call, const char *name, const char *words, int otherwise)
{
	const char *word = ql_call_string(call, name, NULL);
	int i = 0;

	for (; word; i++, words += strspn(words, " ")) {
		size_t n = strcspn(words, " ");

		if (strlen(word) == n && !strncmp(word, words, n))
			return i;
		words += n;
	}
	return otherwise;
}

static enum ql_status read_rules(struct ql_ctx *ctx, const struct ql_call *call, struct ql_resample *r)
{
	static const enum ql_resample_mode modes[] = {QL_RESAMPLE_NEAREST, QL_RESAMPLE_BILINEAR, QL_RESAMPLE_BILINEAR,
		QL_RESAMPLE_CUBIC, QL_RESAMPLE_CUBIC, QL_RESAMPLE_AREA};
	const char *mode = ql_call_string(call, "mode", "bilinear");
	bool coords = ql_call_attr(call, "coords") != NULL;

	r->mode = modes[choice(call, "mode", MODES, 1)];
	r->coords = (enum ql_resample_coords)choice(
		call, "coords", COORDS, r->mode == QL_RESAMPLE_NEAREST ? QL_COORDS_ASYMMETRIC : QL_COORDS_HALF_PIXEL);
	r->nearest = (enum ql_resample_nearest)choice(
		call, "rounding", ROUNDINGS, coords ? QL_NEAREST_PREFER_FLOOR : QL_NEAREST_FLOOR);
	r->a = ql_call_float(call, "a", -0.75);
	r->exclude = ql_call_bool(call, "excludeoutside", false);
	if (coords && r->mode == QL_RESAMPLE_AREA)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "resize: coords: wanted another mode than area");
	if (ql_call_attr(call, "rounding") && r->mode != QL_RESAMPLE_NEAREST)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "resize: rounding: wanted mode nearest, got %s", mode);
	if ((ql_call_attr(call, "a") || r->exclude) && r->mode != QL_RESAMPLE_CUBIC)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "resize: %s: wanted mode bicubic, got %s",
			r->exclude ? "excludeoutside" : "a", mode);
	if (!ql_call_bool(call, "antialias", false))
		return QL_OK;
	if (r->mode != QL_RESAMPLE_BILINEAR)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "resize: antialias: wanted mode bilinear, got %s", mode);
	if (r->coords != QL_COORDS_HALF_PIXEL)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "resize: antialias: wanted coords half_pixel");
	r->mode = QL_RESAMPLE_ANTIALIAS;
	return QL_OK;
}

static enum ql_status read_sizes(struct ql_ctx *ctx, const struct ql_call *call, struct geometry *g)
{
	const struct ql_value *size = ql_call_attr(call, "size");
	double scale = ql_call_float(call, "scale", 0);

	if (!size == !ql_call_attr(call, "scale"))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "resize: wanted size or scale, got %s", size ? "both" : "none of them");
	if (size && ql_call_attr(call, "scalew"))
		return ql_fail(ctx, QL_ERR_ARGUMENT, "resize: scalew: wanted it with scale=");
	if (size && (size->ints.n < 1 || size->ints.n > 2))
		return ql_fail(
			ctx, QL_ERR_ARGUMENT, "resize: size: wanted a number or {h, w}, got %d numbers", size->ints.n);
	for (int d = 0; d < 2; d++) {
		g->scale[d] = d ? ql_call_float(call, "scalew", scale) : scale;
		if (!size && !(g->scale[d] > 0 && (double)g->in[d] * g->scale[d] < 0x1p53))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"resize: scale: wanted a number above 0 and sizes below 2^53, got %g", g->scale[d]);
		g->out[d] = size ? size->ints.at[size->ints.n == 2 ? d : 0] : (int64_t)((double)g->in[d] * g->scale[d]);
		if (g->out[d] < 1)
			return ql_fail(
				ctx, QL_ERR_ARGUMENT, "resize: size: wanted 1 or more, got %lld", (long long)g->out[d]);
	}
	return QL_OK;
}

/* The geometry of an operand of these sizes. */
static enum ql_status read_geometry(
	struct ql_ctx *ctx, const struct ql_call *call, int rank, const int64_t *shape, struct geometry *g)
{
	char text[QL_SHAPE_TEXT];
	enum ql_status status;

	if (rank < 2 || shape[rank - 1] < 1 || shape[rank - 2] < 1)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"resize: wanted x (n, c, h, w), (c, h, w) or (h, w) with at least one pixel, got %s",
			ql_shape_text(rank, shape, text));
	g->planes = 1;
	for (int d = 0; d < rank - 2; d++)
		g->planes *= shape[d];
	memcpy(g->in, shape + rank - 2, sizeof(g->in));
	status = read_rules(ctx, call, &g->r);
	return status ? status : read_sizes(ctx, call, g);
}

enum ql_status ql_resize_taps(struct ql_ctx *ctx, const struct ql_call *call, struct ql_taps taps[2])
{
	const struct ql_tensor *x = call->in[0];
	struct geometry g;
	enum ql_status status = read_geometry(ctx, call, x->rank, x->shape, &g);

	for (int d = 0; d < 2 && !status; d++)
		status = ql_taps_make(ctx, &g.r, g.in[d], g.out[d], g.scale[d], &taps[d]);
	return status;
}

static enum ql_status infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *x = call->in[0];
	unsigned dtype = ql_operand_dtype(x);
	struct geometry g;
	int64_t shape[QL_MAX_RANK];
	char text[QL_SHAPE_TEXT];
	enum ql_status status = read_geometry(ctx, call, x->rank, x->shape, &g);

	if (status)
		return status;
	if (g.r.mode == QL_RESAMPLE_NEAREST ? ql_dtype_is_packed(dtype)
					    : !ql_dtype_is_float(dtype) && dtype != QL_uint8)
		return ql_fail(ctx, QL_ERR_DTYPE, "resize: wanted %s, got %s",
			g.r.mode == QL_RESAMPLE_NEAREST ? "elements of whole bytes"
							: "floats or uint8 (others: mode nearest)",
			ql_tensor_text(x, text));
	memcpy(shape, x->shape, sizeof(shape));
	memcpy(shape + x->rank - 2, g.out, sizeof(g.out));
	ql_result_set(call, 0, dtype, x->rank, shape);
	return QL_OK;
}

/* ---- nearest ---- */

struct copies {
	struct ql_taps rows, columns;
	size_t size; /* of an element */
	const void *x;
	void *y;
};

#define COPY_ROW(type) \
	for (int64_t i = 0; i < c->columns.out; i++) \
	((type *)to)[i] = ((const type *)from)[c->columns.first[i]]

static void copy_row(const struct copies *c, const void *from, void *to)
{
	switch (c->size) {
	case 1: COPY_ROW(uint8_t); break;
	case 2: COPY_ROW(uint16_t); break;
	case 4: COPY_ROW(uint32_t); break;
	default: COPY_ROW(uint64_t); break;
	}
}

static void copies_body(void *arg, int64_t begin, int64_t end)
{
	const struct copies *c = arg;

	for (int64_t r = begin; r < end; r++) {
		int64_t row = r / c->rows.out * c->rows.in + c->rows.first[r % c->rows.out];

		copy_row(c, (const char *)c->x + (size_t)(row * c->columns.in) * c->size,
			(char *)c->y + (size_t)(r * c->columns.out) * c->size);
	}
}

static enum ql_status copy_nearest(struct ql_ctx *ctx, struct ql_call *call, const struct geometry *g)
{
	struct ql_tensor *out = call->out[0], *x = NULL;
	struct copies c = {.size = ql_dtypes[out->dtype].bits / 8, .y = ql_tensor_data(out)};
	enum ql_status status = ql_taps_make(ctx, &g->r, g->in[0], g->out[0], g->scale[0], &c.rows);

	if (!status)
		status = ql_taps_make(ctx, &g->r, g->in[1], g->out[1], g->scale[1], &c.columns);
	if (!status)
		status = ql_tensor_contiguous(ctx, call->in[0], &x);
	if (status)
		return status;
	call->path = ql_dtype_name(out->dtype);
	call->kernel = "copy";
	c.x = ql_tensor_data(x);
	status = ql_parallel_for(
		ctx, g->planes * g->out[0], ql_max64(1, CHUNK / g->out[1]), ql_tensor_nelem(out), copies_body, &c);
	ql_tensor_release(ctx, x);
	return status;
}

/* ---- sums ---- */

/* Rounds halves up, as PyTorch does for bytes. */
static void round_up(struct ql_tensor *t)
{
	float *y = ql_tensor_data(t);

	for (int64_t i = 0, n = ql_tensor_nelem(t); i < n; i++)
		y[i] = floorf(y[i] + 0.5f);
}

/* y from x, both dense: columns by taps[1], then rows by taps[0]; `bytes`: each pass is rounded, as in PyTorch. */
static enum ql_status both_axes(struct ql_ctx *ctx, const struct ql_taps *taps, int64_t planes, bool bytes,
	struct ql_tensor *x, struct ql_tensor *y)
{
	bool wide = x->dtype == QL_float64;
	struct ql_tensor *middle;
	enum ql_status status =
		ql_tensor_new(ctx, x->dtype, 3, (const int64_t[]){planes, taps[0].in, taps[1].out}, &middle);

	if (!status)
		status = ql_resample(
			ctx, &taps[1], wide, planes * taps[0].in, 1, ql_tensor_data(x), ql_tensor_data(middle));
	if (!status && bytes)
		round_up(middle);
	if (!status)
		status = ql_resample(
			ctx, &taps[0], wide, planes, taps[1].out, ql_tensor_data(middle), ql_tensor_data(y));
	if (!status && bytes)
		round_up(y);
	ql_tensor_release(ctx, middle);
	return status;
}

static enum ql_status eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *in = call->in[0], *out = call->out[0], *x = NULL, *y = NULL;
	unsigned dtype = ql_dense_dtype(out->dtype);
	struct geometry g;
	struct ql_taps taps[2];
	enum ql_status status = read_geometry(ctx, call, in->rank, in->shape, &g);

	if (status || g.r.mode == QL_RESAMPLE_NEAREST)
		return status ? status : copy_nearest(ctx, call, &g);
	for (int d = 0; d < 2 && !status; d++)
		status = ql_taps_make(ctx, &g.r, g.in[d], g.out[d], g.scale[d], &taps[d]);
	if (!status)
		status = ql_dense_of(ctx, in, dtype, &x);
	if (!status)
		status = ql_dense_result(ctx, out, dtype, &y);
	if (!status) {
		call->path = ql_dtype_name(dtype);
		call->kernel = ctx->kernels->simd->name;
		status = both_axes(ctx, taps, g.planes, out->dtype == QL_uint8, x, y);
	}
	ql_tensor_release(ctx, x);
	return ql_dense_finish(ctx, out, y, status);
}

/* ---- gradient: an op in no table ---- */

/* Operand: the gradient of the result. */
static enum ql_status back_infer(struct ql_ctx *ctx, struct ql_call *call)
{
	const struct ql_tensor *g = call->in[0];

	(void)ctx;
	ql_result_set(call, 0, ql_dense_dtype(g->dtype), g->rank, ql_call_attr(call, "from")->ints.at);
	return QL_OK;
}

static enum ql_status back_eval(struct ql_ctx *ctx, struct ql_call *call)
{
	struct ql_tensor *dx = call->out[0], *g = NULL;
	struct geometry geometry;
	struct ql_taps taps, back[2];
	enum ql_status status = read_geometry(ctx, call, dx->rank, dx->shape, &geometry);

	call->path = ql_dtype_name(dx->dtype);
	call->kernel = ctx->kernels->simd->name;
	for (int d = 0; d < 2 && !status; d++) {
		status = ql_taps_make(ctx, &geometry.r, geometry.in[d], geometry.out[d], geometry.scale[d], &taps);
		if (!status)
			status = ql_taps_transpose(ctx, &taps, &back[d]);
	}
	if (!status)
		status = ql_dense_of(ctx, call->in[0], dx->dtype, &g);
	if (!status)
		status = both_axes(ctx, back, geometry.planes, false, g, dx);
	ql_tensor_release(ctx, g);
	return status;
}

static const struct ql_attr back_attrs[] = {
	{"from", QL_ATTR_INTS, 0, NULL, "shape of x"},
	OPTIONS,
	{NULL, QL_ATTR_END, 0, NULL, NULL},
};

static const struct ql_op resize_back = {
	.doc = {.name = "resize_back", .attrs = back_attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = back_infer,
	.eval = back_eval,
};

static enum ql_status backward(struct ql_back *b)
{
	const struct ql_result *x = ql_back_shape(b, 0);
	struct ql_named from[] = {
		{"from", {.ints = {x->rank, (int64_t *)(uintptr_t)x->shape}}}, {NULL, {.set = false}}};
	struct ql_tensor *g = ql_back_grad(b, 0);

	ql_back_give(b, 0, ql_back_all(b, &resize_back, &g, 1, from, NULL));
	return b->status;
}

const struct ql_op ql_op_resize = {
	.doc = {.name = "resize",
		.usage =
			"x:resize{h, w}  x:resize{size={h, w}, mode='bilinear', antialias=true}  x:resize{scale=2, mode='nearest'}",
		.text = "Pictures (n, c, h, w), (c, h, w) or (h, w) of another height and width. mode 'bilinear' mixes the four pixels "
			"around a place, 'bicubic' sixteen, 'area' is the mean of the pixels that one covers (an adaptive average pooling), of "
			"floats or uint8 (rounded, halves up); with antialias=true a bilinear picture that shrinks takes the weighted "
			"mean of all pixels that fall on one. 'nearest' copies one pixel, of any dtype: the one at floor(i * old / new). By default "
			"the corners of the pictures, not the centres of their corner pixels, are matched, as in PyTorch's interpolate with "
			"align_corners=false; coords='align_corners' is its other way, and the rules of ONNX's Resize have its names. PyTorch's "
			"nearest-exact is coords='half_pixel', rounding='round_prefer_ceil'. With scale= places follow from scale, not from the "
			"rounded sizes. A picture from a file is (h, w, 3): x:permute(3, 1, 2) brings the colours to the front. Has a gradient. "
			"Of codes mode 'nearest' moves codes, others decode.",
		.example =
			"x = tensor{{1, 2}, {3, 4}}\n"
			"print(x:resize{1, 4}[1], x:resize{size=3, mode='nearest'}[1])  --> float32(4) 2.0000 2.2500 2.7500 3.0000 float32(3) 1 1 2\n"
			"print(x:resize{size={1, 3}, coords='align_corners'}[1])  --> float32(3) 1.0000 1.5000 2.0000",
		.attrs = attrs},
	.arity_min = 1,
	.arity_max = 1,
	.infer = infer,
	.eval = eval,
	.backward = backward,
};
