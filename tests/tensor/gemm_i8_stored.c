/* SPDX-License-Identifier: MIT
 * Panels in the place of codes: every size around the tiles and both orders, at every level of kernels. Elements, copies, views and
 * writes find the codes; products read the panels, narrow and wide; whoever holds the codes keeps them.
 */
#include <string.h>

#include "quant/schemes/affine.h"
#include "tensor/closed.h"
#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tests/check.h"

static uint8_t code_of(int64_t i)
{
	return (uint8_t)((uint64_t)i * 2654435761u >> 13);
}

/* B (k, n) over codes (n, k), with `columns`, or (k, n). */
static struct ql_tensor *make(struct ql_ctx *ctx, unsigned dtype, int64_t n, int64_t k, bool columns)
{
	struct ql_tensor *t;

	if (ql_tensor_new(ctx, dtype, 2, (const int64_t[]){k, n}, &t))
		return NULL;
	t->stride[0] = columns ? 1 : n;
	t->stride[1] = columns ? k : 1;
	for (int64_t i = 0; i < n * k; i++)
		((uint8_t *)t->storage->data)[i] = code_of(i);
	return t;
}

static int64_t value(unsigned dtype, uint8_t code)
{
	return dtype == QL_int8 ? (int8_t)code : code;
}

static bool has_codes(struct ql_ctx *ctx, struct ql_tensor *t, int64_t size)
{
	bool same = true;

	for (int64_t i = 0; i < size; i += 7)
		same = same && t->storage->closed->kind->get(t->storage->closed, i) == value(t->dtype, code_of(i));
	if (ql_closed_open(ctx, t->storage))
		return false;
	for (int64_t i = 0; i < size; i++)
		same = same && ((uint8_t *)t->storage->data)[i] == code_of(i);
	ql_closed_close(ctx, t->storage);
	return same && ql_is_closed(t);
}

static int64_t sum_of(const struct ql_tensor *t, const uint8_t *a, int64_t zero, int64_t l0, int64_t j)
{
	int64_t sum = 0;

	for (int64_t l = 0; l < l0; l++)
		sum += (a[l] - zero) * value(t->dtype, code_of(l * t->stride[0] + j * t->stride[1] + t->offset));
	return sum;
}

static int64_t got[1024];

static void receive(void *arg, int64_t i, int64_t j, int64_t n, const int32_t *sum32, const int64_t *sum64)
{
	(void)arg;
	for (int64_t l = 0; l < n && i == 0; l++)
		got[j + l] = sum32 ? sum32[l] : sum64[l];
}

/* A row with a zero point times the columns of t; a large zero point needs sums of 64 bits. */
static void check_product(struct ql_ctx *ctx, const struct ql_tensor *t, int32_t zero)
{
	struct ql_gemm_i8_panels panels;
	int64_t k = t->shape[0], n = t->shape[1];
	uint8_t row[1024];
	struct ql_matrix_int a = {.data = row, .dtype = QL_uint8, .row = k, .column = 1, .zero = &zero};
	struct ql_matrix_int b = {.dtype = t->dtype, .row = t->stride[0], .column = t->stride[1], .panels = &panels};
	bool same = true;

	for (int64_t l = 0; l < k; l++)
		row[l] = (uint8_t)(l * 37 + 11);
	CHECK(ql_gemm_i8_stored(ctx, t, &panels) && panels.kernel, "panels");
	CHECK(!ql_gemm_i8(ctx, 1, n, k, &a, &b, receive, NULL), "%s", ctx->err);
	for (int64_t j = 0; j < n; j++)
		same = same && got[j] == sum_of(t, row, zero, k, j);
	CHECK(same, "sums with zero point %d", (int)zero);
}

