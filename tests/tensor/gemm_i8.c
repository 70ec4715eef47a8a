/* SPDX-License-Identifier: MIT
 * 8-bit products under every level that this CPU has, with 1 to 8 threads, against plain sums: float32 and int32 results
 * that the product writes itself, with B packed before, packed by the product or read in place; and with the AMX kernel.
 */
#include "tensor/gemm/matmul.h"
#include "tests/tools/gemm_int.h"

/* ---- results that the product writes itself ---- */

/* y = (float)sum * (sa * sb) [+ bias] [relu], for one element. */
static float expected(const struct ql_gemm_i8_out *out, int64_t sum, int64_t i, int64_t j)
{
	float y = (float)sum * (out->row_scale[i * out->row_step] * out->column_scale[j * out->column_step]);

	if (out->end && out->end->bias)
		y = y + out->end->bias[j];
	return out->end && out->end->relu && y < 0 ? 0 : y;
}

static uint32_t bits_of(float x)
{
	uint32_t bits;

	memcpy(&bits, &x, sizeof(bits));
	return bits;
}

/* As float32 with all epilogues and as int32, with B packed before and by the product. */
static void check_results(
	struct ql_ctx *ctx, struct shape s, const struct operand *a, const struct operand *b, bool packed, int variant)
{
	int64_t ld = s.n + variant % 3;
	float *scale = take((size_t)(s.m + 2 * s.n) * 4), *y = take((size_t)(s.m * ld) * 4);
	int32_t *c = take((size_t)(s.m * ld) * 4);
	struct ql_matrix_int given = b->matrix;
	struct ql_gemm_i8_panels panels;
	void *memory = aligned_alloc(64, (ql_gemm_i8_panel_bytes(ctx->kernels->gemm_i8, s.n, s.k) + 127) / 64 * 64);
	struct ql_epilogue end = {.bias = variant & 1 ? scale + s.m + s.n : NULL, .relu = variant >> 1 & 1};
	struct ql_gemm_i8_out out = {.f32 = y,
		.ld = ld,
		.row_scale = scale,
		.column_scale = scale + s.m,
		.row_step = variant >> 2 & 1,
		.column_step = variant >> 3 & 1,
		.end = variant % 5 ? &end : NULL};
	bool good = true;

	for (int64_t i = 0; i < s.m + 2 * s.n; i++)
		scale[i] = (float)draw() / 0x1p28f + 0.01f - (float)(i >= s.m + s.n) * 4;
	if (packed) {
		CHECK(memory && ql_gemm_i8_pack(ctx, s.n, s.k, &b->matrix, memory, &panels) == QL_OK, "%s", ctx->err);
		given.panels = &panels;
	}
	CHECK(ql_gemm_i8_to(ctx, s.m, s.n, s.k, &a->matrix, &given, &out) == QL_OK, "%s", ctx->err);
	out.f32 = NULL;
	out.s32 = c;
	CHECK(ql_gemm_i8_to(ctx, s.m, s.n, s.k, &a->matrix, &given, &out) == QL_OK, "%s", ctx->err);
	for (int64_t i = 0; i < s.m; i++)
		for (int64_t j = 0; j < s.n; j++) {
			int64_t sum = oracle(a, b, s.k, i, j);
			float want = expected(&out, sum, i, j);

			good &= c[i * ld + j] == sum && bits_of(want) == bits_of(y[i * ld + j]);
		}
	CHECK(good, "%s, %d threads: results of %lld x %lld x %lld, variant %d", ql_kernels_level(), ctx->threads,
		(long long)s.m, (long long)s.n, (long long)s.k, variant);
	free(memory);
	free(scale);
	free(y);
	free(c);
}

static void test_results(struct ql_ctx *ctx)
{
	static const struct shape more[] = {
		{1, 130, 64}, {9, 64, 65}, {64, 200, 70}, {200, 130, 40}, {260, 10, 36}, {37, 70, 1030}};
	int variant = 0;

	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		for (int t = 0; t<36; t += i> 4 ? 7 : 1 + (int)(i > 2), variant += 7) {
			if (left_out(t + ctx->threads + (int64_t)i, 3))
				continue;
			struct operand a = operand_make(t & 1, more[i].m, more[i].k, more[i].m,
				(enum layout)(t % LAYOUTS), (enum zeros)(t / 4 % ZEROS), RANDOM);
			struct operand b = operand_make(t >> 1 & 1, more[i].k, more[i].n, more[i].n,
				(enum layout)(t / 3 % LAYOUTS), (enum zeros)(t / 12 % ZEROS), RANDOM);

			check_results(ctx, more[i], &a, &b, t & 1, variant);
			operand_free(&a);
			operand_free(&b);
		}
}

