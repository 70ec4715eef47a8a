/* SPDX-License-Identifier: MIT
 * The drivers of tensor/gemm/gemm.h under every kernel level this CPU has and several thread counts: integer
 * products against plain 64-bit sums (any layout, zero points on both sides, sums beyond 32 bits), float32
 * against double; interrupts, failing allocations, sizes of 0.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tensor/cpu.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tests/tools/gemm_int.h"

static void check_types(
	struct ql_ctx *ctx, gemm_fn *gemm, int ta, int tb, struct shape s, int variant, const char *what)
{
	enum layout la = (enum layout)(variant % LAYOUTS), lb = (enum layout)(variant / 3 % LAYOUTS);
	enum zeros za = (enum zeros)(variant / 2 % ZEROS), zb = (enum zeros)(variant / 5 % ZEROS);
	struct operand a = operand_make(ta, s.m, s.k, s.m, la, za, RANDOM);
	struct operand b = operand_make(tb, s.k, s.n, s.n, lb, zb, RANDOM);

	check_product(ctx, gemm, s, &a, &b, what);
	operand_free(&a);
	operand_free(&b);
}

static const struct shape shapes[] = {{1, 1, 1}, {0, 5, 3}, {5, 0, 3}, {4, 6, 0}, {1, 64, 4}, {2, 3, 5}, {6, 64, 16},
	{7, 65, 17}, {17, 1, 63}, {3, 17, 65}, {13, 127, 129}, {65, 33, 20}, {130, 70, 68}, {1, 10, 784}};

static void test_small(struct ql_ctx *ctx)
{
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		for (int variant = 0; variant<90; variant += shapes[s].m * shapes[s].n * shapes[s].k> 10000 ? 11 : 1) {
			if (left_out(variant + (int64_t)s, 3))
				continue;
			check_types(ctx, ql_gemm_i8, variant & 1, variant >> 1 & 1, shapes[s], variant, "gemm_i8");
			check_types(ctx, ql_gemm_i16, variant & 3, variant >> 2 & 3, shapes[s], variant, "gemm_i16");
		}
}

/* Sums as large as codes can make them: every code at one end, every zero point at the other. */
static void test_extreme(struct ql_ctx *ctx)
{
	static const int64_t depths[] = {33025, 33026, 65792, 70000, 139264};

	for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++)
		for (int t = 0; t < 64; t += depths[d] == 70000 && !under_sanitizers ? 1 : 5) {
			struct shape s = {2, 3, depths[d]};
			enum layout l = (enum layout)(t % LAYOUTS);
			struct operand a =
				operand_make(t & 1, s.m, s.k, s.m, l, t & 2 ? EACH : NONE, t & 4 ? LOWEST : HIGHEST);
			struct operand b = operand_make(
				t >> 3 & 1, s.k, s.n, s.n, l, t & 16 ? ONE : NONE, t & 32 ? LOWEST : HIGHEST);

			check_product(ctx, ql_gemm_i8, s, &a, &b, "gemm_i8 extreme");
			operand_free(&a);
			operand_free(&b);
		}
	for (int t = 0; t < 64; t += 3) {
		struct shape s = {2, 3, 70000};
		struct operand a = operand_make(t & 3, s.m, s.k, s.m, ROWS, EACH, t & 4 ? LOWEST : HIGHEST);
		struct operand b = operand_make(t >> 3 & 3, s.k, s.n, s.n, ROWS, EACH, t & 32 ? LOWEST : HIGHEST);

		check_product(ctx, ql_gemm_i16, s, &a, &b, "gemm_i16 extreme");
		operand_free(&a);
		operand_free(&b);
	}
}

/* Zero points far outside the codes. */
static void test_far_zeros(struct ql_ctx *ctx)
{
	struct shape s = {3, 20, 70};
	struct operand a = operand_make(0, s.m, s.k, s.m, ROWS, EACH, RANDOM),
		       b = operand_make(1, s.k, s.n, s.n, ROWS, EACH, RANDOM);

	a.zero[0] = 1 << 30;
	a.zero[1] = -(1 << 30);
	b.zero[3] = 1000000;
	check_product(ctx, ql_gemm_i8, s, &a, &b, "gemm_i8 far zeros");
	a.zero[2] = INT32_MAX;
	CHECK(ql_gemm_i8(ctx, s.m, s.n, s.k, &a.matrix, &b.matrix, store, NULL) == QL_ERR_ARGUMENT, "%s", ctx->err);
	operand_free(&a);
	operand_free(&b);
}

