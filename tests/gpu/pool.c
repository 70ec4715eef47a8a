/* SPDX-License-Identifier: MIT
 * The kernels pool and pool_back: results against the ops of the core on views and codes, gradients against the order of
 * tensor/conv/planes.c written out here.
 */
#include "tests/tools/gpu_codes.h"

static struct gpu g;

static const struct shape {
	const char *what;
	int64_t kernel[2], stride[2], pad[2], out[2]; /* kernel 0: the whole plane */
	struct view x;
} shapes[] = {
	{"adjacent 2 x 2", {2, 2}, {2, 2}, {0, 0}, {3, 4}, {"dense", 4, {2, 3, 6, 8}, {144, 48, 8, 1}, 0, 0}},
	{"odd adjacent 2 x 2", {2, 2}, {2, 2}, {0, 0}, {3, 3}, {"unaligned", 4, {2, 3, 6, 6}, {108, 36, 6, 1}, 1, 0}},
	{"transposed 2 x 2", {2, 2}, {2, 2}, {0, 0}, {2, 3}, {"transposed", 4, {3, 2, 4, 6}, {48, 24, 1, 4}, 0, 0}},
	{"2 x 2 with a rest", {2, 2}, {2, 2}, {0, 0}, {3, 2}, {"dense", 4, {1, 2, 7, 5}, {70, 35, 5, 1}, 0, 0}},
	{"overlapping", {3, 3}, {2, 2}, {1, 1}, {4, 5}, {"narrowed", 4, {2, 2, 7, 9}, {200, 90, 10, 1}, 3, 0}},
	{"lopsided", {3, 2}, {1, 3}, {1, 0}, {5, 2}, {"reversed", 4, {2, 2, 5, 6}, {60, 30, 6, -1}, 5, 0}},
	{"wide", {2, 5}, {1, 1}, {0, 2}, {2, 600}, {"dense", 4, {1, 1, 3, 600}, {1800, 1800, 600, 1}, 0, 0}},
	{"the plane", {0, 0}, {0, 0}, {0, 0}, {1, 1}, {"dense", 4, {3, 3, 5, 7}, {105, 35, 7, 1}, 0, 0}},
	{"a large plane", {0, 0}, {0, 0}, {0, 0}, {1, 1}, {"expanded", 4, {2, 2, 31, 43}, {0, 1333, 43, 1}, 0, 0}},
	{"no images", {2, 2}, {2, 2}, {0, 0}, {2, 2}, {"none", 4, {0, 2, 4, 4}, {32, 16, 4, 1}, 0, 0}},
};
#define SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

static int options_of(const struct shape *s, struct ql_gpu_option o[3])
{
	o[0] = (struct ql_gpu_option){"k", QL_GPU_OPTION_INTEGERS, 2, .ints = s->kernel};
	o[1] = (struct ql_gpu_option){"stride", QL_GPU_OPTION_INTEGERS, 2, .ints = s->stride};
	o[2] = (struct ql_gpu_option){"pad", QL_GPU_OPTION_INTEGERS, 2, .ints = s->pad};
	return s->kernel[0] ? 3 : 0;
}

static bool pool(
	const struct shape *s, const char *op, const struct ql_gpu_tensor *in, int n, struct ql_gpu_tensor *out)
{
	struct ql_gpu_option o[3];
	struct ql_gpu_call call = gpu_call(op, in, n, out, 1);

	call.options = o;
	call.n_options = options_of(s, o);
	return gpu_run(&g, call) || CHECK(false, "%s, %s: refused: %s", op, s->what, g.why);
}

static struct ql_tensor *core(struct ql_ctx *ctx, const struct shape *s, const char *op, struct ql_tensor *x)
{
	struct ql_value attr[16] = {{.set = false}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, op), .in = &x, .n_in = 1, .attr = attr};
	int64_t whole[2] = {x->shape[2], x->shape[3]};

	attr[0] = (struct ql_value){.set = true, .ints = {2, s->kernel[0] ? (int64_t *)(uintptr_t)s->kernel : whole}};
	attr[1] = (struct ql_value){.set = s->kernel[0], .ints = {2, (int64_t *)(uintptr_t)s->stride}};
	attr[2] = (struct ql_value){.set = s->kernel[0], .ints = {2, (int64_t *)(uintptr_t)s->pad}};
	if (!CHECK(!ql_op_apply(ctx, &call), "%s, %s: %s", op, s->what, ctx->err))
		return NULL;
	return call.out[0];
}

