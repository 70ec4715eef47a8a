/* SPDX-License-Identifier: MIT
 * The kernel "gemm_f32": ordered products against the ops of the core with ordered products, equal bits: ragged shapes
 * of every size of tile, k beyond several stages, transposed and unaligned operands, batches, all types of elements, bias and
 * activations, codes of either operand, integers; and products that are not ordered against sums in float64, within k * 2^-24
 * times the sum of the absolute products.
 */
#include "tensor/kernels/kernels.h"
#include "tests/tools/gpu_operand.h"

static struct gpu g;

/* ---- ordered ---- */

struct test {
	const char *op;
	struct operand in[3];
	int n_in;
	const char *act;   /* NULL: none */
	const char *dtype; /* of a product of integers; NULL: the default */
};

#define LONGEST 2048 /* elements of a result that are compared without ordered products */

static struct ql_value attr[4];

static struct ql_call core_call(const struct test *t, struct ql_tensor **in)
{
	bool linear = !strcmp(t->op, "linear");

	memset(attr, 0, sizeof(attr));
	if (linear && t->act)
		attr[0] = (struct ql_value){.set = true, .s = t->act};
	if (!linear && t->dtype)
		attr[1] = (struct ql_value){.set = true, .i = ql_dtype_by_name(t->dtype)};
	return (struct ql_call){.op = ql_op_by_name(ql_ops, t->op), .in = in, .n_in = t->n_in, .attr = attr};
}

static struct ql_gpu_call device_call(const struct test *t, const struct ql_gpu_tensor *in,
	const struct ql_gpu_tensor *out, struct ql_gpu_option *act, unsigned flags)
{
	struct ql_gpu_call call = gpu_call(t->op, in, t->n_in, out, 1);

	*act = (struct ql_gpu_option){.name = "act", .type = QL_GPU_OPTION_TEXT, .s = t->act};
	call.options = act;
	call.n_options = t->act != NULL;
	call.flags = flags;
	return call;
}

static void expect_bits(const struct test *t, const struct ql_gpu_tensor *in, const struct ql_tensor *want)
{
	struct ql_gpu_tensor out = gpu_of_core(&g, want, false);
	struct ql_gpu_option act;

	g.v->fill(g.s, out.at, 0xAB, out.bytes);
	if (CHECK(gpu_run(&g, device_call(t, in, &out, &act, QL_GPU_ORDERED)), "refused: %s", g.why))
		gpu_expect(&g, &out, want, g.name);
	gpu_free(&g, &out);
}

/* ---- not ordered ---- */

static double element(const struct ql_tensor *t, int64_t row, int64_t column)
{
	return ql_tensor_get_f64(t, (const int64_t[]){row, column});
}

/* Matrices only. */
static void expect_near(
	struct ql_ctx *ctx, const struct test *t, const struct ql_gpu_tensor *in, struct operand_pair *b)
{
	bool linear = !strcmp(t->op, "linear");
	struct ql_tensor *x = NULL, *w = NULL;
	int64_t m = b[0].core->shape[0], k = b[0].core->shape[1], n = b[1].core->shape[linear ? 0 : 1];
	struct ql_gpu_tensor out = gpu_tensor(&g, "float32", 2, (const int64_t[]){m, n}, NULL, 0);
	struct ql_gpu_option act;
	float *got;

	if (!CHECK(!operand_plain(ctx, b[0].core, &x) && !operand_plain(ctx, b[1].core, &w), "%s", ctx->err) ||
		!CHECK(gpu_run(&g, device_call(t, in, &out, &act, 0)), "refused: %s", g.why))
		return;
	got = check_alloc((size_t)(m * n) * sizeof(float) + 1);
	gpu_get(&g, &out, got);
	for (int64_t e = 0; e < m * n; e += m * n / LONGEST + 1) {
		double sum = 0, all = 0;

		for (int64_t l = 0; l < k; l++) {
			double product = element(x, e / n, l) * (linear ? element(w, e % n, l) : element(w, l, e % n));

			sum += product;
			all += fabs(product);
		}
		if (!CHECK(fabs((double)got[e] - sum) <= (double)k * 0x1p-24 * all, "%s: element %d: %g, wanted %g",
			    g.name, (int)e, (double)got[e], sum))
			break;
	}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
	free(got);
	gpu_free(&g, &out);
}

static void try(struct ql_ctx *ctx, const struct test *t, bool near)
{
	struct operand_pair b[3];
	struct ql_tensor *in[3] = {NULL, NULL, NULL};
	struct ql_gpu_tensor operands[3];
	struct ql_call call = core_call(t, in);
	int made = 0;

	for (; made < t->n_in && operand_make(&g, ctx, &t->in[made], &b[made]); made++) {
		in[made] = b[made].core;
		operands[made] = b[made].t;
	}
	if (made == t->n_in && CHECK(!ql_op_apply(ctx, &call), "%s", ctx->err)) {
		expect_bits(t, operands, call.out[0]);
		if (near)
			expect_near(ctx, t, operands, b);
		ql_tensor_release(ctx, call.out[0]);
	}
	while (made-- > 0)
		operand_drop(&g, ctx, &b[made]);
}