/* ---- bits ---- */

static int bit(const uint8_t *data, int64_t row, int64_t i, int64_t l)
{
	return data[i * row + l / 8] >> (l % 8) & 1;
}

static void check_bits(struct ql_ctx *ctx, int64_t m, int64_t n, int64_t k)
{
	int64_t row_a = (k + 7) / 8 + 1, row_b = (k + 7) / 8 + 5;
	uint8_t *a = take((size_t)(m * row_a)), *b = take((size_t)(n * row_b));
	struct ql_matrix_bits x = {a, row_a}, y = {b, row_b};
	struct result r = result_make(m, n);
	bool good = true;

	for (int64_t i = 0; i < m * row_a; i++)
		a[i] = (uint8_t)draw();
	for (int64_t i = 0; i < n * row_b; i++)
		b[i] = (uint8_t)draw();
	CHECK(ql_gemm_b1(ctx, m, n, k, &x, &y, store, &r) == QL_OK, "%s", ctx->err);
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			int64_t sum = 0;

			for (int64_t l = 0; l < k; l++)
				sum += bit(a, row_a, i, l) == bit(b, row_b, j, l) ? 1 : -1;
			good &= r.sum[i * n + j] == sum;
		}
	CHECK(good && result_complete(&r) && !r.wide, "gemm_b1: %s: %lld x %lld x %lld", ql_kernels_level(),
		(long long)m, (long long)n, (long long)k);
	free(a);
	free(b);
	result_free(&r);
}

static void test_bits(struct ql_ctx *ctx)
{
	static const int64_t size[] = {0, 1, 5, 8, 17, 33}, depth[] = {0, 1, 7, 8, 63, 64, 65, 127, 128, 1000, 70001};

	for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++)
		for (size_t d = 0; d < sizeof(depth) / sizeof(depth[0]); d++)
			check_bits(ctx, size[i], size[(i + d) % 6], depth[d]);
}

/* ---- float32 ---- */

static void check_f32(struct ql_ctx *ctx, struct shape s, int64_t a_row, int64_t a_col, int64_t b_row, int64_t b_col)
{
	int64_t ldc = s.n + 3;
	size_t na = (size_t)(s.m * a_row + s.k * a_col + 1), nb = (size_t)(s.k * b_row + s.n * b_col + 1);
	float *a = take(na * 4), *b = take(nb * 4), *c = take((size_t)(s.m * ldc) * 4);
	bool good = true;

	for (size_t i = 0; i < na; i++)
		a[i] = (float)draw() / 0x1p30f - 1;
	for (size_t i = 0; i < nb; i++)
		b[i] = (float)draw() / 0x1p30f - 1;
	for (int64_t i = 0; i < s.m * ldc; i++)
		c[i] = 77;
	CHECK(ql_gemm_f32(ctx, s.m, s.n, s.k, a, a_row, a_col, b, b_row, b_col, c, ldc) == QL_OK, "%s", ctx->err);
	for (int64_t i = 0; i < s.m; i++) {
		for (int64_t j = 0; j < s.n; j++) {
			double sum = 0, size = 0;

			for (int64_t l = 0; l < s.k; l++) {
				double x = (double)a[i * a_row + l * a_col] * (double)b[l * b_row + j * b_col];

				sum += x;
				size += fabs(x);
			}
			good &= fabs((double)c[i * ldc + j] - sum) <= (double)s.k * 0x1p-24 * size;
		}
		good &= c[i * ldc + s.n] == 77;
	}
	CHECK(good, "gemm_f32: %s: %lld x %lld x %lld, strides %lld %lld %lld %lld", ql_gemm_f32_name(ctx),
		(long long)s.m, (long long)s.n, (long long)s.k, (long long)a_row, (long long)a_col, (long long)b_row,
		(long long)b_col);
	free(a);
	free(b);
	free(c);
}

