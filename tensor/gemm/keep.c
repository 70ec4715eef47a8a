/* SPDX-License-Identifier: MIT
 * Sums of the columns of strips, cached with the storage of the codes.
 */
#include <string.h>

#include "tensor/gemm/gemm.h"
#include "tensor/gemm/plan.h"
#include "tensor/kernels/kernels.h"
#include "tensor/scratch.h"
#include "tensor/storage.h"

#define TAIL 16      /* sums after the last one that vectors may read */
#define MOST_K 32768 /* sums of products with ones are then of 32 bits */

/* Their product with a row of ones, as codes of a signed byte. */
static enum ql_status sum_strips(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b, int32_t *sum)
{
	static const int32_t middle = 128;
	struct ql_matrix_int codes = *b, ones = {.dtype = QL_uint8, .row = k, .column = 1};
	uint8_t *one = ql_gemm_take(ctx, k, 1);

	if (!one)
		return QL_ERR_MEMORY;
	memset(one, 1, (size_t)k);
	ones.data = one;
	codes.sums = NULL;
	codes.zero = b->dtype == QL_uint8 ? &middle : NULL;
	codes.zero_step = 0;
	return ql_gemm_i8_to(ctx, 1, n, k, &ones, &codes, &(struct ql_gemm_i8_out){.s32 = sum, .ld = n});
}

enum ql_status ql_gemm_i8_keep_strip_sums(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	struct ql_derived *place, const int32_t **out)
{
	struct ql_scratch_mark mark = ql_scratch_mark(ctx);
	enum ql_status status;
	int32_t *sum;

	*out = place ? place->data : NULL;
	if (*out || !place || !place->asked || k > MOST_K)
		return QL_OK;
	sum = ql_alloc_array(ctx, n + TAIL, sizeof(*sum));
	if (!sum)
		return QL_OK;
	memset(sum + n, 0, TAIL * sizeof(*sum));
	status = sum_strips(ctx, n, k, b, sum);
	ql_scratch_release(ctx, mark);
	if (status)
		ql_free(ctx, sum);
	else
		*out = place->data = sum;
	return status;
}
