/* SPDX-License-Identifier: MIT
 * The kernels "gemm_i8_mma" and "gemm_i8_dp4a" against plain loops: ragged shapes, k beyond all stages, unaligned and
 * transposed operands, zero points, scales per tensor and line, bias, activations, results as floats and codes; and
 * against the ops of the core. Equal bits.
 */
#include "tests/tools/gpu_codes.h"

static struct gpu g;

static const char *const families[] = {"mma", "dp4a"};

/* ---- operands ---- */

enum layout { DENSE, UNALIGNED, PITCHED, TRANSPOSED, LAYOUTS };

struct operand {
	bool is_unsigned, zero, per_line;
	enum layout layout;
};

struct side {
	struct operand o;
	int64_t lines, k, line, step; /* strides */
	uint8_t *codes;
	float *scale;
	uint8_t *zero;
	struct ql_gpu_tensor t, scales, zeros;
	struct ql_gpu_codes q;
};

static int32_t number(const struct side *s, const uint8_t *code)
{
	return s->o.is_unsigned ? *code : (int8_t)*code;
}

static int64_t parameters(const struct side *s)
{
	return s->o.per_line ? s->lines : 1;
}

static void side_draw(struct side *s)
{
	for (int64_t i = 0; i < s->lines * (s->k + 16) + 1; i++)
		s->codes[i] = (uint8_t)gpu_draw();
	for (int64_t i = 0; i < parameters(s); i++) {
		s->scale[i] = (float)(gpu_draw() % 1000 + 1) * 1e-3f;
		s->zero[i] = (uint8_t)gpu_draw();
	}
}

/* Uploads the parameters as those of axis 0, or of the tensor. */
static void side_parameters(struct side *s)
{
	int64_t n = parameters(s);

	s->scales = gpu_tensor(&g, "float32", s->o.per_line, &n, s->scale, 0);
	s->q = (struct ql_gpu_codes){.size = sizeof(s->q),
		.flags = QL_GPU_AFFINE,
		.bits = 8,
		.axis = s->o.per_line ? 0 : -1,
		.block_axis = -1,
		.scale = &s->scales,
		.lo = s->o.is_unsigned ? 0 : -128,
		.hi = s->o.is_unsigned ? 255 : 127};
	s->zeros = gpu_tensor(&g, s->o.is_unsigned ? "uint8" : "int8", s->o.per_line, &n, s->zero, 0);
	if (s->o.zero)
		s->q.zero_point = &s->zeros;
}

static void side_new(struct side *s, struct operand o, int64_t lines, int64_t k)
{
	int64_t bytes = lines * (k + 16) + 1;

	*s = (struct side){.o = o, .lines = lines, .k = k};
	s->codes = check_alloc((size_t)bytes);
	s->scale = check_alloc((size_t)lines * sizeof(float));
	s->zero = check_alloc((size_t)lines);
	side_draw(s);
	s->line = o.layout == TRANSPOSED ? 1 : o.layout == PITCHED ? (k + 15) / 16 * 16 : k;
	s->step = o.layout == TRANSPOSED ? lines : 1;
	side_parameters(s);
	/* exactly the bytes that are read, so that the sanitizer sees the ends */
	bytes = (lines - 1) * s->line + (k - 1) * s->step + 1;
	s->t = gpu_tensor(&g, o.is_unsigned ? "uint8" : "int8", 1, &bytes, s->codes, o.layout == UNALIGNED);
	s->t.rank = 2;
	s->t.shape[0] = lines;
	s->t.shape[1] = k;
	s->t.stride[0] = s->line;
	s->t.stride[1] = s->step;
	s->t.codes = &s->q;
}

static void side_free(struct side *s)
{
	gpu_free(&g, &s->t);
	gpu_free(&g, &s->scales);
	gpu_free(&g, &s->zeros);
	free(s->codes);
	free(s->scale);
	free(s->zero);
}

/* ---- the formulas ---- */

struct finish {
	const char *act;   /* NULL: none */
	const float *bias; /* NULL: none */
	float scale;       /* of codes; 0: floats */
	int32_t zero;
};