static void test_f32(struct ql_ctx *ctx)
{
	static const struct shape more[] = {
		{1, 300, 200}, {300, 1, 200}, {257, 129, 65}, {60, 1000, 90}, {1000, 60, 90}};

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) + 5; i++) {
		struct shape s = i < 5 ? more[i] : shapes[i - 5];

		const int64_t strides[][4] = {{s.k, 1, s.n, 1}, {s.k + 2, 1, 1, s.k + 1}, {1, s.m, s.n + 9, 1},
			{1, s.m + 1, 1, s.k}, {2 * s.k, 2, 3, 3 * s.k}, /* no unit stride */
			{0, 1, 0, 1},                                   /* one row repeated */
			{1, 1, 1, 0}};                                  /* sliding window, one column repeated */

		for (size_t l = 0; l < sizeof(strides) / sizeof(strides[0]); l++)
			if (!left_out((int64_t)(i + l), 3))
				check_f32(ctx, s, strides[l][0], strides[l][1], strides[l][2], strides[l][3]);
	}
}

/* ---- float64 ---- */

/* The bits of a plain loop, with strides of any sign, in all ways of starting; nothing else is written. */
static void check_f64(
	struct ql_ctx *ctx, struct shape s, int64_t a_row, int64_t a_col, int64_t b_row, int64_t b_col, unsigned how)
{
	const int64_t ldc = s.n + 3, na = s.m * llabs(a_row) + s.k * llabs(a_col),
		      nb = s.k * llabs(b_row) + s.n * llabs(b_col);
	double *a = take((size_t)(2 * na + 1) * 8), *b = take((size_t)(2 * nb + 1) * 8),
	       *c = take((size_t)(s.m * ldc) * 8);
	struct ql_matrix_f64 x = {a + na, a_row, a_col}, y = {b + nb, b_row, b_col};
	bool good = true;

	for (int64_t i = 0; i <= 2 * na; i++)
		a[i] = (double)draw() / 0x1p30 - 1;
	for (int64_t i = 0; i <= 2 * nb; i++)
		b[i] = (double)draw() / 0x1p30 - 1;
	for (int64_t i = 0; i < s.m * ldc; i++)
		c[i] = (double)(i % 7);
	CHECK(ql_gemm_f64(ctx, s.m, s.n, s.k, &x, &y, c, ldc, how) == QL_OK, "%s", ctx->err);
	for (int64_t i = 0; i < s.m; i++)
		for (int64_t j = 0; j < ldc; j++) {
			double sum = how & QL_F64_ADD || j >= s.n ? (double)((i * ldc + j) % 7) : 0;

			for (int64_t l = 0; l < s.k && j < s.n; l++) {
				double p = x.data[i * a_row + l * a_col] * y.data[l * b_row + j * b_col];

				sum = how & QL_F64_NEGATE ? sum - p : sum + p;
			}
			good &= c[i * ldc + j] == sum || (how & QL_F64_UPPER && j < i);
		}
	CHECK(good, "gemm_f64: %s: %lld x %lld x %lld, strides %lld %lld %lld %lld, %u", ql_kernels_level(),
		(long long)s.m, (long long)s.n, (long long)s.k, (long long)a_row, (long long)a_col, (long long)b_row,
		(long long)b_col, how);
	free(a);
	free(b);
	free(c);
}

static void test_f64(struct ql_ctx *ctx)
{
	static const struct shape more[] = {{1, 300, 20}, {300, 1, 20}, {8, 16, 256}, {16, 32, 257}, {70, 90, 520}};
	unsigned how = 0;

	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]) + 5; i++) {
		struct shape s = i < 5 ? more[i] : shapes[i - 5];
		const int64_t strides[][4] = {
			{s.k, 1, s.n, 1}, {1, s.m, 1, s.k}, {-s.k - 1, -1, s.n, -1}, {s.k, -1, -s.n, 1}, {0, 1, 1, 0}};

		for (size_t l = 0; l < sizeof(strides) / sizeof(strides[0]); l++)
			if (!left_out((int64_t)(i + l), 3))
				check_f64(
					ctx, s, strides[l][0], strides[l][1], strides[l][2], strides[l][3], how++ % 8);
	}
}

