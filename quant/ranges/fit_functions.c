/* SPDX-License-Identifier: MIT
 * Calls the function that finds scales, with all data or with the ends of the ranges of observers.
 */
#include "quant/ranges/fit_functions.h"

#include "quant/importance.h"
#include "tensor/codec_functions.h"
#include "tensor/scratch.h"

static const struct ql_codec_functions *functions_of(const struct ql_spec *spec)
{
	return spec->format ? spec->format->functions : NULL;
}

bool ql_fit_functions_has(const struct ql_spec *spec)
{
	const struct ql_codec_functions *f = functions_of(spec);

	return f && f->fit;
}

/* Gives the importance of each element of x: that of its column, its index along `axis`. NULL: none. */
static enum ql_status spread(
	struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_tensor *x, int axis, const float **out)
{
	int64_t inner = 1, n = ql_tensor_nelem(x), size = x->rank ? x->shape[axis] : 1;
	const float *columns;
	float *each;
	enum ql_status status = ql_importance(ctx, spec, size, &columns);

	*out = NULL;
	if (status || !columns)
		return status;
	each = ql_scratch_array(ctx, n, sizeof(*each));
	if (!each)
		return QL_ERR_MEMORY;
	for (int d = axis + 1; d < x->rank; d++)
		inner *= x->shape[d];
	for (int64_t i = 0; i < n; i++)
		each[i] = columns[i / inner % size];
	*out = each;
	return QL_OK;
}

enum ql_status ql_fit_functions_data(struct ql_ctx *ctx, const struct ql_spec *spec, const struct ql_grain *g,
	const struct ql_tensor *x, int axis, double *scale)
{
	const float *importance;
	enum ql_status status = spread(ctx, spec, x, axis, &importance);

	return status ? status
		      : ql_codec_functions_fit(ctx, functions_of(spec), g, ql_tensor_data(x), importance, scale);
}

enum ql_status ql_fit_functions_ranges(
	struct ql_ctx *ctx, const struct ql_spec *spec, int64_t n, const struct ql_stats *stats, double *scale)
{
	const int64_t shape[2] = {n, 2};
	struct ql_grain g = ql_grain_of(2, shape, QL_float32, 0, -1, 0);
	float *ends = ql_scratch_array(ctx, n, 2 * sizeof(*ends));

	if (!ends)
		return QL_ERR_MEMORY;
	for (int64_t i = 0; i < n; i++) {
		ends[2 * i] = (float)stats[i].lo;
		ends[2 * i + 1] = (float)stats[i].hi;
	}
	return ql_codec_functions_fit(ctx, functions_of(spec), &g, ends, NULL, scale);
}