/* ---- floats ---- */

static void try_floats(struct ql_ctx *ctx, const struct shape *s, const char *op, const char *dtype, bool special)
{
	static int64_t data[VIEW_BUFFER];
	struct ql_gpu_tensor in, out;
	struct ql_tensor *x, *want;

	view_fill(dtype, data, special);
	x = view_core(ctx, &s->x, dtype, data);
	want = x ? core(ctx, s, op, x) : NULL;
	if (!want)
		return;
	in = view_gpu(&g, &s->x, dtype, data);
	out = gpu_tensor(&g, dtype, 4, want->shape, NULL, 0);
	if (pool(s, op, &in, 1, &out))
		gpu_expect(&g, &out, want, s->what);
	CHECK(!strcmp(g.name, "pool"), "%s ran", g.name);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

/* ---- gradients ---- */

#define MOST 4096
#define PIECE 256

struct numbers {
	double x[MOST], y[MOST], g[MOST], dx[MOST];
	bool given[MOST]; /* windows whose gradient an element has got */
};

/* a + b in float32 or float64 */
static double plus(bool wide, double a, double b)
{
	return wide ? a + b : (double)((float)a + (float)b);
}

static void give_plane(const struct shape *s, bool mean, bool wide, struct numbers *t, int64_t plane)
{
	const int64_t *in = &s->x.shape[2], *out = s->out;
	int64_t kh = s->kernel[0] ? s->kernel[0] : in[0], kw = s->kernel[0] ? s->kernel[1] : in[1];
	int64_t sh = s->kernel[0] ? s->stride[0] : kh, sw = s->kernel[0] ? s->stride[1] : kw;
	double share = 1 / ((double)kh * (double)kw);

	for (int64_t i = 0; i < out[0]; i++)
		for (int64_t first = 0; first < out[1]; first += PIECE)
			for (int64_t tap = 0; tap < kh * kw; tap++)
				for (int64_t j = first; j < first + PIECE && j < out[1]; j++) {
					int64_t h = i * sh + tap / kw - s->pad[0], w = j * sw + tap % kw - s->pad[1],
						to = (plane * out[0] + i) * out[1] + j,
						at = (plane * in[0] + h) * in[1] + w;
					double left = t->g[to];

					if (h < 0 || h >= in[0] || w < 0 || w >= in[1])
						continue;
					if (mean)
						left = wide ? left * share : (double)((float)left * (float)share);
					else if (t->given[to] || t->x[at] != t->y[to])
						continue;
					t->given[to] = true;
					t->dx[at] = plus(wide, t->dx[at], left);
				}
}

static struct ql_gpu_tensor floats(const char *dtype, const int64_t *shape, const double *from)
{
	static int64_t data[MOST];
	struct ql_gpu_tensor t = {.rank = 4};

	memcpy(t.shape, shape, 4 * sizeof(*shape));
	ql_dtypes[ql_dtype_by_name(dtype)].from_f64(data, 0, 1, gpu_count(&t), from);
	return gpu_tensor(&g, dtype, 4, shape, data, 0);
}

/* dtype: of x; the gradient of 16-bit floats is float32. */
static void try_gradient(const struct shape *s, bool mean, const char *dtype)
{
	static struct numbers t;
	static double got[MOST];
	bool wide = !strcmp(dtype, "float64");
	const int64_t *x = s->x.shape, y[4] = {x[0], x[1], s->out[0], s->out[1]};
	const char *to = wide ? "float64" : "float32";
	struct ql_gpu_tensor in[3], out = gpu_tensor(&g, to, 4, x, NULL, 0);
	struct ql_gpu_option o[4];
	struct ql_gpu_call call = gpu_call(mean ? "avgpool2d_back" : "maxpool2d_back", in, mean ? 1 : 3, &out, 1);
	int64_t windows = y[0] * y[1] * y[2] * y[3], planes = y[0] * y[1];

	memset(&t, 0, sizeof(t));
	for (int64_t i = 0; i < gpu_count(&out); i++)
		t.x[i] = gpu_draw() % 8;
	for (int64_t i = 0; i < windows; i++)
		t.g[i] = (double)(float)(gpu_draw_float() / 7);
	for (int64_t i = 0; i < windows; i++) /* any element that is in the window: not only the largest */
		t.y[i] = gpu_draw() % 8;
	in[0] = floats(to, y, t.g);
	in[1] = floats(dtype, x, t.x);
	in[2] = floats(dtype, y, t.y);
	for (int64_t p = 0; p < planes; p++)
		give_plane(s, mean, wide, &t, p);
	call.options = o;
	call.n_options = options_of(s, o);
	if (gpu_run(&g, call) || CHECK(false, "%s: refused: %s", s->what, g.why)) {
		CHECK(!strcmp(g.name, "pool_back"), "%s ran", g.name);
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < gpu_count(&out); i++) {
			double v = wide ? got[i] : (double)((float *)got)[i];

			if (!CHECK(v == t.dx[i], "%s of %s, %s: element %d: %g, wanted %g", call.op, dtype, s->what,
				    (int)i, v, t.dx[i]))
				break;
		}
	}
	for (int i = 0; i < 3; i++)
		gpu_free(&g, &in[i]);
	gpu_free(&g, &out);
}