/* ---- threads ---- */

/* Large enough for several threads: the bits of one thread, every time. (Two threads in one serial OpenBLAS
 * made one product in twenty wrong: it hands out its buffers without a lock.) */
static void test_f32_threads(void)
{
	struct ql_ctx *one = ql_ctx_new(1), *many = ql_ctx_new(3);
	int64_t m = 300, n = 400, k = 500;
	float *a = take((size_t)(m * k) * 4), *b = take((size_t)(k * n) * 4);
	float *c = take((size_t)(m * n) * 4), *d = take((size_t)(m * n) * 4);
	int wrong = 0;

	CASE("float32, threads");
	for (int64_t i = 0; i < m * k; i++)
		a[i] = (float)draw() / 0x1p30f - 1;
	for (int64_t i = 0; i < k * n; i++)
		b[i] = (float)draw() / 0x1p30f - 1;
	CHECK(ql_gemm_f32(one, m, n, k, a, k, 1, b, n, 1, c, n) == QL_OK, "%s", one->err);
	for (int r = 0; r < (under_sanitizers ? 20 : 200); r++) {
		CHECK(ql_gemm_f32(many, m, n, k, a, k, 1, b, n, 1, d, n) == QL_OK, "%s", many->err);
		wrong += memcmp(c, d, (size_t)(m * n) * 4) != 0;
	}
	CHECK(wrong == 0, "%d products differ", wrong);
	free(a);
	free(b);
	free(c);
	free(d);
	ql_ctx_free(one);
	ql_ctx_free(many);
}

/* The same for integers under the level in force, with zero points on both sides. */
static void test_i8_threads(int64_t depth)
{
	struct ql_ctx *one = ql_ctx_new(1), *many = ql_ctx_new(3);
	int64_t few = under_sanitizers ? 3 : 1; /* still several tasks */
	struct shape s = {(depth > 10000 ? 40 : 500) / few, 300 / few, depth};
	struct operand a = operand_make(0, s.m, s.k, s.m, ROWS, EACH, RANDOM);
	struct operand b = operand_make(1, s.k, s.n, s.n, COLUMNS, EACH, RANDOM);
	struct result x = result_make(s.m, s.n), y = result_make(s.m, s.n);

	CHECK(ql_gemm_i8(one, s.m, s.n, s.k, &a.matrix, &b.matrix, store, &x) == QL_OK, "%s", one->err);
	CHECK(ql_gemm_i8(many, s.m, s.n, s.k, &a.matrix, &b.matrix, store, &y) == QL_OK, "%s", many->err);
	CHECK(result_complete(&x) && result_complete(&y), "elements missing or given twice");
	CHECK(!memcmp(x.sum, y.sum, (size_t)(s.m * s.n) * 8), "threads differ");
	for (int i = 0; i < 300; i++) {
		int64_t r = draw() % s.m, c = draw() % s.n;

		CHECK(x.sum[r * s.n + c] == oracle(&a, &b, s.k, r, c), "row %lld, column %lld", (long long)r,
			(long long)c);
	}
	operand_free(&a);
	operand_free(&b);
	result_free(&x);
	result_free(&y);
	ql_ctx_free(one);
	ql_ctx_free(many);
}

/* The same products through a library, where one is installed. */
static void test_library(void)
{
	struct ql_ctx *ctx;

	setenv("QUOLL_BLAS", "libblas.so.3", 0);
	ql_kernels_force("native");
	ctx = ql_ctx_new(2);
	if (strcmp(ql_gemm_f32_name(ctx), "gemm_f32_blas")) {
		SKIP("gemm_f32 by a library", "no CBLAS is installed");
	} else {
		CASE("float32 by a library");
		test_f32(ctx);
	}
	ql_ctx_free(ctx);
}

/* ---- interrupts and allocations ---- */