/* ---- shapes and layouts ---- */

/* m, n, k; the last ones are of large and of medium tiles, the others of small ones; k is cut into parts where it is long. */
static const int64_t sizes[][3] = {{1, 1, 1}, {3, 5, 7}, {16, 64, 16}, {17, 65, 33}, {2, 70, 0}, {5, 3, 700},
	{40, 44, 52}, {130, 130, 40}, {257, 516, 20}};

static const unsigned layouts[][2] = {{0, 0}, {0, TRANSPOSED}, {TRANSPOSED, 0}, {TRANSPOSED, TRANSPOSED},
	{UNALIGNED, 0}, {UNALIGNED | TRANSPOSED, UNALIGNED}};

static void shapes(struct ql_ctx *ctx, bool all)
{
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
			int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
			struct test t = {.op = "matmul",
				.in = {{"float32", layouts[l][0], 2, {m, k}}, {"float32", layouts[l][1], 2, {k, n}}},
				.n_in = 2};

			if (m * n > 10000 && (!all || l > 3))
				continue;
			CASE("matmul %dx%dx%d, layouts %u %u, threads %s", (int)m, (int)n, (int)k, layouts[l][0],
				layouts[l][1], getenv("QUOLL_EMU_ORDER"));
			try(ctx, &t, true);
		}
}

static const struct test tests[] = {
	/* batches, vectors, rows that are joined */
	{"matmul", {{"float32", 0, 3, {3, 6, 20}}, {"float32", 0, 3, {3, 20, 8}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 4, {2, 1, 4, 31}}, {"float32", TRANSPOSED, 3, {5, 31, 3}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 4, {2, 3, 5, 16}}, {"float32", 0, 2, {16, 7}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 2, {4, 31}}, {"float32", 0, 3, {5, 31, 3}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 1, {40}}, {"float32", 0, 2, {40, 5}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 2, {5, 40}}, {"float32", 0, 1, {40}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 1, {40}}, {"float32", 0, 1, {40}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 2, {0, 4}}, {"float32", 0, 2, {4, 5}}}, 2, NULL, NULL},
	{"linear", {{"float32", TRANSPOSED, 3, {4, 5, 48}}, {"float32", 0, 2, {11, 48}}, {"float32", 0, 1, {11}}}, 3,
		NULL, NULL},
	{"linear", {{"float32", 0, 1, {30}}, {"float32", 0, 2, {11, 30}}}, 2, "relu", NULL},
	/* elements */
	{"matmul", {{"float16", 0, 2, {20, 33}}, {"float16", 0, 2, {33, 9}}}, 2, NULL, NULL},
	{"matmul", {{"bfloat16", 0, 2, {20, 33}}, {"float32", 0, 2, {33, 9}}}, 2, NULL, NULL},
	{"matmul", {{"bfloat16", 0, 2, {20, 33}}, {"bfloat16", TRANSPOSED, 2, {33, 9}}}, 2, NULL, NULL},
	{"matmul", {{"float8_e4m3", 0, 2, {20, 33}}, {"float16", 0, 2, {33, 9}}}, 2, NULL, NULL},
	{"matmul", {{"float64", 0, 2, {20, 33}}, {"float32", TRANSPOSED, 2, {33, 70}}}, 2, NULL, NULL},
	{"matmul", {{"float64", 0, 3, {2, 20, 33}}, {"float64", 0, 2, {33, 9}}}, 2, NULL, NULL},
	{"matmul", {{"float64", 0, 2, {20, 33}}, {"=int8/1", 0, 2, {33, 9}}}, 2, NULL, NULL},
	{"matmul", {{"float32", 0, 2, {20, 33}}, {"int32", 0, 2, {33, 9}}}, 2, NULL, NULL},
	{"linear", {{"float16", 0, 2, {20, 33}}, {"float16", 0, 2, {9, 33}}, {"float16", 0, 1, {9}}}, 3, "gelu", NULL},
	{"linear", {{"bfloat16", 0, 2, {20, 33}}, {"float32", 0, 2, {9, 33}}, {"float32", 0, 1, {9}}}, 3, "silu", NULL},
	{"linear", {{"float64", 0, 2, {20, 33}}, {"float64", 0, 2, {9, 33}}, {"float32", 0, 1, {9}}}, 3, "relu6", NULL},
	/* activations */
	{"linear", {{"float32", 0, 2, {20, 33}}, {"float32", 0, 2, {9, 33}}, {"float32", 0, 1, {9}}}, 3, "relu", NULL},
	{"linear", {{"float32", 0, 2, {20, 33}}, {"float32", 0, 2, {9, 33}}, {"bfloat16", 0, 1, {9}}}, 3, "relu6",
		NULL},
	{"linear", {{"float32", 0, 2, {20, 33}}, {"float32", 0, 2, {9, 33}}, {"float32", 0, 1, {9}}}, 3, "gelu", NULL},
	{"linear", {{"float32", 0, 2, {20, 33}}, {"float32", 0, 2, {9, 33}}, {"float32", 0, 1, {9}}}, 3, "tanh", NULL},
	{"linear", {{"float32", 0, 2, {20, 33}}, {"float32", 0, 2, {9, 33}}}, 2, "sigmoid", NULL},
	{"linear", {{"float32", 0, 2, {20, 33}}, {"float32", 0, 2, {9, 33}}}, 2, "hardswish", NULL},
	/* integers */
	{"matmul", {{"int8", 0, 2, {20, 33}}, {"uint8", TRANSPOSED, 2, {33, 9}}}, 2, NULL, NULL},
	{"matmul", {{"int8", 0, 2, {20, 33}}, {"bool", 0, 2, {33, 9}}}, 2, NULL, "int64"},
	{"matmul", {{"int16", 0, 3, {2, 20, 33}}, {"uint8", 0, 2, {33, 9}}}, 2, NULL, NULL},
};

