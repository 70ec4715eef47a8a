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
#include "tests/check.h"

static uint64_t state = 7;

static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static void *take(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		exit(1);
	return p;
}

/* ---- integer operands ---- */

enum layout { ROWS, COLUMNS, SPREAD, LAYOUTS };
enum zeros { NONE, ONE, EACH, ZEROS };
enum fill { RANDOM, LOWEST, HIGHEST };

static const struct {
	unsigned dtype;
	int64_t lo, hi;
} types[] = {{QL_int8, -128, 127}, {QL_uint8, 0, 255}, {QL_int16, -32768, 32767}, {QL_uint16, 0, 65535}};

struct operand {
	struct ql_matrix_int matrix;
	void *data;
	int32_t *zero;
	bool constant; /* all codes are the same */
};

static int64_t range_draw(int64_t lo, int64_t hi)
{
	return lo + (int64_t)(draw() % (uint64_t)(hi - lo + 1));
}

/* A matrix of `rows` x `columns` codes; `along` counts its zero points. */
static struct operand operand_make(
	int type, int64_t rows, int64_t columns, int64_t along, enum layout layout, enum zeros zeros, enum fill fill)
{
	int bytes = type < 2 ? 1 : 2;
	struct operand o = {.matrix = {.dtype = types[type].dtype}, .constant = fill != RANDOM};
	int64_t n, lo = types[type].lo, hi = types[type].hi;

	o.matrix.row = layout == ROWS ? columns + 3 : layout == COLUMNS ? 1 : 2 * columns + 1;
	o.matrix.column = layout == ROWS ? 1 : layout == COLUMNS ? rows + 2 : 2;
	n = rows * o.matrix.row + columns * o.matrix.column + 1;
	o.data = take((size_t)(n * bytes));
	for (int64_t i = 0; i < n; i++) {
		int64_t code = fill == RANDOM ? range_draw(lo, hi) : fill == LOWEST ? lo : hi;

		if (bytes == 1)
			((uint8_t *)o.data)[i] = (uint8_t)code;
		else
			((uint16_t *)o.data)[i] = (uint16_t)code;
	}
	o.matrix.data = o.data;
	o.zero = take((size_t)(along + 1) * sizeof(*o.zero));
	for (int64_t i = 0; i <= along; i++)
		o.zero[i] = (int32_t)(fill == RANDOM ? range_draw(lo, hi) : fill == LOWEST ? hi : lo);
	o.matrix.zero = zeros == NONE ? NULL : o.zero;
	o.matrix.zero_step = zeros == EACH;
	return o;
}

static void operand_free(struct operand *o)
{
	free(o->data);
	free(o->zero);
}

static int64_t code_at(const struct ql_matrix_int *x, int64_t i, int64_t j)
{
	int64_t at = i * x->row + j * x->column;

	switch (x->dtype) {
	case QL_int8: return ((const int8_t *)x->data)[at];
	case QL_uint8: return ((const uint8_t *)x->data)[at];
	case QL_int16: return ((const int16_t *)x->data)[at];
	default: return ((const uint16_t *)x->data)[at];
	}
}

static int64_t zero_at(const struct ql_matrix_int *x, int64_t i)
{
	return x->zero ? x->zero[i * x->zero_step] : 0;
}

static int64_t oracle(const struct operand *x, const struct operand *y, int64_t k, int64_t i, int64_t j)
{
	const struct ql_matrix_int *a = &x->matrix, *b = &y->matrix;
	int64_t za = zero_at(a, i), zb = zero_at(b, j), sum = 0;

	if (x->constant && y->constant)
		return k * (code_at(a, 0, 0) - za) * (code_at(b, 0, 0) - zb);
	for (int64_t l = 0; l < k; l++)
		sum += (code_at(a, i, l) - za) * (code_at(b, l, j) - zb);
	return sum;
}

/* ---- results ---- */

struct result {
	int64_t m, n;
	int64_t *sum;
	unsigned char *given; /* how often each element came */
	bool wide, both;
};

static struct result result_make(int64_t m, int64_t n)
{
	struct result r = {.m = m, .n = n, .sum = take((size_t)(m * n) * 8), .given = take((size_t)(m * n))};

	memset(r.given, 0, (size_t)(m * n));
	return r;
}

static void store(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	struct result *r = arg;

	if (!sum32 == !sum64)
		r->both = true;
	if (sum64)
		r->wide = true;
	for (int64_t l = 0; l < n; l++) {
		r->sum[i * r->n + j + l] = sum32 ? sum32[l] : sum64[l];
		r->given[i * r->n + j + l]++;
	}
}

static bool result_complete(const struct result *r)
{
	for (int64_t i = 0; i < r->m * r->n; i++)
		if (r->given[i] != 1)
			return false;
	return !r->both;
}

static void result_free(struct result *r)
{
	free(r->sum);
	free(r->given);
}

/* ---- one integer product ---- */

typedef enum ql_status gemm_fn(struct ql_ctx *, int64_t, int64_t, int64_t, const struct ql_matrix_int *,
	const struct ql_matrix_int *, ql_gemm_store_fn *, void *);

struct shape {
	int64_t m, n, k;
};