/* A B that is read as it lies, memory ending with its last code; with and without the sums of its columns. */
static void check_in_place(struct ql_ctx *ctx, struct shape s, int64_t gap, int ta, enum zeros za, enum zeros zb)
{
	struct operand a = operand_make(ta, s.m, s.k, s.m, ROWS, za, RANDOM),
		       b = operand_make(0, s.k, s.n, s.n, COLUMNS, zb, RANDOM);
	int64_t bytes = (s.n - 1) * (s.k + gap) + s.k;
	int32_t *sums = take((size_t)s.n * sizeof(*sums));

	b.data = realloc(b.data, (size_t)bytes);
	if (!b.data)
		exit(1);
	for (int64_t i = 0; i < bytes; i++)
		((int8_t *)b.data)[i] = (int8_t)draw();
	b.matrix.data = b.data;
	b.matrix.column = s.k + gap;
	CHECK(ql_gemm_i8_reads_b(s.m, s.k, &b.matrix), "%lld rows: B is packed", (long long)s.m);
	check_product(ctx, ql_gemm_i8, s, &a, &b, "gemm_i8 in place");
	for (int64_t j = 0; j < s.n; j++) {
		sums[j] = 0;
		for (int64_t l = 0; l < s.k; l++)
			sums[j] += (int32_t)code_at(&b.matrix, l, j);
	}
	b.matrix.sums = sums;
	check_product(ctx, ql_gemm_i8, s, &a, &b, "gemm_i8 in place, with sums");
	operand_free(&a);
	operand_free(&b);
	free(sums);
}

static void test_in_place(struct ql_ctx *ctx)
{
	static const int64_t rows[] = {1, 2, 3, 5, 8, 9, 17, 64}, columns[] = {1, 3, 4, 5, 63, 64, 65, 130},
			     depth[] = {1, 15, 16, 63, 64, 65, 128, 200};

	for (int i = 0; i < 8; i++)
		for (int j = 0; j < 8; j++)
			for (int l = 0; l < 8; l++)
				if (!left_out(i + 3 * j + 5 * l, 4))
					check_in_place(ctx, (struct shape){rows[i], columns[j], depth[l]},
						(i + j + l) % 3 * 31, (i + j) & 1, (enum zeros)((i + l) % ZEROS),
						(enum zeros)((j + l) % ZEROS));
	CHECK(!ql_gemm_i8_reads_b(65, 64, &(struct ql_matrix_int){.dtype = QL_int8, .row = 1, .column = 64}),
		"65 rows are few");
	CHECK(!ql_gemm_i8_reads_b(1, 64, &(struct ql_matrix_int){.dtype = QL_uint8, .row = 1, .column = 64}),
		"uint8 is read as int8");
	CHECK(!ql_gemm_i8_reads_b(1, 64, &(struct ql_matrix_int){.dtype = QL_int8, .row = 10, .column = 1}),
		"rows are read as lines");
}

static void test_level(const char *level, int threads)
{
	struct ql_ctx *ctx;

	CASE("%s, %d threads", level, threads);
	if (!CHECK(ql_kernels_force(level), "no such level"))
		return;
	ctx = ql_ctx_new(threads);
	test_results(ctx);
	if (threads == 1)
		test_in_place(ctx);
	ql_ctx_free(ctx);
}

/* Signed codes of A are not shifted: the AMX kernel on a model of its instructions. */
extern const struct ql_gemm_i8 gemm_i8_amx_model;

static void test_model(int threads)
{
	static const struct shape wide = {3, 5, 140000};
	struct ql_kernels kernels;
	struct ql_ctx *ctx;

	CASE("amx on a model of its instructions, %d threads", threads);
	CHECK(ql_kernels_force("native"), "no such level");
	ctx = ql_ctx_new(threads);
	kernels = *ctx->kernels;
	kernels.gemm_i8 = &gemm_i8_amx_model;
	ctx->kernels = &kernels;
	test_results(ctx);
	for (int t = 0; t < 4 * ZEROS; t++) { /* sums of 64 bits */
		struct operand a = operand_make(t & 1, wide.m, wide.k, wide.m, ROWS, (enum zeros)(t / 4), RANDOM);
		struct operand b =
			operand_make(t >> 1 & 1, wide.k, wide.n, wide.n, COLUMNS, (enum zeros)(t % ZEROS), RANDOM);

		check_product(ctx, ql_gemm_i8, wide, &a, &b, "gemm_i8, wide");
		operand_free(&a);
		operand_free(&b);
	}
	ql_ctx_free(ctx);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "avxvnni", "native"};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		for (int threads = 1; threads <= 8; threads = threads == 3 ? 8 : threads + 1)
			test_level(levels[i], threads);
	for (int threads = 1; threads <= 8; threads = threads == 3 ? 8 : threads + 1)
		test_model(threads);
	return check_end();
}
