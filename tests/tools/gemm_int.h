/* SPDX-License-Identifier: MIT
 * What the tests of integer products share: operands in any layout with zero points, their plain sums in 64 bits, and
 * results that count how often each element is given.
 */
#ifndef QUOLL_TESTS_TOOLS_GEMM_INT_H
#define QUOLL_TESTS_TOOLS_GEMM_INT_H

#include <stdlib.h>
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

static uint64_t state = 7;

static inline uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static inline void *take(size_t bytes)
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

static inline int64_t range_draw(int64_t lo, int64_t hi)
{
	return lo + (int64_t)(draw() % (uint64_t)(hi - lo + 1));
}

/* A matrix of `rows` x `columns` codes; `along` counts its zero points. */
static inline struct operand operand_make(
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

static inline void operand_free(struct operand *o)
{
	free(o->data);
	free(o->zero);
}

static inline int64_t code_at(const struct ql_matrix_int *x, int64_t i, int64_t j)
{
	int64_t at = i * x->row + j * x->column;

	switch (x->dtype) {
	case QL_int8: return ((const int8_t *)x->data)[at];
	case QL_uint8: return ((const uint8_t *)x->data)[at];
	case QL_int16: return ((const int16_t *)x->data)[at];
	default: return ((const uint16_t *)x->data)[at];
	}
}

static inline int64_t zero_at(const struct ql_matrix_int *x, int64_t i)
{
	return x->zero ? x->zero[i * x->zero_step] : 0;
}

static inline int64_t oracle(const struct operand *x, const struct operand *y, int64_t k, int64_t i, int64_t j)
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

static inline struct result result_make(int64_t m, int64_t n)
{
	struct result r = {.m = m, .n = n, .sum = take((size_t)(m * n) * 8), .given = take((size_t)(m * n))};

	memset(r.given, 0, (size_t)(m * n));
	return r;
}

static inline void store(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
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

static inline bool result_complete(const struct result *r)
{
	for (int64_t i = 0; i < r->m * r->n; i++)
		if (r->given[i] != 1)
			return false;
	return !r->both;
}

static inline void result_free(struct result *r)
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

static inline void check_product(struct ql_ctx *ctx, gemm_fn *gemm, struct shape s, const struct operand *a,
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

#endif