static void check_product(struct ql_ctx *ctx, gemm_fn *gemm, struct shape s, const struct operand *a,
	const struct operand *b, const char *what)
{
	struct result r = result_make(s.m, s.n);
	bool good = true, fits = true;
	enum ql_status status = gemm(ctx, s.m, s.n, s.k, &a->matrix, &b->matrix, store, &r);

	CHECK(status == QL_OK, "%s: %s", what, ctx->err);
	CHECK(result_complete(&r), "%s: %lld x %lld x %lld: elements missing or given twice", what, (long long)s.m,
		(long long)s.n, (long long)s.k);
	for (int64_t i = 0; i < s.m; i++)
		for (int64_t j = 0; j < s.n; j++) {
			int64_t sum = oracle(a, b, s.k, i, j);

			good &= r.sum[i * s.n + j] == sum;
			fits &= sum == (int32_t)sum;
		}
	CHECK(good, "%s: %s, %d threads: %lld x %lld x %lld", what, ql_kernels_level(), ctx->threads, (long long)s.m,
		(long long)s.n, (long long)s.k);
	CHECK(fits || r.wide, "%s: a sum beyond 32 bits came as 32 bits", what);
	result_free(&r);
}

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
			check_types(ctx, ql_gemm_i8, variant & 1, variant >> 1 & 1, shapes[s], variant, "gemm_i8");
			check_types(ctx, ql_gemm_i16, variant & 3, variant >> 2 & 3, shapes[s], variant, "gemm_i16");
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
				check_in_place(ctx, (struct shape){rows[i], columns[j], depth[l]}, (i + j + l) % 3 * 31,
					(i + j) & 1, (enum zeros)((i + l) % ZEROS), (enum zeros)((j + l) % ZEROS));
	CHECK(!ql_gemm_i8_reads_b(65, 64, &(struct ql_matrix_int){.dtype = QL_int8, .row = 1, .column = 64}),
		"65 rows are few");
	CHECK(!ql_gemm_i8_reads_b(1, 64, &(struct ql_matrix_int){.dtype = QL_uint8, .row = 1, .column = 64}),
		"uint8 is read as int8");
	CHECK(!ql_gemm_i8_reads_b(1, 64, &(struct ql_matrix_int){.dtype = QL_int8, .row = 10, .column = 1}),
		"rows are read as lines");
}

/* Sums as large as codes can make them: every code at one end, every zero point at the other. */
static void test_extreme(struct ql_ctx *ctx)
{
	static const int64_t depths[] = {33025, 33026, 65792, 70000, 139264};

	for (size_t d = 0; d < sizeof(depths) / sizeof(depths[0]); d++)
		for (int t = 0; t < 64; t += depths[d] == 70000 ? 1 : 5) {
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

		check_f32(ctx, s, s.k, 1, s.n, 1);
		check_f32(ctx, s, s.k + 2, 1, 1, s.k + 1);
		check_f32(ctx, s, 1, s.m, s.n + 9, 1);
		check_f32(ctx, s, 1, s.m + 1, 1, s.k);
		check_f32(ctx, s, 2 * s.k, 2, 3, 3 * s.k); /* no unit stride */
		check_f32(ctx, s, 0, 1, 0, 1);             /* one row repeated */
		check_f32(ctx, s, 1, 1, 1, 0);             /* sliding window, one column repeated */
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
	for (int r = 0; r < 200; r++) {
		CHECK(ql_gemm_f32(many, m, n, k, a, k, 1, b, n, 1, d, n) == QL_OK, "%s", many->err);
		wrong += memcmp(c, d, (size_t)(m * n) * 4) != 0;
	}
	CHECK(wrong == 0, "%d of 200 products differ", wrong);
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
	struct shape s = {depth > 10000 ? 40 : 500, 300, depth};
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

	ctx->interrupted = 1;
	CHECK(ql_gemm_i8(ctx, s.m, s.n, s.k, &a.matrix, &b.matrix, store, &r) == QL_ERR_INTERRUPTED, "gemm_i8");
	CHECK(ql_gemm_i16(ctx, s.m, s.n, s.k, &a.matrix, &b.matrix, store, &r) == QL_ERR_INTERRUPTED, "gemm_i16");
	CHECK(ql_gemm_b1(ctx, s.m, s.n, s.k, &bits, &bits, store, &r) == QL_ERR_INTERRUPTED, "gemm_b1");
	memset(c, 0, 64 * 64 * 4);
	CHECK(ql_gemm_f32(ctx, 4, 4, 4, c, 4, 1, c, 4, 1, c + 64, 4) == QL_ERR_INTERRUPTED, "gemm_f32");
	ctx->interrupted = 0;
	free(c);
	operand_free(&a);
	operand_free(&b);
	result_free(&r);
}

/* Every allocation fails in turn: an error, and the next call works. */
static void test_allocation(struct ql_ctx *ctx, gemm_fn *gemm, const char *what)
{
	struct shape s = {300, 300, 3000};
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
	test_in_place(ctx);
	test_extreme(ctx);
	test_far_zeros(ctx);
	test_bits(ctx);
	test_f32(ctx);
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
