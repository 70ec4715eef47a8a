/* SPDX-License-Identifier: MIT
 * Several float32 products with one packed B, of numbers or of codes, which are decoded some columns at a time. Sums are divided along
 * k as in f32.c, so the bits are the same.
 */
#include <string.h>

#include "tensor/codec.h"
#include "tensor/gemm/pack.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/parallel.h"
#include "tensor/slots.h"

#define LINES 16      /* columns of B decoded at a time, which are turned in registers together */
#define DECODE_NS 0.4 /* a number, roughly */

int64_t ql_gemm_f32_panels_length(const struct ql_gemm_f32 *kernel, int64_t n, int64_t k)
{
	return ql_ceil_div(n, kernel->nr) * kernel->nr * k;
}

struct packing {
	const float *b;
	int64_t row, column, n, k;
	int nr, variant;
	const struct ql_decoder *codes; /* of the columns of B, instead of b */
	struct ql_slots slots;          /* for LINES decoded columns */
	float *to;
};

static void pack_body(void *arg, int64_t begin, int64_t end)
{
	const struct packing *p = arg;

	for (int64_t panel = begin; panel < end; panel++) {
		int64_t c = panel * p->nr;

		ql_gemm_panel_f32(p->variant, p->b + c * p->column, p->row, p->column, p->k,
			(int)ql_min64(p->nr, p->n - c), p->nr, p->to + c * p->k);
	}
}

struct ql_gemm_f32_panels ql_gemm_f32_panels_of(
	const struct ql_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t b_row, int64_t b_col, float *memory)
{
	const struct ql_gemm_f32 *kernel = ctx->kernels->tiles;
	struct packing p = {.b = b,
		.row = b_row,
		.column = b_col,
		.n = n,
		.k = k,
		.nr = kernel->nr,
		.variant = ctx->kernels->simd->variant,
		.to = memory};

	pack_body(&p, 0, ql_ceil_div(n, kernel->nr));
	return (struct ql_gemm_f32_panels){kernel, n, k, memory};
}

/* Memory for the panels of `out`. */
static enum ql_status take_panels(struct ql_ctx *ctx, struct ql_gemm_f32_panels *out, struct packing *p)
{
	uint64_t bytes;

	if (!ql_size_mul((uint64_t)out->k, ql_size_array(out->kernel->nr, sizeof(float)), &bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "matmul: inner size %lld is too large", (long long)out->k);
	p->n = out->n;
	p->k = out->k;
	p->nr = out->kernel->nr;
	p->variant = ctx->kernels->simd->variant;
	out->data = p->to = ql_gemm_take(ctx, ql_ceil_div(out->n, p->nr), bytes);
	return p->to ? QL_OK : QL_ERR_MEMORY;
}

enum ql_status ql_gemm_f32_pack(struct ql_ctx *ctx, int64_t n, int64_t k, const float *b, int64_t b_row, int64_t b_col,
	struct ql_gemm_f32_panels *out)
{
	struct packing p = {.b = b, .row = b_row, .column = b_col};
	enum ql_status status;

	*out = (struct ql_gemm_f32_panels){.kernel = ctx->kernels->tiles, .n = n, .k = k};
	status = take_panels(ctx, out, &p);
	return status ? status : ql_parallel_for(ctx, ql_ceil_div(n, p.nr), 1, n * k / 2, pack_body, &p);
}

/* item: a panel */
static void decode_body(void *arg, int64_t begin, int64_t end)
{
	const struct packing *p = arg;
	int slot;
	float *lines = ql_slots_enter(&p->slots, &slot);

	for (int64_t c = begin * p->nr, some; c < ql_min64(end * p->nr, p->n); c += some) {
		some = ql_min64(ql_min64(LINES, p->nr - c % p->nr), p->n - c);
		ql_decoder_read(p->codes, c, 0, some * p->k, lines);
		ql_gemm_panel_f32(p->variant, lines, 1, p->k, p->k, (int)some, p->nr,
			p->to + c / p->nr * p->nr * p->k + c % p->nr);
	}
	ql_slots_leave(&p->slots, slot);
}

enum ql_status ql_gemm_f32_pack_codes(struct ql_ctx *ctx, struct ql_tensor *w, struct ql_gemm_f32_panels *out)
{
	struct packing p = {0};
	struct ql_decoder *decoder = NULL;
	enum ql_status status;

	*out = (struct ql_gemm_f32_panels){.kernel = ctx->kernels->tiles, .n = w->shape[0], .k = w->shape[1]};
	status = take_panels(ctx, out, &p);
	if (!status)
		status = ql_decoder_open(ctx, w, &decoder);
	p.codes = decoder;
	if (!status)
		status = ql_slots_take(ctx, ql_size_array(ql_mul64(LINES, p.k), sizeof(float)), &p.slots);
	if (!status)
		status = ql_parallel_for(ctx, ql_ceil_div(p.n, p.nr), 1,
			(int64_t)(DECODE_NS * (double)p.n * (double)p.k), decode_body, &p);
	ql_decoder_close(ctx, decoder);
	return status;
}

void ql_gemm_f32_columns(const struct ql_gemm_f32_panels *b, int64_t first, int64_t stop, int64_t m, const float *a,
	int64_t a_row, float *c, int64_t ldc)
{
	int mr = b->kernel->mr, nr = b->kernel->nr;
	int64_t last = ql_min64(stop * nr, b->n);

	if (b->k == 0 && last > first * nr)
		for (int64_t i = 0; i < m; i++)
			memset(c + i * ldc + first * nr, 0, (size_t)(last - first * nr) * sizeof(*c));
	for (int64_t j = first * nr; j < last; j += nr)
		for (int64_t l = 0; l < b->k; l += QL_GEMM_DEPTH)
			for (int64_t i = 0; i < m; i += mr)
				b->kernel->tile((int)ql_min64(mr, m - i), (int)ql_min64(nr, b->n - j),
					ql_min64(QL_GEMM_DEPTH, b->k - l), a + i * a_row + l, a_row,
					b->data + j * b->k + l * nr, nr, c + i * ldc + j, ldc, l > 0);
}

void ql_gemm_f32_rows(
	const struct ql_gemm_f32_panels *b, int64_t m, const float *a, int64_t a_row, float *c, int64_t ldc)
{
	ql_gemm_f32_columns(b, 0, ql_ceil_div(b->n, b->kernel->nr), m, a, a_row, c, ldc);
}
