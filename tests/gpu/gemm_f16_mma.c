/* SPDX-License-Identifier: MIT
 * The kernel "gemm_f16_mma" against sums in float64 of decoded operands, within (k + 16) 2^-24 of the sum of the absolute
 * products and a unit of the result; where numbers are decoded to 16 bits also half a unit of these of that sum. Forms of both
 * operands, ragged sizes, memory that is not aligned, k of several stages and parts, batches, codes of both operands, bias and
 * activation.
 */
#include "tests/tools/gpu_operand.h"

static struct gpu g;

struct test {
	const char *op;
	struct operand a, b;
	const char *dtype; /* of the result */
	const char *act;
	bool bias;
	bool rounds; /* decoded numbers are rounded to 16 bits */
};

/* Matrices in float64: (m, k) and (n, k), of each batch. */
struct sides {
	struct ql_tensor *a, *b;
	bool linear;
	int64_t m, n, k;
};

static double element(const struct ql_tensor *t, int64_t batch, int64_t i, int64_t j)
{
	int64_t at[4] = {0};
	int r = t->rank;

	if (r > 2)
		at[r - 3] = t->shape[r - 3] == 1 ? 0 : batch;
	if (r > 1)
		at[r - 2] = i;
	at[r - 1] = j;
	return ql_tensor_get_f64(t, at);
}

static double activated(const char *act, double y)
{
	if (!act)
		return y;
	return !strcmp(act, "relu") ? fmax(y, 0) : 0.5 * y * (1 + erf(y / sqrt(2.0)));
}

static double unit_of(const char *dtype)
{
	return !strcmp(dtype, "float16") ? 0x1p-10 : !strcmp(dtype, "bfloat16") ? 0x1p-7 : 0x1p-23;
}

static bool is_near(const struct test *t, const struct sides *s, const struct ql_tensor *bias, int64_t e, double got)
{
	int64_t j = e % s->n, i = e / s->n % s->m, batch = e / s->n / s->m;
	const char *type = *t->a.type == '=' ? t->b.type : t->a.type;
	double sum = bias ? ql_tensor_get_f64(bias, &j) : 0, all = 0, y, most;

	for (int64_t l = 0; l < s->k; l++) {
		double p =
			element(s->a, batch, i, l) * (s->linear ? element(s->b, 0, j, l) : element(s->b, batch, l, j));

		sum += p;
		all += fabs(p);
	}
	y = activated(t->act, sum);
	most = 1.2 * ((double)(s->k + 16) * 0x1p-24 + (t->rounds ? unit_of(type) / 2 : 0)) * all +
	       unit_of(t->dtype) * fabs(y) + (bias ? 0x1p-23 * fabs(sum) : 0);
	return CHECK(fabs(got - y) <= most, "result %d: %g, wanted %g, within %g", (int)e, got, y, most);
}

static void compare(struct ql_ctx *ctx, const struct test *t, struct operand_pair *o, const struct ql_gpu_tensor *out)
{
	struct sides s = {.linear = !strcmp(t->op, "linear")};
	int64_t n = gpu_count(out);
	char *got = check_alloc((size_t)n * 4 + 1);
	double y;

	gpu_get(&g, out, got);
	CHECK(!strcmp(g.name, "gemm_f16_mma"), "ran by %s", g.name);
	s.m = out->rank > 1 ? out->shape[out->rank - 2] : 1;
	s.n = out->shape[out->rank - 1];
	s.k = o[0].core->shape[o[0].core->rank - 1];
	if (CHECK(!operand_plain(ctx, o[0].core, &s.a) && !operand_plain(ctx, o[1].core, &s.b), "%s", ctx->err))
		for (int64_t e = 0; e < n; e += n / 3000 + 1) {
			ql_dtypes[ql_dtype_by_name(out->dtype)].to_f64(got, e, 1, 1, &y);
			if (!is_near(t, &s, t->bias ? o[2].core : NULL, e, y))
				break;
		}
	ql_tensor_release(ctx, s.a);
	ql_tensor_release(ctx, s.b);
	free(got);
}