static void test_interrupt(struct ql_ctx *ctx)
{
	struct shape s = {64, 64, 64};
	struct operand a = operand_make(0, 64, 64, 64, ROWS, EACH, RANDOM),
		       b = operand_make(0, 64, 64, 64, ROWS, EACH, RANDOM);
	struct result r = result_make(64, 64);
	float *c = take(64 * 64 * 4);
	struct ql_matrix_bits bits = {a.data, 8};
	struct ql_matrix_f64 wide = {(double *)c, 4, 1};

	ctx->interrupted = 1;
	CHECK(ql_gemm_i8(ctx, s.m, s.n, s.k, &a.matrix, &b.matrix, store, &r) == QL_ERR_INTERRUPTED, "gemm_i8");
	CHECK(ql_gemm_i16(ctx, s.m, s.n, s.k, &a.matrix, &b.matrix, store, &r) == QL_ERR_INTERRUPTED, "gemm_i16");
	CHECK(ql_gemm_b1(ctx, s.m, s.n, s.k, &bits, &bits, store, &r) == QL_ERR_INTERRUPTED, "gemm_b1");
	memset(c, 0, 64 * 64 * 4);
	CHECK(ql_gemm_f32(ctx, 4, 4, 4, c, 4, 1, c, 4, 1, c + 64, 4) == QL_ERR_INTERRUPTED, "gemm_f32");
	CHECK(ql_gemm_f64(ctx, 4, 4, 4, &wide, &wide, (double *)c + 64, 4, 0) == QL_ERR_INTERRUPTED, "gemm_f64");
	ctx->interrupted = 0;
	free(c);
	operand_free(&a);
	operand_free(&b);
	result_free(&r);
}

/* Every allocation fails in turn: an error, and the next call works. */
static void test_allocation(struct ql_ctx *ctx, gemm_fn *gemm, const char *what)
{
	struct shape s = {300, 300, under_sanitizers ? 600 : 3000};
	struct operand a = operand_make(0, s.m, s.k, s.m, ROWS, EACH, RANDOM),
		       b = operand_make(1, s.k, s.n, s.n, ROWS, EACH, RANDOM);
	struct result r = result_make(s.m, s.n);
	enum ql_status status = QL_ERR_MEMORY;
	int n;

	for (n = 1; n < 50 && status; n++) {
		ctx->memory.fail_after = (uint64_t)n;
		status = gemm(ctx, s.m, s.n, s.k, &a.matrix, &b.matrix, store, &r);
		ctx->memory.fail_after = 0;
		if (status)
			CHECK(status == QL_ERR_MEMORY, "%s: allocation %d: %s", what, n, ctx->err);
	}
	CHECK(status == QL_OK && n > 2, "%s: fails even with memory", what);
	operand_free(&a);
	operand_free(&b);
	result_free(&r);
}

/* ---- all ---- */

static void test_level(const char *level, int threads)
{
	struct ql_ctx *ctx;

	CASE("%s, %d threads", level, threads);
	if (!CHECK(ql_kernels_force(level), "no such level"))
		return;
	ctx = ql_ctx_new(threads);
	test_small(ctx);
	test_extreme(ctx);
	test_far_zeros(ctx);
	test_bits(ctx);
	test_f32(ctx);
	test_f64(ctx);
	test_interrupt(ctx);
	ql_ctx_free(ctx);
	CASE("%s, int8, threads", level);
	test_i8_threads(2000);
	test_i8_threads(33100);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "avxvnni", "avx512vnni", "amx", "native"};
	struct ql_ctx *ctx = ql_ctx_new(2);
	uint32_t below = 0;

	CASE("allocations");
	test_allocation(ctx, ql_gemm_i8, "gemm_i8");
	ql_ctx_free(ctx);
	ctx = ql_ctx_new(2);
	test_allocation(ctx, ql_gemm_i16, "gemm_i16");
	ql_ctx_free(ctx);
	test_f32_threads();
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		uint32_t adds = (uint32_t)ql_cpu_level(levels[i]) & ~below;

		if (adds && strcmp(levels[i], "native") && !(adds & ql_cpu()->features))
			SKIP(levels[i], "this CPU has nothing of it");
		else
			test_level(levels[i], 1);
		below |= strcmp(levels[i], "native") ? (uint32_t)ql_cpu_level(levels[i]) : 0;
	}
	test_level("native", 5);
	test_library();
	return check_end();
}