static int64_t sum_of(const struct side *a, const struct side *b, int64_t i, int64_t j)
{
	const uint8_t za = a->zero[a->o.per_line ? i : 0], zb = b->zero[b->o.per_line ? j : 0];
	int64_t sum = 0;

	for (int64_t k = 0; k < a->k; k++)
		sum += (int64_t)(number(a, &a->codes[i * a->line + k * a->step]) - (a->o.zero ? number(a, &za) : 0)) *
		       (number(b, &b->codes[j * b->line + k * b->step]) - (b->o.zero ? number(b, &zb) : 0));
	return sum;
}

static float float_of(int64_t sum, float sa, float sb, const struct finish *f, int64_t j)
{
	float y = (float)sum * (sa * sb);

	if (f->bias)
		y = y + f->bias[j];
	if (f->act && y < 0)
		y = 0;
	if (f->act && !strcmp(f->act, "relu6") && y > 6)
		y = 6;
	return y;
}

/* Codes of uint8. */
static uint8_t code_of(int64_t sum, float sa, float sb, const struct finish *f, int64_t j)
{
	float by = (float)((double)sa * (double)sb / (double)f->scale);
	double v;

	if (f->bias)
		sum += (int64_t)rint((double)f->bias[j] / (double)(sa * sb));
	if (f->act && sum < 0)
		sum = 0;
	v = rint((double)((float)sum * by)) + f->zero;
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void expect(const struct side *a, const struct side *b, const struct finish *f, const void *got)
{
	for (int64_t i = 0; i < a->lines; i++)
		for (int64_t j = 0; j < b->lines; j++) {
			int64_t at = i * b->lines + j, sum = sum_of(a, b, i, j);
			float sa = a->scale[a->o.per_line ? i : 0], sb = b->scale[b->o.per_line ? j : 0];
			bool good = f->scale > 0 ? ((const uint8_t *)got)[at] == code_of(sum, sa, sb, f, j)
						 : gpu_same_f32(((const float *)got)[at], float_of(sum, sa, sb, f, j));

			if (!CHECK(good, "row %d, column %d of %d x %d x %d", (int)i, (int)j, (int)a->lines,
				    (int)b->lines, (int)a->k))
				return;
		}
}

/* ---- linear ---- */

static void run_linear(const struct side *a, const struct side *b, const struct finish *f,
	const struct ql_gpu_tensor *bias, const struct ql_gpu_tensor *out)
{
	struct ql_gpu_tensor in[3] = {a->t, b->t, *bias};
	struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = f->act};
	struct ql_gpu_call call = gpu_call("linear", in, f->bias ? 3 : 2, out, 1);
	void *got = check_alloc((size_t)out->bytes);

	call.options = &act;
	call.n_options = f->act != NULL;
	for (size_t k = 0; k < 2; k++) {
		g.v->force(g.d, families[k]);
		g.v->fill(g.s, out->at, 0xAB, out->bytes);
		if (!gpu_run(&g, call)) {
			CHECK(false, "refused: %s", g.why);
			continue;
		}
		CHECK(strstr(g.name, families[k]), "%s ran", g.name);
		gpu_get(&g, out, got);
		expect(a, b, f, got);
	}
	g.v->force(g.d, NULL);
	free(got);
}

static void try_linear(struct operand x, struct operand w, int64_t m, int64_t n, int64_t k, struct finish f)
{
	struct side a, b;
	uint8_t zero = (uint8_t)f.zero;
	struct ql_gpu_tensor bias, out, scale = gpu_tensor(&g, "float32", 0, NULL, &f.scale, 0),
					zeros = gpu_tensor(&g, "uint8", 0, NULL, &zero, 0);
	struct ql_gpu_codes codes = {.size = sizeof(codes),
		.flags = QL_GPU_AFFINE,
		.bits = 8,
		.hi = 255,
		.axis = -1,
		.block_axis = -1,
		.scale = &scale,
		.zero_point = &zeros};

	side_new(&a, x, m, k);
	side_new(&b, w, n, k);
	bias = gpu_tensor(&g, "float32", 1, &n, f.bias, 0);
	out = gpu_tensor(&g, f.scale > 0 ? "uint8" : "float32", 2, (const int64_t[]){m, n}, NULL, 0);
	if (f.scale > 0)
		out.codes = &codes;
	run_linear(&a, &b, &f, &bias, &out);
	side_free(&a);
	side_free(&b);
	gpu_free(&g, &bias);
	gpu_free(&g, &out);
	gpu_free(&g, &scale);
	gpu_free(&g, &zeros);
}