static struct ql_gpu_tensor result_of(const struct test *t)
{
	bool linear = !strcmp(t->op, "linear");
	int64_t shape[4];
	int rank = t->a.rank > t->b.rank || linear ? t->a.rank : t->b.rank;

	memcpy(shape, rank == t->a.rank ? t->a.shape : t->b.shape, sizeof(shape));
	shape[rank - 2] = t->a.shape[t->a.rank - 2];
	shape[rank - 1] = t->b.shape[linear ? 0 : t->b.rank - 1];
	return gpu_tensor(&g, t->dtype, rank, shape, NULL, 0);
}

static void try(struct ql_ctx *ctx, const struct test *t)
{
	struct operand operands[3] = {t->a, t->b, {"float32", 0, 1, {t->b.shape[0]}}};
	struct operand_pair o[3];
	struct ql_gpu_tensor in[3], out = result_of(t);
	struct ql_gpu_option act = {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = t->act};
	struct ql_gpu_call call = gpu_call(t->op, in, t->bias ? 3 : 2, &out, 1);
	int made = 0;

	CASE("%s %s %dx%d (%u) x %s %dx%d (%u)", t->op, t->a.type, (int)t->a.shape[0], (int)t->a.shape[1], t->a.how,
		t->b.type, (int)t->b.shape[0], (int)t->b.shape[1], t->b.how);
	call.options = &act;
	call.n_options = t->act != NULL;
	g.v->fill(g.s, out.at, 0xFF, out.bytes);
	for (; made < call.n_in && operand_make(&g, ctx, &operands[made], &o[made]); made++)
		in[made] = o[made].t;
	if (made == call.n_in && CHECK(gpu_run(&g, call), "refused: %s", g.why))
		compare(ctx, t, o, &out);
	while (made-- > 0)
		operand_drop(&g, ctx, &o[made]);
	gpu_free(&g, &out);
}

/* ---- floats ---- */

/* k of one stage, of more than four, of parts; ragged everywhere; lines at multiples of 16 bytes or not. */
static const int64_t sizes[][3] = {{9, 5, 24}, {130, 136, 200}, {17, 40, 600}, {11, 13, 61}};

static const unsigned layouts[][2] = {{0, 0}, {0, TRANSPOSED}, {TRANSPOSED, 0}, {TRANSPOSED, TRANSPOSED}};

static void floats(struct ql_ctx *ctx, int order)
{
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t l = 0; l < sizeof(layouts) / sizeof(layouts[0]); l++) {
			int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
			const char *type = (s + l) % 2 ? "bfloat16" : "float16";
			struct test t = {.op = "matmul",
				.a = {type, layouts[l][0], 2, {m, k}},
				.b = {type, layouts[l][1], 2, {k, n}},
				.dtype = s == 3 ? type : "float32"};

			if (m * n < 10000 || (size_t)order == l)
				try(ctx, &t);
		}
}

static const struct test others[] = {
	{.op = "linear",
		.a = {"float16", 0, 2, {12, 72}},
		.b = {"float16", 0, 2, {30, 72}},
		.dtype = "float16",
		.act = "gelu",
		.bias = true},
	{.op = "linear",
		.a = {"bfloat16", UNALIGNED, 3, {2, 7, 72}},
		.b = {"bfloat16", UNALIGNED, 2, {30, 72}},
		.dtype = "bfloat16",
		.act = "relu",
		.bias = true},
	{.op = "matmul", .a = {"float16", 0, 3, {3, 9, 40}}, .b = {"float16", 0, 3, {3, 40, 24}}, .dtype = "float32"},
	{.op = "matmul",
		.a = {"float16", 0, 3, {3, 9, 40}},
		.b = {"float16", TRANSPOSED, 3, {1, 40, 24}},
		.dtype = "float16"},
	{.op = "matmul",
		.a = {"bfloat16", TRANSPOSED, 3, {2, 24, 40}},
		.b = {"bfloat16", 0, 3, {2, 40, 16}},
		.dtype = "float32"},
};

/* ---- codes ---- */