static bool has_gradient(const struct shape *s, bool mean)
{
	/* adjacent 2 x 2 windows give what is left to their last number, which is the maximum then */
	return s->x.shape[0] * s->x.shape[1] * s->x.shape[2] * s->x.shape[3] < MOST &&
	       (mean || !(s->kernel[0] == 2 && s->stride[0] == 2));
}

/* Adjacent 2 x 2 windows with the maxima of the core. */
static void try_fours(struct ql_ctx *ctx, const struct shape *s, const char *dtype)
{
	static int64_t data[VIEW_BUFFER];
	static float grad[MOST], got[MOST], want[MOST];
	struct ql_tensor *x, *y;
	struct ql_gpu_tensor in[3], out = gpu_tensor(&g, "float32", 4, s->x.shape, NULL, 0);
	int64_t n = gpu_count(&out);

	view_fill(dtype, data, true);
	x = view_core(ctx, &s->x, dtype, data);
	y = x ? core(ctx, s, "maxpool2d", x) : NULL;
	if (!y)
		return;
	for (int64_t i = 0; i < n; i++)
		want[i] = 0;
	for (int64_t i = 0; i < ql_tensor_nelem(y); i++) {
		int64_t column = i % s->out[1], line = i / s->out[1];
		double m, v;

		grad[i] = gpu_draw_float();
		ql_dtypes[y->dtype].to_f64(ql_tensor_data(y), i, 1, 1, &m);
		for (int k = 0; k < 4; k++) {
			int64_t row = line / s->out[0] * s->x.shape[2] + line % s->out[0] * 2 + k / 2;
			int64_t at = row * s->x.shape[3] + column * 2 + k % 2;

			ql_dtypes[x->dtype].to_f64(data, view_at(&s->x, at), 1, 1, &v);
			if (v == m || (isnan(v) && isnan(m))) {
				want[at] = grad[i];
				break;
			}
		}
	}
	in[0] = gpu_tensor(&g, "float32", 4, y->shape, grad, 0);
	in[1] = view_gpu(&g, &s->x, dtype, data);
	in[2] = gpu_of_core(&g, y, true);
	if (pool(s, "maxpool2d_back", in, 3, &out)) {
		gpu_get(&g, &out, got);
		for (int64_t i = 0; i < n; i++)
			CHECK(gpu_same_f32(got[i], want[i]), "%s of %s: element %d: %g, wanted %g", s->what, dtype,
				(int)i, (double)got[i], (double)want[i]);
	}
	for (int i = 0; i < 3; i++)
		gpu_free(&g, &in[i]);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, y);
}

