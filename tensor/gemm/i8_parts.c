/* SPDX-License-Identifier: MIT
 * Operands of an 8-bit product, and the correction of its sums for their zero points.
 */
#include "tensor/gemm/i8_parts.h"

#include "tensor/gemm/plan.h"
#include "tensor/vmath/simd.h"

#define ZERO_LIMIT (1 << 30) /* a larger zero point cannot be shifted */

enum ql_status ql_gemm_operand_init(
	struct ql_ctx *ctx, struct ql_gemm_operand *o, const struct ql_matrix_int *from, int64_t n, bool wants_unsigned)
{
	bool is_unsigned = from->dtype == QL_uint8;
	int32_t shift = is_unsigned == wants_unsigned ? 0 : wants_unsigned ? 128 : -128;
	int64_t lo = is_unsigned ? 0 : -128, zlo = 0, zhi = 0;

	for (int64_t i = 0; i < n && from->zero; i++) {
		int64_t z = from->zero[i * from->zero_step];

		zlo = i == 0 || z < zlo ? z : zlo;
		zhi = i == 0 || z > zhi ? z : zhi;
	}
	if (zlo < -ZERO_LIMIT || zhi > ZERO_LIMIT)
		return ql_fail(ctx, QL_ERR_ARGUMENT, "matmul: zero point: wanted within %d..%d, got %lld", -ZERO_LIMIT,
			ZERO_LIMIT, (long long)(zlo < -ZERO_LIMIT ? zlo : zhi));
	*o = (struct ql_gemm_operand){
		.from = from, .flip = shift ? 128 : 0, .largest = ql_max64(lo + 255 - zlo, zhi - lo)};
	if (zlo + shift == 0 && zhi + shift == 0)
		return QL_OK;
	o->zero = ql_gemm_take(ctx, n, sizeof(*o->zero));
	if (!o->zero)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++)
		o->zero[i] = (from->zero ? from->zero[i * from->zero_step] : 0) + shift;
	return QL_OK;
}

bool ql_gemm_is_narrow(const struct ql_gemm_operand *a, const struct ql_gemm_operand *b, int64_t k)
{
	uint64_t bound;

	return ql_size_mul((uint64_t)a->largest, (uint64_t)b->largest, &bound) &&
	       ql_size_mul(bound, (uint64_t)k, &bound) && bound <= INT32_MAX;
}

int64_t ql_gemm_row_rest(const uint8_t *a, int64_t k, int32_t zero, uint8_t sign)
{
	uint64_t sum = 0;

	for (int64_t l = 0; l < k; l++)
		sum += (uint8_t)(a[l] ^ sign);
	return (int64_t)sum - k * ((int64_t)zero + sign);
}

QL_SIMD(void, correct,
	(int32_t * c, int64_t n, uint32_t za, const int32_t *column_sum, const int32_t *zb, uint32_t rest), {
		if (za)
			for (int64_t i = 0; i < n; i++)
				c[i] = (int32_t)((uint32_t)c[i] - za * (uint32_t)column_sum[i]);
		if (zb)
			for (int64_t i = 0; i < n; i++)
				c[i] = (int32_t)((uint32_t)c[i] - rest * (uint32_t)zb[i]);
	})

void ql_gemm_correct(
	int variant, int32_t *c, int64_t n, int32_t za, const int32_t *column_sum, const int32_t *zb, int64_t rest)
{
	correct[variant](c, n, (uint32_t)za, column_sum, zb, (uint32_t)rest);
}
