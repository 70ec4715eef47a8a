/* SPDX-License-Identifier: MIT
 * The product of h with an int8 w_hh in integers, with h quantized at each step, every row by its own range:
 * symmetric int8 as with the spec 'int8/1' (scale = largest |h| / 127). The tiles need unsigned rows, so codes are
 * stored plus 128, and 128 times the sum of each column is subtracted. Sums are exact; y = (float)sum * (sh * sw),
 * as in linear with such operands.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "nn/recurrent_steps.h"
#include "tensor/closed.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"

#define MAX_K 65536 /* 255 * 128 * k stays below 2^31 */

bool ql_steps_int_fits(const struct ql_tensor *w, const char **reason)
{
	if (!w->q)
		*reason = "w_hh is not quantized";
	else if (w->dtype != QL_int8 || !ql_qparams_affine(w->q) || w->q->zero_point)
		*reason = "w_hh is not symmetric int8";
	else if (w->q->block || w->q->axis == 1)
		*reason = "scale of w_hh varies along the summed axis";
	else if (w->shape[1] > MAX_K)
		*reason = "a sum would not fit 32 bits";
	else
		return true;
	return false;
}

/* Panels for this call. */
static enum ql_status pack(struct ql_ctx *ctx, const struct ql_tensor *w, struct ql_gemm_i8_panels *out)
{
	int64_t n = w->shape[0], k = w->shape[1];
	struct ql_matrix_int b = {.data = ql_tensor_data(w), .dtype = QL_int8, .row = 1, .column = k};
	void *memory = ql_scratch_take(ctx, ql_gemm_i8_panel_bytes(ctx->kernels->gemm_i8, n, k));

	return memory ? ql_gemm_i8_pack(ctx, n, k, &b, memory, out) : QL_ERR_MEMORY;
}

/* The panels of the transpose of w (n, k), as for linear: in the place of its codes from the second request on, where they need
 * about as many bytes, else packed at each call; only the outermost op may move them. */
static enum ql_status panels_of(struct ql_ctx *ctx, const struct ql_tensor *w, struct ql_gemm_i8_panels *out)
{
	int64_t n = w->shape[0], k = w->shape[1];
	struct ql_tensor b = *w;
	struct ql_derived_key key = {.maker = ctx->kernels->gemm_i8,
		.offset = w->offset,
		.dtype = QL_int8,
		.stride = {1, k},
		.size = {k, n}};
	struct ql_derived *place = ql_storage_derived(ctx, w->storage, &key);
	enum ql_status status = QL_OK;

	b.shape[0] = k;
	b.shape[1] = n;
	b.stride[0] = 1;
	b.stride[1] = k;
	if (ql_closed_may_move(ctx) && place && place->asked && ql_gemm_i8_can_store_more(ctx, &b))
		status = ql_gemm_i8_store(ctx, &b);
	ql_gemm_i8_stored(ctx, &b, out);
	if (status || out->kernel)
		return status;
	status = ql_closed_open(ctx, w->storage);
	if (status)
		return status;
	status = pack(ctx, w, out);
	ql_closed_close(ctx, w->storage);
	return status;
}

enum ql_status ql_steps_factor_int(
	struct ql_ctx *ctx, const struct ql_tensor *w, int64_t batch, struct ql_steps_factor *f)
{
	const struct ql_tensor *scale = w->q->scale;
	struct ql_gemm_i8_panels panels;
	uint64_t code_bytes;
	float *scales;
	int32_t *sums;
	enum ql_status status;

	*f = (struct ql_steps_factor){.kernel = ctx->kernels->gemm_i8,
		.quantize = ctx->kernels->quantize,
		.n = w->shape[0],
		.k = w->shape[1],
		.lda = ql_ceil_div(w->shape[1], 4) * 4,
		.variant = ctx->kernels->simd->variant};
	if (!ql_gemm_i8_panel_bytes(f->kernel, f->n, f->k) ||
		!ql_size_mul((uint64_t)batch, (uint64_t)f->lda, &code_bytes))
		return ql_fail(ctx, QL_ERR_OVERFLOW, "w_hh: its bytes do not fit in 64 bits");
	f->codes = ql_scratch_take(ctx, code_bytes);
	sums = ql_scratch_array(ctx, f->n, sizeof(*sums));
	scales = ql_scratch_array(ctx, f->n, sizeof(*scales));
	if (!f->codes || !sums || !scales)
		return QL_ERR_MEMORY;
	memset(f->codes, 0, code_bytes);
	status = panels_of(ctx, w, &panels);
	if (!status)
		status = ql_qparams_scales(ctx, scale, scales);
	if (status)
		return status;
	for (int64_t j = 0; j < f->n; j++) {
		scales[j] = scales[scale->rank ? j : 0];
		sums[j] = 128 * panels.sum[j];
	}
	f->panels_int = (const int8_t *)panels.data;
	f->column_sums = sums;
	f->scales = scales;
	return QL_OK;
}

QL_SIMD(float, largest, (int64_t n, const float *restrict x), {
	float most = 0;

	for (int64_t i = 0; i < n; i++) {
		float a = fabsf(x[i]);

		most = a > most && a <= FLT_MAX ? a : most;
	}
	return most;
})

QL_SIMD(void, rescale,
	(float *restrict y, const int32_t *restrict sum, const int32_t *restrict columns, int64_t n, float sa,
		const float *restrict sb),
	{
		for (int64_t i = 0; i < n; i++)
			y[i] = (float)(sum[i] - columns[i]) * (sa * sb[i]);
	})

/* Encodes row x as codes 1 to 255 around 128; returns its scale. */
static float encode(const struct ql_steps_factor *f, const float *x, uint8_t *to)
{
	static const int32_t zero = 128;
	float most = largest[f->variant](f->k, x), scale = (float)((double)most / 127);

	scale = most == 0 ? 1 : scale < FLT_MIN ? FLT_MIN : scale;
	f->quantize->to_8(&(struct ql_affine){.scale = &scale, .zero = &zero, .lo = 1, .hi = 255}, x, f->k, to);
	return scale;
}

void ql_steps_multiply_int(const struct ql_steps_factor *f, int64_t from, int64_t to, int64_t first, int64_t m,
	const float *a, int64_t a_row, float *c, int64_t ldc)
{
	int mr = f->kernel->mr, nr = f->kernel->nr;
	uint8_t *codes = f->codes + first * f->lda;
	int32_t tile[QL_GEMM_TILE];
	float scale[QL_STEPS_BLOCK];

	for (int64_t i = 0; i < m; i++)
		scale[i] = encode(f, a + i * a_row, codes + i * f->lda);
	for (int64_t j = from / nr * nr; j < to; j += nr)
		for (int64_t i = 0; i < m; i += mr) {
			int rows = (int)ql_min64(mr, m - i), columns = (int)ql_min64(nr, f->n - j);

			f->kernel->tile(rows, columns, f->lda / 4, codes + i * f->lda, f->lda,
				f->panels_int + j * f->lda, tile);
			for (int r = 0; r < rows; r++)
				rescale[f->variant](c + (i + r) * ldc + j, tile + r * nr, f->column_sums + j, columns,
					scale[i + r], f->scales + j);
		}
}
