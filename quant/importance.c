/* SPDX-License-Identifier: MIT
 * Reads and checks the weights of columns.
 */
#include "quant/importance.h"

#include "quant/blocks/block.h"
#include "tensor/codec_functions.h"
#include "tensor/grid.h"
#include "tensor/scratch.h"

#define LARGEST 1e10f /* its square is finite in float32 */

bool ql_importance_fits(const struct ql_spec *spec)
{
	const struct ql_quant_format *format = spec->format;

	return (format && format->blocks && format->blocks->importance) ||
	       (format && format->functions && format->functions->fit) || (spec->grid && spec->grid->learned);
}

enum ql_status ql_importance(struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n, const float **out)
{
	const struct ql_tensor *given = spec->importance;
	float *w;

	*out = NULL;
	if (!given)
		return QL_OK;
	if (given->q || given->rank != 1 || given->shape[0] != n)
		return ql_fail(ctx, QL_ERR_SHAPE,
			"quantize: importance: wanted a plain tensor of the %lld columns, got %lld numbers",
			(long long)n, (long long)ql_tensor_nelem(given));
	w = ql_scratch_array(ctx, n, sizeof(*w));
	if (!w)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		w[i] = (float)ql_tensor_at_f64(given, i);
		if (!(w[i] >= 0 && w[i] <= LARGEST))
			return ql_fail(ctx, QL_ERR_ARGUMENT,
				"quantize: importance: wanted 0 to %g for every column, got %g for column %lld",
				(double)LARGEST, (double)w[i], (long long)i + 1);
	}
	*out = w;
	return QL_OK;
}