static void check_views(struct ql_ctx *ctx, struct ql_tensor *t)
{
	struct ql_gemm_i8_panels panels;
	struct ql_tensor *view;
	int64_t nr = ctx->kernels->gemm_i8->nr;

	ql_tensor_alias(ctx, t, &view);
	view->shape[1] -= nr;
	view->offset = nr * t->stride[1];
	check_product(ctx, view, 3);
	view->offset = t->stride[1];
	CHECK(ql_gemm_i8_stored(ctx, view, &panels) && !panels.kernel, "between the panels");
	view->offset = 0;
	view->shape[0]--;
	CHECK(ql_gemm_i8_stored(ctx, view, &panels) && !panels.kernel, "fewer rows");
	ql_tensor_release(ctx, view);
}

static void check_writes(struct ql_ctx *ctx, struct ql_tensor *t, int64_t size)
{
	struct ql_tensor *part, *from;

	ql_tensor_alias(ctx, t, &part);
	part->rank = 1;
	part->shape[0] = 5;
	part->stride[0] = 1;
	part->offset = size - 9;
	ql_tensor_new(ctx, t->dtype, 1, part->shape, &from);
	memset(ql_tensor_data(from), 1, 5);
	CHECK(!ql_tensor_copy(ctx, part, from), "%s", ctx->err);
	CHECK(!t->storage->closed && t->storage->bytes == (size_t)size, "dense after a write");
	for (int64_t i = 0; i < size; i++)
		if (((uint8_t *)t->storage->data)[i] != (i >= size - 9 && i < size - 4 ? 1 : code_of(i))) {
			CHECK(false, "code %d after a write", (int)i);
			break;
		}
	ql_tensor_release(ctx, part);
	ql_tensor_release(ctx, from);
}

static void check_matrix(struct ql_ctx *ctx, unsigned dtype, int64_t n, int64_t k, bool columns)
{
	struct ql_tensor *t = make(ctx, dtype, n, k, columns), *copy = NULL;
	bool fits = ql_gemm_i8_can_store(ctx, t);

	CASE("%s: %s, n %d, k %d, %s", ctx->kernels->gemm_i8->name, ql_dtype_name(dtype), (int)n, (int)k,
		columns ? "columns" : "rows");
	CHECK(!ql_closed_open(ctx, t->storage) && !ql_gemm_i8_can_store(ctx, t), "held");
	ql_closed_close(ctx, t->storage);
	CHECK(ql_gemm_i8_can_store(ctx, t) == fits, "no longer held");
	CHECK(!ql_gemm_i8_store(ctx, t) && ql_is_closed(t), "stored");
	CHECK(!fits || t->storage->bytes <= (size_t)(n * k) * 17 / 16, "%d bytes", (int)t->storage->bytes);
	CHECK(has_codes(ctx, t, n * k), "codes");
	CHECK(!ql_tensor_clone(ctx, t, &copy) && !ql_is_closed(copy) &&
			ql_tensor_at_f64(copy, n + 1) == ql_tensor_at_f64(t, n + 1),
		"a clone");
	check_product(ctx, t, 0);
	check_product(ctx, t, 77);
	check_product(ctx, t, 1 << 29);
	if (n > ctx->kernels->gemm_i8->nr)
		check_views(ctx, t);
	check_writes(ctx, t, n * k);
	ql_tensor_release(ctx, copy);
	ql_tensor_release(ctx, t);
}

int main(void)
{
	static const char *const levels[] = {"ref", "avx2", "avxvnni", "avx512vnni"};
	static const int64_t sizes[][2] = {
		{2, 2}, {15, 33}, {64, 64}, {65, 67}, {96, 100}, {128, 16}, {200, 129}, {320, 260}};
	for (size_t l = 0; l < sizeof(levels) / sizeof(*levels); l++) {
		struct ql_ctx *ctx =
			ql_kernels_force(levels[l]) ? ql_ctx_new(3) : NULL; /* not every CPU has all of them */

		if (!ctx)
			continue;
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
			for (int v = 0; v < 4; v++)
				check_matrix(ctx, v & 1 ? QL_uint8 : QL_int8, sizes[i][0], sizes[i][1], v & 2);
		ql_ctx_free(ctx);
	}
	return check_end();
}