/* Of w (n, k) in x times w' (`linear`), and in dY w (`back`): whether numbers are rounded to 16 bits. */
static const struct {
	const char *type;
	bool linear, back;
} types[] = {
	{"=int8", false, false},
	{"=int8/1", false, true},
	{"=uint8", false, false},
	{"=uint8/1", false, true},
	{"=int8/2", true, false},
	{"=uint8:32", false, true},
	{"=int4", false, true},
	{"=int4/1", false, true},
	{"=uint4/1", false, true},
	{"=int4:32", false, true},
	{"=uint4:64", false, true},
	{"=int4:128", false, true},
	{"=uint4:16", true, true},
	{"=q4_1", true, true},
	{"=int3/1", true, true},
};

static void codes(struct ql_ctx *ctx, int order)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		const char *type = types[i].type, *half = i / 2 % 2 ? "bfloat16" : "float16";
		/* stages of 128 numbers of k, and parts */
		struct test t = {.op = "linear",
			.a = {half, i % 4 == 3 ? UNALIGNED : 0, 2, {i % 2 ? 16 : 9, 768}},
			.b = {type, 0, 2, {i == 4 ? 24 : 37, 768}},
			.dtype = half,
			.bias = true,
			.rounds = types[i].linear};

		if (i % ORDERS != (size_t)order)
			continue;
		try(ctx, &t);
		/* stages of 64 */
		t.a.shape[0] = 65;
		t.a.shape[1] = t.b.shape[1] = 384;
		t.dtype = "float32";
		try(ctx, &t);
		/* dX = dY W; dW' = X' dY, whose first operand is codes */
		t = (struct test){.op = "matmul",
			.a = {half, 0, 2, {10, 200}},
			.b = {type, 0, 2, {200, 128}},
			.dtype = "float32",
			.rounds = types[i].back};
		try(ctx, &t);
		t = (struct test){.op = "matmul",
			.a = {type, TRANSPOSED, 2, {128, 70}},
			.b = {half, 0, 2, {70, 24}},
			.dtype = "float32",
			.rounds = types[i].back};
		try(ctx, &t);
	}
}

/* dW = dY' X with codes of x; k across memory in both. */
static void weight_gradient(struct ql_ctx *ctx)
{
	static const char *const specs[] = {"=int8", "=int8/1", "=uint8/1"};

	for (size_t i = 0; i < 3; i++) {
		struct test t = {.op = "matmul",
			.a = {i % 2 ? "bfloat16" : "float16", TRANSPOSED, 2, {40, 150}},
			.b = {specs[i], 0, 2, {150, i == 2 ? 45 : 48}},
			.dtype = "float32",
			.rounds = i > 0};

		try(ctx, &t);
	}
}

/* ---- what it leaves to "gemm_f32" ---- */

static void left(struct ql_ctx *ctx, const char *a, const char *b, unsigned flags)
{
	struct operand x = {a, 0, 2, {12, 64}}, w = {b, 0, 2, {5, 64}};
	struct operand_pair o[2];
	struct ql_gpu_tensor in[2], out = gpu_tensor(&g, "float32", 2, (const int64_t[]){12, 5}, NULL, 0);
	struct ql_gpu_call call = gpu_call("linear", in, 2, &out, 1);

	CASE("%s x %s, flags %u", a, b, flags);
	if (!operand_make(&g, ctx, &x, &o[0]) || !operand_make(&g, ctx, &w, &o[1]))
		return;
	in[0] = o[0].t;
	in[1] = o[1].t;
	call.flags = flags;
	CHECK(gpu_run(&g, call) && !strcmp(g.name, "gemm_f32"), "ran by %s", g.name);
	operand_drop(&g, ctx, &o[0]);
	operand_drop(&g, ctx, &o[1]);
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
		floats(ctx, o);
		codes(ctx, o);
		weight_gradient(ctx);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		try(ctx, &others[i]);
	left(ctx, "float16", "float16", QL_GPU_ORDERED);
	left(ctx, "float16", "=int8/1", QL_GPU_ORDERED);
	left(ctx, "float16", "float32", 0);
	left(ctx, "float32", "=int8/1", 0);
	left(ctx, "float16", "bfloat16", 0);
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
