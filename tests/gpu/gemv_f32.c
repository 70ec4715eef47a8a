/* SPDX-License-Identifier: MIT
 * The kernel "gemv_f32" against sums in float64 of decoded operands, within (k + 2) * 2^-24 times the sum of the absolute
 * products (float32 results): 1 to 8 rows, all formats of b, k of one and of several stages, codes in blocks with zero points and
 * minima, unaligned memory, batches; bias, activation and results of 16 bits against the core.
 */
#include "tensor/kernels/kernels.h"
#include "tests/tools/gpu_operand.h"

static struct gpu g;

struct test {
	struct operand x, w;
	const char *act, *dtype;
	bool bias;
	double units; /* of the last place of a result, added to the tolerance */
};

static double activated(const char *act, double y)
{
	if (!act)
		return y;
	return !strcmp(act, "relu") ? fmax(y, 0) : 0.5 * y * (1 + erf(y / sqrt(2.0)));
}

static double at(const struct ql_tensor *t, int64_t i, int64_t j)
{
	return ql_tensor_get_f64(t, (const int64_t[]){i, j});
}

/* Result e of rows x and lines w is `got`. */
static bool is_near(const struct test *t, const struct ql_tensor *x, const struct ql_tensor *w,
	const struct ql_tensor *bias, int64_t e, double got)
{
	int64_t n = w->shape[0], k = w->shape[1];
	double sum = bias ? ql_tensor_get_f64(bias, (const int64_t[]){e % n}) : 0, all = fabs(sum), y;

	for (int64_t l = 0; l < k; l++) {
		sum += at(x, e / n, l) * at(w, e % n, l);
		all += fabs(at(x, e / n, l) * at(w, e % n, l));
	}
	y = activated(t->act, sum);
	return CHECK(fabs(got - y) <= 1.2 * (double)(k + 4) * 0x1p-24 * all + t->units * fabs(y),
		"%s: result %d: %g, wanted %g", g.name, (int)e, got, y);
}

static void compare(struct ql_ctx *ctx, const struct test *t, struct operand_pair *b, const struct ql_gpu_tensor *out)
{
	unsigned dtype = (unsigned)ql_dtype_by_name(out->dtype);
	int64_t n = gpu_count(out);
	struct ql_tensor *x = NULL, *w = NULL;
	char *got = check_alloc((size_t)n * 4);
	double y;

	gpu_get(&g, out, got);
	CHECK(!strcmp(g.name, "gemv_f32"), "ran by %s", g.name);
	if (CHECK(!operand_plain(ctx, b[0].core, &x) && !operand_plain(ctx, b[1].core, &w), "%s", ctx->err))
		for (int64_t e = 0; e < n; e++) {
			ql_dtypes[dtype].to_f64(got, e, 1, 1, &y);
			if (!is_near(t, x, w, t->bias ? b[2].core : NULL, e, y))
				break;
		}
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, w);
	free(got);
}

static void try(struct ql_ctx *ctx, const struct test *t)
{
	struct operand operands[3] = {t->x, t->w, {"float32", 0, 1, {t->w.shape[0]}}};
	struct operand_pair b[3];
	struct ql_gpu_tensor in[3], out;
	struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = t->act};
	struct ql_gpu_call call = gpu_call("linear", in, t->bias ? 3 : 2, &out, 1);
	int made = 0;

	CASE("%d rows of %s x %s %dx%d", (int)t->x.shape[0], t->x.type, t->w.type, (int)t->w.shape[0],
		(int)t->w.shape[1]);
	out = gpu_tensor(&g, t->dtype, 2, (const int64_t[]){t->x.shape[0], t->w.shape[0]}, NULL, 0);
	call.options = &act;
	call.n_options = t->act != NULL;
	for (; made < call.n_in && operand_make(&g, ctx, &operands[made], &b[made]); made++)
		in[made] = b[made].t;
	if (made == call.n_in && CHECK(gpu_run(&g, call), "refused: %s", g.why))
		compare(ctx, t, b, &out);
	while (made-- > 0)
		operand_drop(&g, ctx, &b[made]);
	gpu_free(&g, &out);
}

/* The type of w, and what its k is a multiple of. */
static const struct {
	const char *type;
	int64_t each;
} types[] = {
	{"float32", 4},
	{"float16", 8},
	{"bfloat16", 8},
	{"=int8", 16},
	{"=int8/1", 16},
	{"=uint8/1", 16},
	{"=uint8:32", 32},
	{"=int4/1", 32},
	{"=int4:32", 32},
	{"=uint4:64", 64},
	{"=uint4", 32},
	{"=q4_0", 32},
	{"=q4_1", 32},
};

static void all_types(struct ql_ctx *ctx)
{
	static const int64_t rows[] = {1, 3, 8};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
			for (int64_t stages = 1; stages <= 70; stages += 69) {
				/* more lines than a block has, and a last stage that is not whole */
				struct test t = {.x = {"float32", 0, 2, {rows[r], types[i].each * stages}},
					.w = {types[i].type, r == 1 ? UNALIGNED : 0, 2,
						{stages > 1      ? 5
							: r == 0 ? 150
								 : 37,
							types[i].each * stages}},
					.dtype = "float32"};

				try(ctx, &t);
			}
}