/* ---- codes ---- */

static struct ql_tensor *quantized(struct ql_ctx *ctx, const struct shape *s, const struct ql_spec *spec)
{
	static int64_t data[VIEW_BUFFER];
	struct view dense = s->x;
	struct ql_tensor *x, *q = NULL;

	dense.first = 0;
	if (dense.stride[0] == 0)
		dense.shape[0] = 1; /* the buffer has one image of them */
	for (int d = 3, n = 1; d >= 0; d--) {
		dense.stride[d] = n;
		n *= (int)dense.shape[d];
	}
	view_fill("float32", data, false);
	x = view_core(ctx, &dense, "float32", data);
	if (x)
		CHECK(!ql_quantize(ctx, x, spec, &q), "%s", ctx->err);
	ql_tensor_release(ctx, x);
	return q;
}

static void try_codes(struct ql_ctx *ctx, const struct shape *s, const char *op, const char *text)
{
	struct ql_spec spec;
	struct ql_tensor *x, *want;
	struct gpu_codes in, out;

	if (!CHECK(!ql_spec_parse(ctx, text, &spec), "%s", ctx->err))
		return;
	x = quantized(ctx, s, &spec);
	want = x ? core(ctx, s, op, x) : NULL;
	if (!want)
		return;
	gpu_codes_of(&g, &in, x, false);
	gpu_codes_of(&g, &out, want, false);
	g.v->fill(g.s, out.t.at, 0x5a, (uint64_t)ql_tensor_nelem(want) * ql_dtypes[want->dtype].bits / 8);
	if (pool(s, op, &in.t, 1, &out.t))
		gpu_expect(&g, &out.t, want, s->what);
	gpu_codes_free(&g, &in);
	gpu_codes_free(&g, &out);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, want);
}

/* ---- all ---- */

static void try_shape(struct ql_ctx *ctx, const struct shape *s)
{
	static const char *const dtypes[] = {"float32", "float64", "float16", "bfloat16"};
	static const char *const specs[] = {"uint8", "int8/2", "int16", "uint16/1", "int8 asymmetric"};

	for (int mean = 0; mean < 2; mean++) {
		const char *op = mean ? "avgpool2d" : "maxpool2d";

		for (int d = 0; d < 4; d++) {
			try_floats(ctx, s, op, dtypes[d], false);
			try_floats(ctx, s, op, dtypes[d], true);
			if (has_gradient(s, mean))
				try_gradient(s, mean, dtypes[d]);
		}
		for (int d = 0; d < 5 && s->x.shape[0]; d++)
			try_codes(ctx, s, op, specs[d]);
	}
	if (s->kernel[0] == 2 && s->stride[0] == 2 && s->x.shape[2] == 2 * s->out[0] &&
		s->x.shape[3] == 2 * s->out[1]) {
		try_fours(ctx, s, "float32");
		try_fours(ctx, s, "bfloat16");
	}
}

static void refusals(void)
{
	const struct shape *s = &shapes[0];
	struct ql_gpu_option o[3];
	struct ql_gpu_tensor in = gpu_tensor(&g, "int32", 4, s->x.shape, NULL, 0), out = in;
	struct ql_gpu_call call = gpu_call("maxpool2d", &in, 1, &out, 1);

	call.options = o;
	call.n_options = options_of(s, o);
	CHECK(!gpu_run(&g, call) && strstr(g.why, "do not fit"), "%s", g.why);
	out.shape[2] = s->out[0];
	out.shape[3] = s->out[1];
	out.stride[2] = s->out[1];
	out.stride[1] = s->out[0] * out.stride[2];
	out.stride[0] = out.stride[1] * out.shape[1];
	CHECK(!gpu_run(&g, call) && strstr(g.why, "wanted floats"), "%s", g.why);
	gpu_free(&g, &in);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++)
		for (int i = 0; i < SHAPES; i++) {
			CASE("%s, threads %s", shapes[i].what, gpu_order(o));
			try_shape(ctx, &shapes[i]);
		}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