static float some_bias[300];

static void shapes(void)
{
	static const int64_t sizes[][3] = {
		{1, 1, 1}, {1, 3, 16}, {17, 9, 31}, {65, 63, 80}, {129, 130, 336}, {33, 200, 515}, {128, 128, 256}};
	const struct operand plain = {0}, weights = {.per_line = true};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		try_linear(plain, weights, sizes[i][0], sizes[i][1], sizes[i][2], (struct finish){.bias = some_bias});
}

static void operands(int n)
{
	for (int i = 0; i < n; i++) {
		struct operand x = {i & 1, i & 2, i & 4, (enum layout)(i / 8 % LAYOUTS)};
		struct operand w = {i & 2, i & 4, i & 1, (enum layout)(gpu_draw() % LAYOUTS)};

		try_linear(x, w, 19, 21, 64 + (int64_t)(gpu_draw() % 150),
			(struct finish){.bias = i % 3 ? some_bias : NULL});
	}
}

static void results(void)
{
	const struct operand x = {.is_unsigned = true, .zero = true}, w = {.per_line = true};

	try_linear(x, w, 33, 40, 100, (struct finish){.bias = some_bias, .act = "relu"});
	try_linear(x, w, 33, 40, 100, (struct finish){.act = "relu6"});
	try_linear(x, w, 33, 40, 100, (struct finish){.bias = some_bias, .scale = 30.0f, .zero = 120});
	try_linear(x, w, 33, 40, 100, (struct finish){.act = "relu", .scale = 11.0f, .zero = 3});
	try_linear(
		(struct operand){.per_line = true}, w, 33, 40, 100, (struct finish){.bias = some_bias, .scale = 7.5f});
}

/* ---- the core: batches, broadcasting, operands with one axis ---- */

struct shape {
	const char *op, *spec_a, *spec_b;
	int rank_a, rank_b;
	int64_t a[4], b[4];
};

static const struct shape core_shapes[] = {
	{"matmul", "int8", "int8", 2, 2, {17, 33}, {33, 9}},
	{"matmul", "uint8/1", "int8/2", 2, 2, {17, 33}, {33, 9}},
	{"matmul", "int8", "uint8", 4, 2, {2, 3, 5, 16}, {16, 7}},
	{"matmul", "int8/2", "uint8/3", 3, 3, {3, 6, 20}, {3, 20, 8}},
	{"matmul", "uint8/1", "int8/1", 3, 3, {3, 6, 20}, {3, 20, 8}},
	{"matmul", "int8", "uint8/1", 2, 3, {4, 31}, {5, 31, 3}},
	{"matmul", "uint8", "uint8", 4, 3, {2, 1, 4, 31}, {5, 31, 3}},
	{"matmul", "int8", "int8", 1, 2, {40}, {40, 5}},
	{"matmul", "int8", "uint8", 2, 1, {5, 40}, {40}},
	{"matmul", "int8", "uint8", 1, 1, {40}, {40}},
	{"matmul", "uint8", "int8", 2, 2, {3, 0}, {0, 4}},
	{"linear", "uint8", "int8/1", 3, 2, {4, 5, 48}, {11, 48}},
	{"linear", "int8/1", "int8/1", 2, 2, {6, 48}, {11, 48}},
	{"linear", "uint8", "uint8", 1, 2, {30}, {11, 30}},
	{"linear", "int8", "int8", 2, 2, {0, 30}, {11, 30}},
};

static struct ql_tensor *quantized(struct ql_ctx *ctx, const char *text, int rank, const int64_t *shape)
{
	struct ql_tensor *x, *q = NULL;
	struct ql_spec spec;