static const struct test others[] = {
	{{"float16", 0, 2, {2, 64}}, {"=int4:32", 0, 2, {20, 64}}, "relu", "float16", true, 0x1p-11},
	{{"bfloat16", UNALIGNED, 2, {5, 64}}, {"bfloat16", 0, 2, {20, 64}}, "gelu", "bfloat16", true, 0x1p-8},
	{{"float32", TRANSPOSED, 2, {7, 96}}, {"=uint8/1", 0, 2, {9, 96}}, "gelu", "float32", true, 0x1p-20},
	{{"float32", 0, 2, {1, 36}}, {"float32", 0, 2, {9, 36}}, NULL, "float32", true, 0},
	{{"=int8", 0, 2, {3, 32}}, {"float16", 0, 2, {9, 32}}, NULL, "float32", false, 0},
};

/* (3, 2, 64) x (3, 64, 6), whose lines are columns. */
static void batches(struct ql_ctx *ctx)
{
	struct operand a = {"float32", 0, 3, {3, 2, 64}}, w = {"float16", TRANSPOSED, 3, {3, 64, 6}};
	struct operand_pair b[2];
	struct ql_gpu_tensor in[2], out = gpu_tensor(&g, "float32", 3, (const int64_t[]){3, 2, 6}, NULL, 0);
	float got[36];

	CASE("batches");
	if (!operand_make(&g, ctx, &a, &b[0]) || !operand_make(&g, ctx, &w, &b[1]))
		return;
	in[0] = b[0].t;
	in[1] = b[1].t;
	if (!CHECK(gpu_run(&g, gpu_call("matmul", in, 2, &out, 1)), "refused: %s", g.why))
		return;
	CHECK(!strcmp(g.name, "gemv_f32"), "ran by %s", g.name);
	gpu_get(&g, &out, got);
	for (int64_t e = 0; e < 36; e++) {
		double sum = 0, all = 0;

		for (int64_t l = 0; l < 64; l++) {
			double p = ql_tensor_get_f64(b[0].core, (const int64_t[]){e / 12, e / 6 % 2, l}) *
				   ql_tensor_get_f64(b[1].core, (const int64_t[]){e / 12, l, e % 6});

			sum += p;
			all += fabs(p);
		}
		CHECK(fabs((double)got[e] - sum) <= 66 * 0x1p-24 * all, "result %d", (int)e);
	}
	operand_drop(&g, ctx, &b[0]);
	operand_drop(&g, ctx, &b[1]);
	gpu_free(&g, &out);
}

/* What it leaves to "gemm_f32": products in order, more rows, lines that are not multiples of 16 bytes; and to tensor cores: many
 * lines of codes beside 16-bit floats. */
static void left(struct ql_ctx *ctx, struct operand x, struct operand w, unsigned flags, const char *by)
{
	struct operand_pair b[2];
	struct ql_gpu_tensor in[2],
		out = gpu_tensor(&g, "float32", 2, (const int64_t[]){x.shape[0], w.shape[0]}, NULL, 0);
	struct ql_gpu_call call = gpu_call("linear", in, 2, &out, 1);

	CASE("%d rows of %s x %s, k %d, flags %u are left", (int)x.shape[0], x.type, w.type, (int)x.shape[1], flags);
	if (!operand_make(&g, ctx, &x, &b[0]) || !operand_make(&g, ctx, &w, &b[1]))
		return;
	in[0] = b[0].t;
	in[1] = b[1].t;
	call.flags = flags;
	CHECK(gpu_run(&g, call) && !strcmp(g.name, by), "ran by %s", g.name);
	operand_drop(&g, ctx, &b[0]);
	operand_drop(&g, ctx, &b[1]);
	gpu_free(&g, &out);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	for (int o = 0; o < ORDERS; o++) {
		gpu_order(o);
		all_types(ctx);
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			try(ctx, &others[i]);
	}
	batches(ctx);
	left(ctx, (struct operand){"float32", 0, 2, {1, 64}}, (struct operand){"float32", 0, 2, {5, 64}},
		QL_GPU_ORDERED, "gemm_f32");
	left(ctx, (struct operand){"float32", 0, 2, {9, 64}}, (struct operand){"float32", 0, 2, {5, 64}}, 0,
		"gemm_f32");
	left(ctx, (struct operand){"float32", 0, 2, {1, 63}}, (struct operand){"float32", 0, 2, {5, 63}}, 0,
		"gemm_f32");
	left(ctx, (struct operand){"float32", 0, 2, {1, 64}}, (struct operand){"=int8/2", 0, 2, {5, 64}}, 0,
		"gemm_f32");
	left(ctx, (struct operand){"float32", 0, 2, {1, 64}}, (struct operand){"=int4:16", 0, 2, {5, 64}}, 0,
		"gemm_f32");
	left(ctx, (struct operand){"float16", 0, 2, {3, 1024}}, (struct operand){"=int4:32", 0, 2, {64, 1024}}, 0,
		"gemm_f16_mma");
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
