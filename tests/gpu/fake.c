/* SPDX-License-Identifier: MIT
 * The kernels fake_given, fake_back and finite_range: values are those of codes of the core decoded again, the mask is
 * lo <= rne(x / scale) + zero <= hi, and ranges are those of a loop; for views, scales of any granularity and numbers.
 */
#include "tensor/grain.h"
#include "tests/tools/gpu_codes.h"

static struct gpu g;
static float data[VIEW_BUFFER];

static const struct view views[] = {
	{"rows", 2, {7, 130}, {130, 1}, 0, 0},
	{"transposed", 2, {30, 40}, {1, 30}, 3, 0},
	{"three axes", 3, {5, 6, 33}, {198, 33, 1}, 1, 0},
	{"one row", 2, {1, 2503}, {2503, 1}, 0, 0},
	{"expanded", 2, {6, 70}, {0, 1}, 9, 0},
	{"empty", 2, {0, 4}, {4, 1}, 0, 0},
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

static const char *const specs[] = {"int8 scale=0.05", "uint8 scale=0.04 zero_point=120", "int8/1", "uint8/2", "int16",
	"int4/1", "uint4 scale=0.5 zero_point=3", "int8:16", "int4/1:5", "uint16/1:2"};
#define SPECS (sizeof(specs) / sizeof(specs[0]))

/* Element i of x is within the codes of t, by the formula. */
static bool inside(const struct ql_tensor *t, float x, int64_t i)
{
	const struct ql_qparams *q = t->q;
	struct ql_grain grain = ql_grain_of(t->rank, t->shape, QL_float32, q->axis, q->block_axis, q->block);
	int64_t run, s = ql_grain_scale(&grain, i / grain.row, i % grain.row, &run);
	double scale, zero, code;

	scale = ql_tensor_at_f64(q->scale, s);
	zero = q->zero_point ? ql_tensor_at_f64(q->zero_point, s) : 0;
	code = (double)rintf(x / (float)scale) + zero;
	return code >= q->codes.lo && code <= q->codes.hi;
}

/* The scale, and zero point, as numbers of the host. */
static void as_numbers(struct gpu_codes *c, const struct ql_tensor *t)
{
	const struct ql_qparams *q = t->q;

	c->scale.flags = QL_GPU_NUMBER;
	c->scale.f = ql_tensor_at_f64(q->scale, 0);
	if (!q->zero_point)
		return;
	c->zero.flags = QL_GPU_NUMBER | QL_GPU_INTEGER;
	c->zero.f = ql_tensor_at_f64(q->zero_point, 0);
	c->zero.i = (int64_t)c->zero.f;
}

static void try_given(struct ql_ctx *ctx, const struct view *v, struct ql_tensor *x, struct ql_tensor *codes,
	bool numbers, const char *to)
{
	struct gpu_codes c;
	struct ql_gpu_tensor in[2] = {view_gpu(&g, v, "float32", data)}, out[2];
	struct ql_tensor *real = NULL, *want = NULL;
	int64_t n = ql_tensor_nelem(x);
	uint8_t *mask = check_alloc((size_t)n + 1);

	gpu_codes_of(&g, &c, codes, false);
	if (numbers)
		as_numbers(&c, codes);
	in[1] = c.t;
	out[0] = gpu_tensor(&g, to, x->rank, x->shape, NULL, 0);
	out[1] = gpu_tensor(&g, "uint8", x->rank, x->shape, NULL, 0);
	if (CHECK(gpu_run(&g, gpu_call("fake_given", in, 2, out, 2)), "refused: %s", g.why) &&
		!ql_decode(ctx, codes, &real) && !ql_tensor_cast(ctx, real, (unsigned)ql_dtype_by_name(to), &want)) {
		gpu_expect(&g, &out[0], want, "value");
		if (n)
			gpu_get(&g, &out[1], mask);
		for (int64_t i = 0; i < n; i++) {
			float at = data[view_at(v, i)];

			if (!CHECK(mask[i] == inside(codes, at, i), "mask %d of %g is %d", (int)i, (double)at, mask[i]))
				break;
		}
	}
	CHECK(gpu_run(&g, gpu_call("fake_given", in, 2, out, 1)), "refused: %s", g.why);
	ql_tensor_release(ctx, real);
	ql_tensor_release(ctx, want);
	gpu_free(&g, &in[0]);
	gpu_free(&g, &out[0]);
	gpu_free(&g, &out[1]);
	gpu_codes_free(&g, &c);
	free(mask);
}

static void try_spec(struct ql_ctx *ctx, const struct view *v, const char *text)
{
	struct ql_spec spec;
	struct ql_tensor *x = view_core(ctx, v, "float32", data), *codes = NULL;

	if (!CHECK(x && !ql_spec_parse(ctx, text, &spec), "%s: %s", text, ctx->err))
		return;
	CASE("%s of %s", text, v->what);
	if (CHECK(!ql_quantize(ctx, x, &spec, &codes), "%s: %s", text, ctx->err)) {
		try_given(ctx, v, x, codes, false, "float32");
		if (ql_tensor_nelem(codes->q->scale) == 1 && codes->q->scale->rank == 0)
			try_given(ctx, v, x, codes, true, spec.has_scale ? "float32" : "float16");
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, codes);
}

/* ---- gradients ---- */

static void try_back(const struct view *v, const char *from, const char *to)
{
	const struct ql_dtype_info *a = &ql_dtypes[ql_dtype_by_name(from)], *b = &ql_dtypes[ql_dtype_by_name(to)];
	static unsigned char buffer[VIEW_BUFFER * 8];
	uint8_t mask[VIEW_BUFFER];
	struct ql_gpu_tensor in[2], out;
	int64_t n;
	double *got;

	view_fill(from, buffer, true);
	for (int i = 0; i < VIEW_BUFFER; i++)
		mask[i] = gpu_draw() % 3 != 0;
	in[0] = view_gpu(&g, v, from, buffer);
	in[1] = gpu_tensor(&g, "uint8", v->rank, v->shape, mask, 0);
	out = gpu_tensor(&g, to, v->rank, v->shape, NULL, 0);
	n = gpu_count(&out);
	CASE("gradient %s to %s of %s", from, to, v->what);
	CHECK(gpu_run(&g, gpu_call("fake_back", in, 2, &out, 1)), "refused: %s", g.why);
	got = check_alloc((size_t)n * 8 + 8);
	if (n)
		gpu_get(&g, &out, got);
	for (int64_t i = 0; i < n; i++) {
		double x, y;

		a->to_f64(buffer, view_at(v, i), 1, 1, &x);
		b->to_f64(got, i, 1, 1, &y);
		if (!CHECK(mask[i] ? y == x || (isnan(x) && isnan(y)) : y == 0, "element %d: %g of %g", (int)i, y, x))
			break;
	}
	free(got);
	gpu_free(&g, &in[0]);
	gpu_free(&g, &in[1]);
	gpu_free(&g, &out);
}

/* ---- ranges ---- */

static void try_range(const struct view *v)
{
	const int64_t two = 2;
	struct ql_gpu_tensor in = view_gpu(&g, v, "float32", data), out = gpu_tensor(&g, "float32", 1, &two, NULL, 0);
	float lo = INFINITY, hi = -INFINITY, got[2];

	for (int64_t i = 0; i < gpu_count(&in); i++) {
		float x = data[view_at(v, i)];

		lo = isfinite(x) && x < lo ? x : lo;
		hi = isfinite(x) && x > hi ? x : hi;
	}
	CASE("range of %s", v->what);
	CHECK(gpu_run(&g, gpu_call("finite_range", &in, 1, &out, 1)), "refused: %s", g.why);
	gpu_get(&g, &out, got);
	CHECK(got[0] == lo && got[1] == hi, "%g to %g, wanted %g to %g", (double)got[0], (double)got[1], (double)lo,
		(double)hi);
	gpu_free(&g, &in);
	gpu_free(&g, &out);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);
	const struct view large = {"a buffer", 1, {VIEW_BUFFER}, {1}, 0, 0};

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++) {
		CASE("threads %s", gpu_order(o));
		view_fill("float32", data, o > 0);
		for (size_t v = 0; v < VIEWS; v++) {
			for (size_t s = 0; s < SPECS; s++)
				try_spec(ctx, &views[v], specs[s]);
			try_back(&views[v], "float32", "float32");
			try_back(&views[v], "float16", "float32");
			try_back(&views[v], "float64", "float64");
			try_range(&views[v]);
		}
		try_range(&large);
	}
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
