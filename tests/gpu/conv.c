/* SPDX-License-Identifier: MIT
 * The kernel "conv_f32" against the definition of a convolution written out here: ordered sums with equal bits, in order of
 * (channel, tap); other sums, and all of the weight's gradient, against float64 within k * 2^-24 times the sum of the absolute
 * products. tests/gpu/conv_ops.lua compares ordered gradients with the CPU.
 */
#include "tests/tools/gpu_codes.h"

static struct gpu g;

static const struct shape {
	const char *what;
	int64_t n, c, h, w, o, k[2], stride[2], pad[4], dilation[2], groups;
} shapes[] = {
	{"3 x 3", 2, 3, 7, 6, 5, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
	{"many channels", 1, 37, 5, 5, 70, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
	{"1 x 1", 3, 40, 4, 9, 33, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
	{"a stride", 2, 4, 9, 11, 6, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1},
	{"everything uneven", 2, 6, 9, 11, 4, {3, 2}, {2, 3}, {1, 0, 2, 1}, {2, 1}, 2},
	{"steps longer than the kernel", 1, 3, 7, 8, 4, {2, 2}, {3, 3}, {0, 0, 0, 0}, {1, 1}, 1},
	{"a stride that shares a factor with the dilation", 1, 2, 12, 13, 3, {3, 3}, {4, 2}, {2, 2, 4, 4}, {2, 4}, 1},
	{"depthwise", 2, 5, 8, 7, 10, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 5},
	{"many pixels", 2, 2, 40, 41, 3, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
	{"large tiles", 3, 3, 20, 20, 130, {2, 2}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1},
	{"a stride and many channels", 1, 20, 6, 7, 40, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, 1},
	{"no images", 0, 2, 4, 4, 3, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
};
#define SHAPES ((int)(sizeof(shapes) / sizeof(shapes[0])))

enum what { RESULT, INPUT, WEIGHT };
static const char *const ops[] = {"conv2d", "conv2d_input", "conv2d_weight"};

/* The operands as float64, and what is wanted: sums in float32 in order, in float64, and of absolute products. */
struct numbers {
	int64_t x[4], w[4], y[4];
	double *of_x, *of_w, *of_y, *wide, *size;
	float *sum;
	const float *bias;
	bool relu;
};

static int64_t count(const int64_t *shape)
{
	return shape[0] * shape[1] * shape[2] * shape[3];
}

static int64_t at(const int64_t *shape, int64_t a, int64_t b, int64_t c, int64_t d)
{
	return ((a * shape[1] + b) * shape[2] + c) * shape[3] + d;
}

static void add(struct numbers *t, int64_t to, double a, double b)
{
	t->sum[to] += (float)a * (float)b;
	t->wide[to] += a * b;
	t->size[to] += fabs(a * b);
}

/* All products of one output, in order of its channels and taps; outside of x there is 0. */
static void products_of(
	const struct shape *s, enum what what, struct numbers *t, int64_t n, int64_t o, int64_t i, int64_t j)
{
	int64_t y = at(t->y, n, o, i, j), per = t->w[1], first = o / (s->o / s->groups) * per;

	for (int64_t c = 0; c < per; c++)
		for (int64_t r = 0; r < s->k[0]; r++)
			for (int64_t q = 0; q < s->k[1]; q++) {
				int64_t h = i * s->stride[0] + r * s->dilation[0] - s->pad[0],
					v = j * s->stride[1] + q * s->dilation[1] - s->pad[2];
				bool in = h >= 0 && h < s->h && v >= 0 && v < s->w;
				int64_t x = in ? at(t->x, n, first + c, h, v) : 0, w = at(t->w, o, c, r, q);

				if (what == RESULT)
					add(t, y, in ? t->of_x[x] : 0, t->of_w[w]);
				else if (what == INPUT && in)
					add(t, x, t->of_y[y], t->of_w[w]);
				else if (in)
					add(t, w, t->of_y[y], t->of_x[x]);
			}
}

static void wanted(const struct shape *s, enum what what, struct numbers *t)
{
	const int64_t *to = what == RESULT ? t->y : what == INPUT ? t->x : t->w;

	memset(t->sum, 0, (size_t)count(to) * sizeof(float));
	memset(t->wide, 0, (size_t)count(to) * sizeof(double));
	memset(t->size, 0, (size_t)count(to) * sizeof(double));
	/* the sums of an element of the input go by outputs and taps: pixels go backwards */
	for (int64_t n = 0; n < s->n; n++)
		for (int64_t o = 0; o < s->o; o++)
			for (int64_t i = t->y[2] - 1; i >= 0; i--)
				for (int64_t j = t->y[3] - 1; j >= 0; j--)
					products_of(s, what, t, n, o, i, j);
	for (int64_t i = 0; what == RESULT && i < count(to); i++) {
		float v = t->bias ? t->bias[i / (t->y[2] * t->y[3]) % s->o] : 0;

		t->sum[i] += v;
		t->wide[i] += (double)v;
		t->size[i] += fabs((double)v);
		t->sum[i] = t->relu && t->sum[i] < 0 ? 0 : t->sum[i];
		t->wide[i] = t->relu && t->wide[i] < 0 ? 0 : t->wide[i];
	}
}

static void begin(const struct shape *s, struct numbers *t)
{
	const int64_t *k = s->k;
	int64_t most;

	*t = (struct numbers){.x = {s->n, s->c, s->h, s->w}, .w = {s->o, s->c / s->groups, k[0], k[1]}};
	t->y[0] = s->n;
	t->y[1] = s->o;
	t->y[2] = (s->h + s->pad[0] + s->pad[1] - s->dilation[0] * (k[0] - 1) - 1) / s->stride[0] + 1;
	t->y[3] = (s->w + s->pad[2] + s->pad[3] - s->dilation[1] * (k[1] - 1) - 1) / s->stride[1] + 1;
	most = count(t->x) + count(t->w) + count(t->y) + 1;
	t->of_x = check_alloc((size_t)most * sizeof(double));
	t->of_w = check_alloc((size_t)most * sizeof(double));
	t->of_y = check_alloc((size_t)most * sizeof(double));
	t->wide = check_alloc((size_t)most * sizeof(double));
	t->size = check_alloc((size_t)most * sizeof(double));
	t->sum = check_alloc((size_t)most * sizeof(float));
}

static void end(struct numbers *t)
{
	free(t->of_x);
	free(t->of_w);
	free(t->of_y);
	free(t->wide);
	free(t->size);
	free(t->sum);
}

/* Random numbers of the dtype, and a tensor of them. */
static struct ql_gpu_tensor drawn(const char *dtype, const int64_t *shape, double *to)
{
	const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(dtype)];
	int64_t n = count(shape);
	void *data = check_alloc((size_t)n * 8 + 8);
	struct ql_gpu_tensor t;

	for (int64_t i = 0; i < n; i++)
		to[i] = (double)gpu_draw_float();
	d->from_f64(data, 0, 1, n, to);
	d->to_f64(data, 0, 1, n, to);
	t = gpu_tensor(&g, dtype, 4, shape, data, (int64_t)(d->bits / 8u));
	free(data);
	return t;
}

static void compare(
	const struct shape *s, enum what what, const struct numbers *t, const struct ql_gpu_tensor *out, bool bits)
{
	const struct ql_dtype_info *d = &ql_dtypes[ql_dtype_by_name(out->dtype)];
	int64_t n = gpu_count(out), k = what == WEIGHT ? s->n * t->y[2] * t->y[3] : s->c * s->o * s->k[0] * s->k[1];
	char *data = check_alloc((size_t)n * 8 + 8), one[8];
	double unit = d->bits == 32 ? 0 : strcmp(out->dtype, "float16") ? 0x1p-8 : 0x1p-11;

	gpu_get(&g, out, data);
	for (int64_t i = 0; i < n; i++) {
		double v, sum = (double)t->sum[i], bound = (double)k * 0x1p-24 * t->size[i] + unit * fabs(t->wide[i]);
		bool good;

		d->to_f64(data, i, 1, 1, &v);
		d->from_f64(one, 0, 1, 1, &sum);
		good = bits ? view_same(out->dtype, one, data + (size_t)i * d->bits / 8, 0)
			    : fabs(v - t->wide[i]) <= bound;
		if (!CHECK(good, "%s, %s: element %d of %d: %.9g, wanted %.9g", ops[what], s->what, (int)i, (int)n, v,
			    bits ? sum : t->wide[i]))
			break;
	}
	free(data);
}

static void options_of(const struct shape *s, struct ql_gpu_option o[5], const char *act)
{
	o[0] = (struct ql_gpu_option){"stride", QL_GPU_OPTION_INTEGERS, 2, .ints = s->stride};
	o[1] = (struct ql_gpu_option){"pad", QL_GPU_OPTION_INTEGERS, 4, .ints = s->pad};
	o[2] = (struct ql_gpu_option){"dilation", QL_GPU_OPTION_INTEGERS, 2, .ints = s->dilation};
	o[3] = (struct ql_gpu_option){"groups", QL_GPU_OPTION_INTEGER, .i = s->groups};
	o[4] = (struct ql_gpu_option){"act", QL_GPU_OPTION_TEXT, .s = act};
}

static void run(const struct shape *s, enum what what, struct numbers *t, const struct ql_gpu_tensor *in, int n_in,
	const char *dtype)
{
	const int64_t *to = what == RESULT ? t->y : what == INPUT ? t->x : t->w;
	struct ql_gpu_option o[5];

	wanted(s, what, t);
	options_of(s, o, "relu");
	for (int ordered = 0; ordered < 2; ordered++) {
		struct ql_gpu_tensor out = gpu_tensor(&g, dtype, 4, to, NULL, 0);
		struct ql_gpu_call call = gpu_call(ops[what], in, n_in, &out, 1);

		call.flags = ordered ? QL_GPU_ORDERED : 0;
		call.options = o;
		call.n_options = 4 + t->relu;
		g.v->fill(g.s, out.at, 0xAB, out.bytes);
		if (CHECK(gpu_run(&g, call), "%s, %s: refused: %s", ops[what], s->what, g.why))
			compare(s, what, t, &out, ordered && what == RESULT);
		CHECK(!strcmp(g.name, "conv_f32"), "%s ran", g.name);
		gpu_free(&g, &out);
	}
}

static void try_shape(const struct shape *s, const char *dtype, bool bias)
{
	float numbers[256];
	struct numbers t;
	struct ql_gpu_tensor x, w, y, b = gpu_tensor(&g, "float32", 1, &s->o, NULL, 0);

	for (int64_t i = 0; i < s->o; i++)
		numbers[i] = gpu_draw_float();
	g.v->to_device(g.s, b.at, numbers, (uint64_t)s->o * sizeof(float));
	begin(s, &t);
	x = drawn(dtype, t.x, t.of_x);
	w = drawn(dtype, t.w, t.of_w);
	y = drawn(dtype, t.y, t.of_y);
	t.bias = bias ? numbers : NULL;
	t.relu = bias;
	run(s, RESULT, &t, (struct ql_gpu_tensor[]){x, w, b}, bias ? 3 : 2, dtype);
	t.bias = NULL;
	t.relu = false;
	run(s, INPUT, &t, (struct ql_gpu_tensor[]){y, w}, 2, dtype);
	run(s, WEIGHT, &t, (struct ql_gpu_tensor[]){y, x}, 2, dtype);
	gpu_free(&g, &x);
	gpu_free(&g, &w);
	gpu_free(&g, &y);
	gpu_free(&g, &b);
	end(&t);
}

/* A weight of codes. */
static void try_codes(struct ql_ctx *ctx, const struct shape *s, const char *text)
{
	struct ql_tensor *w = NULL, *q = NULL, *back = NULL;
	struct ql_spec spec;
	struct gpu_codes codes;
	struct numbers t;
	struct ql_gpu_tensor x;

	begin(s, &t);
	x = drawn("float32", t.x, t.of_x);
	if (!CHECK(!ql_tensor_new(ctx, QL_float32, 4, t.w, &w) && !ql_spec_parse(ctx, text, &spec), "%s", ctx->err))
		return;
	for (int64_t i = 0; i < count(t.w); i++)
		((float *)ql_tensor_data(w))[i] = gpu_draw_float();
	if (CHECK(!ql_quantize(ctx, w, &spec, &q) && !ql_decode(ctx, q, &back), "%s", ctx->err)) {
		for (int64_t i = 0; i < count(t.w); i++)
			t.of_w[i] = ql_tensor_at_f64(back, i);
		gpu_codes_of(&g, &codes, q, false);
		run(s, RESULT, &t, (struct ql_gpu_tensor[]){x, codes.t}, 2, "float32");
		gpu_codes_free(&g, &codes);
	}
	ql_tensor_release(ctx, w);
	ql_tensor_release(ctx, q);
	ql_tensor_release(ctx, back);
	gpu_free(&g, &x);
	end(&t);
}

static void refusals(void)
{
	struct shape s = shapes[0];
	struct ql_gpu_option o[5];
	struct numbers t;
	struct ql_gpu_tensor in[2], out;
	struct ql_gpu_call call = gpu_call("conv2d", in, 2, &out, 1);

	begin(&s, &t);
	in[0] = drawn("float32", t.x, t.of_x);
	in[1] = drawn("float32", t.w, t.of_w);
	out = gpu_tensor(&g, "float32", 4, t.y, NULL, 0);
	s.stride[1] = 2;
	options_of(&s, o, "softmax");
	call.options = o;
	call.n_options = 5;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "do not fit"), "%s", g.why);
	s.stride[1] = 1;
	options_of(&s, o, "softmax");
	CHECK(!gpu_run(&g, call) && strstr(g.why, "activation"), "%s", g.why);
	gpu_free(&g, &in[0]);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
	end(&t);
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
			try_shape(&shapes[i], i % 3 ? "float32" : i % 2 ? "float16" : "bfloat16", i % 2);
			if (i < 4)
				try_shape(&shapes[i], "float32", false);
			if (i && i < 5)
				try_codes(ctx, &shapes[i], i % 2 ? "int8/1" : "int4");
		}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