	if (ql_tensor_new(ctx, QL_float32, rank, shape, &x))
		return NULL;
	for (int64_t i = 0; i < ql_tensor_nelem(x); i++)
		((float *)ql_tensor_data(x))[i] = gpu_draw_float();
	if (ql_spec_parse(ctx, text, &spec) || ql_quantize(ctx, x, &spec, &q))
		q = NULL;
	ql_tensor_release(ctx, x);
	return q;
}

static void try_core(struct ql_ctx *ctx, const struct shape *s)
{
	struct ql_tensor *in[2] = {
		quantized(ctx, s->spec_a, s->rank_a, s->a), quantized(ctx, s->spec_b, s->rank_b, s->b)};
	struct ql_value attr[4] = {{.set = false}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, s->op), .in = in, .n_in = 2, .attr = attr};
	struct gpu_codes a, b;
	struct ql_gpu_tensor operands[2], out;

	CASE("%s %s %s, ranks %d and %d", s->op, s->spec_a, s->spec_b, s->rank_a, s->rank_b);
	if (!CHECK(in[0] && in[1] && !ql_op_apply(ctx, &call), "%s", ctx->err))
		return;
	gpu_codes_of(&g, &a, in[0], false);
	gpu_codes_of(&g, &b, in[1], false);
	operands[0] = a.t;
	operands[1] = b.t;
	out = gpu_of_core(&g, call.out[0], false);
	for (size_t k = 0; k < 2; k++) {
		g.v->force(g.d, families[k]);
		g.v->fill(g.s, out.at, 0xAB, out.bytes);
		if (CHECK(gpu_run(&g, gpu_call(s->op, operands, 2, &out, 1)), "refused: %s", g.why))
			gpu_expect(&g, &out, call.out[0], families[k]);
	}
	g.v->force(g.d, NULL);
	gpu_codes_free(&g, &a);
	gpu_codes_free(&g, &b);
	gpu_free(&g, &out);
	ql_tensor_release(ctx, in[0]);
	ql_tensor_release(ctx, in[1]);
	ql_tensor_release(ctx, call.out[0]);
}

/* ---- the core: activations, results as codes by all three rules ---- */

struct result {
	const char *act, *out; /* NULL: none, floats */
	float scale;
	int rounding;
};

static const struct result results_of_core[] = {
	{"gelu", NULL, 0, 0},
	{"silu", NULL, 0, 0},
	{"tanh", NULL, 0, 0},
	{"sigmoid", NULL, 0, 0},
	{"hardswish", NULL, 0, 0},
	{"relu", NULL, 0, 0},
	{"relu6", NULL, 0, 0},
	{NULL, "uint8", 1.5f, 0},
	{"relu", "int8", 0.75f, 0},
	{"relu", "int16", 1e-3f, 0},
	{"gelu", "uint8", 0.5f, 0},
	{"tanh", "int8", 0.01f, 0},
	{NULL, "int8", 1.5f, QL_REQUANT_SINGLE},
	{NULL, "uint8", 0.7f, QL_REQUANT_DOUBLE},
	{"relu", "uint8", 1e-4f, QL_REQUANT_SINGLE},
	{"relu", "int8", 900.0f, QL_REQUANT_DOUBLE},
};

static void expect_result(const struct result *r, const struct ql_gpu_tensor in[3], const struct ql_tensor *want)
{
	struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = r->act};
	struct gpu_codes codes;
	struct ql_gpu_tensor out;
	struct ql_gpu_call call = gpu_call("linear", in, 3, &out, 1);

	call.options = &act;
	call.n_options = r->act != NULL;
	if (r->out) {
		gpu_codes_of(&g, &codes, want, false);
		codes.codes.rounding = r->rounding;
		out = codes.t;
	} else {
		out = gpu_of_core(&g, want, false);
	}
	for (size_t k = 0; k < 2; k++) {
		g.v->force(g.d, families[k]);
		g.v->fill(g.s, out.at, 0xAB, out.bytes);
		if (CHECK(gpu_run(&g, call), "refused: %s", g.why))
			gpu_expect(&g, &out, want, families[k]);
	}
	g.v->force(g.d, NULL);
	if (r->out)
		gpu_codes_free(&g, &codes);
	else
		gpu_free(&g, &out);
}

