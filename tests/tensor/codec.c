/* SPDX-License-Identifier: MIT
 * ql_encode and ql_decode, element by element against the formulas, with the scale of each element found from
 * its index: every granularity, every affine dtype, every kernel level, several threads.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/schemes/affine.h"
#include "tensor/codec.h"
#include "tensor/cpu.h"
#include "tensor/kernels/kernels.h"
#include "tensor/view.h"
#include "tests/check.h"

extern const struct ql_scheme ql_scheme_asymmetric;

static uint64_t state = 11;

static uint32_t draw(void)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

static float draw_value(void)
{
	static const float special[] = {0, -0.0f, 0.5f, 1.5f, -2.5f, NAN, INFINITY, -INFINITY, 3.4e38f, 1e-40f};

	if (draw() % 6 == 0)
		return special[draw() % 10];
	return ((float)draw() / 0x1p30f - 1) * 40;
}

struct grain {
	int axis, block_axis, block;
};

/* Index of the scale of element i of a contiguous tensor, from its coordinates alone. */
static int64_t scale_index(const struct ql_tensor *t, const struct grain *g, int64_t i)
{
	int64_t at[QL_MAX_RANK] = {0}, index = 0;

	for (int d = t->rank - 1; d >= 0; d--) {
		at[d] = i % t->shape[d];
		i /= t->shape[d];
	}
	if (!g->block)
		return g->axis < 0 ? 0 : at[g->axis];
	for (int d = 0; d < t->rank; d++) {
		bool cut = d == g->block_axis;

		index = index * (cut ? ql_ceil_div(t->shape[d], g->block) : t->shape[d]) +
			(cut ? at[d] / g->block : at[d]);
	}
	return index;
}

static void scale_shape(const struct ql_tensor *t, const struct grain *g, int *rank, int64_t *shape)
{
	*rank = g->block ? t->rank : g->axis >= 0;
	if (!g->block && g->axis >= 0)
		shape[0] = t->shape[g->axis];
	for (int d = 0; g->block && d < t->rank; d++)
		shape[d] = d == g->block_axis ? ql_ceil_div(t->shape[d], g->block) : t->shape[d];
}

static bool make_params(struct ql_ctx *ctx, struct ql_tensor *t, const struct grain *g, bool has_zero)
{
	struct ql_qparams *q = ql_alloc_zeroed(ctx, sizeof(*q));
	int64_t shape[QL_MAX_RANK], n;
	int rank;

	q->refs = 1;
	q->scheme = &ql_scheme_asymmetric;
	q->codes.bits = ql_dtypes[t->dtype].bits;
	q->codes.lo = (int32_t)ql_dtypes[t->dtype].lo;
	q->codes.hi = (int32_t)ql_dtypes[t->dtype].hi;
	q->axis = (int8_t)g->axis;
	q->block_axis = (int8_t)g->block_axis;
	q->block = g->block;
	t->q = q;
	scale_shape(t, g, &rank, shape);
	if (ql_tensor_new(ctx, QL_float32, rank, shape, &q->scale) ||
		(has_zero && ql_tensor_new(ctx, t->dtype, rank, shape, &q->zero_point)))
		return false;
	n = ql_tensor_nelem(q->scale);
	for (int64_t i = 0; i < n; i++)
		((float *)ql_tensor_data(q->scale))[i] = (float)(draw() % 100 + 1) / (float)(1 << draw() % 8);
	for (int64_t i = 0; has_zero && i < n; i++) {
		int64_t index[QL_MAX_RANK] = {0}, left = i, zero, offset = 0;

		zero = q->codes.lo + (int64_t)(draw() % (uint32_t)(q->codes.hi - q->codes.lo + 1));
		for (int d = rank - 1; d >= 0; d--) {
			index[d] = left % shape[d];
			left /= shape[d];
			offset += index[d] * q->zero_point->stride[d];
		}
		ql_dtypes[t->dtype].from_i64(q->zero_point->storage->data, offset, 1, 1, &zero);
	}
	return true;
}

/* Scales and zero points, read once: the formulas meet each of them many times. */
struct params {
	float *scale;
	int32_t *zero;
};

static struct params params_of(const struct ql_tensor *t)
{
	int64_t n = ql_tensor_nelem(t->q->scale);
	struct params p = {check_alloc((size_t)n * sizeof(float)), check_alloc((size_t)n * sizeof(int32_t))};

	for (int64_t i = 0; i < n; i++) {
		p.scale[i] = (float)ql_tensor_at_f64(t->q->scale, i);
		p.zero[i] = t->q->zero_point ? (int32_t)ql_tensor_at_f64(t->q->zero_point, i) : 0;
	}
	return p;
}

static int32_t expected_code(const struct ql_codes *c, float scale, int32_t zero, float x)
{
	float v = rintf(x / scale);

	if (isnan(x))
		return zero;
	return v <= (float)(c->lo - zero) ? c->lo : v >= (float)(c->hi - zero) ? c->hi : (int32_t)v + zero;
}

static int64_t place(const struct ql_tensor *t, int64_t i)
{
	int64_t at = t->offset;

	for (int d = t->rank - 1; d >= 0; d--) {
		at += i % t->shape[d] * t->stride[d];
		i /= t->shape[d];
	}
	return at;
}

#define RUN 64