/* x of floats, w of codes, and the other way around */
static const char *const formats[] = {"=int8", "=int8/1", "=uint8/2", "=uint8", "=int16/1", "=int4/1", "=uint4:32",
	"=int4:16", "=uint4", "=int3/1", "=q4_1", "=q8_0", "=mxint8", "=ternary", "=int2:32"};

static void codes(struct ql_ctx *ctx)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct test t = {.op = "linear",
			.in = {{"float32", 0, 2, {18, 96}}, {formats[i], 0, 2, {13, 96}}, {"float32", 0, 1, {13}}},
			.n_in = 3,
			.act = "relu"};

		CASE("linear float32 x %s", formats[i]);
		try(ctx, &t, false);
		t = (struct test){
			.op = "matmul", .in = {{"float32", 0, 2, {5, 32}}, {formats[i], 0, 2, {32, 64}}}, .n_in = 2};
		CASE("matmul float32 x %s", formats[i]);
		try(ctx, &t, true);
		t.in[1].how = TRANSPOSED;
		t.in[1].shape[1] = 24;
		CASE("matmul float32 x %s, transposed", formats[i]);
		try(ctx, &t, true);
		t = (struct test){.op = "matmul",
			.in = {{formats[i], TRANSPOSED, 2, {32, 64}}, {"float16", TRANSPOSED, 2, {64, 24}}},
			.n_in = 2};
		CASE("matmul %s x float16", formats[i]);
		try(ctx, &t, false);
		t = (struct test){.op = "matmul",
			.in = {{"float32", 0, 3, {2, 5, 64}}, {formats[i], 0, 3, {2, 64, 32}}},
			.n_in = 2};
		CASE("matmul float32 x %s, batches", formats[i]);
		try(ctx, &t, false);
	}
}

static void refused(
	struct ql_ctx *ctx, const struct operand *a, const struct operand *b, const char *result, const char *why)
{
	struct operand_pair x, w;
	struct ql_gpu_tensor in[2], out = gpu_tensor(&g, result, 2, (const int64_t[]){32, 32}, NULL, 0);

	CASE("%s x %s is refused", a->type, b->type);
	if (!operand_make(&g, ctx, a, &x) || !operand_make(&g, ctx, b, &w))
		return;
	in[0] = x.t;
	in[1] = w.t;
	CHECK(!gpu_run(&g, gpu_call("matmul", in, 2, &out, 1)) && strstr(g.why, why), "%s", g.why);
	operand_drop(&g, ctx, &x);
	operand_drop(&g, ctx, &w);
	gpu_free(&g, &out);
}

static void refusals(struct ql_ctx *ctx)
{
	struct operand x = {"float32", 0, 2, {32, 32}}, codes = {"=int8:32", 0, 2, {32, 32}},
		       two = {"=q6_k", 0, 2, {32, 256}}, wide = {"int32", 0, 2, {32, 32}};

	refused(ctx, &codes, &codes, "float32", "blocks");
	refused(ctx, &x, &two, "float32", "scales that are codes");
	refused(ctx, &wide, &wide, "int64", "may not fit");
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	ctx->fallback = QL_FALLBACK_SILENT;
	ctx->kernels = ql_kernels_ordered();
	for (int o = 0; o < ORDERS; o++) {
		gpu_order(o);
		shapes(ctx, o == 0);
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		CASE("%s of %s x %s: %d", tests[i].op, tests[i].in[0].type, tests[i].in[1].type, (int)i);
		try(ctx, &tests[i], false);
	}
	codes(ctx);
	refusals(ctx);
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