static void try_result(struct ql_ctx *ctx, const struct result *r)
{
	int64_t x_shape[] = {9, 60}, w_shape[] = {20, 60}, n = 20;
	struct ql_tensor *in[3] = {quantized(ctx, "uint8", 2, x_shape), quantized(ctx, "int8/1", 2, w_shape), NULL};
	struct ql_spec spec;
	struct ql_value attr[4] = {{.set = r->act != NULL, .s = r->act}, {.set = r->out != NULL, .spec = &spec}};
	struct ql_call call = {.op = ql_op_by_name(ql_ops, "linear"), .in = in, .n_in = 3, .attr = attr};
	struct gpu_codes a, b;
	struct ql_gpu_tensor operands[3];

	CASE("act %s, result %s, rounding %d", r->act ? r->act : "none", r->out ? r->out : "float32", r->rounding);
	if (!CHECK(in[0] && in[1] && !ql_tensor_new(ctx, QL_float32, 1, &n, &in[2]), "%s", ctx->err) ||
		!CHECK(!ql_spec_parse(ctx, r->out ? r->out : "int8", &spec), "%s", ctx->err))
		return;
	for (int64_t j = 0; j < n; j++)
		((float *)ql_tensor_data(in[2]))[j] = j == 7 ? NAN : gpu_draw_float() * 20;
	spec.has_scale = true;
	spec.scale = (double)r->scale;
	spec.requant = (enum ql_requant)r->rounding;
	if (!CHECK(!ql_op_apply(ctx, &call), "%s", ctx->err))
		return;
	gpu_codes_of(&g, &a, in[0], false);
	gpu_codes_of(&g, &b, in[1], false);
	operands[0] = a.t;
	operands[1] = b.t;
	operands[2] = gpu_of_core(&g, in[2], true);
	expect_result(r, operands, call.out[0]);
	gpu_codes_free(&g, &a);
	gpu_codes_free(&g, &b);
	gpu_free(&g, &operands[2]);
	for (int i = 0; i < 3; i++)
		ql_tensor_release(ctx, in[i]);
	ql_tensor_release(ctx, call.out[0]);
}

static void refusals(struct ql_ctx *ctx)
{
	static const struct {
		const char *a, *b, *why;
	} list[] = {{"int8:4", "int8", "blocks"}, {"int8/2", "int8", "summed axis"}, {"int8", "int4/2", "summed axis"}};
	int64_t shape[] = {8, 8};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		struct ql_tensor *x = quantized(ctx, list[i].a, 2, shape), *w = quantized(ctx, list[i].b, 2, shape);
		struct gpu_codes a, b;
		struct ql_gpu_tensor in[2], out = gpu_tensor(&g, "float32", 2, shape, NULL, 0);

		CASE("%s x %s is refused", list[i].a, list[i].b);
		if (!CHECK(x && w, "%s", ctx->err))
			return;
		gpu_codes_of(&g, &a, x, false);
		gpu_codes_of(&g, &b, w, false);
		in[0] = a.t;
		in[1] = b.t;
		CHECK(!gpu_run(&g, gpu_call("linear", in, 2, &out, 1)) && strstr(g.why, list[i].why), "%s", g.why);
		gpu_codes_free(&g, &a);
		gpu_codes_free(&g, &b);
		gpu_free(&g, &out);
		ql_tensor_release(ctx, x);
		ql_tensor_release(ctx, w);
	}
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int i = 0; i < 300; i++)
		some_bias[i] = gpu_draw_float() * 100;
	for (int o = 0; o < ORDERS; o++) {
		CASE("shapes, threads %s", gpu_order(o));
		shapes();
		CASE("operands, threads %s", gpu_order(o));
		operands(o == 0 ? 64 : 16);
		CASE("results, threads %s", gpu_order(o));
		results();
	}
	for (size_t i = 0; i < sizeof(core_shapes) / sizeof(core_shapes[0]); i++)
		try_core(ctx, &core_shapes[i]);
	for (size_t i = 0; i < sizeof(results_of_core) / sizeof(results_of_core[0]); i++)
		try_result(ctx, &results_of_core[i]);
	refusals(ctx);
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