/* Up to RUN elements of one line of the last axis, as codes and as values. Along it an index of scales stays or grows by 1, so that the
 * first two and the last element say whether it does the same at each. */
static bool run_good(const struct ql_tensor *t, const struct params *p, const struct grain *g, int64_t from, int64_t n,
	const float *x, const float *y)
{
	int64_t codes[RUN], first = scale_index(t, g, from), step = n > 1 ? scale_index(t, g, from + 1) - first : 0;
	bool even = scale_index(t, g, from + n - 1) == first + step * (n - 1), good = true;

	ql_dtypes[t->dtype].to_i64(t->storage->data, place(t, from), 1, n, codes);
	for (int64_t i = 0; i < n; i++) {
		int64_t s = even ? first + step * i : scale_index(t, g, from + i);
		int32_t code = expected_code(&t->q->codes, p->scale[s], p->zero[s], x[from + i]);

		good &= codes[i] == code && y[from + i] == (float)(code - p->zero[s]) * p->scale[s];
	}
	return good;
}

static void check_tensor(struct ql_ctx *ctx, unsigned dtype, int rank, const int64_t *shape, const struct grain *g)
{
	struct ql_tensor *x = NULL, *t = NULL, *y = NULL;
	int64_t n, nan = 0, inf = 0, nans = 0, infs = 0, line = rank ? shape[rank - 1] : 1;
	struct params p;
	bool good = true;

	if (ql_tensor_new(ctx, QL_float32, rank, shape, &x) || ql_tensor_new(ctx, dtype, rank, shape, &t) ||
		!make_params(ctx, t, g, draw() % 3 > 0)) {
		CHECK(false, "%s", ctx->err);
		return;
	}
	n = ql_tensor_nelem(x);
	for (int64_t i = 0; i < n; i++) {
		float v = draw_value();

		((float *)ql_tensor_data(x))[i] = v;
		nans += isnan(v) != 0;
		infs += isinf(v) != 0;
	}
	CHECK(ql_encode(ctx, x, t, &nan, &inf) == QL_OK, "%s", ctx->err);
	CHECK(ql_decode(ctx, t, &y) == QL_OK, "%s", ctx->err);
	p = params_of(t);
	for (int64_t i = 0, run; i < n; i += run) {
		run = ql_min64(RUN, line - i % line);
		good &= run_good(t, &p, g, i, run, ql_tensor_data(x), ql_tensor_data(y));
	}
	CHECK(good, "%s, rank %d, axis %d, blocks of %d along %d", ql_dtype_name(dtype), rank, g->axis, g->block,
		g->block_axis);
	CHECK(nan == nans && inf == infs, "%lld NaN of %lld, %lld Inf of %lld", (long long)nan, (long long)nans,
		(long long)inf, (long long)infs);
	free(p.scale);
	free(p.zero);
	ql_tensor_release(ctx, x);
	ql_tensor_release(ctx, t);
	ql_tensor_release(ctx, y);
}

static void check_shape(struct ql_ctx *ctx, int rank, const int64_t *shape)
{
	static const int blocks[] = {1, 3, 32, 300, 257};

	for (unsigned d = 0; d < QL_DTYPE_COUNT; d++) {
		bool codes = ql_dtypes[d].kind == QL_KIND_INT || ql_dtypes[d].kind == QL_KIND_UINT;

		if (!codes || ql_dtypes[d].bits > 16)
			continue;
		check_tensor(ctx, d, rank, shape, &(struct grain){-1, -1, 0});
		for (int axis = 0; axis < rank; axis++) {
			check_tensor(ctx, d, rank, shape, &(struct grain){axis, -1, 0});
			for (size_t b = 0; b < sizeof(blocks) / sizeof(blocks[0]); b++)
				check_tensor(ctx, d, rank, shape, &(struct grain){-1, axis, blocks[b]});
		}
	}
}

static const struct {
	int rank;
	int64_t shape[4];
} shapes[] = {{0, {0}}, {1, {0}}, {1, {1}}, {1, {77}}, {2, {5, 13}}, {2, {3, 0}}, {2, {9, 640}}, {3, {3, 4, 10}},
	{3, {2, 7, 33}}, {4, {2, 3, 5, 16}}, {1, {5000}}};

static void test_level(const char *level, int threads)
{
	struct ql_ctx *ctx;

	ql_kernels_force(level);
	ctx = ql_ctx_new(threads);
	CASE("%s, %d threads", level, threads);
	for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
		check_shape(ctx, shapes[s].rank, shapes[s].shape);
	ql_ctx_free(ctx);
}

/* Results that are written past the caches, by more than one thread. */
static void test_large(void)
{
	struct ql_ctx *ctx = ql_ctx_new(3);
	int64_t shape[2] = {3, (int64_t)ql_cpu_stream_above() / 3 + 1000};

	CASE("large");
	check_tensor(ctx, QL_int8, 2, shape, &(struct grain){0, -1, 0});
	check_tensor(ctx, QL_uint4, 2, shape, &(struct grain){-1, 1, 64});
	shape[1] /= 2;
	check_tensor(ctx, QL_int16, 2, shape, &(struct grain){-1, -1, 0});
	ql_ctx_free(ctx);
}

int main(void)
{
	test_level("ref", 1);
	test_level("avx2", 1);
	test_level("native", 1);
	test_level("native", 3);
	test_large();
	return check_end();
}
