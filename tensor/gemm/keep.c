/* SPDX-License-Identifier: MIT
 * Cached panels: a block that starts with their description, owned by the storage of the codes.
 */
#include "tensor/gemm/gemm.h"
#include "tensor/kernels/kernels.h"
#include "tensor/storage.h"

#define HEAD 64 /* keeps what follows aligned */

_Static_assert(sizeof(struct ql_gemm_i8_panels) <= HEAD, "the description has room in front");

enum ql_status ql_gemm_i8_keep(struct ql_ctx *ctx, int64_t n, int64_t k, const struct ql_matrix_int *b,
	struct ql_derived *place, struct ql_gemm_i8_panels *out)
{
	uint64_t bytes = ql_gemm_i8_panel_bytes(ctx->kernels->gemm_i8, n, k);
	enum ql_status status;
	char *block;

	*out = (struct ql_gemm_i8_panels){0};
	if (place && place->data)
		*out = *(const struct ql_gemm_i8_panels *)place->data;
	if (out->kernel || !b || !place || !place->asked || !bytes || !ql_size_add(bytes, HEAD, &bytes))
		return QL_OK;
	block = ql_alloc(ctx, bytes);
	if (!block)
		return QL_OK;
	status = ql_gemm_i8_pack(ctx, n, k, b, block + HEAD, out);
	if (status) {
		ql_free(ctx, block);
		return status;
	}
	*(struct ql_gemm_i8_panels *)(void *)block = *out;
	place->data = block;
	return QL_OK;
}
